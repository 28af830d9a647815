"""Two builds side by side: the numbers and the claims of each figure, to the last digit that both have."""

import csv
from itertools import zip_longest
from pathlib import Path

from companion.figures import store
from companion.figures.record import ClaimRecord
from companion.io.errors import UserError


def differences(old: Path, new: Path) -> dict[str, str | None]:
    """Return the first difference of every `notebook/figure` in either build, None where there is none.

    A build is a folder with `tables/`, the unrounded numbers, and `figures/`, or a folder of published figures, with
    which only rounded numbers are compared.
    """
    exact = all((build / "tables").is_dir() for build in (old, new))
    one, other = _figures(old, exact), _figures(new, exact)
    found: dict[str, str | None] = {}
    for name in sorted(one.keys() | other.keys()):
        if name not in one or name not in other:
            found[name] = f"only in {old if name in one else new}"
        else:
            found[name] = _first_difference(one[name], other[name])
    return found


def _figures(build: Path, exact: bool) -> dict[str, tuple[Path, Path]]:
    """Return the paths of every figure's numbers (unrounded if `exact`) and record."""
    figures = build / "figures" if (build / "figures").is_dir() else build
    tables = build / "tables" if exact else figures
    records = sorted(figures.glob(f"*/*{store.RECORD}")) if figures.is_dir() else []
    if not records:
        raise UserError(f"{build} holds no figures: a build is a folder such as _build/laptop, or figures/.")
    found: dict[str, tuple[Path, Path]] = {}
    for path in records:
        notebook, figure = path.parent.name, path.name.removesuffix(store.RECORD)
        found[f"{notebook}/{figure}"] = tables / notebook / f"{figure}{store.DATA}", path
    return found


def _first_difference(old: tuple[Path, Path], new: tuple[Path, Path]) -> str | None:
    with old[0].open(newline="", encoding="utf-8") as one, new[0].open(newline="", encoding="utf-8") as other:
        difference = _in_tables(list(csv.reader(one)), list(csv.reader(other)))
    return difference or _in_claims(_claims(old[1]), _claims(new[1]))


def _claims(record: Path) -> dict[str, ClaimRecord]:
    figure = store.read_record(record.parent, record.name.removesuffix(store.RECORD))
    return {claim.id: claim for claim in figure.claims}


def _in_tables(old: list[list[str]], new: list[list[str]]) -> str | None:
    (names, *rows), (other_names, *other_rows) = old, new
    for index, (name, other) in enumerate(zip_longest(names, other_names), 1):
        if name != other:
            return f"column {index}: {name!r} and {other!r}"
    if len(rows) != len(other_rows):
        return f"{len(rows)} rows and {len(other_rows)}"
    for number, (row, other_row) in enumerate(zip(rows, other_rows, strict=True), 1):
        for name, value, other in zip(names, row, other_row, strict=True):
            if not _same(value, other):
                return f"row {number}, column {name!r}: {value} and {other}"
    return None


def _same(value: str, other: str) -> bool:
    """The same text, or two spellings of the same number."""
    if value == other:
        return True
    try:
        return float(value) == float(other)
    except ValueError:
        return False


def _in_claims(old: dict[str, ClaimRecord], new: dict[str, ClaimRecord]) -> str | None:
    for name in dict.fromkeys([*old, *new]):
        if name not in old or name not in new:
            return f"claim {name!r} is only in the {'old' if name in old else 'new'} one"
        for part, value, other in old[name].differences(new[name]):
            return f"claim {name!r}, {part}: {value!r} and {other!r}"
    if list(old) != list(new):
        return f"order of claims: {list(old)} and {list(new)}"
    return None
