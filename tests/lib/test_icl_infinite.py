"""The infinite flow: claims hold and can fail, closed forms agree, pictures can be drawn."""

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion.house import House
from companion.notebooks import Notebook
from companion.parameters import check, resolve
from companion.publishing import caption_and_alt
from lib import plotting
from lib.experiments.icl_infinite import SADDLE_SIZE, bounds, first_below, icl_infinite, toeplitz
from lib.plotting.style import style

CLAIMS = (
    "icl-infinite-limit",
    "icl-infinite-invariant",
    "icl-infinite-every-alpha",
    "icl-infinite-two-conditions",
    "icl-infinite-saddle",
)
FIGURES = ("infinite_flow", "initialisation_interval", "escape_from_saddle")


@pytest.fixture(scope="module")
def result():
    house = House(Path(__file__).resolve().parents[2])
    notebook = Notebook.named(house, "icl_infinite")
    return icl_infinite(**check(notebook, resolve(house, notebook, "smoke")))


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


def test_the_two_conditions_agree_where_the_norm_is_one():
    paper, earlier = bounds(toeplitz(4) / np.linalg.norm(toeplitz(4), 2))
    assert paper == pytest.approx(earlier)
    assert paper == pytest.approx(1.0)


@pytest.mark.parametrize("level", [0.5, 1e-3])
def test_a_level_is_passed_when_an_exponential_passes_it(level):
    times = np.linspace(0.0, 10.0, 37)
    assert first_below(times, np.exp(-times), level) == pytest.approx(-np.log(level))


def test_a_level_that_is_never_passed_has_no_time():
    assert np.isnan(first_below(np.arange(3.0), np.ones(3), 0.5))


def test_a_sign_wrong_start_is_worse_than_predicting_zero(result):
    """Σ = I, A = -sI/√d: the risk is `½ d (1 + sb/√d)²`."""
    frame = result.tables["escape_from_saddle"].frame
    start = frame[(frame["larger"] == "gain") & (frame["time"] == 0)]
    expected = (1 + SADDLE_SIZE * start["gain"] / np.sqrt(result.parameters["dimension"])) ** 2
    np.testing.assert_allclose(start["risk"], expected, rtol=1e-12)


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
