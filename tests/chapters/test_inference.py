"""Message passing follows its state evolution, ends where its fixed point says, and needs the step along the spike."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.special import softmax as scipy_softmax

from chapters.message_passing.evolution import state_evolution
from chapters.message_passing.inference import Beliefs, draw_beliefs, message_passing, simulate_message_passing
from chapters.message_passing.settings import INFORMED, UNINFORMED
from lib.single_location import Head, Spiked, bayes_optimal_risk
from lib.statistics import comparison_quantile, standard_error

pytestmark = pytest.mark.usefixtures("float64")

# Settings that no constant of the algorithm was chosen at: a short prompt with a weak hint, a long one.
SETTINGS = {"weak": (2, 1.5, 0.5, 2.5), "long": (7, 5.0, 0.25, 2.0)}

SEEDS, ITERATIONS, DIMENSION = 6, 18, 400


@pytest.fixture(scope="module", params=SETTINGS)
def case(request, float64):
    length, snr, noise, alpha = SETTINGS[request.param]
    task, setting = Spiked(length, snr), {"noise_std": noise, "alpha": alpha}

    def run(known):
        def one(key):
            return simulate_message_passing(
                task, **setting, dimension=DIMENSION, start_overlap=known, iterations=ITERATIONS, key=key
            )

        return jax.jit(lambda keys: jax.lax.map(one, keys))(jr.split(jr.key(11), SEEDS))

    return task, setting, {known: run(known) for known in (UNINFORMED, INFORMED)}


def deviations(case, shift=0):
    """Return deviations of m_k and m_v from the evolution `shift` passes later, in standard errors, for both starts."""
    task, setting, runs = case
    found = []
    for known, run in runs.items():
        passes = state_evolution(task, **setting, start_overlap=known, iterations=ITERATIONS)
        for name, predicted in (("m_k", passes.q_k), ("m_v", passes.q_v)):
            mine = np.asarray(getattr(run.overlaps, name))[:, 1:6]
            theory = np.asarray(predicted)[1 + shift : 6 + shift]
            # apart from chance, overlaps at finite D differ by an order 1/D from their limits
            error = np.hypot(standard_error(mine), 2.0 / DIMENSION)
            found.append((mine.mean(axis=0) - theory) / error)
    return np.abs(found)


def test_overlaps_follow_the_evolution_pass_by_pass(case):
    right = deviations(case)
    assert right.max() < comparison_quantile(right.size)
    assert deviations(case, shift=1).max() > 1.5 * comparison_quantile(right.size)


def test_both_starts_end_at_the_fixed_point(case):
    task, setting, runs = case
    ends = {known: np.asarray(run.risk)[:, -1] for known, run in runs.items()}
    np.testing.assert_allclose(ends[UNINFORMED], ends[INFORMED], atol=3e-3)
    expected = float(bayes_optimal_risk(task, **setting))
    error = np.hypot(standard_error(ends[UNINFORMED]), 2.0 / DIMENSION)
    assert abs(ends[UNINFORMED].mean() - expected) < comparison_quantile(2) * error


def test_the_algorithm_knows_what_it_knows(case):
    """What it claims, without seeing the truth, are its overlaps with the truth."""
    _, _, runs = case
    run = runs[UNINFORMED]
    for i, name in enumerate(("m_k", "m_v")):
        actual, estimated = np.asarray(getattr(run.overlaps, name))[:, -1], np.asarray(run.estimated)[:, -1, i]
        error = np.hypot(standard_error(actual - estimated), 2.0 / DIMENSION)
        assert abs(np.mean(actual - estimated)) < comparison_quantile(4) * error


def test_one_token_is_ridge_regression(assert_exact):
    """With L = 1 the posterior mean of v* is ridge regression with ridge Δ², by a direct solve."""
    task, noise, dimension = Spiked(1, 0.0), 0.6, 120
    truth = Head.orthogonal(dimension, key=jr.key(0))
    prompts = task.draw(truth, 200, noise_std=noise, key=jr.key(1))
    start = draw_beliefs(truth, UNINFORMED, key=jr.key(2))
    beliefs = jax.jit(lambda prompts: message_passing(task, prompts, start, noise_std=noise, iterations=200))(prompts)
    tokens = np.asarray(prompts.tokens)[:, 0] / np.sqrt(dimension)
    ridge = np.linalg.solve(tokens.T @ tokens + noise**2 * np.eye(dimension), tokens.T @ np.asarray(prompts.labels))
    found = np.asarray(beliefs.mean.value[-1])
    assert np.linalg.norm(found - ridge) < 0.02 * np.linalg.norm(ridge)
    far = np.asarray(beliefs.mean.value[0])
    assert np.linalg.norm(far - ridge) > 0.1 * np.linalg.norm(ridge)


def test_the_fixed_point_solves_the_equations_of_the_posterior():
    """At rest `W` is the gradient of the log-likelihood of prompts with each own pull removed: here by NumPy."""
    task, noise, dimension = Spiked(3, 4.0), 0.3, 300
    truth = Head.orthogonal(dimension, key=jr.key(3))
    prompts = task.draw(truth, 900, noise_std=noise, key=jr.key(4))
    start = draw_beliefs(truth, UNINFORMED, key=jr.key(5))
    run = jax.jit(lambda prompts: message_passing(task, prompts, start, noise_std=noise, iterations=60, damping=0.2))
    beliefs = run(prompts)
    variance = np.asarray(beliefs.variance[-1])
    means = np.stack([np.asarray(beliefs.mean.key[-1]), np.asarray(beliefs.mean.value[-1])], axis=1)
    tokens, labels = np.asarray(prompts.tokens), np.asarray(prompts.labels)
    fields, pull, unknown = tokens @ means / np.sqrt(dimension), np.zeros((900, 3, 2)), noise**2 + variance[1]
    for _ in range(300):
        omega = fields - pull * variance
        errors = labels[:, None] - omega[..., 1]
        p = scipy_softmax(2.0 * omega[..., 0] - errors**2 / (2 * unknown), axis=1)
        pull = 0.5 * pull + 0.5 * np.stack([2.0 * p, p * errors / unknown], axis=-1)
    force = np.einsum("nld,nlc->dc", tokens, pull) / np.sqrt(dimension)
    curvature = 900 / dimension * 4.0 - 4.0 * np.sum(p * (1 - p)) / dimension
    np.testing.assert_allclose(variance[0], 1 / (1 + curvature), rtol=1e-4)
    np.testing.assert_allclose(means[:, 1], force[:, 1], atol=1e-3)
    np.testing.assert_allclose((1 + 900 / dimension * 4.0) * means[:, 0], force[:, 0], atol=1e-2)


def test_key_and_value_are_those_of_a_start_with_the_named_overlap():
    truth = Head.orthogonal(20_000, key=jr.key(0))
    beliefs = draw_beliefs(truth, 0.3, key=jr.key(1))
    for mine, true in ((beliefs.mean.key, truth.key), (beliefs.mean.value, truth.value)):
        np.testing.assert_allclose([mine @ true / 20_000, mine @ mine / 20_000], [0.3, 0.3], atol=0.02)
    np.testing.assert_allclose(beliefs.variance, 0.7)


def missing_precision(length, snr, noise, q_k, q_v):
    """Return what the textbook's precision along k* lacks, and the precision itself less the prior, both over alpha.

    Box `pull-along-the-spike`: `-E Σ (χ*_l χ*_m - δ_lm) ∂G_l/∂ω_m` and `E Σ G_l²`, from drawn fields.
    """
    rng, samples = np.random.default_rng(3), 400_000
    normals = rng.normal(size=(4, samples, length))
    hints = normals[0] + np.sqrt(snr) * (np.arange(length) == 0)
    keys = q_k * hints + np.sqrt(q_k * (1.0 - q_k)) * normals[1]
    values = q_v * normals[2] + np.sqrt(q_v * (1.0 - q_v)) * normals[3]
    answers = normals[2][:, :1] + noise * rng.normal(size=(samples, 1))
    unknown = noise**2 + 1.0 - q_v
    errors = (answers - values) / unknown
    p = scipy_softmax(np.sqrt(snr) * keys - 0.5 * unknown * errors**2, axis=1)
    # ∂G_l/∂ω_m = p_l (δ_lm - p_m) e_m e_l - δ_lm p_l/T, with G = p e
    own, pull = p * errors**2 - p / unknown, p * errors
    along = np.sum(hints**2 * own, axis=1) - np.sum(hints * pull, axis=1) ** 2
    isotropic = np.sum(own - pull**2, axis=1)
    return np.mean(isotropic - along), np.mean(np.sum(pull**2, axis=1))


def test_the_textbook_precision_along_the_spike_lacks_what_the_box_says():
    """The response of the value along k* to its own part along k*, on real tokens, by an exact derivative."""
    length, snr, noise, alpha, q_k, q_v, dimension = 3, 4.0, 0.3, 3.0, 0.6, 0.7, 300
    task, known = Spiked(length, snr), np.asarray([q_k, q_v])

    @jax.jit
    def response(key):
        truth_key, prompt_key, start_key = jr.split(key, 3)
        truth = Head.orthogonal(dimension, key=truth_key)
        prompts = task.draw(truth, round(alpha * dimension), noise_std=noise, key=prompt_key)
        noises = np.sqrt(known * (1.0 - known))[:, None] * jr.normal(start_key, (2, dimension))
        key_vector, value = q_k * truth.key + noises[0], q_v * truth.value + noises[1]

        def next_value(part):
            start = Beliefs(Head(key_vector, value + part * truth.key), jnp.asarray(1.0 - known))
            beliefs = message_passing(task, prompts, start, noise_std=noise, iterations=1, stiffness=0.0)
            return beliefs.mean.value[0] @ truth.key / dimension

        return jax.grad(next_value)(0.0)

    measured = np.asarray(jax.lax.map(response, jr.split(jr.key(5), 24)))
    lacking, counted = missing_precision(length, snr, noise, q_k, q_v)
    expected = -alpha * lacking / (1.0 + alpha * counted)
    assert expected < -1.0, "the spike is strong enough here for the textbook's value to grow along k*"
    # apart from chance, finite dimension moves the mean by an order 1/D
    bound = comparison_quantile(1) * standard_error(measured) + 2.0 * abs(expected) / dimension
    assert abs(measured.mean() - expected) < bound


def test_the_textbook_step_runs_off_along_the_key():
    """Without the spike's own curvature the overlap of value and k* grows fourfold an iteration; with it, it stays."""
    task, last = Spiked(3, 4.0), {}
    setting = {"noise_std": 0.3, "alpha": 3.0, "dimension": 300, "start_overlap": UNINFORMED, "iterations": 10}
    simulate = jax.jit(lambda stiffness, key: simulate_message_passing(task, **setting, stiffness=stiffness, key=key))
    for stiffness in (0.0, 1.0):
        run = simulate(stiffness, jr.key(7))
        last[stiffness] = float(np.abs(run.overlaps.m_vk).max())
    assert last[1.0] < 0.15
    assert last[0.0] > 0.2


@pytest.mark.parametrize("known", [0.02, 0.4])
def test_the_hidden_token_has_a_softmax_posterior_also_where_little_is_known(known):
    """By the Gaussian integral over what is unknown of k*, whose variance is near 1; other tokens would refute it."""
    task, deviations = Spiked(3, 4.0), []
    for dimension in (300, 30_000):
        truth = Head.orthogonal(dimension, key=jr.key(0))
        tokens = np.asarray(task.draw(truth, 20, noise_std=0.3, key=jr.key(1)).tokens)
        mean, variance = np.asarray(draw_beliefs(truth, known, key=jr.key(2)).mean.key), 1.0 - known
        share = variance / (1.0 + task.snr * variance / dimension)

        def deviation(tokens, mean=mean, share=share, dimension=dimension):
            hints = np.sqrt(task.snr / dimension) * tokens
            fields = hints @ mean
            exact = fields * (1.0 - share * task.snr / dimension) + 0.5 * share * np.sum(hints**2, axis=-1)
            return float(np.abs(scipy_softmax(exact, axis=1) - scipy_softmax(fields, axis=1)).max())

        lengths = np.sqrt([1.0, 2.0, 0.5])[:, None]
        deviations.append((deviation(tokens), deviation(tokens * lengths)))
    (few, other_few), (many, other_many) = deviations
    assert many < 4 / np.sqrt(30_000) < few
    assert min(other_few, other_many) > 0.2
