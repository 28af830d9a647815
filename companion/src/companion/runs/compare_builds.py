"""Compare the numbers and the claims of two builds, to the last digit that both have."""

from collections.abc import Sequence
from pathlib import Path

from companion.figures import store
from companion.figures.comparison import compare
from companion.figures.record import Claim
from companion.io.errors import UserError
from companion.project.paths import visible


def differences(old: Path, new: Path, notebook: str | None = None) -> dict[str, str | None]:
    """Return the first difference of each figure of two builds, None for equal figures, by `notebook/figure`.

    A build is a folder with `tables/` (unrounded numbers) and `figures/`, or a folder of published figures. If one of
    the two has no unrounded numbers, the rounded numbers are compared. The claims that a notebook publishes by itself
    count as one of its figures. With `notebook`, only the figures of this notebook are compared.

    The difference of two tables ends with the largest difference of a number in units of the publication tolerance.
    """
    exact = all((build / "tables").is_dir() for build in (old, new))
    old_records, new_records = _records(old, notebook), _records(new, notebook)
    first_differences: dict[str, str | None] = {}
    for name in sorted(old_records.keys() | new_records.keys()):
        if name in old_records and name in new_records:
            first_differences[name] = _first_difference(old_records[name], new_records[name], exact)
        else:
            first_differences[name] = f"only in {old if name in old_records else new}"
    return first_differences


def _records(build: Path, only: str | None) -> dict[str, Path]:
    """Return the path of the record of every figure."""
    figures = build / "figures" if (build / "figures").is_dir() else build
    records = visible(figures, f"{only or '*'}/*{store.RECORD}")
    if not records:
        what = f"figures of the notebook {only}" if only else "figures"
        raise UserError(f"{build} contains no {what}. Name a build, such as _build/laptop, or figures/.")
    return {f"{path.parent.name}/{path.stem}": path for path in records}


def _first_difference(old: Path, new: Path, exact: bool) -> str | None:
    """Return the first difference of two figures, given their records, with the unrounded numbers if `exact`."""
    if old.stem == store.CLAIMS:
        old_claims, new_claims = (store.read_claims(path.parent) for path in (old, new))
        return _in_claims(old_claims.claims, new_claims.claims) if old_claims and new_claims else None
    records = [store.read_record(path.parent, path.stem) for path in (old, new)]
    table = compare(records[0], records[1], (_table(old, exact), _table(new, exact))).table
    if table.other_rows:
        return table.other_rows
    differing = [(column.first[0], column.name, *column.first[1:]) for column in table.columns if column.first]
    if not differing:
        return _in_claims(records[0].claims, records[1].claims)
    row, name, old_value, new_value = min(differing, key=lambda difference: difference[0])
    difference, largest = f"row {row}, column {name!r}: {old_value} and {new_value}", table.columns[0]
    return f"{difference}. Largest: {largest.name} of row {largest.row} differs by {largest.by:.2g} tolerances"


def _table(record: Path, exact: bool) -> Path:
    folder = record.parents[2] / "tables" / record.parent.name if exact else record.parent
    return folder / f"{record.stem}{store.DATA}"


def _in_claims(old: Sequence[Claim], new: Sequence[Claim]) -> str | None:
    old_claims, new_claims = ({claim.id: claim for claim in claims} for claims in (old, new))
    for name in dict.fromkeys([*old_claims, *new_claims]):
        if name not in old_claims or name not in new_claims:
            return f"claim {name!r} is only in the {'old' if name in old_claims else 'new'} record"
        for part, old_value, new_value in old_claims[name].differences(new_claims[name]):
            return f"claim {name!r}, {part}: {old_value!r} and {new_value!r}"
    return None
