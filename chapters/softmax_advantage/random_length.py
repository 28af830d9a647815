r"""Prompts of random length: $\bar L - w$ or $\bar L + w$ tokens, with equal chances.

Marks: risk of the best single head of each kind, its slope, bias and scale tuned to this law of lengths itself.
Thin lines of the same colour: the mean risk of two heads of the kind, each tuned to one of the lengths and told
which one it meets. Dashed: the mean of the two Bayes risks. Left, element-wise heads see only the mean length, so
their risk stays; right it grows. In both, not knowing the length costs them the distance from mark to line. One
softmax head is Bayes-optimal at all lengths at once and pays nothing.

Alt: Two panels of risk against the half-width of the law of lengths. Left, sigmoid, erf and linear marks are level
and their thin lines fall away below. Right, those marks rise and the lines fall. In both the softmax marks fall
along the dashed Bayes curve.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_advantage.fixed_heads import MEAN_LENGTH, FixedHead
from chapters.softmax_advantage.marks import DISTINCT, HEADS, TITLES, WIDE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import MARKERS, headline, ink, label


def numbers(heads: Mapping[tuple[str, str], FixedHead]) -> Numbers:
    """Risks by width; spiked element-wise heads see the mean only, softmax is Bayes at every length, no other is."""
    frame = _frame(heads)
    return Numbers(_table(frame), _claims(frame))


def _frame(heads: Mapping[tuple[str, str], FixedHead]) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"model": model, "activation": name, **vars(these)}) for (model, name), these in heads.items()
    ]
    return pd.concat(frames, ignore_index=True).rename(columns={"widths": "width"})


def _table(frame: pd.DataFrame) -> Table:
    """By model, activation and width of the law."""
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "width": Column(f"Prompts have {MEAN_LENGTH} - width or {MEAN_LENGTH} + width tokens", "tokens"),
        "risk": Column("Excess risk of the best head for this law of lengths"),
        "told": Column("Mean excess risk of two heads, each the best for one of the lengths"),
        "bayes": Column("Mean of the Bayes risks of the two lengths"),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """Spiked element-wise heads see the mean length only; softmax is Bayes at every length, and others pay."""
    unchanged = frame.groupby(["model", "activation"])["risk"].transform("first")
    risk, bayes = np.asarray(frame["risk"]), np.asarray(frame["bayes"])
    changes = np.abs(risk - np.asarray(unchanged))
    soft, spiked = np.asarray(frame["activation"] == "softmax"), np.asarray(frame["model"] == "spiked")
    fixed = np.asarray(frame.groupby(["model", "activation"])["bayes"].transform("first"))
    price, random = risk - np.asarray(frame["told"]), np.asarray(frame["width"] > 0)
    widest = np.asarray(frame["width"] == frame["width"].max())
    return [
        Claim(
            id="softmax-advantage-mean-length",
            statement=(
                "In the spiked model an element-wise head sees of a random length nothing but its mean: the largest "
                "change, with the width of the law, of the risk of the best one."
            ),
            source="derived here",
            box="one-head-many-lengths",
            measured=float(changes[~soft & spiked].max()),
            expected=0.0,
            tolerance=1e-9,  # what a quadrature may miss
            relation="≤",
            alternative=Alternative("the same in the max model", float(changes[~soft & ~spiked].max())),
        ),
        Claim(
            id="softmax-advantage-any-length",
            statement=(
                "Corollary 4.4: one softmax head is Bayes-optimal at all lengths together: its risk under a random "
                "length is the mean of the Bayes risks; the largest difference."
            ),
            source="[D26, Cor. 4.4]",
            box="one-head-many-lengths",
            measured=float(np.abs(risk - bayes)[soft].max()),
            expected=0.0,
            tolerance=1e-9,
            relation="≤",
            alternative=Alternative(
                "the Bayes risk of the mean length in its place", float(np.abs(risk - fixed)[soft].max())
            ),
        ),
        Claim(
            id="softmax-advantage-length-price",
            statement=(
                "Corollary 4.4: not to know the length costs linear, erf and sigmoid heads in both models, at every "
                "width: the least difference between the best head for the law of lengths and one head for each length."
            ),
            source="[D26, Cor. 4.4]",
            box="one-head-many-lengths",
            measured=float(price[~soft & random].min()),
            expected=DISTINCT,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the same for softmax", float(price[soft & random].min())),
        ),
        Claim(
            id="softmax-advantage-length-hurts",
            statement=(
                "In the max model a wider law of lengths of the same mean makes the best element-wise head worse: the "
                "least increase of the risk of linear, erf and sigmoid heads, from one length to the widest law."
            ),
            source="[D26, Cor. 4.4]",
            box="one-head-many-lengths",
            measured=float((risk - np.asarray(unchanged))[~soft & ~spiked & widest].min()),
            expected=DISTINCT,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative(
                "the same for softmax", float((risk - np.asarray(unchanged))[soft & ~spiked & widest].min())
            ),
        ),
    ]


def draw(table: pd.DataFrame) -> Figure:
    """A panel a model: the risk of each head against the width of the law, on the averaged Bayes risk."""
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        mine = table[table["model"] == model]
        for index, (name, marker) in enumerate(zip(HEADS, MARKERS, strict=False)):
            curve = mine[mine["activation"] == name]
            style = {"color": f"C{index}", "fillstyle": "none" if name == "erf" else "full", "zorder": 3}
            panel.plot(curve["width"], curve["risk"], marker, markersize=8 if name == "erf" else 5, **style)
            if name != "softmax":
                panel.plot(curve["width"], curve["told"], color=f"C{index}", linewidth=1.5)
        panel.plot(curve["width"], curve["bayes"], color=ink(), linestyle="--", linewidth=1.5)
        panel.set(title=title, xlabel="half-width of the law of lengths, $w$", ylim=(0, 1))
        panel.set_xticks(np.arange(0, table["width"].max() + 1, 2))
    ends = mine[mine["width"] == mine["width"].max()].set_index("activation")
    for index, name in enumerate(HEADS):
        up = {"sigmoid": 7, "erf": -9}.get(name, 0)
        label(panels[-1], table["width"].max(), ends["risk"][name], name, f"C{index}", xytext=(9, up))
    label(panels[-1], table["width"].max(), ends["told"]["linear"], "linear, told", "C1", xytext=(9, 0))
    label(panels[-1], table["width"].max(), ends["told"]["erf"], "sigmoid\nand erf, told", "C3", xytext=(9, 0))
    label(panels[-1], table["width"].max(), ends["bayes"]["softmax"], "Bayes", ink(), xytext=(9, -13))
    panels[0].set_ylabel("excess risk")
    headline(figure, "Softmax does not mind a random length; other heads do")
    return figure
