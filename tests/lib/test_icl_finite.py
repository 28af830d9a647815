"""Finite prompts: claims hold and can fail, closed forms agree, pictures can be drawn."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion.house import House
from companion.notebooks import Notebook
from companion.parameters import check, resolve
from companion.publishing import caption_and_alt
from lib import plotting
from lib.experiments.icl_finite import INFINITE, Isotropic, Scene, icl_finite, student_quantile
from lib.experiments.result import comparison_quantile
from lib.icl import LinearRegression, block_head, score_table
from lib.plotting.style import style

CLAIMS = (
    "icl-finite-training",
    "icl-finite-gain",
    "icl-finite-limit",
    "icl-finite-price",
    "icl-finite-gap",
)
FIGURES = ("finite_training", "final_risk", "trajectory_gap")


@pytest.fixture(scope="module")
def result():
    house = House(Path(__file__).resolve().parents[2])
    notebook = Notebook.named(house, "icl_finite")
    return icl_finite(**check(notebook, resolve(house, notebook, "smoke")))


@pytest.fixture(scope="module")
def claims(result):
    return {claim.id: claim for claim in result.claims}


def test_the_chapter_makes_these_claims_and_figures(result):
    assert tuple(claim.id for claim in result.claims) == CLAIMS
    assert tuple(result.tables) == FIGURES


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_holds(claims, name):
    assert claims[name].holds, claims[name]


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_fails_under_its_alternative(claims, name):
    claim = claims[name]
    assert claim.catches_alternative, claim
    assert not replace(claim, measured=claim.alternative.measured).holds


def test_the_longest_prompt_is_the_infinite_one(float64):
    scene = Scene(LinearRegression(np.eye(3)), 0.5)
    params = Isotropic(jnp.asarray(0.9), jnp.asarray(1.3))
    exact = scene.task.infinite_risk(block_head(params.blocks(3)))
    np.testing.assert_allclose(jax.jit(scene.risk)(params, score_table(INFINITE)), exact, rtol=1e-10)


def test_few_seeds_ask_for_a_wider_interval():
    normal = comparison_quantile(40)
    assert student_quantile(40, 8) > student_quantile(40, 100) > normal
    assert student_quantile(40, 10**6) == pytest.approx(normal, rel=1e-3)


def test_longer_prompts_cost_less_risk(result):
    frame = result.tables["final_risk"].frame
    for _, curve in frame[frame["kind"].isin(["trained", "infinite limit"])].groupby(["kind", "dimension"]):
        assert (np.diff(curve["risk"]) < 0).all()


def test_training_to_the_end_is_never_worse_than_the_infinite_limit(result):
    frame = result.tables["final_risk"].frame
    risks = frame.pivot(index=["dimension", "log_length"], columns="kind", values="risk")
    assert (risks["trained"] < risks["infinite limit"]).all()


def test_one_long_prompt_costs_what_the_closed_form_says(result):
    """Σ = I: `2 R L → min_s d (1-2s)^(-d/2) (1/(1-2s) + 1/s)`, by search."""
    frame = result.tables["final_risk"].frame
    longest = frame[(frame["kind"] == "trained") & (frame["log_length"] == frame["log_length"].max())]
    s = np.linspace(1e-4, 0.49, 200_001)
    for d, log_length, risk in zip(longest["dimension"], longest["log_length"], longest["risk"], strict=True):
        expected = np.min(d * (1 - 2 * s) ** (-d / 2) * (1 / (1 - 2 * s) + 1 / s))
        assert 2 * risk * np.exp(log_length) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_from_its_own_table(result, name, theme):
    caption, alt = caption_and_alt(getattr(plotting, name))
    assert len(caption) > 80
    assert len(alt) > 80
    with style(theme):
        figure = getattr(plotting, name)(result.of(name))
        figure.canvas.draw()
        plt.close(figure)
    assert all(axes.has_data() for axes in figure.axes)
