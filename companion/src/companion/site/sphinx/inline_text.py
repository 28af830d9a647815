"""Helpers of several directives: claims as nodes, anchors, links, and text that is escaped for MyST."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.figures.plain_math import FORMULAS, WITHHELD, Kind, bound, number, split_formula, split_formulas
from companion.figures.record import Claim, PublishedClaim, PublishedWithheld, WithheldClaim

RAISED: dict[str, type[nodes.TextElement]] = {"superscript": nodes.superscript, "subscript": nodes.subscript}
# The role whose result is that of `typeset`.
FORMULA_ROLE = "companion-formula"
# How a claim compares its value with the expected one, before that value.
SIDES = {"=": "", "≤": "at most ", "≥": "at least "}
# From here on a distance in tolerances is not written out.
MANY = 1000
# Prefix of the anchors of figures.
ANCHOR = "fig-"
# Code in backticks, with its backticks.
CODE = re.compile(r"(`[^`]+`)")
# Characters that are markup in a line of MyST. `table` escapes bars.
MARKUP = re.compile(r"[\\`*_{}\[\]()#!<>$&~^]")
# Markup in a caption: mathematics, and roles with their content.
CAPTION_MARKUP = re.compile(r"(\$[^$]+\$|`[^`]*`)")


def mark(claim: Claim | WithheldClaim) -> str:
    """Return the verdict on a claim as one character."""
    return WITHHELD if isinstance(claim, WithheldClaim) else "✓" if claim.holds else "✗"


def typeset(text: str) -> list[nodes.Node]:
    """Return a plain sentence as nodes, with its formulas set as mathematics."""
    return [_node(kind, part) for kind, part in split_formulas(text) if part]


def _node(kind: Kind, part: str) -> nodes.Node:
    match kind:
        case "text":
            return nodes.Text(part)
        case "variable":
            return nodes.emphasis("", part)
        case _:
            return RAISED[kind]("", "", *[_node(*piece) for piece in split_formula(part) if piece[1]])


class FormulaRole(SphinxRole):
    """`` {companion-formula}`$…$` ``: formulas as in claims, for the MyST text of directives."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the nodes of the formulas."""
        return typeset(self.text), []


def verdict(claim: Claim) -> str:
    """Return in words the measured value of a claim and from which value on it fails."""
    return f"{number(claim.measured)} measured; {bound(claim)}"


def evidence(claim: Claim) -> nodes.definition_list:
    """Return what a reader needs to judge a claim: the measured and the expected value, tolerance and alternative."""
    error = "" if claim.std_error is None else f", standard error {number(claim.std_error)}"
    reason = [nodes.Text("; "), *typeset(claim.reason.rstrip("."))] if claim.reason else []
    lines: dict[str, list[nodes.Node]] = {
        "Measured": [nodes.Text(f"{number(claim.measured)}{error}")],
        "Expected": [nodes.Text(f"{SIDES[claim.relation]}{number(claim.expected)}")],
        "Tolerance": [nodes.Text(number(claim.tolerance) if claim.tolerance else "none")],
    }
    lines["Tolerance" if claim.tolerance else "Expected"] += reason
    if (alternative := claim.alternative) is not None:
        value = nodes.Text(f"; this gives {number(alternative.measured)}{_distance(claim, alternative.measured)}")
        lines["Alternative"] = [*typeset(alternative.theory.rstrip(".")), value]
    listed = nodes.definition_list(classes=["companion-evidence"])
    for name, content in lines.items():
        meaning = nodes.definition("", nodes.paragraph("", "", *content))
        listed += nodes.definition_list_item("", nodes.term("", name), meaning)
    return listed


def _distance(claim: Claim, measured: float) -> str:
    """Return in words the distance of a rejected value in tolerances, or nothing if the claim has no tolerance."""
    tolerances = claim.in_tolerances(measured)
    if not (math.isfinite(tolerances) and math.isfinite(claim.tolerance)):
        return ""
    place = "from the expected value" if claim.relation == "=" else "beyond the bound"
    many = f"more than {MANY:,}" if tolerances > MANY else number(float(f"{tolerances:.2g}"))
    return f" ({many} tolerances {place})"


def escaped(text: str) -> str:
    """Return `text` escaped for MyST."""
    return _escaped(" ".join(text.split()))


def escaped_formulas(text: str) -> str:
    """Return a plain sentence in MyST, with formulas as `typeset` sets them and with code in backticks."""
    words = CODE.split(" ".join(text.split()))
    return "".join(part if place % 2 else _escaped_formulas(part) for place, part in enumerate(words))


def _escaped_formulas(text: str) -> str:
    return "".join(
        f"{{{FORMULA_ROLE}}}`{part}`" if place % 2 else _escaped(part.replace(r"\$", "$"))
        for place, part in enumerate(FORMULAS.split(text))
    )


def _escaped(text: str) -> str:
    return MARKUP.sub(lambda sign: f"\\{sign[0]}", text)


def code(text: str) -> str:
    """Return `text` as inline code in MyST; it may contain backticks."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def without_html(caption: str) -> str:
    """Return a caption for MyST, in which angle brackets and ampersands outside markup are escaped."""
    parts = CAPTION_MARKUP.split(caption)
    return "".join(part if index % 2 else re.sub(r"[<>&]", r"\\\g<0>", part) for index, part in enumerate(parts))


# The name of the page with the ledger.
LEDGER = "claims"


def claim_anchor(identifier: str) -> str:
    """Return the anchor of a claim on the page of its figure."""
    return f"claim-{identifier}"


def ledger_anchor(identifier: str) -> str:
    """Return the anchor of a claim in the ledger."""
    return f"ledger-{identifier}"


def figure_anchor(figure: str) -> str:
    """Return the anchor of a figure on its page."""
    return ANCHOR + figure.replace("_", "-")


def place_of_claim(claim: PublishedClaim | PublishedWithheld) -> tuple[str, str]:
    """Return the page and the anchor at which a claim is stated: by its figure, or in the ledger if it has none."""
    return (claim.notebook, claim_anchor(claim.id)) if claim.figure else (LEDGER, ledger_anchor(claim.id))


def page_address(env: Any, page: str, anchor: str = "") -> str:
    """Return the address of a page of the book, or of an anchor on it, from the page that is read."""
    address = env.app.builder.get_relative_uri(env.docname, f"{env.config.companion_project.book.name}/{page}")
    return f"{address}#{anchor}" if anchor else address


def page_link(env: Any, page: str, anchor: str, *content: nodes.Node | str, **about: Any) -> nodes.reference:
    """Return a link from the page that is read to a page of the book, or to an anchor on it."""
    inside = [nodes.Text(part) if isinstance(part, str) else part for part in content]
    return nodes.reference("", "", *inside, refuri=page_address(env, page, anchor), internal=True, **about)


def pending_link(env: Any, text: str, **about: Any) -> nodes.Node:
    """Return a link with this text, which Sphinx resolves when all pages are read."""
    return pending_xref("", nodes.inline("", text), refdoc=env.docname, refexplicit=True, refwarn=True, **about)


def with_anchor(directive: SphinxDirective, node: nodes.Element, anchor: str) -> nodes.Element:
    """Register `anchor` for `node`, so that every page can link to it, and return the node."""
    directive.options["name"] = anchor
    directive.add_name(node)
    return node


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in MyST."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
