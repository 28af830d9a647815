"""Errors of finite prompts: gaps are squared norms of derivatives, means have the errors they say, rates cover."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from chapters.concentration.bounds import BoundShape, fit_bound, looseness, straight_exponents, tightest_bound
from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.gaps import (
    ByImportance,
    TiltedMeasure,
    TiltedPrompt,
    bilinear_gap,
    output_gap,
    sample_gaps,
    sample_isotropic,
    value_gap,
)
from lib.attention import Attention, attend, fluctuation
from lib.concentration import RadialTable
from lib.measures import Empirical, Gaussian, GaussianMixture, Rademacher, Uniform
from lib.random import normal

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")

_rng = np.random.default_rng(34)
U, V = 0.4 * _rng.normal(size=(3, 3)), _rng.normal(size=(2, 3))
MEAN, ROOT = 0.3 * _rng.normal(size=3), _rng.normal(size=(3, 3))
COV = 0.3 * ROOT @ ROOT.T
POINTS, QUERY = _rng.normal(size=(9, 3)), _rng.normal(size=3)
# Queries and tokens of different laws, so that a test notices if one replaces the other.
QUERY_MEAN, QUERY_COV = np.asarray([0.5, -0.2, 0.1]), np.diag([0.6, 1.0, 0.2])
GAPS = {"output": output_gap, "value": value_gap, "bilinear": bilinear_gap}


def all_gaps(params, prompt, limit, queries):
    return np.stack([gap(params, prompt, limit, queries) for gap in GAPS.values()], axis=-1)


def gaps_at_query(law):
    """Return all gaps of the prompt POINTS at QUERY."""
    tilts = (U @ QUERY)[None]
    return all_gaps(params(), TiltedPrompt.of(POINTS, tilts), TiltedMeasure(law, tilts), QUERY[None])[0]


def params():
    return Attention(U, V)


def gaussian():
    return Gaussian(MEAN, COV)


def queries():
    return Gaussian(QUERY_MEAN, QUERY_COV)


def laws():
    return {
        "gaussian": gaussian(),
        "mixture": GaussianMixture([0.2, -0.4], Gaussian(np.stack([MEAN, -MEAN]), np.stack([COV, 0.5 * COV]))),
        "rademacher": Rademacher([0.5, 1.0, 1.5]),
        "uniform": Uniform([0.5, 1.0, 2.0]),
        "empirical": Empirical(POINTS[:4]),
    }


@pytest.fixture(scope="module")
def table(float64):
    return RadialTable.at(np.log([1.0, 64.0, 1e8]))


# Short prompts in memory at once: the number changes no result, and large ones need few calls.
AT_ONCE = 500
SIZES = [4, 8, 16, 32, 64, 128, 256, 512]
LENGTHS = np.asarray(SIZES)


# --- gaps -------------------------------------------------------------------------------------------------


def numpy_softmax_attention(bilinear, value):
    weights = np.exp(POINTS @ bilinear @ QUERY)
    return value @ (weights @ POINTS) / weights.sum()


def numpy_gradient(move, step=1e-5):
    """Central differences of `move(direction, size) -> output`, over all entries of a matrix."""
    return np.stack([(move(index, step) - move(index, -step)) / (2 * step) for index in np.ndindex(3, 3)])


@pytest.mark.parametrize("name", ["gaussian", "mixture", "rademacher", "uniform", "empirical"])
def test_gaps_of_gradients_are_squared_norms_of_automatic_jacobians(assert_exact, name):
    law, prompt, query = laws()[name], Empirical(POINTS), jnp.asarray(QUERY)

    def gap_of_outputs(head):
        return attend(head, prompt, query) - attend(head, law, query)

    jacobian = jax.jacobian(gap_of_outputs)(params())
    desired = [jnp.sum(gap_of_outputs(params()) ** 2), jnp.sum(jacobian.value**2), jnp.sum(jacobian.bilinear**2)]
    assert_exact(gaps_at_query(law), desired)


def test_a_prompt_has_no_gap_to_itself():
    prompt = TiltedPrompt.of(POINTS, (U @ QUERY)[None])
    np.testing.assert_array_equal(all_gaps(params(), prompt, prompt, QUERY[None]), 0.0)


# --- samples and curves -----------------------------------------------------------------------------------


def test_rows_are_prompts_whatever_their_number_and_their_batches(assert_exact):
    arguments = (all_gaps, params(), gaussian(), queries(), [2, 5])
    few = sample_gaps(*arguments, prompts=5, key=jr.key(1))
    assert few.shape == (5, 2, 3)
    assert_exact(sample_gaps(*arguments, prompts=8, key=jr.key(1), at_once=1)[:5], few)


def test_several_gaps_of_one_prompt_may_be_a_pytree(assert_exact):
    """Curves of several heads use the same prompts and queries as each head alone, whether stacked or named."""

    def by_name(*of_one):
        return {name: gap(*of_one) for name, gap in GAPS.items()}

    arguments, options = (params(), gaussian(), queries(), [2, 5]), {"prompts": 5, "key": jr.key(1)}
    named = sample_gaps(by_name, *arguments, **options)
    assert_exact(np.stack([named[name] for name in GAPS], axis=-1), sample_gaps(all_gaps, *arguments, **options))


def test_lengths_are_prefixes_of_one_prompt(assert_exact):
    """The longest prompt decides what is drawn: the columns of a shorter list are among those of a longer one."""
    arguments = (output_gap, params(), gaussian(), queries())
    many = sample_gaps(*arguments, [1, 4, 20], prompts=6, key=jr.key(2))
    assert_exact(sample_gaps(*arguments, [20, 4], prompts=6, key=jr.key(2)), many[:, [2, 1]])


def test_a_fixed_query_is_an_empirical_law_of_one_point(assert_exact):
    one = Empirical(QUERY[None])
    samples = sample_gaps(output_gap, params(), gaussian(), one, [4], prompts=6, key=jr.key(3))
    again = sample_gaps(output_gap, params(), gaussian(), one, [4], prompts=6, key=jr.key(3), queries_per_prompt=3)
    assert_exact(again, samples)


@pytest.mark.parametrize("asked", [1, 4])
def test_errors_of_one_token_are_moments_of_the_laws(assert_monte_carlo, asked):
    """`T[δ_x](z) = Vx` and `∇²Λ = 0`: Gaussian moments of token and query, and nothing else."""
    second = QUERY_COV + np.outer(QUERY_MEAN, QUERY_MEAN)

    def spread(value):
        return np.trace(value @ COV @ value.T) + np.trace(value @ COV @ U @ second @ U.T @ COV @ value.T)

    exact = np.asarray([spread(V), 2 * spread(np.eye(3)), np.trace(second) * np.sum((V @ COV) ** 2)])
    arguments = (all_gaps, params(), gaussian(), queries(), [1])
    samples = sample_gaps(*arguments, prompts=20_000, key=jr.key(4), queries_per_prompt=asked, at_once=AT_ONCE)
    assert_monte_carlo(samples[:, 0], exact, laws=2)


@pytest.mark.parametrize("name", ["gaussian", "mixture", "rademacher", "uniform"])
def test_long_prompts_err_by_their_fluctuation(assert_monte_carlo, name):
    """L times the error at a fixed query; what is left of order 1/L is far below the standard error."""
    law, query = laws()[name], 0.5 * jnp.asarray(QUERY)
    samples = sample_gaps(output_gap, params(), law, Empirical(query[None]), [1000], prompts=1500, key=jr.key(5))
    assert_monte_carlo(1000 * samples[:, 0], jnp.trace(fluctuation(params(), law, query)), laws=4)


def test_more_queries_a_prompt_leave_the_mean_and_shrink_the_error():
    arguments = (output_gap, params(), gaussian(), queries(), [8])
    options = {"prompts": 4000, "key": jr.key(6), "at_once": AT_ONCE}
    one, four = (ErrorCurve.of([8], sample_gaps(*arguments, queries_per_prompt=asked, **options)) for asked in (1, 4))
    assert abs(one.mean[0] - four.mean[0]) < 4 * np.hypot(one.std_error[0], four.std_error[0])
    assert four.std_error[0] < 0.85 * one.std_error[0]


# --- rates ------------------------------------------------------------------------------------------------


def test_straight_exponents_are_those_of_straight_lines(assert_exact):
    """Row by row: powers exactly, and what is bent by least squares."""
    powers = np.asarray([[2.0], [3.0]]) * LENGTHS ** -np.asarray([[0.5], [0.8]])
    assert_exact(straight_exponents(SIZES, powers), np.asarray([0.5, 0.8]))
    bent = np.exp(1.5 * np.log(np.log(LENGTHS)))
    assert_exact(straight_exponents(SIZES, bent), -np.polyfit(np.log(SIZES), np.log(bent), 1)[0])


# --- the bound --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("powers", [(6, 1), (12, 2)])
def test_a_bound_touches_the_errors_it_was_fitted_to(powers):
    sigmas, lengths = [1.0, 2.0, 3.0], np.geomspace(2, 1e4, 9)
    errors = np.asarray([[s**2 * length ** (-0.8 / s) for length in lengths] for s in sigmas])
    bound = fit_bound(sigmas, lengths, errors, sigma_power=powers[0], log_power=powers[1])
    ratio = errors / bound(np.asarray(sigmas)[:, None], lengths)
    np.testing.assert_allclose(ratio.max(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(bound.c2, 0.8, rtol=1e-12)  # σ² · 0.8/σ is least at σ = 1


@pytest.mark.parametrize("powers", [(6, 1), (12, 2)])
def test_no_constants_bound_more_tightly_than_the_tightest(powers):
    scales, lengths = [1.0, 2.0, 3.0], np.geomspace(2, 1e4, 9)
    sigmas = np.asarray(scales)
    errors = sigmas[:, None] ** 2 * lengths ** (-0.8 / sigmas[:, None])
    names = {"sigma_power": powers[0], "log_power": powers[1]}

    def looseness_at(c2):
        unit = BoundShape(1.0, c2, *powers)(sigmas[:, None], lengths)
        return looseness(np.max(errors / unit) * unit, errors)

    bound = tightest_bound(scales, lengths, errors, **names)
    values = bound(sigmas[:, None], lengths)
    np.testing.assert_allclose((errors / values).max(), 1.0, rtol=1e-12)
    assert looseness(values, errors) <= min(looseness_at(c2) for c2 in np.linspace(0, 4, 401)) + 1e-9
    fitted = fit_bound(scales, lengths, errors, **names)(sigmas[:, None], lengths)
    assert looseness(values, errors) <= looseness(fitted, errors)
    assert looseness(100 * errors, errors) == pytest.approx(2.0)


def test_the_shape_is_the_papers_and_zero_for_one_token():
    shape = BoundShape(2.0, 3.0, 6, 1)
    np.testing.assert_allclose(shape(2.0, 10.0), 2 * 64 * np.log(10) / 10**0.75, rtol=1e-12)
    assert shape(2.0, 1.0) == 0.0


# --- Gaussian tokens, isotropic: exact ---------------------------------------------------------------------


@pytest.mark.parametrize(("norm", "dimension"), [(0.4, 1), (0.8, 2), (1.6, 2), (0.6, 16)])
def test_the_isotropic_error_is_that_of_simulated_prompts(table, assert_monte_carlo, norm, dimension):
    law, head = Gaussian(np.zeros(dimension), np.eye(dimension)), Attention(norm * np.eye(dimension), np.eye(dimension))
    samples = sample_gaps(output_gap, head, law, law, [1, 64], prompts=4000, key=jr.key(10), at_once=AT_ONCE)
    assert_monte_carlo(samples, table.error(norm, dimension)[:2], laws=4)


@pytest.mark.parametrize("norm", [0.4, 1.2])
def test_prompts_that_are_scores_alone_err_by_the_isotropic_error(table, assert_monte_carlo, norm):
    """In every dimension from the same scores; and a prompt of one token by hand."""
    samples = sample_isotropic(table, norm, [1, 2, 16], [1, 64], prompts=2000, key=jr.key(12))
    exact = np.stack([table.error(norm, dimension)[:2] for dimension in (1, 2, 16)])
    assert_monte_carlo(samples.reshape(2000, -1), exact.ravel(), laws=2)
    few = sample_isotropic(table, norm, [2], [1], prompts=2, key=jr.key(12))
    score = normal(jr.fold_in(jr.key(12), 1), (1,))[0]
    mean_tau = norm * np.sqrt(np.pi / 2)
    np.testing.assert_allclose(few[1, 0, 0], score**2 - 2 * score * mean_tau + 2 * norm**2 + 1, rtol=1e-7)


def test_wider_queries_with_weights_are_standard_normal_in_the_mean(assert_monte_carlo):
    """A gap of several numbers, each a moment of the query, and the density of the weight itself."""

    def moments(params, prompt, limit, queries):
        return {"one": np.ones(queries.shape[:-1]), "square": np.sum(queries**2, axis=-1)}

    def samples(spread):
        wide = Gaussian(np.zeros(3), spread**2 * np.eye(3))
        options = {"prompts": 4000, "key": jr.key(13), "at_once": AT_ONCE}
        return sample_gaps(ByImportance(moments, spread), params(), gaussian(), wide, [1], **options)

    wider = samples(1.3)
    assert_monte_carlo(np.concatenate([wider["one"], wider["square"]], axis=1), np.asarray([1.0, 3.0]), laws=1)
    assert np.all(wider["one"] <= 1.3**3)
    np.testing.assert_array_equal(samples(1.0)["one"], 1.0)


# --- what is refused --------------------------------------------------------------------------------------


def test_gaps_are_those_of_a_numpy_softmax_and_its_differences():
    """Against the limit V(m + ΓUz), whose gradients are written out by hand; everything in NumPy."""

    def turned(index, size):
        moved = U.copy()
        moved[index] += size
        return numpy_softmax_attention(moved, V)

    by_bilinear = numpy_gradient(turned) - np.stack([V @ COV[:, i] * QUERY[j] for i, j in np.ndindex(3, 3)])
    by_value = numpy_softmax_attention(U, np.eye(3)) - MEAN - COV @ U @ QUERY
    output = numpy_softmax_attention(U, V) - V @ (MEAN + COV @ U @ QUERY)
    actual = gaps_at_query(gaussian())
    desired = [np.sum(output**2), 2 * np.sum(by_value**2), np.sum(by_bilinear**2)]
    np.testing.assert_allclose(actual, desired, rtol=1e-8)
