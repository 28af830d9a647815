"""Docstrings become nodes of a page of the reference."""

from pathlib import Path
from types import SimpleNamespace

from docutils import nodes

from companion.site.sphinx.api_pages import docstring

ENV = SimpleNamespace(config=SimpleNamespace(companion_project=SimpleNamespace(root=Path("nowhere"))))
LIBRARY = SimpleNamespace(resolve_word=lambda word, source: None)
DOC = """Return `x + y`.

More about the sum: it is plain.

Args:
  x: the first number,
    of any size.
  y, z: two others; one is `z`: unused.

Returns:
  The sum,
  a number.
"""


def rendered(doc):
    return list(docstring(ENV, LIBRARY, None, doc))


def test_sections_of_a_docstring_have_one_item_per_name():
    summary, about, title, arguments, returns, result = rendered(DOC)
    assert [summary.astext(), about.astext()] == ["Return x + y.", "More about the sum: it is plain."]
    assert [title.astext(), returns.astext()] == ["Args", "Returns"]
    assert isinstance(title[0], nodes.strong)
    assert isinstance(arguments, nodes.bullet_list)
    assert [item.astext() for item in arguments] == [
        "x: the first number, of any size.",
        "y, z: two others; one is z: unused.",
    ]
    assert [item[0][0].astext() for item in arguments] == ["x", "y, z"]
    assert isinstance(result, nodes.paragraph)
    assert result.astext() == "The sum, a number."


def test_sections_may_have_any_indentation():
    _, items = rendered("Args:\n    x: a number,\n        of any size.\n    y: another.")
    assert [item.astext() for item in items] == ["x: a number, of any size.", "y: another."]


def test_a_title_without_items_is_text():
    (only,) = rendered("Args:")
    assert only.astext() == "Args:"
