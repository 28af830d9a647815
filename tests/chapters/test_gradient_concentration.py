"""The chapter on gradients: the same for other seeds, and its limit law is a Gaussian moment."""

import numpy as np
import pytest

from chapters.gradient_concentration.gradient_errors import DIMENSION, Errors
from chapters.gradient_concentration.gradient_extra_factor import log_ratio, long_prompt_law
from lib.concentration import error_curve

NAME = "gradient_concentration"


@pytest.mark.parametrize("seed", [1, 2])
def test_claims_hold_for_other_seeds(seed, run_chapter):
    assert run_chapter(NAME, seed=seed).broken == []


@pytest.mark.parametrize("wrong", [{"lengths": [16, 16, 64, 64]}, {"taus": [1.0, 2.0]}, {"scales": [0.5, 1.0]}])
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
    samples = np.stack([common, 3 * common * rng.gamma(10.0, 0.1, size=common.shape)], axis=-1)
    results = [log_ratio(Errors(s, *(error_curve([2, 4], s[..., i]) for i in range(2)))) for s in samples]
    logs, covs = (np.asarray(part) for part in zip(*results, strict=True))
    assert np.abs(logs.mean(axis=0) - np.log(3)).max() < 0.01
    np.testing.assert_allclose(np.mean([np.diagonal(cov) for cov in covs], axis=0), logs.var(axis=0), rtol=0.3)
