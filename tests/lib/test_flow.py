"""The gradient flow against closed solutions, and descents that stop, go on, and agree with the flow."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from lib.flow import _descend, _Descent, follow_flow, gradient_flow, sgd, train
from lib.icl import Blocks, LinearRegression
from lib.random import normal

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

TOEPLITZ = 0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))


def test_flow_of_a_quadratic_is_exponential():
    """Any pytree, with parts that do not move; times need not start at zero."""
    curvature = jnp.array([0.1, 1.0, 3.0])
    params = {"a": jnp.array([1.0, -2.0]), "b": (jnp.array(0.5), "fixed", 7)}

    def risk(params):
        return 0.5 * (curvature[:2] @ params["a"] ** 2 + curvature[2] * params["b"][0] ** 2) * params["b"][2] / 7

    times = np.array([0.3, 1.0, 4.0])
    trajectory = gradient_flow(risk, params, times)
    decay = np.exp(-np.outer(times, curvature))
    np.testing.assert_allclose(trajectory.params["a"], decay[:, :2] * [1.0, -2.0], rtol=1e-8)
    np.testing.assert_allclose(trajectory.params["b"][0], 0.5 * decay[:, 2], rtol=1e-8, atol=1e-10)
    assert trajectory.params["b"][1:] == ("fixed", 7)
    np.testing.assert_array_equal(trajectory.times, times)


def test_tolerances_are_obeyed():
    """A tighter one comes closer."""
    times = np.array([0.0, 5.0])

    def error(rtol):
        end = gradient_flow(lambda x: jnp.sum(x**4) / 4, jnp.array([2.0]), times, rtol=rtol, atol=rtol).params[-1, 0]
        return abs(end - 2.0 / np.sqrt(1 + 8 * 5.0))

    assert error(1e-10) < 1e-9 < error(1e-3)


@pytest.mark.parametrize("name", ["isotropic", "toeplitz", "ill_conditioned"])
def test_theorem_5_1_infinite_flow_ends_at_its_limit(name):
    """From the balanced start, inside the interval for α; the invariant ‖A‖² - b² stays zero on the way."""
    cov, times, solver = {
        "isotropic": (np.eye(5), np.linspace(0.0, 100.0, 20), diffrax.Tsit5()),
        "toeplitz": (TOEPLITZ, np.linspace(0.0, 2000.0, 20), diffrax.Tsit5()),
        "ill_conditioned": (np.diag([1.0, 0.1, 0.01]), np.geomspace(1.0, 1e6, 20), diffrax.Kvaerno5()),
    }[name]
    d = len(cov)
    task = LinearRegression(cov)
    alpha = 0.9 * np.sqrt(2) / (d**0.25 * np.linalg.norm(cov, 2))
    start = Blocks.balanced(np.random.default_rng(0).normal(size=(d, d)), alpha)
    trajectory = gradient_flow(lambda blocks: task.infinite_risk(Blocks.head(blocks)), start, times, solver=solver)
    limit = Blocks.infinite_limit(task)
    for reached, expected in zip(jax.tree.leaves(trajectory.params), jax.tree.leaves(limit), strict=True):
        np.testing.assert_allclose(reached[-1], expected, atol=1e-6)
    invariant = jnp.sum(trajectory.params.matrix**2, axis=(1, 2)) - trajectory.params.gain**2
    np.testing.assert_allclose(invariant, 0.0, atol=1e-7 * limit.gain**2)
    risks = jax.vmap(lambda blocks: task.infinite_risk(Blocks.head(blocks)))(trajectory.params)
    assert (np.diff(risks) <= 1e-15).all()
    inverse = np.linalg.inv(cov)
    np.testing.assert_allclose(limit.gain, np.trace(inverse @ inverse) ** 0.25)
    np.testing.assert_allclose(limit.gain * limit.matrix, inverse)


def test_a_preconditioned_flow_is_the_plain_flow_in_other_coordinates():
    """With θ = R φ the plain flow of φ is the flow of θ with G = R Rᵀ; leaves that do not move are None in G."""
    root = jnp.array([[2.0, 0.0], [0.7, 0.4]])
    hessian = jnp.array([[1.0, 0.2], [0.2, 3.0]])
    times = np.array([0.5, 2.0])

    def risk(params):
        return 0.5 * params["x"] @ hessian @ params["x"] + 0.25 * jnp.sum(params["x"] ** 4) * params["power"] / 4

    def precondition(slope):
        assert slope["power"] is None
        return {"x": root @ root.T @ slope["x"], "power": None}

    start = {"x": jnp.array([1.0, -0.5]), "power": 4}
    path = gradient_flow(risk, start, times, precondition=precondition).params["x"]
    plain = gradient_flow(
        lambda phi: risk({"x": root @ phi, "power": 4}), jnp.linalg.solve(root, start["x"]), times
    ).params
    np.testing.assert_allclose(path, plain @ root.T, rtol=1e-7, atol=1e-9)
    assert jnp.abs(path - gradient_flow(risk, start, times).params["x"]).max() > 0.01


def test_flow_of_a_batch():
    """Several starts under `vmap`."""
    ends = jax.vmap(lambda start: gradient_flow(lambda x: 0.5 * x**2, start, jnp.array([1.0])).params)(jnp.arange(3.0))
    np.testing.assert_allclose(ends[:, 0], np.arange(3.0) / np.e, rtol=1e-8)


@pytest.mark.parametrize("method", ["LSODA", "DOP853"])
def test_a_followed_flow_is_the_gradient_flow(checked, method):
    """Curvatures differ by 10⁴; a further argument of the risk is passed on."""
    curvature, times = np.array([0.01, 100.0]), np.array([0.0, 0.01, 3.0])
    risk_and_slope = jax.jit(jax.value_and_grad(lambda point, curvature: 0.5 * curvature @ point**2))
    points, risks = follow_flow(risk_and_slope, np.ones(2), times, curvature, method=method)
    np.testing.assert_allclose(points, np.exp(-np.outer(times, curvature)), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(risks, 0.5 * points**2 @ curvature)


def test_a_followed_flow_that_escapes_says_so():
    with pytest.raises(RuntimeError, match="does not reach the last time, 2"):
        follow_flow(lambda point: (0.0, -(point**2)), np.ones(1), np.array([2.0]), method="DOP853")


def test_flow_refuses_single_precision():
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"jax\.enable_x64\(True\)"):
        gradient_flow(lambda x: x**2, jnp.array(1.0), np.array([1.0]))


def test_flow_refuses_no_times():
    with pytest.raises(ValueError, match="at least one time"):
        gradient_flow(lambda x: x**2, jnp.array(1.0), np.array([]))


@pytest.mark.parametrize("transform", [lambda run: run, jax.jit], ids=["plain", "jit"])
def test_too_few_steps_are_explained(transform):
    """The message names the argument and another solver, not the internals of diffrax."""
    curvatures = jnp.array([1.0, 1e4])
    run = transform(lambda x: gradient_flow(lambda y: curvatures @ y**2, x, np.array([5.0]), max_steps=50).params)
    with pytest.raises(
        RuntimeError, match=r"`gradient_flow` does not reach the last time in max_steps=50 steps"
    ) as caught:
        jax.block_until_ready(run(jnp.ones(2)))
    assert "Kvaerno5" in str(caught.value)


def noisy(params, key):
    """A quadratic with a noisy minimum, at which gradient descent is linear."""
    return 0.5 * jnp.sum((params["x"] - jr.normal(key, (3,))) ** 2)


RUN = {"optimiser": optax.sgd(0.1, momentum=0.5), "steps": 40, "every": 10, "key": jr.key(5)}


def start():
    return {"x": jnp.arange(3.0)}


def assert_same(left, right):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sgd_is_the_recursion_it_says():
    """Step n draws from `fold_in(key, n)`; the rows hold the mean loss since the row before, and its error."""
    trajectory = sgd(noisy, start(), **RUN | {"optimiser": optax.sgd(0.1)})
    x, losses = np.arange(3.0), []
    for n in range(40):
        centre = normal(jr.fold_in(RUN["key"], n), (3,))
        losses.append(0.5 * np.sum((x - centre) ** 2))
        x = x - 0.1 * (x - centre)
    np.testing.assert_array_equal(trajectory.times, [10, 20, 30, 40])
    np.testing.assert_allclose(trajectory.params["x"][-1], x, rtol=1e-12)
    rows = np.reshape(losses, (4, 10))
    np.testing.assert_allclose(trajectory.loss, rows.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(trajectory.loss_std_error, rows.std(axis=1) / np.sqrt(10), rtol=1e-12)


def last(stages):
    *_, end = stages
    return end


def test_train_is_sgd():
    stages = list(train(noisy, start(), **RUN))
    for a, b in zip(jax.tree.leaves(stages[-1].trajectory), jax.tree.leaves(sgd(noisy, start(), **RUN)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert [int(progress.state.step) for progress in stages] == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal([progress.loss for progress in stages], [np.nan, *stages[-1].trajectory.loss])


def test_rows_not_reached_are_not_numbers():
    stages = train(noisy, start(), **RUN)
    assert np.isnan(next(stages).trajectory.loss).all()
    trajectory = next(stages).trajectory
    np.testing.assert_array_equal(np.isnan(trajectory.params["x"]).any(axis=1), [False, True, True, True])
    np.testing.assert_array_equal(trajectory.times, [10, 0, 0, 0])


def test_descent_of_many_seeds():
    """`vmap` over states is a run a seed."""
    states = jax.vmap(lambda key: _Descent.start(RUN["optimiser"], start(), key=key))(jr.split(jr.key(0), 3))
    ends, rows = jax.vmap(lambda state: _descend(noisy, RUN["optimiser"], state, 10))(states)
    assert rows.loss.shape == (3,)
    alone, _ = _descend(noisy, RUN["optimiser"], jax.tree.map(lambda leaf: leaf[1], states), 10)
    np.testing.assert_allclose(ends.params["x"][1], alone.params["x"], rtol=1e-12)


def test_a_stopped_run_goes_on_to_the_bit():
    """Stopped after any row, the end included; optimiser memory (momentum here) and trajectory are in the arrays."""
    whole = last(train(noisy, start(), **RUN))
    for stopped in train(noisy, start(), **RUN):
        kept = [np.asarray(array) for array in stopped.arrays]
        stages = list(train(noisy, start(), **RUN, resume=lambda start, kept=kept: kept))
        assert [int(progress.state.step) for progress in stages] == [*range(int(stopped.state.step), 41, 10)]
        assert_same(stages[-1].arrays, whole.arrays)


def test_another_key_is_refused():
    kept = last(train(noisy, start(), **RUN)).arrays
    with pytest.raises(ValueError, match="another key"):
        next(train(noisy, start(), **RUN | {"key": jr.key(6)}, resume=lambda start: kept))


@pytest.mark.parametrize(("steps", "every"), [(10, 3), (0, 1), (10, 0)])
def test_rows_must_fit(steps, every):
    with pytest.raises(ValueError, match=r"every|steps"):
        sgd(noisy, start(), optimiser=optax.sgd(0.1), steps=steps, every=every, key=jr.key(0))


def test_results_are_pytrees():
    trajectory = sgd(noisy, start(), **RUN)
    assert isinstance(trajectory, eqx.Module)
    assert isinstance(jax.tree.map(lambda leaf: leaf, Blocks(np.eye(2), 1.0)), Blocks)
