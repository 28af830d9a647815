r"""With normal scores, an unscaled head averages, $\ln L$ freezes it, and $\sqrt{\ln L}$ leads slowly to a limit.

The vertical axis is the number of tokens that share the weight, as a power of the length: $\ln(1/P)/\ln L$, where the
participation $P$ is the mean of $\sum p^2$ over prompts. It is 1 if all tokens share the weight, and 0 if one token has
it all. The curves are exact. Dashes at the right edge are limits for $L\to\infty$, by a heuristic. Left: normal scores,
up to the largest scores for which the quadrature is tested. Right: scores of the same standard deviation that are
uniform on an interval. The table also has a typical prompt, with $\exp\mathbb E\ln\sum p^2$ in place of $P$, and
simulated prompts.

Alt: Two panels of an exponent against the logarithm of the length, with three colours each. Left, the curves cross at
one length: one rises to one, one falls ever more slowly towards a small value, and one falls to zero. Right, all three
rise towards one.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.temperature_and_length.scalings import Curves, frozen, mean_correction, mean_exponent, typical_exponent
from chapters.temperature_and_length.simulated_prompts import Comparison
from chapters.temperature_and_length.style import COLOURS, LABELS, LOGARITHM, MEAN, NORMAL, ROOT, TYPICAL, UNIFORM
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at
from lib.statistics import comparison_quantile

# Position of the label of each curve of normal scores, in the order of `COLOURS`: ln L, and the arguments of `label`.
PLACES = ((30.0, {"xytext": (6, -14)}), (110.0, {"xytext": (0, 32), "ha": "center"}), (40.0, {"xytext": (14, 10)}))


def numbers(normal: Curves, uniform: Curves, simulated: Sequence[Comparison]) -> Numbers:
    """Return curves of both distributions, simulated prompts of normal scores, and the claims on the three scalings."""
    groups = [
        {
            "law": law,
            "scaling": scaling,
            "kind": "exact",
            "log_length": curve.log_lengths,
            "tau": curve.taus,
            "mean": curve.mean,
            "typical": curve.typical,
            **_limits(law, scaling, curve.taus, curve.log_lengths),
        }
        for law, of_law in ((NORMAL, normal), (UNIFORM, uniform))
        for scaling, curve in of_law.items()
    ]
    means, typicals = ([case for case in simulated if case.average == average] for average in (MEAN, TYPICAL))
    for mean, typical in zip(means, typicals, strict=True):
        case = {"law": NORMAL, "scaling": mean.scaling, "log_length": mean.log_length, "tau": mean.tau}
        case |= _limits(NORMAL, mean.scaling, mean.tau, mean.log_length)
        errors = {"mean_se": mean.std_error, "typical_se": typical.std_error}
        groups += [
            case | {"kind": "exact", "mean": mean.exact, "typical": typical.exact},
            case | {"kind": "simulated", "mean": mean.simulated, "typical": typical.simulated} | errors,
        ]
    columns = {
        "law": Column("Distribution of the scores of a prompt", "name"),
        "scaling": Column("Factor on the scores, up to a constant", "name"),
        "kind": Column("`exact` or `simulated`, of the two averages", "name"),
        "log_length": Column("$ln L$"),
        "tau": Column("Standard deviation $τ$ of the scores with their factor"),
        "mean": Estimate("$𝔼 Σp²$; simulated with one token averaged exactly given the others", std_error="mean_se"),
        "typical": Estimate("$exp 𝔼 ln Σp²$", std_error="typical_se"),
        "mean_limit": Column("Limit of $ln(1/𝔼 Σp²)/ln L$ [heuristic for normal scores]"),
        "typical_limit": Column("Limit of $𝔼 ln(1/Σp²)/ln L$ [heuristic for normal scores]"),
    }
    table = Table.of(groups, columns)
    ordered = table.frame.sort_values(["law", "scaling", "kind", "log_length"], ignore_index=True, kind="stable")
    return Numbers(Table(ordered, table.columns), _claims(normal, uniform, pd.DataFrame(simulated)))


def _claims(normal: Curves, uniform: Curves, simulated: pd.DataFrame) -> Claims:
    claim = Claims("temperature", source="derived here")
    fewest = int(simulated["prompts"].min())
    limit = np.exp(np.minimum(simulated["tau"] ** 2 - simulated["log_length"], 0.0))
    claim.agree(
        "simulated",
        "Mean and typical participation of simulated prompts of normal scores agree with the exact values, under "
        f"three scalings and at lengths up to {round(np.exp(simulated['log_length'].max())):,}",
        (simulated["simulated"] - simulated["exact"]) / simulated["std_error"],
        within=comparison_quantile(len(simulated), samples=fewest),
        because=f"99.9 % quantile of the largest of {len(simulated)} deviations of Student's $t$ distribution, for "
        f"standard errors from at least {fewest:,} prompts",
        box="typical-participation",
        rejects=(
            "the limit for long prompts, $e^{τ²}/L$ or 1 if that is larger than 1",
            (simulated["simulated"] - limit) / simulated["std_error"],
        ),
    )
    root, ratio = normal[ROOT], normal[ROOT].ratios[-1]
    log_lengths = root.log_lengths[-2:]
    remainder = np.log(root.mean[-2:]) + mean_exponent(root.ratios[-2:]) * log_lengths
    step = np.diff(np.log(log_lengths))[0]
    # what the next term, -κ/ln L in ln P, adds to the exponent
    next_term = -mean_correction(ratio) * np.diff(1 / log_lengths)[0] / step
    claim.equal(
        "root-logarithm",
        f"For normal scores times $√(ln L)$, at $c = {ratio:.2g}$, the mean participation is its limiting power of the "
        "length times $(ln L)^{-1/2}$ (measured: the exponent of $ln L$, from the exact values at "
        f"$ln L = {log_lengths[0]:.4g}$ and ${log_lengths[1]:.4g}$).",
        np.diff(remainder)[0] / step,
        -0.5,
        within=2 * next_term,
        because="twice what the next term of the expansion, of relative order $1/ln L$, adds to the exponent",
        source="heuristic",
        box="three-scalings",
        rejects=("a constant times a power of the length", 0.0),
    )
    frozen_scores, bounded = normal[LOGARITHM], uniform[LOGARITHM]
    longest, ratio = frozen_scores.log_lengths[-1], frozen_scores.ratios[-1]
    claim.equal(
        "frozen",
        f"Normal scores times $ln L$ freeze: at $ln L = {longest:.4g}$, where $c = {ratio:.3g}$, the mean "
        "participation is close to its limit $1 - 1/c$.",
        frozen_scores.mean[-1],
        frozen(ratio),
        within=np.log(4 * np.pi * longest) / (2 * longest),
        because="twice the relative distance of the largest of $L$ standard normals from $√(2 ln L)$",
        box="frozen-participation",
        rejects=(
            "uniform scores of the same standard deviation and scaling",
            np.exp(np.interp(longest, bounded.log_lengths, np.log(bounded.mean))),
        ),
    )
    beyond = bounded.log_lengths >= longest
    # the standard deviation of scores that are uniform on [-a, a] is a/√3
    half = np.sqrt(3.0) * bounded.taus[beyond]
    times_length = bounded.mean[beyond] * np.exp(bounded.log_lengths[beyond])
    claim.at_most(
        "bounded",
        "Uniform scores on $[-a, a]$ with $a$ proportional to $ln L$ do not freeze: from "
        f"$ln L = {bounded.log_lengths[beyond][0]:.4g}$ on, their mean participation is "
        r"$a \operatorname{coth}(a)/L$ (measured: the largest relative deviation).",
        np.max(np.abs(times_length * np.tanh(half) / half - 1)),
        0.0,
        within=1e-9,
        because="corrections are of relative order $a/L$, which is negligible here; the rest is quadrature error",
        box="bounded-scores",
        rejects=("all tokens share the weight equally, $1/L$", np.max(np.abs(times_length - 1))),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per distribution, with the exact mean for each scaling."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharey=True, sharex=True)
    table = table[table["kind"] == "exact"].assign(share=lambda rows: -np.log(rows[MEAN]) / rows["log_length"])
    for panel, (law, title) in zip(panels, {NORMAL: "normal scores", UNIFORM: "bounded scores"}.items(), strict=True):
        for (scaling, colour), (labelled, place) in zip(COLOURS.items(), PLACES, strict=True):
            curve = table[(table["law"] == law) & (table["scaling"] == scaling)]
            panel.plot(curve["log_length"], curve["share"], color=colour, linewidth=2.4)
            if law == NORMAL:
                panel.axhline(curve["mean_limit"].iloc[-1], xmin=0.95, color=colour, linestyle="--", linewidth=2)
                row = curve.iloc[(curve["log_length"] - labelled).abs().argmin()]
                label(panel, row["log_length"], row["share"], LABELS[scaling], colour, **place)
        panel.set(title=title, xscale="log", xlabel=r"$\ln\,L$", ylim=(-0.03, 1.03))
        ticks_at(panel.xaxis, [3, 10, 30, 100, 300])
    panels[0].set_ylabel("number of tokens that share,\nas a power of the length")
    for height, text, side in ((1.0, "all tokens share", "top"), (0.0, "one token", "bottom")):
        panels[0].annotate(text, (0.01, height), xycoords=("axes fraction", "data"), va=side, color=ink())
    return figure


def _limits(law: str, scaling: str, taus, log_lengths) -> dict:
    """Return the limits of both exponents: for normal scores at c = 0, at c = τ/√(2 ln L), and at c = ∞."""
    if law == UNIFORM:
        return {"mean_limit": 1.0, "typical_limit": 1.0}
    ratio = {ROOT: taus / np.sqrt(2 * log_lengths), LOGARITHM: np.inf}.get(scaling, 0.0)
    return {"mean_limit": mean_exponent(ratio), "typical_limit": typical_exponent(ratio)}
