"""The chapter on the Gaussian limit: its tables say what they hold, its parts agree with other people's code."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.special import softmax
from scipy.stats import norm

from chapters.gaussian_limit.drawn_numbers import TOGETHER, laplace_numbers, normals, prompt_keys
from chapters.gaussian_limit.elliptical_prompts import elliptical_distributions, length_factors
from chapters.gaussian_limit.gaussian_prompts import query_distribution, query_ray, simulate_responses, two_clusters
from chapters.gaussian_limit.laplace_prompts import BETWEEN, mean_absolute_deviation, weighted_slope
from chapters.gaussian_limit.long_laplace_prompts import quantile_error, scaled_errors, stable_median
from chapters.gaussian_limit.one_coordinate import one_coordinate_measures, tilts_of
from chapters.gaussian_limit.parameters import Parameters
from chapters.gaussian_limit.transport import solve_tilt_matching
from lib.attention import _mean_square_weight, attend
from lib.measures import Empirical, empirical, tilted_cov, tilted_mean

NAME = "gaussian_limit"


def test_a_rate_five_percent_off_fails(run):
    rate = run.claims["gaussian-limit-rate"]
    assert not rate.accepts(0.95)
    assert not rate.accepts(1.05)


def test_the_tables_are_finite(run):
    for name, table in run.tables.items():
        frame = table.frame
        if name == "laplace_domain":  # a limit before the pole, growth without end beyond it
            assert (frame["limit"].isna() == (frame["tilt"] > 1)).all()
            assert (frame["growth"].isna() == (frame["tilt"] < 1)).all()
            frame = frame.drop(columns=["limit", "growth"])
        if name == "other_measures":
            assert set(frame[np.isfinite(frame["pole"])]["measure"]) == {"Laplace"}
            frame = frame.drop(columns="pole")
        assert not frame.isna().to_numpy().any()
        assert np.isfinite(frame.select_dtypes("number").to_numpy()).all()


@pytest.mark.parametrize("count", [7, TOGETHER + 3])
def test_numbers_of_many_keys_are_those_of_jax(float64, count):
    """Keys of prompts are folded with their numbers; a call may draw a part of one prompt, or several prompts."""
    keys = [jr.fold_in(jr.key(4), prompt) for prompt in range(3)]
    words = prompt_keys(jr.key(4), 3)
    for ours, theirs in ((normals, jr.normal), (laplace_numbers, jr.laplace)):
        np.testing.assert_allclose(ours(words, count), np.stack([theirs(key, (count,)) for key in keys]), rtol=1e-12)


def test_more_prompts_leave_the_first_as_they_were(float64):
    taus, key = jnp.linspace(0.0, 4.0, 3), jr.key(3)
    few, more = (simulate_responses(query_ray(), taus, {10: n}, key=key)[10] for n in (5, 9))
    np.testing.assert_allclose(few.response, more.response[:5], rtol=1e-12)  # batches may round otherwise


@pytest.mark.parametrize(
    "wrong",
    [
        {"lengths": [10, 100]},
        {"lengths": [10, 300, 900]},
        {"lengths": [2000, 3000]},
        {"prompts": 10},
        {"seed": True},
        {"tokens": 200_000},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_weights_and_response_are_those_of_a_numpy_softmax(float64):
    ray, key = query_ray(), jr.key(1)
    answered = simulate_responses(ray, jnp.asarray([3.0]), {50: 1}, key=key)[50]
    points = np.asarray(empirical(ray.gaussian, 50, key=jr.fold_in(jr.fold_in(key, 50), 0)).points)
    query, value = 3.0 * np.asarray(ray.direction), np.asarray(ray.params.value)
    weights = softmax(points @ np.asarray(ray.params.bilinear) @ query)
    np.testing.assert_allclose(answered.squared_weights, [[np.sum(weights**2)]], rtol=1e-12)
    cov, bilinear, mean = (np.asarray(each) for each in (ray.gaussian.cov, ray.params.bilinear, ray.gaussian.mean))
    line = value @ cov @ bilinear @ np.asarray(ray.direction)
    along = value @ (weights @ points - mean) @ line / (line @ line)
    np.testing.assert_allclose(answered.response, [[along]], rtol=1e-12)
    largest = np.max((points - mean) @ value.T @ line) / (line @ line)
    np.testing.assert_allclose(answered.largest_token, [largest], rtol=1e-12)


def test_lengths_given_twice_are_taken_once(smoke_parameters):
    p = Parameters(**smoke_parameters(NAME) | {"lengths": [8000, 10, 1000, 1000]})
    assert p.lengths == list(p.counts) == [10, 1000, 8000]


def test_the_mean_of_prompts_of_two_tokens_equals_quadrature(float64, assert_monte_carlo):
    """`E ĝ` at L = 2 is `E[(g₁ - g₂) tanh(τ (g₁ - g₂)/2)]/2`, an integral that knows nothing of Stein."""
    taus = np.asarray([0.5, 1.5, 4.0])
    root = np.sqrt(2.0)
    exact = [
        quad(lambda x, t=tau: root * x * np.tanh(t * root * x / 2) / 2 * norm.pdf(x), -12, 12, points=[0])[0]
        for tau in taus
    ]
    responses = simulate_responses(query_ray(), jnp.asarray(taus), {2: 20000}, key=jr.key(11))[2]
    assert_monte_carlo(responses.response, np.asarray(exact))
    assert_monte_carlo(taus * (1 - responses.squared_weights), np.asarray(exact))


@pytest.mark.parametrize("name", ["Gaussian", "Rademacher", "uniform", "Laplace", "mixture"])
def test_the_five_laws_share_mean_and_variance(float64, name):
    log_mgf = one_coordinate_measures()[name].log_mgf
    np.testing.assert_allclose(jax.grad(log_mgf)(jnp.zeros(1)), 0.0, atol=1e-12)
    np.testing.assert_allclose(jax.hessian(log_mgf)(jnp.zeros(1)), 1.0, rtol=1e-12)


def test_tilts_stay_inside_the_laplace_domain():
    assert np.abs(tilts_of("Laplace")).max() < np.sqrt(2.0)


def test_equal_tokens_weigh_the_same(float64):
    ray = query_ray()
    prompt, tilt = Empirical(jnp.ones((8, 3))), ray.params.bilinear @ ray.direction
    assert float(_mean_square_weight(prompt.log_mgf(tilt), prompt.log_mgf(2 * tilt))) == pytest.approx(1, rel=1e-12)


def test_two_clusters_have_the_moments_of_the_gaussian(float64, assert_exact):
    gaussian = query_ray().gaussian
    clusters = two_clusters(gaussian)
    assert_exact(tilted_mean(clusters, jnp.zeros(3)), gaussian.mean)
    assert_exact(tilted_cov(clusters, jnp.zeros(3)), gaussian.cov)


@pytest.mark.parametrize("name", ["two scales", "Gaussian", "ellipsoid"])
def test_elliptical_tokens_answer_as_long_as_the_closed_form_says(float64, name):
    """`attend` differentiates Λ; `length_factors` is ψ written out."""
    ray, taus = query_ray(), np.asarray([0.01, 0.7, 2.5])
    law = elliptical_distributions(ray.gaussian)[name]
    answers = jax.vmap(lambda query: ray.read(attend(ray.params, law, query)))(ray.queries(taus))
    np.testing.assert_allclose(answers, taus * length_factors(taus)[name], rtol=1e-9)


@pytest.mark.parametrize("name", ["two scales", "ellipsoid"])
def test_elliptical_tokens_have_the_covariance_of_the_gaussian(float64, name):
    gaussian = query_ray().gaussian
    tokens = np.asarray(elliptical_distributions(gaussian)[name].sample(200_000, key=jr.key(2)))
    np.testing.assert_allclose(np.cov(tokens.T), gaussian.cov, atol=0.02)
    np.testing.assert_allclose(tokens.mean(axis=0), gaussian.mean, atol=0.02)


def test_the_error_of_a_mean_absolute_deviation_includes_that_of_its_centre():
    """For exponential samples, which are skewed, the reported error is the spread over many repetitions."""
    repeated = np.random.default_rng(0).exponential(size=(4000, 200))
    found, errors = np.transpose([mean_absolute_deviation(values) for values in repeated])
    np.testing.assert_allclose(found.mean(), 2 / np.e, rtol=0.01)
    np.testing.assert_allclose(np.sqrt(np.mean(errors**2)), found.std(), rtol=0.05)


def test_long_laplace_prompts_from_their_largest_tokens_are_those_drawn_token_by_token(float64):
    """Quartiles of the scaled error at ten thousand tokens, within five standard errors of their difference."""
    length, prompts, rng = 10_000, 1000, np.random.default_rng(4)
    tokens = rng.laplace(size=(prompts, length))
    outputs = np.sum(softmax(BETWEEN * tokens, axis=1) * tokens, axis=1)
    drawn = length ** (1 - BETWEEN) * (outputs - 2 * BETWEEN / (1 - BETWEEN**2))
    found = scaled_errors(np.log(length), 4 * prompts, key=jr.key(5))
    chances = np.asarray([0.25, 0.5, 0.75])
    apart = np.quantile(found, chances) - np.quantile(drawn, chances)
    spread = np.hypot(quantile_error(found, chances), quantile_error(drawn, chances, width=0.03))
    assert (np.abs(apart) < 5 * spread).all()


def test_the_stable_median_is_that_of_a_series_of_arrivals():
    """`Σ κ Γ_j^{-ξ}` with the mean of the terms that are left out subtracted."""
    rng, terms = np.random.default_rng(6), 4000
    arrivals = np.cumsum(rng.exponential(size=(4000, terms)), axis=1)
    series = np.sum(arrivals**-BETWEEN, axis=1) - arrivals[:, -1] ** (1 - BETWEEN) / (1 - BETWEEN)
    sizes = np.abs(2**-BETWEEN * (1 - BETWEEN**2) * series)
    error = quantile_error(sizes, np.asarray([0.5]))[0]
    assert abs(np.median(sizes) - stable_median()) < 5 * error


@pytest.mark.parametrize(("tilt", "slope"), [(1.0, 0.5), (2.0, 1.0)])
def test_at_and_beyond_the_pole_laplace_outputs_grow_with_the_logarithm_of_the_length(tilt, slope):
    """`½ ln L` at the pole, `ln L` beyond: medians, with corrections that fall with the length."""
    rng, lengths, prompts = np.random.default_rng(8), (10**3, 10**5), (2000, 400)
    medians = []
    for length, count in zip(lengths, prompts, strict=True):
        tokens = (rng.laplace(size=length) for _ in range(count))
        medians.append(np.median([softmax(tilt * prompt) @ prompt for prompt in tokens]))
    assert (medians[1] - medians[0]) / np.log(100) == pytest.approx(slope, abs=0.15)


def test_for_gaussian_tokens_the_transport_map_is_their_covariance(float64):
    """The affine map between two Gaussians, as in the proof, from the covariances of tilts and of tilted means."""
    ray = query_ray()
    bilinear, cov = np.asarray(ray.params.bilinear), np.asarray(ray.gaussian.cov)
    tilts = bilinear @ np.asarray(query_distribution().cov) @ bilinear.T
    means = cov @ tilts @ cov
    root = np.real(sqrtm(tilts))
    matrix = np.linalg.solve(root, np.real(sqrtm(root @ means @ root))) @ np.linalg.inv(root)
    np.testing.assert_allclose(matrix, cov, rtol=1e-9)


def test_tilts_are_transported_at_the_least_cost_and_queries_are_not(float64):
    matching = solve_tilt_matching(query_ray(), key=jr.key(3))
    assert matching.tilts == 1
    assert matching.queries < 0.9


@pytest.mark.parametrize(
    "changed", [{"measure_prompts": 100}, {"measure_length": 1000}, {"measure_length": 10**5, "measure_prompts": 3000}]
)
def test_prompts_that_would_show_the_bias_or_fill_the_memory_are_refused(run_cells, changed):
    with pytest.raises(ValueError, match="measure_"):
        run_cells(NAME, **changed)


def test_the_weighted_slope_is_that_of_weighted_least_squares():
    """Against NumPy's, whose covariance is unscaled; and it covers as often as it says."""
    x, errors = np.asarray([0.0, 1.0, 2.5, 4.0]), np.asarray([0.1, 0.4, 0.2, 0.3])
    noise = np.random.default_rng(3).normal(size=(2000, 4))
    slopes = []
    for draws in noise:
        slope, error = weighted_slope(x, 2 * x + 1 + errors * draws, errors)
        slopes.append(slope)
    coefficients, cov = np.polyfit(x, 2 * x + 1 + errors * noise[-1], 1, w=1 / errors, cov="unscaled")
    assert (slope, error) == pytest.approx((coefficients[0], np.sqrt(cov[0, 0])))
    assert np.std(slopes) == pytest.approx(error, rel=0.1)
