"""Fold the docstrings of code that is part of a text: the code keeps their first lines, and the rest opens below it."""

import ast
import textwrap

from docutils import nodes
from sphinx.application import Sphinx

from companion.site.sphinx.nodes import controls, details, is_within, summary

FOLD = "companion-docstring"
# A part of a page that is folded or that a button opens; its code is complete.
APART = (details, controls)
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def fold_docstrings(app: Sphinx, doctree: nodes.document) -> None:
    """Shorten the docstrings in the Python code of a page, and add a fold with the complete ones."""
    for block in list(doctree.findall(nodes.literal_block)):
        if block.get("language") == "python" and not is_within(block, APART):
            code, docstrings = shortened(textwrap.dedent(block.astext()))
            if docstrings:
                block.replace_self(_with_fold(block, code, docstrings))


def shortened(code: str) -> tuple[str, dict[str, str]]:
    """Return code whose docstrings have one line each, and the complete docstrings of several lines by name."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # such as the first lines of a function
        return code, {}
    lines, docstrings = code.splitlines(), dict[str, str]()
    documented = [node for node in ast.walk(tree) if isinstance(node, Documented) and ast.get_docstring(node)]
    for node in sorted(documented, key=lambda node: -node.lineno):
        text = node.body[0]
        assert text.end_lineno is not None
        first = lines[text.lineno - 1].rstrip()
        mark = first.lstrip().lstrip("rR")[:3]
        if text.end_lineno == text.lineno or first.endswith(mark):
            continue
        docstrings[node.name] = ast.get_docstring(node) or ""
        lines[text.lineno - 1 : text.end_lineno] = [f"{first}{mark}"]
    return "\n".join(lines), dict(reversed(docstrings.items()))


def _with_fold(block: nodes.literal_block, code: str, docstrings: dict[str, str]) -> list[nodes.Node]:
    short = nodes.literal_block(code, code, **block.attributes)
    head = summary("", "Arguments and errors of ", nodes.literal("", ", ".join(docstrings)))
    text = "\n\n".join(docstrings.values())
    whole = nodes.literal_block(text, text, language="text")
    return [short, details("", head, whole, classes=[FOLD])]
