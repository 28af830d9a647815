"""The benchmarks: how the table of ratios is computed, and that the published table fits the current contests."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import contests, full, gpu_ratio, page, table  # noqa: E402
from benchmarks.__main__ import MODULES  # noqa: E402
from companion.project.notebooks import Notebook  # noqa: E402
from companion.project.parameters import resolve  # noqa: E402
from companion.project.paths import DEFAULT_PROFILE, Project  # noqa: E402


def row(ours: float, peer: float, **change) -> dict:
    """Return the output of a worker for one contest."""
    values = {"mine": ours, "theirs": peer}
    return {"task": "a task", "setting": "here", "threads": 2, "of_memory": False, "values": values, **change}


def test_ratios_are_summarised_over_runs_with_their_range():
    [summary] = table.summary([row(1.0, 4.0), row(2.0, 2.0), row(1.0, 10.0)]).to_dict("records")
    assert (summary[table.RATIO], summary[table.LEAST], summary[table.GREATEST], summary[table.RUNS]) == (4, 1, 10, 3)
    assert (summary[table.TAKES], summary[table.UNIT]) == (1.0, "s")
    assert (summary[table.OURS], summary[table.BESIDE]) == ("mine", "theirs")


def test_settings_are_separate_rows_and_memory_is_in_megabytes():
    rows = table.summary([row(1.0, 2.0), row(1.0, 3.0, setting="there"), row(5.0, 50.0, of_memory=True)])
    assert rows[table.RATIO].tolist() == [2.0, 3.0, 10.0]
    assert rows[table.UNIT].tolist() == ["s", "s", "MB"]


def test_times_are_divided_by_the_amount_of_work():
    calls = {"once": 0, "many": 0}

    def run(name: str):
        calls[name] += 1

    runs = {name: lambda name=name: run(name) for name in calls}
    contest = contests.Contest("a task", "here", runs, {"many": 1e6})
    times = contests.seconds(contest)
    assert 0 < times["many"] < times["once"] / 1e3
    assert min(calls.values()) > contests.TURNS


MEASURE_MEMORY = """
from benchmarks import contests
print(contests.megabytes(lambda: None), contests.megabytes(lambda: bytearray(b"1") * 400_000_000))
"""


def test_memory_is_the_peak_above_the_start():
    """A small process starts the measuring one, as for a worker: the parent's memory counts as held at the start."""
    shell = ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, MEASURE_MEMORY]
    finished = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=True)
    nothing, held = map(float, finished.stdout.split())
    assert nothing < 10
    assert 350 < held < 450


def test_saving_replaces_only_the_measured_tasks(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    monkeypatch.setattr(table, "origin", lambda root: {"measured": "today"})
    table.keep(table.summary([row(1.0, 2.0), row(1.0, 3.0, task="another")]), tmp_path)
    table.keep(table.summary([row(1.0, 5.0)]), tmp_path)
    saved = pd.read_csv(tmp_path / table.TABLE)
    assert dict(zip(saved[table.WHAT], saved[table.RATIO], strict=True)) == {"another": 3.0, "a task": 5.0}
    assert sorted(pd.read_csv(tmp_path / table.ORIGIN)[table.WHAT]) == ["a task", "another"]


def test_published_table_has_five_runs_and_an_origin_for_every_task():
    rows, origins = pd.read_csv(ROOT / table.TABLE), pd.read_csv(ROOT / table.ORIGIN)
    assert list(rows.columns) == table.COLUMNS
    assert rows[table.RUNS].min() >= 5
    assert ((rows[table.LEAST] <= rows[table.RATIO]) & (rows[table.RATIO] <= rows[table.GREATEST])).all()
    assert set(origins[table.WHAT]) == set(rows[table.WHAT])
    assert origins.notna().all(axis=None)


def test_page_includes_every_table_once_as_it_is_stored():
    included = re.findall(r"^```\{include\} (.+)$", (ROOT / "book/benchmarks.md").read_text(encoding="utf-8"), re.M)
    tables = page.tables(ROOT)
    assert sorted(f"book/{path}" for path in included) == sorted(map(str, tables))
    assert {path: (ROOT / path).read_text(encoding="utf-8") for path in tables} == tables, "run `-m benchmarks.page`"
    tasks = set(pd.read_csv(ROOT / table.TABLE)[table.WHAT])
    assert {task for task in tasks if sum(task.startswith(section) for section in page.SECTIONS) != 1} == set()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        ("0.00117", "s", "1.17 ms"),
        ("8.52e-06", "s", "8.52 µs"),
        ("27.0", "s", "27 s"),
        ("1e-12", "s", "0.001 ns"),
        ("1234", "MB", "1,234 MB"),
    ],
)
def test_seconds_have_a_prefix_and_other_units_none(value, unit, text):
    assert page.quantity_of(value, unit) == text


def test_ratios_are_shown_side_by_side():
    common = {"what": "a title", "least": "1", "greatest": "2"}
    rows = [
        {"at": "here", "peer": "a", "ratio": "3550000.0", **common},
        {"at": "here", "peer": "b*", "ratio": "0.286", **common},
        {"at": "there", "peer": "a", "ratio": "2.0", **common},
    ]
    assert page.ratios(rows, "what", ["at"], "peer").splitlines() == [
        "**a title**",
        "",
        r"| at | a | b\* |",
        "| --- | --- | --- |",
        "| here | 3,550,000× (1&nbsp;to&nbsp;2) | 0.286× (1&nbsp;to&nbsp;2) |",
        "| there | 2× (1&nbsp;to&nbsp;2) | – |",
    ]


def test_values_common_to_all_rows_are_shown_once():
    rows = [{"what": what, "day": day, "at": "home"} for what, day in (("x", "1"), ("y", "1"), ("z", "2"))]
    above, _, body = page.short(rows, ["day", "at"], joined="what").partition("\n\n")
    assert above == "at home"
    assert body.splitlines()[2:] == ["| 1 | x; y |", "| 2 | z |"]


def test_an_unknown_module_is_refused_with_a_list_of_all():
    command = [sys.executable, "-m", "benchmarks", "steaming"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert "steaming" in finished.stderr
    assert all(name in finished.stderr for name in MODULES)


@pytest.mark.parametrize("module", ["single_location"])
def test_a_module_measures_the_published_rows(module):
    command = [sys.executable, "-m", "benchmarks", module, "--worker", "2", "{}", "time"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    measured = table.summary([json.loads(line) for line in lines])
    columns = [table.WHAT, table.AT, table.CORES, table.OURS, table.BESIDE]
    published = pd.read_csv(ROOT / table.TABLE)
    published = published[published[table.WHAT].isin(measured[table.WHAT])]
    assert published[columns].to_dict("records") == measured[columns].to_dict("records")
    assert (measured[table.RATIO] > 0).all()


def test_costs_of_the_full_profile_are_current():
    """Each row belongs to an existing notebook, was measured at its current sizes, and has an outcome."""
    project, rows = Project(ROOT), full.read()
    assert list(rows) == [name for name in project.notebooks() if name in rows]
    for name, row in rows.items():
        assert row["larger than published"] == full.larger(project, name), (
            f"run `python -m benchmarks.full {name}` again"
        )
        assert re.fullmatch(r"\d+ figures, \d+ claims hold|not within [\d.]+ hours", row["ended"]), name
        assert float(row["core minutes"]) > 0
        assert re.fullmatch(r"[0-9a-f]{12}", row["key"]), name


@pytest.mark.parametrize(
    ("code", "seconds", "outcome"),
    [("pass", 60, 0), ("raise SystemExit(3)", 60, 3), ("import time; time.sleep(60)", 0.5, full.Stop.BY_CLOCK)],
)
def test_a_run_is_ended_by_the_clock(code, seconds, outcome):
    ended, spent = full.run([sys.executable, "-c", code], seconds)
    assert ended == outcome
    assert spent.core_seconds > 0
    assert spent.gigabytes > 0


def test_the_time_of_a_stopped_run_is_added(tmp_path, monkeypatch):
    """The second run is the rest of the first; the row has the sum of both, and the larger memory."""
    project = Project(ROOT)
    name = project.notebooks()[0]
    monkeypatch.setattr(Project, "build", lambda *_: SimpleNamespace(folder=tmp_path, figures=tmp_path))
    monkeypatch.setattr(full, "how_it_ended", lambda *_: "2 figures, 2 claims hold")
    runs = iter([(full.Stop.BY_HAND, full.Spent(60.0, 3.0)), (0, full.Spent(30.0, 1.0))])
    monkeypatch.setattr(full, "run", lambda *_: next(runs))
    with pytest.raises(KeyboardInterrupt):
        full.measured(project, name, 60)
    row = full.measured(project, name, 60)
    assert (row["core minutes"], row["memory"]) == ("1.5", "3.0 GB")
    assert list(tmp_path.rglob("*.json")) == []


def test_larger_parameters_are_shown_with_the_published_ones():
    published = {"runs": 3, "lengths": [1, 2], "taus": [0.5]}
    larger = {"runs": 10_000, "lengths": [1, 2, 4, 8], "taus": [0.5]}
    assert full.changes(larger, published) == ["runs 10,000 (3)", "lengths 4 from 1 to 8 (1 and 2)"]


def test_trainings_on_a_gpu_have_the_sizes_of_the_profiles():
    project = Project(ROOT)
    for name, parameters in gpu_ratio.PARAMETERS.items():
        default = resolve(project, Notebook.named(project, name), DEFAULT_PROFILE)
        assert {key: default[key] for key in parameters} == parameters
    heads, paths = (resolve(project, Notebook.named(project, name), "full") for name in gpu_ratio.PARAMETERS)
    assert {length for _, length in gpu_ratio.HEADS} <= set(heads["sgd_lengths"])
    sizes = (gpu_ratio.STARTS, gpu_ratio.BATCH, gpu_ratio.STEP_SIZE)
    assert sizes == (heads["sgd_runs"], heads["sgd_batch"], heads["sgd_step_size"])
    assert list(gpu_ratio.LENGTHS) == paths["lengths"]
    assert (paths["episodes"], paths["runs"]) == (gpu_ratio.EPISODES, gpu_ratio.RUNS)


def test_a_gpu_is_compared_with_the_fastest_way_of_two_cores():
    way = {"notebook": "a", "training": "b", "runs": 4}
    cores = [{**way, "seconds": [8.0, 9.0, 7.0]}, {**way, "seconds": [2.0, 6.0, 4.0]}]
    [ratio] = gpu_ratio.ratios({"cpu": cores, "gpu": [{**way, "seconds": [2.0, 2.0, 2.0]}]})
    assert (ratio["two cores"], ratio["ratio"], ratio["least"], ratio["greatest"]) == ("4", "2", "1", "3")


def test_differences_on_a_gpu_are_in_standard_errors_where_there_are_any():
    old = {"loss": np.array([1.0, 2.0]), "loss_std_error": np.array([0.1, 0.2]), "heads": np.array([4.0, 0.0])}
    new = {**old, "loss": np.array([1.0, 1.0]), "heads": np.array([4.0, 4e-6])}
    assert gpu_ratio.movement(old, new, "loss") == pytest.approx(1.0)
    assert gpu_ratio.movement(old, new, "heads") == pytest.approx(1.0)
    assert gpu_ratio.agreement(old, new)["numbers"] == "4"


def test_published_results_of_a_gpu_are_within_tolerances():
    """With equal prompts they agree to the tolerance of published numbers; with other prompts, statistically."""
    times, agreement = pd.read_csv(ROOT / gpu_ratio.TIMES), pd.read_csv(ROOT / gpu_ratio.AGREEMENT)
    assert set(times["notebook"]) == set(agreement["notebook"]) == set(gpu_ratio.PARAMETERS)
    assert ((times["least"] <= times["ratio"]) & (times["ratio"] <= times["greatest"])).all()
    assert pd.read_csv(ROOT / gpu_ratio.ORIGIN).notna().all(axis=None)
    assert (agreement["movement"] < 1).all()
