"""The record of a published figure. No other module spells out the keys of its JSON.

`FigureRecord` is the content of `figures/<notebook>/<figure>.json`; `docs/figure-record.md` explains it for other
tools. Measured numbers have six significant digits; infinite numbers and NaN are stored as the texts `inf`, `-inf` and
`nan`. `companion.figures.store` reads and writes the files.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PlainSerializer, WithJsonSchema

SIGNIFICANT_DIGITS = 6
SCHEMA_VERSION = 1
Relation = Literal["=", "≤", "≥"]
Kind = Literal["flag", "integer", "number", "text"]
# The field that the JSON of a record has only if it is not empty.
OPTIONAL = "withheld"
NOT_FINITE = ("inf", "-inf", "nan")


def headline(caption: str) -> str:
    """Return the first paragraph of a caption on one line."""
    return " ".join(caption.split("\n\n", maxsplit=1)[0].split())


def _from_text(value: object) -> object:
    return float(value) if isinstance(value, str) and value in NOT_FINITE else value


def _to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


Number = Annotated[
    float,
    BeforeValidator(_from_text),
    PlainSerializer(_to_json, return_type=float | str, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(NOT_FINITE)}]}),
]


def rounded(value: float) -> float:
    """Return `value` with the six significant digits of a published number."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if math.isfinite(value) else float(value)


class _Part(BaseModel):
    """A part of a record: frozen, with exactly the declared fields, of exactly the declared types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __eq__(self, other: object) -> bool:
        """Compare as JSON, where NaN equals NaN."""
        return type(self) is type(other) and isinstance(other, BaseModel) and _json(self) == _json(other)

    __hash__ = None  # type: ignore[assignment]

    def differences(self, other: "_Part") -> Iterator[tuple[str, JsonValue, JsonValue]]:
        """Yield every field in which `other` differs, with both values as in the JSON."""
        one, two = _json(self), _json(other)
        for part in one:
            if one[part] != two[part]:
                yield part, one[part], two[part]


class Alternative(_Part):
    """A different theory, evaluated by the same measurement; the claim must reject it."""

    theory: str = Field(description="The different theory, as text.")
    measured: Number = Field(description="The value that the measurement takes if that theory holds.")


class Claim(_Part):
    """A statement with the number that checks it."""

    id: str = Field(description="Identifier, unique in the book; pages link to it.")
    statement: str = Field(description="The statement, as plain text.")
    source: str = Field(description="A citation such as `[BB26, Lemma 2.1]`, or `derived here`.")
    measured: Number = Field(description="The measured value.")
    expected: Number = Field(description="The expected value (relation `=`) or the bound (`≤` and `≥`).")
    tolerance: Number = Field(description="Absolute distance that the relation allows on top.")
    reason: str | None = Field(None, description="Why this tolerance or bound; null where the author gave no reason.")
    alternative: Alternative | None = Field(description="A theory that the claim rejects; null without one.")
    relation: Relation = Field(description="The relation between measured value and expected value or bound.")
    std_error: Number | None = Field(None, description="Monte-Carlo standard error of the measured value.")
    comparisons: int | None = Field(None, ge=1, description="Number of comparisons of which the largest is measured.")
    successes: int | None = Field(None, ge=0, description="Number of successes, for a measured frequency.")
    trials: int | None = Field(None, ge=1, description="Number of trials, for a measured frequency.")
    box: str | None = Field(None, description="Label of the theorem box that states or derives the claim.")
    holds: bool = Field(description="Whether the claim holds.")
    catches_alternative: bool | None = Field(
        description="Whether the claim fails for the value of its alternative; null without one."
    )

    @classmethod
    def judged(cls, *, alternative: tuple[str, float] | None, **parts: Any) -> "Claim":
        """Return the claim with the verdict of the given numbers; it keeps them with six digits."""
        theory = alternative and Alternative(theory=alternative[0], measured=alternative[1])
        exact = cls(alternative=theory, holds=False, catches_alternative=None, **parts)
        numbers = {name: rounded(getattr(exact, name)) for name in ("measured", "expected", "tolerance")}
        verdicts = {"holds": exact.accepts(exact.measured), "catches_alternative": None}
        if theory:
            verdicts["catches_alternative"] = not exact.accepts(theory.measured)
            theory = Alternative(theory=theory.theory, measured=rounded(theory.measured))
        error = None if exact.std_error is None else rounded(exact.std_error)
        return exact.model_copy(update={**numbers, **verdicts, "alternative": theory, "std_error": error})

    def accepts(self, measured: float) -> bool:
        """Return whether `measured` would satisfy the claim. NaN never does."""
        return bool(self.in_tolerances(measured) <= 1)

    def in_tolerances(self, measured: float) -> float:
        """Return the distance of `measured` from the expected value or bound, in tolerances.

        It is at most 1 where the claim accepts the value, negative on the safe side of a bound, and infinite outside a
        bound without tolerance.
        """
        excess = measured - self.expected
        off = {"=": abs(excess), "≤": excess, "≥": -excess}[self.relation]
        if not off or math.isnan(off):
            return off
        return off / self.tolerance if self.tolerance else math.copysign(math.inf, off)

    @property
    def agreement(self) -> str:
        """The test of a claim on the largest of several deviations, which are in standard errors."""
        numbers = f"{self.measured:.1f} standard errors, allowed {self.tolerance:.1f}"
        return (
            f"deviation {numbers}" if self.comparisons == 1 else f"largest of {self.comparisons} deviations {numbers}"
        )

    def without_numbers(self) -> "Claim":
        """Return the claim without its computed numbers, which may differ between machines."""
        alternative = self.alternative and self.alternative.model_copy(update={"measured": 0.0})
        numbers = dict.fromkeys(("measured", "expected", "tolerance"), 0.0)
        rest = {"std_error": None, "successes": None, "holds": True, "catches_alternative": alternative and True}
        statement = self.statement.replace(self.agreement, "")
        return self.model_copy(update={**numbers, **rest, "alternative": alternative, "statement": statement})

    @property
    def is_broken(self) -> bool:
        """Whether the claim fails, or would also hold for its alternative."""
        return not self.holds or self.catches_alternative is False


class PublishedClaim(Claim):
    """A claim together with the notebook and the figure that publish it; a claim of the notebook has no figure."""

    notebook: str
    figure: str


class WithheldClaim(_Part):
    """A statement that is not claimed at the parameters of the run."""

    id: str = Field(description="Identifier, unique in the book.")
    statement: str = Field(description="The statement, as plain text.")
    source: str = Field(description="A citation such as `[BB26, Lemma 2.1]`, or `derived here`.")
    reason: str = Field(description="Why the statement is not claimed here.")
    box: str | None = Field(None, description="Label of the theorem box that states or derives the claim.")


class PublishedWithheld(WithheldClaim):
    """A withheld claim together with the notebook and the figure that would publish it."""

    notebook: str
    figure: str


class NotebookClaims(_Part):
    """The claims that a notebook publishes by itself, because no figure shows them."""

    schema_version: Literal[1] = Field(description="Version of this schema.")
    notebook: str = Field(description="Name of the notebook.")
    profile: str = Field(description="Profile of the run, or `by hand`.")
    parameters: dict[str, JsonValue] = Field(description="The values of all parameters of the notebook.")
    claims: tuple[Claim, ...] = Field(description="The claims of the notebook.")
    withheld: tuple[WithheldClaim, ...] = Field(
        (), description="The statements that are not claimed at these parameters; absent if there are none."
    )

    @property
    def figure(self) -> str:
        """The empty name, where the claim of a figure has that of the figure."""
        return ""

    def without_numbers(self) -> "NotebookClaims":
        """Return the record without the computed numbers of its claims."""
        return self.model_copy(update={"claims": tuple(claim.without_numbers() for claim in self.claims)})


class ColumnRecord(_Part):
    """The description of one column of the table."""

    meaning: str = Field(description="What the column holds, as plain text.")
    unit: str = Field("1", description="Unit; `1` for a pure number.")
    std_error: str | None = Field(None, description="Name of the column with the standard error of this one.")
    absolute: float = Field(0.0, ge=0, description="Absolute distance that a rebuild may move an exact zero.")
    moves_with: str | None = Field(None, description="Name of a column of the same draws that is compared instead.")
    kind: Kind = Field(description="Type of the values.")


class RunRecord(_Part):
    """The part of a record that the run of a notebook provides: everything except caption, alt text and files."""

    schema_version: Literal[1] = Field(description="Version of this schema.")
    figure: str = Field(description="Name of the figure, and of its module.")
    notebook: str = Field(description="Name of the notebook that publishes the figure.")
    profile: str = Field(description="Profile of the run, or `by hand`.")
    parameters: dict[str, JsonValue] = Field(description="The values of all parameters of the notebook.")
    seed: int | None = Field(None, description="The value of the parameter `seed`, if there is one.")
    columns: dict[str, ColumnRecord] = Field(description="The columns of the CSV, in order, by name.")
    claims: tuple[Claim, ...] = Field(description="The claims of the figure.")
    withheld: tuple[WithheldClaim, ...] = Field(
        (), description="The statements that are not claimed at these parameters; absent if there are none."
    )
    steps: tuple[str, ...] = Field(description="The statements of the notebook that lead to the figure, in order.")
    functions: tuple[str, ...] = Field(description="The chapter's functions and classes that these statements use.")
    sources: tuple[str, ...] = Field(description="The source files that decide the numbers, below the repository.")


class FigureRecord(RunRecord):
    """The record of a published figure."""

    caption: str = Field(description="The caption; its first paragraph is shown first, the rest explains.")
    alt: str = Field(description="The alternative text: a description of the picture.")
    picture: str = Field(description="Digest of the sources that draw the picture.")
    files: dict[str, str] = Field(description="SHA-256 of the figure's other three files, by ending.")

    @classmethod
    def of_run(cls, run: RunRecord, *, caption: str, alt: str, picture: str, files: dict[str, str]) -> "FigureRecord":
        """Return the record of the figure that `run` computed; parts of an earlier record are replaced."""
        parts: dict[str, Any] = {**dict(run), "caption": caption, "alt": alt, "picture": picture, "files": files}
        return cls(**parts)

    @property
    def is_schematic(self) -> bool:
        """Whether the picture is a schematic, which has no data."""
        return not self.columns

    def without_numbers(self) -> "FigureRecord":
        """Return the record without checksums and without the computed numbers of its claims."""
        claims = tuple(claim.without_numbers() for claim in self.claims)
        return self.model_copy(update={"claims": claims, "files": {}})


def dump(record: RunRecord | NotebookClaims) -> dict[str, JsonValue]:
    """Return a record as the content of its JSON file."""
    content = _json(record)
    return content if record.withheld else {name: value for name, value in content.items() if name != OPTIONAL}


def json_schema(model: type[FigureRecord | NotebookClaims] = FigureRecord) -> dict[str, JsonValue]:
    """Return the JSON schema of `FigureRecord`, or of `NotebookClaims`."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema = model.model_json_schema(mode="serialization")
    required = [name for name in schema["required"] if name != OPTIONAL]
    return {"$schema": dialect, **schema, "required": required}


def _json(part: BaseModel) -> Any:
    return part.model_dump(mode="json")
