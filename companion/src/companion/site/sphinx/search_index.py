"""What the search finds while the reader types: titles, figures, boxes, terms, claims, …, and the text of all sections.

Both are scripts, `_static/search-entries.js` and `_static/search-texts.js`, so that they can be read from a disk.
`search.js` loads them when the search is first opened, and ranks them with MiniSearch. A formula is TeX between dollar
signs; the script shows it as plain text. The keywords of a page, `keywords` in its front matter or in the metadata of
its notebook, are words that readers may search for and that its text lacks.

`minisearch.js` is the unaltered file `dist/umd/index.js` of the npm package `minisearch@7.2.0`, under the MIT licence.
"""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import json
import re
from collections import Counter
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.figures.plain_math import as_plain_text
from companion.io.atomic import write_text
from companion.io.errors import UserError
from companion.project.paths import Project
from companion.site.sphinx.api_pages import library_of
from companion.site.sphinx.claim_index import all_claims, all_withheld
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.inline_text import place_of_claim
from companion.site.sphinx.nodes import theorem_boxes
from companion.site.sphinx.terms import places_of_terms

INDEX = "_static/search-entries.js"
TEXTS = "_static/search-texts.js"
# The texts of a page, next to what Sphinx stores of it.
KEPT = ".texts.json"
# The first cell of the header of a table with one symbol per row.
SYMBOL = "Symbol"
# Longer texts are cut. No result shows more.
LONGEST = 200
# What is no text to read: what other entries find, code, lists of the figures and chapters, and folded parts of a page.
APART = (addnodes.desc, nodes.comment, nodes.literal_block, nodes.raw, nodes.system_message, nodes.title)
FOLDED = {
    "cell",
    "companion-chapters",
    "companion-details",
    "companion-gallery",
    "companion-ledger",
    "companion-live",
    "toctree-wrapper",
}
PARTS = (nodes.paragraph, nodes.caption, nodes.term)
Kind = Literal["page", "section", "figure", "box", "claim", "symbol", "term", "name"]


@dataclass(frozen=True)
class Entry:
    """A place in the book that a search can find.

    `label` is its number or name, such as `Lemma 2.1 of [BB26]` or `lib.measures`. `counter` names the counter of a
    number that is known only when all pages are read, and that replaces `%s` in the label. A box has a `statement`.
    """

    kind: Kind
    page: str
    anchor: str
    label: str
    text: str
    counter: str = ""
    statement: str = ""


def collect_entries(app: Sphinx, doctree: nodes.document) -> None:
    """Store the sections, figures, boxes and symbols of a page; give each row of symbols an anchor."""
    page = app.env.docname
    BookDomain.of(app.env).current.entries = [
        *_sections(doctree, page),
        *_figures(doctree, page),
        *_boxes(doctree, page),
        *_symbols(doctree, page),
    ]


def write_index(app: Sphinx, out: Path) -> None:
    """Write the entries and the texts of all pages of the book."""
    read = BookDomain.of(app.env).pages.values()
    collected = [_numbered(app.env, entry) for page in read for entry in page.entries]
    every = [*_terms(app, collected), *collected, *_claims(app), *_names(app)]
    pages = list(dict.fromkeys(entry.page for entry in every))
    titles = {entry.page: entry.text for entry in every if entry.kind == "page"}
    content = {
        "pages": [[app.builder.get_target_uri(page), titles.get(page, ""), _keywords(app, page)] for page in pages],
        "entries": [
            [entry.kind, pages.index(entry.page), entry.anchor, entry.label, _short(entry.text), entry.statement]
            for entry in every
        ],
    }
    _write(out / INDEX, "companionSearch", content)
    kept = {page: Path(app.env.doctreedir, f"{page}{KEPT}") for page in pages}
    texts = {page: json.loads(path.read_text(encoding="utf-8")) for page, path in kept.items() if path.is_file()}
    _write(out / TEXTS, "companionTexts", [[pages.index(page), *text] for page in texts for text in texts[page]])


def _write(path: Path, name: str, content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    write_text(path, f"window.{name} = {text};\n")


def _keywords(app: Sphinx, page: str) -> list[str]:
    """Return the keywords of a page. Sphinx stores a list of them as JSON."""
    return re.findall(r"[^\[\]\",\s][^\[\]\",]*", str(app.env.metadata[page].get("keywords", "")))


def keep_texts(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: nodes.document | None
) -> None:
    """Store the anchor, the title and the text of each section of a page that is written, for this and later builds."""
    if doctree is not None:
        texts = [
            ("" if section.parent is doctree else section["ids"][0], words_of(section[0]), text)
            for section in doctree.findall(nodes.section)
            if _is_titled(section) and (text := " ".join(_read(section)))
        ]
        write_text(Path(app.env.doctreedir, f"{pagename}{KEPT}"), json.dumps(texts, ensure_ascii=False))


def _is_titled(node: nodes.Node) -> bool:
    return isinstance(node, nodes.section) and bool(node.children) and isinstance(node[0], nodes.title)


def _read(node: nodes.Element) -> Iterator[str]:
    """Yield the paragraphs of a section without those of its sections and boxes, which are other entries."""
    for child in node.children:
        if isinstance(child, PARTS):
            yield words_of(child)
        elif isinstance(child, nodes.Element) and not (isinstance(child, APART) or _is_titled(child) or _is_box(child)):
            yield from () if FOLDED.intersection(child.get("classes", ())) else _read(child)


def _numbered(env: BuildEnvironment, entry: Entry) -> Entry:
    if not entry.counter:
        return entry
    number = env.toc_fignumbers.get(entry.page, {}).get(entry.counter, {}).get(entry.anchor, ())
    label = entry.label.replace("%s", ".".join(map(str, number))).strip()
    return replace(entry, label=label)


def _short(text: str) -> str:
    """Return a text of at most about `LONGEST` characters, which is not cut in a formula."""
    if len(text) <= LONGEST:
        return text
    end = text.rfind(" ", 0, LONGEST)
    while text.count("$", 0, end) % 2:
        end = text.rfind(" ", 0, text.rfind("$", 0, end))
    return f"{text[:end]} …"


def _sections(doctree: nodes.document, page: str) -> Iterator[Entry]:
    for section in filter(_is_titled, doctree.findall(nodes.section)):
        top = section.parent is doctree
        yield Entry("page" if top else "section", page, "" if top else section["ids"][0], "", words_of(section[0]))


def _figures(doctree: nodes.document, page: str) -> Iterator[Entry]:
    for figure in doctree.findall(nodes.figure):
        caption = next(figure.findall(nodes.caption), None)
        if "companion-figure" in figure["classes"] and caption is not None:
            yield Entry("figure", page, figure["ids"][0], "Fig. %s", words_of(caption), "figure")


def _boxes(doctree: nodes.document, page: str) -> Iterator[Entry]:
    for box in filter(_is_box, theorem_boxes(doctree)):
        title = next(box.findall(nodes.title))
        number = next((part for part in title.findall(nodes.inline) if "caption-number" in part["classes"]), None)
        text = words_of(title).removeprefix(number.astext() if number else "").strip()
        label, counter = (number.astext(), "") if number else (f"{box['realtype'].title()} %s", box["countertype"])
        name = re.sub(r"^\((.*)\)$", r"\1", text)
        stated = (text for part in box.children if isinstance(part, nodes.section) for text in _read(part))
        yield Entry("box", page, box["ids"][0], label, name, counter, " ".join(stated))


def _is_box(node: nodes.Element) -> bool:
    return isinstance(node, nodes.Admonition) and "label" in node and "proof" in node["classes"]


def _symbols(doctree: nodes.document, page: str) -> Iterator[Entry]:
    anchors: Counter[str] = Counter()
    for table in doctree.findall(nodes.table):
        header = next(table.findall(nodes.thead), None)
        if header is None or next(header.findall(nodes.entry)).astext() != SYMBOL:
            continue
        for row in next(table.findall(nodes.tbody)).findall(nodes.row):
            symbol, meaning = (words_of(cell) for cell in list(row.findall(nodes.entry))[:2])
            anchor = "symbol-" + re.sub(r"[^A-Za-z0-9]+", "-", symbol).strip("-")
            anchors[anchor] += 1
            if anchors[anchor] > 1:
                anchor += f"-{anchors[anchor]}"
            row["ids"].append(anchor)
            yield Entry("symbol", page, anchor, symbol, meaning)


def _terms(app: Sphinx, collected: list[Entry]) -> Iterator[Entry]:
    """Yield the terms, each with the meaning of the symbol or the title of the box that defines it."""
    project: Project = app.config.companion_project
    texts = {
        (entry.page, entry.anchor): entry.text if entry.kind == "symbol" else f"{entry.label} ({entry.text})"
        for entry in collected
    }
    for term, (name, anchor) in places_of_terms(app).items():
        page = f"{project.book.name}/{name}"
        # the meaning of a symbol may begin with the term, and end with the function of this name
        meaning = texts.get((page, anchor), "").removeprefix(f"{term} ").removesuffix(f" ({term})")
        yield Entry("term", page, anchor, term, meaning)


def _claims(app: Sphinx) -> Iterator[Entry]:
    project: Project = app.config.companion_project
    for claim in (*all_claims(app), *all_withheld(app)):
        name, anchor = place_of_claim(claim)
        yield Entry("claim", f"{project.book.name}/{name}", anchor, "Claim", as_plain_text(claim.statement))


def _names(app: Sphinx) -> Iterator[Entry]:
    project: Project = app.config.companion_project
    try:
        library = library_of(app)
    except UserError:  # the extension warns of it
        return
    for entry in library.entries.values():
        page = f"{project.book.name}/{library.page_of(entry.full)}"
        summary = " ".join(re.split(r"\n\s*\n", entry.doc.strip())[0].replace("`", "").split())
        text = re.sub(r"([\^_])\{([^{}]*)\}", r"\1(\2)", as_plain_text(summary))
        yield Entry("name", page, entry.full, entry.name, f"{text} ({entry.module})")


def words_of(node: nodes.Node) -> str:
    """Return the text of a node with its formulas as TeX between dollar signs."""
    return " ".join(_words(node).split())


def _words(node: nodes.Node) -> str:
    match node:
        case nodes.Text():
            return node.astext()
        case nodes.math():
            return f"${node.astext()}$"
        case addnodes.pending_xref() if not node.get("refexplicit") and node["refdomain"] != "cite":
            return "…"  # the title or the number is not known yet
        case nodes.raw() | nodes.system_message():
            return ""
        case _:
            return "".join(map(_words, node.children))
