"""The opening chapter: its claims hold and can fail, its exact numbers are exact, its pictures can be drawn."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from companion.house import House
from companion.notebooks import Notebook
from companion.parameters import check, resolve
from companion.publishing import caption_and_alt
from lib import plotting
from lib.attention import attend
from lib.experiments.measures import (
    asked,
    bound_constants,
    head,
    laws,
    log_tilted_density,
    measures,
    prefix_outputs,
)
from lib.finite_prompt import score_error
from lib.measures import Empirical
from lib.plotting.style import style

CLAIMS = (
    "measures-order",
    "measures-one-more",
    "measures-tilted-law",
    "measures-tilted-mean",
    "measures-one-prompt",
    "measures-fluctuation",
    "measures-single-token",
    "measures-short-prompts",
)
FIGURES = ("order_does_not_matter", "the_tilt", "one_prompt_converges", "single_token")


@pytest.fixture(scope="module")
def smoke():
    house = House(Path(__file__).resolve().parents[2])
    notebook = Notebook.named(house, "measures")
    return check(notebook, resolve(house, notebook, "smoke"))


@pytest.fixture(scope="module")
def result(smoke):
    return measures(**smoke)


@pytest.fixture(scope="module")
def claims(result):
    return {claim.id: claim for claim in result.claims}


@pytest.fixture
def float64():
    with jax.enable_x64(True):
        yield


def test_the_chapter_makes_these_claims_and_figures(result):
    assert tuple(claim.id for claim in result.claims) == CLAIMS
    assert tuple(result.tables) == FIGURES


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_holds(claims, name):
    assert claims[name].holds, claims[name]


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_fails_under_its_alternative(claims, name):
    claim = claims[name]
    assert claim.catches_alternative
    assert not replace(claim, measured=claim.alternative.measured).holds


def test_a_fluctuation_ten_percent_off_would_be_noticed(claims):
    claim = claims["measures-fluctuation"]
    assert not claim.accepts(claim.measured * 1.1)
    assert not claim.accepts(claim.measured / 1.1)


@pytest.mark.parametrize("seed", [1, 2])
def test_claims_hold_for_other_seeds(smoke, seed):
    claims = measures(**{**smoke, "seed": seed}).claims
    assert [claim.id for claim in claims if not (claim.holds and claim.catches_alternative)] == []


def test_the_same_seed_gives_the_same_numbers(smoke, result):
    again = measures(**smoke)
    for name, table in result.tables.items():
        pd.testing.assert_frame_equal(table.frame, again.tables[name].frame, check_exact=True)
    assert again.claims == result.claims


def test_lengths_without_a_single_token_are_refused(smoke):
    with pytest.raises(ValueError, match="needs the length 1"):
        measures(**{**smoke, "short_lengths": [2, 4, 8]})


def test_prefix_outputs_are_attention_on_prefixes(float64, assert_exact):
    points = laws()["mixture"].sample(50, key=jr.key(3))
    lengths = np.asarray([1, 2, 17, 50])
    outputs = prefix_outputs(head(), points, asked(), lengths)
    assert_exact(outputs, [attend(head(), Empirical(points[:length]), jnp.asarray(asked())) for length in lengths])


@pytest.mark.parametrize("name", ["Gaussian", "mixture"])
def test_the_tilted_density_has_mass_one(float64, name):
    side = np.linspace(-12, 12, 481)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mass = np.exp(log_tilted_density(laws()[name], points)).sum() * (side[1] - side[0]) ** 2
    np.testing.assert_allclose(mass, 1, rtol=1e-10)


def test_the_bound_drawn_bounds_from_two_tokens_on(float64):
    lengths = [1, 2, 4, 8, 64, 512]
    errors = np.asarray(score_error(1.0, np.log(lengths)))
    constant, power = bound_constants(lengths, errors)
    bound = constant * np.log(lengths) / np.asarray(lengths) ** power
    assert (bound[1:] >= errors[1:] * (1 - 1e-12)).all()
    assert np.isclose(bound[1:] / errors[1:], 1).any()
    assert bound[0] == 0


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
