"""A named key does not depend on the other names; pairs of normals are independent."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from lib.random import _fold_in, _key, _split, _threefry, _uniform, fast_normal, named_keys, normal


def words(keys):
    return {name: tuple(np.asarray(jr.key_data(key)).tolist()) for name, key in keys.items()}


def test_a_name_added_in_the_middle_changes_no_other_key():
    before = words(named_keys(3, "response", "laplace"))
    after = words(named_keys(3, "response", "elliptical", "laplace"))
    assert list(after) == ["response", "elliptical", "laplace"]
    assert {name: after[name] for name in before} == before


def test_the_order_of_names_changes_no_key():
    assert words(named_keys(0, "a", "b")) == words(named_keys(0, "b", "a"))


def test_names_and_seeds_give_different_keys():
    names = [f"name-{index}" for index in range(200)]
    keys = {key for seed in range(5) for key in words(named_keys(seed, *names)).values()}
    assert len(keys) == 1000


def test_keys_of_similar_names_are_independent():
    """The correlation of 10⁴ normals is within the 99.9 % quantile of independent ones."""
    first, second = (normal(key, (10_000,)) for key in named_keys(0, "a", "b").values())
    assert abs(np.corrcoef(first, second)[0, 1]) < 3.29 / 100


def test_equal_names_are_refused():
    with pytest.raises(ValueError, match="Got twice: 'a'"):
        named_keys(0, "a", "b", "a")


def test_a_name_that_is_not_a_string_is_refused():
    with pytest.raises(TypeError):
        named_keys(0, "a", 1)


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**31, 2**33 + 5, -1])
def test_keys_of_seeds_are_those_of_jax(float64, seed):
    np.testing.assert_array_equal(jr.key_data(_key(seed)), jr.key_data(jr.key(seed)))


def test_seeds_can_be_traced():
    traced = jax.jit(lambda seed: jr.key_data(named_keys(seed, "a")["a"]))(jnp.asarray(7))
    assert tuple(np.asarray(traced).tolist()) == words(named_keys(7, "a"))["a"]
    batched = jax.vmap(lambda seed: jr.key_data(named_keys(seed, "a")["a"]))(jnp.arange(3))
    assert [tuple(row) for row in np.asarray(batched).tolist()] == [words(named_keys(s, "a"))["a"] for s in range(3)]


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (20_000,)])
def test_normals_of_known_keys_are_those_of_jax(float64, shape):
    key = jr.fold_in(jr.key(5), 2)
    found = normal(key, shape)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, jr.normal(key, shape), rtol=1e-11)
    np.testing.assert_array_equal(normal(key, shape, jnp.float32), jr.normal(key, shape, jnp.float32))


def test_keys_and_uniform_numbers_of_known_keys_are_those_of_jax(float64):
    key = jr.fold_in(jr.key(5), 2)
    np.testing.assert_array_equal(_uniform(key, (2, 3)), jr.uniform(key, (2, 3)))
    keys, of_jax = (*_split(key, 5), _fold_in(key, 2**31)), (*jr.split(key, 5), jr.fold_in(key, 2**31))
    for found, expected in zip(keys, of_jax, strict=True):
        np.testing.assert_array_equal(jr.key_data(found), jr.key_data(expected))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_fast_normals_of_a_known_key_are_those_of_a_program(float64, dtype):
    def draw(key):
        return fast_normal(key, (3, 5), dtype)

    known, compiled = draw(jr.key(3)), jax.jit(draw)(jr.key(3))
    assert known.dtype == compiled.dtype == dtype
    np.testing.assert_allclose(known, compiled, rtol=1e3 * jnp.finfo(dtype).eps)


def test_threefry_is_that_of_jax():
    """The 32 random bits of JAX are the two words of the count, combined."""
    count = jnp.arange(1000, dtype=jnp.uint32)
    key = jr.key(5)
    left, right = _threefry(jr.key_data(key), jnp.zeros_like(count), count)
    np.testing.assert_array_equal(left ^ right, jr.bits(key, (1000,), jnp.uint32))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("dtype", [jnp.complex64, jnp.complex128])
def test_pairs_are_independent_normals(dtype, assert_monte_carlo):
    """Moments of either, products of the two, and of the two streams of a key."""
    pairs = np.stack([fast_normal(jr.key(6), (500, 500), dtype, stream=stream) for stream in (0, 1)])
    assert pairs.dtype == dtype
    normals = np.concatenate([pairs.real, pairs.imag]).reshape(4, -1).astype(float)
    moments = np.array([0.0, 1, 0, 3, 0, 15, 0, 105])
    for each in normals:
        assert_monte_carlo(each[:, None] ** np.arange(1, 9), moments, laws=8)
        assert scipy.stats.kstest(each, "norm").pvalue > 1e-4
    i, j = np.triu_indices(4, 1)
    products = [normals[i] ** p * normals[j] ** q for p, q in ((1, 1), (2, 1), (1, 2), (3, 1))]
    assert_monte_carlo(np.concatenate(products).T, np.zeros(24), laws=2)
