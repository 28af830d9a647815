"""The chapter on the threshold in temperature: limits, widths and risks against independent computations."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from chapters.temperature_and_length.normal_scores import mean_log_sum
from chapters.threshold_in_temperature import below_threshold, phases, published_size, widths
from lib.finite_prompt import participation

NAME = "threshold_in_temperature"

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("temperature", [0.2, 0.9, 1.0, 1.3, 4.0])
def test_the_limit_is_the_largest_exponent_of_the_other_tokens(temperature):
    """About L^{1-g²} scores are near g √(2 ln L), if that is at least one, each with the weight e^{τ g √(2 ln L)}."""
    found = optimize.minimize_scalar(lambda g: -((1 - g**2) * temperature / 2 + g), bounds=(0, 1), method="bounded")
    assert phases.limit_amplitude(temperature) == pytest.approx(-found.fun, abs=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.4), (0.1, 1.7)])
def test_the_formula_in_the_notation_of_the_paper(alpha, beta):
    d, c, overlap = 200, 0.8, 0.95
    psi = alpha / beta + beta / 2 if beta < np.sqrt(2 * alpha) else np.sqrt(2 * alpha)
    temperature = np.sqrt(2 * alpha) / beta
    for c in (0.99 * psi / overlap, 1.02 * psi / overlap):
        desired = 1 / (1 + np.exp(-(c * overlap - psi) * beta * d))
        assert phases.mean_field_weight(alpha * d, c * overlap * d**0.5, temperature) == pytest.approx(
            desired, rel=1e-9
        )
    size = published_size.Size(d, int(np.exp(0.05 * d)) + 1, beta, 1 - 0.8**2)
    alpha = np.log(size.length - 1) / d
    psi = alpha / beta + beta / 2 if beta < np.sqrt(2 * alpha) else np.sqrt(2 * alpha)
    desired = 1 / (1 + np.exp(-(0.8 * 0.3 - psi) * beta * d))
    assert published_size.limit_weight(size, np.array([0.3]))[0] == pytest.approx(desired, rel=1e-9)


def test_temperature_zero_takes_the_largest_score():
    """At the lowest temperature of the quadrature the weight is almost Φ(√ν + γg)^{L-1}, averaged over g."""
    length, amplitude, variance = 30, 2.3, 0.4
    temperature = np.sqrt(2 * np.log(length)) / 30.0

    def integrand(g):
        return stats.norm.pdf(g) * stats.norm.cdf(amplitude + variance**0.5 * g) ** (length - 1)

    zero = integrate.quad(integrand, -10, 10)[0]
    found = phases.weights(np.log(length), amplitude, temperature, variance)
    # the logistic function is even around its middle, so that its width 1/τ enters squared
    assert found.relevant == pytest.approx(zero, abs=np.pi**2 / 6 / 30.0**2)
    assert abs(found.relevant - phases.mean_field_weight(np.log(length), amplitude, temperature)) > 0.1


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.97])
@pytest.mark.parametrize("temperature", [0.4, 2.5])
def test_the_amplitude_has_the_weight(weight, temperature):
    amplitude = phases.amplitude_with_weight(weight, 7.0, temperature, 0.3)
    assert phases.weights(7.0, amplitude, temperature, 0.3).relevant == pytest.approx(weight, abs=1e-8)


@pytest.mark.parametrize("temperature", [0.8, 1.0, 1.8])
@pytest.mark.parametrize("x", [-1.1, 0.6])
def test_the_weight_is_a_normal_distribution_function(temperature, x):
    """Its middle is the mean free energy of the other tokens, by another quadrature, and variances add."""
    variance, log_length = 0.7, 250.0
    freezing = np.sqrt(2 * log_length)
    tau, middle = freezing / temperature, phases.limit_amplitude(temperature) * freezing
    free_energy = mean_log_sum(tau, log_length) / tau
    # to leading order the largest of L normal scores
    largest = freezing - (np.log(log_length) + np.log(4 * np.pi)) / (2 * freezing)
    assert largest < free_energy + 0.1 < middle + 0.11
    found = phases.weights(log_length, middle + variance**0.5 * x, temperature, variance)
    spread = np.sqrt(variance + np.pi**2 / (3 * tau**2) + np.pi**2 / (12 * log_length))
    expected = (middle + variance**0.5 * x - free_energy) / spread
    assert found.relevant == pytest.approx(special.ndtr(expected), abs=0.005)
    # p is between 0 and 1 within a distance 1/τ of the middle only
    between = stats.norm.pdf(expected) / (tau * spread)
    assert found.relevant - found.relevant_square == pytest.approx(between, rel=0.05)


def test_a_fixed_share_away_from_the_threshold_the_weight_is_that_of_the_mean_field():
    """Exact and limiting weights agree far from the threshold, and not within the transition."""
    for share, tolerance in ((0.7, 1e-3), (1.3, 1e-3)):
        amplitude = share * np.sqrt(2 * 150.0)
        exact = phases.weights(150.0, amplitude, 0.9, 1.0).relevant
        assert exact == pytest.approx(phases.mean_field_weight(150.0, amplitude, 0.9), abs=tolerance)
    near = 1.03 * np.sqrt(2 * 150.0)
    exact = phases.weights(150.0, near, 0.9, 1.0).relevant
    assert phases.mean_field_weight(150.0, near, 0.9) - exact > 0.2


def test_the_mean_field_width_is_that_of_its_formula():
    log_length = phases.log_length(6)

    def amplitude(weight):
        middle = phases.limit_amplitude(1.7) * np.sqrt(2 * log_length)
        return optimize.brentq(
            lambda value: phases.mean_field_weight(log_length, value, 1.7) - weight, middle - 5, middle + 5
        )

    assert widths.mean_field_width(6, 1.7) == pytest.approx(amplitude(0.8) - amplitude(0.2), rel=1e-9)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_width_approaches_its_limit_like_the_predicted_correction(temperature):
    variance = 0.4
    [curve] = [each for each in widths.solve_widths([10, 40], variance) if each.temperature == temperature]
    excess = curve.exact / curve.limit - 1
    assert curve.limit == pytest.approx(2 * 0.8416212 * variance**0.5, rel=1e-6)
    # the variance gives the correction of a normal distribution; the others in the sum have other quantiles
    predicted = widths.relative_correction(40, temperature, variance)
    assert 0.6 * predicted < excess[1] < 1.1 * predicted
    assert 3 < excess[0] / excess[1] < 5


def test_the_risk_is_that_of_simulated_tokens():
    """Tokens in five dimensions, given key and value vectors, and a value that is not the hidden one."""
    rng = np.random.default_rng(8)
    prompts, length, dimension, tau, amplitude, variance = 200_000, 7, 5, 1.6, 2.2, 0.3
    tokens = rng.normal(size=(prompts, length, dimension))
    tokens[:, 0] *= variance**0.5
    tokens[:, 0, 0] += amplitude
    key = np.array([0.9, 0.0, (1 - 0.81) ** 0.5, 0.0, 0.0])
    value = np.array([0.0, 0.6, 0.0, 0.8, 0.0])
    p = special.softmax(tau * tokens @ key, axis=1)
    errors = (tokens[:, 0, 1] - np.sum(p * (tokens @ value), axis=1)) ** 2 / variance
    temperature = np.sqrt(2 * np.log(length)) / tau
    averages = phases.weights(float(np.log(length)), 0.9 * amplitude, temperature, variance)
    found = below_threshold.excess_risk(averages, 0.6, variance)
    std_error = errors.std() / prompts**0.5
    assert abs(errors.mean() - found) < 4 * std_error
    without = found - averages.others_square / variance
    assert found - without > 20 * std_error


def test_the_risk_has_a_term_of_the_other_tokens():
    """In the transition, given the exact mean weight: the limit is five times nearer than the mean-field risk."""
    temperature, variance, value_overlap, log_length = 0.7, 0.6, 0.9, 180.0
    averages = phases.weights(log_length, np.sqrt(2 * log_length) - 0.3, temperature, variance)
    found, p = below_threshold.excess_risk(averages, value_overlap, variance), averages.relevant
    limit = 1 - (2 * value_overlap - 1) * p + (1 - p) * (1 - temperature) / variance
    assert abs(found - limit) < abs(found - (1 - 2 * value_overlap * p + p**2)) / 5
    # the other tokens have (1 - p_1)² times their participation without a relevant token, nearly independently
    alone = float(participation(np.sqrt(2 * log_length) / temperature, log_length))
    kept = 1 - 2 * p + averages.relevant_square
    assert averages.others_square == pytest.approx(kept * alone, rel=log_length**-0.5)


@pytest.mark.parametrize(("log_length", "desired"), [(20.0, 0.3838), (50.0, 0.3574), (100.0, 0.3467)])
def test_participation_of_other_tokens_that_was_computed_before(log_length, desired):
    """By another quadrature, at a signal of a tenth of the threshold strength."""
    found = phases.weights(log_length, 0.1**0.5 * np.sqrt(2 * log_length), 1 / 1.5, 0.96)
    assert found.others_square == pytest.approx(desired, abs=6e-5)


# The mean weight, and γ² times the excess risk, at d = 100, L = 20, β = 1, γ² = ½: by another program, five digits.
PUBLISHED = {0.0: (0.01653, 1.29205), 0.2: (0.31255, 0.87507), 0.34: (0.73250, 0.32344), 0.5: (0.96640, 0.03752)}


def test_weights_and_risks_at_the_published_size():
    size = published_size.Size(100, 20, 1.0, 0.5)
    curves = published_size.evaluate_curves(size, np.array(list(PUBLISHED)))
    weight, risk = np.array(list(PUBLISHED.values())).T
    np.testing.assert_allclose(curves.weight, weight, atol=6e-6)
    np.testing.assert_allclose(0.5 * curves.risk, risk, atol=6e-6)


def test_simulated_heads_depend_on_their_seed_only():
    size = published_size.Size(60, 9, 0.8, 0.3)
    first, again, other = (published_size.simulate_heads(size, 4000, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.risk, again.risk)
    deviations = np.abs(other.risk - other.curves.risk) / other.risk_std_error
    assert deviations.max() < 4.5
    assert (first.risk != other.risk).all()


@pytest.mark.parametrize(
    "wrong", [{"decades": [2]}, {"decades": [2, 13]}, {"variance": 1.0}, {"width_decades": [2, 2]}, {"sharpness": 2.0}]
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
