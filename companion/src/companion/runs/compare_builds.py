"""Compare the numbers and the claims of two builds, to the last digit that both have."""

import csv
from pathlib import Path

from companion.figures import store
from companion.figures.comparison import compare
from companion.figures.record import Claim
from companion.io.errors import UserError
from companion.project.paths import visible

# What identifies a figure that moved: its claims, its columns, and, without claims, its name.
Identity = tuple[frozenset[str], tuple[str, ...], str]


def differences(old: Path, new: Path, notebook: str | None = None) -> dict[str, str | None]:
    """Return the first difference of each figure of two builds, None for equal figures, by `notebook/figure`.

    A build is a folder with `tables/` (unrounded numbers) and `figures/`, or a folder of published figures. If one of
    the two has no unrounded numbers, the rounded numbers are compared. A figure that is only in one of the builds is
    compared with the figure of another name or notebook that has the same claims and columns, if there is exactly one;
    its name is then `notebook/figure → notebook/figure`. With `notebook`, only the figures of this notebook are
    compared.

    The difference of two tables ends with the largest difference of a number in units of the publication tolerance.
    """
    exact = all((build / "tables").is_dir() for build in (old, new))
    old_figures, new_figures = _figures(old, exact, notebook), _figures(new, exact, notebook)
    first_differences: dict[str, str | None] = {}
    moved = _moved(old_figures, new_figures)
    first_differences |= _claims_of_notebooks(old, new, notebook)
    for name in sorted(old_figures.keys() | new_figures.keys()):
        if name in old_figures and name in new_figures:
            first_differences[name] = _first_difference(old_figures[name], new_figures[name])
        elif name in moved:
            first = _first_difference(old_figures[name], new_figures[moved[name]])
            first_differences[f"{name} → {moved[name]}"] = first
        elif name not in moved.values():
            first_differences[name] = f"only in {old if name in old_figures else new}"
    return first_differences


def _claims_of_notebooks(old: Path, new: Path, only: str | None) -> dict[str, str | None]:
    """Return the first difference of the claims that notebooks publish by themselves, by `notebook/claims`."""
    found: list[dict[str, dict[str, Claim]]] = []
    for build in (old, new):
        figures = build / "figures" if (build / "figures").is_dir() else build
        paths = visible(figures, f"{only or '*'}/{store.CLAIMS}{store.RECORD}")
        claims = {path.parent.name: store.read_claims(path.parent) for path in paths}
        found.append(
            {
                f"{name}/{store.CLAIMS}": {claim.id: claim for claim in read.claims}
                for name, read in claims.items()
                if read
            }
        )
    return {name: _in_claims(*(each.get(name, {}) for each in found)) for name in sorted({*found[0], *found[1]})}


def _moved(old: dict[str, tuple[Path, Path]], new: dict[str, tuple[Path, Path]]) -> dict[str, str]:
    """Return the new name of each figure of `old` that has another name or notebook in `new`."""
    removed = _by_identity({name: paths for name, paths in old.items() if name not in new})
    added = _by_identity({name: paths for name, paths in new.items() if name not in old})
    return {
        names[0]: added[identity][0]
        for identity, names in removed.items()
        if len(names) == len(added.get(identity, ())) == 1
    }


def _by_identity(figures: dict[str, tuple[Path, Path]]) -> dict[Identity, list[str]]:
    names: dict[Identity, list[str]] = {}
    for name, (table, record) in figures.items():
        claims = frozenset(_claims(record))
        with table.open(newline="", encoding="utf-8") as file:
            columns = tuple(next(csv.reader(file), ()))
        names.setdefault((claims, columns, "" if claims else name.rpartition("/")[2]), []).append(name)
    return names


def _figures(build: Path, exact: bool, only: str | None) -> dict[str, tuple[Path, Path]]:
    """Return the paths of every figure's numbers (unrounded if `exact`) and record."""
    figures = build / "figures" if (build / "figures").is_dir() else build
    tables = build / "tables" if exact else figures
    records = visible(figures, f"{only or '*'}/*{store.RECORD}") if figures.is_dir() else []
    if not records:
        what = f"figures of the notebook {only}" if only else "figures"
        raise UserError(f"{build} contains no {what}. Name a build, such as _build/laptop, or figures/.")
    paths: dict[str, tuple[Path, Path]] = {}
    for path in records:
        notebook, figure = path.parent.name, path.name.removesuffix(store.RECORD)
        if figure == store.CLAIMS:
            continue
        paths[f"{notebook}/{figure}"] = tables / notebook / f"{figure}{store.DATA}", path
    return paths


def _first_difference(old: tuple[Path, Path], new: tuple[Path, Path]) -> str | None:
    records = [store.read_record(path.parent, path.name.removesuffix(store.RECORD)) for _, path in (old, new)]
    table = compare(records[0], records[1], (old[0], new[0])).table
    if table.other_rows:
        return table.other_rows
    exact = [(column.first[0], column.name, *column.first[1:]) for column in table.columns if column.first]
    if not exact:
        return _in_claims(_claims(old[1]), _claims(new[1]))
    row, name, old_value, new_value = min(exact, key=lambda difference: difference[0])
    difference, largest = f"row {row}, column {name!r}: {old_value} and {new_value}", table.columns[0]
    return f"{difference}. Largest: {largest.name} of row {largest.row} differs by {largest.by:.2g} tolerances"


def _claims(record: Path) -> dict[str, Claim]:
    figure = store.read_record(record.parent, record.name.removesuffix(store.RECORD))
    return {claim.id: claim for claim in figure.claims}


def _in_claims(old: dict[str, Claim], new: dict[str, Claim]) -> str | None:
    for name in dict.fromkeys([*old, *new]):
        if name not in old or name not in new:
            return f"claim {name!r} is only in the {'old' if name in old else 'new'} record"
        for part, old_value, new_value in old[name].differences(new[name]):
            return f"claim {name!r}, {part}: {old_value!r} and {new_value!r}"
    if list(old) != list(new):
        return f"order of claims: {list(old)} and {list(new)}"
    return None
