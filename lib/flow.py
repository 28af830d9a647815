"""Training, in continuous time and by steps: the gradient flow of a risk, and stochastic gradient descent.

Both take any pytree of parameters and return what they passed through.
"""

import os
from collections.abc import Callable
from pathlib import Path
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


class Checkpoint(eqx.Module):
    """A file that a killed descent goes on from, to the bit. `run` says what is run: another run's file is refused."""

    path: Path = eqx.field(converter=Path, static=True)
    run: str = eqx.field(static=True)

    def load(self, state: Descent, history: History) -> tuple[Descent, History]:
        """What the file holds, or the arguments if there is no file yet; they also say what it must look like."""
        if not self.path.exists():
            return state, history
        expected, structure = jax.tree.flatten((_without_key(state), history))
        with np.load(self.path) as file:
            leaves = [file[f"arr_{i}"] for i in range(len(file.files) - 1)]
            came = str(file["run"])
        if came != self.run or [leaf.shape for leaf in leaves] != [leaf.shape for leaf in expected]:
            raise ValueError(
                f"`{self.path}` is the checkpoint of another run: remove it, or give this run another file. "
                f"It is of {came!r}, this is {self.run!r}."
            )
        if not np.array_equal(leaves[0], expected[0]):
            raise ValueError(f"`{self.path}` is the checkpoint of a run with another key. It is of {came!r}.")
        bare, history = jax.tree.unflatten(structure, map(jnp.asarray, leaves))
        return Descent(*bare[1:], key=state.key), history

    def save(self, state: Descent, history: History) -> None:
        """Replace the file in one step: a kill leaves the old one or the new one, whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        leaves = jax.tree.leaves((_without_key(state), history))
        with aside.open("wb") as file:
            np.savez(file, *(np.asarray(leaf) for leaf in leaves), run=np.asarray(self.run))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.path)


def _without_key(state: Descent) -> tuple:
    """The state as plain arrays, which a file can hold: the key as its bits, first."""
    return jr.key_data(state.key), state.step, state.params, state.memory


def train(
    loss: Callable[[Any, PRNGKeyArray], Float[Array, ""]],
    params: PyTree,
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    every: int,
    key: PRNGKeyArray,
    checkpoint: Checkpoint | None = None,
    report: Callable[[int, float], None] = lambda step, loss: None,
) -> History:
    """`sgd` for runs long enough to be killed and to be watched: same steps, same answer.

    After every `every` steps the checkpoint is replaced and then `report(step, mean loss)` called. Started again
    with the same arguments the run goes on from there, and ends as if it had not been stopped, to the bit.
    """
    rows = _rows(steps, every)
    go = jax.jit(lambda state: descend(loss, optimiser, state, every))
    state = Descent.start(optimiser, params, key=key)
    row = jax.eval_shape(go, state)[1]
    history = jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), row)
    if checkpoint:
        state, history = checkpoint.load(state, history)
    for row in range(int(state.step) // every, rows):
        state, latest = go(state)
        history = jax.tree.map(lambda rows, new, row=row: rows.at[row].set(new), history, latest)
        if checkpoint:
            checkpoint.save(state, history)
        report(int(state.step), float(latest.loss))
    return history


def _rows(steps: int, every: int) -> int:
    steps = require_count("sgd", "steps", steps, "a descent takes steps.")
    every = require_count("sgd", "every", every, "history has a row every so many steps.")
    if steps % every:
        raise ValueError(
            f"`sgd(every=...)` must divide `steps`, so that the last row is the end. Got {every}, {steps}."
        )
    return steps // every
