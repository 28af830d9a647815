"""Denoisers, heads and gated scores of Gaussian mixtures: against grids, Monte Carlo and the statements of [GBB26]."""

import jax
import jax.numpy as jnp
import jax.random as jr
import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from chapters.mixtures.denoisers import (
    add_noise,
    bayes_denoiser,
    denoiser_fixed_point,
    denoising_excess,
    denoising_heads,
    iterate_denoiser,
    residual_denoise,
    residual_denoising_head,
)
from chapters.mixtures.gated_scores import (
    GatedScore,
    bayes_score,
    discriminant_excess,
    gated_score,
    label_tokens,
)
from lib.attention import Attention, attend
from lib.measures import Gaussian, GaussianMixture, empirical
from lib.mixtures import denoising_bayes_risk, denoising_linear_risk, discriminant_bayes_risk

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")


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


ROUND, LONG = np.eye(2), np.array([[1.0, 0.4], [0.4, 0.3]])

FLAT = np.array([[1.0, 2.0], [2.0, 4.0]])


# --- denoisers --------------------------------------------------------------------------------------------------------


def test_eq_10_bayes_denoiser_is_the_posterior_mean(assert_exact):
    """Weights of clean places on a grid, by the density of the noise; three components, unequal norms, any Γ."""
    mixture, noise_std = make([0.3, 0, -0.5], [[0, 1], [2, 1], [-1, -2]], LONG), 0.8
    log_weights, means, cov = parts(mixture)
    places, _ = grid(means, cov, 401)
    prior = logsumexp(log_joint(places, log_weights, means, cov), axis=1)
    for query in np.random.default_rng(4).normal(size=(3, 2)) * 2:
        logs = prior - 0.5 * np.sum((query - places) ** 2, axis=1) / noise_std**2
        desired = np.exp(logs - logsumexp(logs)) @ places
        assert_exact(bayes_denoiser(mixture, noise_std, jnp.asarray(query)), desired)


def test_bayes_denoiser_follows_tweedies_formula(assert_exact):
    """`z + ξ² ∇log p(z)`, also for points."""
    for cov in (LONG, FLAT, 0 * ROUND):
        mixture = make([0.3, 0, -0.5], [[0, 1], [2, 1], [-1, -2]], cov)
        log_weights, means, _ = parts(mixture)
        total = cov + 0.49 * ROUND
        for query in np.random.default_rng(5).normal(size=(3, 2)):
            steps = 1e-3 * np.array([-2, -1, 1, 2])[:, None, None] * ROUND
            logs = logsumexp(log_joint((query + steps).reshape(-1, 2), log_weights, means, total), axis=1).reshape(4, 2)
            desired = query + 0.49 * np.array([1, -8, 8, -1]) @ logs / 12e-3
            np.testing.assert_allclose(bayes_denoiser(mixture, 0.7, jnp.asarray(query)), desired, atol=1e-9)


def test_denoising_excess_and_bayes_risk_add_up(assert_exact):
    """The best linear map's excess is the difference of the closed linear risk and the Bayes risk."""
    for cov in (ROUND, LONG, 0 * ROUND):
        mixture, noise_std = make([0.2, 0], [[2, 0], [0, 1.5]], cov), 0.9
        log_weights, means, _ = parts(mixture)
        moment = cov + np.einsum("k,ki,kj->ij", np.exp(log_weights), means, means)
        best = jnp.asarray(moment @ np.linalg.inv(moment + noise_std**2 * ROUND))
        excess = denoising_excess(lambda z, best=best: best @ z, mixture, noise_std)
        desired = denoising_linear_risk(mixture, noise_std) - denoising_bayes_risk(mixture, noise_std)
        assert_exact(excess, float(desired))
    line = make([0.2, 0], [[2], [-1]], [[0.5]])
    excess = denoising_excess(lambda z: 0 * z, line, 0.9)
    weight = np.exp(0.2) / (1 + np.exp(0.2))
    second_moment = 0.5 + 4 * weight + 1 - weight
    assert_exact(excess, second_moment - float(denoising_bayes_risk(line, 0.9)))


def equal_norms(d, cosine):
    """Two means of one norm at this cosine, in a random plane."""
    frame = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    return 1.7 * np.stack([frame[0], cosine * frame[0] + np.sqrt(1 - cosine**2) * frame[1]])


QUERIES = np.random.default_rng(6).normal(size=(5, 7)) * 2


@jax.jit
def outputs_of(heads, prompt, queries):
    """The sum of heads on a prompt, at each query."""
    return jax.vmap(lambda query: sum(attend(head, prompt, query) for head in heads))(queries)


@jax.jit
def bayes_outputs(mixture, noise_std, queries):
    return jax.vmap(lambda query: bayes_denoiser(mixture, noise_std, query))(queries)


@jax.jit
def residual_outputs(head, prompt, queries):
    return jax.vmap(lambda query: residual_denoise(head, prompt, query))(queries)


@pytest.mark.parametrize(
    ("d", "cosine", "variance"), [(2, -1.0, 0.3), (2, 0.4, 0.0), (2, 0.4, 2.0), (3, -1.0, 0.3), (7, -0.6, 2.0)]
)
def test_theorem_4_1_two_heads_are_the_bayes_denoiser(d, cosine, variance):
    mixture = make([0.9, 0], equal_norms(d, cosine), variance * np.eye(d))
    heads, noisy = denoising_heads(mixture, 0.8), add_noise(mixture, 0.8)
    queries = QUERIES[:, :d]
    found, desired = outputs_of(heads, noisy, queries), bayes_outputs(mixture, 0.8, queries)
    np.testing.assert_allclose(found, desired, atol=1e-12)


def test_theorem_4_1_one_head_suffices_where_token_and_noise_variances_agree():
    """And V is I/2 there. The residual head alone is no Bayes denoiser elsewhere."""
    for variance in (0.64, 0.5):
        mixture = make([0.9, 0], equal_norms(3, 0.4), variance * np.eye(3))
        head, noisy = residual_denoising_head(mixture, 0.8), add_noise(mixture, 0.8)
        queries = QUERIES[:, :3]
        miss = np.abs(outputs_of([head], noisy, queries) - bayes_outputs(mixture, 0.8, queries)).max()
        assert miss < 1e-14 if variance == 0.64 else miss > 1e-2
        if variance == 0.64:
            np.testing.assert_allclose(head.value, np.eye(3) / 2, atol=1e-15)


def test_proposition_4_4_one_residual_head_denoises_every_task():
    """One head for tasks of other means and weights; beyond the paper, five components and any Γ with equal norms."""
    head = residual_denoising_head(make([0, 0], equal_norms(4, 0.1), 0.3 * np.eye(4)), 0.8)
    for cosine, log_weight in ((-1.0, 2.0), (0.9, -1.0), (0.3, 0.0)):
        task = make([log_weight, 0], 2.5 * equal_norms(4, cosine), 0.3 * np.eye(4))
        denoised = residual_outputs(head, add_noise(task, 0.8), QUERIES[:, :4])
        np.testing.assert_allclose(denoised, bayes_outputs(task, 0.8, QUERIES[:, :4]), atol=1e-13)
    rng = np.random.default_rng(9)
    root = rng.normal(size=(4, 3))
    cov = root @ root.T
    total = cov + 0.64 * np.eye(4)
    means = rng.normal(size=(5, 4))
    means *= 2 / np.sqrt(np.einsum("ki,ij,kj->k", means, np.linalg.inv(total), means))[:, None]
    task = make(rng.normal(size=5), means, cov)
    denoised = residual_outputs(residual_denoising_head(task, 0.8), add_noise(task, 0.8), QUERIES[:, :4])
    np.testing.assert_allclose(denoised, bayes_outputs(task, 0.8, QUERIES[:, :4]), atol=1e-12)


def test_residual_layer_on_a_finite_prompt_is_near_the_bayes_denoiser():
    """With many tokens, at a query where few of them dominate no sum."""
    task = make([0.5, 0], equal_norms(2, 0.4), ROUND)
    prompt = empirical(add_noise(task, 1.0), 200_000, key=jr.key(3))
    query = jnp.asarray([0.3, -0.2])
    denoised = residual_denoise(residual_denoising_head(task, 1.0), prompt, query)
    np.testing.assert_allclose(denoised, bayes_denoiser(task, 1.0, query), atol=0.02)


def test_heads_refuse_mixtures_that_they_do_not_denoise():
    unequal = make([0, 0], [[1, 0], [0, 1.1]], ROUND)
    for build, wrong in (
        (denoising_heads, unequal),
        (residual_denoising_head, unequal),
        (denoising_heads, make([0, 0], [[1, 0], [1, 0]], ROUND)),
        (denoising_heads, make([0, 0], [[1, 0], [0, 1]], LONG)),
        (denoising_heads, make([0, 0], [[1], [-1]], [[1.0]])),
        (denoising_heads, make([0, 0, 0], [[1, 0], [0, 1], [-1, 0]], ROUND)),
    ):
        with pytest.raises(ValueError, match=build.__name__):
            build(wrong, 0.5)
    with pytest.raises(ValueError, match="concrete values"):
        jax.jit(denoising_heads)(make([0, 0], [[1, 0], [0, 1]], ROUND), 0.5)


# --- the iterated denoiser --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separation", [0.0, 0.5, 1.0, 1 + 1e-12, 1 + 1e-6, 1.001, 1.05, 1.5, 3.0, 10.0])
def test_fixed_point_agrees_with_mpmath(separation):
    value = float(denoiser_fixed_point(separation))
    if separation <= 1:
        assert value == 0.0
        return
    with mp.workdps(60):
        square = mp.mpf(separation) ** 2
        root = mp.sqrt(3 * (square - 1) / square**3) if separation < 1.2 else mp.mpf(1)
        if separation < 1.2:
            root = mp.findroot(lambda u: mp.atanh(u) / u - square, (root * (1 - mp.mpf(10) ** -3), root))
        else:
            for _ in range(200):
                root = mp.tanh(square * root)
    np.testing.assert_allclose(value, float(root), rtol=1e-12)
    both = jax.vmap(denoiser_fixed_point)(jnp.asarray([separation, 0.3]))
    np.testing.assert_allclose(both, [value, 0.0], rtol=1e-14)


@pytest.mark.parametrize("variance", [0.0, 0.5])
@pytest.mark.parametrize("separation", [0.7, 1.2, 2.0])
def test_proposition_4_3_iterates_end_at_the_fixed_points(separation, variance):
    """In R^3, means of different norms; with γ > 0, ours, the distance counts in units of √(γ² + ξ²)."""
    noise_std = 0.6
    middle, axis = np.array([0.5, -1.0, 2.0]), np.array([2.0, 1.0, 2.0]) / 3
    half = separation * np.sqrt(variance + noise_std**2) * axis
    mixture = make([0, 0], [middle + half, middle - half], variance * np.eye(3))
    starts = jnp.asarray(middle + np.random.default_rng(11).normal(size=(6, 3)))
    paths = jax.vmap(lambda start: iterate_denoiser(mixture, noise_std, start, 400))(starts)
    assert paths.shape == (6, 401, 3)
    np.testing.assert_array_equal(paths[:, 0], starts)
    sides = np.sign((np.asarray(starts) - middle) @ axis)
    desired = middle + float(denoiser_fixed_point(separation)) * sides[:, None] * half
    np.testing.assert_allclose(paths[:, -1], desired, atol=1e-12)


# --- discrimination by a head -----------------------------------------------------------------------------------------

PUBLISHED = ([np.log(0.6), np.log(0.4)], [[1, 0], [0, 1]], ROUND)


def random_head(d, seed):
    rng = np.random.default_rng(seed)
    return Attention(rng.normal(size=(d + 1, d + 1)), rng.normal(size=(d + 1, d + 1)))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_equations_6_and_7_read_a_head_on_labelled_tokens(d):
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d))
    mixture, head = make([0.7, 0], rng.normal(size=(2, d)), root @ root.T), random_head(d, d)
    score, prompt = gated_score(head, mixture), label_tokens(mixture)
    for token in jnp.asarray(rng.normal(size=(4, d))):
        output = attend(head, prompt, jnp.append(token, 0.0))[-1]
        np.testing.assert_allclose(score(token), output, rtol=1e-11, atol=1e-11)


def explicit_head(mixture, case):
    """Parameters of Lemma B.3 of [GBB26] for this mixture of two components."""
    log_weights, means, cov = parts(mixture)
    best = bayes_score(mixture)
    slope, intercept = np.asarray(best.slope), float(best.intercept)
    chance, difference, d = float(np.exp(log_weights[0])), means[0] - means[1], len(cov)
    row, label, upper = np.linalg.solve(cov, slope), 0.4, np.eye(d)
    gate = np.zeros(d)
    if case == "unbalanced":
        label = (intercept - row @ (chance * means[0] + (1 - chance) * means[1])) / (2 * chance - 1)
    if case in ("balanced", "without a gate"):
        middle = means.mean(0)
        row = intercept * middle / (middle @ middle)
        upper = np.outer(slope, cov @ row) / ((cov @ row) @ (cov @ row))
    if case == "without a gate":
        label, gate = -0.5 * row @ difference, np.array([0.6, -1.1])
    column = -0.5 * upper @ difference + gate
    transposed = np.block([[upper, column[:, None]], [np.zeros((1, d)), 0.3]])
    return Attention(transposed.T, np.concatenate([row, [label]])[None])


@pytest.mark.parametrize(
    ("case", "log_weights", "means"),
    [
        ("unbalanced", [0.8, 0], [[1, 0.5], [-1, 2]]),
        ("balanced", [0, 0], [[1, 0.5], [-1, 2]]),
        ("opposite", [0, 0], [[1, 0.5], [-1, -0.5]]),
        ("without a gate", [0, 0], [[1, 0.5], [-1, 2]]),
    ],
)
def test_lemma_b_3_explicit_heads_are_the_log_odds(case, log_weights, means):
    """The log-odds themselves against densities."""
    mixture = make(log_weights, means, LONG)
    head = explicit_head(mixture, case)
    tokens = np.random.default_rng(2).normal(size=(4, 2))
    logs = log_joint(tokens, *parts(mixture))
    for token, odds in zip(jnp.asarray(tokens), logs[:, 0] - logs[:, 1], strict=True):
        np.testing.assert_allclose(attend(head, label_tokens(mixture), jnp.append(token, 0.0))[-1], odds, atol=1e-11)
        np.testing.assert_allclose(bayes_score(mixture)(token), odds, atol=1e-11)
    assert float(discriminant_excess(mixture, gated_score(head, mixture))) < 1e-25


def test_excess_is_the_logistic_loss_above_the_bayes_risk():
    """The excess with and without a gate is that of the expected loss on a grid, in one and two dimensions."""
    rng = np.random.default_rng(12)
    for d in (1, 2):
        mixture = make([0.4, 0], rng.normal(size=(2, d)), LONG[:d, :d])
        log_weights, means, cov = parts(mixture)
        places, area = grid(means, cov, 501)
        densities = np.exp(log_joint(places, log_weights, means, cov))
        for height in (0.0, 1.5):
            score = GatedScore(rng.normal(size=d), 0.3, height, rng.normal(size=d), log_weights[0] - log_weights[1])
            gate = 1 / (1 + np.exp(-(score.gate_offset + places @ np.asarray(score.gate_slope))))
            values = places @ np.asarray(score.slope) + float(score.intercept) + height * gate
            loss = densities[:, 0] * np.logaddexp(0, -values) + densities[:, 1] * np.logaddexp(0, values)
            desired = area * loss.sum() - float(discriminant_bayes_risk(mixture))
            np.testing.assert_allclose(discriminant_excess(mixture, score), desired, rtol=1e-9, atol=1e-12)


def test_theorem_3_1_minimisers_have_no_excess_and_others_have():
    mixture = make(*PUBLISHED)
    best = bayes_score(mixture)
    odds = best.gate_offset
    without_gate = GatedScore(best.slope, best.intercept, 0.0, jnp.asarray([2.0, -1.0]), odds)
    constant_gate = GatedScore(best.slope, best.intercept - 1.7 * jax.nn.sigmoid(odds), 1.7, jnp.zeros(2), odds)
    neither = GatedScore(best.slope, best.intercept, 0.2, jnp.asarray([2.0, -1.0]), odds)
    for score in (best, without_gate, constant_gate):
        assert float(discriminant_excess(mixture, score)) < 1e-28
    assert float(discriminant_excess(mixture, neither)) > 1e-4


def test_small_excess_keeps_its_digits():
    """A shift δ of the intercept costs δ² E η(1 - η)/2, down to 1e-20."""
    mixture = make(*PUBLISHED)
    best = bayes_score(mixture)
    log_weights, means, cov = parts(mixture)
    places, area = grid(means, cov, 401)
    densities = np.exp(log_joint(places, log_weights, means, cov))
    curvature = area * np.sum(densities[:, 0] * densities[:, 1] / densities.sum(1))
    for shift in (1e-5, 1e-8, 1e-10):
        score = GatedScore(best.slope, best.intercept + shift, 0.0, best.gate_slope, best.gate_offset)
        moved = float(score.intercept - best.intercept)
        excess = float(discriminant_excess(mixture, score))
        np.testing.assert_allclose(excess, 0.5 * moved**2 * curvature, rtol=3 * shift + 1e-5)


def test_excess_needs_a_plane_and_has_gradients_beyond_it():
    """In R^3 with s = 0; the gradient in w leaves the plane of w* and w, where it vanishes."""
    mixture = make([0.4, 0], [[1, 0, 0], [0, 1, 0.5]], np.diag([1.0, 0.5, 2.0]))
    best = bayes_score(mixture)
    direction, step = np.random.default_rng(1).normal(size=3), 1e-4

    def excess(slope):
        return discriminant_excess(mixture, GatedScore(slope, 0.1, 0.7, jnp.zeros(3), best.gate_offset))

    place = best.slope + jnp.asarray([0.3, -0.2, 0.5])
    values = [float(excess(place + i * step * direction)) for i in (-2, -1, 1, 2)]
    slope = np.dot([1, -8, 8, -1], values) / (12 * step)
    np.testing.assert_allclose(jax.grad(excess)(place) @ direction, slope, rtol=1e-8)


def jacobian(function, place, step=1e-5):
    """By central differences, which cost less than to compile second derivatives."""
    moves = step * np.eye(len(place))
    rows = [(function(place + move) - function(place - move)) / (2 * step) for move in moves]
    return jnp.stack(rows, axis=1)


def test_published_saddle_is_a_critical_point_of_the_head():
    """The saddle with v_21 = 0 that we found for the paper's example: gradient, excess, and a direction down."""
    mixture = make(*PUBLISHED)

    def excess(theta):
        transposed = jnp.zeros((3, 3)).at[:2, :2].set(theta[:4].reshape(2, 2)).at[:2, 2].set(theta[4:6])
        return discriminant_excess(mixture, gated_score(Attention(transposed.T, theta[None, 6:]), mixture))

    best = bayes_score(mixture)

    def reduced(place):
        value = place[2]
        return discriminant_excess(mixture, GatedScore(jnp.zeros(2), -value, 2 * value, place[:2], best.gate_offset))

    place = jnp.asarray([0.73914, -0.80403, 3.07217])
    gradient = jax.jit(jax.grad(reduced))
    for _ in range(6):
        place -= jnp.linalg.solve(jacobian(gradient, place), gradient(place))
    slope, label = place[:2], place[2]
    by_score = jax.grad(lambda score: discriminant_excess(mixture, score))(
        GatedScore(jnp.zeros(2), -label, 2 * label, slope, best.gate_offset)
    )
    sums = mixture.components.mean.sum(0)
    upper = -by_score.height * jnp.outer(sums, by_score.slope) / jnp.sum(by_score.slope**2)
    transposed = upper.T
    column = 0.5 * (slope - transposed @ (mixture.components.mean[0] - mixture.components.mean[1]))
    theta = jnp.concatenate([transposed.ravel(), column, jnp.zeros(2), label[None]])
    gradient = jax.jit(jax.grad(excess))
    np.testing.assert_allclose(gradient(theta), 0.0, atol=1e-12)
    # half a unit of the last digit that is known from elsewhere
    assert abs(float(excess(theta)) - 3.16443e-3) < 0.000005e-3
    eigenvalues = np.linalg.eigvalsh(jacobian(gradient, theta))
    assert (np.abs(eigenvalues[[0, 1, -1]] - [-6.40e-3, -2.30e-3, 2.422]) < [0.005e-3, 0.005e-3, 0.0005]).all()
