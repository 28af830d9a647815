r"""The risk of softmax is one half at a signal strength of about $2\ln L$, that of a linear head at one of about $L$.

The lowest excess risk of four kinds of heads; hardmax gives all weight to the token with the largest score. Left: at
the chosen prompt length. Right: at the chosen signal strength, from two tokens on. Dashed: where the risk of the best
element-wise weights is exactly one half and, from three tokens on, that of softmax slightly lower.

Alt: Two panels of four curves. Left, risks fall from one as the signal strength grows: three fall together around a
dashed line, and the linear one stays at one. Right, risks rise with the prompt length: the linear one reaches one half
at a dotted line far to the left, the three others around a dashed line much further to the right.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.laboratory.needle_risks import LARGEST_SNR, RISKS
from chapters.laboratory.ranges import LARGEST_NEEDLE_DECADE
from chapters.laboratory.table_interpolation import between
from chapters.laboratory.trials import Trial
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

NAMES = {"softmax": "softmax (Bayes)", "linear": "linear", "element_wise": "element-wise", "largest_score": "hardmax"}
# The setting of the static picture.
SHOWN = {"snr": 40.0, "decade": 6.0}


def numbers(trial: Trial) -> Numbers:
    """Return the table, and the claim on its interpolation error."""
    columns = {
        "scale": Column("$√ν$, where $ν$ is the signal strength"),
        "top": Column("$√(2 ln(L - 1))$, about the largest score of the other tokens"),
        **{name: Column(f"ln of the excess risk: {NAMES[name]}", absolute=1e-6) for name in RISKS},
    }
    claim = Claims("live", source="measured here")
    claim.at_most(
        "needle-read",
        "The laboratory interpolates four risks in its table with small errors (largest relative error at "
        f"{trial.settings} random settings, uniform in $ν ≤ {LARGEST_SNR:g}$ and in $ln L$ from 2 to "
        f"$10^{{{LARGEST_NEEDLE_DECADE}}}$ tokens).",
        trial.error(*RISKS),
        0,
        within=5e-4,
        because="at most half a unit of the third digit of a reading",
        rejects=("straight lines between the same nodes", trial.error_of_lines(*RISKS)),
        requires=trial.requires(scale=28, top=28),
    )
    return Numbers(Table(trial.grid.frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risks against the signal strength and against the length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.2), sharey=True)
    decades, snrs = np.linspace(np.log10(2.0), LARGEST_NEEDLE_DECADE, 200), np.linspace(0.0, 80.0, 200)
    tops, length = _top(decades), _top(np.asarray(SHOWN["decade"]))
    scale = np.sqrt(SHOWN["snr"])
    left.axvline(length**2, color=ink(), linestyle="--", linewidth=1.5)
    right.axvline(scale**2 / 2 / np.log(10.0), color=ink(), linestyle="--", linewidth=1.5)
    right.axvline(np.log10(SHOWN["snr"]), color=ink(), linestyle=":", linewidth=1.5)
    for axes in (left, right):
        axes.axhline(0.5, color=ink(), linewidth=1)
    for index, name in enumerate(NAMES):
        style = {"color": f"C{index}", "linewidth": 2.2}
        left.plot(snrs, np.exp(between(table, name, scale=np.sqrt(snrs), top=length)), **style)
        risks = np.exp(between(table, name, scale=scale, top=tops))
        right.plot(decades, risks, **style)
        if name in ("softmax", "linear"):
            right.plot(np.interp(0.5, risks, decades), 0.5, "o", color=f"C{index}", markersize=7, zorder=3)
    left.set(xlim=(0, 80), ylim=(0, 1.04), xlabel=r"signal strength, $\nu$", ylabel="excess risk")
    right.set(xlim=(np.log10(2), 12), xlabel="prompt length, $L$")
    right.set_xticks([1, 3, 5, 7, 9, 11], [f"$10^{{{decade}}}$" for decade in (1, 3, 5, 7, 9, 11)])
    left.set_title(f"$L=10^{{{SHOWN['decade']:g}}}$", loc="right")
    right.set_title(rf"$\nu={SHOWN['snr']:g}$", loc="right")
    label(left, 16.5, 0.72, "softmax\n(Bayes)", "C0", ha="right")
    label(left, 34, 0.38, "hardmax", "C3")
    label(left, 43, 0.13, "element-wise", "C2")
    text = rf"linear: 1/2 only at $\nu\approx L=10^{{{SHOWN['decade']:g}}}$"
    label(left, 80, 1.0, text, "C1", ha="right", va="top", xytext=(0, -6))
    label(left, 28, 0.62, r"$\nu=2\,\ln(L-1)$", ink(), xytext=(12, 0))
    label(left, 80, 0.5, "risk 1/2", ink(), ha="right", va="bottom", xytext=(0, 3))
    label(right, 2.4, 0.86, "linear", "C1", xytext=(8, 0))
    label(right, 9.2, 0.36, "softmax", "C0", xytext=(6, 0))
    label(right, np.log10(SHOWN["snr"]), 0.1, r"$L=\nu$", ink())
    label(right, SHOWN["snr"] / 2 / np.log(10.0), 0.75, r"$\nu=2\,\ln(L-1)$", ink(), ha="right", xytext=(-6, 0))
    return figure


def _top(decades):
    """Return √(2 ln(L - 1)), the coordinate of the length in the table."""
    return np.sqrt(2 * np.log(10.0**decades - 1))
