"""The chapter on gradients: the same for other seeds, and its limit law is a Gaussian moment."""

import numpy as np
import pytest

from chapters.gradient_concentration.gradient_errors import DIMENSION, BothGaps, PairedErrors
from chapters.gradient_concentration.sub_gaussian_moments import compute_moments
from chapters.gradient_concentration.theory import bounds, long_prompt_limit, single_tokens

NAME = "gradient_concentration"


@pytest.mark.parametrize("seed", [1, 2])
def test_claims_hold_for_other_seeds(seed, run_chapter):
    assert run_chapter(NAME, seed=seed).broken == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"lengths": [16, 16, 64, 64]},
        {"taus": [1.0, 2.0]},
        {"taus": [0.5, 0.5]},
        {"scales": [0.5, 1.0]},
        {"scales": [2.0, 2.0]},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_the_long_prompt_law_is_a_moment_of_shifted_normals(assert_monte_carlo):
    tau, gain = 1.2, 0.4
    y = np.random.default_rng(5).normal(size=(20_000, DIMENSION)) + np.asarray([tau, 0.0])
    gaps = np.sum((y[:, :, None] * y[:, None, :] - np.eye(DIMENSION)) ** 2, axis=(1, 2))
    assert_monte_carlo((tau / gain) ** 2 * np.exp(tau**2) * gaps, long_prompt_limit(np.asarray([tau]), gain)[0])


def test_log_ratios_know_that_both_errors_share_their_prompts():
    """Spread of ratios over repeated experiments, against the spread that each of them reports."""
    rng = np.random.default_rng(6)
    common = rng.gamma(2.0, size=(300, 400, 2))
    noise = 3 * common * rng.gamma(10.0, 0.1, size=common.shape)
    results = [PairedErrors([2, 4], BothGaps(*both)).log_ratio for both in zip(common, noise, strict=True)]
    logs, covs = (np.asarray(part) for part in zip(*results, strict=True))
    assert np.abs(logs.mean(axis=0) - np.log(3)).max() < 0.01
    np.testing.assert_allclose(np.mean([np.diagonal(cov) for cov in covs], axis=0), logs.var(axis=0), rtol=0.3)


def test_bounds_touch_the_errors_and_say_how_loose_they_are():
    """One scale twice as large: the factor that the power of σ overdoes, and the decay that c₂ takes from the other."""
    lengths = [4, 8, 16, 32, 64]
    gaps = np.random.default_rng(7).gamma(100.0, 0.01, size=(20, 5)) / np.asarray(lengths)
    measured = {sigma: PairedErrors(lengths, BothGaps(sigma**2 * gaps, sigma**4 * gaps)) for sigma in (1.0, 2.0)}
    for name, bound in bounds(measured, 0.4).items():
        errors = np.stack([these.curve(name).mean for these in measured.values()])
        shape = bound.shape(np.asarray([[1.0], [2.0]]), np.asarray(lengths))
        np.testing.assert_allclose(np.max(errors / shape), 1.0, rtol=1e-12)
        np.testing.assert_allclose(10**bound.looseness, np.max(shape / errors), rtol=1e-12)
        assert bound.own_looseness < bound.least_looseness <= bound.looseness


def test_gradients_of_one_token_are_those_of_numpy(assert_monte_carlo):
    rng, gain, scale = np.random.default_rng(8), 0.4, 2.0
    token, query = rng.normal(size=(2, 40_000, DIMENSION))
    value = DIMENSION * np.sum((scale * token - scale**2 * gain * query) ** 2, axis=1)
    bilinear = scale**4 * DIMENSION * np.sum(query**2, axis=1)
    exact = single_tokens({scale: None}, gain).exact[scale]
    assert_monte_carlo(np.stack([value, bilinear], axis=1), np.asarray([exact["value"], exact["bilinear"]]))


def test_tilted_moments_are_closed_forms_and_the_ceiling_is_a_mean():
    known = compute_moments()
    moments, tilts = known.moments, known.tilts
    np.testing.assert_allclose(moments["Gaussian", 4], tilts**4 + 6 * tilts**2 + 3, rtol=1e-9)
    np.testing.assert_allclose(moments["uniform", 8][0], 3**4 / 9, rtol=1e-9)
    np.testing.assert_allclose(moments["Laplace", 4][0], 24 / 4, rtol=1e-9)
    assert np.all(np.isinf(moments["Laplace", 4][tilts > np.sqrt(2)]))
    uniform = np.random.default_rng(9).uniform(size=2_000_000)
    excess = np.sqrt(-2 * np.log(uniform / 2))  # P(Y > y) = min(1, 2e^{-y²/2})
    np.testing.assert_allclose(known.ceilings[4][10], np.mean((2 * tilts[10] + excess) ** 4), rtol=5e-3)
