"""The numbers of a figure on disk: how they are written, and when a rebuild has moved them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.experiments.result import Claim, Column

SIGNIFICANT_DIGITS = 6
EXACT_DIGITS = 17


def claim_record(claim: Claim) -> dict[str, Any]:
    """A claim as JSON: numbers to six digits, the verdict beside them, what is not finite as text."""
    record = {**asdict(claim), "holds": claim.holds, "catches_alternative": claim.catches_alternative}
    record["alternative"]["measured"] = _json_number(claim.alternative.measured)
    for name in ("measured", "expected", "tolerance", "std_error"):
        record[name] = _json_number(record[name])
    del record["figure"]
    return record


def _json_number(value: float | None) -> float | str | None:
    if value is None or not np.isfinite(value):
        return None if value is None else str(float(value))
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def write_csv(frame: pd.DataFrame, path: Path, digits: int) -> None:
    """`frame` with `digits` significant digits, the same bytes for the same numbers."""
    frame.to_csv(path, index=False, float_format=f"%.{digits}g", lineterminator="\n")


def moved(published: Path, unrounded: Path, record: dict[str, Any]) -> list[str]:
    """The columns in which the new, unrounded CSV differs from the published one by more than a rebuild may.

    A Monte-Carlo column may move by five of its standard errors; an exact one by 1e-6 of its value. Published
    numbers are rounded to six digits, so half a unit of the sixth is allowed on top. `record` declares the columns.
    """
    old, new = pd.read_csv(published), pd.read_csv(unrounded)
    columns = {name: Column(**column) for name, column in record["columns"].items()}
    if list(old.columns) != list(new.columns) or len(old) != len(new):
        return ["the shape of the table"]
    return [name for name, column in columns.items() if _column_moved(old, new, name, column)]


def _column_moved(published: pd.DataFrame, unrounded: pd.DataFrame, name: str, column: Column) -> bool:
    old, new = published[name], unrounded[name]
    if not (pd.api.types.is_numeric_dtype(old) and pd.api.types.is_numeric_dtype(new)):
        return list(old.astype(str)) != list(new.astype(str))
    old, new = old.to_numpy(float), new.to_numpy(float)
    finite = np.isfinite(old) & np.isfinite(new)
    if not np.array_equal(old[~finite], new[~finite], equal_nan=True):
        return True
    old, new = old[finite], new[finite]
    size = np.abs(np.where(old == 0, 1.0, old))
    rounding = 0.5 * 10.0 ** (np.floor(np.log10(size)) - SIGNIFICANT_DIGITS + 1)
    allowed = column.absolute + 1e-6 * np.abs(new) + np.where(old == 0, 0.0, rounding)
    if column.std_error is not None:
        errors = [frame[column.std_error].to_numpy(float)[finite] for frame in (published, unrounded)]
        allowed = np.maximum(allowed, 5 * np.nan_to_num(np.maximum(*errors)))
    return bool((np.abs(new - old) > allowed).any())
