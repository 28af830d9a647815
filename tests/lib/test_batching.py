"""Batches change nothing: neither values nor shapes, whatever the number of rows."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from lib.batching import _ROWS_PER_CALL, in_batches, map_batched


@pytest.mark.parametrize("size", [1, _ROWS_PER_CALL, _ROWS_PER_CALL + 1, 3 * _ROWS_PER_CALL - 1])
def test_a_table_does_not_depend_on_its_batches(float64, size):
    points = np.linspace(0.0, 1.0, size)
    square, cube = in_batches(jax.jit(lambda x, y: (x**2 + y, x**3)), points, points + 2)
    np.testing.assert_allclose(square, points**2 + points + 2)
    np.testing.assert_allclose(cube, points**3)


@pytest.mark.parametrize("together", [1, 30, 40, 10**6])
@pytest.mark.parametrize("rows", [1, 4, 13])
def test_mapping_in_batches_is_mapping_one_by_one(float64, rows, together):
    """Rows are pytrees with keys; the cases include `jit` and a last batch that is not full."""
    table = {"key": jr.split(jr.key(0), rows), "scale": jnp.arange(float(rows))}

    def one(row):
        return row["scale"] * jr.normal(row["key"], (10,)), row["scale"]

    drawn, scales = jax.jit(lambda table: map_batched(one, table, size=10, numbers_at_once=together))(table)
    again, _ = map_batched(one, table, size=10, numbers_at_once=together)
    desired = np.stack([one(jax.tree.map(lambda leaf, i=i: leaf[i], table))[0] for i in range(rows)])
    np.testing.assert_allclose(drawn, desired, rtol=1e-14)
    np.testing.assert_allclose(again, desired, rtol=1e-14)
    np.testing.assert_array_equal(scales, np.arange(rows))


def test_a_batch_holds_no_more_than_it_may():
    """Never more than `together` numbers, but at least one row; and one shape throughout."""
    seen = []

    def program(column):
        seen.append(len(column))
        return column

    np.testing.assert_array_equal(in_batches(program, np.arange(10), batch=4), np.arange(10))
    assert seen == [4, 4, 4]
    shapes = jax.make_jaxpr(lambda rows: map_batched(jnp.sin, rows, size=5, numbers_at_once=12))(jnp.arange(7.0))
    assert "f32[2] = sin" in str(shapes) or "f64[2] = sin" in str(shapes)


def test_programs_take_all_columns_at_once():
    total = in_batches(lambda x, y: {"sum": x + y}, np.arange(5), np.ones((5, 2))[:, 0], batch=3)
    np.testing.assert_array_equal(total["sum"], np.arange(5) + 1)
