"""Population risks of single-location regression: what a head loses that knows its vectors' overlaps [D26].

`E = E(y - f)² - Δ²`, the excess over the label noise, of `f = Σ_l s_l z_l`: 1 for f = 0. A head enters by seven
overlaps and its activation; the prompt's length may be 2 or 10^12.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import is_concrete, require_float64
from lib.single_location.activations import Activation, Sigmoid, compiled_moments, optimal_risk
from lib.single_location.moments import Moments
from lib.single_location.overlaps import Overlaps
from lib.single_location.tasks import LocationTask, Spiked


def bayes_risk(task: LocationTask) -> Float[Array, "*stack"]:
    """`1 - E p_ε = 1 - E Σ p²`, p the posterior of the hidden token: no predictor has a lower risk [D26, Prop. 4.2].

    For L ≤ 10^12; relative accuracy 1e-9 for ν ≤ 140, in the max model for ν ≤ 1000 and ν = ∞; NaN where ν > 1000 is
    finite. Stacked tasks give stacked risks. About 1 ms a task.
    """
    require_float64("bayes_risk", task.length)
    return _each(_bayes, task)


def bayes_integrals(task: LocationTask) -> tuple[Float[Array, "*stack"], Float[Array, "*stack"]]:
    """The Bayes risk twice, by integrals that share no term: what they differ by bounds the error of either."""
    require_float64("bayes_integrals", task.length)
    return _each(_integrals, task)


def attention_risk(task: LocationTask, activation: Activation, overlaps: Overlaps) -> Float[Array, "*stack"]:
    """The excess risk of a head, from its overlaps [D26]; derived again here, see book/softmax_advantage.

    All seven overlaps count in the spiked model; in the max model cross overlaps must vanish. Accurate to 1e-9 in
    absolute terms where it is not NaN, that is for √q_k up to about 60; in the max model also ν ≤ 60 or ν = ∞, and k
    either along k* or at an angle of at least 4°. 10 ms in the spiked model, up to a second in the max model.
    """
    require_float64("attention_risk", task.length)
    task.require_overlaps(overlaps)
    return _each(_attention, task, activation, overlaps)


def best_risk(task: LocationTask, activation: Activation) -> Float[Array, "*stack"]:
    """The lowest risk of a head with k = c k* and v along v*: over c > 0, c → ∞ included, the length of v, the bias.

    The same domain as `attention_risk`. Softmax and linear in closed form or by one quadrature, others by a search.
    """
    require_float64("best_risk", task.length)
    return _each(_best, task, activation)


def lone_posterior(task: Spiked) -> Sigmoid:
    """The weights that know one token only: at k = √ν k*, `sigmoid(√ν χ* - ν/2 - ln(L - 1))`.

    That is the probability of a token to be the hidden one, given its own score, in the spiked model. Needs L ≥ 2.
    """
    return Sigmoid(-0.5 * task.snr - jnp.log(task.length - 1.0))


def best_elementwise_risk(task: Spiked) -> Float[Array, "*stack"]:
    """The lowest risk of all element-wise activations in the spiked model: that of `lone_posterior` [D26].

    No search, so faster and more accurate than `best_risk(task, sigmoid)`. Needs L ≥ 2.
    """
    found = moments(task, lone_posterior(task), Overlaps(jnp.sqrt(task.snr), task.snr, 1.0, 1.0))
    return optimal_risk(found.hidden, found.power)


def moments(task: LocationTask, activation: Activation, overlaps: Overlaps) -> Moments:
    """What a risk is made of; averaged over a law of lengths, they are those of prompts of random length."""
    require_float64("moments", task.length)
    return _each(_moments, task, activation, overlaps)


def _attention(task, activation, overlaps):
    return _compiled_risk(task, _moments(task, activation, overlaps), overlaps)


@jax.jit
def _compiled_risk(task, moments, overlaps):
    return task.risk(moments, overlaps)


def _best(task, activation):
    return activation.best_risk(task)


def _moments(task, activation, overlaps):
    return compiled_moments(activation, activation.law(task, overlaps.m_k, overlaps.q_k))


@jax.jit
def _bayes(task):
    return task.bayes_integrals()[0]


@jax.jit
def _integrals(task):
    return task.bayes_integrals()


def _each(function: Callable, *trees):
    """`function` of every element of stacked trees, whose leaves broadcast.

    One by one, because the grids of one task fit the cache and those of a thousand no memory: in a Python loop where
    leaves can be looked at, so that stacks of any size share one compilation, and in a loop of XLA under `vmap`.
    """
    leaves, structure = jax.tree.flatten(trees)
    shape = jnp.broadcast_shapes(*(jnp.shape(leaf) for leaf in leaves))
    if is_concrete(*leaves):
        # through NumPy, which knows no weak types: what is compiled for arrays then serves Python numbers too
        flat = zip(*(np.broadcast_to(leaf, shape).ravel() for leaf in leaves), strict=True)
        answers = [function(*jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in row])) for row in flat]
        return jax.tree.map(lambda *parts: jnp.stack(parts).reshape(shape), *answers)
    one_by_one = jax.custom_batching.sequential_vmap(function)
    if not shape:
        return one_by_one(*trees)
    flat = [jnp.broadcast_to(leaf, shape).ravel() for leaf in leaves]
    answer = jax.vmap(one_by_one)(*jax.tree.unflatten(structure, flat))
    return jax.tree.map(lambda leaf: leaf.reshape(shape), answer)
