"""Denoising and discrimination of Gaussian mixtures: risks against grids in NumPy, mpmath and Monte Carlo."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import jax.random as jr
import mpmath as mp
import numpy as np
import pytest
from jaxtyping import TypeCheckError
from scipy.special import log_softmax, logsumexp

from lib.measures import Gaussian, GaussianMixture
from lib.mixtures import denoising_bayes_risk, denoising_linear_risk, discriminant_bayes_risk, mixture_quadrature_error

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

# The allowed relative difference from a grid in NumPy, which sums 3e5 terms in float64.
GRID_ROUNDING = 2e-12
# Points per axis: the risks below differ by less than 2e-13 from those of 1201 points.
POINTS = 501


def make(log_weights, means, cov):
    means = np.asarray(means, float)
    covs = np.broadcast_to(np.asarray(cov, float), (len(means), *np.shape(cov)))
    return GaussianMixture(np.asarray(log_weights, float), Gaussian(means, covs))


def parts(mixture):
    return (
        log_softmax(np.asarray(mixture.log_weights)),
        np.asarray(mixture.components.mean),
        np.asarray(mixture.components.cov[0]),
    )


def grid(means, cov, points):
    """A square grid ten standard deviations beyond all means, and the area of its cells."""
    reach = 10 * np.sqrt(np.diag(cov))
    axes = [
        np.linspace(low, high, points) for low, high in zip(means.min(0) - reach, means.max(0) + reach, strict=True)
    ]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return places, np.prod([axis[1] - axis[0] for axis in axes])


def log_joint(places, log_weights, means, cov):
    """`log π_k N(z; m_k, cov)` of each place and component."""
    inverse = np.linalg.inv(cov)
    centred = places[:, None] - means
    norm = len(cov) * np.log(2 * np.pi) + np.linalg.slogdet(cov)[1]
    return log_weights - 0.5 * np.einsum("nki,ij,nkj->nk", centred, inverse, centred) - 0.5 * norm


def grid_label_risk(mixture, points=POINTS):
    """The expected logistic loss of the log-odds, one class after the other."""
    log_weights, means, cov = parts(mixture)
    places, area = grid(means, cov, points)
    logs = log_joint(places, log_weights, means, cov)
    odds = logs[:, 0] - logs[:, 1]
    return area * np.sum(np.exp(logs[:, 0]) * np.logaddexp(0, -odds) + np.exp(logs[:, 1]) * np.logaddexp(0, odds))


ROUND, LONG = np.eye(2), np.array([[1.0, 0.4], [0.4, 0.3]])
FLAT = np.array([[1.0, 2.0], [2.0, 4.0]])
DENOISING = {
    "two equal": ([0, 0], [[3, 0], [0, 3]], ROUND, 2.0),
    "two, one heavy": ([5, 0], [[1, 0.5], [-1, 2]], LONG, 0.7),
    "two, one nearly certain": ([0, -40], [[1, 0], [-1, 0]], ROUND, 1.0),
    "coinciding": ([0, 1], [[1, 2], [1, 2]], LONG, 1.3),
    "near": ([0, 0], [[1, 2], [1, 2.001]], LONG, 0.5),
    "points": ([0.2, 0, -1], [[0, 0], [1, 1], [0, 2]], 0 * ROUND, 0.4),
    "singular": ([0, 1, 1], [[0, 0], [1, -1], [3, 0]], FLAT, 0.8),
    "triangle": ([0, 0, 0], [[0, 0], [10, 0], [5, 8]], 0 * ROUND, 1.0),
    "line of five": ([0, 1, 0, -1, 0], [[0, 0], [1, 2], [2, 4], [4, 8], [5, 10]], ROUND, 1.5),
    "one coincides": ([0, 1, 0], [[0, 0], [0, 0], [2, 1]], LONG, 0.6),
}
LABELS = {
    "equal": ([0, 0], [[1, 0], [0, 1]], ROUND),
    "published": ([np.log(0.6), np.log(0.4)], [[1, 0], [0, 1]], ROUND),
    "heavy": ([3, 0], [[1, 0.5], [-1, 2]], LONG),
    "nearly certain": ([0, -30], [[1, 0.5], [-1, 2]], LONG),
    "coinciding": ([0, 1], [[1, 2], [1, 2]], LONG),
    "far": ([0, 0.5], [[-5, 0], [5, 1]], ROUND),
    "large log-weights": ([1e6 + 1, 1e6], [[-1, 0], [1, 1]], ROUND),
    "across the long axis": ([-0.5, 0.2], [[0.3, 2], [0.1, -1]], LONG),
    "along the long axis": ([0, 7], [[2, 1], [0, 0.1]], LONG),
    "near": ([0, 0], [[1, 2], [1.01, 2]], ROUND),
}


@pytest.mark.parametrize("name", DENOISING)
def test_denoising_risks_agree_with_a_grid_and_report_no_smaller_error(name):
    """The trace of the posterior covariance, and the least squares of the denoised on the noisy tokens.

    All moments are sums over a grid of noisy tokens.
    """
    *of, noise_std = DENOISING[name]
    mixture = make(*of)
    log_weights, means, cov = parts(mixture)
    noisy = cov + noise_std**2 * np.eye(len(cov))
    gain = cov @ np.linalg.inv(noisy)
    places, area = grid(means, noisy, POINTS)
    logs = log_joint(places, log_weights, means, noisy)
    density = np.exp(logs)
    total = density.sum(axis=1)
    posterior = density / np.maximum(total, np.finfo(float).tiny)[:, None]
    centres = means + (places[:, None] - means) @ gain.T
    denoised = np.einsum("nk,nki->ni", posterior, centres)
    spread = np.sum((centres - denoised[:, None]) ** 2, axis=2)
    bayes_risk = area * np.sum(density * (np.trace(cov - gain @ cov) + spread))
    reported = float(mixture_quadrature_error(denoising_bayes_risk, mixture, noise_std))
    assert abs(float(denoising_bayes_risk(mixture, noise_std)) / bayes_risk - 1) <= reported + GRID_ROUNDING
    assert reported < 1e-8
    root = np.sqrt(area * total)
    for intercept, inputs in [(False, places), (True, np.column_stack([places, np.ones(len(places))]))]:
        weighted = root[:, None] * inputs
        best = np.linalg.solve(weighted.T @ weighted, weighted.T @ (root[:, None] * denoised))
        desired = bayes_risk + np.sum((root[:, None] * (denoised - inputs @ best)) ** 2)
        reported = float(mixture_quadrature_error(denoising_linear_risk, mixture, noise_std, intercept=intercept))
        error = abs(float(denoising_linear_risk(mixture, noise_std, intercept=intercept)) / desired - 1)
        assert error <= reported + GRID_ROUNDING
        assert reported < 1e-8


@pytest.mark.parametrize("name", LABELS)
def test_label_risk_agrees_with_a_grid_and_reports_no_smaller_error(name):
    mixture = make(*LABELS[name])
    reported = float(mixture_quadrature_error(discriminant_bayes_risk, mixture))
    error = abs(float(discriminant_bayes_risk(mixture)) / grid_label_risk(mixture) - 1)
    assert error <= reported + GRID_ROUNDING
    assert reported < 1e-8


# --- mpmath, to the last digits ---------------------------------------------------------------------------------------

# separation in standard deviations, log-odds of the second component
PAIRS = [(1e-6, 0.0), (0.3, 2.0), (2.0, 0.0), (2.0, -30.0), (8.0, 1.0), (8.0, 60.0), (30.0, 0.0), (60.0, -3.0)]


def mp_pair(separation, odds):
    """The overlap `∫ p_0 p_1/(p_0 + p_1)` and the label's entropy, on a line at 40 digits, by a trapezoid."""
    with mp.workdps(40):
        separation, odds = mp.mpf(separation), mp.mpf(odds)
        first, second = 1 / (1 + mp.exp(odds)), 1 / (1 + mp.exp(-odds))
        cut = -odds / separation
        lowest = min(max(cut, -separation / 2), separation / 2) - 13
        step = 1 / max(6, 3 * separation)
        overlap, entropy = mp.mpf(0), mp.mpf(0)
        for i in range(int(26 / step) + 1):
            u = lowest + i * step
            p, q = first * mp.npdf(u + separation / 2), second * mp.npdf(u - separation / 2)
            overlap += p * q / (p + q)
            entropy += p * mp.log1p(q / p) + q * mp.log1p(p / q)
        return step * overlap, step * entropy


@pytest.mark.parametrize(("separation", "odds"), PAIRS)
def test_risks_of_two_components_agree_with_mpmath(separation, odds):
    overlap, entropy = mp_pair(separation, odds)
    # Γ = 0.36, ξ = 0.8, so that S = 1
    pair = make([0, odds], [[0.0], [separation]], [[0.36]])
    with mp.workdps(40):
        cov, noise = mp.mpf(0.36), mp.mpf(0.8) ** 2
        total = cov + noise
    # the separation in units of √S differs from the argument by rounding only
    assert abs(float(total) - 1) < 1e-15
    value = float(denoising_bayes_risk(pair, 0.8))
    reported = float(mixture_quadrature_error(denoising_bayes_risk, pair, 0.8))
    assert abs(value / float(cov * noise + (noise * mp.mpf(separation)) ** 2 * overlap) - 1) <= reported < 1e-8

    points = make([0, odds], [[0.0], [separation]], [[0.0]])
    value, reported = (
        float(denoising_bayes_risk(points, 1.0)),
        float(mixture_quadrature_error(denoising_bayes_risk, points, 1.0)),
    )
    assert abs(value / float(mp.mpf(separation) ** 2 * overlap) - 1) <= reported < 1e-8

    unit = make([0, odds], [[0.0], [separation]], [[1.0]])
    reported = float(mixture_quadrature_error(discriminant_bayes_risk, unit))
    assert abs(float(discriminant_bayes_risk(unit)) / float(entropy) - 1) <= reported < 1e-8


def test_error_is_reported_where_a_fixed_grid_is_too_coarse():
    """Under `jit` nodes cannot follow the means; the error says so."""
    mixture = make([0, 0, 0], 60 * np.array([[0, 0], [1, 0], [0.5, 0.75**0.5]]), 0 * ROUND)
    exact = float(denoising_bayes_risk(mixture, 1.0))

    @jax.jit
    def risk_and_error(mixture):
        return denoising_bayes_risk(mixture, 1.0), mixture_quadrature_error(denoising_bayes_risk, mixture, 1.0)

    coarse, reported = map(float, risk_and_error(mixture))
    assert abs(coarse / exact - 1) <= reported


# --- Monte Carlo ------------------------------------------------------------------------------------------------------


def test_denoising_risks_are_what_the_denoisers_lose(assert_monte_carlo):
    """In R^4: means in a plane off the origin, a singular covariance; the denoisers by normal equations and Bayes."""
    rng = np.random.default_rng(5)
    plane, root = rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
    mixture = make([0.3, 0, -1], rng.normal(size=(3, 2)) @ plane + 0.5, 0.3 * root @ root.T)
    log_weights, means, cov = parts(mixture)
    noise_std, n = 0.9, 200_000
    tokens = np.asarray(mixture.sample(n, key=jr.key(1)))
    noisy = tokens + noise_std * rng.normal(size=tokens.shape)
    total = cov + noise_std**2 * np.eye(4)
    logs = log_joint(noisy, log_weights, means, total)
    posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    gain = cov @ np.linalg.inv(total)
    bayes = noisy @ gain.T + posterior @ (means - means @ gain.T)
    mean = np.exp(log_weights) @ means
    moment = cov + np.einsum("k,ki,kj->ij", np.exp(log_weights), means, means)
    centred = moment - np.outer(mean, mean)
    maps = [each @ np.linalg.inv(each + noise_std**2 * np.eye(4)) for each in (moment, centred)]
    outputs = np.stack([bayes, noisy @ maps[0].T, mean + (noisy - mean) @ maps[1].T])
    losses = np.sum((outputs - tokens) ** 2, axis=2).T
    expected = [
        denoising_bayes_risk(mixture, noise_std),
        denoising_linear_risk(mixture, noise_std),
        denoising_linear_risk(mixture, noise_std, intercept=True),
    ]
    assert_monte_carlo(losses, np.asarray(expected))
    assert expected[0] < expected[2] < expected[1]


def test_label_risk_is_the_mean_loss_of_the_log_odds(assert_monte_carlo):
    """Component 0 has the label +1; the model's prompt is balanced by no symmetry."""
    mixture = make([0.4, 0], [[1, 0.5], [-0.5, 1]], LONG)
    log_weights, means, cov = parts(mixture)
    slope = np.linalg.solve(cov, means[0] - means[1])
    shift = log_weights[0] - log_weights[1] - 0.5 * (means[0] + means[1]) @ slope
    rng = np.random.default_rng(8)
    labels = np.where(rng.random(200_000) < np.exp(log_weights[0]), 1, -1)
    tokens = means[(labels < 0).astype(int)] + rng.normal(size=(len(labels), 2)) @ np.linalg.cholesky(cov).T
    losses = np.logaddexp(0, -labels * (tokens @ slope + shift))
    assert_monte_carlo(losses, np.asarray(discriminant_bayes_risk(mixture)))


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two, one heavy", "singular"])
def test_risks_do_not_depend_on_order_place_or_splitting(name, assert_exact):
    """Components may be permuted, rotated, moved, split in two of half the weight, and have any weights' sum."""
    log_weights, means, cov, noise_std = (np.asarray(each, float) for each in DENOISING[name])
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    same = {
        "order": make(log_weights[::-1], means[::-1], cov),
        "place": make(log_weights, means + np.array([3.0, -7.0]), cov),
        "rotated": make(log_weights, means @ rotation.T, rotation @ cov @ rotation.T),
        "weights": make(log_weights - 5e3, means, cov),
        "split": make(
            np.append(log_weights, log_weights[0]) - np.log(2) * np.eye(len(means) + 1)[[0, -1]].sum(0),
            np.concatenate([means, means[:1]]),
            cov,
        ),
        "never": make(np.append(log_weights, -np.inf), np.concatenate([means, [[1.0, 9.0]]]), cov),
    }
    desired = float(denoising_bayes_risk(make(log_weights, means, cov), float(noise_std)))
    for mixture in same.values():
        assert_exact(denoising_bayes_risk(mixture, float(noise_std)), desired)


def test_a_dimension_without_means_adds_its_own_gaussian_risk(assert_exact):
    """Means in a plane of R^3, off the origin, rotated; Γ = I and ξ = 1 add 1/2."""
    log_weights, means = np.array([0, 0.3, -1]), np.array([[0, 0, 4], [1, 0, 4], [3, 2, 4.0]])
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    flat = denoising_bayes_risk(make(log_weights, means[:, :2], ROUND), 1.0)
    assert_exact(denoising_bayes_risk(make(log_weights, means @ rotation.T, np.eye(3)), 1.0), float(flat) + 0.5)


def test_risks_without_information_are_those_of_the_prior(checked, assert_exact):
    """Much noise leaves the variance; equal means leave the entropy of the label; one component is Gaussian."""
    mixture = make([0, 1, 0], [[0, 0], [1, 1], [2, -1]], LONG)
    log_weights, means, cov = parts(mixture)
    weights = np.exp(log_weights)
    variance = np.trace(cov) + weights @ np.sum((means - weights @ means) ** 2, axis=1)
    np.testing.assert_allclose(denoising_bayes_risk(mixture, 1e6), variance, rtol=1e-10)
    np.testing.assert_allclose(denoising_linear_risk(mixture, 1e6, intercept=True), variance, rtol=1e-10)
    equal = make([0, np.log(3)], [[1, 1], [1, 1]], FLAT)
    assert_exact(discriminant_bayes_risk(equal), -0.25 * np.log(0.25) - 0.75 * np.log(0.75))
    alone = make([7.0], [[5, 1]], LONG)
    assert_exact(denoising_bayes_risk(alone, 0.7), float(denoising_linear_risk(alone, 0.7, intercept=True)))


def test_labels_of_separable_components_cost_nothing():
    """Where means differ in a direction of no variance; elsewhere the covariance's range counts."""
    flat = np.diag([1.0, 0.0])
    assert float(discriminant_bayes_risk(make([0, 1], [[0, 0], [0, 1]], flat))) == 0.0
    assert float(discriminant_bayes_risk(make([0, 1], [[0, 0], [1e3, 0]], flat))) == 0.0
    assert float(discriminant_bayes_risk(make([-np.inf, 1], [[0, 0], [1, 0]], flat))) == 0.0
    line = float(discriminant_bayes_risk(make([0, 1], [[0], [1]], [[1.0]])))
    np.testing.assert_allclose(discriminant_bayes_risk(make([0, 1], [[0, 0], [1, 0]], flat)), line, rtol=1e-12)
    np.testing.assert_allclose(discriminant_bayes_risk(make([0, 1], [[0, 0], [1, 2]], FLAT)), line, rtol=1e-12)


@pytest.mark.parametrize("noise_std", [1e-3, 1e-8])
def test_little_noise_across_a_flat_covariance(noise_std):
    """Means differ where tokens do not vary, by twice the noise: the risk of points, in units of ξ², and that of Γ."""
    points = float(denoising_bayes_risk(make([0, 0.5], [[0], [2]], [[0.0]]), 1.0))
    straight = make([0, 0.5], [[0, 0], [0, 2 * noise_std]], np.diag([5.0, 0.0]))
    desired = noise_std**2 * (5 / (5 + noise_std**2) + points)
    np.testing.assert_allclose(denoising_bayes_risk(straight, noise_std), desired, rtol=1e-12)
    turned = make([0, 0.5], [[0, 0], 2 * noise_std * np.array([2, -1]) / 5**0.5], FLAT)
    error = abs(float(denoising_bayes_risk(turned, noise_std)) / desired - 1)
    reported = float(mixture_quadrature_error(denoising_bayes_risk, turned, noise_std))
    assert error <= reported
    assert noise_std < 1e-3 or reported < 1e-8


def test_linear_risk_reports_its_rounding():
    """Large means against mpmath."""
    mixture = make([0, 0.5], [[3e3, 1], [1, 0]], LONG)
    _, means, cov = parts(mixture)
    with mp.workdps(40):
        odds = mp.exp(mp.mpf(0.5))
        weights = [1 / (1 + odds), odds / (1 + odds)]
        moment = mp.matrix(cov)
        for weight, mean in zip(weights, means, strict=True):
            moment += weight * mp.matrix(mean) * mp.matrix(mean).T
        solved = moment * (moment + mp.eye(2) / 4) ** -1 / 4
        desired = float(solved[0, 0] + solved[1, 1])
    reported = float(mixture_quadrature_error(denoising_linear_risk, mixture, 0.5))
    assert abs(float(denoising_linear_risk(mixture, 0.5)) / desired - 1) <= reported < 1e-8


# --- transformations --------------------------------------------------------------------------------------------------


def risk_of(name):
    """A risk as a function of one vector: log-weights, means, the covariance's entries, noise."""

    def risk(vector):
        count = 2 if name == "labels" else 3
        log_weights, means, cov, noise_std = jnp.split(vector, np.cumsum([count, 2 * count, 4]))
        cov = jnp.broadcast_to(0.5 * (cov.reshape(2, 2) + cov.reshape(2, 2).T), (count, 2, 2))
        mixture = GaussianMixture(log_weights, Gaussian(means.reshape(count, 2), cov))
        if name == "labels":
            return discriminant_bayes_risk(mixture)
        return {
            "bayes": denoising_bayes_risk,
            "linear": denoising_linear_risk,
            "affine": partial(denoising_linear_risk, intercept=True),
        }[name](mixture, noise_std[0])

    return risk


def vector_of(name, cov=ROUND):
    if name == "labels":
        return np.concatenate([[0.3, 0.0], [1.0, 0, 0, 1], np.ravel(cov), [0.0]])
    return np.concatenate([[0.3, 0.0, -0.5], [1.0, 0, 0, 1, 2, 2], np.ravel(cov), [0.7]])


@cache
def compiled(name):
    """Values and gradients of a risk at two vectors, by one program."""
    return jax.jit(jax.vmap(jax.value_and_grad(risk_of(name))))


@pytest.mark.parametrize("name", ["bayes", "linear", "affine", "labels"])
def test_risks_under_jit_vmap_and_grad(name, assert_exact):
    """Eigenvalues coincide at the first of the two covariances."""
    risk = risk_of(name)
    vectors = jnp.stack([jnp.asarray(vector_of(name, cov)) for cov in (ROUND, LONG)])
    found, gradients = compiled(name)(vectors)
    direction = np.random.default_rng(3).normal(size=vectors.shape[1])
    for vector, value, gradient in zip(vectors, found, np.asarray(gradients), strict=True):
        assert_exact(value, float(risk(vector)))
        values = [float(risk(vector + step * direction)) for step in (-2e-4, -1e-4, 1e-4, 2e-4)]
        slope = np.dot([1, -8, 8, -1], values) / 12e-4
        np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["bayes", "labels"])
def test_gradients_at_coinciding_means_are_finite(name):
    vectors = np.stack([vector_of(name, cov) for cov in (ROUND, LONG)])
    count = 2 if name == "labels" else 3
    vectors[:, count : 3 * count] = 0.5
    gradients = np.asarray(compiled(name)(vectors)[1])
    assert np.isfinite(gradients).all()
    np.testing.assert_allclose(gradients[:, count : 3 * count], 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["bayes", "linear", "affine"])
def test_risks_without_noise_are_zero_with_zero_gradient(name):
    """This holds for traced and concrete risks, also for singular covariances and for points."""
    risk = risk_of(name)
    vectors = np.stack([vector_of(name, cov) for cov in (ROUND, FLAT, 0 * ROUND, LONG)])
    vectors[:, -1] = 0.0
    for pair in (vectors[:2], vectors[2:]):
        values, gradients = compiled(name)(pair)
        np.testing.assert_array_equal(values, 0.0)
        np.testing.assert_array_equal(gradients[:, -1], 0.0)
    assert [float(risk(jnp.asarray(vector))) for vector in vectors] == [0.0] * 4


def test_risks_without_noise_have_no_error(checked):
    assert float(mixture_quadrature_error(denoising_bayes_risk, make(*DENOISING["singular"][:3]), 0.0)) == 0.0


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_covariances_must_be_equal_up_to_rounding():
    covs = np.stack([LONG, LONG * (1 + 4e-16)])
    almost = GaussianMixture(np.zeros(2), Gaussian(np.eye(2), covs))
    assert float(discriminant_bayes_risk(almost)) > 0
    unequal = GaussianMixture(np.zeros(2), Gaussian(np.eye(2), np.stack([LONG, LONG + 1e-6 * np.eye(2)])))
    for risk in (partial(denoising_bayes_risk, noise_std=1.0), partial(denoising_linear_risk, noise_std=1.0)):
        with pytest.raises(ValueError, match="equal covariances"):
            risk(unequal)
    with pytest.raises(ValueError, match="equal covariances"):
        discriminant_bayes_risk(unequal)
    with pytest.raises(ValueError, match="equal covariances"):
        mixture_quadrature_error(discriminant_bayes_risk, unequal)
    with pytest.raises(jax.errors.JaxRuntimeError, match="equal covariances"):
        jax.jit(discriminant_bayes_risk)(unequal).block_until_ready()


def test_means_of_three_dimensions_are_refused_where_they_are_integrated_over():
    mixture = make(np.zeros(4), np.concatenate([np.zeros((1, 3)), np.eye(3)]), np.eye(3))
    with pytest.raises(ValueError, match="at most two dimensions"):
        denoising_bayes_risk(mixture, 1.0)
    assert float(denoising_linear_risk(mixture, 1.0)) > 0
    almost = make(np.zeros(4), [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1e-6]], np.eye(3))
    with pytest.raises(ValueError, match="at most two dimensions"):
        denoising_bayes_risk(almost, 1.0)


def test_arguments_outside_the_domain_are_refused():
    mixture = make(np.zeros(3), np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match="two components"):
        discriminant_bayes_risk(mixture)
    for wrong in (-0.1, np.nan, np.inf):
        for risk in (denoising_bayes_risk, denoising_linear_risk):
            with pytest.raises(ValueError, match="noise_std"):
                risk(mixture, wrong)
    with pytest.raises((ValueError, TypeCheckError)):
        denoising_bayes_risk(mixture, jnp.ones(2))
    with pytest.raises(ValueError, match="must be one of"):
        mixture_quadrature_error(len, mixture)


def test_single_precision_is_refused():
    with jax.enable_x64(False):
        mixture = make(np.zeros(2), np.eye(2), np.eye(2))
        for risk in (discriminant_bayes_risk, partial(denoising_bayes_risk, noise_std=1.0)):
            with pytest.raises(ValueError, match=r"jax\.enable_x64"):
                risk(mixture)
