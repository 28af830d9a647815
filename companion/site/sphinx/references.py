"""References: one key a work everywhere, that of the bibliography; under every page the works that it cites, linked."""

# pybtex has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.richtext import Text
from pybtex.style.formatting.unsrt import Style
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.template import field, href, join, optional, sentence, words
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

ARXIV, DOI = "https://arxiv.org/abs/", "https://doi.org/"
# The page with the bibliography, as the ledger's is called `claims`.
PAGE = "references"
# What a link to a work, from a docstring, is called until all pages are read.
WORK = "companion-work"


class Keys(BaseLabelStyle):
    """A work is called by its key, as in claims and in code."""

    def format_labels(self, sorted_entries: list[Entry]) -> Any:
        """The keys."""
        return (entry.key for entry in sorted_entries)


class Linked(Style):
    """A bibliography whose titles are written as the works write them, each with links to where it can be read."""

    default_label_style = Keys
    default_sorting_style = "author_year_title"

    def format_title(self, e: Entry, which_field: str, as_sentence: bool = True) -> Any:
        """The title, in its own capitals."""
        title = field(which_field)
        return sentence[title] if as_sentence else title

    def format_web_refs(self, e: Entry) -> Any:
        """Preprint, digital object identifier, and page, in that order."""
        return sentence(capitalize=False, sep=" · ")[
            optional[href[join[ARXIV, field("eprint", raw=True)], join["arXiv:", field("eprint", raw=True)]]],
            optional[href[join[DOI, field("doi", raw=True)], join["doi:", field("doi", raw=True)]]],
            optional[words[href[field("url", raw=True), field("url", raw=True)]]],
        ]


def register() -> None:
    """Let a book choose the style: `bibtex_default_style: companion`."""
    register_plugin("pybtex.style.formatting", "companion", Linked)


def list_cited(app: Sphinx, doctree: nodes.document) -> None:
    """Under the page, the works it cites: key, authors, title, and where each can be read."""
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
    if not works or not (sections := list(doctree.findall(nodes.section))):
        return
    listed = nodes.bullet_list(classes=["companion-cited"])
    for work in works:
        listed += nodes.list_item("", nodes.paragraph("", "", *_work(work)))
    sections[0] += nodes.rubric("", "Cited on this page")
    sections[0] += listed


def _work(work: Entry) -> list[nodes.Node]:
    said: dict[str, str] = dict(work.fields or {})
    families = [
        " ".join([*person.prelast_names, *person.last_names]) for person in (work.persons or {}).get("author", [])
    ]
    people = f"{families[0]} et al." if len(families) > 3 else " and ".join(families[-2:])
    if len(families) == 3:
        people = f"{families[0]}, {people}"
    places = [
        (f"{name}{said[part]}", f"{base}{said[part]}")
        for part, name, base in (("eprint", "arXiv:", ARXIV), ("doi", "doi:", DOI))
        if part in said
    ]
    if "url" in said:
        places.append((urlsplit(said["url"]).netloc, said["url"]))
    links: list[nodes.Node] = []
    for name, place in places:
        links += [nodes.Text(" · " if links else ". "), nodes.reference("", name, refuri=place)]
    return [
        nodes.strong("", f"[{work.key}]"),
        nodes.Text(f" {_text(people)}, "),
        nodes.emphasis("", _text(said.get("title", ""))),
        nodes.Text(f" ({said['year']})" if "year" in said else ""),
        *links,
    ]


def _text(latex: str) -> str:
    """What LaTeX's accents and braces mean."""
    return str(Text.from_latex(latex))
