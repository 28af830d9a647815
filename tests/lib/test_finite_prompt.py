"""Finite Gaussian prompts: two integrals against mpmath, Monte Carlo and their own laws; outputs against prompts."""

import json
import runpy
from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import special, stats

from lib import finite_prompt
from lib.attention import Attention, attend, fluctuation, linear_attend
from lib.batching import _ROWS_PER_CALL
from lib.batching import in_batches as in_batches_of_rows
from lib.finite_prompt import (
    QueryRay,
    mean_output,
    measured_statistics,
    output_error,
    participation,
    quadrature_error,
    rate_exponent,
    sample_output,
    score_error,
    score_statistics,
)
from lib.measures import Gaussian, empirical
from lib.partition import _DEFAULT_RESOLUTION, Resolution, _log_tilted_moments, log_survival, log_tilted
from lib.statistics import comparison_quantile, standard_error

pytestmark = pytest.mark.usefixtures("float64", "unchecked")

REFERENCES = Path(__file__).parent / "references" / "finite_prompt.json"


def in_batches(function):
    """`function` of two arrays that broadcast, compiled once for all lengths."""
    compiled = jax.jit(function)

    def of_arrays(*arrays):
        columns = np.broadcast_arrays(*(np.asarray(array, float) for array in arrays))
        flat = in_batches_of_rows(compiled, *(column.ravel() for column in columns))
        return jax.tree.map(lambda values: values.reshape(columns[0].shape), flat)

    return of_arrays


@in_batches
def statistics(tau, log_length):
    """P and Q."""
    both = score_statistics(tau**2, log_length)
    return both.participation, both.score_error


@in_batches
@jax.vmap
def slopes(tau, log_length):
    """`(∂P/∂τ, ∂P/∂ln L), (∂Q/∂τ, ∂Q/∂ln L)`, by reverse mode."""

    def both(tau, log_length):
        both = score_statistics(tau**2, log_length)
        return both.participation, both.score_error

    return jax.jacrev(both, (0, 1))(tau, log_length)


@in_batches
@jax.vmap
def forward_slopes(tau_squared, log_length):
    """`(P, Q), (∂P/∂τ², ∂Q/∂τ²), (∂P/∂ln L, ∂Q/∂ln L)`, by forward mode."""

    def twice(place):
        both = score_statistics(*place)
        both = jnp.stack([both.participation, both.score_error])
        return both, both

    by_both, values = jax.jacfwd(twice, has_aux=True)(jnp.stack([tau_squared, log_length]))
    return tuple(values), tuple(by_both[:, 0]), tuple(by_both[:, 1])


errors = in_batches(quadrature_error)


def integrals(resolution):
    """From lib.partition alone: P, Q, and the sums of mean weights and of their mean products, which must be one."""

    def one(place):
        tau, log_length = place
        y, spacing = resolution.levels(tau, log_length)
        log_phi = log_survival(y, tau, resolution=resolution)
        weight, square = (log_tilted(power, y, tau, resolution=resolution) for power in (1, 2))
        distance = _log_tilted_moments(2, y, tau, resolution=resolution)[1]
        others = jnp.expm1(log_length)

        def over_tokens(log_token):
            return spacing * jnp.exp(log_length + log_token + others * log_phi).sum()

        def over_pairs(log_token):
            logs = 2 * (log_length + log_token) + (others - 1) * log_phi
            return -jnp.expm1(-log_length) * spacing * jnp.exp(logs).sum()

        p, q = over_tokens(square), over_tokens(distance) + tau**2 * over_pairs(square)
        return p, q, over_tokens(weight), p + over_pairs(weight)

    return in_batches(lambda *places: jax.lax.map(one, places))


default_integrals = integrals(_DEFAULT_RESOLUTION)
fine_integrals = integrals(Resolution(count=500, step=0.12, reach=11.5, drop=64.0))

_rng = np.random.default_rng(4)
# The guaranteed domain: random places, places near the freezing line τ = √(2 ln L), and corners.
_FREEZING = _rng.uniform(0.1, 330, 20)
_CORNERS = [(30, 330), (30, 0), (30, np.log(2)), (12, np.log(2)), (12, np.log(1e8)), (6.5, np.log(2)), (1e-3, 330)]
_CORNERS += [(1e-3, 0.1), (1e-4, 20), (0.05, 0), (1, 1e-9), (25.6, 328)]
DOMAIN = np.concatenate(
    [
        _rng.uniform([0, 0], [30, 330], (60, 2)),
        10 ** _rng.uniform([-3, -3], [np.log10(30), np.log10(330)], (36, 2)),
        np.transpose([np.sqrt(2 * _FREEZING) * _rng.uniform(0.8, 1.2, 20), _FREEZING]),
        np.asarray(_CORNERS),
    ]
).T
DOMAIN = np.clip(DOMAIN, 0, [[30], [330]])

# --- the two integrals against others ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def references():
    """Stored by references/finite_prompt.py: columns by name, τ and ln L first."""
    stored = json.loads(REFERENCES.read_text(encoding="utf-8"))
    columns = {name: np.asarray([float(row[name]) for row in stored["pairs"]]) for name in stored["pairs"][0]}
    return columns | {"log_length": np.log(columns["length"]), "working_digits": stored["working_digits"]}


def test_references_are_what_they_should_be(references):
    """Twenty pairs over the box asked for, at more digits than float64 has, sure to more than are compared."""
    assert references["working_digits"] >= 15
    assert references["tau"].size == 20
    assert (references["tau"] >= 0.05).all()
    assert (references["tau"] <= 7).all()
    assert (references["length"] >= 2).all()
    assert (references["length"] <= 1e12).all()
    assert (references["agreement"] < 1e-13).all()


def test_integrals_agree_with_mpmath(references):
    p, q = statistics(references["tau"], references["log_length"])
    np.testing.assert_allclose(p, references["participation"], rtol=1e-12)
    np.testing.assert_allclose(q, references["score_error"], rtol=1e-12)


def test_references_can_be_recomputed(references):
    """The row with the largest τ, which takes the least time, is computed by the function that made the table."""
    recompute = runpy.run_path(str(REFERENCES.with_name("sink.py")))["statistics"]
    row = np.argmax(references["tau"])
    _, *actual = recompute(references["tau"][row], int(references["length"][row]), -np.inf)
    stored = references["participation"][row], references["score_error"][row]
    np.testing.assert_allclose(np.asarray(actual, float), stored, rtol=1e-15)


SAMPLED = [(0.3, 2), (5.0, 2), (1.0, 10), (4.0, 10), (0.7, 100), (2.0, 100), (6.0, 100)]
SAMPLED += [(1.0, 1000), (3.0, 1000), (0.8, 10_000), (4.5, 10_000), (5.0, 100_000)]


@pytest.fixture(scope="module")
def sampled(float64):
    """Errors of P, of Q and of E ĝ = τ(1 - P), in standard errors: NumPy's normals, SciPy's softmax."""
    rng = np.random.default_rng(11)
    tau, length = np.transpose(SAMPLED)
    p, q = statistics(tau, np.log(length))
    deviations = []
    for t, n, *expected in zip(tau, length.astype(int), p, q, tau * (1 - p), strict=True):
        scores = rng.normal(size=(max(250, 100_000 // n), n))
        weights = special.softmax(t * scores, axis=1)
        mean_score = (weights * scores).sum(axis=1)
        samples = np.stack([(weights**2).sum(axis=1), (mean_score - t) ** 2, mean_score], axis=1)
        deviations.append((samples.mean(axis=0) - expected) / standard_error(samples))
    return np.asarray(deviations)


def test_integrals_agree_with_monte_carlo(sampled):
    assert np.abs(sampled).max() < comparison_quantile(sampled.size)


@pytest.mark.parametrize("column", [0, 1, 2], ids=["participation", "score error", "mean score"])
def test_monte_carlo_errs_as_often_as_it_should(sampled, column):
    """The mean of z² in its chi-square band: neither biased nor too good."""
    low, high = stats.chi2.ppf([0.0005, 0.9995], len(sampled)) / len(sampled)
    assert low < np.mean(sampled[:, column] ** 2) < high


# --- laws over the guaranteed domain -----------------------------------------------------------------------


def test_weights_sum_to_one_over_the_domain():
    """`1 = E Σ p_i` and `1 = P + E Σ_{i≠j} p_i p_j`, the first of lib.partition alone."""
    p, _ = statistics(*DOMAIN)
    at_least_tangent = DOMAIN[0] >= 1e-3  # below, P is continued along its tangent, which lib.partition is not
    own_p, _, weights, products = default_integrals(*DOMAIN)
    np.testing.assert_allclose(weights, 1, rtol=0, atol=1e-10)
    np.testing.assert_allclose(p + (products - own_p), 1, rtol=0, atol=1e-10)
    np.testing.assert_allclose(p[at_least_tangent], own_p[at_least_tangent], rtol=1e-12)


def test_reported_error_is_not_smaller_than_the_true_error(references):
    """Against mpmath, and over the domain against a quadrature four times as fine and half as far again."""
    half = DOMAIN[:, ::2][:, :_ROWS_PER_CALL]
    known = references["participation"], references["score_error"]
    cases = ((references["tau"], references["log_length"]), known), (half, fine_integrals(*half)[:2])
    for place, truth in cases:
        true_error = np.max([np.abs(a / b - 1) for a, b in zip(statistics(*place), truth, strict=True)], axis=0)
        reported = errors(*place)
        np.testing.assert_array_less(true_error, reported)
        np.testing.assert_array_less(reported, 1e-11)


OUTSIDE = [(30.001, 5.0), (1e3, 5.0), (2.0, 330.001), (2.0, 1e300), (2.0, -1e-9), (2.0, -np.inf), (np.nan, 5.0)]
OUTSIDE += [(2.0, np.nan), (np.inf, 5.0), (0.0, -1.0), (0.0, 331.0), (-31.0, 5.0)]


def test_outside_the_domain_nothing_is_said():
    """NaN, inside `jit` and `vmap` too, and only there."""
    among = np.concatenate([np.transpose(OUTSIDE), [[2.0, -30.0], [5.0, 330.0]]], axis=1)
    answers = np.stack([*statistics(*among), errors(*among)])
    assert np.isnan(answers[:, :-2]).all()
    assert np.isfinite(answers[:, -2:]).all()
    values, *_ = forward_slopes(among[0] ** 2, among[1])
    np.testing.assert_array_equal(np.isnan(values), np.isnan(answers[:2]))
    assert np.isnan(participation(31.0, 1.0))
    assert np.isnan(score_statistics(-1e-9, 1.0).score_error)


def test_integrals_are_even_in_tau(assert_exact):
    tau, log_length = DOMAIN
    for at, mirrored in zip(statistics(tau, log_length), statistics(-tau, log_length), strict=True):
        np.testing.assert_array_equal(at, mirrored)


def test_participation_lies_between_one_token_and_all():
    """From 1/L to 1, growing with τ, falling with L."""
    tau, log_length = np.meshgrid(np.linspace(0, 14, 8), np.linspace(0, 100, 8), indexing="ij")
    p, _ = statistics(tau.ravel(), log_length.ravel())
    p = p.reshape(8, 8)
    assert (p >= np.exp(-log_length) * (1 - 1e-12)).all()
    assert (p <= 1 + 1e-12).all()
    assert (np.diff(p[:, 1:], axis=0) > 0).all()
    assert (np.diff(p[1:], axis=1) < 0).all()


def test_long_prompts_have_the_rate_of_the_delta_method():
    """`P ≈ e^{τ²}/L`, `Q ≈ (1 + τ²) e^{τ²}/L`, also far beyond L = 10^40."""
    tau, log_length = np.linspace(0, 5, 10), np.linspace(200, 330, 10)
    p, q = statistics(tau, log_length)
    limit = np.exp(tau**2 - log_length)
    np.testing.assert_allclose(p, limit, rtol=1e-11)
    np.testing.assert_allclose(q, (1 + tau**2) * limit, rtol=1e-11)


def test_the_score_error_is_at_most_one_plus_participation_times_tau_squared():
    """`Q ≤ 1 + τ²P` at every length, with equality at L = 1 (Jensen and Stein)."""
    tau, length = np.meshgrid([0.0, 1e-3, 0.03, *np.linspace(0.1, 30, 9)], [1.0, 1.001, 2, 3, 10, 1e3, 1e20, 1e140])
    p, q = statistics(tau.ravel(), np.log(length.ravel()))
    bound = 1 + tau.ravel() ** 2 * p
    assert (q <= bound * (1 + 1e-12)).all()
    one = length.ravel() == 1
    np.testing.assert_allclose(q[one], bound[one], rtol=1e-12)
    spread = (length.ravel() >= 2) & (tau.ravel() <= 5)
    assert (q[spread] < 0.99 * bound[spread]).all()


def test_errors_are_dominated_by_the_law_of_long_prompts_at_every_length():
    """`L·P ≤ e^{τ²}` and `L·Q ≤ (1 + τ²) e^{τ²}`: the dominating functions that averages over queries need."""
    tau, log_length = np.meshgrid([0.0, 0.03, *np.linspace(0.1, 30, 9)], [0.0, 0.1, 0.7, 1.1, 2.3, 7, 46, 322])
    p, q = statistics(tau.ravel(), log_length.ravel())
    squared = tau.ravel() ** 2
    assert (np.log(p) + log_length.ravel() <= squared + 1e-11).all()
    assert (np.log(q) + log_length.ravel() <= squared + np.log1p(squared) + 1e-11).all()


def test_past_freezing_one_token_takes_all():
    """`P → 1`, and the mean score is the largest of L normals instead of τ."""
    tau, length = np.asarray([30.0, 30.0]), np.asarray([2.0, 10.0])
    p, q = statistics(tau, np.log(length))
    assert (p > 0.9).all()
    largest, square = [1 / np.sqrt(np.pi), 1.538753], [1.0, 1.538753**2 + 0.343435]  # order statistics, tabulated
    np.testing.assert_allclose(q, np.asarray(square) - 2 * tau * largest + tau**2, rtol=1e-3)


# --- limits and derivatives --------------------------------------------------------------------------------


def test_equal_scores_are_a_plain_mean(assert_exact):
    """τ = 0: P = Q = 1/L, with slopes (L - 1)/L² and (2L - 1)/L² in τ², zero in τ, and -1/L in ln L."""
    length = np.asarray([1.0, 2.0, 3.0, 10.0, 1e6, 1e40, 1e143])
    for value in statistics(0.0, np.log(length)):
        assert_exact(value * length, np.ones(7))
    for by_tau, by_log_length in slopes(0.0, np.log(length)):
        np.testing.assert_array_equal(by_tau, 0)
        assert_exact(by_log_length * length, -np.ones(7))
    values, by_square, by_log_length = np.asarray(forward_slopes(0.0, np.log(length))) * length
    assert_exact(values, np.ones((2, 7)))
    assert_exact(by_square, np.stack([1 - 1 / length, 2 - 1 / length]))
    assert_exact(by_log_length, -np.ones((2, 7)))


def test_slopes_at_zero_are_those_of_the_integrals_beside_it():
    """By a parabola through τ² = 0, h and 2h, where nothing is continued along a tangent."""
    length, h = np.asarray([2.0, 3.0, 10.0, 1e3, 1e6]), 2e-5
    near, far = (np.stack(statistics(np.sqrt(size), np.log(length))) for size in (h, 2 * h))
    measured = (4 * near - far - 3 / length) / (2 * h)
    np.testing.assert_allclose(measured * length, [1 - 1 / length, 2 - 1 / length], rtol=1e-6)


def test_values_do_not_jump_where_the_tangent_ends(assert_exact):
    tau, log_length = np.sqrt(1e-7) * np.asarray([1 - 1e-9, 1 + 1e-9]), np.log(5.0)
    for value in statistics(tau, log_length):
        assert_exact(value[0], value[1], rtol=1e-13)


def test_one_token_has_no_weights_to_share(assert_exact):
    """L = 1: P = 1 and Q = 1 + τ², with their derivatives in τ, and finite ones in ln L."""
    tau = np.asarray([0.0, 1e-5, 0.1, 1.0, 5.0, 30.0])
    p, q = statistics(tau, 0.0)
    assert_exact(p, np.ones(6), rtol=1e-12)
    assert_exact(q, 1 + tau**2, rtol=1e-12)
    (p_by_tau, p_by_log), (q_by_tau, q_by_log) = slopes(tau, 0.0)
    np.testing.assert_allclose(p_by_tau, 0, atol=1e-11)
    assert_exact(q_by_tau, 2 * tau)
    h = 1e-3  # one-sided, because there are no prompts of less than one token
    steps = np.stack([statistics(tau, i * h) for i in range(5)])
    one_sided = np.tensordot([-25 / 12, 4, -3, 4 / 3, -1 / 4], steps, 1) / h
    np.testing.assert_allclose([p_by_log, q_by_log], one_sided, rtol=1e-6)


def central_difference(values, step):
    """Return the difference of fourth order; `values` takes a displacement."""
    return (8 * (values(step) - values(-step)) - (values(2 * step) - values(-2 * step))) / (12 * step)


def test_derivatives_are_finite_differences():
    """Both functions in both arguments, reverse mode under `vmap`; forward mode in τ² agrees, with equal values."""
    tau, log_length = place = _rng.uniform([0.05, 0.5], [29.9, 329.5], (_ROWS_PER_CALL, 2)).T
    place[0, ::2] *= 0.2
    place[1, ::4] *= 0.1
    values = np.stack(statistics(*place))
    tau_step, log_step = 2e-3 / (1 + tau), 5e-3
    by_tau = central_difference(lambda h: np.stack(statistics(tau + h, log_length)), tau_step)
    by_log = central_difference(lambda h: np.stack(statistics(tau, log_length + h)), log_step)
    reverse = np.asarray(slopes(*place))
    for actual, desired in ((reverse[:, 0], by_tau), (reverse[:, 1], by_log)):
        np.testing.assert_array_less(np.abs(actual - desired), 1e-6 * np.abs(desired) + 1e-9 * values)
    forward = np.asarray(forward_slopes(tau**2, log_length))
    np.testing.assert_allclose(forward[0], values, rtol=1e-12)
    np.testing.assert_allclose(forward[1] * 2 * tau, reverse[:, 0], rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(forward[2], reverse[:, 1], rtol=1e-9, atol=1e-300)


# --- how they are called -----------------------------------------------------------------------------------


def test_reported_error_is_twice_what_a_finer_step_changes(monkeypatch):
    """Where steps are so coarse that it is not rounding: the true error, against the usual steps, is half of it."""
    places = [(2.0, 20.0), (5.0, 60.0)]
    true = [np.asarray(finite_prompt._integrals(tau**2, log_length, _DEFAULT_RESOLUTION)) for tau, log_length in places]
    coarse = Resolution(count=_DEFAULT_RESOLUTION.count // 6)
    monkeypatch.setattr(finite_prompt, "_DEFAULT_RESOLUTION", coarse)
    for (tau, log_length), exact in zip(places, true, strict=True):
        rough = np.asarray(finite_prompt._integrals(tau**2, log_length, coarse))
        missed = np.abs(rough / exact - 1).max()
        assert missed > 100 * finite_prompt._ROUNDING
        assert 1.5 < quadrature_error(tau, log_length) / missed < 2.5


def test_arrays_broadcast_and_numbers_are_welcome(assert_exact):
    tau, log_length = jnp.asarray([[0.5], [2.0]]), jnp.log(jnp.asarray([1.0, 4.0, 9.0]))
    for function in (participation, score_error, quadrature_error):
        assert jax.eval_shape(function, tau, log_length).shape == (2, 3)
    table, desired = participation(tau, log_length), statistics(2.0, log_length)[0]
    assert_exact(table[1], desired)
    assert_exact(participation(2, float(log_length[2])), desired[2])
    assert_exact(participation(3, 0), 1.0)


def single_precision_calls():
    params, law = Attention(np.eye(2), np.eye(2)), Gaussian(np.zeros(2), np.eye(2))
    query = jnp.ones(2)
    return {
        "participation": lambda: participation(1.0, 2.0),
        "score_error": lambda: score_error(1.0, 2.0),
        "score_statistics": lambda: score_statistics(1.0, 2.0),
        "quadrature_error": lambda: quadrature_error(1.0, 2.0),
        "mean_output": lambda: mean_output(params, law, query, 2.0),
        "output_error": lambda: output_error(params, law, query, 2.0),
    }


@pytest.mark.parametrize("name", single_precision_calls())
def test_exact_theory_says_how_to_get_the_precision_it_needs(name):
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"with jax\.enable_x64\(True\)"):
        single_precision_calls()[name]()


def test_the_collapsed_sampler_runs_in_single_precision():
    with jax.enable_x64(False):
        drawn = sample_output(
            Attention(np.eye(2), np.eye(2)), Gaussian(np.zeros(2), np.eye(2)), jnp.ones(2), 5, key=jr.key(0)
        )
        assert drawn.dtype == jnp.float32
        assert np.isfinite(drawn).all()


# --- outputs -----------------------------------------------------------------------------------------------

# d, e, rank of Γ, tokens, τ: few shapes, because each is compiled
PROMPTS = {
    "scalar": (1, 1, 1, 5, 1.0),
    "one token": (3, 2, 3, 1, 1.0),
    "full": (6, 7, 6, 20, 1.5),
    "frozen": (6, 7, 6, 20, 6.0),
    "flat": (6, 7, 3, 20, 1.0),
    "across": (6, 7, 3, 20, 0.0),
    "no tilt": (6, 7, 6, 20, 0.0),
    "long": (16, 16, 16, 200, 1.5),
    "high": (64, 8, 64, 50, 2.0),
    "high and flat": (64, 8, 10, 50, 1.0),
}
DRAWS = 1500


def head_and_law(name):
    """A random head, law and query with scores of standard deviation τ; "across", the tilt is in the kernel of Γ."""
    d, e, rank, length, tau = PROMPTS[name]
    rng = np.random.default_rng(sorted(PROMPTS).index(name))
    bilinear, value = rng.normal(size=(d, d)), rng.normal(size=(e, d)) / np.sqrt(d)
    mean, root, query = rng.normal(size=d), rng.normal(size=(d, rank)) / np.sqrt(d), rng.normal(size=d)
    if name == "across":
        bilinear -= root @ np.linalg.lstsq(root, bilinear)[0]
    elif tau == 0:
        query *= 0
    else:
        query *= tau / np.linalg.norm(root.T @ bilinear @ query)
    return Attention(bilinear, value), Gaussian(mean, root @ root.T), jnp.asarray(query), length


# As `quick_compilation`: these run once a shape, and the quadratures above are better off with all optimisations
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@partial(jax.jit, static_argnames="length", compiler_options=QUICK)
def draw(params, law, query, length, keys):
    """Outputs of prompts token by token, and of the collapsed sampler."""
    plain_key, collapsed_key = keys
    plain = jax.vmap(lambda key: attend(params, empirical(law, length, key=key), query))
    collapsed = jax.vmap(lambda key: sample_output(params, law, query, length, key=key))
    return plain(jr.split(plain_key, DRAWS)), collapsed(jr.split(collapsed_key, DRAWS))


@cache
def outputs(name):
    """What `draw` draws, with the exact mean and error."""
    params, law, query, length = head_and_law(name)
    exact = mean_output(params, law, query, np.log(length)), output_error(params, law, query, np.log(length))
    limit = attend(params, law, query)
    return [np.asarray(each) for each in (*draw(params, law, query, length, jr.split(jr.key(17))), *exact, limit)]


@pytest.mark.parametrize("name", PROMPTS)
def test_error_and_mean_of_plain_prompts(assert_monte_carlo, name):
    plain, _, mean, error, limit = outputs(name)
    assert_monte_carlo(plain, mean, laws=2 * len(PROMPTS))
    assert_monte_carlo(((plain - limit) ** 2).sum(axis=1), error, laws=2 * len(PROMPTS))


@pytest.mark.parametrize("name", PROMPTS)
def test_error_and_mean_of_collapsed_prompts(assert_monte_carlo, name):
    _, collapsed, mean, error, limit = outputs(name)
    assert_monte_carlo(collapsed, mean, laws=2 * len(PROMPTS))
    assert_monte_carlo(((collapsed - limit) ** 2).sum(axis=1), error, laws=2 * len(PROMPTS))


@pytest.mark.parametrize("name", PROMPTS)
def test_collapsed_prompts_have_the_law_of_plain_ones(assert_monte_carlo, name):
    """Covariances of three projections, and Kolmogorov–Smirnov on each."""
    plain, collapsed, mean, *_ = outputs(name)
    directions = np.random.default_rng(3).normal(size=(mean.size, 3))
    plain, collapsed = (plain - mean) @ directions, (collapsed - mean) @ directions
    products = [drawn[:, :, None] * drawn[:, None, :] for drawn in (plain, collapsed)]
    assert_monte_carlo(products[0] - products[1], np.zeros((3, 3)), laws=len(PROMPTS))
    p_values = [stats.ks_2samp(*pair).pvalue for pair in zip(plain.T, collapsed.T, strict=True)]
    assert min(p_values) > 1e-3 / (3 * len(PROMPTS))


def test_kolmogorov_smirnov_would_notice():
    """Fluctuations that are too large by a third are seen."""
    plain, collapsed, mean, *_ = outputs("flat")
    wrong = mean + 1.33 * (collapsed - mean)
    assert stats.ks_2samp(plain[:, 0], wrong[:, 0]).pvalue < 1e-3 / (3 * len(PROMPTS))


def test_tokens_without_spread_all_say_the_same(assert_exact):
    """Γ = 0: the output is Vm, always, and there is no error."""
    params, law, query, length = head_and_law("full")
    law = Gaussian(law.mean, np.zeros((6, 6)))
    expected = params.value @ law.mean
    for drawn in draw(params, law, query, length, jr.split(jr.key(1))):
        assert_exact(drawn, np.tile(expected, (DRAWS, 1)))
    assert_exact(mean_output(params, law, query, 3.0), expected)
    assert output_error(params, law, query, 3.0) == 0


@pytest.mark.parametrize("name", ["flat", "across"])
def test_collapsed_prompts_stay_where_tokens_are(name):
    """A singular Γ leaves outputs in V(m + range Γ), and V is injective here."""
    params, law, *_ = head_and_law(name)
    drawn = outputs(name)[1] - params.value @ law.mean
    left, size, _ = np.linalg.svd(params.value @ law.cov)
    assert size[PROMPTS[name][2]] < 1e-12
    np.testing.assert_allclose(drawn @ left[:, PROMPTS[name][2] :], 0, atol=1e-7)


def test_collapsed_prompts_are_not_empty():
    params, law, query, _ = head_and_law("full")
    with pytest.raises(ValueError, match="empty prompt"):
        sample_output(params, law, query, 0, key=jr.key(0))


def test_mean_output_is_linear_attention_shrunk(assert_exact):
    """By 1 - P, for tokens of mean zero; nothing is left at one token, all of it in the limit."""
    params, law, query, _ = head_and_law("full")
    law = Gaussian(np.zeros(6), law.cov)
    linear = linear_attend(params, law, query)
    assert_exact(mean_output(params, law, query, 3.0), (1 - participation(1.5, 3.0)) * linear)
    assert_exact(mean_output(params, law, query, 0.0), np.zeros(7), rtol=1e-9)
    assert_exact(mean_output(params, law, query, 300.0), attend(params, law, query))


@pytest.mark.parametrize("name", ["full", "flat", "across", "no tilt", "high"])
def test_error_at_both_ends_of_length(assert_exact, name):
    """One token varies as itself, around a limit it does not know; many vary by the delta method's `fluctuation`."""
    params, law, query, _ = head_and_law(name)
    drift = params.value @ law.cov @ params.bilinear @ query
    one = jnp.trace(params.value @ law.cov @ params.value.T) + drift @ drift
    assert_exact(output_error(params, law, query, 0.0), one)
    many = jnp.trace(fluctuation(params, law, query))
    assert_exact(output_error(params, law, query, 300.0) * np.exp(300.0), many)


def test_gradients_of_the_error_are_finite_differences_and_vanish_at_no_query(assert_exact):
    """The error is even in the query; at query zero scores are constant, and 0/0 must not come up."""
    params, law, query, _ = head_and_law("full")
    queries = jnp.stack([query, 0 * query])

    @partial(jax.jit, compiler_options=QUICK)
    @jax.vmap
    def error_and_gradients(query, size):
        """By the query, and by the size of head and law."""

        def error(query, size):
            scaled = Attention(size * params.bilinear, size * params.value), Gaussian(law.mean, size * law.cov)
            return output_error(*scaled, query, 3.0)

        return jax.value_and_grad(error, (0, 1))(query, size)

    errors, (by_query, by_size) = error_and_gradients(queries, jnp.ones(2))
    assert_exact(errors, jnp.stack([output_error(params, law, query, 3.0) for query in queries]))

    def moved(h):
        return np.asarray([output_error(params, law, query + h * each, 3.0) for each in np.eye(6)])

    np.testing.assert_allclose(by_query[0], central_difference(moved, 1e-3), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(by_query[1], 0)
    assert np.isfinite(by_size).all()
    assert_exact(by_size[1], 3 * errors[1])


def test_a_ray_of_queries_is_measured_in_scores_and_answered_on_a_line(assert_exact):
    """τ is the standard deviation of a score; the infinite prompt answers τ units along the line from Vm."""
    params, law, query, _ = head_and_law("flat")
    ray = QueryRay.through(params, law, 7 * query)
    taus = np.asarray([0.0, 0.5, 3.0])
    tilts = ray.queries(taus) @ params.bilinear.T
    assert_exact(jnp.sqrt(jnp.einsum("ni,ij,nj->n", tilts, law.cov, tilts)), taus)
    answers = jnp.stack([attend(params, law, query) for query in ray.queries(taus)])
    assert_exact(answers, params.value @ law.mean + taus[:, None] * ray.line)
    assert_exact(ray.read(answers), taus)
    assert_exact(ray.queries(2.0), 2 * ray.direction)


def test_a_ray_needs_scores_that_differ():
    params, law, query, _ = head_and_law("no tilt")
    with pytest.raises(ValueError, match="standard deviation"):
        QueryRay.through(params, law, query)


# --- rates -------------------------------------------------------------------------------------------------


def rate_exponents(norms):
    return np.asarray(jax.vmap(rate_exponent)(jnp.asarray(norms)))


def test_rate_exponent_is_one_then_solves_its_equation():
    """β = 1 up to H² = ½; beyond, `β² + β = 1/H²`: inverse golden ratio at 1, and 1/H² for large H."""
    np.testing.assert_array_equal(rate_exponents([0.0, 0.1, 0.5, 0.707]), 1)
    np.testing.assert_allclose(rate_exponent(1.0), (np.sqrt(5) - 1) / 2, rtol=1e-14)
    norm = np.asarray([0.71, 1.0, 2.0, 10.0, 1e3, 1e8])
    beta = rate_exponents(norm)
    np.testing.assert_allclose((beta**2 + beta) * norm**2, 1, rtol=1e-9)
    np.testing.assert_allclose(beta[-1] * norm[-1] ** 2, 1, rtol=1e-9)


def test_rate_exponent_falls_continuously():
    norm = np.linspace(0.0, 4.0, 4001)
    beta = rate_exponents(norm)
    assert (np.diff(beta) <= 0).all()
    assert np.abs(np.diff(beta)).max() < 2e-3
    assert np.isfinite(jax.vmap(jax.grad(rate_exponent))(jnp.asarray(norm))).all()


def test_measured_scores_have_the_spread_and_the_participation_of_their_softmax():
    scores = np.random.default_rng(4).gumbel(size=(3, 5, 40))
    tau, square = measured_statistics(scores)
    weights = special.softmax(scores, axis=-1)
    np.testing.assert_allclose(tau, scores.std(axis=-1), rtol=1e-12)
    np.testing.assert_allclose(square, np.sum(weights**2, axis=-1), rtol=1e-12)


def test_measured_scores_of_gaussian_prompts_have_the_exact_participation(assert_monte_carlo):
    scores = 1.7 * np.random.default_rng(5).normal(size=(4000, 60))
    assert_monte_carlo(measured_statistics(scores)[1], participation(1.7, np.log(60)))


def test_scores_of_no_token_are_refused():
    with pytest.raises(ValueError, match=r"`measured_statistics\(scores=...\)` needs at least one token"):
        measured_statistics(np.zeros((3, 0)))
