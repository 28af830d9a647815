r"""Prompts that grow, token by token.

Above: each thin line is one prompt, its output (one coordinate) after its first $L$ tokens, drawn from the
mixture of {numref}`fig-the-tilt`. Dashed: the output $V\nabla\Lambda(Uz)$ of the law. Band: two predicted
standard deviations, $2\sqrt{\mathrm{fluctuation}/L}$, an expansion for long prompts. Points and bars: mean and
two standard deviations over many independent prompts. Below: the same, as deviations from the limit in
predicted standard deviations. The prompts settle above; below they wander on, at every scale, and the wandering
keeps its width. From a few hundred tokens on the bars fill the band; those of the shortest prompts do not, and their
mean still leans towards the untilted answer.

Alt: Two line charts against prompt length on a logarithmic axis. Above, jagged lines start far apart at one
token and merge into a horizontal dashed line, inside a band that narrows like a funnel. Below, the same lines,
rescaled, keep wandering about a band of constant width around zero, and error bars of many prompts match that
band, but for the shortest prompts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from chapters.measures.growing_prompts import LawAnswer, PrefixAnswers
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, legend_line, sequence
from lib.statistics import comparison_quantile, standard_error


def numbers(theory: LawAnswer, grown: PrefixAnswers, many: PrefixAnswers) -> Numbers:
    """Paths and spreads beside limit and prediction; where the paths end, and how far prompts spread."""
    return Numbers(_table(theory, grown, many), (_path_claim(theory, grown), _fluctuation_claim(theory, many)))


def _table(theory: LawAnswer, grown: PrefixAnswers, many: PrefixAnswers) -> Table:
    """Paths, and the spread between independent prompts, beside limit and predicted standard deviation."""
    frames = [
        pd.DataFrame({"kind": "one prompt", "prompt": index, "length": grown.lengths, "output": path})
        for index, path in enumerate(grown.outputs)
    ]
    outputs, spread = many.outputs, many.outputs.std(axis=0, ddof=1)
    spreads = {
        "kind": "many prompts",
        "length": many.lengths,
        "output": outputs.mean(axis=0),
        "output_se": standard_error(outputs),
        "spread": spread,
        "spread_se": standard_error((outputs - outputs.mean(axis=0)) ** 2) / (2 * spread),
    }
    frame = pd.concat([*frames, pd.DataFrame(spreads)], ignore_index=True)
    frame["limit"], frame["predicted"] = theory.limit, theory.spread(frame["length"])
    frame["standardised"] = (frame["output"] - theory.limit) / frame["predicted"]
    frame["spread_ratio"] = frame["spread"] / frame["predicted"]
    columns = {
        "kind": Column("`one prompt` that grows, or `many prompts` of one length", "name"),
        "prompt": Column("Which of the prompts that grow"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "output": Column("First output; for many prompts its mean", std_error="output_se"),
        "output_se": Column("Standard error of that mean", moves_with="output"),
        "spread": Column("Standard deviation between prompts", std_error="spread_se"),
        "spread_se": Column("Standard error of the spread", moves_with="spread"),
        "limit": Column("Output of the law, V∇Λ(Uz)"),
        "predicted": Column("Predicted standard deviation √(fluctuation/L)"),
        "standardised": Column("Output minus limit, in predicted standard deviations", moves_with="output"),
        "spread_ratio": Column("Spread over predicted standard deviation", moves_with="spread"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _path_claim(theory: LawAnswer, grown: PrefixAnswers) -> Claim:
    """Every path ends where the law says, in predicted standard deviations."""
    outputs, spread = grown.in_the_end, theory.spread(grown.longest)
    right, wrong = (float(np.abs(outputs - centre).max()) / spread for centre in (theory.limit, theory.untilted))
    return Claim(
        id="measures-one-prompt",
        statement=(
            f"Each of {len(outputs)} prompts, grown to {grown.longest} tokens, answers V∇Λ(Uz) up to its fluctuation: "
            "the worst deviation, in predicted standard deviations."
        ),
        source="[BB26]",
        box="prop-one-prompt-converges",
        measured=right,
        expected=0.0,
        tolerance=comparison_quantile(len(outputs)),
        relation="≤",
        alternative=Alternative("the limit were V times the mean of the law, without the tilt", wrong),
    )


def _fluctuation_claim(theory: LawAnswer, many: PrefixAnswers) -> Claim:
    """L · mean square of output minus limit, in units of `fluctuation`, at the longest length."""
    ratios = many.longest * (many.in_the_end - theory.limit) ** 2 / theory.variance
    ratio, error = float(ratios.mean()), float(standard_error(ratios))
    return Claim(
        id="measures-fluctuation",
        statement=(
            f"Over {len(ratios)} prompts of {many.longest} tokens, L times the mean square of output minus limit is "
            "the predicted fluctuation: the ratio of the two is 1."
        ),
        source="derived here",
        box="prop-fluctuation",
        measured=ratio,
        expected=1.0,
        tolerance=comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative(
            "the tilted covariance, over the number of tokens that matter", ratio * theory.variance / theory.counted
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Outputs against the length over their limit; below, in predicted standard deviations."""
    paths, many = (table[table["kind"] == kind] for kind in ("one prompt", "many prompts"))
    band = paths[(paths["prompt"] == 0) & (paths["length"] >= 4)]
    figure, (axes, zoomed) = plt.subplots(2, 1, figsize=(8.0, 5.8), sharex=True, height_ratios=[3, 2])
    shade = {"color": "C0", "alpha": 0.22}
    low, high = (band["limit"] + side * band["predicted"] for side in (-2, 2))
    axes.fill_between(band["length"], low, high, linewidth=0, **shade)
    zoomed.fill_between(band["length"], -2, 2, linewidth=0, **shade)
    prompts = sorted(paths["prompt"].unique())
    for prompt, colour in zip(prompts, sequence(len(prompts)), strict=True):
        path = paths[paths["prompt"] == prompt]
        axes.plot(path["length"], path["output"], color=colour, linewidth=1.3)
        zoomed.plot(path["length"], path["standardised"], color=colour, linewidth=1.3)
    axes.axhline(table["limit"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
    zoomed.axhline(0, color=ink(), linestyle="--", linewidth=1.5)
    look = {"color": "C1", "marker": "o", "linestyle": "", "linewidth": 2, "capsize": 4, "zorder": 5}
    bars = axes.errorbar(many["length"], many["output"], 2 * many["spread"], **look)
    zoomed.errorbar(many["length"], many["standardised"], 2 * many["spread_ratio"], **look)
    bottom, top = paths["output"].min(), max(paths["output"].max(), (many["output"] + 2 * many["spread"]).max())
    axes.set(xscale="log", xlim=(1, paths["length"].max()), ylim=(bottom - 0.2, top + 0.2), ylabel="output")
    zoomed.set(xlabel="prompt length $L$", ylabel="deviation, in sd", ylim=(-4, 4))
    marks = {
        "one prompt": Line2D([], [], color=sequence(3)[1], linewidth=1.5),
        r"$L=\infty$: $V\nabla\Lambda(Uz)$": legend_line("--", 1.5),
        "± 2 sd, predicted": Patch(**shade),
        "± 2 sd, many prompts": bars,
    }
    axes.legend(marks.values(), marks.keys(), loc="lower right", ncols=2)
    headline(figure, "One prompt settles to its limit at the predicted pace")
    return figure
