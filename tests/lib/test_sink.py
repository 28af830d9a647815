"""Gaussian prompts with a sink: three integrals against mpmath, SciPy, Monte Carlo and their own identities."""

import json
import runpy
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

from lib import finite_prompt
from lib.finite_prompt import _LARGEST_SINK, participation, quadrature_error, score_error, sink_statistics
from lib.partition import _DEFAULT_RESOLUTION, Resolution, log_survival, log_tilted
from lib.statistics import comparison_quantile, standard_error

pytestmark = pytest.mark.usefixtures("float64", "unchecked")

REFERENCES = Path(__file__).parent / "references" / "sink.json"
FINE = Resolution(count=500, step=0.12, reach=11.5, drop=64.0)

_rng = np.random.default_rng(55)
_TAU, _LOG_LENGTH = _rng.uniform(0, 30, 18), _rng.uniform(0, 330, 18)
_RATIO = _TAU / np.sqrt(2 * _LOG_LENGTH)
# The guaranteed domain: sinks near the size of the other scores' sum, sinks anywhere, and corners.
_NEAR = _LOG_LENGTH * np.where(_RATIO < 1, 1 + _RATIO**2, 2 * _RATIO) + _rng.uniform(-20, 20, 18)
_CORNERS = [(30, 330, 1000), (30, 330, -1000), (30, 0, -300), (30, 0, 300), (30, 0, 0), (1e-3, 330, 330), (0, 5, 5)]
_CORNERS += [(0, 0, 0), (3, 1e-9, 1), (12, np.log(1e8), 60), (25.6, 328, 656), (30, np.log(2), 40)]
DOMAIN = np.concatenate(
    [
        np.transpose([_TAU, _LOG_LENGTH, np.minimum(_NEAR, _LARGEST_SINK)]),
        _rng.uniform([0, 0, -300], [30, 330, 1000], (6, 3)),
        np.asarray(_CORNERS),
    ]
)


def values(triples, resolution=_DEFAULT_RESOLUTION):
    """E p_0, P and Q by NumPy, one row per triple."""
    return np.asarray([finite_prompt._sink_integrals(*map(np.float64, row), resolution) for row in triples])


def errors_of(actual, truth):
    """The largest of the absolute error of E p_0 and the relative errors of P and Q."""
    size = np.concatenate([np.ones((len(truth), 1)), np.maximum(truth[:, 1:], 1e-300)], axis=1)
    return np.max(np.abs(actual - truth) / size, axis=1)


@pytest.fixture(scope="module")
def references():
    """Stored by references/sink.py: thirty triples, and their E p_0, P and Q."""
    rows = json.loads(REFERENCES.read_text(encoding="utf-8"))["triples"]
    assert len(rows) == 30
    assert max(row["agreement"] for row in rows) < 1e-13
    names = ("sink_weight", "participation", "score_error")
    triples = np.asarray([(row["tau"], np.log(row["length"]), row["sink"]) for row in rows])
    return triples, np.asarray([[float(row[name]) for name in names] for row in rows])


def test_integrals_agree_with_mpmath_within_the_reported_error(references):
    """The cases include sinks with nearly all of the weight and with nearly none."""
    triples, truth = references
    assert truth[:, 0].min() < 0.01
    assert truth[:, 0].max() > 0.99
    np.testing.assert_allclose(values(triples), truth, rtol=1e-11)
    reported = np.asarray(quadrature_error(*triples.T))
    np.testing.assert_array_less(errors_of(values(triples), truth), reported)
    np.testing.assert_array_less(reported, 1e-11)


def test_references_can_be_recomputed(references):
    recompute = runpy.run_path(str(REFERENCES.with_suffix(".py")))["statistics"]
    cheapest = np.argmin(references[0][:, 0])
    tau, log_length, sink = references[0][cheapest]
    np.testing.assert_allclose(
        np.asarray(recompute(tau, round(np.exp(log_length)), sink), float), references[1][cheapest], rtol=1e-15
    )


def test_reported_error_is_not_smaller_than_the_true_error_over_the_domain():
    """Against a quadrature three times as fine and half as far again."""
    reported = np.asarray([finite_prompt._sink_resolution_error(*map(np.float64, row)) for row in DOMAIN])
    np.testing.assert_array_less(errors_of(values(DOMAIN), values(DOMAIN, FINE)), reported)
    np.testing.assert_array_less(reported, 1e-11)


def test_weights_of_tokens_and_sink_sum_to_one_over_the_domain():
    """`E p_0 + L E p_1 = 1`: the mean weight of a token is one more integral over the same nodes."""
    for tau, log_length, sink in np.maximum(DOMAIN, [1e-9, 0, -np.inf]):
        y, spacing = finite_prompt._sink_levels(tau, log_length, sink, _DEFAULT_RESOLUTION)
        log_weight = log_length + log_tilted(1, y, tau) + np.expm1(log_length) * log_survival(y, tau)
        tokens = np.sum(spacing * np.exp(log_weight - np.exp(np.minimum(y + sink, 6.0))))
        own = values([(tau, log_length, sink)])[0, 0]
        assert abs(tokens + own - 1) < 1e-11, (tau, log_length, sink)


@pytest.mark.parametrize("tau", [0.5, 3.0, 30.0])
def test_one_token_and_a_sink_are_one_integral_of_a_sigmoid(tau):
    for sink in np.linspace(-2 * tau, 2 * tau, 10):
        moments = (
            lambda g: special.expit(sink - tau * g),  # noqa: B023
            lambda g: special.expit(tau * g - sink) ** 2,  # noqa: B023
            lambda g: (special.expit(tau * g - sink) * g - tau) ** 2,  # noqa: B023
        )
        truth = [
            integrate.quad(
                lambda g, f=f: f(g) * stats.norm.pdf(g),
                -12,
                12,
                points=[sink / tau],
                epsabs=1e-14,
                epsrel=1e-12,
                limit=400,
            )[0]
            for f in moments
        ]
        np.testing.assert_allclose(values([(tau, 0.0, sink)])[0], truth, rtol=1e-10, atol=1e-13)


def test_integrals_agree_with_monte_carlo():
    """NumPy's normals, SciPy's softmax; also the mean score, `E ĝ = τ(1 - E p_0 - P)` by Stein's identity."""
    rng, deviations = np.random.default_rng(12), []
    for tau, length, sink in ((0.7, 3, 0.5), (2.0, 20, 4.0), (1.0, 200, 7.0), (4.0, 50, 9.0), (5.0, 1000, 12.0)):
        scores = rng.normal(size=(500_000 // length, length))
        own = np.full((len(scores), 1), sink)
        weights = special.softmax(np.concatenate([own, tau * scores], axis=1), axis=1)
        token_weights = weights[:, 1:]
        mean_score = (token_weights * scores).sum(axis=1)
        samples = np.stack([weights[:, 0], (token_weights**2).sum(axis=1), (mean_score - tau) ** 2, mean_score], axis=1)
        sink_weight, p, q = values([(tau, np.log(length), sink)])[0]
        expected = [sink_weight, p, q, tau * (1 - sink_weight - p)]
        deviations.append((samples.mean(axis=0) - expected) / standard_error(samples))
    assert np.abs(deviations).max() < comparison_quantile(np.size(deviations))


def test_without_a_sink_the_statistics_are_those_of_a_plain_prompt():
    tau, log_length = np.asarray([0.0, 0.5, 3.0, 12.0, 30.0]), np.asarray([3.0, 0.0, 7.0, 60.0, 330.0])
    for sink in (-np.inf, -900.0):
        at = sink_statistics(tau, log_length, sink)
        np.testing.assert_allclose(at.participation, participation(tau, log_length), rtol=1e-11)
        np.testing.assert_allclose(at.score_error, score_error(tau, log_length), rtol=1e-11)
        np.testing.assert_allclose(at.sink_weight, 0, atol=1e-100)


def test_scalars_and_many_values_and_traced_ones_agree():
    """NumPy for the first, XLA for the others; even in τ; at τ = 0 the weights are constants."""
    tau, log_length, sink = DOMAIN[::4].T
    one_by_one = values(DOMAIN[::4])
    traced = jax.jit(sink_statistics)(-tau, log_length, sink)
    for column, part in zip(one_by_one.T, jax.tree.leaves(traced), strict=True):
        np.testing.assert_allclose(part, column, rtol=1e-10, atol=1e-14)
    at = sink_statistics(0.0, np.log(6), np.log(2))
    np.testing.assert_allclose([at.sink_weight, at.participation, at.score_error], [2 / 8, 6 / 64, 6 / 64], rtol=1e-12)


OUTSIDE = [(30.001, 5.0, 0.0), (2.0, 330.001, 0.0), (2.0, -1e-9, 0.0), (np.nan, 5.0, 0.0), (2.0, 5.0, 1000.5)]
OUTSIDE += [(2.0, 5.0, np.inf), (2.0, 5.0, np.nan), (2.0, np.nan, 1.0)]


@pytest.mark.parametrize("triple", OUTSIDE)
def test_outside_the_domain_there_is_no_number(triple):
    assert np.isnan(jax.tree.leaves(sink_statistics(*triple))).all()
    assert np.isnan(quadrature_error(*triple))
