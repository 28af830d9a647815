"""The chapter on denoising by attention: its risks, iterations, prompts and trainings by independent computations."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.optimize import brentq

from chapters.mixture_denoising import best_denoisers, finite_prompts, iterated_denoiser
from chapters.mixture_denoising.denoisers import add_noise, denoising_excess
from chapters.mixture_denoising.settings import denoised, head_outputs, mixture, published_mixture
from lib.attention import Attention, attend

NAME = "mixture_denoising"


def test_claims_hold_and_columns_are_filled_where_they_belong(run):
    """Iterates have a position or, step by step, a distance; only the smaller head has a limit."""
    assert run.claims
    assert run.broken == []
    for name in ("heads_needed", "trained_denoisers"):
        assert not run.tables[name].frame.isna().to_numpy().any()
    iterates = run.tables["merging_components"].frame
    assert (iterates["position"].isna() == iterates["distance"].notna()).all()
    prompts = run.tables["denoising_from_a_prompt"].frame
    assert (prompts["limit"].isna() == (prompts["size"] == 1)).all()
    for table in run.tables.values():
        assert not np.isinf(table.frame.select_dtypes("number").to_numpy()).any()


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.7, 0.0)])
def test_products_of_matrices_are_attention_and_the_posterior_mean(float64, weights):
    """For means of different norms, too."""
    from lib.attention import Attention, attend

    law = mixture([[1.0, 2.0], [-0.5, 0.3]], weights, token_std=0.8)
    rng = np.random.default_rng(4)
    head, queries = Attention(rng.normal(size=(2, 2)), rng.normal(size=(2, 2))), rng.normal(size=(5, 2))
    noisy = add_noise(law, 1.5)
    outputs, means = head_outputs(head, noisy, jnp.asarray(queries)), denoised(law, 1.5, jnp.asarray(queries))
    probabilities = np.exp(weights) / np.exp(weights).sum()
    for query, output, mean in zip(queries, outputs, means, strict=True):
        np.testing.assert_allclose(output, attend(head, noisy, jnp.asarray(query)), rtol=1e-11)
        expected = posterior_mean(np.asarray(law.components.mean), probabilities, 0.64, 2.25, query)
        np.testing.assert_allclose(mean, expected, rtol=1e-11)


def posterior_mean(means, weights, token_variance, noise_variance, query):
    """Return `E[X | Z = query]` of two components with isotropic covariances, by Bayes' rule."""
    total = token_variance + noise_variance
    densities = [
        weight * np.exp(-((query - mean) ** 2).sum() / (2 * total)) for weight, mean in zip(weights, means, strict=True)
    ]
    share = token_variance / total
    centres = [mean + share * (query - mean) for mean in means]
    return np.average(centres, axis=0, weights=densities)


def test_excess_of_linear_attention_is_that_of_a_simulation(float64, run, assert_monte_carlo):
    """`E‖A Z - f*(Z)‖²` with the best matrix A = C (C + ξ² I)⁻¹, C = E X Xᵀ."""
    table = run.tables["heads_needed"].frame
    row = table[np.isclose(table["noise_std"], 2.0)].iloc[0]
    rng, means = np.random.default_rng(7), 3 * np.eye(2)
    component = rng.integers(2, size=40_000)
    tokens = means[component] + rng.normal(size=(len(component), 2))
    noisy = tokens + 2.0 * rng.normal(size=tokens.shape)
    second = means.T @ means / 2 + np.eye(2)
    denoised = noisy @ np.linalg.inv(second + 4 * np.eye(2)) @ second
    best = np.array([posterior_mean(means, [0.5, 0.5], 1.0, 4.0, z) for z in noisy])
    squares = ((denoised - best) ** 2).sum(axis=1)[:, None]
    assert_monte_carlo(squares, np.array([row["linear"] * row["bayes_risk"]]), 1)


def test_the_best_head_is_no_better_than_two_and_no_worse_than_linear_attention(run):
    table = run.tables["heads_needed"].frame
    assert (table["two_heads"] <= table["one_head"] + 1e-12).all()
    assert (table["one_head"] < table["linear"]).all()


def test_noise_levels_are_symmetric_and_contain_the_published_one():
    levels = best_denoisers.noise_levels([1.5])
    np.testing.assert_allclose(levels, [1 / 1.5, 1.0, 1.5, 2.0])


def test_the_best_single_head_depends_neither_on_random_starts_nor_on_the_grid(float64, monkeypatch):
    """To the digits that `heads_needed` publishes, down to a third of the standard deviation of the tokens."""
    ratios = [1.5, 2.0, 3.0]
    levels = best_denoisers.solve_noise_levels(ratios, key=jr.key(1))
    monkeypatch.setattr(best_denoisers, "FINE", (640, 32))
    finer = best_denoisers.solve_noise_levels(ratios, key=jr.key(2))
    expected = [level.one_head for level in finer]
    np.testing.assert_allclose([level.one_head for level in levels], expected, rtol=1e-6, atol=1e-20)


def test_the_excess_of_a_search_is_that_of_the_library(float64):
    noise_std, law = 0.5, published_mixture()
    excess, head = best_denoisers._search()(noise_std, jr.key(1), None)
    bilinear, value = jnp.asarray(head).reshape(2, 2, 2)
    noisy = add_noise(law, noise_std)
    theirs = denoising_excess(lambda z: attend(Attention(bilinear, value), noisy, z), law, noise_std, nodes=512)
    np.testing.assert_allclose(excess, theirs, rtol=1e-6)


@pytest.mark.parametrize("separation", [0.7, 1.3, 2.0])
def test_iterates_follow_the_hyperbolic_tangent(float64, separation):
    """One step leads to the line of the means; then u becomes tanh(λ² u)."""
    ends = iterated_denoiser.simulate_ends([separation], key=jr.key(3))
    early = ends[ends["steps"] == 3].set_index("start")["position"]
    late = ends[ends["steps"] == 10].set_index("start")["position"]
    expected = early.to_numpy()
    for _ in range(7):
        expected = np.tanh(separation**2 * expected)
    np.testing.assert_allclose(late, expected, atol=1e-12)


def test_the_root_is_that_of_a_root_finder(float64):
    root = iterated_denoiser.simulate_ends([1.4], key=jr.key(0))["root"].iloc[0]
    assert root == pytest.approx(brentq(lambda u: u - np.tanh(1.4**2 * u), 0.1, 1.0), rel=1e-12)


def test_the_residual_layer_denoises_every_task(float64):
    """Its output on the infinite prompt is the posterior mean, by Bayes' rule."""
    from chapters.mixture_denoising.denoisers import residual_denoise

    head = finite_prompts.head_of_size(1.0)
    for seed in range(5):
        task = finite_prompts.draw_task(jr.key(seed))
        weights = np.exp(np.asarray(task.log_weights))
        query = np.asarray(jr.normal(jr.key(seed + 100), (2,))) * 3
        output = residual_denoise(head, add_noise(task, 2.0), jnp.asarray(query))
        expected = posterior_mean(np.asarray(task.components.mean), weights, 1.0, 4.0, query)
        np.testing.assert_allclose(output, expected, rtol=1e-10)


def test_the_exponent_of_a_power_law_is_found():
    import pandas as pd

    lengths = [100, 400, 1600]
    factors = np.random.default_rng(0).exponential(size=(500, 1))
    slope, std_error = finite_prompts.exponent(pd.DataFrame(factors / np.sqrt(lengths), columns=lengths))
    assert slope == pytest.approx(-0.5)
    assert std_error < 1e-12


def test_published_means_have_one_norm():
    np.testing.assert_allclose(np.linalg.norm(published_mixture().components.mean, axis=1), 3.0)
    assert mixture(np.eye(2)).components.cov.shape == (2, 2, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise_ratios": [1.0]},
        {"separations": [1.0]},
        {"prompt_lengths": [100, 200]},
        {"tasks": 10},
        {"training_runs": 1},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


@pytest.mark.daily
def test_short_training_decides_nothing(run_cells):
    run = run_cells("mixture_denoising", only="trained_denoisers", training_steps=1000)
    assert run.broken == []
    assert set(run.withheld) == {"mixture-denoising-training"}
