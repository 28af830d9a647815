r"""The flaw in the published code raises every risk and keeps the order of softmax, linear attention and ridge.

The curves are exact least mean squares (without a factor ½); triangles are ridge regression, averaged over prompts.
Left: covariates of prompt and query have the same covariance $C$, as in the theory. Right: as in the published code,
the covariance is $FCF^\top$ in prompts, where $F$ is the Cholesky factor of $C$, and $I$ in queries.

Alt: Two log-log charts side by side of mean square against length, each with softmax highest, linear attention below
and ridge regression lowest. On the right the curves of softmax and of linear attention are higher and fall later.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.published_experiment.optima import MEAN_SQUARE_COLUMNS, Optima, curves_frame
from chapters.published_experiment.protocol import above_noise
from chapters.published_experiment.ridge import Ridge, bayes_frame
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SYMBOLS, plain_ticks
from companion import Claims, Numbers, Table
from companion.figures.style import WIDE, label


def numbers(optima: Optima, bayes: Ridge, *, lengths: list[int]) -> Numbers:
    """Return the curves for both covariances; claim that those of the published code make the task harder."""
    heads = [(activation, length) for law, activation, length in optima if law == "corrected"]
    ratios = [above_noise(optima["as published", *head]) / above_noise(optima["corrected", *head]) for head in heads]
    claim = Claims("published-experiment", source="measured here")
    claim.at_least(
        "flaw",
        "The covariances of the published code make the task harder: at every length, for softmax and for linear "
        "attention, the least mean square, less the label noise, is at least a tenth larger (measured: the "
        "smallest ratio).",
        min(ratios),
        1.1,
        because="a tenth is far above the error of the exact numerics",
        rejects=("the flaw changes nothing", 1),
    )
    return Numbers(Table.of([curves_frame(optima, lengths), bayes_frame(bayes)], MEAN_SQUARE_COLUMNS), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel for each pair of covariances: the two optima and ridge regression, with their names."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharey=True)
    titles = {
        "corrected": "corrected: prompt and query alike",
        "as published": "published code: prompt and query differ",
    }
    names = {"softmax": "softmax", "linear": "linear", "ridge": "ridge (Bayes)"}
    for panel, (law, title) in zip(panels, titles.items(), strict=True):
        part, corrected = table[table["law"] == law], table[table["law"] == "corrected"]
        for name, text in names.items():
            drawn = part[part["predictor"] == name]
            style = SYMBOLS["ridge"] if name == "ridge" else "-"
            panel.plot(drawn["length"], drawn["mean_square"], style, color=COLOURS[name], linewidth=2)
            if panel is panels[1]:
                pale = corrected[corrected["predictor"] == name]
                panel.plot(pale["length"], pale["mean_square"], style, color=COLOURS[name], linewidth=1.5, alpha=0.3)
            # each name where no other curve is near
            if (name == "ridge") == (panel is panels[0]):
                named = drawn.iloc[0 if name == "ridge" else -1]
                label(panel, named["length"], named["mean_square"], text, COLOURS[name], xytext=(8, 0))
        panel.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", title=title)
        plain_ticks(panel)
    panels[0].set_ylabel(MEAN_SQUARE)
    panels[1].text(0.97, 0.97, "pale: corrected", ha="right", va="top", transform=panels[1].transAxes)
    return figure
