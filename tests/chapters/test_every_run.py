"""Every run of the published protocol: tracked runs start as they would today, and a killed run continues."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.progress import Progress

from chapters.published_experiment import every_run
from chapters.published_experiment.data import every_run as command
from chapters.published_experiment.every_run import (
    COLUMNS,
    RUN,
    Run,
    joined,
    read_every_run,
    rows_of,
    runs_in,
    swapped_fraction,
)
from chapters.published_experiment.figures import every_length
from chapters.published_experiment.head_points import ALIGNED_ENTRIES, SWAPPED_ENTRIES
from chapters.published_experiment.protocol import CLOSE, LAWS, POOLS, published_task
from chapters.second_minima.landscape import head_at
from companion.authoring.checkpoints import Checkpoint
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project

pytestmark = pytest.mark.usefixtures("float64")

FIRST = Run("corrected", "linear", 10, 0)
# The pages on the runs of the published protocol.
PAGES = ("published_experiment", "second_minima")


def short(run, folder, steps=20, every=5):
    """Return the trajectory of a run with few steps."""
    checkpoint = Checkpoint(folder / f"{run.name}.npz", run.name)
    return every_run.training(run, checkpoint=checkpoint, steps=steps, every=every)


def test_there_are_as_many_runs_as_the_protocol_has():
    """76 first starts, and seven more of each head and law at ten lengths."""
    runs = every_run.every_run()
    assert len(runs) == len(set(runs)) == 76 + 7 * 10 * 2 * 2
    assert [run.start for run in runs[:76]] == [0] * 76
    assert {(run.law, run.activation) for run in runs} == {(law, pool) for law in LAWS for pool in POOLS}


def test_tracked_tables_are_of_the_same_runs():
    """No run is there twice, each is as long as published, and each head has the mean square of its row."""
    tables = read_every_run()
    runs = runs_in(tables)
    assert set() < runs <= set(every_run.every_run())
    assert len(tables["ends"]) == len(tables["heads"]) == len(runs)
    ends = tables["curves"].groupby(list(RUN))["step"].max()
    assert set(ends.index) == runs
    assert set(ends) == {300_000}
    heads = tables["heads"].set_index(list(RUN))
    for _, row in tables["ends"].query("activation == 'linear'").iterrows():
        head = head_at(heads.loc[tuple(row[name] for name in RUN)].to_numpy(float))
        risk = 2 * published_task(LAWS[row["law"]]).linear_head_risk(head, row["length"])
        assert float(risk) == pytest.approx(row["risk"], rel=1e-4)


@pytest.mark.parametrize("activation", POOLS)
def test_a_tracked_run_begins_as_it_would_today(activation, tmp_path):
    """Its first two thousand steps: equal on the machine that made it, elsewhere up to single-precision rounding."""
    run = Run("corrected", activation, 10, 0)
    curve = every_run.curve_of(run, short(run, tmp_path, steps=2000, every=1000))
    tracked = read_every_run()["curves"].query(
        "law == @run.law and activation == @activation and length == 10 and start == 0"
    )
    pd.testing.assert_frame_equal(curve, tracked.head(2).reset_index(drop=True), check_dtype=False, rtol=1e-4)


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from chapters.published_experiment.every_run import Checkpoint, Run, training
folder, times, run = Path(sys.argv[1]), int(sys.argv[2]), Run("corrected", "linear", 10, 0)

def train(name):
    checkpoint = Checkpoint(folder / name, "a run that is killed")
    training(run, checkpoint=checkpoint, steps=200 * times, every=5)

def saved():
    place = folder / "killed.npz"
    return place.stat().st_mtime_ns if place.exists() else 0

kills, chance = 0, random.Random(0)
while kills < times:  # each child is a separate process, started before JAX
    before, child = saved(), os.fork()
    if not child:
        train("killed.npz")
        os._exit(0)
    while saved() == before:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.08))
    os.kill(child, signal.SIGKILL)
    kills += os.waitpid(child, 0)[1] == signal.SIGKILL
    print(kills, flush=True)
for name in ("killed.npz", "whole.npz"):
    train(name)
"""


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.daily)])
def test_a_killed_run_ends_at_the_same_bytes(tmp_path, times):
    """It is killed by SIGKILL at random moments. The later processes read the programs that the first compiles."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "xla"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    completed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(times)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **cache},
    )
    assert completed.stdout.split() == list(map(str, range(1, times + 1)))
    with np.load(tmp_path / "killed.npz") as killed, np.load(tmp_path / "whole.npz") as whole:
        assert killed.files == whole.files
        for name in whole.files:
            np.testing.assert_array_equal(killed[name], whole[name])


def test_runs_are_kept_in_order_and_found_again(tmp_path):
    """The order of the tables does not depend on which run ended first; a missing table is empty."""
    runs = [FIRST, Run("as published", "linear", 10, 1), Run("corrected", "linear", 20, 0)]
    tables = read_every_run(tmp_path)
    assert runs_in(tables) == set()
    for run in reversed(runs):
        tables = joined(tables, rows_of(run, short(run, tmp_path)))
    assert list(map(Run._make, tables["ends"][list(RUN)].itertuples(index=False))) == [runs[0], runs[2], runs[1]]
    for name, frame in tables.items():
        assert list(frame) == list(COLUMNS[name])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    assert runs_in(read_every_run(tmp_path)) == set(runs)
    assert len(tables["curves"]) == 3 * 4


def test_the_command_computes_what_is_not_there(monkeypatch, tmp_path, capsys):
    """Runs that are in the tables, or that another process computes, are not trained again."""
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "read_every_run", lambda: read_every_run(tmp_path))
    trained = []

    def training(run, *, checkpoint, tell):
        trained.append(run)
        history = short(run, tmp_path)
        tell(2, 1.0)
        checkpoint.path.touch()
        return history

    monkeypatch.setattr(command, "training", training)
    with Progress(disable=True) as bars:
        assert command._computed_here(FIRST, tmp_path / "here", {"made": "today"}, bars)
        assert not command._computed_here(FIRST, tmp_path / "here", {"made": "today"}, bars)
        other = Run("corrected", "linear", 20, 0)
        lock = tmp_path / "here" / f"published_experiment-every-{other.name}.lock"
        lock.touch()
        with command.atomic.if_free(lock) as free:
            assert free
            assert not command._computed_here(other, tmp_path / "here", {"made": "today"}, bars)
    assert trained == [FIRST]
    monkeypatch.setattr(sys, "argv", ["every_run", "--list", FIRST.name, other.name])
    command.main()
    printed = capsys.readouterr().out
    assert f"✓ {FIRST.name}\n  {other.name}\n1 of 2 runs are there" in printed
    monkeypatch.setattr(sys, "argv", ["every_run", "linear-corrected-10-00"])
    with pytest.raises(SystemExit):
        command.main()
    assert "Did you mean" in capsys.readouterr().err


def test_the_swapped_fraction_is_one_for_swapped_heads_and_zero_for_aligned_ones():
    aligned, swapped = np.zeros(36), np.zeros(36)
    aligned[ALIGNED_ENTRIES], swapped[SWAPPED_ENTRIES] = 0.7, 0.2
    assert (swapped_fraction(aligned), swapped_fraction(swapped)) == (0.0, 1.0)
    assert 0 < swapped_fraction(aligned + swapped) < 1


def test_no_run_is_near_the_limit_of_swapped_runs():
    """The page says that the counts do not depend on the exact limit."""
    fractions = read_every_run()["ends"]["wrong_way"]
    assert not fractions.between(every_length.SHARE / 3, every_length.SHARE * 3).any()


def test_every_length_takes_the_runs_that_there_are():
    """The table has the runs at the lengths with a known optimum; statements give the counts at each length."""
    frame = read_every_run()["ends"]
    frame = frame[frame["length"] == 10]
    # a stand-in for the exact optimum, a little below the best run
    best = {
        (law, its, 10): 0.999 * frame.query("law == @law and activation == @its")["risk"].min()
        for law in LAWS
        for its in POOLS
    }
    numbers = every_length.numbers(best, {}, {"ends": read_every_run()["ends"]})
    assert set(numbers.table.frame["length"]) == {10}
    assert numbers.table.frame["start"].notna().sum() == len(frame)
    counts = [claim for claim in numbers.made if "not all end swapped (" in claim.statement]
    assert [" at 10 tokens;" in claim.statement for claim in counts] == [True] * 4
    for claim in counts:
        assert (claim.successes, claim.trials) == (claim.measured, len(frame) / 4)
        assert f"({claim.successes} of {claim.trials} at 10" in claim.statement
    names = {f"published-experiment-{name}" for name in ("every-run", "runs-falling", "wrong-way-above")}
    groups = [claim for claim in numbers.made if claim.id in names]
    assert sum(claim.successes for claim in groups) == len(frame)
    assert [claim.trials for claim in groups] == 3 * [len(frame)]


def test_runs_rest_at_the_optimum_still_fall_or_have_a_swapped_part():
    """The headline of `every_length`, on the published table: three groups, which the mean square keeps apart."""
    project = Project(Path(__file__).parents[2])
    table = pd.read_csv(project.published / "published_experiment/every_length.csv")
    runs = table[table["predictor"] != "ridge"]
    ratios = runs["mean_square"] / runs["optimum"]
    swapped, falling = runs["way"] == every_length.WRONG, runs["state"] == every_length.FALLS
    groups = {
        "every-run": ratios[~swapped & ~falling],
        "runs-falling": ratios[~swapped & falling],
        "wrong-way-above": ratios[swapped],
    }
    assert (groups["every-run"] - 1).abs().max() < CLOSE
    assert 1 < groups["runs-falling"].min() <= groups["runs-falling"].max() < groups["wrong-way-above"].min()
    claims = store.read_record(project.published / "published_experiment", "every_length").claims
    counts = {claim.id.removeprefix("published-experiment-"): (claim.successes, claim.trials) for claim in claims}
    assert {name: counts[name] for name in groups} == {name: (len(group), len(runs)) for name, group in groups.items()}


@pytest.mark.parametrize("count", ["trapped", "wrong-way", "cure", "no-cure"])
def test_prose_gives_counts_of_starts_with_their_totals(count):
    """A count without its total says little: both pages quote such claims by `claim-count`, or only their mark."""
    project = Project(Path(__file__).parents[2])
    cells = [cell for page in PAGES for cell in Notebook.named(project, page).cells]
    prose = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    ratios = {"wrong-way-above", "wrong-way-round", "wrong-way-saddle", "cure-heads-below"}
    quoted = re.findall(rf"\{{([\w-]+)\}}`published-experiment-({count}-[\w-]+)`", prose)
    assert any(role == "claim-count" for role, _ in quoted)
    assert {role for role, name in quoted if name not in ratios} <= {"claim-count", "claim-quiet"}


def test_the_page_of_new_results_names_the_total_of_its_count():
    """It shows the count of softmax starts with its total, which is the parameter of the published figure."""
    project = Project(Path(__file__).parents[2])
    text = " ".join((project.book / "new_results.md").read_text(encoding="utf-8").split())
    assert "{claim-count}`published-experiment-trapped-softmax` random starts of softmax" in text
    record = store.read_record(project.published / "second_minima", "two_minima")
    (claim,) = [claim for claim in record.claims if claim.id == "published-experiment-trapped-softmax"]
    assert claim.trials == record.parameters["softmax_starts"]
