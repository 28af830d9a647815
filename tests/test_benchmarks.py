"""The table of ratios: made as it says, and the one in the book made by the contests that are there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import contests, full, table  # noqa: E402
from benchmarks.__main__ import MODULES  # noqa: E402
from companion.project.paths import Project  # noqa: E402


def row(ours: float, peer: float, **change) -> dict:
    """What a worker says of one contest."""
    values = {"mine": ours, "theirs": peer}
    return {"task": "a task", "setting": "here", "threads": 2, "of_memory": False, "values": values, **change}


def test_a_ratio_is_of_one_run_and_its_spread_over_runs():
    [made] = table.summary([row(1.0, 4.0), row(2.0, 2.0), row(1.0, 10.0)]).to_dict("records")
    assert (made[table.RATIO], made[table.LEAST], made[table.GREATEST], made[table.RUNS]) == (4.0, 1.0, 10.0, 3)
    assert (made[table.TAKES], made[table.UNIT], made[table.OURS], made[table.BESIDE]) == (1.0, "s", "mine", "theirs")


def test_settings_are_apart_and_memory_is_in_megabytes():
    rows = table.summary([row(1.0, 2.0), row(1.0, 3.0, setting="there"), row(5.0, 50.0, of_memory=True)])
    assert rows[table.RATIO].tolist() == [2.0, 3.0, 10.0]
    assert rows[table.UNIT].tolist() == ["s", "s", "MB"]


def test_work_divides_the_time():
    calls = {"once": 0, "many": 0}

    def run(name: str):
        calls[name] += 1

    runs = {name: lambda name=name: run(name) for name in calls}
    contest = contests.Contest("a task", "here", runs, {"many": 1e6})
    times = contests.seconds(contest)
    assert 0 < times["many"] < times["once"] / 1e3
    assert min(calls.values()) > contests.TURNS


HELD = """
from benchmarks import contests
print(contests.megabytes(lambda: None), contests.megabytes(lambda: bytearray(b"1") * 400_000_000))
"""


def test_memory_is_what_was_held_at_once():
    """By a process of its own, as a worker is, begun by a small one: what began it counts as held before."""
    shell = ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, HELD]
    told = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=True)
    nothing, held = map(float, told.stdout.split())
    assert nothing < 10
    assert 350 < held < 450


def test_what_is_kept_replaces_its_own_tasks_only(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    monkeypatch.setattr(table, "origin", lambda root: {"measured": "today"})
    table.keep(table.summary([row(1.0, 2.0), row(1.0, 3.0, task="another")]), tmp_path)
    table.keep(table.summary([row(1.0, 5.0)]), tmp_path)
    kept = pd.read_csv(tmp_path / table.TABLE)
    assert dict(zip(kept[table.WHAT], kept[table.RATIO], strict=True)) == {"another": 3.0, "a task": 5.0}
    assert sorted(pd.read_csv(tmp_path / table.ORIGIN)[table.WHAT]) == ["a task", "another"]


def test_the_book_shows_at_least_five_runs_of_every_task_with_its_origin():
    rows, origins = pd.read_csv(ROOT / table.TABLE), pd.read_csv(ROOT / table.ORIGIN)
    assert list(rows.columns) == table.COLUMNS
    assert rows[table.RUNS].min() >= 5
    assert ((rows[table.LEAST] <= rows[table.RATIO]) & (rows[table.RATIO] <= rows[table.GREATEST])).all()
    assert set(origins[table.WHAT]) == set(rows[table.WHAT])
    assert origins.notna().all(axis=None)


def test_the_page_has_a_table_of_every_task():
    named = re.findall(r"^:of: what = (.+)$", (ROOT / "book/benchmarks.md").read_text(encoding="utf-8"), re.MULTILINE)
    tasks = set(pd.read_csv(ROOT / table.TABLE)[table.WHAT])
    assert {task for task in tasks if sum(task.startswith(name) for name in named) != 1} == set()


def test_a_mistyped_name_is_told_with_those_there_are():
    command = [sys.executable, "-m", "benchmarks", "steaming"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "steaming" in told.stderr
    assert all(name in told.stderr for name in MODULES)


@pytest.mark.parametrize("module", ["single_location"])
def test_a_module_gives_the_rows_that_the_book_has(module):
    command = [sys.executable, "-m", "benchmarks", module, "--worker", "2", "{}", "time"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    made = table.summary([json.loads(line) for line in said])
    same = [table.WHAT, table.AT, table.CORES, table.OURS, table.BESIDE]
    kept = pd.read_csv(ROOT / table.TABLE)
    kept = kept[kept[table.WHAT].isin(made[table.WHAT])]
    assert kept[same].to_dict("records") == made[same].to_dict("records")
    assert (made[table.RATIO] > 0).all()


def test_what_the_largest_sizes_cost_is_of_the_sizes_of_today():
    """Each kept row is of a notebook that is there, at sizes as they are now, and says how it ended."""
    project, rows = Project(ROOT), full.read()
    assert list(rows) == [name for name in project.notebooks() if name in rows]
    for name, row in rows.items():
        assert row["larger than published"] == full.larger(project, name), (
            f"run `python -m benchmarks.full {name}` again"
        )
        assert re.fullmatch(r"\d+ figures, \d+ claims hold|not within [\d.]+ hours", row["ended"]), name
        assert float(row["core minutes"]) > 0


def test_changes_are_told_with_what_is_published():
    published = {"runs": 3, "lengths": [1, 2], "taus": [0.5]}
    larger = {"runs": 10_000, "lengths": [1, 2, 4, 8], "taus": [0.5]}
    assert full.changes(larger, published) == ["runs 10,000 (3)", "lengths 4 from 1 to 8 (1 and 2)"]
