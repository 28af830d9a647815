"""Gradient descent finds the hidden directions: order parameters along training, in the setting of [M24].

Here all vectors are on the unit sphere of $R^d$: k, v and the hidden k*, v*. The hidden token is `N(√(d/2) k*, γ² I)`,
the others are `N(0, I)`, and the label is `y = ⟨X_J, v*⟩ + noise`. The risk of a head `Σ_l s_l(λ⟨X_l, k⟩) ⟨X_l, v⟩`
depends on k and v through five scalar products (two of the seven `Overlaps` are 1), and so does its gradient flow.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import ndtri
from scipy.stats import qmc

from lib.partition import log_survival, log_tilted
from lib.single_location.tasks import Head, Overlaps

# Number of nodes of the trapezoidal rule for one score, and its largest node, in standard deviations.
SCORE_NODES, LARGEST_SCORE = 97, 8.5
# The largest λ max(1, γ) at which they resolve erf(λχ).
LARGEST_SHARPNESS = 3.0
# Quasi-random prompts where all scores matter together, and scrambles of as many that measure their error.
PROMPT_COUNT, REPLICATES = 256, 8
# Nodes that find and that integrate the averages of softmax weights, the logarithms that the integrands fall before
# they are cut, and the largest standard deviation of a score.
SCAN_NODES, QUADRATURE_NODES, LOG_DROP, LARGEST_SPREAD = 96, 384, 42.0, 30.0


class SphereTask(eqx.Module):
    """The data distribution of [M24].

    Attributes:
      dimension: number d of coordinates.
      length: number L of tokens.
      variance: variance γ² of the hidden token.
    """

    dimension: int = eqx.field(static=True)
    length: int = eqx.field(static=True)
    variance: float = eqx.field(static=True)

    @property
    def signal(self) -> float:
        """Mean √(d/2) of the hidden token along k*."""
        return float(np.sqrt(self.dimension / 2))


class OverlapTrajectory(eqx.Module):
    """Recorded steps of projected gradient descent.

    Attributes:
      risk: excess risk; a head that outputs 0 has 1.
      overlaps: overlaps with the hidden directions.
    """

    risk: Float[Array, "*times"]
    overlaps: Overlaps


OverlapRisk = Callable[[Overlaps, Float[Array, ""]], Float[Array, ""]]


def erf_risk(
    task: SphereTask, overlaps: Overlaps, sharpness: Float[Array, ""], *, nodes: int = SCORE_NODES
) -> Float[Array, ""]:
    """Return the excess risk, over γ², of `s_l = erf(λχ_l)`: tokens are independent given the overlaps.

    Args:
      task: the data distribution.
      overlaps: scalar products of the unit vectors k and v, not divided by D: each of shape (), in [-1, 1], q = 1.
      sharpness: λ with λ max(1, γ) ≤ 3, shape ().
      nodes: number of nodes; `score_nodes` returns one that is enough for all λ up to a bound.

    Returns:
      The risk, shape (), by a trapezoid over the hidden score: relative error below 1e-12 for λ max(1, γ) ≤ 2, and 1e-8
      up to 3. NaN beyond.

    Source: derived here; [M24] has it in closed form. Transformations: jit, vmap, grad.
    """
    scores = np.linspace(-LARGEST_SCORE, LARGEST_SCORE, nodes)
    weights = np.exp(-(scores**2) / 2)
    weights = weights / weights.sum()
    o, spread, other_tokens = overlaps, np.sqrt(task.variance), task.length - 1

    def mean(values):
        return weights @ values

    # other tokens, in closed form by parts: E χ erf(λχ), E erf(λχ)² and E (χ² - 1) erf(λχ)² for a standard normal χ
    squared = 2.0 * sharpness**2
    first_moment = jnp.sqrt(2.0 * squared / (jnp.pi * (1.0 + squared)))
    mean_square = 2.0 / jnp.pi * jnp.arcsin(squared / (1.0 + squared))
    excess = 4.0 * squared / (jnp.pi * jnp.sqrt(1.0 + 2.0 * squared) * (1.0 + squared))
    bias = o.q_vk * first_moment
    square = mean_square + o.q_vk**2 * excess
    hidden_weights = erf(sharpness * (task.signal * o.m_k + spread * scores))
    residual = spread * o.m_kv * scores - hidden_weights * (task.signal * o.m_vk + spread * o.q_vk * scores)
    hidden_risk = mean(residual**2) + task.variance * (
        1.0
        - o.m_kv**2
        - 2.0 * (o.m_v - o.q_vk * o.m_kv) * mean(hidden_weights)
        + (1.0 - o.q_vk**2) * mean(hidden_weights**2)
    )
    other_risk = other_tokens * (square - 2.0 * bias * mean(residual)) + other_tokens * (other_tokens - 1) * bias**2
    resolved = sharpness * max(1.0, float(spread)) <= LARGEST_SHARPNESS
    return jnp.where(resolved, (hidden_risk + other_risk) / task.variance, jnp.nan)


def score_nodes(task: SphereTask, largest_sharpness: float) -> int:
    """Return a number of nodes at which `erf_risk` has a relative error below 1e-12 up to this λ, where λγ ≤ 2.

    At the distance y from the real axis the integrand is below $e^{(1 + 4λ²γ²) y²/2}$ times its size on this axis, so
    that the trapezoidal rule of step h has a relative error of about $e^{-2π²/(h² (1 + 4λ²γ²))}$, here $e^{-32}$.
    """
    step = np.pi / (4.0 * np.sqrt(1.0 + 4.0 * largest_sharpness**2 * task.variance))
    return int(np.ceil(2.0 * LARGEST_SCORE / step)) + 1


def softmax_risk(
    task: SphereTask, overlaps: Overlaps, sharpness: Float[Array, ""], *, prompts: int = PROMPT_COUNT
) -> Float[Array, ""]:
    """Return the excess risk, over γ², of `s = softmax(λχ)`: the average over fixed quasi-random scores of all tokens.

    Args:
      task: the data distribution.
      overlaps: scalar products of the unit vectors k and v, not divided by D: each of shape (), in [-1, 1], q = 1.
      sharpness: λ, shape ().
      prompts: number of prompts, a power of two.

    Returns:
      The risk, shape (). With 256 prompts its relative error is about 1 % where scores differ by a few units (d = 40,
      L = 5,
      λ = 0.4), and grows with λ√d and L: at d = 100, L = 20, λ = 10, the setting of [Do25], it is up to 15 %.
      `softmax_risk_error` estimates it, and where cross overlaps vanish `softmax_quadrature_risk` has no such error.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    scores = jnp.asarray(quasi_normals(task.length, prompts, 1)[0])
    return score_average_risk(lambda chi: jax.nn.softmax(sharpness * chi), task, overlaps, scores)


def softmax_risk_error(
    task: SphereTask, overlaps: Overlaps, sharpness: Float[Array, ""], *, prompts: int = PROMPT_COUNT
) -> Float[Array, ""]:
    """Return the standard error of `softmax_risk` at the same arguments.

    Args:
      task: the data distribution.
      overlaps: scalar products of the unit vectors k and v, not divided by D: each of shape (), in [-1, 1], q = 1.
      sharpness: λ, shape ().
      prompts: number of prompts, a power of two.

    Returns:
      The standard deviation, not that of a mean, of the risk between eight independently scrambled sets of prompts,
      shape
      (). `softmax_risk` uses the first of them.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    sets = jnp.asarray(quasi_normals(task.length, prompts, REPLICATES))

    def risk(scores):
        return score_average_risk(lambda chi: jax.nn.softmax(sharpness * chi), task, overlaps, scores)

    return jnp.std(jax.vmap(risk)(sets), ddof=1)


def softmax_quadrature_risk(task: SphereTask, overlaps: Overlaps, sharpness: Float[Array, ""]) -> Float[Array, ""]:
    """Return the excess risk, over γ², of `s = softmax(λχ)` by quadrature, where cross overlaps vanish.

    `1 - 2 m_v E s_1 + q_v (E s_1² + Σ_{l>1} E s_l²/γ²)`, token 1 the hidden one. The three averages are integrals over
    one variable of one-token expectations, whose scores are $N(λ √(d/2) m_k, λ²γ² q_k)$ for the hidden token and
    $N(0, λ² q_k)$ for the others.

    Args:
      task: the data distribution, L ≥ 2.
      overlaps: with m_kv = m_vk = q_vk = 0.
      sharpness: λ > 0 with $λ√q_k max(1, γ) ≤ 30$ and $λ √(d/2) |m_k|$ at most eight times $λ√q_k max(1, γ)$, shape ().

    Returns:
      The risk, shape (), with an absolute error below 1e-9 relative to its largest term. NaN where a cross overlap is
      not
      zero, outside the domain, and where the weights of all tokens do not add up to 1 to 1e-9.

    Source: derived here, after [D26]. Transformations: jit, vmap, grad.
    """
    sharpness = jnp.asarray(sharpness)
    length, tau = float(task.length), sharpness * jnp.sqrt(overlaps.q_k)
    hidden_tau, shift = tau * np.sqrt(task.variance), sharpness * task.signal * overlaps.m_k
    widest = jnp.maximum(tau, hidden_tau)
    low = -np.log(length) - 13.0 * widest - widest**2 - jnp.abs(shift) - 46.0
    high = 10.0 * widest + 4.0 + jnp.abs(shift)

    def integrands(y):
        other_logs, hidden_logs = (
            (log_survival(level, width), log_tilted(1, level, width), log_tilted(2, level, width))
            for level, width in ((y, tau), (y + shift, hidden_tau))
        )
        log_others, log_other_others = (length - 1.0) * other_logs[0], (length - 2.0) * other_logs[0] + hidden_logs[0]
        log_choices = np.log(length - 1.0)
        return jnp.stack(
            [
                hidden_logs[1] + log_others,
                log_choices + other_logs[1] + log_other_others,
                hidden_logs[2] + log_others,
                log_choices + other_logs[2] + log_other_others,
            ]
        )

    coarse = jnp.linspace(low, high, SCAN_NODES)
    in_bracket = jnp.max(integrands(coarse), axis=0) > -LOG_DROP
    first, last = jnp.argmax(in_bracket), SCAN_NODES - 1 - jnp.argmax(in_bracket[::-1])
    ends = coarse[jnp.clip(jnp.stack([first - 1, last + 1]), 0, SCAN_NODES - 1)]
    y = jnp.linspace(ends[0], ends[1], QUADRATURE_NODES)
    hidden, others, hidden_square, others_square = (y[1] - y[0]) * jnp.sum(jnp.exp(integrands(y)), axis=1)
    cross = jnp.abs(overlaps.m_kv) + jnp.abs(overlaps.m_vk) + jnp.abs(overlaps.q_vk)
    resolved = (jnp.abs(hidden + others - 1.0) < 1e-9) & (cross == 0) & (widest <= LARGEST_SPREAD)
    risk = 1.0 - 2.0 * overlaps.m_v * hidden + overlaps.q_v * (hidden_square + others_square / task.variance)
    return jnp.where(resolved & (jnp.abs(shift) <= 8.0 * widest), risk, jnp.nan)


def score_average_risk(
    weights: Callable[[Float[Array, " L"]], Float[Array, " L"]],
    task: SphereTask,
    overlaps: Overlaps,
    scores: Float[Array, "prompts L"],
) -> Float[Array, ""]:
    """Return the excess risk, over γ², of any weights of the scores, by an average over scores; that over values is
    explicit.

    Args:
      weights: the map from the L scores of a prompt to its weights.
      task: the data distribution.
      overlaps: scalar products of the unit vectors k and v, not divided by D: each of shape (), in [-1, 1], q = 1.
      scores: standard normals, one row per prompt, the hidden token first.

    Returns:
      The risk, shape ().

    Source: derived here. Transformations: jit, vmap, grad.
    """
    o, variance = overlaps, task.variance
    spreads = jnp.sqrt(jnp.ones(task.length).at[0].set(variance))
    centred_scores = spreads * scores
    means = jnp.zeros(task.length).at[0].set(task.signal)
    s = jax.vmap(weights)(o.m_k * means + centred_scores)
    residual = o.m_kv * centred_scores[:, 0] - jnp.sum(s * (o.m_vk * means + o.q_vk * centred_scores), axis=1)
    square = jnp.mean(s**2, axis=0) @ spreads**2
    alignment = variance * (o.m_v - o.q_vk * o.m_kv) * jnp.mean(s[:, 0])
    remainder = variance * (1.0 - o.m_kv**2) - 2.0 * alignment + (1.0 - o.q_vk**2) * square
    return (jnp.mean(residual**2) + remainder) / variance


# From a point of the sphere, a gradient and the size of a step to the next point.
SphereStep = Callable[[Float[Array, " d"], Float[Array, " d"], float], Float[Array, " d"]]


def projected_step(vector: Float[Array, " d"], gradient: Float[Array, " d"], step_size: float) -> Float[Array, " d"]:
    """Return the point after a step against the whole gradient, projected on the sphere.

    Args:
      vector: a unit vector, shape (d,).
      gradient: the gradient there, shape (d,).
      step_size: step size.

    Returns:
      A unit vector, shape (d,).

    Transformations: jit, vmap, grad.
    """
    return normalise(vector - step_size * gradient)


def tangential_step(vector: Float[Array, " d"], gradient: Float[Array, " d"], step_size: float) -> Float[Array, " d"]:
    """Return the point after a step against the tangential part of the gradient, projected on the sphere.

    Args:
      vector: a unit vector, shape (d,).
      gradient: the gradient there, shape (d,).
      step_size: step size.

    Returns:
      A unit vector, shape (d,).

    Source: the authors' code of [M24]. Transformations: jit, vmap, grad.
    """
    return normalise(vector - step_size * (gradient - (vector @ gradient) * vector))


def descend_on_sphere(
    risk: OverlapRisk,
    start: Head,
    sharpness: Float[Array, " steps"],
    *,
    step_size: float,
    every: int,
    move: SphereStep = projected_step,
) -> OverlapTrajectory:
    """Return the trajectory of projected gradient descent: a step against the gradient of the risk, then back to the
    sphere.

    The hidden directions are the first two coordinate axes.

    Args:
      risk: excess risk as a function of overlaps and λ.
      start: the first head, two unit vectors.
      sharpness: λ at each step, shape (steps,); `every` divides their number.
      step_size: step size.
      every: number of steps between records.
      move: the step on the sphere, `projected_step` or `tangential_step`.

    Returns:
      Records before every `every`-th step and after the last, leading axis steps/every + 1.

    Source: [M24].
    """

    def overlapping_risk(head, lam):
        return risk(overlaps_on_sphere(head), lam)

    def step(head, lam):
        gradient = jax.grad(overlapping_risk)(head, lam)
        return jax.tree.map(lambda vector, gradient_part: move(vector, gradient_part, step_size), head, gradient), None

    def descend_and_record(head, lams):
        return jax.lax.scan(step, head, lams)[0], overlaps_on_sphere(head)

    head, recorded = jax.lax.scan(descend_and_record, start, sharpness.reshape(-1, every))
    overlaps = jax.tree.map(jnp.append, recorded, overlaps_on_sphere(head))
    risks = jax.lax.map(lambda at: risk(*at), (overlaps, jnp.append(sharpness[::every], sharpness[-1])))
    return OverlapTrajectory(risks, overlaps)


def descend_on_prompts(
    task: SphereTask,
    start: Head,
    sharpness: Float[Array, " steps"],
    *,
    step_size: float,
    every: int,
    batch: int,
    noise_std: float,
    key: PRNGKeyArray,
) -> OverlapTrajectory:
    """Return the trajectory of erf attention under stochastic gradient descent with tangential steps on fresh prompts.

    Args:
      task: the data distribution.
      start: the first head, two unit vectors.
      sharpness: λ at each step, shape (steps,); `every` divides their number.
      step_size: step size.
      every: number of steps between records.
      batch: number of fresh prompts of a step; tokens are drawn in float32.
      noise_std: standard deviation of the label noise.
      key: random key.

    Returns:
      Records like those of `descend_on_sphere`, with the risk `erf_risk` of the head and not the errors on its
      prompts.

    Source: [M24].
    """

    def mean_square(head, tokens, noise, lam):
        return jnp.mean(
            (tokens[:, 0, 1] + noise - jnp.sum(erf(lam * tokens @ head.key) * (tokens @ head.value), 1)) ** 2
        )

    def step(head, step_input):
        lam, index = step_input
        token_key, noise_key = jr.split(jr.fold_in(key, index))
        tokens = draw_tokens(task, batch, key=token_key)
        noise = noise_std * jr.normal(noise_key, (batch,), tokens.dtype)
        gradient = jax.grad(mean_square)(head, tokens, noise, lam)
        return jax.tree.map(
            lambda vector, gradient_part: tangential_step(vector, gradient_part, step_size), head, gradient
        ), None

    def record(head, lam):
        overlaps = overlaps_on_sphere(head)
        return OverlapTrajectory(erf_risk(task, overlaps, lam), overlaps)

    def descend_and_record(head, step_input):
        return jax.lax.scan(step, head, step_input)[0], record(head, step_input[0][0])

    steps = (sharpness.reshape(-1, every), jnp.arange(sharpness.size).reshape(-1, every))
    head, records = jax.lax.scan(descend_and_record, start, steps)
    return jax.tree.map(jnp.append, records, record(head, sharpness[-1]))


def draw_tokens(task: SphereTask, prompts: int, *, key: PRNGKeyArray) -> Float[Array, "prompts L d"]:
    """Return prompts with the hidden token first and k* the first axis, in float32.

    Args:
      task: the data distribution.
      prompts: number of prompts.
      key: random key.

    Returns:
      Tokens, shape (prompts, L, d).

    Source: [M24]. Transformations: none of `task`, whose numbers are static.
    """
    spreads = jnp.ones(task.length, jnp.float32).at[0].set(task.variance**0.5)
    tokens = spreads[:, None] * jr.normal(key, (prompts, task.length, task.dimension), jnp.float32)
    return tokens.at[:, 0, 0].add(jnp.float32(task.signal))


def random_head(dimension: int, *, key: PRNGKeyArray) -> Head:
    """Return two independent uniform points of the sphere; their overlaps are of order `1/√d`.

    Args:
      dimension: dimension d.
      key: random key.

    Returns:
      The head.
    """
    key_key, value_key = jr.split(key)
    return Head(normalise(jr.normal(key_key, (dimension,))), normalise(jr.normal(value_key, (dimension,))))


def manifold_head(dimension: int, *, key: PRNGKeyArray) -> Head:
    """Return a random head on the manifold of zero cross overlaps: `k ⊥ v*`, `v ⊥ k*`, `k ⊥ v`.

    Args:
      dimension: dimension d, at least 3.
      key: random key.

    Returns:
      The head, two unit vectors.
    """
    head = random_head(dimension, key=key)
    k = normalise(head.key.at[1].set(0.0))
    v = head.value.at[0].set(0.0)
    projected = k.at[0].set(0.0)
    return Head(k, normalise(v - (v @ k) / (projected @ projected) * projected))


def in_span(head: Head) -> Head:
    """Return the head in an orthonormal basis of the span of k*, v*, k and v, which descent on the sphere never leaves.

    Args:
      head: the head, whose k* and v* are the first two axes.

    Returns:
      A head with the same overlaps in four dimensions, whose k* and v* are the first two axes.
    """
    key, value = head.key[2:], head.value[2:]
    size = jnp.linalg.norm(key)
    along = key @ value / size
    rest = jnp.linalg.norm(value - along * key / size)
    return Head(
        jnp.concatenate([head.key[:2], jnp.stack([size, jnp.zeros(())])]),
        jnp.concatenate([head.value[:2], jnp.stack([along, rest])]),
    )


def overlaps_on_sphere(head: Head) -> Overlaps:
    """Return the overlaps of a head whose k* and v* are the first two axes.

    Args:
      head: the head.

    Returns:
      The overlaps, each of shape ().
    """
    return Overlaps(
        m_k=head.key[0],
        q_k=head.key @ head.key,
        m_v=head.value[1],
        q_v=head.value @ head.value,
        m_kv=head.key[1],
        m_vk=head.value[0],
        q_vk=head.key @ head.value,
    )


def manifold_distance(overlaps: Overlaps) -> Float[Array, "*times"]:
    """Return the norm of the three cross overlaps, the distance from the manifold `k ⊥ v*, v ⊥ k*, k ⊥ v`.

    On it the gradient keeps k and v, so descent never leaves it.

    Args:
      overlaps: the overlaps, each of any common shape.

    Returns:
      The distance, of that shape.

    Source: [M24]. Transformations: jit, vmap, grad.
    """
    return jnp.sqrt(overlaps.m_kv**2 + overlaps.m_vk**2 + overlaps.q_vk**2)


def normalise(vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """Return the vector divided by its norm.

    Args:
      vector: a non-zero vector, shape (d,).

    Returns:
      The unit vector, shape (d,).

    Transformations: jit, vmap, grad.
    """
    return vector / jnp.linalg.norm(vector)


@functools.lru_cache(maxsize=8)
def quasi_normals(dimension: int, points: int, replicates: int) -> Float[np.ndarray, "replicates points dimension"]:
    """Return standard normals from Sobol sequences, each replicate scrambled independently (Owen).

    The scatter of means between replicates measures their error. The scrambles have the seeds 0, 1, …
    """
    uniforms = np.stack([qmc.Sobol(dimension, rng=seed).random(points) for seed in range(replicates)])
    return ndtri(np.clip(uniforms, 2.0**-53, 1.0 - 2.0**-53))
