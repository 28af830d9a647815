"""The Sphinx domain of a book stores what pages show, and forgets pages."""

from types import SimpleNamespace
from typing import Any

import pytest
from docutils import nodes

from companion.site.sphinx.domain import BookDomain


def domain_with(*pages: str) -> BookDomain:
    """Return a domain in which each page has one claim with the name of the page."""
    env: Any = SimpleNamespace(domaindata={}, domains={}, docname="")
    domain = env.domains["companion"] = BookDomain(env)
    for page in pages:
        env.docname = page
        domain.current.shown.add(f"{page}-claim")
        domain.note("claim", f"{page}-claim", f"The claim\nof {page}", f"claim-{page}")
    return domain


def objects_of(domain):
    return {name: (title, kind, page, anchor) for name, title, kind, page, anchor, _ in domain.get_objects()}


def test_objects_of_all_pages_are_listed():
    domain = domain_with("one", "two")
    assert objects_of(domain) == {
        "one-claim": ("The claim of one", "claim", "one", "claim-one"),
        "two-claim": ("The claim of two", "claim", "two", "claim-two"),
    }
    assert BookDomain.of(domain.env) is domain


def test_a_page_is_forgotten():
    """With everything that it shows; a page that is unknown can be forgotten, too."""
    domain = domain_with("one", "two")
    for page in ("one", "three"):
        domain.clear_doc(page)
    assert list(domain.pages) == ["two"]
    assert list(objects_of(domain)) == ["two-claim"]


@pytest.mark.parametrize(
    ("kind", "name", "target"),
    [("claim", "one-claim", "one.html#claim-one"), ("figure", "one-claim", None), ("claim", "two-claim", None)],
)
def test_a_link_is_resolved_by_kind_and_name(kind, name, target):
    builder = SimpleNamespace(get_relative_uri=lambda start, page: f"{page}.html")
    domain = domain_with("one")
    link = domain.resolve_xref(domain.env, "two", builder, kind, name, None, nodes.inline("", name))
    assert (link and link["refuri"]) == target
    assert domain.resolve_any_xref() == []
