"""The published experiment: its exact numbers are exact, and its tracked runs what their records say."""

import inspect
from hashlib import sha256

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from chapters.published_experiment import runs
from chapters.published_experiment.minima import alignment, least_curvature, linear_square, settle
from chapters.published_experiment.optima import exact
from chapters.published_experiment.pieces import pieces
from chapters.published_experiment.protocol import LAWS, keys, law_of
from chapters.published_experiment.published_optimum import ends_of
from chapters.published_experiment.ridge import average
from chapters.published_experiment.runs import DATA, Plan, Schedule, short_frame, tracked, train
from companion.pieces import FOLDER
from lib.attention import Attention
from lib.icl import published_task

NAME = "published_experiment"
pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def ridge(float64):
    return average([20], 1000, key=jr.key(0))


def test_tracked_runs_are_what_their_records_say():
    """Of the published length, and not edited since."""
    assert {activation for activation, _, _ in tracked()} == {"softmax", "linear"}
    assert all(run.steps.max() == 300_000 for run in tracked().values())
    for path in DATA.glob("*.csv"):
        assert sha256(path.read_bytes()).hexdigest() in path.with_suffix(".json").read_text(encoding="utf-8")


def test_optima_lie_between_ridge_and_answering_zero(ridge):
    optima = exact([20])
    for law in LAWS:
        assert ridge[law, 20].mean < optima[law, "linear", 20] < optima[law, "softmax", 20] < 1.1  # τ_w² tr S_q + s²


def test_ridge_is_ridge(ridge):
    """The mean square of the ridge estimate on prompts drawn here, in NumPy."""
    rng = np.random.default_rng(0)
    assert list(ridge) == [(law, 20) for law in LAWS]
    for (law, length), estimate in ridge.items():
        task = published_task(law == "as published")
        root = np.linalg.cholesky(np.asarray(task.cov, float))
        x = rng.normal(size=(4000, length, 5)) @ root.T
        w = rng.normal(size=(4000, 5)) / np.sqrt(5)
        y = np.einsum("nld,nd->nl", x, w) + np.sqrt(0.1) * rng.normal(size=(4000, length))
        gram = np.einsum("nld,nle->nde", x, x) + 0.5 * np.eye(5)
        miss = np.linalg.solve(gram, np.einsum("nld,nl->nd", x, y)[..., None])[..., 0] - w
        errors = 0.1 + np.einsum("nd,de,ne->n", miss, np.asarray(task.query_cov, float), miss)
        error = np.hypot(errors.std() / np.sqrt(len(errors)), estimate.std_error)
        assert abs(errors.mean() - estimate.mean) < 4 * error


def test_ends_are_means_over_the_last_fifth():
    short = short_frame(train(Plan("corrected", [20], 2, Schedule(500, 0.05, 8)), key=jr.key(1)))
    ends = ends_of(short)
    assert len(ends) == 4
    run = short[(short["activation"] == "linear") & (short["start"] == 1)]
    mine = ends[(ends["activation"] == "linear") & (ends["start"] == 1)]
    np.testing.assert_allclose(mine["end"].iloc[0], run["loss"].tail(4).mean(), rtol=1e-12)


def test_pieces_are_the_trainings_of_the_chapter(smoke_parameters):
    values = smoke_parameters(NAME)
    mine = {name: values[name] for name in inspect.signature(pieces).parameters}
    assert list(pieces(**mine)) == ["softmax-20", "linear-20"]


def test_pieces_computed_elsewhere_are_those_of_the_notebook(monkeypatch, tmp_path):
    """A piece, computed by its name from the parameters, is what `train` computes in place, and is read by it."""
    schedule = {"sgd_steps": 500, "sgd_step_size": 0.05, "sgd_batch": 8}
    mine = pieces(seed=1, covariance_bug=True, sgd_lengths=[20], sgd_runs=2, **schedule)
    plan = Plan(law_of(True), [20], 2, Schedule(*schedule.values()))
    here = train(plan, key=keys(1).runs)
    for name, compute in mine.items():
        activation, length = name.split("-")
        arrays = compute()
        np.testing.assert_array_equal(arrays["loss"], here[activation, int(length)].loss)
        np.savez(tmp_path / f"{name}.npz", **{field: -value for field, value in arrays.items()})
    monkeypatch.setenv(FOLDER, str(tmp_path))
    for head, training in train(plan, key=keys(1).runs).items():
        np.testing.assert_array_equal(training.loss, -here[head].loss)
        np.testing.assert_array_equal(training.loss_std_error, -here[head].loss_std_error)


def test_parameters_out_of_range_are_refused(run_cells):
    for wrong in ({"sgd_steps": 550}, {"lengths": []}, {"starts": 4}, {"covariance_bug": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            run_cells(NAME, **wrong)


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
    monkeypatch.setattr(runs, "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no training run"):
        tracked()
