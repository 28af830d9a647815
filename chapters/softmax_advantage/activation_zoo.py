r"""The best risk of eight activations, in both models, at one length and one strength of the hint.

Every activation has its best slope, bias and scale. Filled: normalised over the tokens. Round: growing
exponentially with the score (hardmax as a limit of softmax); square: not. Dashed: the Bayes risk. Only softmax,
which is both, reaches it. The distance from 1 is $\mathbb{E}|p|^2\cos^2$, with the angle between the weights and
the posterior $p$.

Alt: Two dot charts, one a model, listing softmax, hardmax, softplus, exp, sigmoid, erf, relu and linear. Softmax
sits on the dashed Bayes line, hardmax is next, and linear has the largest risk in both.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.softmax_advantage.marks import TITLES, WIDE, dot
from chapters.softmax_advantage.models import GENERIC_LENGTH
from chapters.softmax_advantage.single_heads import COSINE_LENGTH, STEEP, Products, Slopes
from chapters.softmax_advantage.zoo import ZOO, Zoo
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, legend_line
from lib.statistics import comparison_quantile


def numbers(zoos: Mapping[str, Zoo], slopes: Slopes, cosine: Products) -> Numbers:
    """The zoo, by model and activation; only softmax is Bayes, one half of it is not enough, the rest is an angle."""
    rows = [
        {
            "model": model,
            "activation": name,
            "normalised": ZOO[name].normalised,
            "exponential": ZOO[name].exponential,
            "risk": best,
            "bayes": zoo.bayes,
            "cosine_squared": (1.0 - best) / (1.0 - zoo.bayes),
        }
        for model, zoo in zoos.items()
        for name, best in zoo.risks.items()
    ]
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "normalised": Column("Whether the weights of a prompt add up to one", "yes or no"),
        "exponential": Column("Whether ratios of weights grow exponentially with differences of scores", "yes or no"),
        "risk": Column("Lowest excess risk over slope, bias and scale"),
        "bayes": Column("Bayes risk"),
        "cosine_squared": Column("(1 - risk)/(1 - Bayes risk), the squared cosine of weights and posterior"),
    }
    return Numbers(Table(pd.DataFrame(rows), columns), _claims(zoos, slopes, cosine))


def _claims(zoos: Mapping[str, Zoo], slopes: Slopes, cosine: Products) -> tuple[Claim, ...]:
    excess = {name: min(zoo.risks[name] - zoo.bayes for zoo in zoos.values()) for name in ZOO}
    spiked = zoos["spiked"].risks
    return (
        Claim(
            id="softmax-advantage-bayes",
            statement=(
                f"Softmax with k = √ν k* attains the Bayes risk: at L = {GENERIC_LENGTH} and ν = 4 its risk, from the "
                "quadrature that serves every normalised activation, less the Bayes risk."
            ),
            source="[D26, Prop. 4.2]",
            box="d26-bayes",
            measured=slopes.right - slopes.bayes,
            expected=0.0,
            tolerance=1e-9,
            alternative=Alternative(f"another slope, {STEEP:g} in place of √ν = 2", slopes.steep - slopes.bayes),
        ),
        Claim(
            id="softmax-advantage-no-other",
            statement="No other activation reaches the Bayes risk: the smallest excess over both models.",
            source="derived here",
            box="risk-is-an-angle",
            measured=min(excess[name] for name in ZOO if name != "softmax"),
            expected=1e-4,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("an activation that is as good as softmax", excess["softmax"]),
        ),
        Claim(
            id="softmax-advantage-best-elementwise",
            statement=(
                "In the spiked model no element-wise activation is below the sigmoid: the lowest of the others, less "
                "the sigmoid's risk."
            ),
            source="[D26]",
            box="best-elementwise",
            measured=min(spiked[name] for name in ("erf", "relu", "linear", "exp")) - spiked["sigmoid"],
            expected=0.0,
            tolerance=1e-9,
            relation="≥",
            alternative=Alternative(
                "softmax, were it an element-wise activation", spiked["softmax"] - spiked["sigmoid"]
            ),
        ),
        Claim(
            id="softmax-advantage-cosine",
            statement=(
                "The risk of a head with the best v is 1 - E|p|² cos², with the cosine of its weights and the "
                f"posterior in L² of all prompts: for erf weights at L = {COSINE_LENGTH}, cos² from "
                f"{len(cosine.together)} simulated prompts."
            ),
            source="derived here",
            box="risk-is-an-angle",
            measured=cosine.cosine_squared,
            expected=(1.0 - cosine.risk) / (1.0 - cosine.bayes),
            tolerance=comparison_quantile(1) * cosine.std_error,
            std_error=cosine.std_error,
            alternative=Alternative(
                "the mean over prompts of the cosine within a prompt", cosine.cosine_squared_within
            ),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a model: a dot an activation, and the Bayes line."""
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    names = list(dict.fromkeys(table["activation"]))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for row in rows.itertuples():
            panel.plot(row.risk, names.index(row.activation), **dot(row.normalised, row.exponential))
        panel.axvline(rows["bayes"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xlim=(0, 1), title=title, xlabel="lowest excess risk")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    kinds = {
        "normalised, exponential": dot(normalised=True, exponential=True),
        "normalised only": dot(normalised=True, exponential=False),
        "exponential only": dot(normalised=False, exponential=True),
        "neither": dot(normalised=False, exponential=False),
    }
    handles = [*(Line2D([], [], **kind) for kind in kinds.values()), legend_line("--", 1.5)]
    panels[1].legend(handles, [*kinds, "Bayes"], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
