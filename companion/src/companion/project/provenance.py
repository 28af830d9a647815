"""Provenance of a run: date, duration, machine, versions and commit. The site shows it; it is never tracked."""

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from companion.io import git
from companion.io.atomic import dump_json, write_text
from companion.project.paths import Project

# The distribution of this package.
NAME = "paper-companion"


def record(project: Project, path: Path, *, started: datetime.datetime, seconds: float, device: str | None) -> None:
    """Write the provenance of a run to `path`.

    Args:
      project: the book.
      path: the JSON file to write.
      started: when the run began.
      seconds: how long it took.
      device: the name of the computing device, if the book names one.
    """
    write_text(
        path,
        dump_json(
            {
                "started": started.isoformat(timespec="seconds"),
                "seconds": round(seconds, 1),
                "device": device,
                "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
                "platform": platform.platform(),
                **software(project),
            }
        ),
    )


def software(project: Project) -> dict[str, Any]:
    """Return the versions of Python and of the packages that the book reports, and the commit of the checkout."""
    return {
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in project.settings.report},
        "git": commit_of(project.root),
    }


def version() -> str:
    """Return name, version and folder of the distribution with this package, as `NAME 0.1.0 (/a/folder)`."""
    return f"{NAME} {importlib.metadata.version(NAME)} ({Path(__file__).resolve().parents[2]})"


def read(path: Path) -> dict[str, Any] | None:
    """Return the provenance in `path`, or None if there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def commit_of(root: Path) -> dict[str, Any] | None:
    """Return the commit of the repository at `root` and whether files differ from it, or None outside a repository."""

    def line(*arguments: str) -> str:
        return os.fsdecode(git.output_of(root, *arguments).strip())

    try:
        if Path(line("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return None  # the book is below another repository
        commit = line("rev-parse", "HEAD")
        # a user may have configured git to show no new files
        return {"commit": commit, "modified": bool(line("status", "--porcelain", "--untracked-files=normal"))}
    except (OSError, subprocess.CalledProcessError):
        return None
