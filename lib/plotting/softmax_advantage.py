"""Pictures of `softmax_advantage`: what attention loses when it is not softmax."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

WIDE = (9.5, 4.6)
DASHES = {"softmax": "-", "sigmoid": "--", "linear": ":"}
TITLES = {"spiked": "spiked model", "max": "max model"}
LAWS = {
    "softmax": r"$(L-1)\frac{1}{2}\sqrt{\pi/\nu}\,e^{-\nu/4}$",
    "hardmax": r"$\frac{4}{\pi}\,\times$ the same",
    "sigmoid": r"$\sqrt{(L-1)\,\pi/2\nu}\,e^{-\nu/8}$",
    "linear": r"$L/\nu$",
}


def population_risk(result: Result) -> Figure:
    r"""Excess risk of the best head of each kind against the strength $\nu$ of the hint.

    Colours: prompt lengths. Solid: softmax, which is the Bayes risk; dashed: sigmoid weights with the best slope and
    bias; dotted: linear weights. Left, one token is shifted along $k^\star$; right, the answer sits, more or less
    surely, at the token with the largest score. Exact; logarithmic axes.

    Alt: Two log-log panels of risk against hint strength. In each, for every prompt length, the solid softmax curve
    lies lowest, the dashed sigmoid curve above it and the dotted linear curve highest. On the left the solid curves
    plunge; on the right they fall like a power, and the sigmoid and linear curves level off.
    """
    frame = result.tables["population_risk"].frame
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    lengths = sorted(frame["length"].unique().tolist())
    colours = sequence(len(lengths))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        for length, colour in zip(lengths, colours, strict=True):
            curve = frame[(frame["model"] == model) & (frame["length"] == length)]
            for name, dashes in DASHES.items():
                panel.plot(curve["snr"], curve[name], dashes, color=colour, linewidth=1.8)
        panel.set(xscale="log", yscale="log", ylim=(1e-4, 1.3), title=title, xlabel=r"strength of the hint, $\nu$")
    panels[0].set_ylabel("excess risk")
    handles = [Line2D([], [], color=ink(), linestyle=dashes) for dashes in DASHES.values()]
    handles += [Line2D([], [], color=colour, linewidth=4) for colour in colours]
    labels = [*DASHES, *(f"$L={length}$" for length in lengths)]
    panels[1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def activation_zoo(result: Result) -> Figure:
    r"""The best risk of eight activations, in both models, at one length and one strength of the hint.

    Every activation has its best slope, bias and scale. Filled: normalised over the tokens. Round: growing
    exponentially with the score (hardmax as a limit of softmax); square: not. Dashed: the Bayes risk. Only softmax,
    which is both, reaches it. The distance from 1 is $\mathbb{E}|p|^2\cos^2$, with the angle between the weights and
    the posterior $p$.

    Alt: Two dot charts, one a model, listing softmax, hardmax, softplus, exp, sigmoid, erf, relu and linear. Softmax
    sits on the dashed Bayes line, hardmax is next, and linear has the largest risk in both.
    """
    frame = result.tables["activation_zoo"].frame
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    names = list(dict.fromkeys(frame["activation"]))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = frame[frame["model"] == model]
        for row in rows.itertuples():
            panel.plot(
                row.risk,
                names.index(row.activation),
                "o" if row.exponential else "s",
                color="C0" if row.normalised else "C1",
                fillstyle="full" if row.normalised else "none",
                markersize=9,
                markeredgewidth=2,
            )
        panel.axvline(rows["bayes"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xlim=(0, 1), title=title, xlabel="lowest excess risk")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    kinds = {
        "normalised, exponential": {"marker": "o", "color": "C0"},
        "normalised only": {"marker": "s", "color": "C0"},
        "exponential only": {"marker": "o", "color": "C1", "fillstyle": "none"},
        "neither": {"marker": "s", "color": "C1", "fillstyle": "none"},
    }
    handles = [Line2D([], [], linestyle="", markersize=9, markeredgewidth=2, **kind) for kind in kinds.values()]
    handles.append(Line2D([], [], color=ink(), linestyle="--", linewidth=1.5))
    panels[1].legend(handles, [*kinds, "Bayes"], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def strong_hints(result: Result) -> Figure:
    r"""Exact risks in the spiked model over their laws at strong hints.

    Each panel divides the exact risk of one kind of head by the law in its title; a law is right where the ratio
    tends to 1 (dashed). Corrections are of relative size $1/\nu$ and grow with $L$.

    Alt: Four panels, for softmax, hardmax, sigmoid and linear attention. In each the ratio of exact risk to law rises
    toward one as the hint gets stronger, first for two tokens, last for the longest prompt.
    """
    frame = result.tables["strong_hints"].frame
    figure, panels = plt.subplots(1, 4, figsize=(10.5, 4.0), sharex=True, sharey=True)
    lengths = sorted(frame["length"].unique().tolist())
    for panel, (name, law) in zip(panels, LAWS.items(), strict=True):
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = frame[(frame["activation"] == name) & (frame["length"] == length)]
            panel.plot(curve["snr"], curve["ratio"], color=colour, linewidth=2, label=f"$L={length}$")
        panel.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xscale="log", ylim=(0, 1.1), title=f"{name}\n{law}", xlabel=r"$\nu$")
        panel.set_xticks([5, 20, 80], ["5", "20", "80"])
        panel.minorticks_off()
    panels[0].set_ylabel("exact risk / law")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def random_length(result: Result) -> Figure:
    r"""Prompts of random length: $\bar L - w$ or $\bar L + w$ tokens, with equal chances.

    Risk of one fixed head of each kind, tuned to the mean length $\bar L$, its value vector rescaled for the law.
    Dashed: the mean of the Bayes risks of the two lengths. Left, element-wise heads see only the mean length and their
    risk does not move; right it does. One softmax head is Bayes-optimal at all lengths at once.

    Alt: Two panels of risk against the half-width of the law of lengths. Left, sigmoid and linear are flat lines and
    softmax falls slightly, along the dashed Bayes curve. Right, all three move, softmax again along the Bayes curve.
    """
    frame = result.tables["random_length"].frame
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        for index, name in enumerate(DASHES):
            curve = frame[(frame["model"] == model) & (frame["activation"] == name)]
            panel.plot(curve["width"], curve["risk"], "os^"[index], color=f"C{index}", label=name)
        panel.plot(curve["width"], curve["bayes"], color=ink(), linestyle="--", linewidth=1.5, label="Bayes, averaged")
        panel.set(title=title, xlabel="half-width of the law of lengths, $w$", ylim=(0, 1))
        panel.set_xticks(np.arange(0, frame["width"].max() + 1, 2))
    panels[0].set_ylabel("excess risk")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
