"""The published experiment: exact numbers agree with independent ones, and tracked runs with their records."""

import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
import scipy.stats

from chapters.published_experiment import runs
from chapters.published_experiment.data.make import DRAWN, OTHER_STARTS, judged, published_training
from chapters.published_experiment.optima import solve_best_mean_squares
from chapters.published_experiment.protocol import (
    LAWS,
    POOLS,
    SeparateWeights,
    law_of,
    published_head,
    published_task,
)
from chapters.published_experiment.ridge import simulate_ridge
from chapters.published_experiment.runs import (
    DATA,
    Plan,
    Schedule,
    ends_of,
    read_long_runs,
    read_runs_from_other_starts,
    short_frame,
    train_short_runs,
)
from chapters.published_experiment.tasks import tasks
from chapters.wording import listing
from companion.authoring import datasets
from companion.authoring.checkpoints import Checkpoint
from companion.authoring.tasks import FOLDER
from lib.random import named_keys
from lib.statistics import comparison_quantile

NAME = "published_experiment"
pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def ridge(float64):
    return simulate_ridge([20], 1000, key=jr.key(0))


def test_tracked_runs_are_what_their_records_say():
    """They are those that `make.py` makes, with the published number of steps, and were not edited since."""
    others = read_runs_from_other_starts()
    assert sorted(read_long_runs()) == sorted(DRAWN)
    assert sorted(others) == sorted(OTHER_STARTS)
    assert all(run.steps.max() == 300_000 for run in [*read_long_runs().values(), *others.values()])


def test_tracked_runs_begin_as_they_would_today(tmp_path):
    """The first row is equal where it was made, and elsewhere up to single-precision rounding over a thousand steps."""
    history = published_training("softmax", 20, 0, checkpoint=Checkpoint(tmp_path / "run.npz", "first row"), steps=1000)
    first = pd.read_csv(DATA / "softmax_20_0.csv", nrows=1)
    pd.testing.assert_frame_equal(judged(history, "softmax", 20).frame, first, check_dtype=False, rtol=1e-4)


def test_a_killed_run_continues_to_the_same_bytes(tmp_path, monkeypatch):
    """It is killed while it saves its second row, and started again."""

    def result(file):
        checkpoint = Checkpoint(tmp_path / file, "a short run")
        history = published_training("linear", 5, 3, checkpoint=checkpoint, steps=12, every=3)
        datasets.keep(tmp_path, file, datasets.Result(judged(history, "linear", 5), {}), {})
        return (tmp_path / f"{file}.csv").read_bytes()

    whole = result("whole")
    save, saved = Checkpoint.save, []

    def killed(self, arrays):
        if len(saved) == 2:
            raise RuntimeError("killed")
        saved.append(save(self, arrays))

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(RuntimeError, match="killed"):
        result("resumed")
    assert not (tmp_path / "resumed.csv").exists()
    steps = []
    monkeypatch.setattr(Checkpoint, "save", lambda self, arrays: steps.append(int(arrays[1])) or save(self, arrays))
    assert result("resumed") == whole
    assert steps == [3, 6, 9, 12]


def test_optima_are_between_ridge_and_the_output_zero(ridge):
    optima = solve_best_mean_squares([20])
    for law in LAWS:
        assert ridge[law, 20].mean < optima[law, "linear", 20] < optima[law, "softmax", 20] < 1.1  # τ_w² tr S_q + s²


def test_ridge_is_ridge(ridge):
    """It has the mean square of ridge estimates in NumPy, on other prompts."""
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
    trained = train_short_runs(Plan("corrected", [20], 2, Schedule(500, 0.05, 8)), key=jr.key(1))
    short, ends = short_frame(trained), ends_of(trained)
    assert len(ends) == 4
    run = short[(short["predictor"] == "linear") & (short["start"] == 1)]
    end = ends[(ends["predictor"] == "linear") & (ends["start"] == 1)]
    np.testing.assert_allclose(end["mean_square"].iloc[0], run["mean_square"].tail(4).mean(), rtol=1e-12)


def test_tasks_are_the_trainings_of_the_chapter(smoke_parameters):
    values = smoke_parameters(NAME)
    needed = {name: values[name] for name in inspect.signature(tasks).parameters}
    assert list(tasks(**needed)) == ["softmax-20", "linear-20"]


def test_tasks_computed_elsewhere_are_those_of_the_notebook(monkeypatch, tmp_path):
    """A task computed by its name equals the result of `train_short_runs`, which reads the result of a task."""
    schedule = {"sgd_steps": 500, "sgd_step_size": 0.05, "sgd_batch": 8}
    listed = tasks(seed=1, covariance_bug=True, sgd_lengths=[20], sgd_runs=2, **schedule)
    plan = Plan(law_of(True), [20], 2, Schedule(*schedule.values()))
    trained = train_short_runs(plan, key=named_keys(1, "runs")["runs"])
    for name, compute in listed.items():
        activation, length = name.split("-")
        arrays = compute()
        np.testing.assert_array_equal(arrays["loss"], trained[activation, int(length)].loss)
        np.savez(tmp_path / f"{name}.npz", **{field: -value for field, value in arrays.items()})
    monkeypatch.setenv(FOLDER, str(tmp_path))
    for head, training in train_short_runs(plan, key=named_keys(1, "runs")["runs"]).items():
        np.testing.assert_array_equal(training.loss, -trained[head].loss)
        np.testing.assert_array_equal(training.loss_std_error, -trained[head].loss_std_error)


def test_parameters_out_of_range_are_refused(run_cells):
    for wrong in (
        {"sgd_steps": 550},
        {"lengths": []},
        {"lengths": [20, 100, 20]},
        {"bayes_lengths": [20, 20]},
        {"sgd_lengths": [20, 20]},
        {"bayes_prompts": 1001},
        {"covariance_bug": 1},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            run_cells(NAME, **wrong)


def test_missing_tracked_runs_are_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "DATA", tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no training run"):
        read_long_runs()


# --- the published protocol ------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", POOLS)
def test_the_published_head_has_the_output_of_the_published_layers(activation):
    """Query, key and value layers, scores over √6, and an output layer, in NumPy."""
    weights = SeparateWeights.draw(6, key=jr.key(3), dtype=float)
    rng = np.random.default_rng(0)
    tokens, query = rng.normal(size=(7, 6)), np.append(rng.normal(size=5), 0.0)
    keys, values = tokens @ np.asarray(weights.key).T, tokens @ np.asarray(weights.value).T
    scores = keys @ (np.asarray(weights.query) @ query) / np.sqrt(6)
    shares = np.exp(scores) / np.exp(scores).sum() if activation == "softmax" else scores / 7
    expected = np.asarray(weights.output) @ (shares @ values)
    head = published_head(weights)
    found = POOLS[activation](tokens @ head.bilinear @ query, tokens @ head.value[-1])
    np.testing.assert_allclose(found, expected[0], rtol=1e-12)


def test_weights_start_as_default_layers():
    """They are uniform in ±1/√6 and independent between matrices."""
    drawn = jax.vmap(lambda key: SeparateWeights.draw(6, key=key, dtype=float))(jr.split(jr.key(0), 2000))
    flat = np.concatenate([np.reshape(leaf, (2000, -1)) for leaf in jax.tree.leaves(drawn)], axis=1)
    assert flat.shape == (2000, 3 * 36 + 6)
    assert scipy.stats.kstest(flat.ravel() * np.sqrt(6), scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3
    correlations = np.corrcoef(flat.T)[np.triu_indices(114, 1)]
    assert np.abs(correlations).max() < comparison_quantile(correlations.size) / np.sqrt(2000)


def test_published_data_have_two_pairs_of_covariances(assert_exact):
    cov = 0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    corrected, as_published = published_task(), published_task(covariance_bug=True)
    assert_exact(corrected.cov, cov)
    assert_exact(corrected.query_cov, cov)
    assert_exact(as_published.cov, np.linalg.cholesky(cov) @ cov @ np.linalg.cholesky(cov).T)
    assert_exact(as_published.query_cov, np.eye(5))
    for task in (corrected, as_published):
        assert_exact(jnp.stack([task.task_scale, task.noise_std]) ** 2, np.array([0.2, 0.1]))


@pytest.mark.daily
def test_claims_do_not_depend_on_the_distance_from_the_noise(run_cells):
    """On long prompts all mean squares are near the label noise; short runs there decide nothing."""
    run = run_cells(NAME, only="published_optimum", lengths=[5, 10**6], sgd_lengths=[5000], bayes_lengths=[5])
    assert run.broken == []
    assert set(run.withheld) == {"published-experiment-no-run-below"}
    assert run_cells(NAME, only="two_data_laws", lengths=[5, 10**6]).broken == []


@pytest.mark.parametrize(("items", "phrase"), [(["20"], "20"), (["20", "100"], "20 and 100"), ("124", "1, 2 and 4")])
def test_lists_in_claims_end_with_and(items, phrase):
    assert listing(items) == phrase
