"""Write the times of the notebooks of the last build to `book/PROFILE.csv`, from which other users' builds read them.

    rm -rf _build && .venv/bin/companion build
    .venv/bin/python -m benchmarks.last_build [PROFILE]

Such a build runs two notebooks at a time. Nothing else should run then.
"""

import argparse
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.table import origin  # noqa: E402
from companion.io import atomic  # noqa: E402
from companion.project import costs, provenance  # noqa: E402
from companion.project.paths import DEFAULT_PROFILE, Project  # noqa: E402


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.last_build", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("profile", nargs="?", default=DEFAULT_PROFILE, metavar="PROFILE")
    profile, project = parser.parse_args().profile, Project(ROOT)
    runs = {name: provenance.read(project.build(profile).provenance / f"{name}.json") for name in project.notebooks()}
    if missing := [name for name, run in runs.items() if run is None]:
        parser.error(f"no results of {', '.join(missing)}: run `companion build --profile {profile}` first")
    where = origin(ROOT)
    rows = [
        {costs.NOTEBOOK: name, costs.TIME: f"{run['seconds'] / 60:.2f}", **where} for name, run in runs.items() if run
    ]
    atomic.write_text(ROOT / "book" / f"{profile}.csv", pd.DataFrame(rows).to_csv(index=False))


if __name__ == "__main__":
    main()
