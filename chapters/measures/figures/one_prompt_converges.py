r"""The output of a single growing prompt converges to the output of its distribution, at the predicted rate.

Above, each thin line is one prompt: the first coordinate of its output after its first $L$ tokens, which are drawn from
the mixture of {numref}`fig-the-tilt`. The dashed line is the limit $V\nabla\Lambda(Uz)$; the band is two predicted
standard deviations, $2\sqrt{\mathrm{fluctuation}/L}$; the fluctuation is the variance of $\sqrt L$ times the deviation
of long prompts. Points and bars are the mean and two standard deviations over many independent prompts. Below are the
same data as deviations from the limit, in predicted standard deviations. From a few hundred tokens on, the bars fill
the band. Shorter prompts spread otherwise, and their mean is still shifted towards the output without a tilt.

Alt: Two line charts against prompt length on a logarithmic axis. Above, jagged lines start far apart at one
token and merge into a horizontal dashed line, inside a band that narrows like a funnel. Below, the same lines,
rescaled, keep moving in a band of constant width around zero, and error bars of many prompts match that
band, except for the shortest prompts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from chapters.measures.growing_prompts import InfiniteOutput, PrefixOutputs
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, ink, legend_line, sequence
from lib.statistics import comparison_quantile, standard_error

# Largest correction of order 1/L, relative to the limit, at which the limit is claimed.
LARGEST_CORRECTION = 0.1


def numbers(theory: InfiniteOutput, grown: PrefixOutputs, many: PrefixOutputs) -> Numbers:
    """Return the outputs with their limit and predicted spread, and the claims on both."""
    outputs, spread = many.outputs, many.outputs.std(axis=0, ddof=1)
    spread_error = standard_error((outputs - outputs.mean(axis=0)) ** 2) / (2 * spread)
    frames = [
        pd.DataFrame({"series": f"prompt {number}", "length": grown.lengths, "output": path})
        for number, path in enumerate(grown.outputs)
    ]
    moments = {"mean": (outputs.mean(axis=0), standard_error(outputs)), "spread": (spread, spread_error)}
    frames += [
        pd.DataFrame({"series": name, "length": many.lengths, "output": moment, "std_error": std_error})
        for name, (moment, std_error) in moments.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame["limit"], frame["predicted"] = theory.limit, theory.spread(frame["length"])
    centre = np.where(frame["series"] == "spread", 0.0, theory.limit)
    frame["standardised"] = (frame["output"] - centre) / frame["predicted"]
    columns = {
        "series": Column(
            "`prompt 0`, `prompt 1`, …: one growing prompt each; `mean` and `spread`: mean and standard deviation of "
            "many prompts of the same length",
            "name",
        ),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "output": Estimate("First output, or its mean or standard deviation", std_error="std_error"),
        "limit": Column("Output of the infinite prompt, $V∇Λ(Uz)$"),
        "predicted": Column("Predicted standard deviation √(fluctuation$/L$)"),
        "standardised": Column("Output minus limit, or spread, in predicted standard deviations", moves_with="output"),
    }
    return Numbers(Table.of([frame], columns), _claims(theory, grown, many))


def _claims(theory: InfiniteOutput, grown: PrefixOutputs, many: PrefixOutputs) -> Claims:
    claim = Claims("measures", source="[BB26]")
    outputs, spread = grown.at_longest, theory.spread(grown.longest)
    claim.at_most(
        "one-prompt",
        f"The output of each of {len(outputs)} prompts, grown to {grown.longest:,} tokens, is $V∇Λ(Uz)$ up to "
        "its predicted fluctuation (measured: the largest deviation in predicted standard deviations).",
        np.abs(outputs - theory.limit).max() / spread,
        0,
        within=comparison_quantile(len(outputs)),
        because=f"99.9 % quantile of the largest of {len(outputs)} standard normal deviations",
        rejects=(
            "the limit is $V$ times the mean of the distribution without the tilt",
            np.abs(outputs - theory.untilted).max() / spread,
        ),
        comparisons=len(outputs),
        box="prop-one-prompt-converges",
    )
    # The ratio is 1 + c/L + O(1/L²). From 1/L corrections of a tenth on, the next order may be as large, so that the
    # limit is not claimed there. Below, twice the first correction bounds both orders.
    ratios = many.longest * (many.at_longest - theory.limit) ** 2 / theory.variance
    std_error, correction = standard_error(ratios), abs(theory.correction) / many.longest
    claim.equal(
        "fluctuation",
        f"Over {len(ratios):,} prompts of {many.longest:,} tokens, $L$ times the mean squared error of the "
        "output is the predicted fluctuation (measured: the ratio of the two).",
        ratios.mean(),
        1,
        within=comparison_quantile(1) * std_error + 2 * correction,
        because="99.9 % quantile of a normal deviation, times the standard error, and twice the correction of order "
        "$1/L$",
        rejects=(
            "the variance is the tilted covariance divided by the effective number of tokens",
            ratios.mean() * theory.variance / theory.counted,
        ),
        std_error=std_error,
        requires=(
            correction <= LARGEST_CORRECTION,
            f"prompts of {many.longest:,} tokens are too short for the limit: its correction of order $1/L$ is "
            f"{correction:.0%}, more than {LARGEST_CORRECTION:.0%}",
        ),
        source="derived here",
        box="prop-fluctuation",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw outputs against the length above; below, deviations in predicted standard deviations."""
    mean, spread = (table[table["series"] == series].reset_index(drop=True) for series in ("mean", "spread"))
    paths = table[table["series"].str.startswith("prompt")]
    band = paths[(paths["series"] == "prompt 0") & (paths["length"] >= 4)]
    figure, (axes, zoomed) = plt.subplots(2, 1, figsize=(WIDE, 5.8), sharex=True, height_ratios=[3, 2])
    shade = {"color": "C0", "alpha": 0.22}
    low, high = (band["limit"] + side * band["predicted"] for side in (-2, 2))
    axes.fill_between(band["length"], low, high, linewidth=0, **shade)
    zoomed.fill_between(band["length"], -2, 2, linewidth=0, **shade)
    for (_, path), colour, _ in coloured(paths.groupby("series", sort=False)):
        axes.plot(path["length"], path["output"], color=colour, linewidth=1.3)
        zoomed.plot(path["length"], path["standardised"], color=colour, linewidth=1.3)
    axes.axhline(table["limit"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
    zoomed.axhline(0, color=ink(), linestyle="--", linewidth=1.5)
    look = {"color": "C1", "marker": "o", "linestyle": "", "linewidth": 2, "capsize": 4, "zorder": 5}
    bars = axes.errorbar(mean["length"], mean["output"], 2 * spread["output"], **look)
    zoomed.errorbar(mean["length"], mean["standardised"], 2 * spread["standardised"], **look)
    bottom, top = paths["output"].min(), max(paths["output"].max(), (mean["output"] + 2 * spread["output"]).max())
    axes.set(xscale="log", xlim=(1, paths["length"].max()), ylim=(bottom - 0.2, top + 0.2), ylabel="output")
    zoomed.set(xlabel="prompt length $L$", ylabel="deviation, in sd", ylim=(-4, 4))
    legend = {
        "one prompt": Line2D([], [], color=sequence(3)[1], linewidth=1.5),
        r"$L=\infty$: $V\nabla\Lambda(Uz)$": legend_line("--", 1.5),
        "± 2 sd, predicted": Patch(**shade),
        "± 2 sd, many prompts": bars,
    }
    axes.legend(legend.values(), legend.keys(), loc="lower right", ncols=2)
    return figure
