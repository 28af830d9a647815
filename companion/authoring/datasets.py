"""Tracked results of runs too long for a notebook: one command, and one way to say where a table comes from.

A chapter's `data/make.py` names its tables, each with the function that computes it, and hands them to `make`. Then

    python -m <chapters>.<notebook>.data.make [TABLE]...

computes the tables that are named, or all, one after another, and keeps each as `<table>.csv` and, last,
`<table>.json`: what its columns mean, which parameters decide it, which command made it, when, from which commit, with
which versions, on what kind of machine. No names of people or hosts and no folders of theirs.
A table that takes long is computed `in_parts`, and a killed run goes on with the part that it was at.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from companion.analysis.dependencies import digest
from companion.authoring.checkpoints import Checkpoint
from companion.figures.schema import Table
from companion.figures.store import DATA, RECORD
from companion.figures.table_io import write_csv
from companion.io.atomic import dump_json, write_text
from companion.io.errors import did_you_mean
from companion.project import provenance
from companion.project.paths import Project, relative


@dataclass(frozen=True)
class Result:
    """The table that a long run comes to, the plain values that decide it, and the significant digits to keep of it."""

    table: Table
    parameters: Mapping[str, Any]
    digits: int = 6


def make(script: str, description: str | None, tables: Mapping[str, Callable[[], Result]]) -> None:
    """The command line of the `make.py` whose file is `script`: compute tables by name, in the book's context."""
    folder, project = Path(script).resolve().parent, Project.here()
    command = f"python -m {relative(folder / Path(script).stem, project.root).replace('/', '.')}"
    parser = argparse.ArgumentParser(
        prog=command, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(tables)}; without names, all")
    asked = parser.parse_args().tables or list(tables)
    for name in asked:
        if name not in tables:
            parser.error(f"there is no table {name!r}. {did_you_mean(name, tables)}")
    project.settings.open_context()
    origin = origin_of(project)  # before the first table is written, which git would see
    for name in asked:
        keep(folder, name, tables[name](), {"command": f"{command} {name}", **origin})


def in_parts(
    notebook: str, name: str, parts: Sequence[Any], compute: Callable[[Any], np.ndarray], size: int
) -> np.ndarray:
    """The numbers of all parts, each computed once: a killed run finds those that it had. A part has `size` numbers."""
    place = Project.here().generated / "checkpoints" / f"{notebook}-{name}.npz"
    checkpoint = Checkpoint(place, f"{name}, {len(parts)} parts: {parts!r}")
    done, kept = map(np.array, checkpoint.load([np.zeros(len(parts), bool), np.full((len(parts), size), np.nan)]))
    for i, part in enumerate(track(parts, description=name)):
        if not done[i]:
            kept[i], done[i] = compute(part), True
            checkpoint.save([done, kept])
    return kept


def origin_of(project: Project) -> dict[str, Any]:
    """Where what is computed now comes from."""
    return {
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{platform.machine()}, {platform.system()}",
        "device": project.settings.device_in_words(),
        **provenance.software(project),
    }


def keep(folder: Path, name: str, result: Result, origin: Mapping[str, Any]) -> None:
    """Write the table `name` of `folder`, then its record: a record without its table, or with another, is a fault."""
    path = folder / f"{name}{DATA}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(result.table.frame, path, result.digits)
    record = {
        "table": name,
        "rows": len(result.table.frame),
        "columns": {title: {"meaning": c.meaning, "unit": c.unit} for title, c in result.table.columns.items()},
        "parameters": dict(result.parameters),
        **origin,
        "sha256": digest(path.read_bytes()),
    }
    write_text(path.with_suffix(RECORD), dump_json(record))


def faults(folder: Path) -> list[str]:
    """What is wrong with the tables below `folder`, a sentence each: no record, other bytes, other columns."""
    return [sentence for path in sorted(folder.rglob(f"*{DATA}")) for sentence in _faults(path, folder)]


def _faults(path: Path, folder: Path) -> list[str]:
    name = relative(path, folder)
    if not path.with_suffix(RECORD).is_file():
        return [f"{name} has no record beside it"]
    record = json.loads(path.with_suffix(RECORD).read_text(encoding="utf-8"))
    found = []
    if record.get("sha256") != digest(path.read_bytes()):
        found.append(f"{name} is not the file its record names")
    if list(record.get("columns", ())) != path.read_text(encoding="utf-8").partition("\n")[0].split(","):
        found.append(f"{name} has other columns than its record")
    missing = [part for part in ("table", "parameters", "command", "made", "machine", "versions") if part not in record]
    return found + [f"the record of {name} lacks `{part}`" for part in missing]
