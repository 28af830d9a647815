"""Pictures of `needle_in_a_long_prompt`: where the needle appears, and what the search costs."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.5, 4.5)
MARKERS = {"softmax": "o", "sigmoid": "s", "linear": "^"}


def needle_threshold(result: Result) -> Figure:
    r"""One scale for finding a needle and for freezing without one.

    Left: the Bayes risk, that of the best softmax head, against the strength of the hint in units of $2\ln L$, for
    prompts of $L$ tokens. Right: the participation $\mathbb{E}\,\Sigma p^2$ of softmax weights of the same scale
    $\tau=\sqrt\nu$ on a prompt *without* a needle, from the chapter on exact finite prompts. Dashed, left: the
    threshold $\nu = 2\ln L$. Dashed, right: what the random-energy model gives for $L=\infty$, zero up to the
    threshold and $1-\sqrt{2\ln L/\nu}$ beyond it. Both dashed lines are heuristic, all curves are exact.

    Alt: Two panels. Left, the risk falls from one to zero around a vertical dashed line, more steeply for longer
    prompts. Right, the participation rises from almost nothing to several tenths, and closes in from above on a dashed
    curve that has a corner at the same place.
    """
    frame = result.tables["needle_threshold"].frame
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, sharex=True)
    decades = sorted(frame["decade"].unique().tolist())
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        curve = frame[frame["decade"] == decade]
        left.plot(curve["ratio"], curve["risk"], color=colour, linewidth=2, label=f"$L=10^{{{decade}}}$")
        right.plot(curve["ratio"], curve["participation"], color=colour, linewidth=2)
    left.axvline(1, color=ink(), linestyle="--", linewidth=1.5)
    ratio = np.linspace(0, frame["ratio"].max(), 200)
    frozen = 1 - 1 / np.sqrt(np.maximum(ratio, 1))
    right.plot(ratio, frozen, color=ink(), linestyle="--", linewidth=1.5, label="random-energy model")
    left.set(xlim=(0, frame["ratio"].max()), ylim=(0, 1.03), ylabel="Bayes risk, with a needle", title="needle")
    right.set(ylim=(0, 1.03), ylabel=r"participation $\mathbb{E}\,\Sigma p^2$, hay alone", title="hay")
    for panel in (left, right):
        panel.set_xlabel(r"strength of the hint, $\nu/(2\ln L)$")
    left.legend(loc="upper right")
    right.legend(loc="upper left")
    return figure


def needle_price(result: Result) -> Figure:
    r"""The hint that halves the risk, against the length of the prompt.

    Points: the strength $\nu$ at which the best head of each kind has risk one half; softmax and sigmoid by bisection
    on exact risks, linear in closed form. Dashed: $2\ln L$. Dotted: $L$. Sigmoid weights, the best there are
    element-wise, need $2\ln(L-1)$ exactly; softmax needs a little less, and linear attention a hint of the size of the
    prompt.

    Alt: Log-log chart of hint strength against prompt length. Softmax and sigmoid points lie along a slowly rising
    dashed curve and reach about 55 at a trillion tokens; linear points follow a straight dotted line up to a trillion.
    """
    frame = result.tables["needle_price"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    length = np.geomspace(10.0 ** frame["decade"].min(), 10.0 ** frame["decade"].max(), 100)
    axes.plot(length, 2 * np.log(length), color=ink(), linestyle="--", linewidth=1.5, label=r"$2\,\ln L$")
    axes.plot(length, length, color=ink(), linestyle=":", linewidth=1.5, label="$L$")
    for index, (name, marker) in enumerate(MARKERS.items()):
        curve = frame[frame["activation"] == name]
        axes.plot(
            10.0 ** curve["decade"], curve["snr"], marker, color=f"C{index}", markersize=8, fillstyle="none", label=name
        )
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel=r"hint that halves the risk, $\nu_{1/2}$")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
