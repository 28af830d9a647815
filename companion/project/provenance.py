"""What is volatile about a run: when, where, on what, with which versions. Shown on the site, never tracked."""

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from companion.io.atomic import dump_json, write_text
from companion.project.configuration import FILE
from companion.project.paths import Project

# What a provenance says.
RECORDED = {"started", "seconds", "device", "cores", "platform", "python", "versions", "git"}


def record(project: Project, path: Path, *, started: datetime.datetime, seconds: float, device: str | None) -> None:
    """Write the provenance of a run that began at `started` and took `seconds`."""
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
    """What computes: versions of Python and of the packages that the book reports, and the state of the checkout."""
    return {
        "python": platform.python_version(),
        "versions": {package: importlib.metadata.version(package) for package in project.settings.report},
        "git": _git(project.root),
    }


def version() -> str:
    """The distribution that this package belongs to, its version, and where it is: `NAME 0.1.0 (/a/folder)`."""
    place = Path(__file__).resolve().parents[2]
    if (place / FILE).is_file():  # a checkout, whatever was installed from it
        project = tomllib.loads((place / FILE).read_text(encoding="utf-8"))["project"]
        return f"{project['name']} {project['version']} ({place})"
    name = importlib.metadata.packages_distributions()["companion"][0]
    return f"{name} {importlib.metadata.version(name)} ({place})"


def read(path: Path) -> dict[str, Any] | None:
    """A recorded provenance, or None where nothing was run here, or nothing readable is left of it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and set(found) >= RECORDED else None


def _git(root: Path) -> dict[str, Any] | None:
    def ask(*question: str) -> str:
        return subprocess.run(["git", *question], cwd=root, check=True, capture_output=True, text=True).stdout.strip()

    try:
        return {"commit": ask("rev-parse", "HEAD"), "modified": bool(ask("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return None
