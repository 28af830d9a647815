"""The rows of all runs as one table of ratios: how many times as long as ours a peer takes, or as much memory."""

import datetime
import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

# Columns as the book shows them.
WHAT, AT, CORES, OURS, TAKES, UNIT = "what", "at", "cores", "ours", "takes", "unit"
BESIDE, RATIO, LEAST, GREATEST, RUNS = "beside", "ratio", "least", "greatest", "runs"
COLUMNS = [WHAT, AT, CORES, OURS, TAKES, UNIT, BESIDE, RATIO, LEAST, GREATEST, RUNS]
DIGITS = 3
TABLE, ORIGIN = Path("book/benchmarks.csv"), Path("book/benchmarks_origin.csv")
PEERS = ("jax", "numpy", "torch", "papermill")


def progress() -> Progress:
    """A bar that says what runs."""
    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


def summary(measured: Sequence[dict]) -> pd.DataFrame:
    """A row a contest and peer: the median ratio over runs, the least, the greatest; the median of what ours took."""
    pairs = [
        {
            WHAT: row["task"],
            AT: row["setting"],
            CORES: row["threads"],
            OURS: ours,
            UNIT: "MB" if row["of_memory"] else "s",
            BESIDE: peer,
            TAKES: row["values"][ours],
            RATIO: value / row["values"][ours],
        }
        for row in measured
        for ours in [next(iter(row["values"]))]
        for peer, value in row["values"].items()
        if peer != ours
    ]
    same = [WHAT, AT, CORES, OURS, UNIT, BESIDE]
    over_runs = {
        TAKES: (TAKES, "median"),
        RATIO: (RATIO, "median"),
        LEAST: (RATIO, "min"),
        GREATEST: (RATIO, "max"),
        RUNS: (RATIO, "size"),
    }
    rows = pd.DataFrame(pairs).groupby(same, sort=False, as_index=False).agg(**over_runs)
    for name in (TAKES, RATIO, LEAST, GREATEST):
        rows[name] = [float(f"{value:.{DIGITS}g}") for value in rows[name]]
    return rows.reindex(columns=COLUMNS)


def show(rows: pd.DataFrame) -> None:
    """On the terminal, a table a task."""
    console = Console(width=110)
    for task, some in rows.groupby(WHAT, sort=False):
        shown = Table(AT, CORES, OURS, TAKES, BESIDE, title=str(task), title_justify="left")
        shown.add_column(RATIO, justify="right")
        shown.add_column("least to greatest", justify="right")
        for row in some.to_dict("records"):
            cells = [row[AT], row[CORES], row[OURS], f"{row[TAKES]:g} {row[UNIT]}", row[BESIDE]]
            shown.add_row(*map(str, cells), f"{row[RATIO]:g}", f"{row[LEAST]:g} to {row[GREATEST]:g}")
        console.print(shown)


def keep(rows: pd.DataFrame, root: Path) -> None:
    """Write `rows` in place of those that were kept of the same tasks, and where they come from."""
    tasks = list(dict.fromkeys(rows[WHAT]))
    origins = pd.DataFrame([{WHAT: task, **origin(root)} for task in tasks])
    for path, fresh in ((root / TABLE, rows), (root / ORIGIN, origins)):
        kept = pd.read_csv(path).query(f"{WHAT} not in @tasks") if path.is_file() else pd.DataFrame()
        pd.concat([kept, fresh]).to_csv(path, index=False)


def origin(root: Path) -> dict[str, str]:
    """When, at which commit, on which processor, with which versions."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    return {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "processor": processor(),
        "versions": versions(),
    }


def versions() -> str:
    """Return the versions of Python and of the installed peers."""
    peers = [f"{name} {version}" for name in PEERS if (version := version_of(name))]
    return ", ".join([f"Python {platform.python_version()}", *peers])


def version_of(name: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """The model of the processor, as Linux tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
