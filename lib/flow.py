"""Training in continuous time and by steps: the gradient flow of a risk, and stochastic gradient descent.

`gradient_flow` integrates `dθ/dt = -G∇risk(θ)` of any pytree in XLA, and `follow_flow` that of a vector by SciPy, as in
[BB26, Section 5]. `sgd` and `train` step along gradients of fresh batches by an optimiser of optax. All return the
recorded parameters.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Real
from scipy.integrate import solve_ivp

from lib._checks import public, require_count, require_float64
from lib._types import AnyArray

__all__ = ["follow_flow", "gradient_flow", "sgd", "train"]


class _Trajectory(eqx.Module):
    """Recorded parameters along a training, in continuous time or by steps.

    Attributes:
      times: times of the gradient flow, or numbers of steps of a descent, shape (n,).
      params: the parameters; row i of every leaf is its value at `times[i]`.
      loss: for a descent, the mean loss of the steps since the previous row, shape (n,); None for the gradient flow.
      loss_std_error: its standard error, shape (n,); None for the gradient flow.
    """

    times: Real[Array, "*n"]
    params: PyTree
    loss: Float[Array, "*n"] | None = None
    loss_std_error: Float[Array, "*n"] | None = None


@public
def gradient_flow(
    risk: Callable[[Any], Float[Array, ""]],
    params: PyTree,
    times: Float[AnyArray, " n"],
    *,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    solver: diffrax.AbstractSolver | None = None,
    max_steps: int = 1_000_000,
    precondition: Callable[[Any], Any] | None = None,
) -> _Trajectory:
    """Return the solution of `dθ/dt = -G∇risk(θ)`, θ(0) = params, at the given times; G = I by default.

    Adaptive steps keep the local error below `atol + rtol · |θ|`; the global error is that times a constant that
    depends on the flow. The default solver, Tsitouras' 5(4), is explicit, so that its step is at most about 3 over the
    largest curvature of the risk: where curvatures differ by 10⁴ and times are long, pass `solver=diffrax.Kvaerno5()`.
    A preconditioner can make the curvatures more equal.

    Args:
      risk: maps the parameters to a number.
      params: a pytree; leaves that are not floating-point arrays stay fixed.
      times: increasing times ≥ 0, shape (n,), n ≥ 1.
      rtol: relative tolerance of a step.
      atol: absolute tolerance of a step.
      solver: a diffrax solver; `diffrax.Tsit5()` by default.
      max_steps: largest number of steps.
      precondition: G, a function of the gradient that returns a pytree of the same structure. Leaves that stay fixed
        are None in the gradient. The risk falls along the flow if G is linear, symmetric and positive definite; this is
        not checked.

    Returns:
      The trajectory `.times`, `.params`, whose leaves have a leading axis n.

    Raises:
      ValueError: if float64 is off or there is no time.
      RuntimeError: if `max_steps` do not suffice.

    Transformations: jit, vmap, grad.
    """
    times = jnp.asarray(times, float)
    require_float64("lib.flow.gradient_flow", times)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"`gradient_flow(times=...)` needs a vector of at least one time. Got shape {times.shape}.")
    moving, fixed = eqx.partition(jax.tree.map(_as_float64, params), eqx.is_inexact_array)

    def velocity(time, moving, args):
        slope = jax.grad(lambda moving: risk(eqx.combine(moving, fixed)))(moving)
        return jax.tree.map(jnp.negative, slope if precondition is None else precondition(slope))

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Tsit5() if solver is None else solver,
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=moving,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps,
        throw=False,
    )
    path = eqx.error_if(
        solution.ys,
        solution.result == diffrax.RESULTS.max_steps_reached,
        f"`gradient_flow` does not reach the last time in max_steps={max_steps:,} steps: the curvatures of the risk "
        "differ too much for an explicit solver, or the time is too long. Pass `solver=diffrax.Kvaerno5()`, earlier "
        "times, or more steps.",
    )
    path = solution.result.error_if(path, solution.result != diffrax.RESULTS.successful)
    return _Trajectory(times, eqx.combine(path, fixed))


@public
def follow_flow(
    risk_and_slope: Callable[..., tuple[Any, Any]],
    start: Float[np.ndarray, " p"],
    times: Float[np.ndarray, " n"],
    *args: Any,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    method: str = "LSODA",
) -> tuple[Float[np.ndarray, "n p"], Float[np.ndarray, " n"]]:
    """Return points and risks of `dθ/dt = -∇risk(θ)`, θ(0) = start, at the given times, by an integrator of SciPy.

    For a few flows of few parameters: only the risk and its slope are compiled, once for all flows, where
    `gradient_flow` compiles the whole integration.

    Args:
      risk_and_slope: maps a point and `args` to the risk and its gradient, such as `jax.jit(jax.value_and_grad(risk))`,
        or to the risk and the negative velocity of a preconditioned flow.
      start: the point at time 0, shape (p,).
      times: increasing times ≥ 0, shape (n,), n ≥ 1.
      *args: further arguments of `risk_and_slope`, such as the table of a prompt length.
      rtol: relative tolerance of a step.
      atol: absolute tolerance of a step.
      method: a method of `scipy.integrate.solve_ivp`. LSODA switches to an implicit method where the flow is stiff;
        `DOP853` is explicit and has a higher order.

    Returns:
      Points, shape (n, p), and their risks, shape (n,).

    Raises:
      RuntimeError: if the integrator does not reach the last time.

    Transformations: none.
    """
    solved = solve_ivp(
        lambda time, point: -np.asarray(risk_and_slope(point, *args)[1]),
        (0.0, times[-1]),
        start,
        method=method,
        t_eval=times,
        rtol=rtol,
        atol=atol,
    )
    if not solved.success:
        raise RuntimeError(f"`follow_flow` does not reach the last time, {times[-1]}: {solved.message}")
    points = solved.y.T
    return points, np.asarray([float(risk_and_slope(point, *args)[0]) for point in points])


def _as_float64(leaf):
    return leaf.astype(float) if eqx.is_inexact_array(leaf) else leaf


class _Descent(eqx.Module):
    """The state of a stochastic gradient descent: enough to continue exactly as if it had never stopped."""

    step: Int[Array, "*runs"]
    params: PyTree
    memory: PyTree
    key: PRNGKeyArray

    @classmethod
    @public
    def start(cls, optimiser: optax.GradientTransformation, params: PyTree, *, key: PRNGKeyArray) -> "_Descent":
        """Return the state before the first step."""
        return cls(jnp.asarray(0), params, optimiser.init(params), key)


@public
def _descend(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    optimiser: optax.GradientTransformation,
    state: _Descent,
    steps: int,
) -> tuple[_Descent, _Trajectory]:
    """Do some steps of a stochastic gradient descent under one `lax.scan`, and record one row."""

    def step(state, _):
        batch_loss, slope = jax.value_and_grad(loss)(state.params, jr.fold_in(state.key, state.step))
        update, memory = optimiser.update(slope, state.memory, state.params)
        return _Descent(state.step + 1, optax.apply_updates(state.params, update), memory, state.key), batch_loss

    state, losses = jax.lax.scan(step, state, length=steps)
    return state, _Trajectory(state.step, state.params, losses.mean(), losses.std() / jnp.sqrt(steps))


@public
def sgd(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    params: PyTree,
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    every: int,
    key: PRNGKeyArray,
) -> _Trajectory:
    """Return the trajectory of a stochastic gradient descent, in one compiled program.

    Use `train` for runs that are long enough to be stopped or watched.

    Args:
      loss: maps parameters and a random key to the loss of a fresh batch.
      params: the initial parameters.
      optimiser: an optax transformation.
      steps: number of steps.
      every: number of steps per row; it divides `steps`.
      key: JAX random key of the run.

    Returns:
      The trajectory `.times`, `.params`, `.loss`, `.loss_std_error`, `steps // every` rows.

    Raises:
      ValueError: if `steps` or `every` is not a whole number ≥ 1, or `every` does not divide `steps`.

    Transformations: jit, vmap, grad.
    """
    rows = _rows(steps, every)
    state = _Descent.start(optimiser, params, key=key)
    return jax.lax.scan(lambda state, _: _descend(loss, optimiser, state, every), state, length=rows)[1]


class _Progress(eqx.Module):
    """A recorded descent that is still running."""

    state: _Descent
    trajectory: _Trajectory

    @property
    def loss(self) -> float:
        """The mean loss of the latest row; NaN before the first."""
        reached, losses = int(jnp.sum(self.trajectory.times > 0)), self.trajectory.loss
        assert losses is not None  # a descent records it
        return float(losses[max(reached - 1, 0)])

    @property
    def arrays(self) -> list[Array]:
        """State and trajectory as plain arrays, which a file can hold; the key comes first, as its bits."""
        state = self.state
        return [jr.key_data(state.key), *jax.tree.leaves((state.step, state.params, state.memory, self.trajectory))]

    def moved_to(self, arrays: Sequence[Array | np.ndarray]) -> "_Progress":
        """Return the same run at the state and trajectory that `arrays` hold."""
        key_bits, *rest = map(jnp.asarray, arrays)
        if not np.array_equal(key_bits, jr.key_data(self.state.key)):
            raise ValueError(
                "These `arrays` are of a run with another key: its other half would be drawn from other randomness. "
                f"Got {key_bits} for {jr.key_data(self.state.key)}."
            )
        structure = jax.tree.structure((self.state.step, self.state.params, self.state.memory, self.trajectory))
        step, params, memory, trajectory = jax.tree.unflatten(structure, rest)
        return _Progress(_Descent(step, params, memory, self.state.key), trajectory)


@public
def train(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    params: PyTree,
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    every: int,
    key: PRNGKeyArray,
    resume: Callable[[list[Array]], Sequence[Array | np.ndarray]] = lambda start: start,
) -> Iterator[_Progress]:
    """Run `sgd` row by row, so that a long run can be watched, stopped and resumed; the result is the same.

    Args:
      loss: maps parameters and a random key to the loss of a fresh batch.
      params: the initial parameters.
      optimiser: an optax transformation.
      steps: number of steps.
      every: number of steps per row; it divides `steps`.
      key: JAX random key of the run.
      resume: maps the `arrays` of step 0 to those to start from. Given the arrays that an earlier run with the same
        arguments last yielded, the run ends exactly as if that one had not been stopped.

    Yields:
      The progress at the start, then after every row; the last one holds the whole trajectory.

    Raises:
      ValueError: as `sgd`, or if the resumed arrays belong to a run with another key.
    """
    rows = _rows(steps, every)
    go = jax.jit(lambda state: _descend(loss, optimiser, state, every))
    state = _Descent.start(optimiser, params, key=key)
    row = jax.eval_shape(go, state)[1]
    unreached = jax.tree.map(lambda leaf: _unreached((rows, *leaf.shape), leaf.dtype), row)
    start = _Progress(state, unreached)
    progress = start.moved_to(resume(start.arrays))
    yield progress
    for row in range(int(progress.state.step) // every, rows):
        state, latest = go(progress.state)
        trajectory = jax.tree.map(lambda rows, new, row=row: rows.at[row].set(new), progress.trajectory, latest)
        progress = _Progress(state, trajectory)
        yield progress


def _unreached(shape: tuple[int, ...], dtype: Any) -> Array:
    return jnp.full(shape, jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0, dtype)


def _rows(steps: int, every: int) -> int:
    steps = require_count("sgd", "steps", steps, "a descent takes steps.")
    every = require_count("sgd", "every", every, "a trajectory has a row every so many steps.")
    if steps % every:
        raise ValueError(
            f"`sgd(every=...)` must divide `steps`, so that the last row is the end. Got {every}, {steps}."
        )
    return steps // every
