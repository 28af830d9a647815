"""Small pieces of MyST that several directives write."""

from collections.abc import Iterable, Sequence
from typing import Any


def number(value: float | str | None) -> str:
    """A measured number as text for readers: four digits are enough on a page, the record has six."""
    return "—" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def mark(claim: dict[str, Any]) -> str:
    """The verdict, in one character."""
    return "✓" if claim["holds"] else "✗"


def measured(claim: dict[str, Any]) -> str:
    """What was measured and what was expected, in one sentence."""
    error = f", standard error {number(claim['std_error'])}" if claim["std_error"] is not None else ""
    return (
        f"Measured {number(claim['measured'])}, {claim['relation']} {number(claim['expected'])} "
        f"within {number(claim['tolerance'])}{error}."
    )


def escaped(source: str) -> str:
    """A citation such as `[BB26, Lemma 2.1]` as text rather than a link."""
    return source.replace("[", "\\[").replace("]", "\\]")


def claim_anchor(identifier: str) -> str:
    """Where a claim is stated, on the page of its figure."""
    return f"claim-{identifier}"


def ledger_anchor(identifier: str) -> str:
    """The row of a claim in the ledger."""
    return f"ledger-{identifier}"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A MyST table."""
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
