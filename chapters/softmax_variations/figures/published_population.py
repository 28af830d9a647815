r"""In the paper's settings the best softmax head attains the Bayes risk; with a signal the other three heads do not.

The settings are two tokens in the spiked model, two in the max model, and one, two or three tokens with equal chances
in the max model. Each head has its best slope and scale; erf has its best bias, softplus has none. The Bayes risk is
from another quadrature. The slope of every head, softmax included, is found by a search.

Alt: Three panels of risk, logarithmic, against signal strength from 0 to 12. In each the softmax curve is lowest and
passes through the dots of the Bayes risk; softplus is above it, then erf, then linear. In the second and third panel
erf and linear level off far above; in the third they start above the others.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_variations.other_signals import OtherSignals
from chapters.softmax_variations.published_settings import SETTINGS, Curves
from chapters.softmax_variations.style import BECAUSE_DISTINCT, DISTINCT, STRONGEST
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# The claim about the other heads is made from this signal strength on.
WEAK = 0.5
# The colour of each head, in the order of drawing.
COLOURS = {"softmax": "C0", "softplus": "C3", "erf": "C2", "linear": "C1"}


def numbers(curves: Mapping[str, Curves], signals: OtherSignals) -> Numbers:
    """Return risks by setting and ν; claim that softmax attains the Bayes risk, also for other signals."""
    groups = [
        {"setting": name, "snr": setting.snrs, "bayes": setting.bayes, **setting.by_head}
        for name, setting in curves.items()
    ]
    columns = {
        "setting": Column("Model and number of tokens in a prompt", "name"),
        "snr": Column("Signal strength $ν$"),
        "bayes": Column("Bayes risk, by Laplace's identity; its mean where the length is random"),
        "softmax": Column("Excess risk of the best softmax head, found by a search over slopes"),
        "softplus": Column("Excess risk of the best head with normalised softplus weights, without bias"),
        "erf": Column("Excess risk of the best head with weights 1 + erf, with bias"),
        "linear": Column("Excess risk of the best head with linear weights"),
    }
    table = Table.of(groups, columns)
    return Numbers(table, _claims(table.frame, signals))


def _claims(frame: pd.DataFrame, signals: OtherSignals) -> Claims:
    claim = Claims("softmax-advantage", source="[D26, Prop. 4.2]")
    relative = frame[["softmax", "softplus"]].div(frame["bayes"], axis=0).sub(1.0).abs().max()
    excess = frame[list(COLOURS)].sub(frame["bayes"], axis=0)
    least = excess[frame["snr"] >= WEAK].min()
    claim.at_most(
        "published-softmax",
        "In the three settings of the published figure, the best softmax head found by a search over slopes attains "
        "the Bayes risk at every signal strength (largest relative excess).",
        relative["softmax"],
        0.0,
        within=1e-6,
        because="the risk is quadratic near its minimum, and slopes are accurate to a few thousandths",
        box="d26-bayes",
        rejects=("softplus, which is normalised too", relative["softplus"]),
    )
    claim.at_least(
        "published-others",
        "In the three settings of the published figure, softplus without bias, erf and linear heads do not attain the "
        f"Bayes risk at signal strengths from {WEAK} to {STRONGEST:g} (smallest excess).",
        least.drop("softmax").min(),
        DISTINCT,
        because=BECAUSE_DISTINCT,
        source="[D26, abstract]",
        box="risk-is-an-angle",
        rejects=("the same for softmax", least["softmax"]),
    )
    # without a signal all weights of an element-wise head are equal
    start = excess[frame["snr"] == 0].iloc[-1]
    lengths = np.asarray(list(SETTINGS.values())[-1].lengths, float)
    claim.equal(
        "published-length",
        "Without a signal, the risk of weights that are not normalised exceeds the Bayes risk by "
        r"$\mathbb{E}[1/L] - 1/\mathbb{E}[L]$, because they can only be $1/\mathbb{E}[L]$ (erf head, prompts of one, "
        "two or three tokens).",
        start["erf"],
        np.mean(1 / lengths) - 1 / np.mean(lengths),
        within=1e-6,
        because="the accuracy of quadratures and searches",
        source="[D26, Cor. 4.4]",
        box="one-head-many-lengths",
        rejects=("softplus, which is normalised", start["softplus"]),
    )
    claim.at_most(
        "other-hints",
        "The best softmax head attains the Bayes risk for spiked scores that have a common part, because this signal, "
        "too, distinguishes tokens by differences of scores (largest relative excess, ten cases).",
        np.max(np.abs(signals.shared / signals.shared_bayes - 1.0)),
        0.0,
        within=1e-6,
        because="the documented error of the search for the slope, with a reserve",
        box="other-hints",
        rejects=(
            "the same where the relevant token is the one whose score is near zero",
            np.min(signals.narrow / signals.narrow_bayes - 1.0),
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per setting, with one curve per head and dots for the Bayes risk."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDE, 4.2), sharey=True)
    for panel, (setting, curves) in zip(panels, table.groupby("setting", sort=False), strict=True):
        for name, colour in COLOURS.items():
            panel.plot(curves["snr"], curves[name], color=colour, linewidth=2)
        panel.plot(curves["snr"], curves["bayes"], "o", color=ink(), markersize=3.5, zorder=3)
        panel.set(yscale="log", ylim=(7e-3, 0.8), xlim=(0, 1.02 * STRONGEST), title=setting)
        panel.set_xlabel(r"signal strength $\nu$")
        # labels at the strongest signal, where the curves are apart; erf and linear may still coincide
        last = curves[curves["snr"] <= STRONGEST].iloc[-1]
        apart = last["linear"] > 1.1 * last["erf"]
        heads = ["softmax", "softplus", "linear", *(["erf"] if apart else [])]
        offsets = {"softmax": (-24, -4) if apart else (0, -14), "softplus": (0, -14 if apart else 18)}
        for head in heads:
            name = "erf, linear" if head == "linear" and not apart else head
            label(panel, last["snr"], last[head], name, COLOURS[head], xytext=offsets.get(head, (0, 14)), ha="right")
    panels[0].set_ylabel("excess risk")
    panels[0].annotate("dots: Bayes risk", (0.03, 0.03), xycoords="axes fraction")
    return figure
