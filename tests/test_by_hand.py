"""Every by-hand cell runs alone, where only the book's library and its requirements can be imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The chapters that have by-hand cells, each two of them.
CHAPTERS = ("measures", "gaussian_limit", "concentration", "exact_finite_prompt", "icl_infinite", "icl_finite")
CHAPTERS += ("trajectory_stability", "published_experiment", "risk_and_parameters", "softmax_advantage")
CHAPTERS += ("needle_in_a_long_prompt", "finite_samples")
# Runs the cells one after the other, each with its own names, and prints one JSON line per cell.
ALONE = """
import contextlib, io, json, sys
sys.modules["companion"] = sys.modules["chapters"] = None
for name, source in json.load(sys.stdin):
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        exec(compile(source, name, "exec"), {"__name__": "__main__"})
    print(json.dumps([name, written.getvalue()]))
"""


def by_hand_cells() -> list[tuple[str, str]]:
    """Return the by-hand cells of the book, each with the name of its notebook."""
    return [
        (path.stem, "".join(cell["source"]))
        for path in sorted((ROOT / "book").glob("*.ipynb"))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if "by-hand" in cell["metadata"].get("tags", [])
    ]


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[tuple[str, float]]:
    """What each cell prints, in a process without the chapters and the publishing tool."""
    finished = subprocess.run(
        [sys.executable, "-c", ALONE],
        check=False,
        input=json.dumps(by_hand_cells()),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("alone"),
    )
    assert finished.returncode == 0, finished.stderr
    return [(name, float(text)) for name, text in map(json.loads, finished.stdout.splitlines())]


def test_each_cell_prints_the_number_of_its_claim(printed):
    """The numbers that the pages quote are those that a reader gets."""
    assert {name for name, _ in printed} == set(CHAPTERS)
    for chapter in CHAPTERS:
        record = json.loads((ROOT / f"figures/{chapter}/claims.json").read_text(encoding="utf-8"))
        published = [claim["measured"] for claim in record["claims"] if "-by-hand-" in claim["id"]]
        numbers = [number for name, number in printed if name == chapter]
        assert numbers == pytest.approx(published, rel=1e-5, abs=1e-13)
        assert len(numbers) == 2
