r"""At the prompt length drawn, three kernels of negative curvature let an opposite pair beat linear attention.

Mean square error of two heads with keys $\pm\omega$, and the values that are best for them, minus that of the best
linear attention. Curves are exact, one per kernel $f$; markers are the lowest points on the grid of keys. Pairs tend to
debiased gradient descent as keys go to zero. Shaded: errors below that of linear attention.

Alt: Line chart. Five curves start near a dashed horizontal line. Those of $(1+x/2)^2$, softplus and sigmoid fall below
a dotted horizontal line, reach a minimum and rise again. That of $e^x$ stays near the dashed line before it rises,
and that of $1+e^x$ rises at once. The curves are named with the signs of their curvatures.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.which_kernel.kernels import SLOW
from chapters.which_kernel.pair_risks import KeyCurves
from chapters.which_kernel.style import COLOURS, CURVATURES, MARKERS, NAMES
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# Error of an exact mean square error, as documented at `opposite_kernel_values`.
QUADRATURE_ERROR = 2e-9


def numbers(curves: KeyCurves) -> Numbers:
    """Return the errors by kernel and key, and the claims on slow kernels and on 1 + exp."""
    linear, debiased = curves.best.linear, curves.best.debiased
    shared = {"length": curves.length, "key": curves.keys, "linear": linear, "debiased": debiased}
    groups = [{"kernel": kernel, "error": errors, **shared} for kernel, errors in curves.errors.items()]
    columns = {
        "kernel": Column("Kernel $f$: exp, 1 + exp, square is $(1 + x/2)²$, softplus, sigmoid"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "key": Column("Key $ω$ of the pair"),
        "error": Column("Mean square error of the pair with its best value"),
        "linear": Column("Mean square error of the best linear attention"),
        "debiased": Column("Mean square error of debiased gradient descent, the limit of zero keys"),
    }
    claim = Claims("which-kernel", source="measured here")
    claim.at_most(
        "beats-linear",
        f"At $L = {curves.length:,}$ a pair with the kernel $(1 + x/2)²$, softplus or sigmoid has a lower error than "
        "the best linear attention (measured: the largest of the three lowest errors).",
        max(curves.best.errors[kernel] for kernel in SLOW),
        linear,
        because="the error of the best linear attention, in closed form",
        comparisons=len(SLOW),
        rejects=("a pair is at best debiased gradient descent, whatever its kernel", debiased),
        requires=(
            curves.slow_wins,
            "the prompts are too short or the labels too noisy: it is known for "
            "$L (d + 3 - ς) ≥ 0.55 (d + 4)(d + 2 + ς)²$, where $ς$ is the variance of the noise times $d$, and with "
            "more noise linear attention has the lower error",
        ),
    )
    gained = debiased - curves.best.errors["exp"]
    claim.at_least(
        "positive-curvature",
        f"At $L = {curves.length:,}$ the pair with the kernel $1 + exp$, whose curvature is positive, has at no key a "
        "lower error than at zero keys (measured: the smallest difference).",
        curves.errors["1 + exp"].min() - debiased,
        0,
        within=QUADRATURE_ERROR,
        because="keys of zero, less the documented error of the quadrature",
        comparisons=len(curves.keys),
        rejects=("the error falls at small keys for every kernel, as for exp", -gained),
        requires=(
            gained > 2 * QUADRATURE_ERROR,
            f"at this length even the kernel exp gains only {gained:.2g} over zero keys, and the error of the "
            f"quadrature is up to {QUADRATURE_ERROR:g}",
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per kernel with its minimum, and the two linear methods."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.8))
    base = table["linear"].iloc[0]
    gap = table["debiased"].iloc[0] - base
    top, bottom, last = 4 * gap, -0.8 * gap, table["key"].max()
    axes.axhspan(bottom, 0, color="C2", alpha=0.1, linewidth=0)
    label(axes, 0, bottom, "beats linear attention", ink(), xytext=(8, 12))
    sides = {"1 + exp": {"xytext": (-10, 0), "ha": "right"}}
    for kernel, rows in table.groupby("kernel", sort=False):
        excess = rows["error"] - base
        axes.plot(rows["key"], excess, color=COLOURS[kernel], linewidth=2)
        lowest = excess.idxmin()
        if lowest != excess.index[0]:
            look = {"color": COLOURS[kernel], "marker": MARKERS[kernel], "markersize": 7}
            axes.plot(rows.loc[lowest, "key"], excess[lowest], **look)
        end = excess[excess < top].index[-1]
        name = f"{NAMES[kernel]}\ncurvature {CURVATURES[kernel]}"
        label(axes, rows.loc[end, "key"], excess[end], name, COLOURS[kernel], **sides.get(kernel, {"xytext": (10, 0)}))
    axes.axhline(gap, color=ink(), linestyle="--", linewidth=1.3)
    axes.axhline(0, color=ink(), linestyle=":", linewidth=1.5)
    label(axes, last, gap, "debiased gradient\ndescent", ink(), xytext=(10, 0))
    label(axes, last, 0, "best linear attention", ink(), xytext=(10, -6))
    axes.set(xlabel=r"key $\omega$ of the pair", ylabel="error minus that of linear attention")
    axes.set(xlim=(0, last), ylim=(bottom, 1.05 * top))
    axes.set_title(f"prompts of {table['length'].iloc[0]:g} tokens", loc="right")
    return figure
