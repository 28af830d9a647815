"""The even part of the output of every head in its query, on the text and for Gaussian tokens.

A head with the output f(q) at the query q has the output f(-q) if all scores are negated. The even part is
e = (f(q) + f(-q))/2 and the odd part is (f(q) - f(-q))/2; the sum of their squares is the mean of |f(q)|² and |f(-q)|².
Outputs are taken minus a constant, the mean value of the head on the other prompts, because a bias of the next layer
can add any constant. For small scores the even part is, with the plain averages s̄ and v̄ over the prompt,

    e = v̄ + e₂ + ...,   e₂ = 1/(2L) Σ (s_l - s̄)² (v_l - v̄).

For Gaussian tokens of a given distribution both parts are exact. With p = softmax(τg), r = softmax(-τg), and the mean
scores ĝ₊ = Σ p g and ĝ₋ = Σ r g, the mean square of the even part is

    E |e|² = |c|²/τ² · E ((ĝ₊ + ĝ₋)/2)² + (tr Γ_v - |c|²/τ²) · E Σ ((p + r)/2)²,   c = Cov(value, score),

where the expectations are (Q(τ) + G̃(τ, -τ))/2 and (P(τ) + C(τ, -τ))/2 of lib.finite_prompt and lib.pairs. The
plain average of the values has the mean square tr Γ_v/L, and subtracting it from e subtracts this from E |e|².
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import CubicSpline

from chapters.real_heads import tracked_tables
from chapters.real_heads.encoder import HEAD_WIDTH, HEADS, LAYERS, HeadInputs
from chapters.real_heads.head_measurements import GRID, head_inputs
from chapters.real_heads.network import Network
from chapters.real_heads.parameters import LONGEST
from chapters.real_heads.regimes import freezing
from chapters.real_heads.statistics import ByPrompt, Heads, PromptStatistics
from lib.finite_prompt import LARGEST_TAU, score_statistics
from lib.pairs import pair_participation, pair_score_error

# Spread of scores up to which expectations for both signs together are exact; spreads at which they are computed.
LARGEST_EXACT, NODES = 10.0, np.linspace(0.0, LARGEST_TAU, 241)


@dataclass(frozen=True)
class EvenParts(PromptStatistics):
    """Means over the queries of a prompt, for every prompt, layer and head; `length` is the prompt length L.

    `tau` is the standard deviation of the scores. `even` and `odd` are the squares of the two parts of the output minus
    the mean value on the other prompts. `average` is the square of the plain average of the prompt's values, minus the
    same constant. `centred` is the square of the even part minus the plain average of the prompt, and `other` minus
    that of the next prompt. `second` is the square of the term e₂ of the expansion, and `product` is its product with
    the even part minus the plain average. `gaussian_...` are the exact expectations for independent Gaussian tokens
    with the mean and covariance of the keys and values of all prompts, at the same queries.
    """

    even: ByPrompt
    odd: ByPrompt
    average: ByPrompt
    centred: ByPrompt
    other: ByPrompt
    second: ByPrompt
    product: ByPrompt
    gaussian_tau: ByPrompt
    gaussian_even: ByPrompt
    gaussian_odd: ByPrompt
    gaussian_average: ByPrompt

    @property
    def gaussian_ratio(self) -> Heads:
        """The spread of the scores of each head on the Gaussian tokens, in the same units."""
        return self.mean("gaussian_tau") / freezing(self.length)

    @property
    def share(self) -> Heads:
        """The share of the even part in the mean square of the output at q and -q."""
        return self.mean("even") / (self.mean("even") + self.mean("odd"))

    @property
    def gaussian_share(self) -> Heads:
        """The same share for the Gaussian tokens."""
        return self.mean("gaussian_even") / (self.mean("gaussian_even") + self.mean("gaussian_odd"))

    @property
    def gain(self) -> Heads:
        """The part of the mean square of the even part that disappears if the plain average is subtracted."""
        return 1 - self.mean("centred") / self.mean("even")

    @property
    def gain_of_other(self) -> Heads:
        """The same part if the plain average of the next prompt is subtracted."""
        return 1 - self.mean("other") / self.mean("even")

    @property
    def second_share(self) -> Heads:
        """The part of the mean square of e - v̄ that the best multiple of e₂ explains."""
        return self.mean("product") ** 2 / (self.mean("centred") * self.mean("second"))

    @property
    def gaussian_gain(self) -> Heads:
        """The gain for the Gaussian tokens."""
        return self.mean("gaussian_average") / self.mean("gaussian_even")

    @property
    def variation(self) -> Heads:
        """The mean square of the plain average, relative to independent tokens of the same covariance."""
        return self.mean("average") / self.mean("gaussian_average")


def read_even_parts() -> EvenParts:
    """Return the tracked even parts of all heads at the longest prompts; `data/make.py` measures them."""
    rows = tracked_tables.table("even").sort_values(["prompt", "layer", "head"])
    names = [name for name in EvenParts.__dataclass_fields__ if name != "length"]
    return EvenParts(LONGEST, **{name: rows[name].to_numpy().reshape(-1, LAYERS, HEADS) for name in names})


def measure_even_parts(network: Network, length: int, prompts: int) -> EvenParts:
    """Return the even parts of all heads on the first `prompts` stretches of the text, cut to `length` tokens."""
    inputs = head_inputs(network, length, prompts)
    averages = np.asarray(inputs.values.mean(axis=3), np.float64)
    constants = (averages.sum(axis=0) - averages) / (prompts - 1)
    on_text = _squares(inputs, jnp.asarray(constants, jnp.float32), jnp.asarray(np.roll(averages, -1, 0), jnp.float32))
    measured = {name: np.asarray(array, np.float64) for name, array in on_text.items()}
    gaussian = _expected(HeadInputs(*(np.asarray(part, np.float64) for part in inputs)))
    return EvenParts(length, **measured, **{f"gaussian_{name}": array for name, array in gaussian.items()})


@jax.jit
def _squares(inputs: HeadInputs, constants, others) -> dict[str, Array]:
    """Map `even_squares` over prompts, layers and heads."""
    flat = jax.tree.map(lambda part: part.reshape(-1, *part.shape[3:]), (inputs, constants, others))
    squares = jax.lax.map(lambda of_head: even_squares(*of_head), flat)
    return {name: array.reshape(inputs.values.shape[:3]) for name, array in squares.items()}


def even_squares(
    head: HeadInputs, constant: Float[Array, " p"], other: Float[Array, " p"]
) -> dict[str, Float[Array, ""]]:
    """Return the means over queries of one head on one prompt, by their names in `EvenParts`.

    `constant` is subtracted from all outputs, and `other` is the plain average of another prompt.
    """
    scores, values = head.queries @ head.keys.T, head.values - constant
    weights, opposite = jax.nn.softmax(scores, axis=1), jax.nn.softmax(-scores, axis=1)
    even, odd = (weights + opposite) / 2 @ values, (weights - opposite) / 2 @ values
    average = values.mean(axis=0)
    centred_scores = scores - scores.mean(axis=1, keepdims=True)
    second = centred_scores**2 @ (values - average) / (2 * len(values))

    def square(outputs):
        return jnp.mean(jnp.sum(outputs**2, axis=1))

    return {
        "tau": scores.std(axis=1).mean(),
        "even": square(even),
        "odd": square(odd),
        "average": jnp.sum(average**2),
        "centred": square(even - average),
        "other": square(even - (other - constant)),
        "second": square(second),
        "product": jnp.mean(jnp.sum((even - average) * second, axis=1)),
    }


class EvenTables(NamedTuple):
    """Expectations for Gaussian scores of standard deviation τ, tabulated on `GRID`.

    `weights` is P = E Σ p² and `even_weights` E Σ ((p + r)/2)²; `scores` is E ĝ₊² and `even_scores` E ((ĝ₊ + ĝ₋)/2)².
    """

    weights: Float[np.ndarray, " grid"]
    even_weights: Float[np.ndarray, " grid"]
    scores: Float[np.ndarray, " grid"]
    even_scores: Float[np.ndarray, " grid"]


@cache
def tabulate_even_parts(length: int) -> EvenTables:
    """Return the expectations on `GRID`, exact at `NODES` up to `LARGEST_EXACT`.

    Beyond it both softmaxes are frozen, p at the largest score and r at the smallest, and these are taken as
    independent. At 512 tokens this changes `even_scores` by 0.1 %, and `even_weights` not at all.
    """
    log_length = np.log(length)
    single = score_statistics(NODES**2, log_length)
    participation, mean = np.asarray(single.participation), NODES * (1 - np.asarray(single.participation))
    squares = np.asarray(single.score_error) + 2 * NODES * mean - NODES**2
    weights, scores = participation / 2, (squares - mean**2) / 2
    inside = NODES <= LARGEST_EXACT
    pair = NODES[inside], -NODES[inside], log_length
    weights[inside] += np.asarray(pair_participation(*pair)) / 2
    scores[inside] = (np.asarray(single.score_error)[inside] + np.asarray(pair_score_error(*pair))) / 2
    columns = (participation, weights, squares, scores)
    # all four are even functions of τ, so that their slope at zero vanishes
    splines = (CubicSpline(NODES, np.log(column), bc_type=((1, 0.0), "not-a-knot")) for column in columns)
    return EvenTables(*(np.exp(spline(GRID)) for spline in splines))


def expected_squares(
    queries: Float[np.ndarray, "n p"], covariance: Float[np.ndarray, "p_v p_v"], length: int
) -> dict[str, Float[np.ndarray, " n"]]:
    """Return the exact expectations of one head on Gaussian tokens, at each query, by their names in `EvenParts`.

    `covariance` is that of keys and values, in this order.
    """
    width, tables = queries.shape[1], tabulate_even_parts(length)
    keys, cross, values = covariance[:width, :width], covariance[:width, width:], covariance[width:, width:]
    variance, total = np.einsum("qi,ij,qj->q", queries, keys, queries), np.trace(values)
    along = np.sum((queries @ cross) ** 2, axis=1) / variance
    tau = np.sqrt(variance)
    at_tau = EvenTables(*(np.interp(tau, GRID, table) for table in tables))
    whole = along * at_tau.scores + (total - along) * at_tau.weights
    even = along * at_tau.even_scores + (total - along) * at_tau.even_weights
    return {"tau": tau, "even": even, "odd": whole - even, "average": np.full(len(queries), total / length)}


def _expected(inputs: HeadInputs) -> dict[str, ByPrompt]:
    """Return the expectations of all heads with the moments of all prompts, averaged over the queries of each."""
    prompts, length = inputs.queries.shape[0], inputs.queries.shape[3]
    found: dict[str, ByPrompt] = {}
    for layer, head in np.ndindex(LAYERS, HEADS):
        queries, keys, values = (part[:, layer, head].reshape(-1, HEAD_WIDTH) for part in inputs)
        covariance = np.cov(np.concatenate([keys, values], axis=1).T, bias=True)
        for name, squares in expected_squares(queries, covariance, length).items():
            array = found.setdefault(name, np.zeros((prompts, LAYERS, HEADS)))
            array[:, layer, head] = squares.reshape(prompts, length).mean(axis=1)
    return found
