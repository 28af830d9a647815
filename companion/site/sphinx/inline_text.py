"""Small pieces of pages that several directives write: claims as nodes, and text that is safe in MyST."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.figures.plain_math import bound, number, split_formulas
from companion.figures.record import ClaimRecord

SET_AS: dict[str, type[nodes.TextElement]] = {
    "variable": nodes.emphasis,
    "superscript": nodes.superscript,
    "subscript": nodes.subscript,
}
# How the anchors of figures begin.
ANCHOR = "fig-"
# What MyST would read as markup within a line. A table's own bars are escaped by `table`.
MARKUP = re.compile(r"[\\`*_{}\[\]()#!<>$&~^]")
# Parts of a caption that are markup: mathematics, and roles with what they are about.
CAPTION_MARKUP = re.compile(r"(\$[^$]+\$|`[^`]*`)")


def mark(claim: ClaimRecord) -> str:
    """The verdict, in one character."""
    return "✓" if claim.holds else "✗"


def typeset(text: str) -> list[nodes.Node]:
    """A plain sentence as nodes, its formulas set, every other sign as it is written."""
    return [
        SET_AS[kind]("", part) if kind in SET_AS else nodes.Text(part) for kind, part in split_formulas(text) if part
    ]


def verdict(claim: ClaimRecord) -> str:
    """What was measured, and where the claim would begin to fail."""
    return f"{number(claim.measured)} measured; {bound(claim)}"


def explanation(claim: ClaimRecord) -> list[nodes.Node]:
    """Return the reason for the bound, the alternative with its distance from the bound, and the standard error."""
    parts: list[nodes.Node] = []
    if claim.reason is not None:
        what = "tolerance" if claim.relation == "=" else "bound"
        parts += [nodes.Text(f"Reason for the {what}: "), *typeset(claim.reason.rstrip(".")), nodes.Text(". ")]
    if (other := claim.alternative) is not None:
        distance = _distance(claim, other.measured)
        last = nodes.Text(f", which gives {number(other.measured)}{distance}. ")
        parts += [nodes.Text("Alternative: "), *typeset(other.theory.rstrip(".")), last]
    if claim.std_error is not None:
        parts.append(nodes.Text(f"The standard error is {number(claim.std_error)}. "))
    return parts


def _distance(claim: ClaimRecord, measured: float) -> str:
    """Return how far a value that the claim rejects is from what it accepts, in tolerances where it has any."""
    tolerances = claim.in_tolerances(measured)
    if not (math.isfinite(tolerances) and math.isfinite(claim.tolerance)):
        return ""
    place = "from the expected value" if claim.relation == "=" else "beyond the bound"
    return f", {number(float(f'{tolerances:.2g}'))} tolerances {place}"


def escaped(text: str) -> str:
    """`text` for MyST, so that it comes out as it is written."""
    return MARKUP.sub(lambda sign: f"\\{sign[0]}", " ".join(text.split()))


def code(text: str) -> str:
    """`text` as code in MyST, whatever it holds."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def without_html(caption: str) -> str:
    """A caption for MyST: emphasis, mathematics and roles are markup, angle brackets and ampersands are not."""
    parts = CAPTION_MARKUP.split(caption)
    return "".join(part if place % 2 else re.sub(r"[<>&]", r"\\\g<0>", part) for place, part in enumerate(parts))


def claim_anchor(identifier: str) -> str:
    """Where a claim is stated, on the page of its figure."""
    return f"claim-{identifier}"


def ledger_anchor(identifier: str) -> str:
    """The row of a claim in the ledger."""
    return f"ledger-{identifier}"


def figure_anchor(figure: str) -> str:
    """Where a figure stands, as pages link to it."""
    return ANCHOR + figure.replace("_", "-")


def called(directive: SphinxDirective, node: nodes.Element, anchor: str) -> nodes.Element:
    """`node`, to be found under `anchor` from every page."""
    directive.options["name"] = anchor
    directive.add_name(node)
    return node


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A MyST table."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
