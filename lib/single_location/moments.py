"""Averages of a head's weights and scores over a score mixture: all that a risk needs to know of an activation.

An element-wise activation needs one-token averages. The argmax needs how many others are below. A normalised kernel,
`s_l = κ(χ_l)/S`, needs Laplace's identity `Γ(j)/S^j = ∫ e^{jy} exp(-e^y S) dy`, as in `lib.partition`, here for any
κ: one integral over y of products of one-token averages, whatever the number of tokens [D26].
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib.partition import crossing
from lib.single_location.score_mixture import ScoreMixture, half_line_weights

# Nodes in y, logarithms that the integrand falls before it is cut, and how far Σ s may miss 1.
LEVELS, DROP, MASS_ERROR = 224, 40.0, 1e-8
# Halvings that find where the nodes end: a place, not a number.
HALVINGS = 25
# The largest probability below one.
SURE = 1.0 - 1e-15


class Moments(eqx.Module):
    """Of a prompt's weights s and scores c = χ less the spike's part, ε being the hidden token and C = Σ s_l c_l.

    Risks need `hidden` E s_ε and `power` E Σ s²; with cross overlaps also E s_ε², E c_ε s_ε, E c_ε C, E s_ε C, E C².
    """

    hidden: Float[Array, ""]
    power: Float[Array, ""]
    hidden_power: Float[Array, ""]
    hidden_score: Float[Array, ""]
    hidden_reading: Float[Array, ""]
    weight_reading: Float[Array, ""]
    reading_power: Float[Array, ""]


def known_where(holds, moments: Moments) -> Moments:
    """The moments, NaN unless it `holds` that they were resolved."""
    return jax.tree.map(lambda leaf: jnp.where(holds, leaf, jnp.nan), moments)


def elementwise_moments(
    mixture: ScoreMixture, weights: Float[Array, " n"], *, inside: Float[Array, " n"] | float = 1.0
) -> Moments:
    """Of weights that depend on the token alone. `inside` are weights of nodes where the activation has a kink."""
    hidden, others = (mixture.row_weights @ density * inside for density in (mixture.hidden, mixture.others))
    rest, hidden_score, score = mixture.length - 1.0, mixture.scores - mixture.offset, mixture.scores
    reading, hidden_reading = others @ (weights * score), hidden @ (weights * hidden_score)
    mean, square = hidden @ weights, hidden @ weights**2
    return Moments(
        hidden=mean,
        power=square + rest * (others @ weights**2),
        hidden_power=square,
        hidden_score=hidden_reading,
        hidden_reading=hidden @ (weights * hidden_score**2),
        weight_reading=hidden @ (weights**2 * hidden_score) + rest * mean * reading,
        reading_power=hidden @ (weights * hidden_score) ** 2
        + rest * (others @ (weights * score) ** 2 + 2 * hidden_reading * reading)
        + rest * (rest - 1.0) * reading**2,
    )


def argmax_moments(mixture: ScoreMixture, *, inside: Float[Array, " n"] | float = 1.0) -> Moments:
    """Of a weight 1 on the largest score and 0 elsewhere. Signed readings are for one row only.

    With `inside`, the weights of the nodes of a left half-line, of prompts that have all their scores there.
    """
    ascending = mixture.step > 0

    def upward(rows):
        return jnp.where(ascending, rows, rows[..., ::-1])

    scores, hidden, others = upward(mixture.scores), upward(mixture.hidden * inside), upward(mixture.others)
    above = jnp.maximum(sum_above(others), 1e-300)
    below = jnp.maximum(sum_above(others[:, ::-1])[:, ::-1], 1e-300)
    log_below = jnp.where(above < 0.5, jnp.log1p(-jnp.minimum(above, 0.5)), jnp.log(below))
    rest, hidden_score = mixture.length - 1.0, scores - mixture.offset

    def all_below(tokens):
        return jnp.exp(jnp.maximum(tokens, 0.0) * log_below)

    def mean(values):
        return mixture.row_weights @ jnp.sum(values, axis=1)

    leads = jnp.where(ascending | (mixture.length < 2), mean(hidden), 0.0)
    first = jnp.where(mixture.hidden_is_extreme, leads, mean(hidden * all_below(rest)))
    all_inside = jnp.sum(hidden, axis=1) * jnp.sum(mixture.others * inside, axis=1) ** rest
    hidden_below = sum_above(hidden[:, ::-1])[:, ::-1]
    score_below = sum_above((hidden * hidden_score)[:, ::-1])[:, ::-1]
    reading = mean(hidden * hidden_score * all_below(rest))
    square = mean(hidden * hidden_score**2 * all_below(rest))
    return Moments(
        hidden=first,
        power=mixture.row_weights @ all_inside,
        hidden_power=first,
        hidden_score=reading,
        hidden_reading=square + rest * mean(others * scores * score_below * all_below(rest - 1.0)),
        weight_reading=reading,
        reading_power=square + rest * mean(others * scores**2 * hidden_below * all_below(rest - 1.0)),
    )


def sum_above(rows: Float[Array, "rows n"]) -> Float[Array, "rows n"]:
    """The integral from every node to the last."""
    correction = half_line_weights(jnp.arange(9)) - 1.0
    ahead = jnp.pad(rows, ((0, 0), (0, correction.size - 1)))
    corrected = sum(correction[j] * ahead[:, j : j + rows.shape[1]] for j in range(correction.size))
    return jnp.cumsum(rows[:, ::-1], axis=1)[:, ::-1] + corrected


def normalised_moments(
    mixture: ScoreMixture, log_kernel: Float[Array, " n"], *, inside: Float[Array, " n"] | float = 1.0
) -> Moments:
    """Of `s_l = κ(χ_l)/Σ_m κ(χ_m)`; NaN where the quadrature misses `E Σ s = 1`. Signed readings are for one row only.

    Where κ vanishes on a half-line, `inside` are the weights of the nodes of the other one; a prompt without any
    κ > 0 then counts as s = 0.
    """
    length, hidden, others = mixture.length, mixture.hidden * inside, mixture.others * inside
    y = jax.lax.stop_gradient(_window(mixture, log_kernel, inside))
    weight = jnp.exp(y + log_kernel[:, None])
    kept, lost = jnp.exp(-weight), -jnp.expm1(-weight)
    one, two = weight * kept, weight**2 * kept
    log_others = jnp.log1p(-jnp.minimum(others @ lost, SURE))
    hidden_kept = 1.0 - hidden @ lost

    def rest(tokens):
        """`φ^{L - tokens}` times the number of ways to choose tokens - 1 others."""
        ways = jnp.prod(length - jnp.arange(1.0, tokens))
        return ways * jnp.exp((length - tokens) * log_others)

    def row_integrals(values):
        return (y[1] - y[0]) * jnp.sum(values, axis=1)

    def integral(values):
        return mixture.row_weights @ row_integrals(values)

    first, square = hidden @ one, hidden @ two
    empty = (1.0 - jnp.sum(hidden, axis=1)) * jnp.maximum(1.0 - jnp.sum(others, axis=1), 0.0) ** (length - 1.0)
    mass = row_integrals(first * rest(1) + others @ one * hidden_kept * rest(2))
    missed = mixture.row_weights @ jnp.abs(mass + empty - 1.0)

    c, score = mixture.scores - mixture.offset, mixture.scores
    reading, hidden_reading = others * score @ one, hidden * c @ one
    moments = Moments(
        hidden=integral(first * rest(1)),
        power=integral(square * rest(1) + others @ two * hidden_kept * rest(2)),
        hidden_power=integral(square * rest(1)),
        hidden_score=integral(hidden_reading * rest(1)),
        hidden_reading=integral(hidden * c**2 @ one * rest(1) - hidden * c @ lost * reading * rest(2)),
        weight_reading=integral(hidden * c @ two * rest(1) + first * reading * rest(2)),
        reading_power=integral(
            hidden * c**2 @ two * rest(1)
            + (others * score**2 @ two * hidden_kept + 2 * hidden_reading * reading) * rest(2)
            + reading**2 * hidden_kept * rest(3)
        ),
    )
    return known_where(missed < MASS_ERROR, moments)


def _window(
    mixture: ScoreMixture, log_kernel: Float[Array, " n"], inside: Float[Array, " n"] | float
) -> Float[Array, " levels"]:
    """Nodes in y that hold all but e^{-DROP} of E s_ε, if the rows of the mixture were alike."""
    hidden, others = (mixture.row_weights @ density * inside for density in (mixture.hidden, mixture.others))
    known = jnp.isfinite(log_kernel)
    largest = jnp.max(log_kernel)
    span = largest - jnp.min(jnp.where(known, log_kernel, largest)) + 2 * DROP

    def expected(y):
        """How many tokens have a weight above e^{-y}, and the logarithm of the integrand."""
        weight = jnp.exp(y + log_kernel)
        lost = -jnp.expm1(-weight)
        log_token = jnp.log(jnp.maximum(hidden @ (weight * jnp.exp(-weight)), 1e-300))
        away = jnp.minimum(others @ lost, SURE)
        return hidden @ lost + (mixture.length - 1.0) * away, log_token + (mixture.length - 1.0) * jnp.log1p(-away)

    turn = crossing(lambda y: expected(y)[0] < 0.3, -largest - span, -largest + span, halvings=HALVINGS)
    least = expected(turn)[1] - DROP
    bottom = crossing(lambda y: expected(y)[1] < least, turn - span, turn, halvings=HALVINGS)
    top = crossing(lambda y: expected(y)[1] > least, turn, turn + span, halvings=HALVINGS)
    return jnp.linspace(bottom, top, LEVELS)
