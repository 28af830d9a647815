"""Display a published figure in a notebook.

This module is not a source of numbers: a change of it reruns no notebook.
"""

import base64
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from companion.figures.plain_math import WITHHELD, as_plain_text, withheld_because
from companion.figures.record import Claim, FigureRecord, WithheldClaim
from companion.project.paths import MIME


class Published:
    """The displayed output of a published figure: the picture and the verdict on each claim."""

    def __init__(self, folder: Path, record: FigureRecord):
        self.folder, self.record = folder, record

    def _repr_mimebundle_(self, **_) -> Mapping[str, Any]:
        return self.bundle()

    def bundle(self, address: str | None = None) -> dict[str, JsonValue]:
        """Return the outputs that a notebook stores: a reference for the site, an HTML fragment, and plain text.

        The fragment contains the picture, or else, if the `address` of its file is given, a link to it.
        """
        name = f"{self.record.notebook}/{self.record.figure}"
        return {MIME: {"figure": name}, "text/html": self._html(address), "text/plain": self._text()}

    def _html(self, address: str | None) -> str:
        where = f'<p>The picture is <a href="{address}">{self.record.figure}.svg</a>.</p>' if address else ""
        source = address or self._embedded()
        rows = "".join(
            f"<li>{_verdict(claim)} <code>{html.escape(claim.id)}</code> {_escaped(claim.statement)} "
            f"<i>{html.escape(claim.source)}</i>: measured {claim.measured}, {claim.relation} "
            f"{claim.expected} ± {claim.tolerance}</li>"
            for claim in self.record.claims
        )
        rows += "".join(
            f"<li>{WITHHELD} <code>{html.escape(claim.id)}</code> {_escaped(claim.statement)} "
            f"<i>{html.escape(claim.source)}</i>: {_escaped(withheld_because(claim))}.</li>"
            for claim in self.record.withheld
        )
        return (
            f'<img width="760" alt="{html.escape(self.record.alt)}" '
            f'src="{source}">{where}<ul style="list-style: none">{rows}</ul>'
        )

    def _embedded(self) -> str:
        picture = (self.folder / f"{self.record.figure}.png").read_bytes()
        return f"data:image/png;base64,{base64.b64encode(picture).decode()}"

    def _text(self) -> str:
        claims = map(verdict_line, (*self.record.claims, *self.record.withheld))
        return "\n".join([f"{self.record.notebook}/{self.record.figure}", *claims])


def verdict_line(claim: Claim | WithheldClaim) -> str:
    """Return the verdict on a claim as plain text."""
    if isinstance(claim, WithheldClaim):
        return f"{WITHHELD} {claim.id}: {as_plain_text(withheld_because(claim))}"
    return f"{_verdict(claim)} {claim.id}: {claim.measured}"


def _verdict(claim: Claim) -> str:
    return "✓" if claim.holds else "✗"


def _escaped(text: str) -> str:
    """Return a plain sentence as HTML, its formulas in Unicode."""
    return html.escape(as_plain_text(text))
