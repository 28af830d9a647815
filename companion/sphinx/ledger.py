"""The ledger: every claim of the book with its verdict, linked to the figure and the theorem it is about."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from companion.house import House
from companion.publication import published_claims
from companion.sphinx.text import claim_anchor, escaped, ledger_anchor, mark, measured, number, theorem_label

LEDGER = "claims"
FILTER = """
<form class="companion-filter" aria-label="Filter the claims">
<label>Source <select name="source"><option value="">all</option>{sources}</select></label>
<label>Verdict <select name="verdict"><option value="">all</option><option value="holds">holds</option>\
<option value="fails">does not hold</option></select></label>
<output aria-live="polite"></output>
</form>
"""


def all_claims(app: Sphinx) -> list[dict[str, Any]]:
    """Every claim of the figures this site shows."""
    house: House = app.config.companion_house
    return published_claims(house, app.config.companion_profile)


class LedgerDirective(SphinxDirective):
    """`{companion-ledger}`: one entry a claim, and a form that filters them by source and verdict."""

    def run(self) -> list[nodes.Node]:
        """The form, then the claims in the order of the book."""
        claims = all_claims(self.env.app)
        known = theorem_labels(self.config.companion_house)
        sources = sorted({_origin(claim) for claim in claims})
        options = "".join(f'<option value="{_slug(source)}">{source}</option>' for source in sources)
        entries = nodes.container(classes=["companion-ledger"])
        for claim in claims:
            verdict = "holds" if claim["holds"] else "fails"
            entry = nodes.container(
                classes=["companion-entry", f"verdict-{verdict}", f"source-{_slug(_origin(claim))}"]
            )
            entry += self.parse_text_to_nodes(_entry(claim, known))
            entries += entry
        return [nodes.raw("", FILTER.format(sources=options), format="html"), entries]


def _entry(claim: dict[str, Any], known: set[str]) -> str:
    label = theorem_label(claim["source"])
    source = f"{{prf:ref}}`{claim['source'].strip('[]')} <{label}>`" if label in known else escaped(claim["source"])
    other = claim["alternative"]
    figure = f"fig-{claim['figure'].replace('_', '-')}"
    return (
        f"({ledger_anchor(claim['id'])})=\n"
        f"{mark(claim)} **{claim['statement']}** \\\n"
        f"{measured(claim)} It would catch: {other['says']} (then {number(other['measured'])}). \\\n"
        f"Source: {source}. Shown in {{numref}}`{figure}`, [stated there](#{claim_anchor(claim['id'])}).\n"
    )


def _origin(claim: dict[str, Any]) -> str:
    match = re.match(r"\[(\w+)", claim["source"])
    return match[1] if match else claim["source"]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def theorem_labels(house: House) -> set[str]:
    """The labels of all theorem boxes, read from the sources."""
    labels: set[str] = set()
    for page in (*house.book.glob("*.md"), *house.book.glob("*.ipynb")):
        labels |= set(re.findall(r":label: ([a-z0-9-]+)", page.read_text(encoding="utf-8")))
    return labels


def link_theorems(app: Sphinx, doctree: nodes.document) -> None:
    """Under each theorem box, link the claims that check it."""
    claims = all_claims(app)
    for box in doctree.findall(nodes.Element):
        label = box.get("label") if isinstance(box, nodes.Admonition) else None
        mine = [claim for claim in claims if label and theorem_label(claim["source"]) == label]
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
