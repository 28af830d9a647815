r"""Two heads denoise an infinite prompt of this mixture exactly; one head only if noise and tokens vary equally.

Excess of the mean square error over the Bayes risk, divided by the Bayes risk. The two components have the means
$(3,0)$ and $(0,3)$ and standard deviation 1. The prompt is infinite. Points: the best single softmax head, the least
end of several searches. Two heads in closed form reach the Bayes risk up to rounding, as does the single head at the
dashed line.

Alt: Line chart on logarithmic axes with the standard deviation of the noise. Linear attention has the largest excess,
rising with the noise; an intercept lowers it, the more the larger the noise. The points of the best single softmax
head are below both lines, and drop out of the picture at a noise of one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.mixtures.best_denoisers import NoiseLevel
from chapters.mixtures.style import PUBLISHED_NOISE_STD, TOKEN_STD
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# The square of a relative rounding error of 1e-11, far above that of a sum of a few terms.
ROUNDING = 1e-22
# Part of the excess of linear attention that an intercept must remove to be called nine tenths.
NINE_TENTHS = 0.9
# Excess below the lower edge of the picture.
FLOOR = 1e-4


def numbers(levels: list[NoiseLevel], intercepts: dict[str, float]) -> Numbers:
    """Return the excess of each class of denoisers at each noise level, and the claims."""
    columns = {
        "noise_std": Column("Standard deviation $ξ$ of the noise in each coordinate"),
        "bayes_risk": Column("Bayes risk, the least mean square error of denoising"),
        "two_heads": Column("Excess over the Bayes risk of two softmax heads, relative", absolute=ROUNDING),
        # a finer grid changes the seventh digit at the least noise
        "one_head": Column("Excess of the best single softmax head, relative", absolute=1e-9),
        "affine": Column("Excess of linear attention with an intercept, relative"),
        "linear": Column("Excess of linear attention, relative"),
    }
    frame = pd.DataFrame(levels)
    for name in ("two_heads", "one_head", "affine", "linear"):
        frame[name] /= frame["bayes_risk"]
    equal = np.isclose(frame["noise_std"], TOKEN_STD)
    claim = Claims("mixture-denoising", source="[GBB26, Thm 4.1]", box="gbb26-thm-4-1")
    claim.at_most(
        "two-heads",
        f"On an infinite prompt two softmax heads have the Bayes risk of denoising at {len(frame)} noise levels "
        "(largest excess, relative).",
        frame["two_heads"].max(),
        ROUNDING,
        because="the square of a relative rounding error of 10⁻¹¹",
        rejects=("one softmax head is enough", frame["one_head"].max()),
    )
    claim.at_least(
        "one-head",
        "The best single head found has more than the Bayes risk at each noise level at which noise and tokens have "
        "different variances (least excess, relative).",
        frame.loc[~equal, "one_head"].min(),
        ROUNDING,
        because="the square of a relative rounding error of 10⁻¹¹",
        rejects=("one head is enough, as it is at equal variances", frame.loc[equal, "one_head"].max()),
    )
    claim.at_least(
        "intercept",
        f"At the published setting, noise of standard deviation {PUBLISHED_NOISE_STD:g}, an intercept removes nine "
        "tenths of the excess of linear attention over the Bayes risk (the part it removes).",
        intercepts["published"],
        NINE_TENTHS,
        because="nine tenths, as stated",
        source="measured here",
        box=None,
        rejects=("the means are opposite, where an intercept changes nothing", intercepts["opposite"]),
    )
    return Numbers(Table(frame[list(columns)], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the relative excess of each class of denoisers against the noise."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    looks = {
        "linear": ("linear attention", "-", "C1", "s"),
        "affine": ("linear attention\nwith an intercept", "-", "C2", "^"),
        "one_head": ("best single softmax head", "", "C0", "o"),
    }
    for name, (text, line, colour, marker) in looks.items():
        shown = table[table[name] > FLOOR]
        axes.plot(shown["noise_std"], shown[name], linestyle=line, color=colour, marker=marker)
        low = shown.iloc[len(shown) // 2 if name == "linear" else 1]
        label(axes, low["noise_std"], low[name], text, colour, va="top", xytext=(4, -10))
    axes.axvline(TOKEN_STD, color=ink(), linestyle="--", linewidth=1)
    label(axes, TOKEN_STD, 1.5e-3, "one head is exact", ink(), xytext=(6, 0))
    lowest = table["noise_std"].iloc[0]
    axes.annotate("", (lowest, FLOOR), (lowest, 2.5 * FLOOR), arrowprops={"arrowstyle": "->", "color": "C0"})
    label(axes, lowest, 1.8 * FLOOR, "two softmax heads: exact,\nbelow the edge at every $\\xi$", "C0", xytext=(8, 0))
    axes.set(xscale="log", yscale="log", ylim=(FLOOR, None), ylabel="excess / Bayes risk")
    axes.set_xlabel(r"standard deviation of the noise, $\xi$ (tokens: 1)")
    ticks = sorted(set(table["noise_std"]))
    axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    axes.minorticks_off()
    return figure
