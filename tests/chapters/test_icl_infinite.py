"""The chapter on the infinite flow: its closed forms agree with what they are for."""

import inspect

import jax.random as jr
import numpy as np
import pytest
from annotated_types import Le

from chapters.icl_infinite.block_flows import (
    REACHED,
    decay_rates,
    first_below,
    published_bounds,
    recording_times,
    sharp_bound,
    slowest_rate,
    toeplitz,
)
from chapters.icl_infinite.limit_flows import make_tasks
from chapters.icl_infinite.parameters import Parameters
from chapters.icl_infinite.saddle_flows import SADDLE_SIZE
from lib.flow import gradient_flow
from lib.icl import Blocks, LinearRegression

NAME = "icl_infinite"
# The length of a step, times the curvature, up to which Tsitouras' method is stable on a decaying mode.
STABLE = 3.3


def test_the_two_conditions_agree_where_the_norm_is_one():
    paper, earlier = published_bounds(toeplitz(4) / np.linalg.norm(toeplitz(4), 2))
    assert paper == pytest.approx(earlier)
    assert paper == pytest.approx(1.0)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_starts_inside_the_sharp_interval_beat_predicting_zero(rank, float64):
    """Random Θ of every rank, just inside; along the first axis, just outside, it is lost."""
    task = LinearRegression(toeplitz(4) / 7)
    rng, nothing = np.random.default_rng(3), np.trace(task.cov) / 2

    def risk(theta, scale):
        return float(task.infinite_risk(Blocks.head(Blocks.balanced(theta, scale * sharp_bound(task.cov)))))

    assert all(risk(rng.normal(size=(4, rank)), 0.999) < nothing for _ in range(50))
    axis = np.linalg.eigh(task.cov).eigenvectors[:, -1:]
    assert risk(axis, 0.999) < nothing < risk(axis, 1.001)


@pytest.mark.parametrize("level", [0.5, 1e-3])
def test_a_level_is_passed_when_an_exponential_passes_it(level):
    times = np.linspace(0.0, 10.0, 37)
    assert first_below(times, np.exp(-times), level) == pytest.approx(-np.log(level))


def test_a_level_that_is_never_passed_has_no_time():
    assert np.isnan(first_below(np.arange(3.0), np.ones(3), 0.5))


@pytest.mark.parametrize("dimension", [2, 5, 20])
def test_the_solver_has_enough_steps_for_every_allowed_condition_number(dimension, float64):
    """The largest curvature decides the step, the slowest mode the duration; half of the steps are left over."""
    (largest,) = [rule.le for rule in Parameters.model_fields["condition"].metadata if isinstance(rule, Le)]
    allowed = inspect.signature(gradient_flow).parameters["max_steps"].default
    for task in make_tasks(dimension, largest, key=jr.key(0)).values():
        assert decay_rates(task)[-1] * recording_times(task, 50)[-1] / STABLE < allowed / 2


def test_a_sign_wrong_start_is_worse_than_predicting_zero(run):
    """Σ = I, A = -sI/√d: the risk is `½ d (1 + sb/√d)²`."""
    frame = run.tables["escape_from_saddle"].frame
    start = frame[(frame["larger"] == "gain") & (frame["time"] == 0)]
    expected = (1 + SADDLE_SIZE * start["gain"] / np.sqrt(run.names["dimension"])) ** 2
    np.testing.assert_allclose(start["risk"], expected, rtol=1e-12)


SPECTRA = {
    "geometric": np.geomspace(1.0, 0.1, 5),
    "one weak direction": np.array([0.1, 1.0, 1.0, 1.0]),
    "two weak directions": np.array([0.1, 0.1, 1.0, 1.0]),
    "isotropic": np.ones(3),
    "one dimension": np.array([0.7]),
}


@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
def test_rates_at_the_limit_are_those_of_the_closed_form(spectrum, float64):
    """One rate is 0, along the valley; the slowest and the fastest other are of the order of the cubes."""
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(len(spectrum), len(spectrum)))).Q
    rates = decay_rates(LinearRegression(axes * spectrum @ axes.T))
    square = np.sqrt(np.sum(spectrum**-2))
    assert rates[0] == pytest.approx(0.0, abs=1e-12 * rates[-1])
    assert rates[1] == pytest.approx(slowest_rate(spectrum), rel=1e-9)
    for rate, sigma in ((rates[1], spectrum.min()), (rates[-1], spectrum.max())):
        assert 1 - 1e-9 <= rate / (square * sigma**3) <= 2 + 1e-9


def test_the_flow_arrives_at_the_slowest_rate(run):
    """Measured on the published kind of flow, where its distance is between 1e-3 and 1e-6."""
    frame = run.tables["infinite_flow"].frame
    curve = frame[frame["covariance"] == frame["covariance"].iloc[-1]]
    late = curve[curve["distance"].between(1e-6, 1e-3)]
    rate = -np.polyfit(late["time"], np.log(late["distance"]), 1)[0]
    spectrum = np.geomspace(1.0, 1 / run.names["condition"], run.names["dimension"])
    assert rate == pytest.approx(slowest_rate(spectrum), rel=0.02)


def test_every_flow_ends_at_the_limit_and_the_ill_conditioned_one_last(run):
    """The headline of `infinite_flow`."""
    frame = run.tables["infinite_flow"].frame
    arrivals = {
        name: first_below(curve["time"].to_numpy(), curve["distance"].to_numpy(), REACHED)
        for name, curve in frame.groupby("covariance", sort=False)
    }
    assert np.isfinite([*arrivals.values()]).all()
    *others, last = arrivals.values()
    assert last > 5 * max(others)
