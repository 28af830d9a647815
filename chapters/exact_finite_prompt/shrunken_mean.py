r"""The mean answer of a finite prompt, at lengths no computer can hold.

Across: the size $\tau$ of the query, which is also the answer of the infinite prompt (dashed). Up: the exact mean
answer $\tau(1-P)$ of prompts of $L$ tokens. Every curve follows the dashed line, leaves it, and settles near
$\sqrt{2\ln L}$ (tick at the right edge), about the largest of $L$ standard normals. From $10$ tokens to $10^{40}$
the ceiling rises only from 2.1 to 13.6.

Alt: Line chart. A dashed diagonal is the infinite prompt. Six curves, for lengths from ten to ten to the
fortieth, leave it one after the other and flatten out, each towards a short tick at the right edge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.exact_finite_prompt.marks import SIZE
from chapters.exact_finite_prompt.plain_prompts import ByLength, Scene
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.attention import attend
from lib.finite_prompt import mean_output, score_statistics
from lib.statistics import comparison_quantile, standard_error
from lib.tabulate import tabulate


@dataclass(frozen=True)
class Answers:
    """Exact mean answers of prompts of one length to queries of growing size, and about the largest possible one."""

    taus: Float[np.ndarray, " taus"]
    mean: Float[np.ndarray, " taus"]
    ceiling: float


@dataclass(frozen=True)
class Deviations:
    """Mean outputs of simulated prompts less what is expected of them, in standard errors, at every τ > 0.

    Expected is linear attention, shrunk by 1 - P with P from the quadrature, or not shrunk.
    """

    shrunk: Float[np.ndarray, "lengths taus e"]
    unshrunk: Float[np.ndarray, "lengths taus e"]


def exact_answers(decades: list[int]) -> dict[int, Answers]:
    """`τ (1 - P)` against τ, with the ceiling √(2 ln L), by log₁₀ L, for lengths no computer can hold."""
    taus = np.linspace(0.0, 20.0, 61)
    answers = {}
    for decade in sorted(set(decades)):
        log_length = decade * np.log(10.0)
        shrinkage = 1 - tabulate(score_statistics, taus**2, log_length).participation
        answers[decade] = Answers(taus, taus * shrinkage, np.sqrt(2 * log_length))
    return answers


def compare(scene: Scene, taus: list[float], simulated: ByLength) -> Deviations:
    """Mean outputs of plain prompts against linear attention shrunk by 1 - P, coordinate by coordinate."""
    asked = np.asarray(taus) > 0
    queries = jnp.asarray(taus)[asked][:, None] * scene.direction
    by_query = jax.vmap(partial(mean_output, scene.params, scene.gaussian), (0, None))
    exact = np.asarray(jax.jit(jax.vmap(by_query, (None, 0)))(queries, np.log(list(simulated))))
    limit = np.asarray(jax.vmap(partial(attend, scene.params, scene.gaussian))(queries))

    def deviations(expected) -> Float[np.ndarray, "lengths taus e"]:
        return np.asarray(
            [
                (outputs[:, asked].mean(axis=0) - mean) / standard_error(outputs[:, asked])
                for outputs, mean in zip(simulated.values(), expected, strict=True)
            ]
        )

    return Deviations(deviations(exact), deviations([limit] * len(simulated)))


def numbers(answers: Mapping[int, Answers], deviations: Deviations) -> Numbers:
    """The exact mean answers; simulated prompts have the same mean outputs."""
    return Numbers(_table(answers), (_mean_claim(deviations),))


def _table(answers: Mapping[int, Answers]) -> Table:
    """The mean answer by length and query size."""
    frames = [
        pd.DataFrame({"decade": decade, "tau": these.taus, "mean": these.mean, "ceiling": these.ceiling})
        for decade, these in answers.items()
    ]
    columns = {
        "decade": Column("log₁₀ L"),
        "tau": Column("Size of the query, τ; also the answer of the infinite prompt"),
        "mean": Column("Mean answer τ (1 - P) along the line of Lemma 2.1, in units of τ", absolute=1e-12),
        "ceiling": Column("√(2 ln L), about the largest of L standard normals"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _mean_claim(deviations: Deviations) -> Claim:
    comparisons = deviations.shrunk.size
    return Claim(
        id="exact-finite-prompt-mean",
        statement=(
            "The mean output of simulated prompts is linear attention shrunk by 1 - P, with P from the quadrature: the "
            f"worst deviation over {comparisons} coordinates, query sizes and lengths, in standard errors."
        ),
        source="derived here",
        measured=float(np.max(np.abs(deviations.shrunk))),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        std_error=1.0,
        alternative=Alternative(
            "no shrinkage: the answer of the infinite prompt", float(np.max(np.abs(deviations.unshrunk)))
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a length, its ceiling as a tick, on the lemma's line."""
    frame = table
    figure, axes = plt.subplots(figsize=SIZE)
    decades = sorted(frame["decade"].unique().tolist())
    end = frame["tau"].max()
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        curve = frame[frame["decade"] == decade]
        axes.plot(curve["tau"], curve["mean"], color=colour, linewidth=2)
        ceiling = curve["ceiling"].max()
        axes.plot([0.97 * end, end], [ceiling, ceiling], color=colour, linewidth=3, solid_capstyle="butt")
        label = f"$L=10^{{{decade}}}$" if decade > 1 else "$L=10$"
        axes.annotate(label, (end, ceiling), xytext=(6, 0), textcoords="offset points", va="center", color=ink())
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    tick = Line2D([], [], color=ink(), linewidth=3)
    line = Line2D([], [], color=ink(), linestyle="--", linewidth=1.5)
    axes.legend([line, tick], [r"$L=\infty$: Lemma 2.1", r"ceiling $\sqrt{2\,\ln L}$"], loc="upper left")
    axes.set(xlim=(0, end), ylim=(0, 1.15 * frame["ceiling"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"mean answer, $\tau\,(1-P)$")
    return figure
