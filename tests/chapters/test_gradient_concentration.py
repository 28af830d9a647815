"""The chapter on gradients: the same for other seeds, and its limit law is a Gaussian moment."""

import numpy as np
import pytest

from chapters.gradient_concentration.gradient_errors import DIMENSION, BothGaps, PairedErrors
from chapters.gradient_concentration.theory import fit, long_prompt_law

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
    assert_monte_carlo((tau / gain) ** 2 * np.exp(tau**2) * gaps, long_prompt_law(np.asarray([tau]), gain)[0])


def test_log_ratios_know_that_both_errors_share_their_prompts():
    """Spread of ratios over repeated experiments, against the spread that each of them reports."""
    rng = np.random.default_rng(6)
    common = rng.gamma(2.0, size=(300, 400, 2))
    noise = 3 * common * rng.gamma(10.0, 0.1, size=common.shape)
    results = [PairedErrors([2, 4], BothGaps(*both)).log_ratio for both in zip(common, noise, strict=True)]
    logs, covs = (np.asarray(part) for part in zip(*results, strict=True))
    assert np.abs(logs.mean(axis=0) - np.log(3)).max() < 0.01
    np.testing.assert_allclose(np.mean([np.diagonal(cov) for cov in covs], axis=0), logs.var(axis=0), rtol=0.3)


def test_constants_of_the_bounds_are_fitted_to_the_shorter_half():
    """What happens beyond does not change them."""
    lengths = [4, 8, 16, 32, 64]

    def measured(beyond):
        decay = np.where(np.asarray(lengths) > 8, beyond, 1.0) / np.asarray(lengths)
        gaps = np.random.default_rng(7).gamma(100.0, 0.01, size=(20, 5)) * decay
        return {sigma: PairedErrors(lengths, BothGaps(sigma * gaps, 3 * sigma * gaps)) for sigma in (1.0, 2.0)}

    one, other = fit(measured(1.0)), fit(measured(0.1))
    assert one.fitted_up_to == 8
    assert one == other
