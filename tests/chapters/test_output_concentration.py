"""The chapter on outputs: the same for other seeds, and its parts are what they say."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, stats

from chapters.output_concentration.anatomy import Anatomy
from chapters.output_concentration.output_error_by_law import law_limits, token_laws
from chapters.output_concentration.output_proof import partition_functions, share_above
from chapters.output_concentration.scene import DIMENSION, clusters, head, isotropic
from lib.attention import attend
from lib.concentration import sample_gaps
from lib.measures import Empirical, Gaussian, Rademacher

NAME = "output_concentration"


@pytest.mark.parametrize("seed", [1, 2])
def test_claims_hold_for_other_seeds(seed, run_chapter):
    assert run_chapter(NAME, seed=seed).broken == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"scales": [0.5, 1.0]},
        {"lengths": [16, 64]},
        {"lengths": [16, 16, 64, 64]},
        {"gain": 1.0},
        {"truncation": 2.0},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_clusters_end_in_signs_and_in_the_gaussian(float64, assert_exact):
    tilt = jnp.asarray([0.7, -1.1])
    assert_exact(clusters(1.5, within=0.0).log_mgf(tilt), Rademacher([1.5, 1.5]).log_mgf(tilt))
    assert_exact(clusters(1.5, within=1.0).log_mgf(tilt), Gaussian(np.zeros(2), 2.25 * np.eye(2)).log_mgf(tilt))


def test_the_four_laws_share_their_variance_and_their_sub_gaussian_constant(float64):
    scale, tilts = 1.7, np.random.default_rng(1).normal(size=(20, DIMENSION))
    for law in token_laws(scale).values():
        small = 1e-4 * np.eye(DIMENSION)
        np.testing.assert_allclose([law.log_mgf(tilt) for tilt in small], 0.5e-8 * scale**2, rtol=1e-5)
        assert all(law.log_mgf(tilt) <= 0.5 * scale**2 * tilt @ tilt + 1e-12 for tilt in jnp.asarray(tilts))


def test_anatomy_is_that_of_numpy(float64, assert_exact):
    rng = np.random.default_rng(2)
    points, query = rng.normal(size=(12, 2)), np.asarray([1.4, 0.3])
    params, law = head(0.9), isotropic(2)
    scores = points @ (0.9 * query)
    weights = np.exp(scores - scores.max())
    answer, limit = weights @ points / weights.sum(), 0.9 * query
    gap, largest = np.sum((answer - limit) ** 2), np.linalg.norm(points, axis=1).max()
    for truncation in (0.01, 10.0):
        above = scores.max() > truncation * np.log(12)
        bound = (largest + np.linalg.norm(limit)) ** 2
        excess = max(np.linalg.norm(limit) - largest, 0.0)
        actual = Anatomy(truncation)(params, Empirical(points), law, jnp.asarray(query))
        assert_exact(actual, [gap, above, gap * above, bound * above, 0.0, excess])


def test_share_above_is_that_of_nested_quadrature():
    def of_radius(r):
        return stats.chi.pdf(r, 3) * -np.expm1(50 * stats.norm.logcdf(0.5 * np.log(50) / (0.8 * r)))

    exact = integrate.quad(of_radius, 0, 12, epsabs=1e-12)[0]
    np.testing.assert_allclose(share_above(0.8, 3, 0.5, np.asarray([50.0])), exact, rtol=1e-6)


def test_limits_are_means_of_the_two_dimensional_fluctuation(float64):
    """Product formula against the delta method written out for signs, in NumPy, on a grid of queries."""
    scale, gain = 3.0, 0.4
    z = np.linspace(-9, 9, 361)
    weights = stats.norm.pdf(z) * 0.05
    queries = np.stack(np.meshgrid(z, z), axis=-1)
    corners = scale * np.asarray([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    density = np.exp(gain * queries @ corners.T)
    density /= density.mean(axis=-1, keepdims=True)
    away = corners - (density @ corners / 4)[..., None, :]
    noise = np.mean(density**2 * np.sum(away**2, axis=-1), axis=-1)
    np.testing.assert_allclose(law_limits(scale, gain)["Rademacher"], weights @ noise @ weights, rtol=1e-6)


def test_partition_functions_have_mean_one_and_lognormal_terms(float64, assert_monte_carlo):
    """At τ = 1/3: `E W = 1` and `Var W = (e^{τ²} - 1)/L`."""
    logs = partition_functions(64, 4000, key=jr.key(3)).logs
    np.testing.assert_allclose(logs[:, 0], 0.0, atol=1e-12)
    values = np.exp(logs[:, 1])
    assert_monte_carlo(np.stack([values, (values - 1) ** 2], axis=1), np.asarray([1.0, np.expm1(1 / 9) / 64]))


def test_the_anatomy_of_one_query_asks_the_same_gap_as_attend(float64, assert_exact):
    query = Empirical(jnp.asarray([[0.4, 0.8]]))
    samples = sample_gaps(Anatomy(0.5), head(0.4), isotropic(2), query, [5], prompts=3, key=jr.key(4))

    @eqx.filter_vmap
    def gap(index):
        prompt_key, _ = jr.split(jr.fold_in(jr.key(4), index))
        prompt = Empirical(isotropic(2).sample(5, key=prompt_key))
        return jnp.sum((attend(head(0.4), prompt, query.points[0]) - 0.4 * query.points[0]) ** 2)

    assert_exact(samples[:, 0, 0], gap(jnp.arange(3)))
