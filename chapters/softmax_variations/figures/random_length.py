r"""An unknown prompt length raises the risk of linear and element-wise heads, and not that of softmax.

Prompts have $\bar L - w$ or $\bar L + w$ tokens with equal chances. The vertical axis shows the risk of one head, with
the slope, bias and scale that are best for both lengths together, minus the mean risk of two heads of the same kind,
one per length. One softmax head is optimal at all lengths and loses nothing. Sigmoid and erf heads nearly coincide. In
the spiked model (left) the risk of one element-wise head depends on the mean length only and stays the same, while
heads for one length get better. In the max model (right) the risk of one head rises too.

Alt: Two panels of a loss against the half-width of the distribution of lengths. In both the softmax marks stay at
zero, and the curves of linear, sigmoid and erf heads rise from zero to between one tenth and a quarter.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_variations.fixed_heads import MEAN_LENGTH, FixedHead
from chapters.softmax_variations.style import BECAUSE_DISTINCT, DISTINCT, TITLES
from companion import Claims, Column, Numbers, Table
from companion.figures.style import MARKERS, WIDE, label

# The order of colours and markers.
HEADS = ("softmax", "linear", "sigmoid", "erf")


def numbers(heads: Mapping[tuple[str, str], FixedHead]) -> Numbers:
    """Return risks by width; claim which heads an unknown length affects, and which not."""
    groups = [
        {
            "model": model,
            "activation": name,
            "width": head.widths,
            "risk": head.risk,
            "per_length": head.per_length,
            "bayes": head.bayes,
            "price": head.risk - head.per_length,
        }
        for (model, name), head in heads.items()
    ]
    columns = {
        "model": Column("Model of the relevant token: spiked or max", "name"),
        "activation": Column("Activation of the head", "name"),
        "width": Column(f"Prompts have {MEAN_LENGTH} - width or {MEAN_LENGTH} + width tokens", "tokens"),
        "risk": Column("Excess risk of the best head for both lengths together"),
        "per_length": Column("Mean excess risk of two heads, each the best for one of the lengths"),
        "bayes": Column("Mean of the Bayes risks of the two lengths"),
        "price": Column("Risk of one head for both lengths minus that of one head per length", absolute=1e-9),
    }
    table = Table.of(groups, columns)
    return Numbers(table, _claims(table.frame))


def _claims(frame: pd.DataFrame) -> Claims:
    claim = Claims("softmax-advantage", source="[D26, Cor. 4.4]", box="one-head-many-lengths")
    # the rows of prompts of one length
    first = frame.groupby(["model", "activation"])[["risk", "bayes"]].transform("first")
    increase = frame["risk"] - first["risk"]
    softmax, spiked = frame["activation"] == "softmax", frame["model"] == "spiked"
    random, widest = frame["width"] > 0, frame["width"] == frame["width"].max()
    claim.at_most(
        "mean-length",
        "In the spiked model the risk of the best element-wise head depends on a random length only through its mean "
        "(largest change with the width of the distribution).",
        increase[~softmax & spiked].abs().max(),
        0.0,
        within=1e-9,
        because="error of a quadrature",
        source="derived here",
        rejects=("the same in the max model", increase[~softmax & ~spiked].abs().max()),
    )
    claim.at_most(
        "any-length",
        "Corollary 4.4: one softmax head is optimal at all lengths together, because its risk under a random length is "
        "the mean of the Bayes risks (largest difference).",
        (frame["risk"] - frame["bayes"])[softmax].abs().max(),
        0.0,
        within=1e-9,
        because="error of a quadrature",
        rejects=("the Bayes risk of the mean length instead", (frame["risk"] - first["bayes"])[softmax].abs().max()),
    )
    claim.at_least(
        "length-price",
        "Corollary 4.4: an unknown length raises the risk of linear, erf and sigmoid heads in both models at every "
        "width (smallest difference between one head for both lengths and one head per length).",
        frame["price"][~softmax & random].min(),
        DISTINCT,
        because=BECAUSE_DISTINCT,
        rejects=("the same for softmax", frame["price"][softmax & random].min()),
    )
    claim.at_least(
        "length-hurts",
        "In the max model the best element-wise head gets worse if the lengths spread around the same mean (smallest "
        "increase for linear, erf and sigmoid heads, from one length to the widest distribution).",
        increase[~softmax & ~spiked & widest].min(),
        DISTINCT,
        because=BECAUSE_DISTINCT,
        rejects=("the same for softmax", increase[softmax & ~spiked & widest].min()),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per model: the loss by an unknown length, one curve per head."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.6), sharey=True)
    colours = {name: f"C{index}" for index, name in enumerate(HEADS)}
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for name, marker in zip(HEADS, MARKERS, strict=False):
            curve = rows[rows["activation"] == name]
            look = {"marker": marker, "linestyle": "-", "markersize": 5, "clip_on": False}
            if name == "erf":  # its curve is on top of that of the sigmoid
                look |= {"fillstyle": "none", "markersize": 9, "linestyle": ""}
            panel.plot(curve["width"], curve["price"], color=colours[name], linewidth=2, zorder=3, **look)
        panel.set(title=title, xlabel="half-width of the lengths, $w$", ylim=(0, 1.05 * table["price"].max()))
        panel.set_xticks(np.arange(0, table["width"].max() + 1, 2))
        ends = rows[rows["width"] == rows["width"].max()].set_index("activation")["price"]
        for name in ("softmax", "linear", "sigmoid"):
            text = "sigmoid, erf" if name == "sigmoid" else name
            label(panel, table["width"].max(), ends[name], text, colours[name], xytext=(10, 0))
    panels[0].set_ylabel("loss by an unknown length")
    return figure
