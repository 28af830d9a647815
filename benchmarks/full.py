"""What the largest sizes cost: every notebook run once in the profile `full`, to `book/full.csv`, which the book shows.

    .venv/bin/python -m benchmarks.full [NOTEBOOK]... [--hours 8]

runs the notebooks that the table lacks, or those that are named, one after another in a clone of what is committed, and
keeps a row as soon as one ends: stop it whenever you like, and start it again. One that takes longer than `--hours` is
ended, and its row says so. Nothing is published. `--list` says what is there.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import page  # noqa: E402
from benchmarks.table import origin  # noqa: E402
from companion.figures import store  # noqa: E402
from companion.io import atomic  # noqa: E402
from companion.io.errors import did_you_mean  # noqa: E402
from companion.project.notebooks import Notebook  # noqa: E402
from companion.project.parameters import resolve  # noqa: E402
from companion.project.paths import DEFAULT_PROFILE, Project  # noqa: E402

PROFILE = "full"
TABLE = ROOT / "book" / f"{PROFILE}.csv"
# What is told of a list of values is how many there are, and its ends.
FEW = 3


def main() -> None:
    """The command line."""
    project = Project(ROOT)
    parser = argparse.ArgumentParser(
        "python -m benchmarks.full", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", metavar="NOTEBOOK", help="which; without names, those not in the table")
    parser.add_argument("--hours", type=float, default=8.0, help="how long one may take (default 8)")
    parser.add_argument("--list", action="store_true", help="say which are in the table, and stop")
    asked = parser.parse_args()
    for name in asked.notebooks:
        if name not in project.notebooks():
            parser.error(f"there is no notebook {name!r}. {did_you_mean(name, project.notebooks())}")
    there = read()
    if asked.list:
        print("\n".join(f"{'✓' if name in there else ' '} {name}" for name in project.notebooks()))
        return
    for name in asked.notebooks or [name for name in project.notebooks() if name not in there]:
        print(f"{name}: begun at {time.strftime('%H:%M')}", flush=True)
        row = measured(project, name, 3600 * asked.hours)
        keep(project, row)
        print(f"{name}: {row['ended']}, {row['core minutes']} core minutes", flush=True)


def read() -> dict[str, dict[str, Any]]:
    """The rows that are there, by notebook."""
    rows = pd.read_csv(TABLE, dtype=str).to_dict("records") if TABLE.is_file() else []
    return {str(row["notebook"]): row for row in rows}


def measured(project: Project, name: str, seconds: float) -> dict[str, str]:
    """Run a notebook in a clone; what it took, and how it ended."""
    with tempfile.TemporaryDirectory(prefix="full-") as folder:
        clone = Path(folder) / "book"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        command = [sys.executable, "-m", "companion", "run", name, "--profile", PROFILE]
        environment = {**os.environ, "PYTHONPATH": str(clone)}
        begun, process = time.monotonic(), subprocess.Popen(command, cwd=clone, env=environment, start_new_session=True)
        previous = signal.signal(signal.SIGALRM, lambda *_: process.send_signal(signal.SIGTERM))
        signal.setitimer(signal.ITIMER_REAL, seconds)
        _, status, used = os.wait4(process.pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        took = time.monotonic() - begun
        ended = how_it_ended(Project(clone), name) if os.waitstatus_to_exitcode(status) == 0 else "failed"
    if took >= seconds:
        ended = f"not within {seconds / 3600:g} hours"
    return {
        "notebook": name,
        "core minutes": f"{(used.ru_utime + used.ru_stime) / 60:.1f}",
        "memory": f"{used.ru_maxrss / 1024**2:.1f} GB",
        "ended": ended,
        "larger than published": larger(project, name),
        **origin(ROOT),
    }


def how_it_ended(project: Project, name: str) -> str:
    """How many figures it left, and how many claims hold: all, or it would have failed."""
    folder = project.build(PROFILE).figures / name
    claims = [len(store.read_record(folder, figure).claims) for figure in store.names_in(folder)]
    return f"{len(claims)} figures, {sum(claims)} claims hold"


def larger(project: Project, name: str) -> str:
    """The parameters that the profile changes, with their values there and as published."""
    notebook = Notebook.named(project, name)
    full, published = (resolve(project, notebook, profile) for profile in (PROFILE, DEFAULT_PROFILE))
    return "; ".join(changes(full, published)) or "nothing"


def changes(full: Mapping[str, Any], published: Mapping[str, Any]) -> list[str]:
    """`prompts 20,000 (published 2,000)`, in the order of the parameters cell."""
    return [f"{key} {said(full[key])} ({said(published[key])})" for key in published if full[key] != published[key]]


def said(value: Any) -> str:
    """A value in words; of a long list how many there are, and the ends."""
    if isinstance(value, list):
        return (
            f"{len(value)} from {said(value[0])} to {said(value[-1])}"
            if len(value) > FEW
            else (" and ".join(map(said, value)) or "none")
        )
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def keep(project: Project, row: Mapping[str, str]) -> None:
    """Write a row into the table, in the order of the book."""
    rows = read() | {row["notebook"]: row}
    ordered = [rows[name] for name in project.notebooks() if name in rows]
    atomic.write_text(TABLE, pd.DataFrame(ordered).to_csv(index=False))
    page.write(ROOT)


if __name__ == "__main__":
    main()
