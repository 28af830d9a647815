r"""With normal scores, an unscaled head averages, $\ln L$ freezes it, and $\sqrt{\ln L}$ leads slowly to a limit.

The vertical axis is the number of tokens that share the weight, as a power of the length: $\ln(1/P)/\ln L$, where the
participation $P$ is the mean of $\sum p^2$ over prompts. It is 1 if all tokens share the weight, and 0 if one token has
it all. The curves are exact. Dashes at the right edge are limits for $L\to\infty$, by a heuristic. Left: normal scores,
up to the largest scores for which the quadrature is tested. Right: scores of the same standard deviation that are
uniform on an interval. The table also has a typical prompt, with $\exp\mathbb E\ln\sum p^2$ in place of $P$, and
simulated prompts. The grey tick on the axis is the longest prompt of {doc}`real_heads`.

Alt: Two panels of an exponent against the logarithm of the length, with three colours each. Left, the curves cross at
one length: one rises to one, one falls ever more slowly towards a small value, and one falls to zero. Right, all three
rise towards one.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import mark_real_prompt
from chapters.temperature_and_length.scalings import Curves, frozen, mean_correction, mean_exponent, typical_exponent
from chapters.temperature_and_length.simulated_prompts import Comparison
from chapters.temperature_and_length.style import COLOURS, FIXED, LABELS, LOGARITHM, MEAN, NORMAL, ROOT, UNIFORM
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.statistics import student_quantile

# Where each curve of normal scores is labelled, as ln L, and how the label is placed.
LABELLED = {FIXED: 30.0, ROOT: 110.0, LOGARITHM: 40.0}
PLACES = {
    FIXED: {"xytext": (6, -14)},
    ROOT: {"xytext": (0, 32), "ha": "center"},
    LOGARITHM: {"xytext": (14, 10)},
}


def numbers(normal: Curves, uniform: Curves, simulated: Sequence[Comparison]) -> Numbers:
    """Return curves of both distributions, simulated prompts of normal scores, and the claims on the three scalings."""
    claims = (
        _simulated_claim(simulated),
        _root_claim(normal),
        _frozen_claim(normal, uniform),
        _bounded_claim(normal, uniform),
    )
    return Numbers(_table(normal, uniform, simulated), claims)


def _table(normal: Curves, uniform: Curves, simulated: Sequence[Comparison]) -> Table:
    """Return the table by distribution, scaling and length, with simulated participation at some lengths."""
    exact = [
        pd.DataFrame({"law": law, "scaling": name, "log_length": curve.log_lengths, "tau": curve.taus}).assign(
            mean=curve.mean, typical=curve.typical
        )
        for law, curves in ((NORMAL, normal), (UNIFORM, uniform))
        for name, curve in curves.items()
    ]
    points: dict[tuple, dict] = {}
    for case in simulated:
        key = (NORMAL, case.scaling, case.log_length, case.tau)
        average = case.average
        values = {average: case.exact, f"simulated_{average}": case.simulated, f"{average}_se": case.std_error}
        points.setdefault(key, {"prompts": case.prompts}).update(values)
    at_points = pd.DataFrame(
        [dict(zip(("law", "scaling", "log_length", "tau"), k, strict=True)) | v for k, v in points.items()]
    )
    frame = pd.concat([*exact, at_points], ignore_index=True)
    ratio = frame["tau"] / np.sqrt(2 * frame["log_length"])
    # the limits at c → 0, at this c, and at c → ∞
    at = np.where(frame["scaling"] == FIXED, 0.0, np.where(frame["scaling"] == LOGARITHM, np.inf, ratio))
    limits = {"mean_limit": mean_exponent(at), "typical_limit": typical_exponent(at)}
    bounded = frame["law"] == UNIFORM
    frame = frame.assign(**{name: np.where(bounded, 1.0, limit) for name, limit in limits.items()})
    columns = {
        "law": Column("Distribution of the scores of a prompt", "name"),
        "scaling": Column("Factor on the scores, up to a constant", "name"),
        "log_length": Column("$ln L$"),
        "tau": Column("Standard deviation $τ$ of the scores with their factor"),
        "mean": Column("$𝔼 Σp²$, exact"),
        "typical": Column("$exp 𝔼 ln Σp²$, exact"),
        "mean_limit": Column("Limit of $ln(1/𝔼 Σp²)/ln L$ [heuristic for normal scores]"),
        "typical_limit": Column("Limit of $𝔼 ln(1/Σp²)/ln L$ [heuristic for normal scores]"),
        "prompts": Column("Number of simulated prompts, where there are any", "prompts"),
        "simulated_mean": Column(
            "$𝔼 Σp²$ of simulated prompts, with one token averaged exactly given the others", std_error="mean_se"
        ),
        "mean_se": Column("Standard error of the simulated mean", moves_with="simulated_mean"),
        "simulated_typical": Column("$exp 𝔼 ln Σp²$ of simulated prompts", std_error="typical_se"),
        "typical_se": Column("Standard error of the simulated typical participation", moves_with="simulated_typical"),
    }
    order = ["law", "scaling", "log_length"]
    return Table(frame.reindex(columns=list(columns)).sort_values(order, ignore_index=True, kind="stable"), columns)


def _simulated_claim(simulated: Sequence[Comparison]) -> Claim:
    """Claim that simulated prompts have the exact mean and typical participation."""

    def worst(expected) -> float:
        return max(abs(case.simulated - expected(case)) / case.std_error for case in simulated)

    fewest = min(case.prompts for case in simulated)
    return Claim.equal(
        "temperature-simulated",
        (
            "Mean and typical participation of simulated prompts of normal scores agree with the exact values, under "
            f"three scalings and at lengths up to {max(round(np.exp(case.log_length)) for case in simulated):,} "
            f"(measured: the largest of {len(simulated)} deviations, in standard errors)."
        ),
        worst(lambda case: case.exact),
        0.0,
        within=student_quantile(len(simulated), fewest),
        because=(
            f"99.9 % quantile of the largest of {len(simulated)} deviations of Student's $t$ distribution, for "
            f"standard errors from at least {fewest:,} prompts"
        ),
        source="derived here",
        box="typical-participation",
        comparisons=len(simulated),
        alternative=Alternative(
            "the limit for long prompts, $e^{τ²}/L$ or 1 if that is larger than 1",
            worst(lambda case: np.exp(min(case.tau**2 - case.log_length, 0.0))),
        ),
    )


def _root_claim(normal: Curves) -> Claim:
    """Claim that with √(ln L) the power of L approaches its limit with a factor 1/√(ln L)."""
    curve = normal[ROOT]
    log_lengths = curve.log_lengths[-2:]
    remainder = np.log(curve.mean[-2:]) + mean_exponent(curve.ratios[-2:]) * log_lengths
    step = np.diff(np.log(log_lengths))[0]
    # what the next term, -κ/ln L in ln P, adds to the exponent
    next_term = -mean_correction(float(curve.ratios[-1])) * np.diff(1 / log_lengths)[0] / step
    return Claim.equal(
        "temperature-root-logarithm",
        (
            f"For normal scores times $√(ln L)$, at $c = {curve.ratios[-1]:.2g}$, the mean participation is its "
            "limiting power of the length times $(ln L)^{-1/2}$ (measured: the exponent of $ln L$, from the exact "
            f"values at $ln L = {log_lengths[0]:.4g}$ and ${log_lengths[1]:.4g}$)."
        ),
        float(np.diff(remainder)[0] / step),
        -0.5,
        within=2 * float(next_term),
        because="twice what the next term of the expansion, of relative order $1/ln L$, adds to the exponent",
        source="heuristic",
        box="three-scalings",
        alternative=Alternative("a constant times a power of the length", 0.0),
    )


def _frozen_claim(normal: Curves, uniform: Curves) -> Claim:
    """Claim that normal scores times ln L eventually freeze."""
    end = normal[LOGARITHM]
    log_length, ratio = float(end.log_lengths[-1]), float(end.ratios[-1])
    other = np.interp(log_length, uniform[LOGARITHM].log_lengths, np.log(uniform[LOGARITHM].mean))
    return Claim.equal(
        "temperature-frozen",
        (
            f"Normal scores times $ln L$ freeze: at $ln L = {log_length:.4g}$, where $c = {ratio:.3g}$, the mean "
            "participation is close to its limit $1 - 1/c$."
        ),
        float(end.mean[-1]),
        float(frozen(ratio)),
        within=float(np.log(4 * np.pi * log_length) / (2 * log_length)),
        because="twice the relative distance of the largest of $L$ standard normals from $√(2 ln L)$",
        source="derived here",
        box="frozen-participation",
        alternative=Alternative("uniform scores of the same standard deviation and scaling", float(np.exp(other))),
    )


def _bounded_claim(normal: Curves, uniform: Curves) -> Claim:
    """Claim that uniform scores times ln L do not freeze."""
    log_length = float(normal[LOGARITHM].log_lengths[-1])
    curve = uniform[LOGARITHM]
    beyond = curve.log_lengths >= log_length
    half = np.sqrt(3.0) * curve.taus[beyond]
    limit = half / np.tanh(half) * np.exp(-curve.log_lengths[beyond])
    end = normal[LOGARITHM]
    last = np.sqrt(3.0) * float(end.taus[-1])
    return Claim.at_most(
        "temperature-bounded",
        (
            "Uniform scores on $[-a, a]$ with $a$ proportional to $ln L$ do not freeze: from "
            f"$ln L = {curve.log_lengths[beyond][0]:.4g}$ on, their mean participation is "
            r"$a \operatorname{coth}(a)/L$ (measured: the largest relative deviation)."
        ),
        float(np.max(np.abs(curve.mean[beyond] / limit - 1))),
        0.0,
        within=1e-9,
        because="corrections are of relative order $a/L$, which is negligible here; the rest is quadrature error",
        source="derived here",
        box="bounded-scores",
        alternative=Alternative(
            "normal scores of the same standard deviation, at the longest prompt of the tested domain",
            float(abs(end.mean[-1] * np.exp(log_length) / (last / np.tanh(last)) - 1)),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per distribution, with the exact mean for each scaling."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharey=True, sharex=True)
    table = table[table["prompts"].isna()].assign(share=lambda rows: -np.log(rows[MEAN]) / rows["log_length"])
    for panel, (law, title) in zip(panels, {NORMAL: "normal scores", UNIFORM: "bounded scores"}.items(), strict=True):
        for scaling, colour in COLOURS.items():
            curve = table[(table["law"] == law) & (table["scaling"] == scaling)]
            panel.plot(curve["log_length"], curve["share"], color=colour, linewidth=2.4)
            if law == NORMAL:
                panel.axhline(curve["mean_limit"].iloc[-1], xmin=0.95, color=colour, linestyle="--", linewidth=2)
                row = curve.iloc[(curve["log_length"] - LABELLED[scaling]).abs().argmin()]
                label(panel, row["log_length"], row["share"], LABELS[scaling], colour, **PLACES[scaling])
        panel.set(title=title, xscale="log", xlabel=r"$\ln\,L$", ylim=(-0.03, 1.03))
        panel.set_xticks([3, 10, 30, 100, 300], labels=["3", "10", "30", "100", "300"])
        panel.minorticks_off()
    panels[0].set_ylabel("number of tokens that share,\nas a power of the length")
    for height, text, side in ((1.0, "all tokens share", "top"), (0.0, "one token", "bottom")):
        panels[0].annotate(text, (0.01, height), xycoords=("axes fraction", "data"), va=side, color=ink())
    mark_real_prompt(panels[1], log_length=True)
    return figure
