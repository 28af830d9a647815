r"""Of four distributions with the same $\sigma$, only Gaussian tokens have an error that falls more slowly than $1/L$.

The vertical axis is $L$ times the mean square of $T[\hat\mu_L]-T[\mu]$ over prompts and queries, for two coordinates
and $U=uI$. Every distribution has the variance $\sigma^2$ in each coordinate and the sub-Gaussian constant $\sigma$.
Points are simulated, with two standard errors; curves are exact, by quadrature. The limit is the mean of
$\operatorname{tr}(\mathrm{fluctuation})$ over queries, where it is finite.

Alt: Log-log plot of prompt length times error against prompt length, four solid curves with points on them. Those of
Rademacher, uniform and mixture tokens become flat, each on a dashed horizontal line. The Gaussian curve
climbs along a straight line with no end in sight.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.error_curves import as_columns
from chapters.concentration.experiment import DIMENSION
from chapters.concentration.four_distributions import FAR, HEAVIEST, MOMENTS, ExactTheory, drawn_lengths
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, few_decades, ink, label, legend_line, legend_point, legend_with

ADJECTIVES = {"mixture": "clustered", "uniform": "uniform", "Rademacher": "Rademacher"}


def numbers(curves: Mapping[str, ErrorCurve], theory: ExactTheory) -> Numbers:
    """Return simulated and exact errors by distribution, and claims on exponents, limits and constants."""
    groups, lengths = [], drawn_lengths()
    for name, curve in curves.items():
        groups.append({"law": name, "kind": "prompts", **as_columns(curve)})
        groups.append({"law": name, "kind": "exact", "length": lengths, "error": theory.at(name, lengths)})
    for name, limit in theory.limits.weighted.items():
        groups.append({"law": name, "kind": "limit", "length": lengths, "error": limit / lengths})
    columns = {
        "law": Column(f"Distribution of a token with {DIMENSION} independent coordinates of equal variance", "name"),
        "kind": Column(
            "`prompts`: simulated; `exact`: by quadrature; `limit`: the mean of tr(fluctuation)$/L$ over queries",
            "name",
        ),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Estimate("Mean squared error of the output in $L²(ν)$", std_error="std_error"),
    }
    return Numbers(Table.of(groups, columns), _claims(curves, theory))


def _claims(curves: Mapping[str, ErrorCurve], theory: ExactTheory) -> Claims:
    claim = Claims("output-concentration", source="derived here", box="mean-fluctuation")
    lengths = next(iter(curves.values())).lengths
    pairs = sum(curve.lengths.size for curve in curves.values())
    claim.agree(
        "laws",
        f"At {pairs} pairs of a distribution of tokens and a prompt length, the error of simulated prompts "
        "agrees with the quadrature",
        [curve.deviations(theory.at(name, curve.lengths)) for name, curve in curves.items()],
        rejects=(
            "the error depends on the distribution only through $σ$, as the bound does, and equals that of "
            "Gaussian tokens",
            [curve.deviations(theory.at(HEAVIEST, curve.lengths)) for curve in curves.values()],
        ),
        box="error-by-law",
    )
    start, end = FAR
    longest = float(lengths[-1])
    for name, adjective in ADJECTIVES.items():
        correction = abs(longest * theory.at(name, np.asarray([longest]))[0] / theory.limits.weighted[name] - 1)
        # the correction at the longest simulated prompt decreases at least like L^{-1/2} from there on
        remainder = correction * (longest / start) ** 0.5 + 2 * theory.exact[name].accuracy
        claim.equal(
            name.lower(),
            f"The error of {adjective} tokens falls like $1/L$ (measured: the exponent of the exact error "
            f"between $L = 10^{{{np.log10(start):.0f}}}$ and $10^{{{np.log10(end):.0f}}}$).",
            theory.exponent(name),
            1,
            within=remainder / np.log(end / start),
            because="the correction at the longest simulated length, decreasing like $L^{-1/2}$, and the quadrature "
            "error",
            rejects=("it falls like the error of Gaussian tokens of the same $σ$", theory.exponent(HEAVIEST)),
        )
    claim.at_least(
        "fit",
        "A power law with a correction of relative size $1/L$, fitted to the exact errors from $L = "
        f"{lengths[0]}$ to {lengths[-1]:,}, has an exponent that differs from 1 by more than a thousandth, "
        "without any noise (measured: the largest difference for three distributions).",
        max(abs(_fitted_exponent(theory.at(name, lengths), lengths) - 1) for name in ADJECTIVES),
        1e-3,
        because="a difference that the exponents at very large lengths exclude by far",
        rejects=(
            "the exponent is computed at very large lengths instead",
            max(abs(theory.exponent(name) - 1) for name in ADJECTIVES),
        ),
    )
    far = {name: start * theory.at(name, np.asarray([start]))[0] for name in ADJECTIVES}
    weighted, unweighted = (
        max((far[name] / limits[name] for name in ADJECTIVES), key=lambda ratio: abs(ratio - 1))
        for limits in (theory.limits.weighted, theory.limits.unweighted)
    )
    claim.equal(
        "limit",
        "For tokens that are clustered, uniform or signs, $L$ times the error tends to the mean of tr(fluctuation) "
        f"over queries (measured: the ratio of the two at $L = 10^{{{np.log10(start):.0f}}}$ that is furthest from 1).",
        weighted,
        1,
        within=start**-0.5,
        because="corrections of relative size $L^{-1/2}$",
        rejects=("all tokens have the same weight, without the factor $e^{Λ(2ξ)-2Λ(ξ)}$", unweighted),
    )
    # such moments bound Λ by that of a normal coordinate, hence the sub-Gaussian constant is σ
    claim.equal(
        "constant",
        "A coordinate of each of the four distributions has even moments that are at most those of a normal "
        "coordinate of the same variance $σ²$, and hence the sub-Gaussian constant $σ$ (measured: the "
        f"largest ratio of two such moments, up to order {2 * MOMENTS}).",
        max(theory.moment_ratios.values()),
        1,
        within=1e-12,
        because="rounding: the second moments are equal",
        rejects=("the constant of the mixture is the distance of its clusters from 0", theory.mixture_over_centres),
        box="four-constants",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw L times the error in one colour per distribution, with its limit."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    for index, ((name, rows), marker) in enumerate(zip(table.groupby("law", sort=False), "os^D", strict=True)):
        prompts, exact, limit = (rows[rows["kind"] == kind] for kind in ("prompts", "exact", "limit"))
        times, colour = prompts["length"], f"C{index}"
        axes.plot(exact["length"], exact["length"] * exact["error"], color=colour, linewidth=1.8)
        axes.plot(limit["length"], limit["length"] * limit["error"], color=colour, linestyle="--", linewidth=1.2)
        error_bars(axes, times, times * prompts["error"], times * prompts["std_error"], color=colour, marker=marker)
        end, above = exact.iloc[-1], {"uniform": 3, "mixture": -3}.get(name, 0)  # the two end next to each other
        label(axes, end["length"], end["length"] * end["error"], name, colour, xytext=(6, above))
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="$L$ × mean squared error")
    few_decades(axes)
    limits = table[table["kind"] == "limit"]
    height, place = (limits["length"] * limits["error"]).max(), {"xytext": (0, 14), "ha": "center"}
    middle = np.sqrt(table["length"].min() * table["length"].max())
    label(axes, middle, height, "flat: the error falls like $1/L$", ink(), **place)
    lines = {"exact": legend_line("-"), "simulated": legend_point(), "limit": legend_line("--", 1.2)}
    legend_with(axes, lines, loc="upper left")
    return figure


def _fitted_exponent(errors: np.ndarray, lengths: np.ndarray) -> float:
    """Return the exponent of a power law with a correction of relative size 1/L, with equal relative weights."""
    basis = np.stack([-np.log(lengths), np.ones(len(lengths)), 1 / lengths], axis=1)
    return float(np.linalg.lstsq(basis, np.log(errors))[0][0])
