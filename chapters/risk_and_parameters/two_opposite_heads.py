r"""Two heads of opposite keys and values have no price.

Mean square error times $L$ at the best gain, against $u$: one head $A=uI$ (circles), and half of it together with
half of its opposite (squares), over the same simulated prompts; bars are one standard error. Solid: exact theory
of one head. Dotted: the large-$L$ law of two. Dashed: the best linear head. ($\Sigma=I$, $d=5$, no noise.)

Alt: Log-log chart. Circles on a solid curve fall from several hundred at small u to about 80 near 0.4 and rise
again. Squares lie on a dashed horizontal line near 29 up to u of 0.2, together with a dotted curve, and rise
slowly beyond.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.risk_and_parameters.heads import DIMENSION, exact_risk
from chapters.risk_and_parameters.marks import SIZE
from chapters.risk_and_parameters.valley import valley_law
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.attention import attend
from lib.icl import LinearRegression, block_attention
from lib.measures import Empirical
from lib.statistics import comparison_quantile, standard_error

# Up to which u the square errors of one head have a variance that a simulation measures.
MILD_TILT = 0.3
# Up to which u the law of two heads for L → ∞ is compared with prompts of some hundred tokens.
SMALL_TILT = 0.2
# How many numbers one batch of prompts may hold.
TOGETHER = 2**20


class Keys(NamedTuple):
    """One key a simulation of the chapter; this figure's is the only one."""

    prompts: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(jr.key(seed))


@dataclass(frozen=True)
class Answers:
    """To the same prompts, before any gain: of one head and of half of it with half of its opposite; and the labels."""

    length: int
    tilts: Float[np.ndarray, " tilts"]
    one: Float[np.ndarray, "tilts prompts"]
    two: Float[np.ndarray, "tilts prompts"]
    targets: Float[np.ndarray, " prompts"]


@dataclass(frozen=True)
class Theory:
    """2R·L at the best gain, along u: one head, two opposite heads by their law, and the best linear head's."""

    tilts: Float[np.ndarray, " tilts"]
    one_exact: Float[np.ndarray, " tilts"]
    two_law: Float[np.ndarray, " tilts"]
    linear: float


def simulate(length: int, tilts: Iterable[float], prompts: int, *, key: PRNGKeyArray) -> Answers:
    """Answers of the head A = uI, b = 1 and of half of it with half of its opposite, for each u; and the labels.

    In single precision, like training; averages are taken in double.
    """
    tilts = np.asarray(sorted(set(tilts)))
    one, zero = jnp.ones((), jnp.float32), jnp.zeros((), jnp.float32)
    task = LinearRegression(np.eye(DIMENSION, dtype=np.float32), task_scale=one, noise_std=zero)
    scales = np.asarray(tilts, np.float32)
    matrices = jnp.asarray(scales)[:, None, None] * jnp.eye(DIMENSION, dtype=jnp.float32)

    def answers(tokens, query):
        def answer(matrix):
            ahead, behind = (
                attend(block_attention(sign * matrix, sign), Empirical(tokens), query)[0] for sign in (1.0, -1.0)
            )
            return ahead, (ahead + behind) / 2

        return jax.vmap(answer)(matrices)

    batch = max(1, min(prompts, TOGETHER // length))

    def draw_batch(key):
        drawn = task.draw(length, batch, key=key)
        return *jax.vmap(answers)(drawn.tokens, drawn.queries), drawn.targets

    batches = jax.jit(lambda keys: jax.lax.map(draw_batch, keys))(jr.split(key, -(-prompts // batch)))
    one, two, targets = (np.concatenate(np.asarray(part, np.float64)) for part in batches)
    return Answers(length, tilts, one.T, two.T, targets)


def predict(length: int, tilts: Iterable[float]) -> Theory:
    """What theory there is, at the `tilts` and on a fine grid between the smallest and the largest."""
    tilts = sorted(set(tilts))
    linear = float(LinearRegression(jnp.eye(DIMENSION)).linear_attention_risk(length))
    grid = np.unique([*tilts, *np.geomspace(tilts[0], tilts[-1], 40)])
    return Theory(
        tilts=grid,
        one_exact=np.asarray([2 * length * best_gain_risk(tilt, length) for tilt in grid]),
        two_law=np.asarray(shrunken(opposite_law(grid**2, DIMENSION), length)),
        linear=2 * length * linear,
    )


def best_gain_risk(tilt: float, length: int) -> float:
    """`min_b R_L` at A = uI: the risk is quadratic in b, so three values suffice."""
    evaluate = exact_risk(DIMENSION, length)
    behind, nothing, ahead = (evaluate(np.array([tilt * DIMENSION**0.5, gain]))[0] for gain in (-1.0, 0.0, 1.0))
    return nothing - ((ahead - behind) / 2) ** 2 / (2 * (ahead + behind - 2 * nothing))


def opposite_law(squared_tilt: np.ndarray | float, dimension: int) -> np.ndarray | float:
    """`lim 2R_L L` of two opposite heads with bu = 1: `E[(d/s) sinh(s|x|²) + |x|² cosh(s|x|²)]`, s = u² < ½.

    Their fluctuations have correlation: by the delta method the variance of half the difference is
    ⟨v, Γv⟩ sinh τ² + ⟨v, Γξ⟩² cosh τ², where one head has (⟨v, Γv⟩ + ⟨v, Γξ⟩²) e^{τ²}.
    """
    more, less = 1 - 2 * squared_tilt, 1 + 2 * squared_tilt
    first = (more ** (-dimension / 2) - less ** (-dimension / 2)) / (2 * squared_tilt)
    second = (more ** (-dimension / 2 - 1) + less ** (-dimension / 2 - 1)) / 2
    return dimension * (first + second)


def shrunken(law: np.ndarray | float, length: int) -> np.ndarray | float:
    """2R·L at the best gain of an unbiased answer whose error has variance law/L: d V/(d + V) in place of V."""
    return law / (1 + law / (DIMENSION * length))


def numbers(answers: Answers, theory: Theory) -> Numbers:
    """Both kinds of head against u, simulated and in theory."""
    frame = _frame(answers, theory)
    claims = (
        _one_head_claim(frame),
        _two_heads_claim(frame, answers.length),
        _law_claim(frame, answers.length),
    )
    return Numbers(_table(frame), claims)


def _frame(answers: Answers, theory: Theory) -> pd.DataFrame:
    """2R·L of one head and of two opposite ones at their best gain, by simulation, with what theory there is."""
    found = pd.DataFrame({"tilt": answers.tilts})
    for name, these in (("one", answers.one), ("two", answers.two)):
        errors = _best_gain_errors(these, answers.targets)
        found[f"{name}_simulated"] = answers.length * errors.mean(axis=1)
        found[f"{name}_std_error"] = answers.length * standard_error(errors, axis=1)
    return pd.DataFrame(
        {
            "tilt": theory.tilts,
            "one_exact": theory.one_exact,
            "two_law": theory.two_law,
            "linear": theory.linear,
        }
    ).merge(found, how="left", on="tilt")


def _best_gain_errors(answers: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Square errors at the gain that is best on these prompts, whose choice moves their mean to second order only."""
    gains = (answers @ targets) / np.sum(answers**2, axis=1)
    return (gains[:, None] * answers - targets) ** 2


def _table(frame: pd.DataFrame) -> Table:
    """Both against u."""
    columns = {
        "tilt": Column("u: keys uI, and -uI for the opposite head"),
        "one_exact": Column("2R·L of one head at its best gain, exact"),
        "two_law": Column("2R·L of two opposite heads at their best gain, by the law for L → ∞"),
        "linear": Column("2R·L of the best linear head, exact"),
        "one_simulated": Column("2R·L of one head over simulated prompts, where any", std_error="one_std_error"),
        "one_std_error": Column("Its standard error", std_error="one_std_error"),
        "two_simulated": Column("2R·L of two opposite heads over the same prompts", std_error="two_std_error"),
        "two_std_error": Column("Its standard error", std_error="two_std_error"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _one_head_claim(frame: pd.DataFrame) -> Claim:
    """One simulated head against the exact risk."""
    mild = frame[(frame["tilt"] <= MILD_TILT) & frame["one_simulated"].notna()]

    def worst(column: str) -> float:
        return float(np.max(np.abs(mild["one_simulated"] - mild[column]) / mild["one_std_error"]))

    return Claim(
        id="risk-and-parameters-one-head",
        statement=(
            f"One simulated head has the exact risk at {len(mild)} values of u up to {MILD_TILT:g}: the worst "
            "deviation in standard errors."
        ),
        source="derived here",
        measured=worst("one_exact"),
        expected=0.0,
        tolerance=comparison_quantile(len(mild)),
        std_error=1.0,
        alternative=Alternative("two opposite heads' law", worst("two_law")),
    )


def _two_heads_claim(frame: pd.DataFrame, length: int) -> Claim:
    """At the smallest u, two heads against the best linear head."""
    at = frame.loc[frame["tilt"].idxmin()]
    error = at["two_std_error"] / at["linear"]
    return Claim(
        id="risk-and-parameters-two-heads",
        statement=(
            f"At u = {at['tilt']:g} and L = {length} two opposite heads have the risk of the best linear head, to a "
            "twentieth: the ratio of the two."
        ),
        source="derived here",
        measured=at["two_simulated"] / at["linear"],
        expected=1.0,
        tolerance=0.05 + comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative("one head, the same keys", at["one_simulated"] / at["linear"]),
    )


def _law_claim(frame: pd.DataFrame, length: int) -> Claim:
    """Two simulated heads against the law for L → ∞, at small u."""
    small = frame[(frame["tilt"] <= SMALL_TILT) & frame["two_simulated"].notna()]
    uncorrelated = shrunken(np.asarray(valley_law(np.asarray(small["tilt"]) ** 2, DIMENSION)) / 2, length)

    def worst(simulated) -> float:
        return float(np.max(np.abs(simulated / small["two_law"] - 1)))

    error = float(np.max(small["two_std_error"] / small["two_law"]))
    return Claim(
        id="risk-and-parameters-opposite-law",
        statement=(
            f"Up to u = {small['tilt'].max():g} two simulated heads follow the law of their correlated fluctuations: "
            "the largest relative distance, of which a twentieth is allowed to the finite prompt."
        ),
        source="derived here",
        measured=worst(small["two_simulated"]),
        expected=0.0,
        tolerance=0.05 + comparison_quantile(len(small)) * error,
        std_error=error,
        alternative=Alternative("two heads whose fluctuations are independent", worst(uncorrelated)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Simulated points on the curves of theory, both axes logarithmic."""
    frame = table
    figure, axes = plt.subplots(figsize=SIZE)
    seen = frame[frame["one_simulated"].notna()]
    for name, marker, colour, line, theory, says in (
        ("one", "o", "C0", "-", "one_exact", "one head, exact"),
        ("two", "s", "C1", ":", "two_law", r"two heads, $L\to\infty$"),
    ):
        axes.plot(frame["tilt"], frame[theory], color=colour, linestyle=line, linewidth=2, label=says)
        simulated, error = seen[f"{name}_simulated"], seen[f"{name}_std_error"]
        axes.errorbar(
            seen["tilt"], simulated, error, fmt=marker, color=colour, label=f"{says.partition(',')[0]}, simulated"
        )
    axes.axhline(frame["linear"].iloc[0], color=ink(), linestyle="--", linewidth=1.3, label="best linear head")
    axes.set(xscale="log", yscale="log", xlabel="$u$", ylabel="mean square error times $L$")
    ticks = seen["tilt"].tolist()
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    levels = [20, 50, 100, 200, 500, 1000]
    axes.set_yticks(levels, labels=[str(level) for level in levels])
    axes.minorticks_off()
    axes.set_ylim(20, 1.4 * seen["one_simulated"].max())
    axes.legend(loc="upper right")
    return figure
