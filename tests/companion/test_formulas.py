"""Formulas in the text of a page: the punctuation after a formula stays on its line."""

import pytest
from docutils import nodes

from companion.site.sphinx.extension import keep_punctuation


def page(*parts: str | nodes.Node) -> nodes.document:
    document = nodes.document(None, None)
    paragraph = nodes.paragraph()
    paragraph += [nodes.Text(part) if isinstance(part, str) else part for part in parts]
    document += paragraph
    return document


def formula(text: str) -> nodes.math:
    return nodes.math("", text)


@pytest.mark.parametrize("between", [", ", "; and ", ") ", ".", " or "])
def test_the_text_of_a_page_stays_the_same(between):
    """Also if the same words follow something else than a formula before."""
    link = nodes.emphasis("", "link")
    document = page("See ", link, between, formula("a"), between, formula("b"), between, formula("c"), between, "end.")
    before = document.astext()
    keep_punctuation(None, document)
    assert document.astext() == before
    together = [node.astext() for node in document.findall(nodes.inline)]
    assert together == ([] if between == " or " else [f"{letter}{between.strip(' and')}" for letter in "abc"])


def test_formulas_in_titles_stay_as_they_are():
    title = nodes.title()
    title += [formula("a"), nodes.Text(": a title")]
    document = nodes.document(None, None)
    document += title
    keep_punctuation(None, document)
    assert not list(document.findall(nodes.inline))
