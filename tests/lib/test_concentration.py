"""The exact error of isotropic prompts: against SciPy, other quadratures, finer nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lib.attention import Attention
from lib.concentration import RadialTable, _log_chi_density
from lib.finite_prompt import output_error
from lib.measures import Gaussian

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def table(float64):
    return RadialTable.at(np.log([1.0, 64.0, 1e8]))


@pytest.fixture(scope="module")
def finer_table(float64):
    return RadialTable.at(np.log([1.0, 64.0, 1e8]), largest_tau=28.0, nodes=160)


@pytest.mark.parametrize("dimension", [1, 2, 16])
def test_the_chi_density_is_that_of_scipy(dimension, assert_exact):
    radius = np.asarray([1e-3, 0.7, 4.0, 30.0])
    assert_exact(_log_chi_density(radius, dimension), stats.chi.logpdf(radius, dimension))


def test_the_isotropic_error_is_a_mean_of_output_errors(table):
    """Two dimensions by a tensor rule in polar coordinates, from `output_error` itself, and the error of one token."""
    norm = 0.7
    radius, weight = np.polynomial.legendre.leggauss(40)
    radius, weight = 6 * (radius + 1), 6 * weight
    law, head = Gaussian(np.zeros(2), np.eye(2)), Attention(norm * np.eye(2), np.eye(2))
    queries = jnp.asarray(np.stack([0.6 * radius, 0.8 * radius], axis=1))
    errors = jax.vmap(lambda query: output_error(head, law, query, np.log(64.0)))(queries)
    exact = table.error(norm, 2)
    np.testing.assert_allclose(np.sum(weight * radius * np.exp(-(radius**2) / 2) * errors), exact[1], rtol=1e-7)
    np.testing.assert_allclose(exact[0], 2 + 2 * norm**2, rtol=1e-9)


@pytest.mark.parametrize(("norm", "dimension"), [(0.4, 1), (0.5, 16), (1.0, 4), (2.0, 1), (2.0, 16)])
def test_the_default_table_is_as_fine_and_as_far_as_it_says(table, finer_table, norm, dimension):
    exact = finer_table.error(norm, dimension)
    np.testing.assert_allclose(table.error(norm, dimension), exact, rtol=1e-6)
