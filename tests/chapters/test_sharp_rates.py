"""The exponents: two forms of one heuristic agree, and averages over queries are taken with the right density."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chapters.sharp_rates import averaged_errors
from chapters.sharp_rates.bounded_averages import _error_of_signs, solve_bounded_query_slopes
from chapters.sharp_rates.parameters import READ_AT, Parameters
from chapters.sharp_rates.query_averages import ErrorTable, planar_density, radial_density
from chapters.sharp_rates.slopes import (
    ratio_exponent,
    solve_slopes_at_one_length,
    solve_slopes_by_norm,
    solve_slopes_by_spectrum,
)
from lib.attention import Attention
from lib.finite_prompt import output_error, rate_exponent
from lib.measures import Gaussian

NAME = "sharp_rates"
TAUS = np.arange(0.0, 30.1, 0.05)


def test_every_table_holds_the_length_at_which_exponents_are_read(run):
    for name in ("rate_at_fixed_ratio", "local_slopes", "operator_norm"):
        assert READ_AT in set(run.tables[name].frame["log_length"])


def test_one_head_has_one_slope_in_every_table(run):
    """H = 1 in one dimension is a norm, a spectrum, and the middle of the exponents' curve."""
    norms, spectra = (run.tables[name].frame for name in ("local_slopes", "operator_norm"))
    by_norm = norms[norms["squared_norm"] == 1].set_index("log_length")["slope"]
    by_spectrum = spectra[spectra["spectrum"] == "(1)"].set_index("log_length")["slope"]
    pd.testing.assert_series_equal(by_norm, by_spectrum)
    laws = run.tables["exponent_laws"].frame
    (middle,) = laws[np.isclose(laws["squared_norm"], 1) & (laws["log_length"] == READ_AT)]["slope"]
    # one row times a vector may be summed in another order than several
    assert by_norm[READ_AT] == pytest.approx(middle, rel=1e-12)
    assert by_norm[READ_AT] == pytest.approx(run.claims["sharp-rates-golden"].measured, rel=1e-6)  # of six digits


def test_lengths_given_twice_are_taken_once(smoke_parameters):
    p = Parameters(**smoke_parameters(NAME) | {"log_lengths": [40.0, 5.0, 5.0, 330.0]})
    assert p.log_lengths == [5.0, 40.0, 330.0]


@pytest.mark.parametrize("wrong", [{"log_lengths": [5.0, 331.0]}, {"fixed_ratios": 7}, {"norms": 25.0}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


@pytest.mark.parametrize("squared", [0.1, 0.5, 0.7, 1.0, 3.0, 20.0])
def test_the_average_over_queries_minimises_error_against_rarity(float64, squared):
    """`β(H) = min_a r(a) + a²/H²`: the closed form against a search."""
    ratio = np.linspace(0.0, 1.5, 200_001)
    searched = np.min(ratio_exponent(ratio) + ratio**2 / squared)
    np.testing.assert_allclose(rate_exponent(np.sqrt(squared)), searched, atol=1e-9)


def test_the_exponent_at_fixed_ratio_has_no_jump():
    for corner in (1 / np.sqrt(3), 1.0):
        below, above = ratio_exponent(np.asarray([corner - 1e-9, corner + 1e-9]))
        assert abs(below - above) < 1e-8
    assert ratio_exponent(np.asarray([0.0]))[0] == pytest.approx(1)


@pytest.mark.parametrize(("norm", "dimension"), [(0.5, 1), (2.0, 1), (1.0, 3), (1.0, 8)])
def test_radial_density_is_that_of_chi(norm, dimension):
    density = radial_density(TAUS, norm, dimension)
    expected = stats.chi.pdf(TAUS[1:-1] / norm, dimension)
    np.testing.assert_allclose(density[1:-1] / norm * norm, expected, rtol=1e-10, atol=1e-300)
    assert 0.05 * density.sum() / norm == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("major", "minor"), [(1.0, 0.5), (1.5, 1.4)])
def test_planar_density_has_the_second_moment_of_its_axes(major, minor):
    taus = np.arange(0.0, 20.0, 0.001)
    density = planar_density(taus, major, minor)
    assert np.sum(density * taus**2) / np.sum(density) == pytest.approx(major**2 + minor**2, rel=1e-5)
    assert np.sum(density * taus**4) / np.sum(density) == pytest.approx(
        3 * (major**4 + minor**4) + 2 * (major * minor) ** 2, rel=1e-5
    )


def slope_of_outputs(log_length, dimension, taus, density):
    """Return minus the slope in ln L of `output_error`, averaged over τ of this density, by a difference."""
    apart, axis = 1e-2, np.eye(dimension)[0]
    head, law = Attention(np.eye(dimension), np.eye(dimension)), Gaussian(np.zeros(dimension), np.eye(dimension))
    lengths = np.array([log_length - apart, log_length + apart])
    one = jax.vmap(lambda tau, ell: output_error(head, law, tau * axis, ell))
    errors = jax.jit(jax.vmap(one, (None, 0)))(taus, np.broadcast_to(lengths[:, None], (2, taus.size)))
    before, after = np.log(np.trapezoid(np.asarray(errors) * density, taus))
    return (before - after) / (2 * apart)


@pytest.mark.parametrize(("dimension", "spectrum"), [(1, "(1)"), (2, "(1, 1)"), (8, "(1, …, 1) in R⁸")])
def test_slopes_are_those_of_outputs_of_that_dimension(float64, dimension, spectrum):
    """The norm of a normal query is chi."""
    log_length, taus = 10.0, np.arange(0.0, 12.0, 0.1)
    found = solve_slopes_by_spectrum(ErrorTable.at([log_length]))[spectrum]
    (slope,) = found.slope[found.log_lengths == log_length]
    outputs = slope_of_outputs(log_length, dimension, taus, stats.chi.pdf(taus, dimension))
    assert slope == pytest.approx(outputs, rel=1e-3)


def test_slopes_of_bounded_queries_are_those_of_outputs_of_one_dimension(float64):
    """τ of a query uniform on [-√3, √3] is uniform on [0, √3 H]."""
    log_length, squared = 4.0, 2.0
    taus = np.linspace(0.0, np.sqrt(3.0 * squared), 81)
    found = solve_bounded_query_slopes([log_length])[squared]
    (slope,) = found.slope[found.log_lengths == log_length]
    assert slope == pytest.approx(slope_of_outputs(log_length, 1, taus, np.ones_like(taus)), rel=1e-3)


def test_heads_of_one_coordinate_have_the_slopes_of_one_dimension(float64):
    """Whichever figure they are drawn in."""
    errors = ErrorTable.at([10.0])
    by_spectrum = solve_slopes_by_spectrum(errors)["(1)"].slope
    np.testing.assert_allclose(solve_slopes_by_norm(errors)[1.0].slope, by_spectrum, rtol=1e-12)
    read = solve_slopes_at_one_length(errors, 3)  # H² from 1/8 to 8, so 1 in the middle
    np.testing.assert_allclose([read.slope[1], read.at_one], by_spectrum[-1], rtol=1e-12)


@pytest.fixture(scope="module")
def averages(float64):
    return averaged_errors.solve_averaged_errors()


def test_the_bound_with_the_exponent_of_one_fails_from_three_dimensions_on(averages):
    """Error · L^β(1) / ln L at H = 1 does not grow in d = 1 and 2, and grows without a sign of levelling off above."""
    for dimension, ratios in zip(averaged_errors.DIMENSIONS, averages.log_ratios, strict=True):
        grows = np.diff(ratios)
        assert (grows < 0).all() if dimension <= 2 else (grows > 0).all()
    np.testing.assert_allclose(averages.powers, np.asarray(averaged_errors.DIMENSIONS) / 2 - 1, atol=0.08)


def test_errors_averaged_over_queries_agree_with_other_nodes(averages):
    """The trapezoid of the slopes, on its own nodes, for an odd dimension, where it is exact."""
    errors = ErrorTable.at([60.0])
    for dimension in (1, 3):
        density = stats.chi.pdf(errors.taus, dimension)
        density[0] /= 2
        rows = errors.score_error + (dimension - 1) * errors.participation
        (error,) = (rows @ density * (errors.taus[1] - errors.taus[0]))[errors.log_lengths == 60.0]
        found = averages.log_ratios[averaged_errors.DIMENSIONS.index(dimension), 1]
        expected = np.log(error) + 60 * rate_exponent(1.0) - np.log(60)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("squared", "dimension"), [(0.125, 1), (0.25, 3), (0.4, 2)])
def test_the_mean_fluctuation_is_an_integral_over_query_sizes(squared, dimension):
    x = np.linspace(0, 60, 60_001)
    fluctuation = dimension + squared * x**2
    density = np.exp(squared * x**2 + stats.chi.logpdf(np.maximum(x, 1e-300), dimension))
    expected = [np.trapezoid(density * part, x) for part in (fluctuation, dimension)]
    found = [averaged_errors.mean_fluctuation(squared, dimension, shifted=shifted) for shifted in (True, False)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_two_signs_miss_by_a_sum_of_three_terms():
    """K = 0, 1, 2 plus signs, at one query, against attention on those prompts."""
    tilts = np.linspace(-9, 9, 361)
    answers = [[np.tanh(x), -1.0, 1.0] for x in tilts]
    squares = [0.5 * (a[0] - a[0]) ** 2 + 0.25 * (a[1] - a[0]) ** 2 + 0.25 * (a[2] - a[0]) ** 2 for a in answers]
    expected = np.sum(stats.norm.pdf(tilts) * squares) * (tilts[1] - tilts[0])
    np.testing.assert_allclose(_error_of_signs(2, 1.0), expected, rtol=1e-12)
