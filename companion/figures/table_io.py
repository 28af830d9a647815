"""The numbers of a figure on disk: how they are written, and how they are read again."""

import io
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from companion.figures.schema import Alternative, Claim

SIGNIFICANT_DIGITS = 6
EXACT_DIGITS = 17


def claim_record(claim: Claim) -> dict[str, Any]:
    """Return a claim as JSON: numbers with six digits, the verdict, non-finite numbers as text."""
    record = {**asdict(claim), "holds": claim.holds, "catches_alternative": claim.catches_alternative}
    record["alternative"]["measured"] = _json_number(claim.alternative.measured)
    for name in ("measured", "expected", "tolerance", "std_error"):
        record[name] = _json_number(record[name])
    return record


def claim_of(record: Mapping[str, Any]) -> Claim:
    """Return the claim of a record; its numbers have six digits."""
    said = {name: value for name, value in record.items() if name not in ("holds", "catches_alternative")}
    other = record["alternative"]
    return Claim(**{**said, "alternative": Alternative(other["says"], float(other["measured"]))})


def _json_number(value: float | None) -> float | str | None:
    if value is None or not np.isfinite(value):
        return None if value is None else str(float(value))
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def plain(frame: pd.DataFrame, where: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """`frame` as anyone reads it from its CSV at full precision, and the kind of each column.

    Pictures are drawn from this, at once or from the file later, so that both are the same to the byte.
    """
    kinds = {str(name): _kind(column, f"{where}: column {name!r}") for name, column in frame.items()}
    text = frame.to_csv(index=False, float_format=f"%.{EXACT_DIGITS}g", lineterminator="\n")
    return _parse(io.StringIO(text), kinds), kinds


def read_csv(path: Path, columns: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """The table in `path`, exactly, its columns of the kinds that a figure's record gives them."""
    return _parse(path, {name: column["kind"] for name, column in columns.items()})


def _kind(column: pd.Series, where: str) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "flag"
    if pd.api.types.is_integer_dtype(column):
        return "integer"
    if pd.api.types.is_float_dtype(column):
        return "number"
    odd = [
        value for value in column if not (isinstance(value, str) or (pd.api.types.is_scalar(value) and pd.isna(value)))
    ]
    if odd:
        raise TypeError(
            f"{where} must hold numbers, whole numbers, flags or text, because it is published as CSV. Got {odd[0]!r}."
        )
    return "text"


def _parse(source: Any, kinds: Mapping[str, str]) -> pd.DataFrame:
    texts = pd.read_csv(source, dtype=str, keep_default_na=False)
    readers = {
        "flag": lambda text: text == "True",
        "integer": int,
        "number": lambda text: float(text or "nan"),
        "text": lambda text: text or None,
    }
    types = {"flag": bool, "integer": np.int64, "number": np.float64, "text": object}
    return pd.DataFrame(
        {
            name: pd.Series([readers[kind](text) for text in texts[name]], dtype=types[kind])
            for name, kind in kinds.items()
        }
    )


def write_csv(frame: pd.DataFrame, path: Path, digits: int) -> None:
    """`frame` with `digits` significant digits, the same bytes for the same numbers."""
    frame.to_csv(path, index=False, float_format=f"%.{digits}g", lineterminator="\n")
