"""The five files of a published figure. The JSON record, which is written last, holds the checksums of the others."""

import json
from pathlib import Path
from typing import Any

from companion.analysis.dependencies import digest
from companion.io.errors import UserError

PICTURES = (".svg", ".dark.svg", ".png")
DATA = ".csv"
RECORD = ".json"
SUFFIXES = (*PICTURES, DATA, RECORD)
LARGEST = 300_000


def names_in(folder: Path) -> list[str]:
    """The figures that have any file in `folder`."""
    return sorted({path.name.split(".")[0] for path in folder.glob("*") if path.name.endswith(SUFFIXES)})


def files(folder: Path, figure: str) -> list[Path]:
    """Its five files."""
    return [folder / f"{figure}{suffix}" for suffix in SUFFIXES]


def read_record(folder: Path, figure: str) -> dict[str, Any]:
    """What the JSON says of the figure: source, parameters, columns, claims, caption."""
    return read(folder / f"{figure}{RECORD}")


def read(path: Path) -> dict[str, Any]:
    """A record, by its path; a `UserError` if something else is there."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        record = None
    if not (isinstance(record, dict) and isinstance(record.get("claims"), list)):
        raise UserError(
            f"{path} is not the record of a figure. Restore it, or run its notebook: `companion run NOTEBOOK`."
        )
    return record


def digests(folder: Path, figure: str) -> dict[str, str]:
    """The sha256 of each file but the record, which holds them."""
    return {suffix: digest((folder / f"{figure}{suffix}").read_bytes()) for suffix in SUFFIXES[:-1]}


def require_small(folder: Path, figure: str) -> None:
    """Raise a `UserError` if a file of the figure is too large to be tracked; unpublished figures may have any size."""
    for path in files(folder, figure):
        if (size := path.stat().st_size) > LARGEST:
            raise UserError(
                f"{path.name} has {size:,} bytes, over the {LARGEST:,} a published file may have: rasterise dense "
                "artists (`rasterized=True`) or thin the table, and run its notebook again."
            )


def faults(folder: Path, figure: str) -> list[str]:
    """Why the five files of `figure` are not one set; empty when they are."""
    missing = [suffix for suffix in SUFFIXES if not (folder / f"{figure}{suffix}").is_file()]
    if missing:
        return [f"{figure}{suffix} is missing" for suffix in missing]
    try:
        expected = read_record(folder, figure).get("files")
    except UserError:
        expected = None
    if not isinstance(expected, dict):
        return [f"{figure}{RECORD} is not a record"]
    return [
        f"{figure}{suffix} is not the file its record names"
        for suffix in SUFFIXES[:-1]
        if expected.get(suffix) != digest((folder / f"{figure}{suffix}").read_bytes())
    ]
