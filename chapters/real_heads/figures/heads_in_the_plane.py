r"""At every length, at most about half of the heads have a participation within a factor of 1.5 of the Gaussian curve.

Each point is one of the 72 heads: the standard deviation $\hat\tau$ of its scores over the tokens of a prompt, and the
participation $\sum p^2$ of its weights, the inverse of the number of tokens that share them, averaged over queries and
prompts. Curve: exact for Gaussian scores. Heads outside the band are blue. Dashed: where Gaussian scores freeze.

Alt: Three panels of points around a rising curve with a band, for short, middle and long prompts, with the number of
heads in the band. Grey points are in the band, as many or more blue ones outside it, mostly above, and left of a dashed
line. On longer prompts the points are lower, and spread more widely around the curve.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.head_participations import Participations
from chapters.real_heads.regime_counts import Regimes
from chapters.real_heads.regimes import NEAR, freezing
from chapters.real_heads.style import GAUSSIAN, TEXT
from chapters.real_heads.tracked_tables import by_head
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.statistics import comparison_quantile


def numbers(participations: Participations, regimes: Regimes) -> Numbers:
    """Return heads and curves, and the claims on regimes, on heads near the curve and on the control."""
    columns = {
        "kind": Column("`head`: a head of the network on the text; `curve`: exact for Gaussian scores", "name"),
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "layer": Column("Layer, from 0; -1 on the curve"),
        "head": Column("Head of the layer, from 0; -1 on the curve"),
        "tau": Column("Standard deviation of the scores over the tokens of a prompt, averaged", std_error="tau_se"),
        "participation": Column("Mean of $Σp²$ over queries and prompts", std_error="participation_se"),
        "expected": Column("The same mean for Gaussian scores with the spread of each query", moves_with="tau"),
        "tau_se": Column("Standard error of `tau`, over prompts", moves_with="tau"),
        "participation_se": Column("Standard error of `participation`, over prompts", moves_with="participation"),
    }
    groups = []
    for length, heads in participations.heads.items():
        means = {"tau": "tau", "participation": "participation", "expected": "gaussian"}
        points = {column: heads.mean(name) for column, name in means.items()}
        errors = {f"{name}_se": error for name, error in participations.errors[length].items()}
        groups.append(by_head(**points, **errors).assign(kind="head", length=length))
        exact, no_error = participations.curves[length], {"tau_se": 0.0, "participation_se": 0.0}
        curve = {"tau": participations.taus, "participation": exact, "expected": exact, **no_error}
        groups.append({"kind": "curve", "length": length, "layer": -1, "head": -1, **curve})
    return Numbers(Table.of(groups, columns), _claims(participations, regimes))


def _claims(participations: Participations, regimes: Regimes) -> Claims:
    claim = Claims("real-heads", source="measured here")
    linear, frozen = regimes.linear, regimes.frozen
    claim.at_least(
        "linear",
        f"At $L = 512$ at least a third of the {regimes.heads} heads have a small spread: that of their scores is "
        "below half of $√(2 ln L)$ (measured: their number).",
        linear.value,
        24,
        because="a third of the heads; without the factor $1/√32$ of the network hardly any head would be linear",
        rejects=("the same heads without the factor $1/√32$ of the network", linear.alternative),
        std_error=linear.std_error,
        count=(linear.value, regimes.heads),
    )
    claim.at_most(
        "frozen",
        f"At $L = 512$ at most a third of the {regimes.heads} heads are frozen: the spread of their scores is "
        "$√(2 ln L)$ or more (measured: their number).",
        frozen.value,
        24,
        because="a third of the heads; without the factor $1/√32$ of the network nearly all heads would be frozen",
        rejects=("the same heads without the factor $1/√32$ of the network", frozen.alternative),
        std_error=frozen.std_error,
        count=(frozen.value, regimes.heads),
    )
    ranked = sorted(participations.near.items(), key=lambda item: item[1].value)
    for name, (length, near) in (("fewest", ranked[0]), ("most", ranked[-1])):
        claim.at_most(
            f"near-{name}",
            f"At $L = {length}$, the length with the {name} heads near the curve, at most half of the "
            f"{regimes.heads} heads have a participation within a factor {NEAR:g} of Gaussian scores of their mean "
            "spread (measured: their number).",
            near.value,
            regimes.heads / 2,
            within=comparison_quantile(len(ranked)) * near.std_error,
            because="half of the heads; within: 99.9 % quantile of the largest of "
            f"{len(ranked)} standard normal deviations, times the standard error",
            rejects=("the same heads on Gaussian tokens, at the spread of each query", near.alternative),
            std_error=near.std_error,
            count=(near.value, regimes.heads),
        )
    deviations, common = (
        np.stack([*of_lengths.values()]) for of_lengths in (participations.deviations, participations.common)
    )
    claim.agree(
        "control-participation",
        "On Gaussian tokens with the mean and covariance of its keys, every head has the exact participation "
        "at the spread of each query",
        deviations,
        within=comparison_quantile(deviations.size, samples=participations.drawn),
        because=f"99.9 % quantile of the largest of {deviations.size} deviations of Student's $t$ distribution, for "
        f"standard errors from at least {participations.drawn:,} prompts",
        rejects=("the same formula at the mean spread of the queries of each head", common),
        source="derived here",
        box="two-integrals",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per length, with a band of a factor `NEAR` around the curve, and count the heads in the band."""
    lengths = sorted(table["length"].unique().tolist())
    figure, panels = plt.subplots(1, len(lengths), figsize=(WIDE, 4.5), sharex=True, sharey=True, squeeze=False)
    heads, curves = table[table["kind"] == "head"], table[table["kind"] == "curve"]
    for axes, length in zip(panels[0], lengths, strict=True):
        curve, points = curves[curves["length"] == length], heads[heads["length"] == length]
        low, high = curve["participation"] / NEAR, curve["participation"] * NEAR
        axes.fill_between(curve["tau"], low, high, color=GAUSSIAN, alpha=0.2, linewidth=0)
        axes.plot(curve["tau"], curve["participation"], color=GAUSSIAN, linewidth=2)
        near = _near(points, curve)
        for group, look in ((points[near], {"color": "0.6"}), (points[~near], {"color": TEXT})):
            axes.plot(group["tau"], group["participation"], "o", markersize=4.5, alpha=0.85, **look)
        axes.axvline(freezing(length), color=ink(), linestyle="--", linewidth=1.2, alpha=0.7)
        axes.set(xscale="log", yscale="log", xlabel=r"spread of scores, $\hat\tau$")
        axes.set_title(f"$L={length}$: {near.sum()} of {near.size} heads\nin the band", color=ink())
        axes.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
        axes.minorticks_off()
        label(axes, freezing(length), 2e-3, "$\\sqrt{2\\,\\ln L}$:\nfreezes", ink(), xytext=(5, 0))
    panels[0][0].set(xlim=(0.4, 25), ylim=(1e-3, 1.3), ylabel=r"participation, $\sum p^2$")
    text = f"Gaussian\nscores; band:\nwithin a\nfactor {NEAR:g}"
    label(panels[0][0], 0.45, 0.022, text, GAUSSIAN, va="top", xytext=(0, 0))
    label(panels[0][-1], 0.45, 0.5, "heads outside", TEXT, xytext=(0, 0))
    return figure


def _near(points: pd.DataFrame, curve: pd.DataFrame) -> pd.Series:
    """Return for each head whether it is in the band."""
    expected = np.interp(np.log(points["tau"]), np.log(curve["tau"]), np.log(curve["participation"]))
    return (np.log(points["participation"]) - expected).abs() <= np.log(NEAR)
