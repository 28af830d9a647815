"""The published experiment: its claims hold and can fail, its exact numbers are exact, its pictures can be drawn."""

import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion.house import House
from companion.notebooks import Notebook
from companion.parameters import check, resolve
from companion.publishing import caption_and_alt
from lib import plotting
from lib.experiments.published_experiment import DATA, ends_of, long_runs, published_experiment
from lib.icl import published_task
from lib.plotting.style import style

CLAIMS = tuple(
    f"published-experiment-{name}"
    for name in (
        "long-softmax",
        "long-linear",
        "above-bayes",
        "one-head",
        "no-run-below",
        "flaw",
        "second-minimum-softmax",
        "second-minimum-linear",
        "wrong-way-round",
        "trapped",
        "trapped-softmax",
    )
)
FIGURES = ("published_optimum", "published_training", "two_data_laws", "two_minima")


@pytest.fixture(scope="module")
def smoke():
    house = House(Path(__file__).resolve().parents[2])
    notebook = Notebook.named(house, "published_experiment")
    return check(notebook, resolve(house, notebook, "smoke"))


@pytest.fixture(scope="module")
def result(smoke):
    return published_experiment(**smoke)


def test_the_chapter_makes_these_claims_and_figures(result):
    assert tuple(claim.id for claim in result.claims) == CLAIMS
    assert tuple(result.tables) == FIGURES


def test_claims_hold_and_fail_under_their_alternatives(result):
    for claim in result.claims:
        assert claim.holds, claim
        assert not replace(claim, measured=claim.alternative.measured).holds, claim


def test_tracked_runs_are_what_their_records_say():
    """Of the published length, and not edited since."""
    assert set(long_runs()["activation"]) == {"softmax", "linear"}
    assert (long_runs().groupby(["activation", "length", "start"])["step"].max() == 300_000).all()
    for path in DATA.glob("*.csv"):
        assert sha256(path.read_bytes()).hexdigest() in path.with_suffix(".json").read_text(encoding="utf-8")


def test_optima_lie_between_ridge_and_answering_zero(result):
    frame = result.tables["two_data_laws"].frame
    assert frame["softmax"].max() < 1.1  # τ_w² tr S_q + s², under both laws
    for law, mine in frame.groupby("law"):
        ridge = mine.dropna(subset="bayes").set_index("length")["bayes"]
        best = mine.dropna(subset="linear").set_index("length")["linear"]
        assert (best.loc[ridge.index] > ridge).all(), law


def test_ridge_is_ridge(result):
    """The mean square of the ridge estimate on prompts drawn here, in NumPy."""
    frame = result.tables["two_data_laws"].frame.dropna(subset="bayes")
    rng = np.random.default_rng(0)
    for _, row in frame.iterrows():
        with jax.enable_x64(True):
            task = published_task(row["law"] == "as published")
        length = int(row["length"])
        root = np.linalg.cholesky(np.asarray(task.cov, float))
        x = rng.normal(size=(4000, length, 5)) @ root.T
        w = rng.normal(size=(4000, 5)) / np.sqrt(5)
        y = np.einsum("nld,nd->nl", x, w) + np.sqrt(0.1) * rng.normal(size=(4000, length))
        gram = np.einsum("nld,nle->nde", x, x) + 0.5 * np.eye(5)
        miss = np.linalg.solve(gram, np.einsum("nld,nl->nd", x, y)[..., None])[..., 0] - w
        errors = 0.1 + np.einsum("nd,de,ne->n", miss, np.asarray(task.query_cov, float), miss)
        error = np.hypot(errors.std() / np.sqrt(len(errors)), row["bayes_std_error"])
        assert abs(errors.mean() - row["bayes"]) < 4 * error


def test_ends_are_means_over_the_last_fifth(result):
    short = result.tables["published_training"].frame.dropna(subset="loss")
    ends = ends_of(short)
    run = short[(short["activation"] == "linear") & (short["start"] == 1) & (short["length"] == 20)]
    mine = ends[(ends["activation"] == "linear") & (ends["start"] == 1) & (ends["length"] == 20)]
    np.testing.assert_allclose(mine["end"].iloc[0], run["loss"].tail(4).mean(), rtol=1e-12)


def test_no_tracked_run_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[published_experiment.__module__], "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no training run"):
        long_runs()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_from_its_own_table(result, name, theme):
    caption, alt = caption_and_alt(getattr(plotting, name))
    assert min(len(caption), len(alt)) > 80
    with style(theme):
        figure = getattr(plotting, name)(result.of(name))
        figure.canvas.draw()
        plt.close(figure)
    assert all(axes.has_data() for axes in figure.axes)
