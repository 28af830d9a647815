"""The published experiment: its exact numbers are exact, and its tracked runs what their records say."""

import sys
from hashlib import sha256

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from lib.attention import Attention
from lib.experiments.published_experiment import (
    DATA,
    LAWS,
    Runs,
    Schedule,
    alignment,
    bayes_frame,
    ends_of,
    exact_optima,
    least_curvature,
    linear_square,
    long_runs,
    published_experiment,
    settle,
    shards,
    short_runs,
)
from lib.icl import published_task

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def ridge(float64):
    return bayes_frame([20], 1000, key=jr.key(0))


def test_tracked_runs_are_what_their_records_say():
    """Of the published length, and not edited since."""
    assert set(long_runs()["activation"]) == {"softmax", "linear"}
    assert (long_runs().groupby(["activation", "length", "start"])["step"].max() == 300_000).all()
    for path in DATA.glob("*.csv"):
        assert sha256(path.read_bytes()).hexdigest() in path.with_suffix(".json").read_text(encoding="utf-8")


def test_optima_lie_between_ridge_and_answering_zero(ridge):
    optima = exact_optima([20])
    for law in LAWS:
        (bayes,) = ridge.query("law == @law")["bayes"]
        assert bayes < optima[law, "linear", 20] < optima[law, "softmax", 20] < 1.1  # τ_w² tr S_q + s²


def test_ridge_is_ridge(ridge):
    """The mean square of the ridge estimate on prompts drawn here, in NumPy."""
    rng = np.random.default_rng(0)
    for _, row in ridge.iterrows():
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


def test_ends_are_means_over_the_last_fifth():
    short = short_runs(Runs("corrected", [20], 2, Schedule(500, 0.05, 8)), key=jr.key(1))
    ends = ends_of(short)
    assert len(ends) == 4
    run = short[(short["activation"] == "linear") & (short["start"] == 1)]
    mine = ends[(ends["activation"] == "linear") & (ends["start"] == 1)]
    np.testing.assert_allclose(mine["end"].iloc[0], run["loss"].tail(4).mean(), rtol=1e-12)


def test_shards_are_the_trainings_of_the_chapter(smoke_parameters):
    assert list(shards(**smoke_parameters("published_experiment"))) == ["softmax-20", "linear-20"]


def test_least_curvature_is_the_hessians():
    """Of linear attention, by automatic differentiation; one direction, (U, v) ↦ (cU, v/c), is flat at a minimum."""
    task, (rows, d) = published_task(), (6, 5)
    point, square = settle("linear", np.random.default_rng(3).normal(size=rows * d + rows))

    def risk(point):
        bilinear = jnp.zeros((rows, rows)).at[:, :d].set(point[:-rows].reshape(rows, d))
        return linear_square(task, Attention(bilinear, point[None, -rows:]))

    slope, hessian = jax.jit(jax.grad(risk))(point), jax.jit(jax.hessian(risk))(point)
    assert square == pytest.approx(float(risk(point)))
    assert np.abs(slope).max() < 1e-6
    scaling = np.concatenate([point[:-rows], -point[-rows:]])
    np.testing.assert_allclose(hessian @ scaling, 0.0, atol=1e-5)
    rest = np.linalg.svd(scaling[None])[2][1:]
    assert least_curvature("linear", point) == pytest.approx(np.linalg.eigvalsh(rest @ hessian @ rest.T)[0], rel=1e-4)


def test_alignment_is_a_cosine_with_the_first_principal_axis():
    axis = np.linalg.eigh(0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))))[1][:, -1]
    across = np.array([1.0, 0.0, 0.0, 0.0, -1.0]) / np.sqrt(2)  # the axis is even
    point = np.concatenate([np.ones(25), -2 * axis, axis + across, [7.0]])
    assert alignment(point) == pytest.approx(np.sqrt(0.5))


def test_no_tracked_run_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules[published_experiment.__module__], "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no training run"):
        long_runs()
