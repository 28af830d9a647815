"""Grades of the built site by Lighthouse, as on a phone.

Lighthouse is an npm package and no part of the environment. The commands

    npm install --prefix FOLDER lighthouse@13.5.0
    .venv/bin/python -m benchmarks.lighthouse FOLDER [--keep]

install it in FOLDER, which should be outside the repository, and grade the front page and three chapters. Each grade is
the median of five runs. `--keep` writes book/lighthouse.csv. The site must be built. Its server compresses, as
`companion site --serve` does. Nothing else should run at the same time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.page import write as write_tables  # noqa: E402
from benchmarks.page_speed import PAGE, PAGES, RUNS, served, show  # noqa: E402
from benchmarks.table import origin, progress  # noqa: E402
from companion.project.paths import Project  # noqa: E402
from companion.site.pdf import find_browser  # noqa: E402
from companion.site.sphinx.formulas import node_program  # noqa: E402

CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
TABLE, ORIGIN = Path("book/lighthouse.csv"), Path("book/lighthouse_origin.csv")


def graded(folder: Path, address: str) -> dict[str, Any]:
    """Return the report of Lighthouse, installed in `folder`, on a page."""
    command = [node_program(), folder / "node_modules/lighthouse/cli/index.js", address, "--quiet", "--output=json"]
    flags = "--chrome-flags=--headless=new --no-sandbox --disable-gpu"
    environment = {**os.environ, "CHROME_PATH": find_browser()}
    finished = subprocess.run([*command, flags], env=environment, capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)


def grades(report: dict[str, Any]) -> dict[str, float]:
    """Return the grades of a report, 0 to 100."""
    return {name: 100 * report["categories"][name]["score"] for name in CATEGORIES}


def faults(report: dict[str, Any]) -> list[str]:
    """Return what lowers a grade: the title of each failed check with its weight and first cause."""
    found = []
    for name in CATEGORIES:
        for entry in report["categories"][name]["auditRefs"]:
            audit = report["audits"][entry["id"]]
            if entry["weight"] and audit["score"] is not None and audit["score"] < 1:
                items = audit.get("details", {}).get("items", [{}])
                cause = items[0].get("node", {}).get("snippet", "") if items else ""
                found.append(f"{name}: {audit['title']} {audit.get('displayValue', '')} ({audit['score']}) {cause}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Grade the pages, print the table and the faults and, with `--keep`, write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks.lighthouse", description="Grades by Lighthouse.")
    parser.add_argument("folder", type=Path, help="where Lighthouse is installed")
    parser.add_argument("--page", action="append", help=f"name of a page (default: {', '.join(PAGES)})")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often each page is graded (default: {RUNS})")
    parser.add_argument("--keep", action="store_true", help=f"write {TABLE} and {ORIGIN}, and the tables of the page")
    asked = parser.parse_args(arguments)
    rows, last = [], {}
    with served(Project(ROOT)) as address, progress() as bar:
        task = bar.add_task("Grading pages", total=asked.runs * len(asked.page or PAGES))
        for page in asked.page or PAGES:
            each = []
            for _ in range(asked.runs):
                last[page] = graded(asked.folder, f"{address}/{page}.html")
                each.append(grades(last[page]))
                bar.advance(task)
            rows.append(
                {PAGE: page, **{name: round(statistics.median(run[name] for run in each)) for name in CATEGORIES}}
            )
    table = pd.DataFrame(rows)
    show(table)
    for page, report in last.items():
        for fault in faults(report):
            Console().print(f"{page}: {fault}", markup=False)
    if asked.keep:
        table.to_csv(ROOT / TABLE, index=False)
        pd.DataFrame([origin(ROOT)]).to_csv(ROOT / ORIGIN, index=False)
        write_tables(ROOT)


if __name__ == "__main__":
    main()
