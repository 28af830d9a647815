"""Datasets: tracked results of runs that are too long for a notebook, with their provenance.

A chapter's `data/make.py` passes its tables, each with the function that computes it, to `make`. Then

    python -m <chapters>.<notebook>.data.make [TABLE]...

computes the named tables, or all, one after another, and writes each as `<table>.csv` and then `<table>.json`: the
meaning of the columns, the parameters, the command, the date, the commit, the versions and the kind of machine. The
record contains no names of people, hosts or folders. A long table is computed `in_parts`: a killed run resumes with
the part that it was computing.
"""

import argparse
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
    """The table of a long run, the parameters that decide it, and the number of significant digits to write."""

    table: Table
    parameters: Mapping[str, Any]
    digits: int = 6


def make(script: str, description: str | None, tables: Mapping[str, Callable[[], Result]]) -> None:
    """Run the command line of the module `script`: compute tables by name, in the book's context."""
    folder, project = Path(script).resolve().parent, Project.here()
    command = f"python -m {relative(folder / Path(script).stem, project.root).replace('/', '.')}"
    parser = argparse.ArgumentParser(
        prog=command, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"{', '.join(tables)} (default: all)")
    requested = parser.parse_args().tables or list(tables)
    for name in requested:
        if name not in tables:
            parser.error(f"there is no table {name!r}. {did_you_mean(name, tables)}")
    project.settings.open_context()
    origin = origin_of(project)  # before the first table is written, which git would see
    for name in requested:
        keep(folder, name, tables[name](), {"command": f"{command} {name}", **origin})


def in_parts(
    notebook: str, name: str, parts: Sequence[Any], compute: Callable[[Any], np.ndarray], size: int
) -> np.ndarray:
    """Compute a long table part by part; a killed run resumes where it stopped.

    Args:
      notebook: the notebook of the dataset, which names the checkpoint.
      name: the table.
      parts: the arguments of `compute`, which identify the computation.
      compute: returns the result of one part, shape (size,).
      size: number of values per part.

    Returns:
      The results of all parts, shape (parts, size).
    """
    path = Project.here().generated / "checkpoints" / f"{notebook}-{name}.npz"
    checkpoint = Checkpoint(path, f"{name}, {len(parts)} parts: {parts!r}")
    done, results = map(np.array, checkpoint.load([np.zeros(len(parts), bool), np.full((len(parts), size), np.nan)]))
    for i, part in enumerate(track(parts, description=name)):
        if not done[i]:
            results[i], done[i] = compute(part), True
            checkpoint.save([done, results])
    return results


def origin_of(project: Project) -> dict[str, Any]:
    """Return the provenance of a result computed now: date, machine, device, versions and commit."""
    return {
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{platform.machine()}, {platform.system()}",
        "device": project.settings.device_in_words(),
        **provenance.software(project),
    }


def keep(folder: Path, name: str, result: Result, origin: Mapping[str, Any]) -> None:
    """Write the table `name` to `folder`, then its record, whose checksum detects a later change of the table."""
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
