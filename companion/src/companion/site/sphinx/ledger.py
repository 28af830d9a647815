"""The ledger: every claim of the book with its verdict, by chapter, with links to its figure and theorem box."""

import html
import re
from itertools import groupby

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from companion.figures.plain_math import WITHHELD, as_plain_text, withheld_because
from companion.figures.record import PublishedClaim, PublishedWithheld
from companion.io.errors import did_you_mean
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import boxes
from companion.site.sphinx.claim_index import ALL, all_claims, all_withheld, note_shown
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.figure_numbers import figure_link
from companion.site.sphinx.inline_text import (
    LEDGER,
    claim_anchor,
    evidence,
    ledger_anchor,
    mark,
    typeset,
    verdict,
    with_anchor,
)
from companion.site.sphinx.nodes import add_to_line, details, summary
from companion.site.sphinx.statement_index import read_hand, read_where, statements_of

logger = logging.getLogger(__name__)
# The form is hidden (`pst-js-only`) if the browser runs no scripts.
FILTER = """
<form class="companion-filter pst-js-only" aria-label="Filter the claims" role="search">
<label class="companion-words">Words <input type="search" name="words" autocomplete="off"></label>
<label>Source <select name="source"><option value="">all</option>{sources}</select></label>
{verdicts}{read}<button type="button" class="companion-open" aria-pressed="false">Open all</button>
<output aria-live="polite"></output>
</form>
"""

# A form has only the verdicts that some claims have.
VERDICTS = {"holds": "holds", "fails": "does not hold", "withheld": "not claimed"}
VERDICT = """<label>Verdict <select name="verdict"><option value="">all</option>{options}</select></label>
"""
READ = """<label>Read <select name="read"><option value="">anywhere</option>\
<option value="first-hand">in the authors’ words</option>\
<option value="second-hand">second-hand</option></select></label>
"""


class LedgerDirective(SphinxDirective):
    """`{companion-ledger}`: one fold per chapter with one line per claim, and a form that filters them."""

    def run(self) -> list[nodes.Node]:
        """Return the form, then the claims in the order of the book."""
        claims = all_claims(self.env.app)
        note_shown(self.env, ALL)
        known = theorem_labels(self.config.companion_project)
        for claim in claims:
            if claim.box and claim.box not in known:
                guess = did_you_mean(claim.box, known)
                logger.warning("Claim %r names a theorem box %r that no page has. %s", claim.id, claim.box, guess)
        sources = sorted({_origin(claim) for claim in (*claims, *all_withheld(self.env.app))})
        options = "".join(f'<option value="{_slug(source)}">{html.escape(source)}</option>' for source in sources)
        read = READ if statements_of(self.env.app) else ""
        ledger = nodes.container(classes=["companion-ledger"])
        withheld = all_withheld(self.env.app)
        for name in dict.fromkeys(claim.notebook for claim in (*claims, *withheld)):
            claims_of_chapter = [claim for claim in claims if claim.notebook == name]
            withheld_of_chapter = [claim for claim in withheld if claim.notebook == name]
            ledger += self._chapter(name, claims_of_chapter, withheld_of_chapter, known)
        given = [*("holds" if claim.holds else "fails" for claim in claims), *("withheld" for _ in withheld)]
        verdicts = "".join(f'<option value="{kind}">{VERDICTS[kind]}</option>' for kind in VERDICTS if kind in given)
        select = VERDICT.format(options=verdicts) if len(set(given)) > 1 else ""
        form = FILTER.format(sources=options, read=read, verdicts=select)
        return [nodes.raw("", form, format="html"), ledger]

    def _chapter(
        self, name: str, claims: list[PublishedClaim], withheld: list[PublishedWithheld], known: set[str]
    ) -> nodes.Node:
        held = sum(claim.holds for claim in claims)
        title = Notebook.named(self.config.companion_project, name).title
        chapter = details(classes=["companion-chapter"])
        heading, _ = self.parse_inline(title)
        failed = len(claims) - held
        count = f"{len(claims)} claim{'s' if len(claims) != 1 else ''}"
        count += f", {failed} do{'es' if failed == 1 else ''} not hold" if failed else ""
        count += f", {len(withheld)} not claimed here" if withheld else ""
        chapter += summary("", "", *heading, nodes.inline("", count, classes=["companion-count"]))
        for figure, claims_of_figure in groupby(claims, key=lambda claim: claim.figure):
            link = nodes.paragraph(classes=["companion-shown-in"])
            link += figure_link(self.env, figure) if figure else nodes.Text("In the text")
            chapter += link
            chapter += [self._entry(claim, known) for claim in claims_of_figure]
        chapter += [self._withheld(claim, known) for claim in withheld]
        return chapter

    def _withheld(self, claim: PublishedWithheld, known: set[str]) -> nodes.Node:
        entry = details(classes=["companion-entry", "verdict-withheld", f"source-{_slug(_origin(claim))}"])
        entry += summary(
            "",
            f"{WITHHELD} ",
            nodes.inline("", "", *typeset(claim.statement), classes=["companion-says"]),
            nodes.Text(" "),
            nodes.inline("", "", *typeset(withheld_because(claim)), classes=["companion-verdict"]),
        )
        text = nodes.paragraph("", "Source: ")
        text += [self._source(claim, known), nodes.Text(".")]
        if claim.figure:
            text += [nodes.Text(" Belongs to "), figure_link(self.env, claim.figure), nodes.Text(".")]
        entry += text
        return with_anchor(self, entry, ledger_anchor(claim.id))

    def _entry(self, claim: PublishedClaim, known: set[str]) -> nodes.Node:
        classes = [f"verdict-{'holds' if claim.holds else 'fails'}", f"source-{_slug(_origin(claim))}"]
        entry = details(classes=["companion-entry", *classes, *read_hand(self.env.app, claim)])
        entry += summary(
            "",
            f"{mark(claim)} ",
            nodes.inline("", "", *typeset(claim.statement), classes=["companion-says"]),
            nodes.Text(" "),
            nodes.inline("", verdict(claim), classes=["companion-verdict"]),
        )
        entry += evidence(claim)
        text = nodes.paragraph("", "Source: ")
        text += self._source(claim, known)
        text += nodes.Text(".")
        origin, _ = self.parse_inline(read_where(self.env.app, claim))
        page = self.env.app.builder.get_relative_uri(
            self.env.docname, f"{self.config.companion_project.book.name}/{claim.notebook}"
        )
        text += origin
        if claim.figure:
            link = nodes.reference("", "stated there", refuri=f"{page}#{claim_anchor(claim.id)}", internal=True)
            text += [nodes.Text(" Shown in "), figure_link(self.env, claim.figure), nodes.Text(", "), link]
        else:
            BookDomain.of(self.env).note("claim", claim.id, as_plain_text(claim.statement), ledger_anchor(claim.id))
            text += [nodes.Text(" Quoted in "), nodes.reference("", "the text", refuri=page, internal=True)]
        text += nodes.Text(".")
        entry += text
        return with_anchor(self, entry, ledger_anchor(claim.id))

    def _source(self, claim: PublishedClaim | PublishedWithheld, known: set[str]) -> nodes.Node:
        """Return the citation of the claim, linked to the box that states it if there is one."""
        if claim.box not in known:
            return nodes.Text(claim.source)
        about = {"refdomain": "prf", "reftype": "ref", "reftarget": claim.box, "refexplicit": True, "refwarn": True}
        link = addnodes.pending_xref("", refdoc=self.env.docname, **about)
        link += nodes.inline("", claim.source.strip("[]"))
        return link


def _origin(claim: PublishedClaim | PublishedWithheld) -> str:
    match = re.match(r"\[(\w+)", claim.source)
    return match[1] if match else claim.source


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def theorem_labels(project: Project) -> set[str]:
    """Return the labels of all theorem boxes, read from the sources of the pages."""
    return {box.label for box in boxes(project)}


def link_theorems(app: Sphinx, doctree: nodes.document) -> None:
    """Add to each theorem box the links to the claims that check it."""
    claims = all_claims(app)
    for box in doctree.findall(nodes.Element):
        label = box.get("label") if isinstance(box, nodes.Admonition) else None
        if not label:
            continue
        note_shown(app.env, label)
        claims_of_box = [claim for claim in claims if claim.box == label]
        if not claims_of_box:
            continue
        checked = nodes.paragraph("", "Checked here: ")
        for index, claim in enumerate(claims_of_box):
            checked += nodes.Text(", " if index else "")
            page = f"{app.config.companion_project.book.name}/{LEDGER}"
            uri = f"{app.builder.get_relative_uri(app.env.docname, page)}#{ledger_anchor(claim.id)}"
            checked += nodes.reference("", f"{mark(claim)} {claim.id}", refuri=uri, internal=True)
        failed = sum(not claim.holds for claim in claims_of_box)
        word = f"✗ {failed} of {len(claims_of_box)} checks" if failed else f"✓ {len(claims_of_box)} checks"
        add_to_line(box, [("checked", word if len(claims_of_box) > 1 else word.removesuffix("s"), [checked])])
