r"""On average a finite prompt answers in the lemma's direction, the more shortly the larger the query.

Points: slope $\mathbb{E}\,r/\tau$ of the mean response $r$ of simulated prompts of length $L$, with two standard
errors. Lines: the exact slope $1-P$, $P=\mathbb{E}\sum_i p_i^2$ computed by quadrature. Neighbouring points share
their prompts and move together. Only lengths with at least a thousand prompts are drawn. At 1 (dashed) the mean
is that of the infinite prompt. The law holds at every length and every query size, not only where $L$ is large.

Alt: Line chart of a slope against query size. For each prompt length an exact curve starts near one and falls
toward zero as the query grows, later for longer prompts; the points of simulated prompts lie on it.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.gaussian_limit.gaussian_prompts import Responses, well_sampled
from chapters.gaussian_limit.parameters import ENOUGH_PROMPTS
from chapters.gaussian_limit.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import (
    error_bars,
    headline,
    ink,
    label,
    legend_line,
    legend_point,
    legend_with,
    markers,
    power_of_ten,
    sequence,
)
from lib.batching import tabulate
from lib.finite_prompt import participation
from lib.statistics import comparison_quantile, standard_error, worst_deviation


def numbers(responses: Mapping[int, Responses]) -> Numbers:
    """Slopes of mean responses beside the exact ones."""
    return Numbers(_table(responses), (_mean_claim(responses), _saturation_claim(responses)))


def _table(responses: Mapping[int, Responses]) -> Table:
    """Slope of the mean response beside `1 - E Σp²`, both measured on the same prompts, at τ > 0, of many prompts."""
    taus = _taus(responses)
    asked = taus > 0
    frames = []
    for length, these in well_sampled(responses).items():
        tau, response, squares = taus[asked], these.response[:, asked], these.squared_weights[:, asked]
        columns = {
            "length": length,
            "tau": tau,
            "slope": response.mean(axis=0) / tau,
            "slope_std_error": standard_error(response) / tau,
            "shrinkage": 1 - squares.mean(axis=0),
            "shrinkage_std_error": standard_error(squares),
            "exact": 1 - tabulate(participation, tau, np.log(length)),
            "gap_std_error": standard_error(response / tau + squares),
        }
        frames.append(pd.DataFrame(columns))
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "slope": Column("Mean response divided by τ: 1 is Lemma 2.1", std_error="slope_std_error"),
        "slope_std_error": Column("Standard error of the slope", moves_with="slope"),
        "shrinkage": Column("1 - E Σp², the slope that Stein's identity predicts", std_error="shrinkage_std_error"),
        "shrinkage_std_error": Column("Standard error of the shrinkage", moves_with="shrinkage"),
        "exact": Column("1 - P by quadrature"),
        "gap_std_error": Column("Standard error of slope - shrinkage, prompt by prompt", moves_with="slope"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _mean_claim(responses: Mapping[int, Responses]) -> Claim:
    """`E[ĝ - τ(1 - Σp²)] = 0`, prompt by prompt, in standard errors, at every length with prompts enough."""
    taus = _taus(responses)
    asked = taus > 0
    tested = well_sampled(responses).values()
    shrunk = [these.response - taus * (1 - these.squared_weights) for these in tested]
    unshrunk = [these.response - taus for these in tested]
    bound = comparison_quantile(len(tested) * int(asked.sum()))
    return Claim(
        id="gaussian-limit-mean-output",
        statement=(
            "The mean response of a finite prompt is τ(1 - E Σp²): the worst deviation over all τ > 0 and all "
            f"lengths with at least {ENOUGH_PROMPTS} prompts, in standard errors."
        ),
        source="derived here",
        box="mean-output",
        measured=max(worst_deviation(gap[:, asked]) for gap in shrunk),
        expected=0.0,
        tolerance=bound,
        alternative=Alternative(
            "no shrinkage, a mean response of τ", max(worst_deviation(g[:, asked]) for g in unshrunk)
        ),
    )


def _saturation_claim(responses: Mapping[int, Responses]) -> Claim:
    """The mean answer to the largest query over that to one half as large, on the same prompts, the shortest."""
    length = min(responses)
    these = responses[length]
    last, middle = these.taus.size - 1, these.taus.size // 2
    large, small = these.response[:, last], these.response[:, middle]
    ratio = float(large.mean() / small.mean())
    # the delta method for a ratio of two means over the same prompts
    std_error = float(standard_error(large - ratio * small) / small.mean())
    slopes = 1 - tabulate(participation, these.taus, np.log(length))
    exact = these.taus * slopes
    return Claim(
        id="gaussian-limit-mean-saturates",
        statement=(
            f"The mean answer is not linear in the query: at L = {length} the query of size {these.taus[last]:g} has a "
            f"mean answer so many times that of the query of size {these.taus[middle]:g}, as exact theory says."
        ),
        source="derived here",
        box="mean-output",
        measured=ratio,
        expected=float(exact[last] / exact[middle]),
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative(
            "a mean answer linear in the query, shrunk alike at every size",
            float(these.taus[last] / these.taus[middle]),
        ),
    )


def _taus(responses: Mapping[int, Responses]) -> Float[np.ndarray, " queries"]:
    return next(iter(responses.values())).taus


def draw(table: pd.DataFrame) -> Figure:
    """Exact curves, and simulated points on them."""
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(table["length"].unique().tolist())
    for length, colour, marker in zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True):
        curve = table[table["length"] == length]
        axes.plot(curve["tau"], curve["exact"], color=colour, linewidth=1.5)
        error_bars(axes, curve["tau"], curve["slope"], curve["slope_std_error"], color=colour, marker=marker)
        label(
            axes, curve["tau"].iloc[-1], curve["exact"].iloc[-1], f"$L={power_of_ten(length)}$", colour, xytext=(9, 0)
        )
    axes.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
    label(axes, table["tau"].max(), 1, "Lemma 2.1", ink(), xytext=(0, 5), ha="right", va="bottom")
    axes.set(xlim=(0, 1.02 * table["tau"].max()), ylim=(0, 1.12))
    axes.set(xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$", ylabel="slope of the mean answer")
    legend_with(axes, {"exact, $1-P$": legend_line("-", 1.5), "simulated": legend_point()}, loc="lower left")
    headline(figure, "The larger the query, the further a finite prompt falls short of the lemma")
    return figure
