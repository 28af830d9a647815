"""The chapter on concentration: its claims hold for other seeds, and its parts agree with independent computations."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, stats

from chapters.concentration import partition_functions
from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.error_curves import simulate_errors
from chapters.concentration.exact_by_distribution import clusters as normal_clusters
from chapters.concentration.exact_by_distribution import errors_for, signs, uniform
from chapters.concentration.experiment import DIMENSION, QUERIES, SPREAD, clusters, head, isotropic
from chapters.concentration.four_distributions import (
    MOMENTS,
    WITHIN,
    even_moments,
    exact_limits,
    token_distributions,
)
from chapters.concentration.gaps import ByImportance, TiltedMeasure, TiltedPrompt, sample_gaps
from chapters.concentration.gradient_errors import BothGaps, PairedErrors
from chapters.concentration.gradient_theory import long_prompt_limit, solve_gradient_bounds, solve_single_token_errors
from chapters.concentration.proof_quantities import MeasureProof, fraction_above
from chapters.concentration.sub_gaussian_moments import solve_tilted_moments
from lib.attention import attend
from lib.concentration import RadialTable
from lib.measures import Empirical, Gaussian, Rademacher

NAME = "concentration"


@pytest.mark.daily
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
        {"gradient_lengths": [16, 16, 64, 64]},
        {"taus": [1.0, 2.0]},
        {"taus": [0.5, 0.5]},
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
    for law in token_distributions(scale).values():
        small = 1e-4 * np.eye(DIMENSION)
        np.testing.assert_allclose([law.log_mgf(tilt) for tilt in small], 0.5e-8 * scale**2, rtol=1e-5)
        assert all(law.log_mgf(tilt) <= 0.5 * scale**2 * tilt @ tilt + 1e-12 for tilt in jnp.asarray(tilts))


def test_on_a_grid_of_tilts_no_sub_gaussian_constant_differs_from_the_proved_one(float64):
    """`sup_ξ √(2Λ(ξ))/|ξ|` of a coordinate is σ, from below: at the least tilt t, 1 - (σt)²/12 at worst."""
    scale, least = 1.7, 1e-3
    tilts = jnp.geomspace(least, 30.0, 200) / scale
    for law in token_distributions(scale, 1).values():
        constants = np.asarray([jnp.sqrt(2 * law.log_mgf(tilt[None])) / tilt for tilt in tilts])
        assert constants.max() <= scale * (1 + 1e-9)
        assert constants.max() >= scale * (1 - least**2 / 6)


def test_even_moments_are_integrals_and_at_most_those_of_a_normal_coordinate():
    x, moments = np.linspace(-40, 40, 400_001), even_moments()
    centre, width = np.sqrt(1 - WITHIN), np.sqrt(WITHIN)
    densities = {
        "Gaussian": stats.norm.pdf(x),
        "mixture": (stats.norm.pdf(x, centre, width) + stats.norm.pdf(x, -centre, width)) / 2,
        "uniform": stats.uniform.pdf(x, -np.sqrt(3), 2 * np.sqrt(3)),
    }
    for order in (1, 2, 5, 12, MOMENTS):
        for name, density in densities.items():
            expected = np.trapezoid(density * x ** (2 * order), x)
            np.testing.assert_allclose(moments[name][order - 1], expected, rtol=1e-2 if name == "uniform" else 1e-9)
    for values in moments.values():
        np.testing.assert_allclose(values[0], 1.0, rtol=1e-12)  # variance
        assert (values <= moments["Gaussian"] * (1 + 1e-12)).all()


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("length", [2, 20, 200])
def test_mean_weights_are_rarely_below_half_their_mean(tau, length):
    """`P(D < ½) ≤ e^{-L/8ρ}`, ρ = E w̄², for normal, sign and uniform scores: an inequality of the theorem's proof."""
    rng, prompts, half = np.random.default_rng(7), 4000, np.sqrt(3.0) * tau
    size = (prompts, length)
    weights = {
        np.exp(tau**2): np.exp(tau * rng.normal(size=size) - tau**2 / 2),
        np.cosh(2 * tau) / np.cosh(tau) ** 2: np.exp(tau * rng.choice([-1, 1], size=size)) / np.cosh(tau),
        half / np.tanh(half): np.exp(rng.uniform(-half, half, size=size)) * half / np.sinh(half),
    }
    for second_moment, drawn in weights.items():
        bound = np.exp(-length / (8 * second_moment))
        share = np.mean(drawn.mean(axis=1) < 0.5)
        assert share <= bound + 5 * np.sqrt(bound * (1 - bound) / prompts)


def test_the_error_times_the_length_tends_to_the_mean_fluctuation(float64):
    """For all four laws, with a correction of relative size 1/L, at a head so small that it has a mean: E e^{6τ²} < ∞.

    The mean fluctuation of Gaussian tokens is E e^{τ²}(2 + τ²).
    """
    gain, squared, lengths = 0.25, 0.0625, np.asarray([1e2, 1e4])
    rules = {
        "Rademacher": signs(1.0),
        "uniform": uniform(np.sqrt(3.0)),
        "mixture": normal_clusters(np.sqrt(1 - WITHIN), np.sqrt(WITHIN)),
        "Gaussian": normal_clusters(1e-9, 1.0),
    }
    limits = {**exact_limits(1.0, gain).weighted, "Gaussian": 2 / (1 - 2 * squared) * (1 + squared / (1 - 2 * squared))}
    for name, rule in rules.items():
        near, far = np.abs(lengths * errors_for(rule, gain, lengths).errors / limits[name] - 1)
        assert near < 0.1
        assert far < near / 50  # 100 for a correction of 1/L


@pytest.mark.parametrize("length", [2, 3])
def test_the_error_of_signs_is_that_of_all_prompts(float64, length):
    """Every prompt of so many tokens, and queries on a fine grid."""
    scale, gain = 1.5, 0.6
    corners = scale * np.asarray([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    z = np.linspace(-8, 8, 161)
    queries, weight = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2), stats.norm.pdf(z) * 0.1
    prompts = corners[np.stack(np.meshgrid(*[range(4)] * length), axis=-1).reshape(-1, length)]
    density = np.exp(gain * np.einsum("qd,pld->qpl", queries, prompts))
    answers = np.einsum("qpl,pld->qpd", density / density.sum(axis=2, keepdims=True), prompts)
    gaps = np.mean(np.sum((answers - scale * np.tanh(scale * gain * queries)[:, None]) ** 2, axis=2), axis=1)
    exact = errors_for(signs(scale), gain, np.asarray([float(length)]))
    np.testing.assert_allclose(exact.errors[0], np.outer(weight, weight).ravel() @ gaps, rtol=1e-6)


def test_the_error_by_law_is_that_of_gaussian_prompts_within_its_accuracy(float64):
    lengths = np.asarray([2.0, 64.0, 1e6])
    exact = errors_for(normal_clusters(1e-9, 1.2), 0.5, lengths)
    error = 1.2**2 * RadialTable.at(np.log(lengths)).error(0.6, DIMENSION)
    np.testing.assert_allclose(exact.errors, error, rtol=max(exact.accuracy, 2e-6))
    assert exact.accuracy < 1e-4


def test_without_weights_the_limit_is_that_of_the_tilted_covariance(float64):
    """The limit for signs is d E[sech²(2a) + (tanh 2a - tanh a)²] σ², a = uσz."""
    z = np.linspace(-9, 9, 1801)
    tilt = 0.4 * 3.0 * z
    noise = 1 / np.cosh(2 * tilt) ** 2 + (np.tanh(2 * tilt) - np.tanh(tilt)) ** 2
    desired = DIMENSION * 9.0 * np.trapezoid(stats.norm.pdf(z) * noise, z)
    np.testing.assert_allclose(exact_limits(3.0, 0.4).unweighted["Rademacher"], desired, rtol=1e-6)


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
        longer = float(np.linalg.norm(limit) > largest)
        tilts = 0.9 * query[None]
        sides = TiltedPrompt.of(points, tilts), TiltedMeasure(law, tilts)
        actual = MeasureProof(truncation)(params, *sides, query[None])._asdict()
        assert_exact(np.stack([actual.pop(name) for name in ("gap", "above")])[:, 0], [gap, above])
        assert_exact(
            np.stack([actual.pop(f"{name}_above") for name in ("gap", "ceiling")])[:, 0], [gap * above, bound * above]
        )
        assert_exact(np.stack([actual.pop("longer"), actual.pop("limit_longer")])[:, 0], [0.0, longer])
        assert actual == {}


def test_share_above_is_that_of_nested_quadrature():
    def of_radius(r):
        return stats.chi.pdf(r, 3) * -np.expm1(50 * stats.norm.logcdf(0.5 * np.log(50) / (0.8 * r)))

    exact = integrate.quad(of_radius, 0, 12, epsabs=1e-12)[0]
    np.testing.assert_allclose(fraction_above(0.8, 3, 0.5, np.asarray([50.0])), exact, rtol=1e-6)


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
    np.testing.assert_allclose(exact_limits(scale, gain).weighted["Rademacher"], weights @ noise @ weights, rtol=1e-6)


def test_partition_functions_have_mean_one_and_lognormal_terms(float64, assert_monte_carlo):
    """At τ = 1/3: `E W = 1` and `Var W = (e^{τ²} - 1)/L`."""
    logs = partition_functions.simulate_partitions(64, 4000, key=jr.key(3)).logs
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
    samples = sample_gaps(MeasureProof(0.5), head(0.4), isotropic(2), query, [5], prompts=3, key=jr.key(4))

    @eqx.filter_vmap
    def gap(index):
        prompt_key, _ = jr.split(jr.fold_in(jr.key(4), index))
        prompt = Empirical(isotropic(2).sample(5, key=prompt_key))
        return jnp.sum((attend(head(0.4), prompt, query.points[0]) - 0.4 * query.points[0]) ** 2)

    assert_exact(samples.gap[:, 0], gap(jnp.arange(3)))


def test_errors_are_those_of_the_anatomy(float64, assert_exact):
    """Both functions simulate the same prompts and the same queries."""
    law, options = isotropic(2), {"prompts": 6, "key": jr.key(6)}
    apart, wide = ByImportance(MeasureProof(0.5), SPREAD), isotropic(2, SPREAD)
    taken = sample_gaps(apart, head(0.4), law, wide, [2, 5], queries_per_prompt=QUERIES, **options)
    assert_exact(simulate_errors(head(0.4), law, [2, 5], **options).mean, np.mean(taken.gap, axis=0))


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
    for name, bound in solve_gradient_bounds(measured, 0.4).items():
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
    exact = solve_single_token_errors({scale: None}, gain).exact[scale]
    assert_monte_carlo(np.stack([value, bilinear], axis=1), np.asarray([exact["value"], exact["bilinear"]]))


def test_tilted_moments_are_closed_forms_and_the_ceiling_is_a_mean():
    known = solve_tilted_moments()
    moments, tilts = known.moments, known.tilts
    np.testing.assert_allclose(moments["Gaussian", 4], tilts**4 + 6 * tilts**2 + 3, rtol=1e-9)
    np.testing.assert_allclose(moments["uniform", 8][0], 3**4 / 9, rtol=1e-9)
    np.testing.assert_allclose(moments["Laplace", 4][0], 24 / 4, rtol=1e-9)
    assert np.all(np.isinf(moments["Laplace", 4][tilts > np.sqrt(2)]))
    uniform = np.random.default_rng(9).uniform(size=2_000_000)
    excess = np.sqrt(-2 * np.log(uniform / 2))  # P(Y > y) = min(1, 2e^{-y²/2})
    np.testing.assert_allclose(known.ceilings[4][10], np.mean((2 * tilts[10] + excess) ** 4), rtol=5e-3)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("figure", "changed", "withheld"),
    [
        ("gradient_error_vs_length", {"scales": [1.4, 4.0]}, {"value", "bilinear", "least"}),
        ("gradient_error_vs_length", {"scales": [1.1, 3.0], "gain": 0.42}, set()),
        ("gradient_error_vs_length", {"gain": 0.6}, {"value", "bilinear", "least"}),
        ("gradient_error_vs_length", {"gradient_lengths": [4, 5, 6, 7]}, {"value", "bilinear", "least"}),
    ],
)
def test_distances_of_bounds_are_claimed_where_they_are_known(run_cells, figure, changed, withheld):
    run = run_cells(NAME, only=figure, **changed)
    assert run.broken == []
    assert set(run.withheld) == {f"gradient-concentration-bound-{name}" for name in withheld}


@pytest.mark.daily
@pytest.mark.parametrize(("scales", "withheld"), [([1.0, 1.1], {"exact", "bound"}), ([3.5, 4.0], {"bound"})])
def test_the_error_of_outputs_is_claimed_where_scales_differ(run_cells, scales, withheld):
    run = run_cells(NAME, only="output_error_vs_length", scales=scales)
    assert run.broken == []
    assert set(run.withheld) == {f"output-concentration-{name}" for name in withheld}


def test_the_curve_is_the_mean_and_its_covariance_that_of_numpy(assert_exact):
    samples = np.random.default_rng(7).lognormal(size=(40, 3)).cumsum(axis=1)
    curve = ErrorCurve.of([2, 4, 8], samples)
    assert_exact(curve.mean, samples.mean(axis=0))
    assert_exact(curve.cov, np.cov(samples.T) / 40)
    assert_exact(curve.std_error, stats.sem(samples, axis=0))
    assert_exact(curve.deviations(np.ones(3)), np.abs(stats.ttest_1samp(samples, 1.0).statistic))
