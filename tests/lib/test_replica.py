"""The replica fixed point: its proximal problems, its exactly solvable cases, and simulated training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import sem

from lib._quasi_random import quasi_normals
from lib.single_location._prox import Channel
from lib.single_location.activations import linear, softmax
from lib.single_location.erm import _train_once
from lib.single_location.replica import (
    _LARGEST_STEPS,
    _RESIDUAL_TOLERANCE,
    _START_STATE,
    _iterate_to_fixed_point,
    _mean_and_error,
    _prompts,
    _Setting,
    _update,
    replica,
)
from lib.single_location.tasks import Max, Spiked
from lib.statistics import comparison_quantile

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

HEADS = {"softmax": softmax, "linear": linear}
NUMPY = {"softmax": lambda chi: np.exp(chi - chi.max()) / np.exp(chi - chi.max()).sum(), "linear": lambda chi: 1 + chi}


def channels(n, length=3):
    rng = np.random.default_rng(7)
    keys, values = rng.normal(size=(2, n, length))
    return Channel(
        jnp.asarray(keys),
        jnp.asarray(values),
        jnp.asarray(rng.uniform(0.2, 2.0, n)),
        jnp.asarray(rng.uniform(0.1, 1.0, n)),
        jnp.asarray(2.0 * rng.normal(size=n)),
    )


def whole_energy(name, point, one):
    """The problem as it stands, values included."""
    chi, z = point[:3], point[3:]
    away = np.sum((chi - one.omega_k) ** 2) / (2 * one.var_k) + np.sum((z - one.omega_v) ** 2) / (2 * one.var_v)
    return away + 0.5 * (one.label - NUMPY[name](chi) @ z) ** 2


@pytest.mark.parametrize("name", HEADS)
def test_prox_is_the_lowest_minimum(name):
    """Against BFGS on scores and values together, from six starts."""
    stack = channels(8)
    starts = jnp.concatenate([stack.omega_k[:, None], stack.omega_k[:, None] + 3 * jnp.eye(3)], axis=1)
    prox = jax.jit(jax.vmap(HEADS[name].prox))
    chi = prox(stack, starts)
    for _ in range(6):
        chi = prox(stack, jnp.concatenate([chi[:, None], starts], axis=1))
    values = jax.vmap(Channel.values)(stack, HEADS[name].weights(chi))
    rng = np.random.default_rng(8)
    for index in range(8):
        one = jax.tree.map(lambda leaf, index=index: np.asarray(leaf[index]), stack)
        found = whole_energy(name, np.concatenate([chi[index], values[index]]), one)
        ends = [
            minimize(lambda point, one=one: whole_energy(name, point, one), 2 * rng.normal(size=6)).fun
            for _ in range(6)
        ]
        assert found <= min(ends) + 1e-5


@pytest.mark.parametrize("label", [-100.0, -1.0, 0.0, 1.0, 100.0])
def test_linear_prox_solves_its_equation(label):
    """Against Brent's method; large answers put the root near the edge of its bracket."""
    one = channels(1)
    var_k, var_v = 1.7, 0.4
    channel = Channel(one.omega_k[0], one.omega_v[0], jnp.asarray(var_k), jnp.asarray(var_v), jnp.asarray(label))
    a, b = 1 + np.asarray(channel.omega_k), np.asarray(channel.omega_v)

    def weights(t):
        return (a + var_k * t * b) / (1 - var_k * var_v * t**2)

    def excess(t):
        s = weights(t)
        return (label - s @ b) / (1 + var_v * s @ s) - t

    edge = (1 - 1e-12) / np.sqrt(var_k * var_v)
    t = brentq(excess, -edge, edge, xtol=1e-15)
    np.testing.assert_allclose(linear.prox(channel, channel.omega_k[None]), weights(t) - 1, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.7, 2.0])
def test_one_token_is_ridge_regression(checked, alpha):
    """With L = 1 softmax is the value vector alone, whose ridge regression has a closed form (Marchenko-Pastur)."""
    noise, ridge = 0.5, 0.4
    found = replica(
        Spiked(1, 1.0), softmax, noise_std=noise, alpha=alpha, ridge=(1.0, ridge), points=1024, replicates=4
    )
    # V solves 1/V = r + α/(1 + V); overlaps follow with α/(1 + V)² times what is missed.
    var = np.float64(brentq(lambda v: 1 / v - ridge - alpha / (1 + v), 1e-9, 1e9))  # pyright: ignore
    m = var * alpha / (1 + var)
    share = alpha * (var / (1 + var)) ** 2
    q = (m**2 + share * (1 + noise**2 - 2 * m)) / (1 - share)
    assert found.converged
    for value, error, exact in (
        (found.overlaps.m_v, found.overlaps_std_error.m_v, m),
        (found.overlaps.q_v, found.overlaps_std_error.q_v, q),
        (found.risk, found.std_error, 1 - 2 * m + q),
        (found.train_loss, found.train_loss_std_error, 0.5 * (1 + noise**2 - 2 * m + q) / (1 + var) ** 2),
    ):
        assert abs(value - exact) < 1e-4 + 8 * error


def test_max_replica_is_where_simulated_training_ends():
    """The term that `Max` adds to the equations, against six runs at D = 200 made for this test.

    Without it m_k would be lower by a third, about ten standard errors.
    """
    task = Max(3, 8.0)
    setting = {"noise_std": 0.3, "alpha": 3.0, "ridge": (0.4, 0.4)}
    fixed = replica(task, softmax, **setting, points=512)

    def one(key):
        start = {"start": lambda truth, key: truth, "trainer": None}
        return _train_once(task, softmax, **setting, dimension=200, **start, key=key)

    runs = jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(jax.random.key(11), 6))
    for name in ("m_k", "q_k", "m_v", "q_v"):
        sample = np.asarray(getattr(runs.overlaps, name))
        error = np.hypot(sample.std(ddof=1) / np.sqrt(6), getattr(fixed.overlaps_std_error, name))
        assert abs(sample.mean() - getattr(fixed.overlaps, name)) < comparison_quantile(4) * error


def test_reported_error_is_not_smaller_than_the_true_one():
    """Few points against many."""
    setting = {"noise_std": 0.3, "alpha": 2.0, "ridge": (0.5, 0.5)}
    rough, fine = (replica(Spiked(3, 4.0), softmax, **setting, points=points) for points in (64, 512))
    assert fine.std_error < 2e-3
    assert fine.std_error < rough.std_error
    assert abs(rough.risk - fine.risk) < comparison_quantile(1) * np.hypot(rough.std_error, fine.std_error)


def test_errors_are_standard_errors_of_the_mean():
    """They are SciPy's, also for few samples."""
    samples = np.random.default_rng(3).normal(size=(8, 2))
    means, errors = _mean_and_error({"risk": samples})
    np.testing.assert_allclose(means["risk"], samples.mean(axis=0))
    np.testing.assert_allclose(errors["risk"], sem(samples, axis=0), rtol=1e-12)


def test_what_has_converged_is_a_fixed_point():
    """One more step of the equations moves no component by more than 1e-5, a hundredth of what scatter is left."""
    setting = _Setting(Spiked(3, 4.0), softmax, 0.3, 2.0, 0.5, 0.5)
    prompts = _prompts(setting.task, jnp.asarray(quasi_normals(11, 256, range(2))[0]))
    end = eqx.filter_jit(_iterate_to_fixed_point)(
        setting, prompts, jnp.asarray(_START_STATE), tolerance=_RESIDUAL_TOLERANCE
    )
    assert end.steps < _LARGEST_STEPS
    moved, _ = eqx.filter_jit(_update)(setting, prompts, end)
    assert np.abs(moved.unconstrained() - end.states[0]).max() < 1e-5


def test_it_says_when_it_has_not_converged():
    """Several minima compete at so weak a ridge, and the second of the two searches takes all steps it is allowed."""
    found = replica(Spiked(3, 4.0), softmax, noise_std=0.3, alpha=3.0, ridge=(1e-3, 1e-3), points=64)
    assert not found.converged
    assert found.steps > _LARGEST_STEPS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0.0}, "alpha > 0"),
        ({"noise_std": -1.0}, "noise_std ≥ 0"),
        ({"ridge": (0.0, 1.0)}, "positive ridges"),
        ({"points": 100}, "2\\^k"),
        ({"replicates": 1}, "scatter"),
    ],
)
def test_wrong_settings_are_refused(change, words):
    setting = {"noise_std": 0.3, "alpha": 2.0, "ridge": (0.5, 0.5), **change}
    with pytest.raises(ValueError, match=words):
        replica(Spiked(3, 4.0), softmax, **setting)


def test_single_precision_is_refused():
    with jax.enable_x64(False):
        task = Spiked(3, 4.0)
        with pytest.raises(ValueError, match="enable_x64"):
            replica(task, softmax, noise_std=0.3, alpha=2.0, ridge=(0.5, 0.5))
