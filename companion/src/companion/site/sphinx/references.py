"""The style of the bibliography, and the list of cited works at the end of every page."""

# pybtex has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from pybtex.backends import plaintext
from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.richtext import Text
from pybtex.style.formatting.unsrt import Style
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.template import field, href, join, optional, sentence, words
from pybtex_docutils import Backend
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

from companion.site.sphinx.nodes import separated

ARXIV, DOI = "https://arxiv.org/abs/", "https://doi.org/"
# The name of the page with the bibliography.
PAGE = "references"
# The type of a link from a docstring to a work, until it is resolved.
WORK = "companion-work"


class Keys(BaseLabelStyle):
    """The label of a work is its key, as in claims and in code."""

    def format_labels(self, sorted_entries: list[Entry]) -> Any:
        """Return the keys of the works."""
        return (entry.key for entry in sorted_entries)


class Linked(Style):
    """A bibliography with unchanged titles and with links to each work."""

    default_label_style = Keys
    default_sorting_style = "author_year_title"

    def format_title(self, e: Entry, which_field: str, as_sentence: bool = True) -> Any:
        """Return the title with the capital letters of the bibliography."""
        title = field(which_field)
        return sentence[title] if as_sentence else title

    def format_web_refs(self, e: Entry) -> Any:
        """Return the links to preprint, digital object identifier and page."""
        return sentence(capitalize=False, sep=" · ")[
            optional[href[join[ARXIV, field("eprint", raw=True)], join["arXiv:", field("eprint", raw=True)]]],
            optional[href[join[DOI, field("doi", raw=True)], join["doi:", field("doi", raw=True)]]],
            optional[words[href[field("url", raw=True), field("url", raw=True)]]],
        ]


def register() -> None:
    """Register the style, which a book chooses by `bibtex_default_style: companion`, and two plugins of pybtex.

    For each citation, pybtex would look for these in the metadata of all installed packages.
    """
    register_plugin("pybtex.style.formatting", "companion", Linked)
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
    register_plugin("pybtex.backends", "docutils", Backend, force=True)


def list_cited(app: Sphinx, doctree: nodes.document) -> None:
    """Append to a page the list of the works that it cites: key, authors, title and links."""
    project = app.config.companion_project
    if app.env.docname == f"{project.book.name}/{PAGE}":
        return
    entries: dict[str, Entry] = app.env.get_domain("cite").bibdata.data.entries  # pyright: ignore
    cited = [
        key.strip()
        for reference in doctree.findall(pending_xref)
        if reference["refdomain"] == "cite" or reference.get("reftype") == WORK
        for key in reference["reftarget"].split(",")
    ]
    works = [entries[key] for key in dict.fromkeys(cited) if key in entries]
    if works:
        items = [nodes.list_item("", nodes.paragraph("", "", *_work(work))) for work in works]
        listed = nodes.bullet_list("", *items, classes=["companion-cited"])
        next(doctree.findall(nodes.section)).extend([nodes.rubric("", "Cited on this page"), listed])


def _work(work: Entry) -> list[nodes.Node]:
    fields: dict[str, str] = dict(work.fields or {})
    people = (work.persons or {}).get("author", [])
    families = [" ".join([*person.prelast_names, *person.last_names]) for person in people]
    few = ", ".join([*families[:-2], " and ".join(families[-2:])])
    authors = f"{families[0]} et al." if len(families) > 3 else few
    links = [
        nodes.reference("", f"{name}{fields[part]}", refuri=f"{base}{fields[part]}")
        for part, name, base in (("eprint", "arXiv:", ARXIV), ("doi", "doi:", DOI))
        if part in fields
    ]
    if "url" in fields:
        links.append(nodes.reference("", urlsplit(fields["url"]).netloc, refuri=fields["url"]))
    return [
        nodes.strong("", f"[{work.key}]"),
        nodes.Text(f" {_text(authors)}, "),
        nodes.emphasis("", _text(fields.get("title", ""))),
        nodes.Text(f" ({fields['year']})" if "year" in fields else ""),
        *([nodes.Text(". "), *separated(links, " · ")] if links else []),
    ]


def _text(latex: str) -> str:
    """Return LaTeX text as plain text, with its accents and without braces."""
    return str(Text.from_latex(latex))
