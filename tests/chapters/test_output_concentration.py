"""The chapter on outputs: the same for other seeds, and its parts are what they say."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, stats

from chapters.output_concentration import partition_functions
from chapters.output_concentration.anatomy import TakeApart, share_above
from chapters.output_concentration.error_curves import simulate_errors
from chapters.output_concentration.scene import DIMENSION, QUERIES, clusters, head, isotropic
from chapters.output_concentration.token_laws import law_limits, token_laws
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
        {"scales": [2.0, 2.0]},
        {"dimensions": [4, 4]},
        {"dimension_lengths": []},
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
        actual = TakeApart(truncation)(params, Empirical(points), law, jnp.asarray(query))._asdict()
        assert_exact(jnp.stack([actual.pop(name) for name in ("gap", "above")]), [gap, above])
        assert_exact(
            jnp.stack([actual.pop(f"{name}_above") for name in ("gap", "ceiling")]), [gap * above, bound * above]
        )
        assert_exact(jnp.stack([actual.pop("excess"), actual.pop("limit_excess")]), [0.0, excess])
        assert actual == {}


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
    logs = partition_functions.simulate(64, 4000, key=jr.key(3)).logs
    np.testing.assert_allclose(logs[:, 0], 0.0, atol=1e-12)
    values = np.exp(logs[:, 1])
    assert_monte_carlo(np.stack([values, (values - 1) ** 2], axis=1), np.asarray([1.0, np.expm1(1 / 9) / 64]))


def test_quantiles_know_how_far_they_move():
    """Spread over repeated experiments, against what each of them reports."""
    rng, taus = np.random.default_rng(5), np.zeros(3)
    drawn = [partition_functions.Partitions(8, taus, rng.lognormal(size=(800, 3))) for _ in range(300)]
    for level in (0.05, 0.5, 0.95):
        values, errors = (np.asarray(part) for part in zip(*(one.quantile(level) for one in drawn), strict=True))
        np.testing.assert_allclose(values.mean(axis=0), stats.lognorm.ppf(level, 1.0), rtol=0.05)
        np.testing.assert_allclose(errors.mean(axis=0), values.std(axis=0), rtol=0.2)


def test_the_anatomy_of_one_query_asks_the_same_gap_as_attend(float64, assert_exact):
    query = Empirical(jnp.asarray([[0.4, 0.8]]))
    samples = sample_gaps(TakeApart(0.5), head(0.4), isotropic(2), query, [5], prompts=3, key=jr.key(4))

    @eqx.filter_vmap
    def gap(index):
        prompt_key, _ = jr.split(jr.fold_in(jr.key(4), index))
        prompt = Empirical(isotropic(2).sample(5, key=prompt_key))
        return jnp.sum((attend(head(0.4), prompt, query.points[0]) - 0.4 * query.points[0]) ** 2)

    assert_exact(samples.gap[:, 0], gap(jnp.arange(3)))


def test_errors_are_those_of_the_anatomy(float64, assert_exact):
    """Whoever asks: the same prompts, the same queries."""
    law, options = isotropic(2), {"prompts": 6, "key": jr.key(6)}
    taken = sample_gaps(TakeApart(0.5), head(0.4), law, law, [2, 5], queries_per_prompt=QUERIES, **options)
    assert_exact(simulate_errors(head(0.4), law, law, [2, 5], **options).mean, np.mean(taken.gap, axis=0))
