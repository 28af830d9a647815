"""Formulas in the text of a page: how they are typeset, and the punctuation after them, which stays on their line."""

import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from companion.site.sphinx.extension import keep_punctuation
from companion.site.sphinx.formulas import FormulaError, is_short, typeset, with_whole_brackets


def page(*parts: str | nodes.Node) -> nodes.document:
    document = nodes.document(None, None)
    paragraph = nodes.paragraph()
    paragraph += [nodes.Text(part) if isinstance(part, str) else part for part in parts]
    document += paragraph
    return document


def formula(text: str) -> nodes.math:
    return nodes.math("", text)


def kept_together(document):
    """Keep punctuation with formulas, which must not change the text; return what stays on one line."""
    before = document.astext()
    keep_punctuation(None, document)
    assert document.astext() == before
    return [node.astext() for node in document.findall(nodes.inline)]


@pytest.mark.parametrize("between", [", ", "; and ", ") ", ".", " or "])
def test_punctuation_stays_with_the_formula_before_it(between):
    """Also if the same words follow something else than a formula before."""
    link = nodes.emphasis("", "link")
    document = page("See ", link, between, formula("a"), between, formula("b"), between, formula("c"), between, "end.")
    mark = between.strip(" and")
    assert kept_together(document) == ([] if between == " or " else [f"a{mark}", f"b{mark}", f"c{mark}"])


def test_an_opening_bracket_stays_with_the_formula_after_it():
    document = page("A sum (", formula("a"), ", ", formula("b"), " of “", formula("c"), "”).")
    assert kept_together(document) == ["(a,", "“c”)."]


def test_a_long_formula_contains_the_punctuation_around_it():
    """The mark stays with the last part, and the formula may break before it."""
    document = page("A sum (", formula("a + b + c + d = e + f + g"), "), and more.")
    keep_punctuation(None, document)
    assert document.astext() == r"A sum \text{(}a + b + c + d = e + f + g\text{),} and more."
    parts = BeautifulSoup(typeset(next(document.findall(nodes.math)).astext(), displayed=False), "html.parser")
    assert parts.select(".katex-base")[-1].get_text().endswith("g),")
    assert not list(document.findall(nodes.inline))


@pytest.mark.parametrize(
    ("tex", "short"),
    [("a > 1", True), (r"\mathbb{E}\,\hat g^2", True), (r"\Sigma = I", True), (r"a + b + c + d = e + f + g", False)],
)
def test_no_line_ends_within_a_short_formula(tex, short):
    assert is_short(tex) == short


def test_formulas_in_titles_stay_as_they_are():
    document = nodes.document(None, None)
    document += nodes.title("", "", formula("a"), nodes.Text(": a title"))
    assert kept_together(document) == []


@pytest.mark.parametrize(
    "tex", [r"\frac12", r"\mathbb E\,\hat g^2", r"a < b", r"\sqrt{2\ln L}", r"\begin{aligned}a&=b\\&=c\end{aligned}"]
)
@pytest.mark.parametrize("displayed", [True, False])
def test_a_formula_becomes_well_formed_markup_that_is_read_aloud(tex, displayed):
    """Its MathML is not hidden from screen readers, and its picture in HTML is."""
    markup = BeautifulSoup(typeset(tex, displayed=displayed), "html.parser")
    assert markup.select_one("math").get_text()
    assert markup.select_one("[aria-hidden=true] .katex-base")
    assert not markup.select("[aria-hidden=true] math")
    assert bool(markup.select(".katex-display")) == displayed
    # attributes without quotes have the values that they had with them
    assert all(element["style"].rstrip(";").endswith("em") for element in markup.select("[style]"))


def test_macros_are_replaced():
    assert typeset(r"\E x", displayed=False, macros={r"\E": r"\mathbb{E}"}) == typeset(r"\mathbb{E} x", displayed=False)


def test_a_formula_with_a_mistake_is_refused():
    with pytest.raises(FormulaError, match="Undefined control sequence"):
        typeset(r"\unknown", displayed=False)


def test_no_line_ends_in_short_brackets():
    """The parts between which KaTeX allows a line to end are kept together within brackets."""
    broken = typeset("a = L / (L - 1) + b", displayed=False)
    whole = with_whole_brackets(broken)
    assert whole.count("<span") == broken.count("<span") + 1
    assert whole.count("</span>") == whole.count("<span")
    inside = whole.partition("<span class=companion-unbroken>")[2]
    assert "(" in inside.partition("katex-base")[2]
    assert with_whole_brackets(typeset("a = b + c", displayed=False)).count("companion-unbroken") == 0
    last = with_whole_brackets(typeset("a = (L - 1)", displayed=False))
    assert last.count("<span") == last.count("</span>")
    assert last.endswith("</span></span></span></span>")
