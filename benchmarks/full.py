"""What the largest sizes cost: every notebook run once in the profile `full`, to `book/full.csv`, which the book shows.

    .venv/bin/python -m benchmarks.full [NOTEBOOK]... [--hours 8]

runs the notebooks that the table lacks, or those that are named, one after another, as `companion run NOTEBOOK
--profile full` does: results are in `_build/full/`, and finished tasks are cached. A row is kept as soon as one ends:
stop it whenever you like with Ctrl-C, and start it again; the time of a run that was stopped is added. One that takes
longer than `--hours` is ended, and its row says so. Nothing is published. `--list` says what is there.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import page  # noqa: E402
from benchmarks.table import origin  # noqa: E402
from companion.build import cache_keys  # noqa: E402
from companion.build.run_spec import Target  # noqa: E402
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


class Stop(Enum):
    """Who stopped a run."""

    BY_HAND = "by hand"
    BY_CLOCK = "by the clock"


@dataclass(frozen=True)
class Spent:
    """What runs of one notebook used: core seconds in all, and the gigabytes of the largest process."""

    core_seconds: float = 0.0
    gigabytes: float = 0.0


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
    """Run a notebook; return what it took, runs that were stopped included, and how it ended."""
    spent = project.build(PROFILE).folder / "spent" / f"{name}.json"
    before = Spent(**json.loads(spent.read_text(encoding="utf-8"))) if spent.is_file() else Spent()
    code, used = run([sys.executable, "-m", "companion", "run", name, "--profile", PROFILE], seconds)
    total = Spent(before.core_seconds + used.core_seconds, max(before.gigabytes, used.gigabytes))
    if code is Stop.BY_HAND:
        spent.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(spent, json.dumps(asdict(total)))
        raise KeyboardInterrupt
    spent.unlink(missing_ok=True)
    ended = "failed" if code else how_it_ended(project, name)
    return {
        "notebook": name,
        "core minutes": f"{total.core_seconds / 60:.1f}",
        "memory": f"{total.gigabytes:.1f} GB",
        "ended": f"not within {seconds / 3600:g} hours" if code is Stop.BY_CLOCK else ended,
        "key": cache_keys.key_of(cache_keys.made_of(project, Target(name), PROFILE))[:12],
        "larger than published": larger(project, name),
        **origin(ROOT),
    }


def run(command: list[str], seconds: float) -> tuple[int | Stop, Spent]:
    """Run a command for at most so many seconds; return its exit code or who stopped it, and what it used."""
    process, stop = subprocess.Popen(command, cwd=ROOT, start_new_session=True), None
    previous = signal.signal(signal.SIGALRM, lambda *_: process.terminate())
    signal.setitimer(signal.ITIMER_REAL, seconds)
    ends = time.monotonic() + seconds
    try:
        _, status, used = os.wait4(process.pid, 0)
    except KeyboardInterrupt:
        stop = Stop.BY_HAND
        process.terminate()
        _, status, used = os.wait4(process.pid, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    if not stop and time.monotonic() >= ends:
        stop = Stop.BY_CLOCK
    spent = Spent(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2)
    return stop or os.waitstatus_to_exitcode(status), spent


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
