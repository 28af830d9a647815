"""Read and write the four files of a published figure, and the file with the claims of a notebook.

The JSON record of a figure, which is written last, contains the checksums of the other three files.
"""

from pathlib import Path
from typing import TypeVar

from companion.analysis.dependencies import digest
from companion.figures import plain_math
from companion.figures import record as records
from companion.figures.record import FigureRecord, NotebookClaims, RunRecord
from companion.io.atomic import dump_json, write_text
from companion.io.errors import UserError
from companion.project.paths import visible

PICTURES = (".svg", ".png")
DATA = ".csv"
RECORD = ".json"
SUFFIXES = (*PICTURES, DATA, RECORD)
# The name of the file with the claims of a notebook, without its ending. No figure has this name.
CLAIMS = "claims"
# Largest size of a published file, in bytes.
LARGEST = 300_000

Record = TypeVar("Record", bound=RunRecord | NotebookClaims)


def names_in(folder: Path) -> list[str]:
    """Return the names of the figures with at least one file in `folder`, sorted."""
    names = {path.name.split(".")[0] for path in visible(folder, "*") if path.name.endswith(SUFFIXES)}
    return sorted(names - {CLAIMS})


def parts_in(folder: Path) -> list[str]:
    """Return the names of the figures in `folder`, and `CLAIMS` if the notebook has claims of its own."""
    return [*names_in(folder), *([CLAIMS] if files(folder, CLAIMS)[0].is_file() else [])]


def files(folder: Path, figure: str) -> list[Path]:
    """Return the paths of the four files of a figure; those of `CLAIMS` are one."""
    if figure == CLAIMS:
        return [folder / f"{CLAIMS}{RECORD}"]
    return [folder / f"{figure}{suffix}" for suffix in SUFFIXES]


def read_record(folder: Path, figure: str) -> FigureRecord:
    """Return the record of a figure. Raise a `UserError` if its JSON is not one."""
    return _read(folder / f"{figure}{RECORD}", FigureRecord)


def read_run_record(folder: Path, figure: str) -> RunRecord:
    """Return the record that a run wrote next to the unrounded table. Raise a `UserError` if it is not a record."""
    return _read(folder / f"{figure}{RECORD}", RunRecord)


def read_claims(folder: Path) -> NotebookClaims | None:
    """Return the claims of the notebook, or None if it has none of its own."""
    (path,) = files(folder, CLAIMS)
    return _read(path, NotebookClaims) if path.is_file() else None


def records_in(folder: Path) -> list[FigureRecord | NotebookClaims]:
    """Return the records of all figures in `folder`, and then the claims of the notebook."""
    claims = read_claims(folder)
    return [*(read_record(folder, figure) for figure in names_in(folder)), *([claims] if claims else [])]


def write_record(folder: Path, record: RunRecord | NotebookClaims) -> None:
    """Write the JSON of a record to `folder`. Raise a `UserError` if a formula in its texts cannot be shown."""
    _require_readable(record)
    write_text(folder / f"{record.figure or CLAIMS}{RECORD}", dump_json(records.dump(record)))


def _require_readable(record: RunRecord | NotebookClaims) -> None:
    columns = record.columns if isinstance(record, RunRecord) else {}
    texts = [(f"column {name!r}", column.meaning) for name, column in columns.items()]
    for claim in (*record.claims, *record.withheld):
        texts += [(f"claim {claim.id!r}", claim.statement), (f"the reason of claim {claim.id!r}", claim.reason or "")]
    theories = [(claim.id, claim.alternative.theory) for claim in record.claims if claim.alternative]
    texts += [(f"the alternative of claim {name!r}", theory) for name, theory in theories]
    for place, text in texts:
        if fault := plain_math.fault(text):
            raise UserError(f"{record.notebook}/{record.figure or CLAIMS}: {place} {fault}.")


def _read(path: Path, kind: type[Record]) -> Record:
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path} is not the record of a figure. Restore it, or run its notebook: `companion run NOTEBOOK`."
        ) from error


def digests(folder: Path, figure: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a figure except the record, by ending."""
    return {suffix: digest((folder / f"{figure}{suffix}").read_bytes()) for suffix in SUFFIXES[:-1]}


def require_small(folder: Path, figure: str) -> None:
    """Raise a `UserError` if a file of the figure is too large to be tracked; unpublished figures may have any size."""
    for path in files(folder, figure):
        if (size := path.stat().st_size) > LARGEST:
            raise UserError(
                f"{path.name} has {size:,} bytes; a published file may have at most {LARGEST:,}. Rasterise dense "
                "artists (`rasterized=True`) or thin the table, and run its notebook again."
            )


def faults(folder: Path, figure: str) -> list[str]:
    """Return the reasons why the four files of a figure do not belong together; none if they do."""
    missing = [suffix for suffix in SUFFIXES if not (folder / f"{figure}{suffix}").is_file()]
    if missing:
        return [f"{figure}{suffix} is missing" for suffix in missing]
    try:
        expected = read_record(folder, figure).files
    except UserError:
        return [f"{figure}{RECORD} is not a record"]
    actual = digests(folder, figure)
    wrong = [suffix for suffix in actual if actual[suffix] != expected.get(suffix)]
    return [f"{figure}{suffix} does not match the checksum in its record" for suffix in wrong]
