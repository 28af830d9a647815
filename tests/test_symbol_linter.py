"""The symbol linter: which letters are symbols, and which text defines them."""

import json

import pytest

from companion.project.paths import Project
from symbol_linter import introduced, missing_on, symbols, undefined


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (r"\hat\mu_L", [r"\hat \mu"]),
        (r"\hat{g}_{i,L}^2", [r"\hat g"]),
        (r"k^\star + k^*", ["k^*", "k^*"]),
        (r"e^{\langle\xi, z'\rangle}", ["e", r"\xi", "z"]),
        (r"\|\Gamma^{1/2}Uz\|_{\mathrm{op}}", [r"\Gamma", "U", "z"]),
        (r"\mathbb E\sum_i p_i \text{ if } \mathrm{tr}\,A", ["p", "A"]),
        (r"\mathcal N(0, I)", [r"\mathcal N", "I"]),
        (r"\frac{\partial T}{\partial z}", ["T", "z"]),
    ],
)
def test_a_symbol_is_a_letter_with_accent_font_and_star(formula, expected):
    """Subscripts name instances, superscripts contain symbols, and words are not symbols."""
    assert list(symbols(formula)) == expected


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("in dimension $d$", {"d"}),
        ("for every $L\\ge2$ there are $c_1, c_2$", {"L", "c"}),
        ("the keys $k$, $v$ and $w$", {"k", "v", "w"}),
        ("$P$, the participation", {"P"}),
        ("Here $P$ is the participation", {"P"}),
        ("with $\\tau^2 = \\xi^\\top\\Gamma\\xi$", {r"\tau"}),
        ("Then $$a = b + c, \\qquad f(x) = g(x)$$", {"a", "f"}),
        ("$w \\sim \\mathcal N(0, I)$", {"w"}),
        ("it falls at $\\tau$ and by $x$", set()),
        ("the ratio $a/b$ is small", set()),
        ("$a + b = c$", set()),
        ("it tends to $q$. Then $r$ grows", set()),
    ],
)
def test_words_and_equations_introduce_symbols(text, known):
    """A symbol is introduced next to a noun, before `the`, or alone on the left of a relation; use is not enough."""
    assert introduced(text) == known


NOTATION = """\
# Notation

| Symbol | Meaning |
|---|---|
| $z$ | a token |
| $\\sigma$ | a scale |

| Symbol | Meaning | Where |
|---|---|---|
| $\\sigma$ | the activation | {doc}`two`, {doc}`The third <three>` |
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.companion]\nchapters = "episodes"\n')
    (tmp_path / "_toc.yml").write_text("root: book/one\nchapters:\n  - file: book/walks\n")
    (tmp_path / "book/notation.md").write_text(NOTATION)
    for page in ("one", "two", "three"):
        (tmp_path / f"book/{page}.md").write_text(f"# {page}\n\nSo $z$ falls with $\\sigma$. `$x$` is code.\n")
    return Project(tmp_path)


def test_a_row_of_the_notation_holds_on_the_pages_it_links_to(project):
    """A page that the row does not link to must define the symbol itself."""
    assert undefined(project) == {"one": [r"\sigma"]}


def test_captions_of_a_notebooks_figures_are_read(project):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# W\n", "It tends to $u$."]},
        {"cell_type": "code", "metadata": {}, "source": ["publish(returns, 1)"], "outputs": []},
    ]
    (project.book / "walks.ipynb").write_text(json.dumps({"cells": cells}))
    folder = project.root / "episodes/walks"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures/returns.py").write_text('"""Up to $q$, and the number $u$ of steps."""\n')
    assert missing_on(project, "walks") == ["q"]
