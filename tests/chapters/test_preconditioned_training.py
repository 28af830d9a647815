"""The chapter on preconditioned training: flows, rates and finite-prompt errors against independent computations."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from chapters.preconditioned_training import finite_errors, rates
from chapters.preconditioned_training import matrix_regression as regression
from lib.attention import Attention, attend, fluctuation
from lib.finite_prompt import output_error, score_statistics
from lib.icl import valley_limit
from lib.measures import Gaussian
from lib.statistics import standard_error

CONDITION, DIMENSION, START = 7.0, 3, 0.05


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def random_covariance(seed, dimension=DIMENSION):
    matrix = np.random.default_rng(seed).normal(size=(dimension, dimension))
    return matrix @ matrix.T / dimension + 0.3 * np.eye(dimension)


def root_of(cov):
    eigenvalues, vectors = np.linalg.eigh(cov)
    return (vectors * eigenvalues**0.5) @ vectors.T


# --- flows


def test_the_loss_is_half_the_mean_square_error_of_infinite_prompts():
    rng = np.random.default_rng(1)
    cov, target = random_covariance(2), rng.normal(size=(2, DIMENSION))
    params = Attention(0.4 * rng.normal(size=(DIMENSION, DIMENSION)), rng.normal(size=(2, DIMENSION)))
    measure = Gaussian(jnp.zeros(DIMENSION), jnp.asarray(cov))
    queries = measure.sample(20_000, key=jr.key(0))
    outputs = jax.vmap(lambda query: attend(params, measure, query))(queries)
    halves = np.sum(np.asarray(outputs - queries @ target.T) ** 2, axis=1) / 2
    loss = float(regression.population_loss(params, jnp.asarray(cov), jnp.asarray(target)))
    assert abs(halves.mean() - loss) < 4 * standard_error(halves)
    assert standard_error(halves) < 0.02 * loss


def integrate(velocity, start, times):
    """Integrate a flow of several matrices with another solver; return one list of matrices for each time."""
    shapes = [each.shape for each in start]
    cuts = np.cumsum([each.size for each in start])[:-1]

    def unpack(flat):
        return [part.reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True)]

    solution = solve_ivp(
        lambda _, flat: np.concatenate([np.ravel(each) for each in velocity(*unpack(flat))]),
        (0, times[-1]),
        np.concatenate([np.ravel(each) for each in start]),
        "Radau",
        times,
        rtol=1e-10,
        atol=1e-13,
    )
    return [unpack(column) for column in solution.y.T]


def head_slopes(value, bilinear, cov, target):
    miss = value @ cov @ bilinear - target
    return miss @ cov @ bilinear.T @ cov, cov @ value.T @ miss @ cov


def test_a_balanced_preconditioned_flow_is_logistic_for_every_target():
    """Any invertible target, any orthogonal matrix between the factors, unequal shares at the start."""
    rng = np.random.default_rng(3)
    cov, target = random_covariance(4), rng.normal(size=(DIMENSION, DIMENSION))
    root = root_of(cov)
    left, sigma, right = np.linalg.svd(target @ root)
    between = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    first = np.array([0.05, 0.2, 1.6]) * sigma
    value = left @ np.diag(first**0.5) @ between @ np.linalg.inv(root)
    bilinear = np.linalg.inv(root) @ between.T @ np.diag(first**0.5) @ right @ np.linalg.inv(root)
    inverse = np.linalg.inv(cov)

    def velocity(value, bilinear):
        value_slope, bilinear_slope = head_slopes(value, bilinear, cov, target)
        return -value_slope @ inverse, -inverse @ bilinear_slope @ inverse

    times = np.array([0.0, 0.4, 1.0, 3.0])
    path = integrate(velocity, (value, bilinear), times)
    for time, (value, bilinear) in zip(times, path, strict=True):
        learnt = sigma / (1 + (sigma / first - 1) * np.exp(-2 * sigma * time))
        expected = left @ np.diag(learnt) @ right
        np.testing.assert_allclose(root @ bilinear.T @ root @ root @ value.T, expected.T, atol=1e-7)
        slopes = head_slopes(value, bilinear, cov, target)
        gradient = jax.grad(regression.population_loss)(
            Attention(bilinear, value), jnp.asarray(cov), jnp.asarray(target)
        )
        direction = regression.preconditioned(gradient, jnp.asarray(inverse))
        np.testing.assert_allclose(gradient.value, slopes[0], atol=1e-10)
        np.testing.assert_allclose(direction.value, slopes[0] @ inverse, atol=1e-10)
        np.testing.assert_allclose(direction.bilinear, inverse @ slopes[1] @ inverse, atol=1e-10)


@pytest.fixture(scope="module")
def learning():
    with jax.enable_x64(True):
        return regression.solve_learning([1.0, CONDITION], DIMENSION, START, 9, key=jr.key(5))


@pytest.mark.parametrize("flow", [regression.PLAIN, regression.PRECONDITIONED, regression.BLOCKS])
def test_flows_are_those_of_another_solver(learning, flow):
    """Hand-coded gradients on a diagonal covariance, from heads that are written down here."""
    [found] = [each for each in learning if each.flow == flow and each.condition == CONDITION]
    eigenvalues = np.array([1 / CONDITION, CONDITION**-0.5, 1.0])
    cov, inverse = np.diag(eigenvalues), np.diag(1 / eigenvalues)
    if flow == regression.BLOCKS:
        power = np.sum(eigenvalues) ** 0.5
        gain = (START * power) ** 0.5
        start = (START / gain * inverse, np.array([gain]))

        def velocity(matrix, gain):
            miss = gain * cov @ matrix - np.eye(DIMENSION)
            slope = gain * cov @ miss @ cov
            return -inverse @ inverse @ slope @ inverse, -np.array([np.sum(miss * (cov @ matrix @ cov))])

        unit = 2 * power
        path = integrate(velocity, start, found.times / unit)
        learnt = [gain * cov @ matrix for matrix, gain in path]
    else:
        plain = flow == regression.PLAIN
        factor = np.eye(DIMENSION) if plain else inverse
        start = [START**0.5 * eigenvalues ** (-0.5 if plain else power) for power in (-0.25, -0.75)]

        def velocity(value, bilinear):
            value_slope, bilinear_slope = head_slopes(value, bilinear, cov, np.eye(DIMENSION))
            return -value_slope @ factor, -factor @ bilinear_slope @ factor

        path = integrate(velocity, [np.diag(each) for each in start], found.times / 2)
        learnt = [value @ cov @ bilinear for value, bilinear in path]
    errors = [np.linalg.norm(each - np.eye(DIMENSION), 2) for each in learnt]
    np.testing.assert_allclose(found.integrated, errors, atol=1e-6)
    np.testing.assert_allclose(found.integrated, found.closed_form(found.times), atol=1e-6)
    assert 0.9 < found.integrated[0] < 1
    assert found.integrated[-1] < 0.01


def test_all_flows_coincide_at_condition_number_one(learning):
    curves = [each.integrated for each in learning if each.condition == 1]
    assert len(curves) == 3
    np.testing.assert_allclose(curves[1:], np.stack([curves[0]] * 2), atol=1e-7)


def test_halving_times_are_those_of_the_curve():
    times = np.linspace(0, 40, 9)
    errors = 1 / (1 + np.exp((times - 17.3) / 3))
    found = regression.Learning("plain", 2.0, 4.0, 0.01, times, errors)
    assert found.halving_time() == pytest.approx(17.3, rel=1e-10)


# --- rates


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_rates_of_a_head_are_sums_over_pairs(power):
    eigenvalues = np.array([0.3, 1.1, 2.0])
    one, other = np.meshgrid(eigenvalues, eigenvalues)
    pairs = one**0.5 + other**0.5 if power else one * (one + other)
    np.testing.assert_allclose(rates.head_rates(jnp.asarray(eigenvalues), power), np.sort(pairs.ravel()), rtol=1e-9)


@pytest.mark.parametrize("powers", [(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])
def test_rates_of_blocks_are_those_of_the_residual(powers):
    """The gain adds the square of the matrix in the coordinates of the flow; at a fixed gain rates are products."""
    left, right = powers
    eigenvalues = np.array([0.3, 1.1, 2.0])
    gain = np.sum(eigenvalues ** (left + right - 2)) ** 0.25
    products = gain**2 * np.multiply.outer(eigenvalues ** (2 - left), eigenvalues ** (1 - right))
    change = np.diag(eigenvalues**0.5 / gain).ravel()
    expected = np.linalg.eigvalsh(np.diag(products.ravel()) + np.outer(change, change))
    np.testing.assert_allclose(rates.block_rates(jnp.asarray(eigenvalues), left, right), expected, rtol=1e-9)
    if powers == (2.0, 1.0):
        level = np.sum(eigenvalues) ** 0.5
        np.testing.assert_allclose(expected, [*[level] * 8, 2 * level], rtol=1e-9)


# --- finite prompts


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_size_of_the_optimum_is_that_of_the_target(power):
    spectrum = regression.spectrum_with_condition(CONDITION, DIMENSION, key=jr.key(2))
    spectrum = spectrum._replace(eigenvalues=1.7 * spectrum.eigenvalues)
    optimum = regression.aligned_start(spectrum, 1.0, power)
    cov, root = spectrum.power(1.0), spectrum.power(0.5)
    np.testing.assert_allclose(optimum.value @ cov @ optimum.bilinear, np.eye(DIMENSION), atol=1e-10)
    squared = np.linalg.norm(root @ optimum.bilinear @ root, 2) ** 2
    assert squared == pytest.approx(1.7**0.5 if power else 1.7, rel=1e-9)
    if power:
        gram = root @ optimum.value.T @ optimum.value @ root
        np.testing.assert_allclose(gram, root @ optimum.bilinear @ cov @ optimum.bilinear.T @ root, atol=1e-10)


def rescaled_head(factor):
    """Return a head in the plane with eigenvalues 1 and 1/CONDITION, written down here, and its covariance."""
    eigenvalues = np.array([1.0, 1 / CONDITION])
    scale = factor**0.5
    return Attention(scale * np.diag(eigenvalues**-0.75), np.diag(eigenvalues**-0.25) / scale), np.diag(eigenvalues)


@pytest.fixture(scope="module")
def table():
    with jax.enable_x64(True):
        return finite_errors.ErrorTable.at([4.0, 9.0])


def test_averaged_errors_are_those_of_a_grid_of_queries(table):
    factor = 0.6
    params, cov = rescaled_head(factor)
    measure = Gaussian(jnp.zeros(2), jnp.asarray(cov))
    grid = np.arange(0.0, 8.01, 0.25)
    weights = np.where(grid == 0, 1.0, 2.0) * 0.25 * np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    normals = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    error = jax.jit(
        lambda queries: jax.lax.map(lambda query: output_error(params, measure, query, 4.0), queries, batch_size=8)
    )
    found = float(np.multiply.outer(weights, weights).ravel() @ np.asarray(error(jnp.asarray(normals @ cov**0.5))))
    averaged = finite_errors.averaged_error(table.values, finite_errors.singular_values(CONDITION), factor)
    assert averaged[0] == pytest.approx(found, rel=1e-6)


def test_averaged_errors_are_those_of_simulated_prompts():
    """The mean square distance from the query, over prompts of thirty tokens."""
    length, factor, prompts = 30, 0.8, 40_000
    params, cov = rescaled_head(factor)
    tokens, query = np.split(
        np.random.default_rng(6).normal(size=(prompts, length + 1, 2)) @ cov**0.5, [length], axis=1
    )
    query = query[:, 0]
    scores = np.einsum("nlc,cd,nd->nl", tokens, params.bilinear, query)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    outputs = np.einsum("nl,nlc->nc", weights, tokens) @ np.asarray(params.value).T
    squares = np.sum((outputs - query) ** 2, axis=1)
    unit, width = np.polynomial.legendre.leggauss(40)
    statistics = score_statistics((6 * (1 + unit)) ** 2, np.log(length))
    nodes = 6 * (1 + unit), 6 * width, statistics.participation[:, None], statistics.score_error[:, None]
    table = finite_errors.RadialTable(*map(np.asarray, nodes))
    [error] = finite_errors.averaged_error(table, finite_errors.singular_values(CONDITION), factor)
    assert abs(squares.mean() - error) < 4 * standard_error(squares)
    assert standard_error(squares) < 0.02 * error


def test_slopes_are_differences_of_errors(table):
    step, sigma = 0.01, finite_errors.singular_values(CONDITION)
    near = finite_errors.ErrorTable.at([9.0 - step, 9.0 + step])
    low, high = finite_errors.averaged_error(near.values, sigma, 1.0)[:2]
    [optimum] = finite_errors.solve_optima(table, [CONDITION], 0.3)
    assert optimum.balanced_slope[1] == pytest.approx(np.log(low / high) / (2 * step), rel=1e-5)
    assert optimum.multiplicity == 1


def test_the_limit_is_the_mean_fluctuation():
    factor = 0.15
    params, cov = rescaled_head(factor)
    measure = Gaussian(jnp.zeros(2), jnp.asarray(cov))
    queries = measure.sample(40_000, key=jr.key(7))
    traces = np.asarray(jax.vmap(lambda query: jnp.trace(fluctuation(params, measure, query)))(queries))
    expected = finite_errors.limit(finite_errors.singular_values(CONDITION), factor)
    assert abs(traces.mean() - expected) < 4 * standard_error(traces)
    assert standard_error(traces) < 0.02 * expected


@pytest.mark.parametrize("dimension", [2, 7])
def test_the_isotropic_limit_is_that_of_the_valley(dimension):
    limit = finite_errors.limit(np.ones(dimension), 0.11)
    assert limit == pytest.approx(valley_limit(0.11, dimension), rel=1e-12)


def test_the_error_of_linear_attention_is_that_of_sample_covariances():
    dimension, length, prompts = 3, 12, 20_000
    tokens = np.random.default_rng(8).normal(size=(prompts, length + 1, dimension))
    query = tokens[:, -1]
    outputs = np.einsum("nlc,nl->nc", tokens[:, :-1], np.einsum("nlc,nc->nl", tokens[:, :-1], query)) / length
    squares = length * np.sum((outputs - query) ** 2, axis=1)
    assert abs(squares.mean() - finite_errors.linear_error(dimension)) < 4 * standard_error(squares)


def test_the_best_factor_is_the_least_of_the_curve(table):
    found = finite_errors.solve_rescaled_errors(table, 2, 40)
    np.testing.assert_array_equal(found.log_lengths, [4.0, 9.0, 40.0])
    assert (found.ratios.min(axis=0) >= found.least).all()
    np.testing.assert_allclose(found.ratios.min(axis=0), found.least, rtol=0.01)
    np.testing.assert_array_less(np.abs(np.log(found.factors[found.ratios.argmin(axis=0)] / found.best)), 0.11)
    assert np.isnan(found.limits).tolist() == (found.factors >= 0.5).tolist()
