r"""Prompts of random length: $\bar L - w$ or $\bar L + w$ tokens, with equal chances.

Risk of one fixed head of each kind, tuned to the mean length $\bar L$, its value vector rescaled for the law.
Dashed: the mean of the Bayes risks of the two lengths. Left, element-wise heads see only the mean length and their
risk does not move; right it does. One softmax head is Bayes-optimal at all lengths at once.

Alt: Two panels of risk against the half-width of the law of lengths. Left, sigmoid and linear are flat lines and
softmax falls slightly, along the dashed Bayes curve. Right, all three move, softmax again along the Bayes curve.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_advantage.fixed_heads import MEAN_LENGTH, FixedHead
from chapters.softmax_advantage.marks import DASHES, TITLES, WIDE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import MARKERS, ink


def numbers(heads: Mapping[tuple[str, str], FixedHead]) -> Numbers:
    """Risks by width; spiked element-wise heads see the mean length only, softmax is Bayes at every length."""
    frame = _frame(heads)
    return Numbers(_table(frame), _claims(frame))


def _frame(heads: Mapping[tuple[str, str], FixedHead]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {"model": model, "activation": name, "width": these.widths, "risk": these.risk, "bayes": these.bayes}
        )
        for (model, name), these in heads.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _table(frame: pd.DataFrame) -> Table:
    """By model, activation and width of the law."""
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "width": Column(f"Prompts have {MEAN_LENGTH} - width or {MEAN_LENGTH} + width tokens", "tokens"),
        "risk": Column("Excess risk of the head that is best at the mean length, v rescaled"),
        "bayes": Column("Mean of the Bayes risks of the two lengths"),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """Spiked element-wise heads see the mean length only; softmax is Bayes at every length."""
    unchanged = frame.groupby(["model", "activation"])["risk"].transform("first")
    risk, bayes = np.asarray(frame["risk"]), np.asarray(frame["bayes"])
    changes = np.abs(risk - np.asarray(unchanged))
    soft, spiked = np.asarray(frame["activation"] == "softmax"), np.asarray(frame["model"] == "spiked")
    fixed = np.asarray(frame.groupby(["model", "activation"])["bayes"].transform("first"))
    return [
        Claim(
            id="softmax-advantage-mean-length",
            statement=(
                "In the spiked model an element-wise head sees of a random length nothing but its mean: the largest "
                "change of its risk with the width of the law."
            ),
            source="derived here",
            box="one-head-many-lengths",
            measured=float(changes[~soft & spiked].max()),
            expected=0.0,
            tolerance=1e-9,
            relation="≤",
            alternative=Alternative("the same in the max model", float(changes[~soft & ~spiked].max())),
        ),
        Claim(
            id="softmax-advantage-any-length",
            statement=(
                "One softmax head is Bayes-optimal at all lengths together: its risk under a random length is the mean "
                "of the Bayes risks; the largest difference."
            ),
            source="derived here",
            box="one-head-many-lengths",
            measured=float(np.abs(risk - bayes)[soft].max()),
            expected=0.0,
            tolerance=1e-9,
            relation="≤",
            alternative=Alternative(
                "the Bayes risk of the mean length in its place", float(np.abs(risk - fixed)[soft].max())
            ),
        ),
    ]


def draw(table: pd.DataFrame) -> Figure:
    """A panel a model: the risk of each head against the width of the law, on the averaged Bayes risk."""
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        for index, (name, marker) in enumerate(zip(DASHES, MARKERS, strict=False)):
            curve = table[(table["model"] == model) & (table["activation"] == name)]
            panel.plot(curve["width"], curve["risk"], marker, color=f"C{index}", label=name)
        panel.plot(curve["width"], curve["bayes"], color=ink(), linestyle="--", linewidth=1.5, label="Bayes, averaged")
        panel.set(title=title, xlabel="half-width of the law of lengths, $w$", ylim=(0, 1))
        panel.set_xticks(np.arange(0, table["width"].max() + 1, 2))
    panels[0].set_ylabel("excess risk")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
