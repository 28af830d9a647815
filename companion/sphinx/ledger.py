"""The ledger: every claim of the book with its verdict, linked to the figure and the theorem it is about."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from companion.boxes import boxes
from companion.house import House
from companion.mistakes import did_you_mean
from companion.sphinx.claims import ALL, all_claims, note_shown
from companion.sphinx.statements import read_hand, read_where, statements_of
from companion.sphinx.text import claim_anchor, escaped, ledger_anchor, mark, measured, number

logger = logging.getLogger(__name__)
LEDGER = "claims"
FILTER = """
<form class="companion-filter" aria-label="Filter the claims">
<label>Source <select name="source"><option value="">all</option>{sources}</select></label>
<label>Verdict <select name="verdict"><option value="">all</option><option value="holds">holds</option>\
<option value="fails">does not hold</option></select></label>
{read}<output aria-live="polite"></output>
</form>
"""


READ = """<label>Read <select name="read"><option value="">anywhere</option>\
<option value="first-hand">in the authors’ words</option>\
<option value="second-hand">second-hand</option></select></label>
"""


class LedgerDirective(SphinxDirective):
    """`{companion-ledger}`: one entry a claim, and a form that filters them by source and verdict."""

    def run(self) -> list[nodes.Node]:
        """The form, then the claims in the order of the book."""
        claims = all_claims(self.env.app)
        note_shown(self.env, ALL)
        known = theorem_labels(self.config.companion_house)
        for claim in claims:
            if claim["box"] and claim["box"] not in known:
                guess = did_you_mean(claim["box"], known)
                logger.warning("Claim %r names a theorem box %r that no page has. %s", claim["id"], claim["box"], guess)
        sources = sorted({_origin(claim) for claim in claims})
        options = "".join(f'<option value="{_slug(source)}">{source}</option>' for source in sources)
        entries = nodes.container(classes=["companion-ledger"])
        for claim in claims:
            verdict = "holds" if claim["holds"] else "fails"
            sorts = [f"verdict-{verdict}", f"source-{_slug(_origin(claim))}", *read_hand(self.env.app, claim)]
            entry = nodes.container(classes=["companion-entry", *sorts])
            entry += self.parse_text_to_nodes(_entry(claim, known, read_where(self.env.app, claim)))
            entries += entry
        read = READ if statements_of(self.env.app) else ""
        return [nodes.raw("", FILTER.format(sources=options, read=read), format="html"), entries]


def _entry(claim: dict[str, Any], known: set[str], read: str) -> str:
    source = escaped(claim["source"])
    if claim["box"] in known:
        source = f"{{prf:ref}}`{claim['source'].strip('[]')} <{claim['box']}>`"
    other = claim["alternative"]
    figure = f"fig-{claim['figure'].replace('_', '-')}"
    return (
        f"({ledger_anchor(claim['id'])})=\n"
        f"{mark(claim)} **{claim['statement']}** \\\n"
        f"{measured(claim)} It would catch: {other['says']} (then {number(other['measured'])}). \\\n"
        f"Source: {source}.{read} Shown in {{numref}}`{figure}`, [stated there](#{claim_anchor(claim['id'])}).\n"
    )


def _origin(claim: dict[str, Any]) -> str:
    match = re.match(r"\[(\w+)", claim["source"])
    return match[1] if match else claim["source"]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def theorem_labels(house: House) -> set[str]:
    """The labels of all theorem boxes, read from the sources."""
    return {box.label for box in boxes(house)}


def link_theorems(app: Sphinx, doctree: nodes.document) -> None:
    """Under each theorem box, link the claims that check it."""
    claims = all_claims(app)
    for box in doctree.findall(nodes.Element):
        label = box.get("label") if isinstance(box, nodes.Admonition) else None
        if not label:
            continue
        note_shown(app.env, label)
        mine = [claim for claim in claims if claim["box"] == label]
        if not mine:
            continue
        line = nodes.paragraph(classes=["companion-checked"])
        line += nodes.Text("Checked here: ")
        for index, claim in enumerate(mine):
            line += nodes.Text(", " if index else "")
            page = f"{app.config.companion_house.book.name}/{LEDGER}"
            uri = f"{app.builder.get_relative_uri(app.env.docname, page)}#{ledger_anchor(claim['id'])}"
            line += nodes.reference("", f"{mark(claim)} {claim['id']}", refuri=uri, internal=True)
        box.append(line)
