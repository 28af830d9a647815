"""Every notebook from the wheels, outside the checkout, with plain papermill: `wheel.py lowest` or `wheel.py newest`.

`lowest` installs the lowest versions that `pyproject.toml` allows, `newest` the newest there are. Small sizes (profile
`smoke`); a cell that fails, a claim that does not hold and a figure that is missing end it with exit code 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from companion.authoring.publish import SCRATCH
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[1]
# The folders of the book's project and of the tool's.
PROJECTS = (".", "companion")
PROFILE = "smoke"
# What a reader has who opens notebooks by hand; not ours to bound.
READER = ["papermill", "ipykernel"]


def lowest() -> list[str]:
    """The lower bounds of what notebooks need, as pins."""
    book, tool = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"] for folder in PROJECTS
    )
    lines = [*book["dependencies"], *book["optional-dependencies"]["notebook"], *tool["dependencies"]]
    needed = map(Requirement, dict.fromkeys(lines))
    return [
        f"{one.name}=={bound.version}" for one in needed for bound in one.specifier if bound.operator.startswith(">=")
    ]


def install(python: str, versions: str, folder: Path) -> Path:
    """A fresh environment with both wheels in it; its programs."""
    for project in PROJECTS:
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder / "wheels", project]
        subprocess.run(command, cwd=ROOT, check=True)
    tool, book = sorted((folder / "wheels").glob("*.whl"), key=lambda wheel: wheel.name.startswith("large"))
    subprocess.run([python, "-m", "venv", folder / "environment"], check=True)
    programs = folder / "environment" / "bin"
    pins = folder / "constraints.txt"
    pins.write_text("\n".join(lowest() if versions == "lowest" else []), encoding="utf-8")
    wanted = [f"{book}[notebook]", tool, *READER, "--constraint", pins]
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", "--upgrade", *wanted], check=True)
    subprocess.run([programs / "python", "-m", "pip", "list"], check=True)
    return programs


def run(programs: Path, folder: Path, notebook: Notebook, values: dict) -> list[str]:
    """What went wrong with one notebook; its figures are left in `folder`."""
    changed = {name: value for name, value in values.items() if value != notebook.defaults[name]}
    parameters = folder / f"{notebook.name}.json"  # YAML, too
    parameters.write_text(json.dumps(changed), encoding="utf-8")
    copy = folder / notebook.path.name
    copy.write_bytes(notebook.path.read_bytes())
    finished = subprocess.run(
        [programs / "papermill", copy, "executed.ipynb", "-f", parameters, "-k", "python3", "--no-progress-bar"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        check=False,
        capture_output=True,
        text=True,
    )
    if finished.returncode:
        return [finished.stderr[-3000:]]
    left = folder / SCRATCH / notebook.name
    claims = [claim for name in notebook.figures for claim in store.read_record(left, name).claims]
    return [f"{claim.id} does not hold: {claim.measured}" for claim in claims if not claim.holds]


def main() -> None:
    """Say of each notebook how long it took, and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", choices=["lowest", "newest"])
    parser.add_argument("notebooks", nargs="*", help="which; without, all")
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    project, faults = Project(ROOT), 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        programs = install(arguments.python, arguments.versions, folder)
        for name in arguments.notebooks or project.notebooks():
            notebook, clock = Notebook.named(project, name), time.monotonic()
            wrong = run(programs, folder, notebook, resolve(project, notebook, PROFILE))
            faults += bool(wrong)
            print(f"{'✗' if wrong else '✓'} {name}: {time.monotonic() - clock:.0f} s", *wrong, sep="\n  ", flush=True)
    sys.exit(faults and f"{faults} notebooks do not run from the wheel with the {arguments.versions} versions.")


if __name__ == "__main__":
    main()
