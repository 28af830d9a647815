"""Tables of a slow function: their values and shapes, however they are batched."""

import jax.numpy as jnp
import numpy as np
import pytest

from lib.tabulate import BATCH, tabulate


@pytest.mark.parametrize("size", [1, BATCH, BATCH + 1, 3 * BATCH - 1])
def test_a_table_does_not_depend_on_its_batches(float64, size):
    points = np.linspace(0.0, 1.0, size)
    square, cube = tabulate(lambda x, y: (x**2 + y, x**3), points, 2.0)
    np.testing.assert_allclose(square, points**2 + 2)
    np.testing.assert_allclose(cube, points**3)


def test_a_table_has_the_broadcast_shape_of_its_arguments(float64):
    table = tabulate(jnp.add, np.arange(3.0)[:, None], np.arange(70.0))
    np.testing.assert_array_equal(table, np.arange(3.0)[:, None] + np.arange(70.0))
