"""Training, in continuous time and by steps: the gradient flow of a risk, and stochastic gradient descent.

Both take any pytree of parameters and return what they passed through.
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
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from lib._checks import require_count, require_float64


class Trajectory(eqx.Module):
    """Parameters along a flow: row i of every leaf of `params` is their value at `times[i]`."""

    times: Float[Array, " n"]
    params: PyTree


def gradient_flow(
    risk: Callable[[Any], Float[Array, ""]],
    params: PyTree,
    times: Float[Array, " n"] | Float[np.ndarray, " n"],
    *,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    solver: diffrax.AbstractSolver | None = None,
    max_steps: int = 1_000_000,
) -> Trajectory:
    """`dθ/dt = -∇risk(θ)`, θ(0) = `params`, at the increasing `times` ≥ 0.

    Adaptive steps keep the local error below `atol + rtol · |θ|`; the global one is that times a constant that the
    flow sets. The default solver is Tsitouras' 5(4), explicit, so its step is about 3 over the largest curvature of
    the risk: where curvatures differ by 10⁴ and times are long, pass `solver=diffrax.Kvaerno5()`. Float64 only.
    Raises if `max_steps` do not suffice.
    """
    times = jnp.asarray(times, float)
    require_float64("lib.flow.gradient_flow", times)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"`gradient_flow(times=...)` needs a vector of at least one time. Got shape {times.shape}.")
    moving, fixed = eqx.partition(jax.tree.map(_as_float64, params), eqx.is_inexact_array)

    def velocity(time, moving, args):
        return jax.tree.map(jnp.negative, jax.grad(lambda moving: risk(eqx.combine(moving, fixed)))(moving))

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
    )
    return Trajectory(times, eqx.combine(solution.ys, fixed))


def _as_float64(leaf):
    return leaf.astype(float) if eqx.is_inexact_array(leaf) else leaf


class Descent(eqx.Module):
    """Where a stochastic gradient descent stands: enough to go on exactly as if it had never stopped.

    The randomness of step n is `fold_in(key, n)`: `key` itself never changes.
    """

    step: Int[Array, "*runs"]
    params: PyTree
    memory: PyTree
    key: PRNGKeyArray

    @classmethod
    def start(cls, optimiser: optax.GradientTransformation, params: PyTree, *, key: PRNGKeyArray) -> "Descent":
        """Step 0 from `params`."""
        return cls(jnp.asarray(0), params, optimiser.init(params), key)


class History(eqx.Module):
    """What a descent passed through, a row every so many steps.

    `loss` and `loss_std_error` are the mean loss of the steps since the row before, and its standard error;
    `params` are those after step `steps`.
    """

    steps: Int[Array, "*rows"]
    loss: Float[Array, "*rows"]
    loss_std_error: Float[Array, "*rows"]
    params: PyTree


def descend(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    optimiser: optax.GradientTransformation,
    state: Descent,
    steps: int,
) -> tuple[Descent, History]:
    """`steps` steps of `optimiser` on `loss(params, key)`, a fresh key each, under one `lax.scan`; one row of history.

    Pure: `jit` it, and `vmap` it over states for several seeds.
    """

    def step(state, _):
        batch_loss, slope = jax.value_and_grad(loss)(state.params, jr.fold_in(state.key, state.step))
        update, memory = optimiser.update(slope, state.memory, state.params)
        return Descent(state.step + 1, optax.apply_updates(state.params, update), memory, state.key), batch_loss

    state, losses = jax.lax.scan(step, state, length=steps)
    return state, History(state.step, losses.mean(), losses.std() / jnp.sqrt(steps), state.params)


def sgd(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    params: PyTree,
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    every: int,
    key: PRNGKeyArray,
) -> History:
    """Stochastic gradient descent from `params`, recorded `every` so many steps; `every` divides `steps`.

    Pure: `jit` it, and `vmap` it over keys for several seeds. For runs worth saving see `train`.
    """
    rows = _rows(steps, every)
    state = Descent.start(optimiser, params, key=key)
    return jax.lax.scan(lambda state, _: descend(loss, optimiser, state, every), state, length=rows)[1]


class Progress(eqx.Module):
    """A recorded descent on its way: where it stands, and its history, NaN in the rows it has not reached."""

    state: Descent
    history: History

    @property
    def loss(self) -> float:
        """The mean loss of the latest row; NaN before the first."""
        reached = int(jnp.sum(self.history.steps > 0))
        return float(self.history.loss[max(reached - 1, 0)])

    @property
    def arrays(self) -> list[Array]:
        """All of it as plain arrays, which a file can hold: the key as its bits, first."""
        state = self.state
        return [jr.key_data(state.key), *jax.tree.leaves((state.step, state.params, state.memory, self.history))]

    def moved_to(self, arrays: Sequence[Array | np.ndarray]) -> "Progress":
        """The same run where its `arrays` were these. Raises `ValueError` if they are of a run with another key."""
        key_bits, *rest = map(jnp.asarray, arrays)
        if not np.array_equal(key_bits, jr.key_data(self.state.key)):
            raise ValueError(
                "These `arrays` are of a run with another key: its other half would be drawn from other randomness. "
                f"Got {key_bits} for {jr.key_data(self.state.key)}."
            )
        structure = jax.tree.structure((self.state.step, self.state.params, self.state.memory, self.history))
        step, params, memory, history = jax.tree.unflatten(structure, rest)
        return Progress(Descent(step, params, memory, self.state.key), history)


def train(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    params: PyTree,
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    every: int,
    key: PRNGKeyArray,
    resume: Callable[[list[Array]], Sequence[Array | np.ndarray]] = lambda start: start,
) -> Iterator[Progress]:
    """`sgd` for runs long enough to be killed and to be watched: same steps, same answer.

    Yields the progress it starts from, then that after every `every` steps; the last one's history is the answer.
    `resume` is given the `arrays` of step 0 and returns those to start from: with what an earlier run of the same
    arguments last yielded this one ends as if that had not been stopped, to the bit.
    """
    rows = _rows(steps, every)
    go = jax.jit(lambda state: descend(loss, optimiser, state, every))
    state = Descent.start(optimiser, params, key=key)
    row = jax.eval_shape(go, state)[1]
    unreached = jax.tree.map(lambda leaf: _unreached((rows, *leaf.shape), leaf.dtype), row)
    start = Progress(state, unreached)
    progress = start.moved_to(resume(start.arrays))
    yield progress
    for row in range(int(progress.state.step) // every, rows):
        state, latest = go(progress.state)
        history = jax.tree.map(lambda rows, new, row=row: rows.at[row].set(new), progress.history, latest)
        progress = Progress(state, history)
        yield progress


def _unreached(shape: tuple[int, ...], dtype: Any) -> Array:
    return jnp.full(shape, jnp.nan if jnp.issubdtype(dtype, jnp.inexact) else 0, dtype)


def _rows(steps: int, every: int) -> int:
    steps = require_count("sgd", "steps", steps, "a descent takes steps.")
    every = require_count("sgd", "every", every, "history has a row every so many steps.")
    if steps % every:
        raise ValueError(
            f"`sgd(every=...)` must divide `steps`, so that the last row is the end. Got {every}, {steps}."
        )
    return steps // every
