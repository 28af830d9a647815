"""The chapter on the infinite flow: its closed forms agree with what they are for."""

import numpy as np
import pytest

from chapters.icl_infinite.block_flows import bounds, first_below, sharp_bound, toeplitz
from chapters.icl_infinite.escape_from_saddle import SADDLE_SIZE
from lib.icl import LinearRegression, balanced_start, block_head

NAME = "icl_infinite"


def test_the_two_conditions_agree_where_the_norm_is_one():
    paper, earlier = bounds(toeplitz(4) / np.linalg.norm(toeplitz(4), 2))
    assert paper == pytest.approx(earlier)
    assert paper == pytest.approx(1.0)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_starts_inside_the_sharp_interval_beat_predicting_zero(rank, float64):
    """Random Θ of every rank, just inside; along the first axis, just outside, it is lost."""
    task = LinearRegression(toeplitz(4) / 7)
    rng, nothing = np.random.default_rng(3), np.trace(task.cov) / 2

    def risk(theta, scale):
        return float(task.infinite_risk(block_head(balanced_start(theta, scale * sharp_bound(task.cov)))))

    assert all(risk(rng.normal(size=(4, rank)), 0.999) < nothing for _ in range(50))
    axis = np.linalg.eigh(task.cov).eigenvectors[:, -1:]
    assert risk(axis, 0.999) < nothing < risk(axis, 1.001)


@pytest.mark.parametrize("level", [0.5, 1e-3])
def test_a_level_is_passed_when_an_exponential_passes_it(level):
    times = np.linspace(0.0, 10.0, 37)
    assert first_below(times, np.exp(-times), level) == pytest.approx(-np.log(level))


def test_a_level_that_is_never_passed_has_no_time():
    assert np.isnan(first_below(np.arange(3.0), np.ones(3), 0.5))


def test_a_sign_wrong_start_is_worse_than_predicting_zero(run):
    """Σ = I, A = -sI/√d: the risk is `½ d (1 + sb/√d)²`."""
    frame = run.tables["escape_from_saddle"].frame
    start = frame[(frame["larger"] == "gain") & (frame["time"] == 0)]
    expected = (1 + SADDLE_SIZE * start["gain"] / np.sqrt(run.names["dimension"])) ** 2
    np.testing.assert_allclose(start["risk"], expected, rtol=1e-12)
