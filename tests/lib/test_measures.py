"""The laws of a log-moment-generating function, one a test, tried on every measure."""

import decimal
import itertools
from decimal import Decimal
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, stats

from lib.measures import (
    Empirical,
    Gaussian,
    GaussianMixture,
    Laplace,
    Measure,
    Pushforward,
    Rademacher,
    Uniform,
    empirical,
    tilted_cov,
    tilted_mean,
)

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

QUADRATURE = 1e-8
DIFFERENCES = 1e-8
MANY, FEW = 60_000, 4
LAWS = 11  # in the registry


class Derivatives(NamedTuple):
    """`Λ`, `∇Λ` and `∇²Λ`, one tilt a row."""

    log_mgf: np.ndarray
    mean: np.ndarray
    cov: np.ndarray


BATCH = 64
KINDS = ["gaussian", "mixture", "empirical", "uniform", "laplace", "nested_pushforward"]


@eqx.filter_jit
def _derivatives(measure, tilts):
    def at(tilt):
        return measure.log_mgf(tilt), tilted_mean(measure, tilt), tilted_cov(measure, tilt)

    return jax.vmap(at)(tilts)


def derivatives(measure, tilts):
    """All at once, in a batch of one size, so that each kind of measure is compiled once."""
    tilts = np.asarray(tilts)
    padded = np.concatenate([tilts, np.zeros((BATCH - len(tilts), tilts.shape[-1]), tilts.dtype)])
    return Derivatives(*(np.asarray(value)[: len(tilts)] for value in _derivatives(measure, jnp.asarray(padded))))


@eqx.filter_jit
def third_derivative(measure, tilt):
    return jax.jacfwd(jax.jacfwd(jax.jacfwd(measure.log_mgf)))(tilt)


@eqx.filter_jit
def draw(measure, n, key):
    return measure.sample(n, key=key)


@eqx.filter_jit
def slope_by_measure(measure, tilt):
    return eqx.filter_grad(lambda measure: tilted_mean(measure, tilt).sum())(measure)


@eqx.filter_jit
def mean_and_sample_of_rows(stack, tilts, keys):
    def one(row, tilt, key):
        return tilted_mean(row, tilt), row.sample(MANY, key=key)[:FEW]

    return jax.vmap(one)(stack, tilts, keys)


def tilts_for(measure, n=3, size=0.8):
    """`n` tilts of entries below `size`, so small that twice a tilt is in the domain of the registry's Laplace."""
    return np.random.default_rng(n).uniform(-size, size, (n, measure.dimension))


def differences(function, tilts, step=1e-3):
    """Central differences of fourth order, one column a coordinate of the tilt, in the last axis."""
    n, d = tilts.shape
    moves = np.eye(d)[:, None] * step * np.array([-2, -1, 1, 2])[:, None]
    values = function((tilts[:, None, None] + moves).reshape(-1, d))
    slopes = np.moveaxis(values.reshape(n, d, 4, *values.shape[1:]), 2, -1) @ np.array([1, -8, 8, -1]) / (12 * step)
    return np.moveaxis(slopes, 1, -1)


def assert_same_law(left, right, assert_exact):
    tilts = tilts_for(left)
    for actual, desired in zip(derivatives(left, tilts), derivatives(right, tilts), strict=True):
        assert_exact(actual, desired)


# ------------------------------------------------------------------------------------ laws of every measure


def test_log_mgf_is_zero_at_zero(measure):
    assert abs(derivatives(measure, np.zeros((1, measure.dimension))).log_mgf) < 1e-14


def test_log_mgf_is_convex(measure):
    a, b = np.split(tilts_for(measure, 40), 2)
    chord = 0.5 * (derivatives(measure, a).log_mgf + derivatives(measure, b).log_mgf)
    assert (derivatives(measure, 0.5 * (a + b)).log_mgf <= chord + 1e-13).all()


def test_tilted_cov_is_a_covariance(measure):
    cov = derivatives(measure, tilts_for(measure)).cov
    np.testing.assert_allclose(cov, cov.swapaxes(-1, -2), rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(cov).min() > -1e-13


def test_tilted_mean_is_the_gradient(measure):
    tilts = tilts_for(measure)
    slopes = differences(lambda tilts: derivatives(measure, tilts).log_mgf, tilts)
    np.testing.assert_allclose(derivatives(measure, tilts).mean, slopes, rtol=DIFFERENCES, atol=DIFFERENCES)


def test_tilted_cov_is_the_derivative_of_the_tilted_mean(measure):
    tilts = tilts_for(measure)
    slopes = differences(lambda tilts: derivatives(measure, tilts).mean, tilts)
    np.testing.assert_allclose(derivatives(measure, tilts).cov, slopes, rtol=DIFFERENCES, atol=DIFFERENCES)


def test_three_derivatives_at_zero_tilt_are_finite_and_right(measure):
    zero = np.zeros((1, measure.dimension))
    third = np.asarray(third_derivative(measure, jnp.asarray(zero[0])))
    for value in (*derivatives(measure, zero), third):
        assert np.isfinite(value).all()
    slopes = differences(lambda tilts: derivatives(measure, tilts).cov, zero)
    np.testing.assert_allclose(third, slopes[0], rtol=DIFFERENCES, atol=DIFFERENCES)


@pytest.mark.parametrize("make_measure", KINDS, indirect=True)
def test_derivatives_by_the_measure_are_finite_at_zero_tilt(measure):
    """Prompts are optimised too: no leaf may receive a NaN where nothing is singular."""
    zero = jnp.zeros(measure.dimension)
    slopes = slope_by_measure(measure, zero)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_samples_have_the_mean_and_covariance_of_zero_tilt(measure, assert_monte_carlo):
    _, (mean,), (cov,) = derivatives(measure, np.zeros((1, measure.dimension)))
    tokens = np.asarray(draw(measure, MANY, jr.key(0)))
    assert_monte_carlo(tokens, mean, LAWS)
    assert_monte_carlo((tokens - mean)[:, :, None] * (tokens - mean)[:, None, :], cov, LAWS)


def test_log_mgf_is_the_log_mean_exponential_of_samples(measure, assert_monte_carlo):
    tilts = tilts_for(measure, 4, size=0.6)
    tokens = np.asarray(draw(measure, MANY, jr.key(1)))
    assert_monte_carlo(np.exp(tokens @ tilts.T - derivatives(measure, tilts).log_mgf), np.ones(4), LAWS)


def test_samples_are_rows_and_depend_on_the_key_alone(measure):
    first, again, other = (np.asarray(draw(measure, MANY, jr.key(seed))) for seed in (0, 0, 1))
    assert first.shape == (MANY, measure.dimension)
    np.testing.assert_array_equal(first, again)
    if derivatives(measure, np.zeros((1, measure.dimension))).cov.max() > 0:
        assert (first != other).any()
        assert (first[0] != first[1:]).any()


@pytest.mark.parametrize("make_measure", ["gaussian", "rademacher", "uniform", "laplace"], indirect=True)
def test_jit_changes_nothing(measure, assert_exact):
    (tilt,) = tilts_for(measure, 1)
    log_mgf, mean, _ = derivatives(measure, tilt[None])
    assert_exact(measure.log_mgf(jnp.asarray(tilt)), log_mgf[0])
    assert_exact(tilted_mean(measure, jnp.asarray(tilt)), mean[0])
    assert_exact(measure.sample(3, key=jr.key(0)), draw(measure, 3, jr.key(0)))


def test_a_measure_does_not_share_memory_with_the_arrays_of_the_user(float64):
    scale = np.ones(1000)
    measure = Rademacher(scale)
    scale[:] = 2.0
    np.testing.assert_array_equal(measure.scale, 1.0)


@pytest.mark.parametrize("make_measure", KINDS, indirect=True)
def test_stacks_of_measures_batch_under_vmap(measure, assert_exact):
    """A stack is one pytree with a leading axis; its rows are the measures one by one."""
    rows = [jax.tree.map(lambda leaf, factor=factor: factor * leaf, measure) for factor in (1.0, 0.5, 0.25)]
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    tilts, keys = tilts_for(measure, 3), jr.split(jr.key(0), 3)
    mean, tokens = mean_and_sample_of_rows(stack, jnp.asarray(tilts), keys)
    assert_exact(mean, [derivatives(row, tilt[None]).mean[0] for row, tilt in zip(rows, tilts, strict=True)])
    assert_exact(tokens, [draw(row, MANY, key)[:FEW] for row, key in zip(rows, keys, strict=True)])


def test_a_float32_session_agrees_with_float64(make_measure, measure):
    tilts = np.vstack([np.zeros((1, measure.dimension)), tilts_for(measure)])
    with jax.enable_x64(False):
        rough = derivatives(make_measure(), tilts.astype(np.float32))
    for value, precise in zip(rough, derivatives(measure, tilts), strict=True):
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, precise, rtol=2e-5, atol=2e-5)


def test_float32_leaves_stay_float32_in_a_float64_session(checked, measure):
    """With the checks of types: each function is traced here."""
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), measure)
    tilt = jnp.zeros(measure.dimension, jnp.float32)
    for verb in (lambda m, tilt: m.log_mgf(tilt), tilted_mean, tilted_cov, lambda m, _: m.sample(2, key=jr.key(0))):
        assert eqx.filter_eval_shape(verb, single, tilt).dtype == jnp.float32


def test_the_dimension_is_that_of_a_token(checked, measure):
    assert measure.dimension == measure.sample(1, key=jr.key(0)).shape[1]


# ----------------------------------------------------------------------------------- what each measure is


class Unsaid(Measure):
    """A law of log-mgf and sampler alone: standard normal tokens of R^2."""

    scale: jax.Array

    def log_mgf(self, tilt):
        return 0.5 * self.scale**2 * tilt @ tilt

    def sample(self, n, *, key):
        return self.scale * jr.normal(key, (n, 2))


def test_a_measure_need_not_say_its_dimension(assert_exact):
    law = Unsaid(jnp.asarray(0.7))
    assert law.dimension == 2
    assert_same_law(law, Gaussian(np.zeros(2), 0.49 * np.eye(2)), assert_exact)


def test_empirical_ignores_order_and_duplication(assert_exact):
    points = np.random.default_rng(0).normal(size=(4, 2))
    for other in (points[[3, 1, 0, 2]], np.repeat(points, 4, axis=0)):
        assert_same_law(Empirical(other), Empirical(points), assert_exact)


def test_empirical_samples_its_own_tokens_equally_often():
    points = np.random.default_rng(0).normal(size=(4, 3))
    drawn = np.asarray(Empirical(points).sample(40_000, key=jr.key(0)))
    same = (drawn[:, None, :] == points).all(axis=-1)
    assert same.any(axis=1).all()
    assert stats.chisquare(same.sum(axis=0)).pvalue > 1e-3


def test_empirical_survives_huge_tilts(assert_exact):
    points = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    log_mgf, mean, _ = derivatives(Empirical(points), np.array([[1e6, 2e6]]))
    assert_exact(log_mgf, [2e6 - np.log(3)])
    assert_exact(mean, points[1:2])


def test_empirical_of_a_measure_is_its_sample():
    measure = Uniform(np.ones(3))
    prompt = empirical(measure, 5, key=jr.key(3))
    assert isinstance(prompt, Empirical)
    np.testing.assert_array_equal(prompt.points, measure.sample(5, key=jr.key(3)))


def mixture_of(log_weights, indices):
    """Components named by index, out of three fixed Gaussians."""
    rng = np.random.default_rng(5)
    mean, root = rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2))
    cov = root @ root.swapaxes(-1, -2)
    return GaussianMixture(np.asarray(log_weights, float), Gaussian(mean[indices], cov[indices]))


def test_mixture_of_one_is_its_component(assert_exact):
    mixture = mixture_of([7.0], [1])
    component = Gaussian(mixture.components.mean[0], mixture.components.cov[0])
    assert_same_law(mixture, component, assert_exact)


def test_mixture_weights_need_not_be_normalised(assert_exact):
    weights = np.array([0.2, 0.5, 0.3])
    scaled = mixture_of(np.log(weights) + 40.0, [0, 1, 2])
    assert_same_law(mixture_of(np.log(weights), [0, 1, 2]), scaled, assert_exact)


def test_mixture_ignores_components_of_no_weight(assert_exact):
    assert_same_law(mixture_of([0.2, -np.inf, 0.7], [0, 2, 1]), mixture_of([0.2, 0.7], [0, 1]), assert_exact)


def test_mixture_may_list_a_component_twice(assert_exact):
    halves = mixture_of(np.log([0.25, 0.25, 0.5]), [0, 0, 1])
    assert_same_law(halves, mixture_of(np.log([0.5, 0.5]), [0, 1]), assert_exact)


def test_mixture_of_points_is_a_weighted_prompt(assert_exact):
    points = np.random.default_rng(0).normal(size=(3, 2))
    mixture = GaussianMixture(np.log([2.0, 1.0, 1.0]), Gaussian(points, np.zeros((3, 2, 2))))
    assert_same_law(mixture, Empirical(points[[0, 0, 1, 2]]), assert_exact)


MATRIX, OFFSET = np.random.default_rng(8).normal(size=(2, 3)), np.array([0.4, -1.1])


def pushed(measure):
    return Pushforward(measure, MATRIX, OFFSET)


def test_pushforward_of_a_prompt_moves_its_tokens(assert_exact):
    points = np.random.default_rng(0).normal(size=(6, 3))
    assert_same_law(pushed(Empirical(points)), Empirical(points @ MATRIX.T + OFFSET), assert_exact)


def test_pushforward_of_a_gaussian_is_a_gaussian(assert_exact):
    root = np.random.default_rng(0).normal(size=(3, 3))
    mean, cov = root[0], root @ root.T
    moved = Gaussian(MATRIX @ mean + OFFSET, MATRIX @ cov @ MATRIX.T)
    assert_same_law(pushed(Gaussian(mean, cov)), moved, assert_exact)


def test_pushforward_composes(assert_exact):
    first = Rademacher(np.array([0.5, 1.0, 1.5]))
    matrix, offset = np.array([[1.0, 2.0], [0.0, -1.0], [0.5, 0.5]]), np.array([1.0, 0.0, -2.0])
    twice = Pushforward(pushed(first), matrix, offset)
    assert_same_law(twice, Pushforward(first, matrix @ MATRIX, matrix @ OFFSET + offset), assert_exact)


def test_pushforward_moves_the_very_samples():
    measure = Laplace(np.array([0.2, 0.3, 0.4]))
    tokens = measure.sample(4, key=jr.key(2)) @ MATRIX.T + OFFSET
    np.testing.assert_array_equal(pushed(measure).sample(4, key=jr.key(2)), tokens)


def test_log_mgfs_of_independent_prompts_add(assert_exact):
    """The prompt of all sums of two tokens is the law of an independent sum."""
    left, right = np.random.default_rng(0).normal(size=(2, 4, 2))
    sums = Empirical((left[:, None] + right).reshape(-1, 2))
    tilts = tilts_for(sums)
    parts = (derivatives(Empirical(points), tilts) for points in (left, right))
    for whole, first, second in zip(derivatives(sums, tilts), *parts, strict=True):
        assert_exact(whole, first + second)


def test_half_a_sign_and_half_a_box_make_a_box(assert_exact):
    """±a/2 plus an independent uniform on [-a/2, a/2] is uniform on [-a, a]."""
    width = np.array([0.5, 1.0, 3.0])
    tilts = tilts_for(Uniform(width), 10, size=3.0)
    parts = (derivatives(half(width / 2), tilts) for half in (Rademacher, Uniform))
    for whole, sign, box in zip(derivatives(Uniform(width), tilts), *parts, strict=True):
        assert_exact(whole, sign + box)


def test_rademacher_tokens_are_signs_times_the_scale():
    scale = np.array([0.5, 1.0, 1.5])
    np.testing.assert_array_equal(np.abs(Rademacher(scale).sample(50, key=jr.key(0))), np.tile(scale, (50, 1)))


@pytest.mark.parametrize(
    ("measure_of", "law"),
    [(Uniform, lambda s: stats.uniform(-s, 2 * s)), (Laplace, lambda s: stats.laplace(scale=s))],
    ids=["uniform", "laplace"],
)
def test_samples_follow_the_distribution_function(measure_of, law):
    tokens = np.asarray(measure_of(np.array([0.7])).sample(20_000, key=jr.key(4)))[:, 0]
    assert stats.kstest(tokens, law(0.7).cdf).pvalue > 1e-3


# ------------------------------------------------------------------------- closed forms against quadrature


def moments(log_density, tilt, pieces):
    """`Λ, Λ', Λ''` in one dimension by SciPy's adaptive quadrature of `exp(ξ x)` times the density."""

    def integral(power, centre=0.0):
        def integrand(x):
            return (x - centre) ** power * np.exp(tilt * x + log_density(x))

        return sum(integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0] for a, b in pieces)

    mass = integral(0)
    mean = integral(1) / mass
    return np.log(mass), mean, integral(2, mean) / mass


def library_moments(measure, tilt):
    return [value.item() for value in derivatives(measure, np.full((1, 1), tilt))]


RANDOM_TILTS = [0.0, *np.random.default_rng(11).normal(scale=1.5, size=5)]


@pytest.mark.parametrize("tilt", RANDOM_TILTS)
def test_rademacher_is_the_two_point_sum(tilt, assert_exact):
    scale = 1.3
    points = np.array([-scale, scale])
    weights = 0.5 * np.exp(tilt * points)
    mass, mean = weights.sum(), (weights * points).sum() / weights.sum()
    variance = (weights * (points - mean) ** 2).sum() / mass
    assert_exact(library_moments(Rademacher(np.array([scale])), tilt), [np.log(mass), mean, variance])
    assert_exact(mean, scale * np.tanh(scale * tilt))


@pytest.mark.parametrize("tilt", [*RANDOM_TILTS, 20.0, -20.0])
def test_uniform_is_its_integral(tilt):
    width = 0.8
    expected = moments(lambda x: -np.log(2 * width), tilt, [(-width, width)])
    np.testing.assert_allclose(library_moments(Uniform(np.array([width])), tilt), expected, rtol=0, atol=QUADRATURE)


@pytest.mark.parametrize("reach", [0.0, 0.3, -0.55, 0.9, -0.99])
def test_laplace_is_its_integral(reach):
    """`reach` is b ξ, which must stay below one."""
    scale = 0.6
    pieces = [(-np.inf, 0.0), (0.0, np.inf)]
    expected = moments(lambda x: -abs(x) / scale - np.log(2 * scale), reach / scale, pieces)
    actual = library_moments(Laplace(np.array([scale])), reach / scale)
    np.testing.assert_allclose(actual, expected, rtol=QUADRATURE, atol=QUADRATURE)


@pytest.mark.parametrize("tilt", RANDOM_TILTS)
def test_mixture_is_its_integral(tilt):
    weights, centres, widths = np.array([0.5, 0.2, 0.3]), np.array([-1.5, 0.3, 2.0]), np.array([0.4, 1.0, 0.7])

    def log_density(x):
        return np.log((weights * stats.norm.pdf(x, centres, widths)).sum())

    mixture = GaussianMixture(np.log(weights) + 3.0, Gaussian(centres[:, None], widths[:, None, None] ** 2))
    cuts = [-15.0, -4.0, -1.5, 0.3, 2.0, 5.0, 15.0]
    expected = moments(log_density, tilt, list(itertools.pairwise(cuts)))
    np.testing.assert_allclose(library_moments(mixture, tilt), expected, rtol=QUADRATURE, atol=QUADRATURE)


@pytest.mark.parametrize("tilt", [np.zeros(2), *np.random.default_rng(12).normal(scale=0.5, size=(3, 2))], ids=str)
def test_mixture_in_the_plane_is_its_integral(tilt):
    mixture = mixture_of([0.4, -0.3, 1.0], [0, 1, 2])
    weights = np.exp(mixture.log_weights) / np.exp(mixture.log_weights).sum()
    parts = [
        stats.multivariate_normal(mean, cov)
        for mean, cov in zip(*map(np.asarray, (mixture.components.mean, mixture.components.cov)), strict=True)
    ]

    def integrand(z):
        mass = np.exp(z @ tilt) * sum(weight * part.pdf(z) for weight, part in zip(weights, parts, strict=True))
        features = np.stack([np.ones(len(z)), z[:, 0], z[:, 1], z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2], -1)
        return mass[:, None] * features

    edge = np.full(2, 16.0)
    mass, x, y, xx, xy, yy = integrate.cubature(integrand, -edge, edge, rtol=1e-10, atol=1e-10).estimate
    mean = np.array([x, y]) / mass
    cov = np.array([[xx, xy], [xy, yy]]) / mass - np.outer(mean, mean)
    for actual, expected in zip(derivatives(mixture, tilt[None]), (np.log(mass), mean, cov), strict=True):
        np.testing.assert_allclose(actual[0], expected, rtol=QUADRATURE, atol=QUADRATURE)


def log_sinhc_to_sixty_digits(x: float):
    """`log(sinh x / x)` and three derivatives in decimal arithmetic: no series, no switch, digits to spare."""
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = 100, 10**9, -(10**9)
        x = Decimal(x)
        sinh, cosh = (x.exp() - (-x).exp()) / 2, (x.exp() + (-x).exp()) / 2
        derivatives = (
            (sinh / x).ln(),
            cosh / sinh - 1 / x,
            1 / x**2 - 1 / sinh**2,
            2 * cosh / sinh**3 - 2 / x**3,
        )
        return [float(value) for value in derivatives]


below, above = np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)


@pytest.mark.parametrize(
    "x", [1e-9, 1e-5, 1e-3, 0.1, -0.4, 0.9, below, -below, 1.0, -1.0, above, 1.3, -4.0, 30.0, 800.0]
)
def test_uniform_is_precise_on_both_sides_of_its_switch(x):
    """`log(sinh x / x)` changes formula at |x| = 1; values and derivatives may not notice."""
    measure = Uniform(np.ones(1))
    actual = [*library_moments(measure, x), third_derivative(measure, jnp.full(1, x)).item()]
    np.testing.assert_allclose(actual, log_sinhc_to_sixty_digits(x), rtol=2e-14, atol=1e-14)
    np.testing.assert_allclose(actual[:2], log_sinhc_to_sixty_digits(x)[:2], rtol=1e-13, atol=0)


def test_uniform_at_zero_tilt_has_its_textbook_moments(assert_exact):
    width = np.array([0.5, 2.0, 3.0])
    _, (mean,), (cov,) = derivatives(Uniform(width), np.zeros((1, 3)))
    np.testing.assert_array_equal(mean, np.zeros(3))
    assert_exact(cov, np.diag(width**2 / 3))


def test_laplace_is_infinite_from_its_pole_on():
    measure = Laplace(np.array([0.5, 1.0]))
    assert measure.log_mgf(jnp.array([1.99, 0.99])) < jnp.inf
    for outside in ([2.0, 0.0], [0.0, -1.0], [0.0, 3.0], [5.0, 0.1]):
        assert measure.log_mgf(jnp.array(outside)) == jnp.inf


def test_log_mgfs_far_out_neither_overflow_nor_lose_the_mean(assert_exact):
    """At a tilt of 10⁴ a coordinate sits at the edge of its support."""
    scale, far = np.array([0.5, 2.0, 1.0]), np.array([[1e4, -1e4, 1e4]])
    signs, box = derivatives(Rademacher(scale), far), derivatives(Uniform(scale), far)
    assert_exact(signs.log_mgf, [35e3 - 3 * np.log(2)])
    assert_exact(signs.mean, [scale * [1, -1, 1]])
    assert_exact(box.mean, [[0.5 - 1e-4, -2.0 + 1e-4, 1.0 - 1e-4]])


def compiles(dtype) -> bool:
    """Return whether XLA has arithmetic of this type on this processor."""
    try:
        jax.jit(lambda x: 3 * x)(jnp.ones(2, dtype)).block_until_ready()
    except jax.errors.JaxRuntimeError:
        return False
    return True


@eqx.filter_jit
def results(measures, tilt):
    """Return a sample of each measure and its functions at the tilt, computed by one program."""
    return [
        (
            measure.sample(3, key=jr.key(0)),
            measure.log_mgf(tilt),
            tilted_mean(measure, tilt),
            tilted_cov(measure, tilt),
        )
        for measure in measures
    ]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16], ids=lambda dtype: dtype.__name__)
def test_every_measure_computes_in_the_precision_of_its_parameters(dtype):
    """Both types represent the numbers exactly, so that a covariance stays symmetric."""
    if dtype is jnp.float16 and not compiles(dtype):
        pytest.skip("XLA converts no float16 on processors without F16C")
    cov, mean = jnp.asarray([[1.0, 0.25], [0.25, 0.5]], dtype), jnp.asarray([0.5, -0.25], dtype)
    halves = Gaussian(jnp.stack([mean, -mean]), jnp.stack([cov, cov]))
    measures = (
        Gaussian(mean, cov),
        GaussianMixture(jnp.asarray([0.0, 0.5], dtype), halves),
        Empirical(cov),
        Rademacher(cov[0]),
        Uniform(cov[0]),
        Laplace(cov[0] / 2),
        Pushforward(Rademacher(cov[0]), cov, mean),
    )
    for measure, found in zip(measures, results(measures, jnp.asarray([0.25, 0.5], dtype)), strict=True):
        assert {leaf.dtype for leaf in found} == {jnp.dtype(dtype)}, type(measure)
        assert all(np.isfinite(leaf.astype(float)).all() for leaf in found), type(measure)
