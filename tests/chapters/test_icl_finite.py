"""The chapter on finite prompts: its parts, and what its tables must obey whatever was claimed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.icl_finite.exact_flows import INFINITE, Isotropic, Scene
from chapters.icl_finite.finite_training import student_quantile
from lib.icl import LinearRegression, block_head, score_table
from lib.statistics import comparison_quantile

NAME = "icl_finite"


@pytest.fixture(scope="module")
def run(run_chapter):
    return run_chapter(NAME)


def test_the_longest_prompt_is_the_infinite_one(float64):
    scene = Scene(LinearRegression(np.eye(3)), 0.5)
    params = Isotropic(jnp.asarray(0.9), jnp.asarray(1.3))
    exact = scene.task.infinite_risk(block_head(params.blocks(3)))
    np.testing.assert_allclose(jax.jit(scene.risk)(params, score_table(INFINITE)), exact, rtol=1e-10)


def test_few_seeds_ask_for_a_wider_interval():
    normal = comparison_quantile(40)
    assert student_quantile(40, 8) > student_quantile(40, 100) > normal
    assert student_quantile(40, 10**6) == pytest.approx(normal, rel=1e-3)


def test_points_that_miss_the_end_of_the_descent_are_refused(run_cells):
    with pytest.raises(ValueError, match="every"):
        run_cells(NAME, every=30)


def test_longer_prompts_cost_less_risk(run):
    frame = run.tables["final_risk"].frame
    for _, curve in frame[frame["kind"].isin(["trained", "infinite limit"])].groupby(["kind", "dimension"]):
        assert (np.diff(curve["risk"]) < 0).all()


def test_training_to_the_end_is_never_worse_than_the_infinite_limit(run):
    frame = run.tables["final_risk"].frame
    risks = frame.pivot(index=["dimension", "log_length"], columns="kind", values="risk")
    assert (risks["trained"] < risks["infinite limit"]).all()


def test_one_long_prompt_costs_what_the_closed_form_says(run):
    """Σ = I: `2 R L → min_s d (1-2s)^(-d/2) (1/(1-2s) + 1/s)`, by search."""
    frame = run.tables["final_risk"].frame
    longest = frame[(frame["kind"] == "trained") & (frame["log_length"] == frame["log_length"].max())]
    s = np.linspace(1e-4, 0.49, 200_001)
    for d, log_length, risk in zip(longest["dimension"], longest["log_length"], longest["risk"], strict=True):
        expected = np.min(d * (1 - 2 * s) ** (-d / 2) * (1 / (1 - 2 * s) + 1 / s))
        assert 2 * risk * np.exp(log_length) == pytest.approx(expected, rel=1e-6)
