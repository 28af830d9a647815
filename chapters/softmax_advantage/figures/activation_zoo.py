r"""The best risk of eight activations, in both models, at one length and one strength of the hint.

Every activation has its best slope and scale; sigmoid, erf and relu their best bias too. Filled: normalised over the
tokens. Round: growing exponentially with the score (hardmax as a limit of softmax); square: not. Dashed: the Bayes
risk. Without a bias only softmax, which is both, reaches it. Small filled squares: softplus with a bias, given ever
lower; far down, $\log(1+e^{\chi+b})$ is $e^{\chi+b}$, and its risk ends at the Bayes risk. The distance from 1 is
$\mathbb{E}|p|^2\cos^2$, with the angle between the weights and the posterior $p$.

Alt: Two dot charts, one a model, listing softmax, hardmax, softplus, exp, sigmoid, erf, relu and linear. Softmax
sits on the dashed Bayes line, hardmax is next, linear has the largest risk in both. From softplus a trail of small
squares leads to the Bayes line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.softmax_advantage.activation_risks import (
    ACTIVATIONS,
    BIASES,
    LONG,
    SHORT,
    STRONG,
    ActivationRisks,
    SoftplusLeads,
)
from chapters.softmax_advantage.crossings import ACCURACY, LENGTHS, LONG_LENGTH, Crossings
from chapters.softmax_advantage.models import GENERIC_LENGTH
from chapters.softmax_advantage.single_heads import COSINE_LENGTH, STEEP, Products, SlopeRisks
from chapters.softmax_advantage.style import DISTINCT, TITLES, WIDE, dot
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.statistics import comparison_quantile


def numbers(
    zoos: Mapping[str, ActivationRisks],
    halves: SoftplusLeads,
    crossings: Crossings,
    slopes: SlopeRisks,
    cosine: Products,
) -> Numbers:
    """The zoo, by model and activation; which of them are Bayes, what one half of it is worth, and an angle."""
    rows = [
        {
            "model": model,
            "activation": name,
            "bias": bias,
            "normalised": ACTIVATIONS[name].normalised,
            "exponential": ACTIVATIONS[name].exponential,
            "risk": best,
            "bayes": zoo.bayes,
            "cosine_squared": (1.0 - best) / (1.0 - zoo.bayes),
        }
        for model, zoo in zoos.items()
        for name, bias, best in (
            *((name, "best" if ACTIVATIONS[name].biased else "none", best) for name, best in zoo.risks.items()),
            *(("softplus", f"{bias:g}", risk) for bias, risk in zoo.shifted.items()),
        )
    ]
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "bias": Column("What is added to all scores: the `best` bias, `none`, or the one that is named", "name"),
        "normalised": Column("Whether the weights of a prompt add up to one", "yes or no"),
        "exponential": Column("Whether ratios of weights grow exponentially with differences of scores", "yes or no"),
        "risk": Column("Lowest excess risk over slope and scale; with a named bias, at the slope of the posterior"),
        "bayes": Column("Bayes risk"),
        "cosine_squared": Column("(1 - risk)/(1 - Bayes risk), the squared cosine of weights and posterior"),
    }
    claims = (
        *_zoo_claims(zoos),
        *_halves_claims(halves),
        *_crossing_claims(crossings),
        _slope_claim(slopes),
        _cosine_claim(cosine),
    )
    return Numbers(Table(pd.DataFrame(rows), columns), claims)


def _zoo_claims(zoos: Mapping[str, ActivationRisks]) -> tuple[Claim, ...]:
    excess = {name: min(zoo.risks[name] - zoo.bayes for zoo in zoos.values()) for name in ACTIVATIONS}
    lowest = min(BIASES)
    spiked = zoos["spiked"].risks
    return (
        Claim(
            id="softmax-advantage-no-other",
            statement=(
                "None of the other seven activations, softplus without a bias, reaches the Bayes risk: the smallest "
                "excess over both models."
            ),
            source="derived here",
            box="risk-is-an-angle",
            measured=min(excess[name] for name in ACTIVATIONS if name != "softmax"),
            expected=DISTINCT,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("an activation that is as good as softmax", excess["softmax"]),
        ),
        Claim(
            id="softmax-advantage-softplus-bias",
            statement=(
                f"With a bias of {lowest:g} and the slope of the posterior, softplus is as good as softmax: its excess "
                "over the Bayes risk, the larger of both models."
            ),
            source="derived here",
            box="softplus-far-left",
            measured=max(zoo.shifted[lowest] - zoo.bayes for zoo in zoos.values()),
            expected=0.0,
            tolerance=DISTINCT,
            relation="≤",
            alternative=Alternative("softplus without a bias, at its best slope", excess["softplus"]),
        ),
        Claim(
            id="softmax-advantage-best-elementwise",
            statement=(
                "In the spiked model no element-wise activation is below the sigmoid: the lowest of the others, less "
                "the sigmoid's risk."
            ),
            source="derived here",
            box="best-elementwise",
            measured=min(spiked[name] for name in ("erf", "relu", "linear", "exp")) - spiked["sigmoid"],
            expected=0.0,
            tolerance=1e-9,
            relation="≥",
            alternative=Alternative(
                "softmax, were it an element-wise activation", spiked["softmax"] - spiked["sigmoid"]
            ),
        ),
    )


def _halves_claims(halves: SoftplusLeads) -> tuple[Claim, Claim]:
    return (
        Claim(
            id="softmax-advantage-half-or-none",
            statement=(
                "For short prompts and weak hints softplus, which is only normalised, beats all element-wise weights: "
                f"its risk less the lowest of theirs, the larger difference at (L, ν) = {SHORT[0]} and {SHORT[1]} in "
                "the spiked model."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=float(halves.short.max()),
            expected=-DISTINCT,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(f"the order of a longer prompt, (L, ν) = {LONG}", halves.long),
        ),
        Claim(
            id="softmax-advantage-half-strong",
            statement=(
                "At strong hints the best element-wise weights beat softplus in short prompts too: its risk less the "
                f"lowest of theirs, the least difference at (L, ν) = {', '.join(map(str, STRONG))} in the spiked model."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=float(halves.strong.min()),
            expected=DISTINCT,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the order at weak hints, if it held at every strength", float(halves.short.max())),
        ),
    )


def _crossing_claims(crossings: Crossings) -> tuple[Claim, ...]:
    """Where the order of softplus and of the best element-wise weights turns, and that a ReLU explains it."""
    away = np.abs(crossings.posterior_slope / crossings.relu - 1.0)
    return (
        *(
            Claim(
                id=f"softmax-advantage-half-crossing-{length}",
                statement=(
                    f"With {length} tokens in the spiked model softplus without a bias has the risk of the best "
                    f"element-wise weights at one strength ν of the hint, known to {ACCURACY:g}: by the Laplace "
                    "identity, against sums over a lattice of scores."
                ),
                source="derived here",
                box="one-half-of-softmax",
                measured=float(softplus),
                expected=float(lattice),
                tolerance=ACCURACY,
                alternative=Alternative("softplus at the slope √ν of the posterior, not at its best", float(posterior)),
            )
            for length, softplus, lattice, posterior in zip(
                LENGTHS, crossings.softplus, crossings.lattice, crossings.posterior_slope, strict=True
            )
        ),
        Claim(
            id="softmax-advantage-half-crossing-longer",
            statement=(
                f"The crossing falls with the length: ν at which the two risks are equal with {LONG_LENGTH} tokens, which "
                f"is below that with {LENGTHS[-1]} tokens."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=crossings.longer,
            expected=float(crossings.softplus[-1]),
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(
                f"the crossing rises with the length: that with {LENGTHS[0]} tokens", float(crossings.softplus[0])
            ),
        ),
        Claim(
            id="softmax-advantage-half-relu",
            statement=(
                "The crossing of softplus is that of a normalised ReLU, its limit at large slopes: the larger relative "
                f"distance with {LENGTHS[0]} and {LENGTHS[1]} tokens."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=float(np.max(np.abs(crossings.softplus / crossings.relu - 1.0))),
            expected=0.0,
            # kernels of slope c differ within 1/c of zero, and risks at the best slope by order 1/c², c being about 12
            tolerance=0.01,
            relation="≤",
            alternative=Alternative(
                "softplus at the slope √ν of the posterior: the smaller distance", float(away.min())
            ),
        ),
    )


def _slope_claim(slopes: SlopeRisks) -> Claim:
    return Claim(
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
    )


def _cosine_claim(cosine: Products) -> Claim:
    return Claim(
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
        alternative=Alternative("the mean over prompts of the cosine within a prompt", cosine.cosine_squared_within),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a model: a dot an activation, and the Bayes line."""
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    names = list(dict.fromkeys(table["activation"]))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for row in rows.itertuples():
            given = {} if row.bias in ("best", "none") else {"markersize": 4, "markeredgewidth": 0}
            panel.plot(row.risk, names.index(row.activation), **dot(row.normalised, row.exponential) | given)
        trail = rows[rows["activation"] == "softplus"]
        panel.plot(trail["risk"], [names.index("softplus")] * len(trail), color="C0", linewidth=1)
        panel.annotate(
            r"bias $\to -\infty$", (rows["bayes"].iloc[0] + 0.02, names.index("softplus") + 0.45), fontsize=9
        )
        panel.axvline(rows["bayes"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
        label(panel, rows["bayes"].iloc[0], len(names) - 1, "Bayes", ink(), xytext=(-6, 0), ha="right")
        panel.set(xlim=(0, 1), title=title, xlabel="lowest excess risk")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    kinds = {
        "normalised, exponential": dot(normalised=True, exponential=True),
        "normalised only": dot(normalised=True, exponential=False),
        "exponential only": dot(normalised=False, exponential=True),
        "neither": dot(normalised=False, exponential=False),
    }
    # the upper right corner is free: what is normalised comes near to Bayes
    panels[1].legend([Line2D([], [], **kind) for kind in kinds.values()], list(kinds), loc="upper right", fontsize=10)
    headline(figure, "Only softmax, and what becomes softmax, reaches the Bayes risk")
    return figure
