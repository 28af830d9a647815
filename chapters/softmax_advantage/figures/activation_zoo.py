r"""Of eight activations only softmax attains the Bayes risk, and softplus approaches it as its bias falls.

Prompts of ten tokens at $\nu=6$. Slope, scale and the bias of sigmoid, erf and relu are the best. Large
filled square: softplus without a bias; small ones: at the slope of the posterior, with the biases −2, −4, −8, −16 and
−64. The distance of a risk from 1 is $\mathbb{E}|p|^2\cos^2\theta$, with the angle $\theta$ of weights and posterior.

Alt: Two dot charts, one per model, that list softmax, hardmax, softplus, exp, sigmoid, erf, relu and linear. Softmax
is on the dashed Bayes line, hardmax is next, linear has the largest risk in both. From softplus a row of small squares
leads to the Bayes line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.softmax_advantage.activation_risks import ACTIVATIONS, BIASES, ActivationRisks
from chapters.softmax_advantage.style import BECAUSE_DISTINCT, DISTINCT, TITLES, dot
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label


def numbers(activations: Mapping[str, ActivationRisks]) -> Numbers:
    """Return risks by model and activation; claim which of them attain the Bayes risk."""
    rows = []
    for model, found in activations.items():
        best = [(name, "best" if ACTIVATIONS[name].biased else "none", risk) for name, risk in found.risks.items()]
        shifted = [("softplus", f"{bias:g}", risk) for bias, risk in found.shifted.items()]
        for name, bias, risk in best + shifted:
            kind = {"normalised": ACTIVATIONS[name].normalised, "exponential": ACTIVATIONS[name].exponential}
            cosine = (1.0 - risk) / (1.0 - found.bayes)
            risks = {"risk": risk, "bayes": found.bayes, "cosine_squared": cosine}
            rows.append({"model": model, "activation": name, "bias": bias, **kind, **risks})
    columns = {
        "model": Column("Model of the relevant token: spiked or max", "name"),
        "activation": Column("Activation of the head", "name"),
        "bias": Column("Bias that is added to all scores: the `best` one, `none`, or a number", "name"),
        "normalised": Column("Whether the weights of a prompt add up to one", "yes or no"),
        "exponential": Column("Whether ratios of weights grow exponentially with differences of scores", "yes or no"),
        "risk": Column("Lowest excess risk over slope and scale; with a given bias, at the slope of the posterior"),
        "bayes": Column("Bayes risk"),
        "cosine_squared": Column("(1 - risk)/(1 - Bayes risk), the squared cosine of weights and posterior"),
    }
    claim = Claims("softmax-advantage", source="derived here")
    excess = {name: min(model.risks[name] - model.bayes for model in activations.values()) for name in ACTIVATIONS}
    claim.at_least(
        "no-other",
        "None of seven activations other than softmax attains the Bayes risk; softplus has no bias here "
        "(smallest difference between a risk and the Bayes risk, over both models).",
        min(excess[name] for name in ACTIVATIONS if name != "softmax"),
        DISTINCT,
        because=BECAUSE_DISTINCT,
        box="risk-is-an-angle",
        rejects=("an activation with the risk of softmax", excess["softmax"]),
    )
    near, lowest = BIASES[2], BIASES[-1]
    above = {bias: max(model.shifted[bias] - model.bayes for model in activations.values()) for bias in (near, lowest)}
    claim.at_most(
        "softplus-bias",
        f"With a bias of {lowest:g} and the slope of the posterior, the risk of softplus cannot be "
        "distinguished from the Bayes risk (the larger difference of both models).",
        above[lowest],
        0,
        within=DISTINCT,
        because=BECAUSE_DISTINCT,
        box="softplus-far-left",
        rejects=(f"a bias of {near:g} is low enough", above[near]),
    )
    spiked = activations["spiked"].risks
    claim.at_least(
        "best-elementwise",
        "In the spiked model no other element-wise activation has a lower risk than the sigmoid (lowest other "
        "risk minus that of the sigmoid).",
        min(spiked[name] for name in ("erf", "relu", "linear", "exp")) - spiked["sigmoid"],
        0,
        within=1e-9,
        because="the documented error of the quadrature",
        box="best-elementwise",
        rejects=("softmax, which is not element-wise", spiked["softmax"] - spiked["sigmoid"]),
    )
    return Numbers(Table(pd.DataFrame(rows), columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per model, with one dot per activation and a line at the Bayes risk."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.8), sharey=True)
    names = list(dict.fromkeys(table["activation"]))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for row in rows.itertuples():
            size = {} if row.bias in ("best", "none") else {"markersize": 4, "markeredgewidth": 0}
            panel.plot(row.risk, names.index(row.activation), **dot(row.normalised, row.exponential) | size)
        trail = rows[rows["activation"] == "softplus"]
        panel.plot(trail["risk"], [names.index("softplus")] * len(trail), color="C0", linewidth=1)
        lower = {"arrowstyle": "->", "color": "C0", "linewidth": 1.2}
        height, first, last = names.index("softplus") + 0.34, trail["risk"].max(), rows["bayes"].iloc[0] + 0.01
        panel.annotate("", (last, height), (first, height), arrowprops=lower)
        label(panel, first, height, "lower bias", "C0", fontsize=10)
        panel.axvline(rows["bayes"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
        label(panel, rows["bayes"].iloc[0], len(names) - 1, "Bayes", ink(), xytext=(-6, 0), ha="right")
        panel.set(xlim=(0, 1), title=title, xlabel="lowest excess risk")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    kinds = {
        "normalised, exponential": (True, True),
        "normalised only": (True, False),
        "exponential only": (False, True),
        "neither": (False, False),
    }
    figure.legend([Line2D([], [], **dot(*kind)) for kind in kinds.values()], kinds, loc="outside lower center", ncols=4)
    return figure
