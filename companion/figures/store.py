"""Read and write the five files of a published figure.

The JSON record, which is written last, contains the checksums of the other four files.
"""

from pathlib import Path

from companion.analysis.dependencies import digest
from companion.figures import record as records
from companion.figures.record import FigureRecord, Record, RunRecord
from companion.io.atomic import dump_json, write_text
from companion.io.errors import UserError

PICTURES = (".svg", ".dark.svg", ".png")
DATA = ".csv"
RECORD = ".json"
SUFFIXES = (*PICTURES, DATA, RECORD)
# Largest size of a published file, in bytes.
LARGEST = 300_000


def names_in(folder: Path) -> list[str]:
    """Return the names of the figures with at least one file in `folder`, sorted."""
    return sorted({path.name.split(".")[0] for path in folder.glob("*") if path.name.endswith(SUFFIXES)})


def files(folder: Path, figure: str) -> list[Path]:
    """Return the paths of the five files of a figure."""
    return [folder / f"{figure}{suffix}" for suffix in SUFFIXES]


def read_record(folder: Path, figure: str) -> FigureRecord:
    """Return the record of a figure. Raise a `UserError` if its JSON is not one."""
    return _read(folder / f"{figure}{RECORD}", FigureRecord)


def read_run_record(folder: Path, figure: str) -> RunRecord:
    """Return the record that a run wrote next to the unrounded table. Raise a `UserError` if it is not a record."""
    return _read(folder / f"{figure}{RECORD}", RunRecord)


def write_record(folder: Path, record: RunRecord) -> None:
    """Write the JSON of a record to `folder`."""
    write_text(folder / f"{record.figure}{RECORD}", dump_json(records.dump(record)))


def has_current_form(folder: Path, figure: str) -> bool:
    """Return whether the record of a figure, which `read_record` accepts, has the current version of the schema."""
    return records.is_current((folder / f"{figure}{RECORD}").read_text(encoding="utf-8"))


def _read(path: Path, kind: type[Record]) -> Record:
    try:
        return records.parse(path.read_text(encoding="utf-8"), kind)
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
    """Return the reasons why the five files of a figure do not belong together; none if they do."""
    missing = [suffix for suffix in SUFFIXES if not (folder / f"{figure}{suffix}").is_file()]
    if missing:
        return [f"{figure}{suffix} is missing" for suffix in missing]
    try:
        expected = read_record(folder, figure).files
    except UserError:
        return [f"{figure}{RECORD} is not a record"]
    return [
        f"{figure}{suffix} does not match the checksum in its record"
        for suffix in SUFFIXES[:-1]
        if expected.get(suffix) != digest((folder / f"{figure}{suffix}").read_bytes())
    ]
