r"""Of five kernels, those that grow exponentially retrieve best, and those that grow more slowly regress best.

Each point is one kernel. Regression: in-context, the mean square error of the best opposite pair, minus that of the
best linear attention. Retrieval: the least excess error of one head on single-location regression with spiked tokens,
over that of the best predictor. The pair with $1+e^x$ is at its limit of zero keys.

Alt: Scatter plot with five labelled points. Those of $e^x$ and $1+e^x$ are at the bottom right, at ratio one. Those of
$(1+x/2)^2$, softplus and sigmoid are left of a vertical line at zero, and far above ratio one.
"""

import math

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.which_kernel.kernels import SLOW
from chapters.which_kernel.pair_risks import BestPairs
from chapters.which_kernel.retrieval import Retrieval
from chapters.which_kernel.style import COLOURS, MARKERS, NAMES
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, ticks_at

# "Far" above the best predictor: more than twice its error.
FAR = 2.0
# Largest distance of the end of a search over the key from the lowest error, in units of the best predictor's error.
SEARCH_ERROR = 0.01
# At the threshold ν = 2 ln L of softmax the least error is one half, and no kernel can have twice that. The claim that
# some kernels do is made only if ν is above the threshold by at least this.
ABOVE_THRESHOLD = 4.0


def numbers(pairs: BestPairs, retrieval: Retrieval) -> Numbers:
    """Return the errors of each kernel on both tasks, and the claims on retrieval."""
    groups = [
        {
            "kernel": kernel,
            "regression": pairs.errors[kernel] - pairs.linear,
            "retrieval": retrieval.errors[kernel],
            "ratio": retrieval.errors[kernel] / retrieval.bayes,
        }
        for kernel in pairs.errors
    ]
    columns = {
        "kernel": Column("Kernel $f$: exp, 1 + exp, square is $(1 + x/2)²$, softplus, sigmoid"),
        "regression": Column("Regression: error of the best pair minus that of linear attention", absolute=1e-7),
        "retrieval": Column("Retrieval: least excess error of one head", absolute=1e-5),
        "ratio": Column("The same divided by the excess error of the best predictor", absolute=1e-4),
    }
    table = Table.of(groups, columns)
    claim = Claims("which-kernel", source="measured here")
    at = f"At $L = {retrieval.length:,}$ and signal strength {retrieval.snr:g}, "
    ratios = table.frame.set_index("kernel")["ratio"]
    best = table.frame.loc[table.frame["regression"].idxmin(), "kernel"]
    least = 2 * math.log(retrieval.length) + ABOVE_THRESHOLD
    claim.at_least(
        "slow-retrieval",
        f"{at}$(1 + x/2)²$, softplus and sigmoid have more than twice the retrieval error of the best predictor "
        "(measured: the smallest ratio).",
        ratios[list(SLOW)].min(),
        FAR,
        because="twice the error is what the text calls far",
        comparisons=len(SLOW),
        rejects=(f"the best kernel of regression, {best}, is also the best of retrieval", ratios["exp"]),
        requires=(
            retrieval.snr >= least,
            f"the signal strength is below $2 ln L + {ABOVE_THRESHOLD:g} = {least:.3g}$, so that even the best "
            "predictor often misses the hidden token",
        ),
    )
    claim.equal(
        "raised-retrieval",
        f"{at}the kernel $1 + exp$ has the retrieval error of the best predictor (measured: the ratio).",
        ratios["1 + exp"],
        1,
        within=SEARCH_ERROR,
        because="one per cent, by which the search may end too high",
        rejects=("only the exponential itself retrieves well", ratios["square"]),
        requires=(
            ratios["square"] - 1 > 2 * SEARCH_ERROR,
            "the signal is so weak that even $(1 + x/2)²$ is within two per cent of the best predictor, and the "
            "searches are accurate to one",
        ),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one point per kernel."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    axes.set(yscale="log", xlabel="regression: error minus that of linear attention")
    places = {"exp": {"xytext": (-12, 10), "ha": "right"}, "1 + exp": {"xytext": (8, 12), "ha": "left"}}
    places["sigmoid"] = {"xytext": (-10, 0), "ha": "right"}
    for _, row in table.iterrows():
        kernel = row["kernel"]
        look = {"color": COLOURS[kernel], "marker": MARKERS[kernel], "markersize": 15 if kernel == "exp" else 8}
        axes.plot(row["regression"], row["ratio"], linestyle="", **look)
        where = places.get(kernel, {"xytext": (10, 0)})
        label(axes, row["regression"], row["ratio"], NAMES[kernel], COLOURS[kernel], **where)
    exponential = table["kernel"].isin(("exp", "1 + exp"))
    slow, fast = table[~exponential], table[exponential]
    centre = {"ha": "center", "xytext": (0, 0)}
    label(axes, fast["regression"].mean(), 1.6, "grow exponentially:\nretrieve best", ink(), **centre)
    label(axes, slow["regression"].min(), 2.6, "grow more slowly:\nregress best", ink(), ha="left", xytext=(-20, 0))
    arrow = {"arrowstyle": "->", "linewidth": 1.5, "color": ink()}
    axes.annotate("better", (0.02, 0.02), (0.11, 0.17), xycoords="axes fraction", arrowprops=arrow)
    label(axes, 0, 15, "as good as\nlinear attention", ink())
    label(axes, 0.0008, 1, "best predictor", ink(), va="top", xytext=(0, -5))
    axes.axvline(0, color=ink(), linestyle=":", linewidth=1.3)
    axes.axhline(1, color=ink(), linestyle=":", linewidth=1.3)
    span = table["regression"].max() - table["regression"].min()
    axes.set_xlim(table["regression"].min() - 0.15 * span, table["regression"].max() + 0.25 * span)
    axes.set(ylabel="retrieval: error over the least possible", ylim=(0.75, 1.6 * table["ratio"].max()))
    ticks_at(axes.yaxis, [tick for tick in (1, 2, 5, 10, 20, 50, 100, 1000) if tick < 1.6 * table["ratio"].max()])
    return figure
