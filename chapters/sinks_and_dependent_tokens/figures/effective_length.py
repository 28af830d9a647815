r"""Positively dependent tokens are worth fewer independent ones for small queries, and nearly as many for sharp ones.

A prompt of $L$ dependent tokens fluctuates as $L/\rho$ independent tokens do. Solid: limits for long prompts of an
autoregressive sequence ($r_k=r^k$) and of a moving average with a negative correlation. Bars are two standard errors.
Dashed: the correlations that words and keys of a real network have along a text, up to half a prompt.

Details:
Simulated tokens are two-dimensional with covariance $I$ and $V=I$; the fluctuation is summed over both
coordinates, as are those of the curves. The text is that of the chapter on real heads, cut into stretches of 512
tokens; each place is measured from its mean over stretches. The curve of a text assumes Gaussian tokens with these
correlations.

Alt: Line chart of rho against the size of the query, with a logarithmic vertical axis. Curves of positive correlations
start well above one and fall towards one; that of the moving average starts below one and rises towards one. Simulated
points are near the curves. The dashed curves of a text behave like the first ones.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sinks_and_dependent_tokens.sequences import (
    PROCESSES,
    ShortPrompts,
    SimulatedFluctuation,
    dependence_factor,
    solve_fluctuation,
    solve_independent,
)
from chapters.sinks_and_dependent_tokens.text import lag_sum
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, sequence, ticks_at
from lib.statistics import comparison_quantile, standard_error

TAUS = np.linspace(0.0, 4.0, 65)
# Tokens of the text in the figure, and their names in it.
TEXT = {"words": "words", "keys 0": "keys, layer 0", "keys 3": "keys, layer 3"}

# Name of each curve in the picture, and its position: τ, and the offset of the text in points.
PLACES = {
    "AR(0.8)": ("correlation 0.8", 1.6, (8, 6)),
    "AR(0.5)": ("0.5", 0.25, (-6, -10)),
    "MA(−0.4)": ("correlation −0.4", 0.4, (8, -6)),
    "words": ("words", 0.8, (-28, -12)),
    "keys, layer 0": ("keys, layer 0", 0.2, (6, 8)),
    "keys, layer 3": ("keys, layer 3", 0.5, (8, 6)),
}


def numbers(
    simulated: Sequence[SimulatedFluctuation], short: Sequence[ShortPrompts], text: dict[str, pd.DataFrame]
) -> Numbers:
    """Return ρ of processes and of the text, simulated points, and the claims."""
    curves = [("process", process.name, process.correlations) for process in PROCESSES]
    curves += [("text", name, text[tokens]["correlation"].to_numpy()) for tokens, name in TEXT.items()]
    groups = [
        {"kind": kind, "name": name, "tau": TAUS, "factor": dependence_factor(correlations, TAUS)}
        for kind, name, correlations in curves
    ]
    for one in simulated:
        drawn = (one.along + one.across) / solve_independent([one.tau]).sum()
        point = {"factor": drawn.mean(), "std_error": standard_error(drawn)}
        groups.append({"kind": "simulated", "name": one.process.name, "tau": one.tau} | point)
    columns = {
        "kind": Column(
            "`process`, exact limit; `text`, the same formula with measured correlations; `simulated`", "name"
        ),
        "name": Column("The sequence", "name"),
        "tau": Column("Size of the query, $τ$"),
        "factor": Estimate("ρ(τ), the fluctuation over the limit for independent tokens", std_error="std_error"),
    }
    claim = Claims("sinks", source="derived here")
    drawn = np.array([(one.along, one.across) for one in simulated])
    limits = np.array([solve_fluctuation(one.process.correlations, [one.tau])[0] for one in simulated])
    independent = np.array([solve_independent([one.tau])[0] for one in simulated])
    means, errors = drawn.mean(axis=2), standard_error(drawn, axis=2)
    claim.agree(
        "dependent-fluctuation",
        "The fluctuation of simulated prompts of dependent tokens, along and across the query, and its limit agree",
        (means - limits) / errors,
        box="dependent-fluctuation",
        rejects=("dependent tokens are worth as much as independent ones", (means - independent) / errors),
    )

    def identities(weighed):
        values = [getattr(one, weighed) for one in short]
        pairs = [
            difference
            for one, value in zip(short, values, strict=True)
            for difference in (one.score - one.tau * (1 - value), one.across**2 - value)
        ]
        return [difference.mean() / standard_error(difference) for difference in pairs]

    claim.agree(
        "dependent-identity",
        "In short prompts of dependent tokens the mean score and $τ(1 - P_R)$ agree, as do the mean square across the "
        "query and $P_R$",
        identities("weighed"),
        box="dependent-identity",
        rejects=("the participation $𝔼 Σp²$ of these prompts takes the place of $P_R$", identities("participation")),
    )
    keys, words = (text[kind].iloc[0] for kind in ("keys 3", "words"))
    claim.at_least(
        "text-neighbours",
        "Keys of neighbouring tokens in layer 3 of the network are positively correlated along the text "
        f"($r_1 = {keys['correlation']:.2f}$, in standard errors).",
        keys["correlation"] / keys["std_error"],
        comparison_quantile(1),
        because="99.9 % quantile of one standard normal deviation: independent tokens are that far from 0 by chance",
        source="measured here",
        rejects=("keys are as dependent as the words that they stand for", words["correlation"] / words["std_error"]),
    )
    factor, error = lag_sum(text["keys 3"])
    claim.at_least(
        "text-factor",
        "A plain average of these keys fluctuates more than one of independent keys ($Σ_k r_k$ over measured lags).",
        factor,
        1 + comparison_quantile(1) * error,
        because="1 for independent tokens, and the 99.9 % quantile of the error if the errors of all lags add up",
        source="measured here",
        rejects=("keys are as dependent as the words that they stand for", lag_sum(text["words"])[0]),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve for each sequence, and the simulated points."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.8))
    axes.set_yscale("log")
    for kind, linestyle, colours in (("process", "-", ("C0", "C1", "C2")), ("text", "--", sequence(3))):
        curves = table[table["kind"] == kind].groupby("name", sort=False)
        for (name, curve), colour in zip(curves, colours, strict=True):
            axes.plot(curve["tau"], curve["factor"], color=colour, linestyle=linestyle, linewidth=2)
            text, tau, offset = PLACES[name]
            label(axes, tau, np.interp(tau, curve["tau"], curve["factor"]), text, colour, xytext=offset)
            drawn = table[(table["kind"] == "simulated") & (table["name"] == name)]
            if len(drawn):
                error_bars(axes, drawn["tau"], drawn["factor"], drawn["std_error"], color=colour, marker="o")
    axes.axhline(1, color=ink(), linewidth=1, linestyle=":")
    label(axes, TAUS[-1], 1, "worth fewer independent tokens", ink(), xytext=(-4, 100), ha="right")
    label(axes, TAUS[-1], 1, "worth more independent tokens", ink(), xytext=(-4, -40), ha="right")
    text = "points: simulated prompts\ndashed: words and keys of a text"
    axes.annotate(text, (0.99, 0.03), xycoords="axes fraction", ha="right", fontsize=11)
    ticks_at(axes.yaxis, [0.2, 0.5, 1, 2, 5, 10, 20])
    axes.set(xlim=(0, table["tau"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"dependent tokens per independent one, $\rho$")
    return figure
