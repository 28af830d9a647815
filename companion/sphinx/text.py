"""Small pieces of MyST that several directives write."""

from collections.abc import Iterable, Sequence
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo


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


def rule(field: FieldInfo) -> str:
    """The type and range of a parameter in words, from its annotation."""
    many = getattr(field.annotation, "__origin__", None) is list
    words = [_type(field.annotation)]
    for constraint in field.metadata:
        match constraint:
            case annotated_types.Ge(ge=bound):
                words.append(f"≥ {bound}")
            case annotated_types.Gt(gt=bound):
                words.append(f"> {bound}")
            case annotated_types.Le(le=bound):
                words.append(f"≤ {bound}")
            case annotated_types.Lt(lt=bound):
                words.append(f"< {bound}")
            case annotated_types.MinLen(min_length=least):
                words.append(f"{least} or more of them" if many else f"{least} characters or more")
            case annotated_types.MaxLen(max_length=most):
                words.append(f"{most} of them at most" if many else f"{most} characters at most")
    return ", ".join(words)


def _type(annotation: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if annotation in names:
        return names[annotation]
    if getattr(annotation, "__origin__", None) is list:
        return f"a list, each {_type(annotation.__args__[0])}"
    if hasattr(annotation, "__metadata__"):
        return rule(FieldInfo.from_annotation(annotation))
    return str(annotation).removeprefix("typing.")
