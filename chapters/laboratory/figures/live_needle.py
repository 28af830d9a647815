r"""The risk of softmax is one half at a signal strength of about $2\ln L$, that of a linear head at one of about $L$.

The vertical axes show the lowest excess risk of four kinds of heads: softmax, element-wise weights, linear attention,
and hardmax, which gives all weight to the token with the largest score. Left: against the signal strength $\nu$, at the
chosen prompt length. Right: against the prompt length $L$, at the chosen signal strength; the axis begins at two
tokens, and the risk of linear attention is one half near its left end, at about $L=\nu$. Dashed in both panels:
$\nu=2\ln(L-1)$, where the risk of the best element-wise weights is exactly one half and, from
three tokens on, that of softmax slightly lower.

Alt: Two panels of four curves. Left, risks fall from one as the signal strength grows: three fall together around a
dashed line, and the linear one stays at one. Right, risks rise with the prompt length: the linear one at once, the
three others around a dashed line much further to the right.
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
    )
    return Numbers(Table(trial.grid.frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risks against the signal strength and against the length."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.2), sharey=True)
    decades, snrs = np.linspace(np.log10(2.0), LARGEST_NEEDLE_DECADE, 200), np.linspace(0.0, 80.0, 200)
    tops, length = _top(decades), _top(np.asarray(SHOWN["decade"]))
    scale = np.sqrt(SHOWN["snr"])
    for index, (name, text) in enumerate(NAMES.items()):
        style = {"color": f"C{index}", "linewidth": 2.2, "label": text}
        panels[0].plot(snrs, np.exp(between(table, name, scale=np.sqrt(snrs), top=length)), **style)
        panels[1].plot(decades, np.exp(between(table, name, scale=scale, top=tops)), **style)
    middle = scale**2 / 2 / np.log(10.0)
    panels[0].axvline(length**2, color=ink(), linestyle="--", linewidth=1.5)
    panels[1].axvline(middle, color=ink(), linestyle="--", linewidth=1.5)
    panels[0].set(xlim=(0, 80), ylim=(0, 1.04), xlabel=r"signal strength, $\nu$", ylabel="excess risk")
    panels[1].set(xlim=(np.log10(2), 12), xlabel="prompt length $L$")
    panels[1].set_xticks([1, 3, 5, 7, 9, 11], [f"$10^{{{decade}}}$" for decade in (1, 3, 5, 7, 9, 11)])
    label(panels[1], middle, 0.75, r"$\nu=2\,\ln(L-1)$", ink(), ha="right", xytext=(-6, 0))
    panels[0].set_title(f"$L=10^{{{SHOWN['decade']:g}}}$", loc="right")
    panels[1].set_title(rf"$\nu={SHOWN['snr']:g}$", loc="right")
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.42))
    return figure


def _top(decades):
    """Return √(2 ln(L - 1)), the coordinate of the length in the table."""
    return np.sqrt(2 * np.log(10.0**decades - 1))
