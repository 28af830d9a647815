"""The statement index on the site: one entry per statement with the source that was read, also on boxes and claims."""

from functools import lru_cache
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from companion.figures.record import PublishedClaim
from companion.io.errors import UserError, did_you_mean
from companion.site.sphinx.claim_index import ALL, all_claims, all_withheld, note_shown
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.inline_text import escaped, ledger_anchor, mark, page_link, table
from companion.site.sphinx.nodes import add_to_line, stated, theorem_boxes
from companion.site.statements import BoxSource, Statement, Statements

logger = logging.getLogger(__name__)
SECOND_HAND = "second-hand"
# The badges of boxes.
SOURCES: dict[BoxSource, str] = {"paper": "from a paper", "derived": "derived here", "heuristic": "heuristic"}
# The name of the page with the directive.
PAGE = "statements"


@lru_cache(maxsize=1)
def statements_of(app: Sphinx) -> Statements | None:
    """Return the book's statements joined with the claims on the site, or None; they are read once per build."""
    try:
        withheld = [claim.id for claim in all_withheld(app)]
        return Statements.of(app.config.companion_project, all_claims(app), withheld)
    except UserError as mistake:
        logger.warning("%s", mistake)
        return None


def warn_of_faults(app: Sphinx, env: Any) -> None:
    """Warn of every row that names something unknown, and of every box or claim without a row."""
    statements = statements_of(app)
    for fault in statements.faults(app.config.companion_project) if statements else []:
        logger.warning("%s", fault)


def required_statements(directive: SphinxDirective) -> Statements:
    """Return the book's statements, or raise an error of the directive if it has none."""
    statements = statements_of(directive.env.app)
    if statements is None:
        raise directive.error("The book lists no statements: name the file as `statements` in [tool.companion].")
    return statements


class StatementsDirective(SphinxDirective):
    """`{companion-statements} PAPER`: the statements of a paper with sources, boxes, figures, claims and gaps."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a table with the numbers of checked statements, then the entries in the order of the index."""
        statements, paper = required_statements(self), self.arguments[0]
        if paper not in statements.index.papers:
            raise self.error(f"There is no paper {paper!r}. {did_you_mean(paper, statements.index.papers)}")
        note_shown(self.env, ALL)
        rows = [row for row in statements.index.statements if row.paper == paper]
        text = f"{escaped(statements.index.papers[paper].versions)}\n\n{_count(statements, rows)}\n"
        entries = nodes.container(classes=["companion-statements"])
        for row in rows:
            entry = nodes.container(classes=["companion-statement"])
            entry += self.parse_text_to_nodes(_entry(statements, row))
            BookDomain.of(self.env).note(
                "statement", row.anchor, ": ".join(filter(None, [row.number, row.title])), row.anchor
            )
            entries += entry
        return [*self.parse_text_to_nodes(text), entries]


class ComparisonsDirective(SphinxDirective):
    """`{companion-comparisons}`: the statements to compare with the full texts, with what to compare."""

    def run(self) -> list[nodes.Node]:
        """Return a table in the order of the index."""
        statements = required_statements(self)
        lines = [
            (f"[{row.paper} {row.item}](#{row.anchor})", escaped(row.called), escaped(row.compare))
            for row in statements.index.statements
            if row.compare
        ]
        return self.parse_text_to_nodes(table(("item", "statement", "compare"), lines))


def _count(statements: Statements, rows: list[Statement]) -> str:
    """Return a table in MyST with the number of statements of each kind."""
    index = statements.index
    kinds = {
        "checked by a claim": [row for row in rows if statements.claims_of(row)],
        "stated without a claim": [
            row for row in rows if not statements.claims_of(row) and (row.pages or statements.boxes_of(row))
        ],
        "not covered, or only in part": [row for row in rows if row.not_covered],
        "read second-hand only": [row for row in rows if index.second_hand(row)],
    }
    lines = [(name, len(of_kind), _links(of_kind)) for name, of_kind in kinds.items()]
    return table((f"of {len(rows)} statements", "how many", "which"), lines)


def _links(rows: list[Statement]) -> str:
    return ", ".join(f"[{row.item}](#{row.anchor})" for row in rows) or "none"


def _entry(statements: Statements, row: Statement) -> str:
    kind = "" if row.number and row.number.lower().startswith(row.kind) else row.kind
    sort = ", ".join(filter(None, [kind, row.number, row.other and f"{row.other} in version 2"]))
    claims = [f"{mark(claim)} [{claim.id}](#{ledger_anchor(claim.id)})" for claim in statements.claims_of(row)]
    places = [f"{{prf:ref}}`{label}`" for label in statements.boxes_of(row)]
    places += [f"{{doc}}`{page}`" for page in row.pages]
    figures = [f"{{companion-number}}`{figure}`" for figure in statements.figures_of(row)]
    lines = [
        f"({row.anchor})=\n**{row.item}. {escaped(row.title)}** ({escaped(sort)})",
        f"*Read in:* {_origin(statements, row)}{f'; {escaped(row.remark)}' if row.remark else ''}.",
        _line("Stated", places),
        _line("Figures", figures),
        _line("Claims", claims),
        f"*Not covered:* {escaped(row.not_covered)}" if row.not_covered else "",
    ]
    return " \\\n".join(filter(None, lines)) + "\n"


def _line(name: str, places: list[str]) -> str:
    return f"*{name}:* {', '.join(places)}." if places else ""


def _origin(statements: Statements, row: Statement) -> str:
    """Return the origins of a row in MyST, with a mark if all are second-hand."""
    origins = escaped(statements.index.read_in(row))
    return f"{origins} **({SECOND_HAND})**" if statements.index.second_hand(row) else origins


def where_read(app: Sphinx, claim: PublishedClaim) -> tuple[list[str], str]:
    """Return the classes and the sentence about the origins of a claim's statement for its entry in the ledger.

    The statement was read first-hand, second-hand or both. A claim that cites no listed paper has neither.
    """
    statements = statements_of(app)
    if statements is None or not statements.cites_paper(claim):
        return [], ""
    rows = statements.rows_of_claim(claim.id)
    hands = sorted({statements.index.second_hand(row) for row in rows})
    origins = "; ".join(dict.fromkeys(_origin(statements, row) for row in rows))
    return [f"read-{SECOND_HAND if second else 'first-hand'}" for second in hands], f" Read in: {origins}."


def number_boxes(app: Sphinx, doctree: nodes.document) -> None:
    """Number a box whose label names a statement of a paper, and the links to it, as in the paper."""
    statements = statements_of(app)
    if statements is None:
        return
    for box in theorem_boxes(doctree):
        row = statements.stated_by(box["label"])
        if row is None:
            continue
        title = next(box.findall(nodes.title))
        title.insert(0, nodes.inline("", f"{row.number} of [{row.paper}]", classes=["caption-number"]))
        numbered = stated("", *box.children, label=box["label"], classes=[*box["classes"], "admonition"])
        numbered["ids"], numbered["names"] = box["ids"], box["names"]
        box.replace_self(numbered)
        app.env.proof_list[box["label"]]["nonumber"] = True  # pyright: ignore
    for link in doctree.findall(addnodes.pending_xref):
        row = statements.stated_by(link["reftarget"]) if link.get("refdomain") == "prf" else None
        if row and not link["refexplicit"]:
            link.children = [nodes.inline("", f"{row.paper}, {row.number}")]


def mark_boxes(app: Sphinx, doctree: nodes.document) -> None:
    """Mark each box with its source; a box that cites a listed paper also gets the origins of its wording."""
    statements = statements_of(app)
    if statements is None:
        return
    for box in theorem_boxes(doctree):
        label = box["label"]
        if label not in statements.boxes:
            continue
        source = statements.source_of(label)
        box["classes"].append(f"from-{source}")
        add_to_line(box, [nodes.inline("", SOURCES[source], classes=["companion-badge", f"from-{source}"])])
        if not statements.cited_by(label):
            continue
        rows = {(row.called, row.read): row for row in reversed(statements.rows_of_box(label))}
        line = nodes.paragraph("", "What we read: ")
        for index, row in enumerate(reversed(rows.values())):
            link = page_link(app.env, PAGE, row.anchor, row.number or f"“{row.title}”")
            line += [nodes.Text("; " if index else ""), link, nodes.Text(f", in {statements.index.read_in(row)}")]
            if statements.index.second_hand(row):
                line += [nodes.Text(" "), nodes.strong("", f"({SECOND_HAND})")]
        line += nodes.Text(".")
        second = any(statements.index.second_hand(row) for row in rows.values())
        add_to_line(box, [("read", f"read {SECOND_HAND}" if second else "what we read", [line])])
