"""Population risks of single-location regression: the risk of a head from the overlaps of its vectors [D26].

`E = E(y - f)² - Δ²`, the excess over the label noise, of `f = Σ_l s_l z_l`: 1 for f = 0. A head enters by seven
overlaps and its activation; without cross overlaps `E = 1 - 2 m_v E s_ε + q_v E Σ s²`. The prompt's length may be 2 or
$10^{12}$. `_posterior` has the integrals of the Bayes risk, `_moments` those of a head.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import is_concrete, public, require_count, require_float64
from lib._namespace import MOST_IN_NUMPY, few, in_numpy, jitted, namespace, sigmoid
from lib.single_location.activations import Activation
from lib.single_location.tasks import _LONGEST_BAYES, LocationTask, Overlaps, Spiked

# A mixture of scores costs NumPy as much as a hundred Bayes risks.
_MOST_MIXTURES = 10


@public
def bayes_risk(task: LocationTask, *, batch: int = 1) -> Float[Array, "*stack"]:
    """Return `1 - E p_ε = 1 - E Σ p²`, p the posterior of the hidden token, the least risk of all predictors.

    For sets of relevant tokens p is the probability to be in the set, and the risk is `1 - E Σ p²/E|A|`.

    Args:
      task: `Spiked`, `Independent`, `Absent`, or `Several` with relevant = 1, length - 1 or length, with $L ≤ 10^{12}$
        and ν ≤ 2500; `Max` with $L ≤ 10^{12}$ and either ν ≤ 1000 or ν = ∞. Stacked tasks give stacked risks.
      batch: number of tasks of a stack that are computed at once; 1 is fastest on a CPU, whose cache holds the grids
        of one.

    Returns:
      The risk in [0, 1], of the shape of the task. Its relative error is below 1e-10, also where the risk is 1e-270; in
      the max model below 1e-8 for 500 < ν ≤ 1000. NaN outside the domain. 2 ms per task for the first 1000 tasks of a
      process; then 2 s to compile, and 1 ms per task. Sets of relevant tokens take 10 ms each and compile nothing.

    Raises:
      ValueError: if float64 is off, for other numbers of relevant tokens of `Several`, or for a traced set.

    Source: [D26, Prop. 4.2]; the integrals are derived here, see `lib.single_location._posterior` and
    book/several_relevant_tokens. Transformations: jit, vmap, grad (of `Spiked` and `Max`).
    """
    require_float64("bayes_risk", task.length)
    return _in_numpy_or_stack(_bayes, task, batch=batch)


@public
def attention_risk(
    task: LocationTask, activation: Activation, overlaps: Overlaps, *, batch: int = 1
) -> Float[Array, "*stack"]:
    """Return the excess risk of a head from its overlaps.

    Args:
      task: `Spiked` with $L ≤ 10^{12}$, or `Max` with $L ≤ 10^{12}$ and ν ≤ 60 or ν = ∞; `Several`, `Independent` and
        `Absent` with element-wise activations, `softmax` and `sink_softmax`.
      activation: the activation, with its bias where it has one.
      overlaps: all seven count in the spiked model; in the others cross overlaps must vanish, and k must in the max
        model either be along k* or at an angle of at least 4° to it.
      batch: number of tasks of a stack that are computed at once; 1 is fastest on a CPU, whose cache holds the grids
        of one.

    Returns:
      The risk, of the common shape of the arguments. Its absolute error is below 1e-9 of the largest of its terms 1,
      $2 m_v 𝔼 s_ε$ and $q_v 𝔼 Σ s²$; 1e-8 of it for normalised activations in the max model. NaN where the quadrature
      does not resolve the weights: $√q_k$ above about 60, in the spiked model also $√(q_k ν)$ above about 1000, for
      `exp` where its squared weights exceed the grid of scores, for normalised activations where `E Σ s = 1` is missed
      by 1e-8. A risk much smaller than 1 has no relative accuracy; for the smallest one see `bayes_risk`. 5 ms in the
      spiked model and up to a second in the max model for the first ten values of a process; then 2 to 8 s to compile.

    Raises:
      ValueError: if float64 is off, for cross overlaps of another task than `Spiked`, or for a set of relevant tokens
        that is traced or has another normalised activation.

    Source: [D26]; derived again here, see book/softmax_advantage. Transformations: jit, vmap, grad (smooth
    activations; not of sets of relevant tokens).
    """
    require_float64("attention_risk", task.length)
    task.require_overlaps(overlaps)
    return _in_numpy_or_stack(_attention, task, activation, overlaps, batch=batch, most=_MOST_MIXTURES)


@public
def best_risk(task: LocationTask, activation: Activation, *, batch: int = 1) -> Float[Array, "*stack"]:
    """Return the lowest risk of a head with k = c k*, v along v*: over c > 0, the length of v, and the bias.

    The limit c → ∞ is included where the weights have one that is known: not for `exp`, and not for other kernels.

    Args:
      task: in the domain of `attention_risk`; for `softmax` in that of `bayes_risk`. For `Several`, `Independent` and
        `Absent` $L ≤ 10^{12}$, up to 100 relevant tokens and ν ≤ 2500 are tested.
      activation: one of the activations; those with a free bias get the best one.
      batch: number of tasks of a stack that are computed at once; 1 is fastest on a CPU, whose cache holds the grids
        of one.

    Returns:
      The risk, of the shape of the task; NaN where it is not resolved. For `softmax` as `bayes_risk`; `linear` and
      `hardmax` have an absolute error below 1e-9; the others are searched, `softplus` to 1e-6 and the rest to 1e-8,
      and the search can only end above the lowest risk. A value takes up to 0.4 s, and 0.05 s for element-wise
      activations. After the first ten values of a process (200 for element-wise activations, 1,000 for `softplus`) a
      program is compiled. For sets of relevant tokens `softmax` and `sink_softmax`, whose sink is free, are searched
      over all slopes to 1e-9 in 0.3 s and 0.8 s, and `sigmoid`, one integral, and `linear`, a closed form, have a
      relative error below 1e-10.

    Raises:
      ValueError: if float64 is off, or for a set of relevant tokens that is traced or has another normalised
        activation.

    Source: derived here, see book/softmax_advantage and book/several_relevant_tokens.
    Transformations: jit, vmap, grad (of `softmax` and `linear`; not of sets of relevant tokens).
    """
    require_float64("best_risk", task.length)
    return _in_numpy_or_stack(_best, task, activation, batch=batch, most=activation.searches_in_numpy)


@public
def best_elementwise_risk(task: Spiked, *, batch: int = 1) -> Float[Array, "*stack"]:
    """Return the lowest risk of all element-wise activations in the spiked model.

    Args:
      task: `Spiked` with $2 ≤ L ≤ 10^{12}$ and ν ≤ 1000.
      batch: number of tasks of a stack that are computed at once; 1 is fastest on a CPU, whose cache holds the grids
        of one.

    Returns:
      `1 - E s_ε`, s the probability that the token is the hidden one given its own score: `sigmoid` with the bias
      `-ν/2 - ln(L - 1)` and k = √ν k*. Of the shape of the task: relative error below 1e-9. NaN outside the domain. No
      search, so faster and more accurate than `best_risk(task, sigmoid)`.

    Raises:
      ValueError: if float64 is off.

    Source: [D26]. Transformations: jit, vmap, grad.
    """
    require_float64("best_elementwise_risk", task.length)
    return _in_numpy_or_stack(_elementwise, task, batch=batch, most=_MOST_MIXTURES)


def _attention(task, activation, overlaps):
    return _compiled_risk(task, _moments(task, activation, overlaps), overlaps)


@jitted()
def _compiled_risk(task, moments, overlaps):
    return task.risk(moments, overlaps)


def _best(task, activation):
    return task.best_risk(activation)


def _moments(task, activation, overlaps):
    return task.head_moments(activation, overlaps.m_k, overlaps.q_k)


@jitted()
def _elementwise(task):
    """The mean of one minus the weight of the hidden token, which by the Nishimori identity is also its spread."""
    xp = namespace(task.snr, task.length)
    root = xp.sqrt(task.snr)
    mixture = task.marginals(root, task.snr)
    complement = sigmoid(0.5 * task.snr + xp.log(task.length - 1.0) - mixture.scores)
    in_domain = mixture.resolves(1.0) & (task.length >= 2) & (task.length <= _LONGEST_BAYES)
    return xp.where(in_domain, mixture.hidden[0] @ complement, xp.nan)


@jitted()
def _bayes(task):
    return task.bayes_risk()


def _in_numpy_or_stack(function: Callable, task: LocationTask, *others, batch: int, most: int = MOST_IN_NUMPY):
    """`function` of every element of stacked trees: the first of a process by NumPy, others as `_map_stack`."""
    trees = (task, *others)
    leaves, structure = jax.tree.flatten(trees)
    task.require_known()
    if task.in_numpy or (batch == 1 and few((function, structure), *leaves, most=most)):
        return in_numpy(function, *trees)
    return _map_stack(function, *trees, batch=batch)


def _map_stack(function: Callable, *trees, batch: int):
    """Return `function` of every element of stacked trees, whose leaves broadcast, `batch` elements at once.

    Concrete trees with `batch` = 1 take a Python loop, so that stacks of any size share one compilation. Otherwise the
    elements are mapped by `jax.lax.map`, also under `vmap`.
    """
    batch = require_count("batch", "batch", batch, "it counts the tasks that are computed at once.")
    leaves, structure = jax.tree.flatten(trees)
    shape = jnp.broadcast_shapes(*(jnp.shape(leaf) for leaf in leaves))
    if batch == 1 and is_concrete(*leaves):
        # through NumPy, which knows no weak types: what is compiled for arrays then serves Python numbers too
        rows = zip(*(np.broadcast_to(leaf, shape).ravel() for leaf in leaves), strict=True)
        results = [function(*jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in row])) for row in rows]
        return jax.tree.map(lambda *parts: jnp.stack(parts).reshape(shape), *results)
    mapped = _vmap_in_batches(function, batch)
    if not shape:
        return mapped(*trees)
    rows = [jnp.broadcast_to(leaf, shape).ravel() for leaf in leaves]
    result = jax.vmap(mapped)(*jax.tree.unflatten(structure, rows))
    return jax.tree.map(lambda leaf: leaf.reshape(shape), result)


def _vmap_in_batches(function: Callable, batch: int) -> Callable:
    """Return `function` with a `vmap` that computes `batch` elements at once, and the batches one after another.

    `custom_vmap` supports no reverse mode, so derivatives are those of `function` itself; `vmap` of them is ordinary.
    """

    @jax.custom_batching.custom_vmap
    def in_batches(*trees):
        return function(*trees)

    @in_batches.def_vmap
    def rule(size, is_stacked, *trees):
        def broadcast(stacked, leaf):
            return leaf if stacked else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf)))

        rows = jax.tree.map(broadcast, is_stacked, list(trees))
        result = jax.lax.map(lambda row: function(*row), tuple(rows), batch_size=None if batch == 1 else batch)
        return result, jax.tree.map(lambda _: True, result)

    differentiable = jax.custom_jvp(in_batches)
    differentiable.defjvp(lambda primals, tangents: jax.jvp(function, primals, tangents))
    return differentiable
