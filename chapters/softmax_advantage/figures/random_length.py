r"""What not knowing the length costs: prompts of $\bar L - w$ or $\bar L + w$ tokens, with equal chances.

Up: the risk of one head, its slope, bias and scale the best for both lengths together, less the mean risk of two heads
of the same kind, one for each length. One softmax head is Bayes-optimal at all lengths at once and loses nothing.
Sigmoid and erf heads nearly coincide. Left, element-wise heads see only the mean length, so that the risk of one head
stays the same, while heads for one length get better; right, the risk of one head rises too.

Alt: Two panels of a price against the half-width of the distribution of lengths. In both the softmax marks stay on
zero, and the curves of linear, sigmoid and erf heads rise from zero to between one tenth and a quarter.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_advantage.fixed_heads import MEAN_LENGTH, FixedHead
from chapters.softmax_advantage.style import DISTINCT, HEADS, TITLES, WIDE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import MARKERS, headline, label


def numbers(heads: Mapping[tuple[str, str], FixedHead]) -> Numbers:
    """Risks by width; spiked element-wise heads see the mean only, softmax is Bayes at every length, no other is."""
    frame = _frame(heads)
    return Numbers(_table(frame), _claims(frame))


def _frame(heads: Mapping[tuple[str, str], FixedHead]) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"model": model, "activation": name, **vars(these)}) for (model, name), these in heads.items()
    ]
    frame = pd.concat(frames, ignore_index=True).rename(columns={"widths": "width"})
    return frame.assign(price=frame["risk"] - frame["per_length"])


def _table(frame: pd.DataFrame) -> Table:
    """By model, activation and width of the law."""
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "width": Column(f"Prompts have {MEAN_LENGTH} - width or {MEAN_LENGTH} + width tokens", "tokens"),
        "risk": Column("Excess risk of the best head for this law of lengths"),
        "per_length": Column("Mean excess risk of two heads, one for each length and the best for it"),
        "bayes": Column("Mean of the Bayes risks of the two lengths"),
        "price": Column("Risk of one head for both lengths less that of one head for each", absolute=1e-9),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """Spiked element-wise heads see the mean length only; softmax is Bayes at every length, and others pay."""
    unchanged = frame.groupby(["model", "activation"])["risk"].transform("first")
    risk, bayes = np.asarray(frame["risk"]), np.asarray(frame["bayes"])
    changes = np.abs(risk - np.asarray(unchanged))
    soft, spiked = np.asarray(frame["activation"] == "softmax"), np.asarray(frame["model"] == "spiked")
    fixed = np.asarray(frame.groupby(["model", "activation"])["bayes"].transform("first"))
    price, random = np.asarray(frame["price"]), np.asarray(frame["width"] > 0)
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
    """One panel per model: the price of not knowing the length, one curve per head."""
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    colours = {name: f"C{index}" for index, name in enumerate(HEADS)}
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for name, marker in zip(HEADS, MARKERS, strict=False):
            curve = rows[rows["activation"] == name]
            look = {"marker": marker, "linestyle": "-", "markersize": 5, "clip_on": False}
            if name == "erf":  # on top of the sigmoid's curve
                look |= {"fillstyle": "none", "markersize": 9, "linestyle": ""}
            panel.plot(curve["width"], curve["price"], color=colours[name], linewidth=2, zorder=3, **look)
        panel.set(title=title, xlabel="half-width of the lengths, $w$", ylim=(0, 1.05 * table["price"].max()))
        panel.set_xticks(np.arange(0, table["width"].max() + 1, 2))
        ends = rows[rows["width"] == rows["width"].max()].set_index("activation")["price"]
        for name in ("softmax", "linear", "sigmoid"):
            text = "sigmoid, erf" if name == "sigmoid" else name
            label(panel, table["width"].max(), ends[name], text, colours[name], xytext=(10, 0))
    panels[0].set_ylabel("price of not knowing the length")
    headline(figure, "Not knowing the length costs linear and element-wise heads, and softmax nothing")
    return figure
