r"""The mean output of a finite prompt is shorter than the output of the infinite prompt, more so for larger queries.

Points are the slope $\mathbb{E}\,r/\tau$ of the mean response $r$ of simulated prompts of length $L$, with two standard
errors. Lines are the exact slope $1-P$, with $P=\mathbb{E}\sum_i p_i^2$ computed by quadrature. The dashed line at 1 is
the infinite prompt. The formula holds at every length and every query size. Neighbouring points share their prompts and
move together. Only lengths with at least a thousand prompts are drawn.

Alt: Line chart of a slope against query size. For each prompt length an exact curve starts near one and falls
toward zero as the query grows, later for longer prompts; the points of simulated prompts are on it.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.gaussian_limit.crossover import DECADES, FOLLOWS, SLOPES, Crossover
from chapters.gaussian_limit.gaussian_prompts import Responses, well_sampled
from chapters.gaussian_limit.parameters import ENOUGH_PROMPTS
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point, legend_with, power_of_ten
from lib.finite_prompt import participation
from lib.statistics import standard_error, worst_deviation


def numbers(responses: Mapping[int, Responses], crossover: Crossover) -> Numbers:
    """Return slopes of mean responses with the exact ones, and the claims on the mean output."""
    taus = next(iter(responses.values())).taus
    positive = taus > 0
    groups = []
    for length, sample in well_sampled(responses).items():
        tau, response, squares = taus[positive], sample.response[:, positive], sample.squared_weights[:, positive]
        group = {
            "length": length,
            "tau": tau,
            "slope": response.mean(axis=0) / tau,
            "slope_std_error": standard_error(response) / tau,
            "shrinkage": 1 - squares.mean(axis=0),
            "shrinkage_std_error": standard_error(squares),
            "exact": 1 - np.asarray(participation(tau, np.log(length))),
            "gap_std_error": standard_error(response / tau + squares),
        }
        groups.append(group)
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$"),
        "slope": Estimate("Mean response divided by $τ$: 1 is Lemma 2.1"),
        "shrinkage": Estimate("$1 - 𝔼 Σp²$, the slope that Stein's identity predicts"),
        "exact": Column("$1 - P$ by quadrature"),
        "gap_std_error": Column("Standard error of slope - shrinkage, prompt by prompt", moves_with="slope"),
    }
    return Numbers(Table.of(groups, columns), _claims(responses, crossover, taus))


def _claims(responses: Mapping[int, Responses], crossover: Crossover, taus: Float[np.ndarray, " queries"]) -> Claims:
    claim = Claims("gaussian-limit", source="derived here", box="mean-output")
    positive, tested = taus > 0, well_sampled(responses).values()
    claim.agree(
        "mean-output",
        "The mean response of a finite prompt is $τ(1 - 𝔼 Σp²)$: both sides agree on simulated prompts, over all "
        f"$τ > 0$ and all lengths with at least {ENOUGH_PROMPTS:,} prompts",
        [worst_deviation((each.response - taus * (1 - each.squared_weights))[:, positive]) for each in tested],
        rejects=(
            "the mean response is $τ$, without shrinkage",
            [worst_deviation((each.response - taus)[:, positive]) for each in tested],
        ),
        comparisons=len(tested) * positive.sum(),
    )
    # the largest query and one half as large, for the shortest prompts
    length = min(responses)
    sizes = taus[[taus.size // 2, -1]]
    small, large = responses[length].response[:, [taus.size // 2, -1]].T
    ratio = large.mean() / small.mean()
    exact = sizes * (1 - np.asarray(participation(sizes, np.log(length))))
    limit = np.minimum(sizes, np.sqrt(2 * np.log(length)))
    claim.equal(
        "mean-saturates",
        f"The mean output is not linear in the query (measured: the mean response at $τ = {sizes[1]:g}$, divided by "
        f"the mean response at $τ = {sizes[0]:g}$, for $L = {length}$; expected: the exact ratio).",
        ratio,
        exact[1] / exact[0],
        rejects=("the mean output is the smaller of $τ$ and $√(2 ln L)$, as for long prompts", limit[1] / limit[0]),
        # delta method for a ratio of two means over the same prompts
        std_error=standard_error(large - ratio * small) / small.mean(),
    )
    claim.at_least(
        "follows",
        f"At $τ = {FOLLOWS:g}·√(2 ln L)$ the mean output is at most 5 % below the line (measured: the least slope "
        f"over lengths from $10^{{{min(DECADES)}}}$ to $10^{{{max(DECADES)}}}$).",
        crossover.least_slope,
        max(SLOPES),
        because="5 % below the slope 1 of the infinite prompt",
        rejects=("participation is $e^{τ²}/L$, its form for long prompts", crossover.asymptotic),
        comparisons=len(DECADES),
    )
    for crossing in crossover.crossings:
        slope = crossing.slope
        claim.equal(
            f"slope-{slope:.2f}-{crossing.length}".replace(".", ""),
            f"Prompts of ${power_of_ten(crossing.length)}$ tokens have a mean output of slope {slope:g} at the query "
            "size $τ = a√(2 ln L)$ (measured: $a$, from the participation; expected: $a$, from the derivative of "
            "$𝔼 ln Σe^{τg}$ in $τ$).",
            crossing.ratio,
            crossing.by_log_sum,
            within=1e-6,
            because="more than ten times the error of the bisection, which is larger than that of both integrals",
            rejects=("a sharp change: the slope is min(1, $√(2 ln L)/τ$), its limit", 1 / slope),
        )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves and simulated points."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    for (length, curve), colour, marker in coloured(table.groupby("length")):
        axes.plot(curve["tau"], curve["exact"], color=colour, linewidth=1.5)
        error_bars(axes, curve["tau"], curve["slope"], curve["slope_std_error"], color=colour, marker=marker)
        end, name = curve.iloc[-1], f"$L={power_of_ten(length) if length > 10 else length}$"
        label(axes, end["tau"], end["exact"], name, colour, xytext=(9, 0))
    axes.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
    label(axes, table["tau"].max(), 1, "infinite prompt (Lemma 2.1)", ink(), xytext=(0, 5), ha="right", va="bottom")
    axes.set(xlim=(0, 1.02 * table["tau"].max()), xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$")
    axes.set(ylim=(0, 1.12), ylabel="mean output over that of the infinite prompt")
    legend_with(axes, {"exact, $1-P$": legend_line("-", 1.5), "simulated": legend_point()}, loc="lower left")
    return figure
