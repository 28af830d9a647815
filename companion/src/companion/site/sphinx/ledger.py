"""The ledger: every claim of the book with its verdict, by chapter, with links to its figure and theorem box."""

import html
import re
from itertools import groupby

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from companion.figures.plain_math import as_plain_text, withheld_because
from companion.figures.record import PublishedClaim, PublishedWithheld
from companion.io.errors import did_you_mean
from companion.project.notebooks import Notebook
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
    page_link,
    pending_link,
    typeset,
    verdict,
    with_anchor,
)
from companion.site.sphinx.nodes import add_to_line, details, separated, summary, theorem_boxes
from companion.site.sphinx.statement_index import statements_of, where_read

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
Listed = PublishedClaim | PublishedWithheld


class LedgerDirective(SphinxDirective):
    """`{companion-ledger}`: one fold per chapter with one line per claim, and a form that filters them."""

    def run(self) -> list[nodes.Node]:
        """Return the form, then the claims in the order of the book."""
        note_shown(self.env, ALL)
        claims: list[Listed] = [*all_claims(self.env.app), *all_withheld(self.env.app)]
        labels = {box.label for box in boxes(self.config.companion_project)}
        for claim in claims:
            if claim.box and claim.box not in labels:
                guess = did_you_mean(claim.box, labels)
                logger.warning("Claim %r names a theorem box %r that no page has. %s", claim.id, claim.box, guess)
        ledger = nodes.container(classes=["companion-ledger"])
        for name in dict.fromkeys(claim.notebook for claim in claims):
            ledger += self._chapter(name, [claim for claim in claims if claim.notebook == name])
        given = {_kind(claim) for claim in claims}
        verdicts = _options({kind: text for kind, text in VERDICTS.items() if kind in given})
        form = FILTER.format(
            sources=_options({_slug(source): source for source in sorted({_origin(claim) for claim in claims})}),
            read=READ if statements_of(self.env.app) else "",
            verdicts=VERDICT.format(options=verdicts) if len(given) > 1 else "",
        )
        return [nodes.raw("", form, format="html"), ledger]

    def _chapter(self, name: str, listed: list[Listed]) -> nodes.Node:
        claims = [claim for claim in listed if isinstance(claim, PublishedClaim)]
        failed, withheld = sum(not claim.holds for claim in claims), len(listed) - len(claims)
        count = f"{len(claims)} claim{'s' if len(claims) != 1 else ''}"
        count += f", {failed} do{'es' if failed == 1 else ''} not hold" if failed else ""
        count += f", {withheld} not claimed here" if withheld else ""
        heading, _ = self.parse_inline(Notebook.named(self.config.companion_project, name).title)
        chapter = details(classes=["companion-chapter"])
        chapter += summary("", "", *heading, nodes.inline("", count, classes=["companion-count"]))
        for figure, claims_of_figure in groupby(claims, key=lambda claim: claim.figure):
            place = figure_link(self.env, figure) if figure else nodes.Text("In the text")
            chapter += nodes.paragraph("", "", place, classes=["companion-shown-in"])
            chapter += [self._entry(claim) for claim in claims_of_figure]
        chapter += [self._entry(claim) for claim in listed if isinstance(claim, PublishedWithheld)]
        return chapter

    def _entry(self, claim: Listed) -> nodes.Node:
        is_withheld = isinstance(claim, PublishedWithheld)
        read, origin = ([], "") if is_withheld else where_read(self.env.app, claim)
        classes = [f"verdict-{_kind(claim)}", f"source-{_slug(_origin(claim))}", *read]
        entry = details(classes=["companion-entry", *classes])
        judged = typeset(withheld_because(claim) if is_withheld else verdict(claim))
        entry += summary(
            "",
            f"{mark(claim)} ",
            nodes.inline("", "", *typeset(claim.statement), classes=["companion-says"]),
            nodes.Text(" "),
            nodes.inline("", "", *judged, classes=["companion-verdict"]),
        )
        entry += [] if is_withheld else evidence(claim)
        text = nodes.paragraph("", "Source: ", self._source(claim), nodes.Text("."))
        text += self.parse_inline(origin)[0]
        if claim.figure:
            text += [nodes.Text(" Belongs to " if is_withheld else " Shown in "), figure_link(self.env, claim.figure)]
            link = page_link(self.env, claim.notebook, claim_anchor(claim.id), "stated there")
            text += nodes.Text(".") if is_withheld else [nodes.Text(", "), link, nodes.Text(".")]
        elif not is_withheld:
            BookDomain.of(self.env).note("claim", claim.id, as_plain_text(claim.statement), ledger_anchor(claim.id))
            text += [nodes.Text(" Quoted in "), page_link(self.env, claim.notebook, "", "the text"), nodes.Text(".")]
        entry += text
        return with_anchor(self, entry, ledger_anchor(claim.id))

    def _source(self, claim: Listed) -> nodes.Node:
        """Return the citation of the claim, linked to the box that states it if there is one."""
        if not claim.box:
            return nodes.Text(claim.source)
        return pending_link(self.env, claim.source.strip("[]"), refdomain="prf", reftype="ref", reftarget=claim.box)


def _kind(claim: Listed) -> str:
    return "withheld" if isinstance(claim, PublishedWithheld) else "holds" if claim.holds else "fails"


def _options(texts: dict[str, str]) -> str:
    return "".join(f'<option value="{value}">{html.escape(text)}</option>' for value, text in texts.items())


def _origin(claim: Listed) -> str:
    match = re.match(r"\[(\w+)", claim.source)
    return match[1] if match else claim.source


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def link_theorems(app: Sphinx, doctree: nodes.document) -> None:
    """Add to each theorem box the links to the claims that check it."""
    for box in theorem_boxes(doctree):
        note_shown(app.env, box["label"])
        claims = [claim for claim in all_claims(app) if claim.box == box["label"]]
        if not claims:
            continue
        links = [page_link(app.env, LEDGER, ledger_anchor(one.id), f"{mark(one)} {one.id}") for one in claims]
        failed = sum(not claim.holds for claim in claims)
        checks = f"{len(claims)} check{'s' if len(claims) > 1 else ''}"
        word = f"✗ {failed} of {checks}" if failed else f"✓ {checks}"
        add_to_line(box, [("checked", word, [nodes.paragraph("", "Checked here: ", *separated(links, ", "))])])
