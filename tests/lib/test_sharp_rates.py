"""The exponents: two forms of one heuristic agree, and averages over queries are taken with the right density."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lib.experiments.sharp_rates import planar_density, radial_density, ratio_exponent
from lib.experiments.tabulate import BATCH, tabulate
from lib.finite_prompt import rate_exponent

TAUS = np.arange(0.0, 30.1, 0.05)


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


@pytest.mark.parametrize("size", [1, BATCH, BATCH + 1, 3 * BATCH - 1])
def test_a_table_does_not_depend_on_its_batches(float64, size):
    points = np.linspace(0.0, 1.0, size)
    square, cube = tabulate(lambda x, y: (x**2 + y, x**3), points, 2.0)
    np.testing.assert_allclose(square, points**2 + 2)
    np.testing.assert_allclose(cube, points**3)


def test_a_table_has_the_broadcast_shape_of_its_arguments(float64):
    table = tabulate(jnp.add, np.arange(3.0)[:, None], np.arange(70.0))
    np.testing.assert_array_equal(table, np.arange(3.0)[:, None] + np.arange(70.0))
