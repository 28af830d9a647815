r"""Normal scores average if left alone, freeze at $\ln L$, and go slowly to a limit at $\sqrt{\ln L}$.

How many tokens share the weight, as a power of the length: the power is 1 where all tokens share it and 0 where one
has it all. Solid: $\ln(1/P)/\ln L$ with the participation $P$, the mean over prompts of the sum $\sum p^2$ of squared
weights. Dotted: the same of the typical prompt, with $\exp\mathbb E\ln\sum p^2$ in place of $P$. Lines are exact;
points are simulated prompts, with bars of two standard errors, mostly smaller than the points. Dashes at the right
edge: limits for $L\to\infty$, a heuristic. Left: normal scores, up to the largest for which the theory is guaranteed.
Right: scores of the same standard deviation that are uniform on an interval.

Alt: Two panels of a share against the logarithm of the length, three colours each. Left, the curves part where they
cross: one rises to one, one falls ever more slowly towards a small value, one falls to zero, each with a dotted curve
a little above it. Right, all three rise towards one.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.temperature_and_length.scalings import Curves, frozen, mean_exponent, typical_exponent
from chapters.temperature_and_length.simulated_prompts import Comparison
from chapters.temperature_and_length.style import (
    COLOURS,
    FIXED,
    LABELS,
    LOGARITHM,
    MEAN,
    NORMAL,
    ROOT,
    SIZE,
    TYPICAL,
    UNIFORM,
)
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, legend_line
from lib.statistics import student_quantile


def numbers(normal: Curves, uniform: Curves, simulated: Sequence[Comparison]) -> Numbers:
    """Curves of both laws, simulated prompts on those of the first; what becomes of scores times ln L."""
    claims = (
        _simulated_claim(simulated),
        _root_claim(normal),
        _frozen_claim(normal, uniform),
        _bounded_claim(normal, uniform),
    )
    return Numbers(_table(normal, uniform, simulated), claims)


def _table(normal: Curves, uniform: Curves, simulated: Sequence[Comparison]) -> Table:
    """By law, scaling and length; simulated participation where there are prompts."""
    exact = [
        pd.DataFrame({"law": law, "scaling": name, "log_length": curve.log_lengths, "tau": curve.taus}).assign(
            mean=curve.mean, typical=curve.typical
        )
        for law, curves in ((NORMAL, normal), (UNIFORM, uniform))
        for name, curve in curves.items()
    ]
    points: dict[tuple, dict] = {}
    for one in simulated:
        key = (NORMAL, one.scaling, one.log_length, one.tau)
        values = {one.average: one.exact, f"simulated_{one.average}": one.simulated, f"{one.average}_se": one.std_error}
        points.setdefault(key, {"prompts": one.prompts}).update(values)
    seen = pd.DataFrame(
        [dict(zip(("law", "scaling", "log_length", "tau"), k, strict=True)) | v for k, v in points.items()]
    )
    frame = pd.concat([*exact, seen], ignore_index=True)
    ratio = frame["tau"] / np.sqrt(2 * frame["log_length"])
    # a scaling's limit at fixed c: c → 0, c as it is, c → ∞
    at = np.where(frame["scaling"] == FIXED, 0.0, np.where(frame["scaling"] == LOGARITHM, np.inf, ratio))
    limits = {"mean_limit": mean_exponent(at), "typical_limit": typical_exponent(at)}
    bounded = frame["law"] == UNIFORM
    frame = frame.assign(**{name: np.where(bounded, 1.0, limit) for name, limit in limits.items()})
    columns = {
        "law": Column("Law of the scores of a prompt", "name"),
        "scaling": Column("What the scores are multiplied by, up to a constant", "name"),
        "log_length": Column("ln L"),
        "tau": Column("Standard deviation τ of the scores, scaled"),
        "mean": Column("E Σp², exact"),
        "typical": Column("exp E ln Σp², exact"),
        "mean_limit": Column("Limit of ln(1/E Σp²)/ln L [heuristic for normal scores]"),
        "typical_limit": Column("Limit of E ln(1/Σp²)/ln L [heuristic for normal scores]"),
        "prompts": Column("Prompts simulated, where there are any", "prompts"),
        "simulated_mean": Column("E Σp² of these, one token averaged exactly given the others", std_error="mean_se"),
        "mean_se": Column("Its standard error", moves_with="simulated_mean"),
        "simulated_typical": Column("exp E ln Σp² of these", std_error="typical_se"),
        "typical_se": Column("Its standard error", moves_with="simulated_typical"),
    }
    order = ["law", "scaling", "log_length"]
    return Table(frame.reindex(columns=list(columns)).sort_values(order, ignore_index=True, kind="stable"), columns)


def _simulated_claim(simulated: Sequence[Comparison]) -> Claim:
    """Simulated prompts against the exact mean and typical participation."""

    def worst(expected) -> float:
        return max(abs(one.simulated - expected(one)) / one.std_error for one in simulated)

    return Claim(
        id="temperature-simulated",
        statement=(
            f"In {len(simulated)} comparisons, of three scalings, at lengths up to "
            f"{max(round(np.exp(one.log_length)) for one in simulated):,}, mean and typical participation of simulated "
            "prompts are the exact ones: the worst deviation in standard errors."
        ),
        source="derived here",
        box="typical-participation",
        measured=worst(lambda one: one.exact),
        expected=0.0,
        tolerance=student_quantile(len(simulated), min(one.prompts for one in simulated)),
        alternative=Alternative(
            "e^{τ²}/L, the law of long prompts, which is at most 1",
            worst(lambda one: np.exp(min(one.tau**2 - one.log_length, 0.0))),
        ),
    )


def _root_claim(normal: Curves) -> Claim:
    """Normal scores times √(ln L): the power of L has a limit, which it approaches with a factor 1/√(ln L)."""
    curve = normal[ROOT]
    log_lengths = curve.log_lengths[-2:]
    beside = np.log(curve.mean[-2:]) + mean_exponent(curve.ratios[-2:]) * log_lengths
    return Claim(
        id="temperature-root-logarithm",
        statement=(
            f"Normal scores times √(ln L), at c = {curve.ratios[-1]:.2g}: the mean participation is not a power of the "
            "length alone, but its limiting power times 1/√(ln L). The local power of ln L between ln L = "
            f"{log_lengths[0]:.4g} and {log_lengths[1]:.4g}."
        ),
        source="heuristic",
        box="three-scalings",
        measured=float(np.diff(beside)[0] / np.diff(np.log(log_lengths))[0]),
        expected=-0.5,
        # half of the way to no factor; what is left is of relative order 1/ln L
        tolerance=0.25,
        alternative=Alternative("a constant power of the length", 0.0),
    )


def _frozen_claim(normal: Curves, uniform: Curves) -> Claim:
    """Normal scores times ln L are frozen in the end."""
    end = normal[LOGARITHM]
    log_length, ratio = float(end.log_lengths[-1]), float(end.ratios[-1])
    other = np.interp(log_length, uniform[LOGARITHM].log_lengths, np.log(uniform[LOGARITHM].mean))
    return Claim(
        id="temperature-frozen",
        statement=(
            f"Normal scores times ln L freeze: at ln L = {log_length:.4g}, where c = {ratio:.3g}, the mean "
            "participation is near 1 - 1/c."
        ),
        source="heuristic",
        box="three-scalings",
        measured=float(end.mean[-1]),
        expected=float(frozen(ratio)),
        # the largest of L normals falls short of √(2 ln L) by this fraction
        tolerance=float(np.log(4 * np.pi * log_length) / (2 * log_length)),
        alternative=Alternative("uniform scores of the same standard deviation and scaling", float(np.exp(other))),
    )


def _bounded_claim(normal: Curves, uniform: Curves) -> Claim:
    """Uniform scores times ln L do not freeze."""
    log_length = float(normal[LOGARITHM].log_lengths[-1])
    curve = uniform[LOGARITHM]
    beyond = curve.log_lengths >= log_length
    half = np.sqrt(3.0) * curve.taus[beyond]
    law = half / np.tanh(half) * np.exp(-curve.log_lengths[beyond])
    end = normal[LOGARITHM]
    last = np.sqrt(3.0) * float(end.taus[-1])
    return Claim(
        id="temperature-bounded",
        statement=(
            "Uniform scores times ln L, on [-a, a], do not freeze: from ln L = "
            f"{curve.log_lengths[beyond][0]:.4g} on their mean participation is a coth(a)/L, a relative distance apart."
        ),
        source="derived here",
        box="bounded-scores",
        measured=float(np.max(np.abs(curve.mean[beyond] / law - 1))),
        expected=0.0,
        tolerance=1e-9,  # corrections are of order a/L, nothing here: what is left is quadrature
        relation="≤",
        alternative=Alternative(
            "normal scores of the same standard deviation and scaling, where they are guaranteed",
            float(abs(end.mean[-1] * np.exp(log_length) / (last / np.tanh(last)) - 1)),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a law; solid the mean, dotted the typical prompt, points simulated."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharey=True, sharex=True)
    table = table.assign(**{f"share_{name}": -np.log(table[name]) / table["log_length"] for name in (MEAN, TYPICAL)})
    for panel, (law, title) in zip(panels, {NORMAL: "normal scores", UNIFORM: "bounded scores"}.items(), strict=True):
        for scaling, colour in COLOURS.items():
            mine = table[(table["law"] == law) & (table["scaling"] == scaling)]
            curve, points = mine[mine["prompts"].isna()], mine[mine["prompts"].notna()]
            label = LABELS[scaling] if law == NORMAL else None
            panel.plot(curve["log_length"], curve["share_mean"], color=colour, linewidth=2, label=label)
            panel.plot(curve["log_length"], curve["share_typical"], color=colour, linewidth=1.5, linestyle=":")
            for average, marker in ((MEAN, "o"), (TYPICAL, "s")):
                share = -np.log(points[f"simulated_{average}"]) / points["log_length"]
                error = points[f"{average}_se"] / points[f"simulated_{average}"] / points["log_length"]
                look = {"color": colour, "marker": marker, "markersize": 5, "fillstyle": "none"}
                error_bars(panel, points["log_length"], share, error, **look)
            if law == NORMAL:
                panel.axhline(curve["mean_limit"].iloc[-1], xmin=0.95, color=colour, linestyle="--", linewidth=2)
        panel.set(title=title, xscale="log", xlabel=r"$\ln\,L$", ylim=(-0.03, 1.03))
        panel.set_xticks([3, 10, 30, 100, 300], labels=["3", "10", "30", "100", "300"])
        panel.minorticks_off()
    panels[0].set_ylabel(r"tokens that share, $\ln(1/\Sigma p^2)\,/\,\ln\,L$")
    handles, labels = panels[0].get_legend_handles_labels()
    handles += [legend_line("-"), legend_line(":", 1.5)]
    figure.legend(handles, [*labels, "mean", "typical prompt"], loc="outside lower center", ncols=5)
    for place, words, side in ((1.0, "all tokens", "top"), (0.0, "one token", "bottom")):
        panels[0].annotate(words, (0.01, place), xycoords=("axes fraction", "data"), va=side, color=ink())
    headline(figure, "Normal scores average if left alone, freeze at ln L, and go slowly to a limit at √(ln L)")
    return figure
