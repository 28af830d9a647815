r"""Four token laws with the same $\sigma$, and two rates.

Mean square of $L^{1/2}(T[\hat\mu_L]-T[\mu])$ over prompts and queries, two coordinates, $U=uI$. Every law has the
variance $\sigma^2$ in each coordinate and the sub-Gaussian constant $\sigma$, so Proposition 3.1
treats them alike. Points: simulated, with two standard errors. Solid: exact, by quadrature. Dashed: the mean of
$\operatorname{tr}(\mathrm{fluctuation})$ over queries, the limit where it is finite. Signs, uniform and clustered
tokens level off at it: their error falls like $1/L$. The Gaussian has none and climbs: its error falls slower.

Alt: Log-log plot of prompt length times error against prompt length, four solid curves with points on them. Those of
Rademacher, uniform and mixture tokens become flat, each on a dashed horizontal line of its own. The Gaussian curve
climbs along a straight line with no end in sight.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.output_concentration.error_curves import as_columns
from chapters.output_concentration.experiment import DIMENSION
from chapters.output_concentration.four_distributions import FAR, HEAVIEST, MOMENTS, LawTheory, drawn_lengths
from chapters.output_concentration.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import (
    error_bars,
    few_decades,
    headline,
    label,
    legend_line,
    legend_point,
    legend_with,
    markers,
)
from lib.concentration import ErrorCurve, fit_rate, one_over_length
from lib.statistics import comparison_quantile

WORDS = {"mixture": "clustered", "uniform": "uniform", "Rademacher": "Rademacher"}


def numbers(curves: Mapping[str, ErrorCurve], theory: LawTheory) -> Numbers:
    """Errors by law, simulated and exact, their exponents and limits, and the constant that the bound knows."""
    longest = next(iter(curves.values())).lengths[-1]
    claims = (
        _simulation_claim(curves, theory),
        *(_exponent_claim(name, theory, float(longest)) for name in WORDS),
        _fit_claim(curves, theory),
        _limit_claim(theory),
        _constant_claim(theory),
    )
    return Numbers(_table(curves, theory), claims)


def _table(curves: Mapping[str, ErrorCurve], theory: LawTheory) -> Table:
    """Error against length by law, simulated and exact, with the 1/L law of long prompts where there is one."""
    frames, lengths = [], drawn_lengths()
    for name, curve in curves.items():
        exact = {"length": lengths, "error": theory.at(name, lengths)}
        frames.append(pd.DataFrame({"law": name, "kind": "prompts", **as_columns(curve)}))
        frames.append(pd.DataFrame({"law": name, "kind": "exact", **exact}))
    for name, limit in theory.limits.weighted.items():
        frames.append(pd.DataFrame({"law": name, "kind": "limit", "length": lengths, "error": limit / lengths}))
    columns = {
        "law": Column(f"Law of a token: {DIMENSION} independent coordinates of equal variance", "name"),
        "kind": Column(
            "`prompts`: simulated; `exact`: by quadrature; `limit`: the mean of tr(fluctuation)/L over queries", "name"
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _simulation_claim(curves: Mapping[str, ErrorCurve], theory: LawTheory) -> Claim:
    """Simulated against exact errors, worst over laws and lengths."""

    def worst(law_of):
        return max(
            float(curve.deviations(theory.at(law_of(name), curve.lengths)).max()) for name, curve in curves.items()
        )

    comparisons = sum(curve.lengths.size for curve in curves.values())
    return Claim(
        id="output-concentration-laws",
        statement=(
            f"At {comparisons} pairs of a token law and a prompt length, the error of simulated prompts is that of the "
            "quadrature: the worst deviation, in standard errors."
        ),
        source="derived here",
        box="error-by-law",
        measured=worst(lambda name: name),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        alternative=Alternative(
            "the error depended on a law through σ alone, as the bound does: that of Gaussian tokens",
            worst(lambda name: HEAVIEST),
        ),
    )


def _exponent_claim(name: str, theory: LawTheory, longest: float) -> Claim:
    """1/L far out; the exponent of the Gaussian there is the alternative."""
    left = abs(longest * theory.at(name, np.asarray([longest]))[0] / theory.limits.weighted[name] - 1)
    # what is left of the corrections at the longest prompt falls on like L^{-1/2} at least
    unsettled = left * (longest / FAR[0]) ** 0.5 + 2 * theory.exact[name].accuracy
    return Claim(
        id=f"output-concentration-{name.lower()}",
        statement=(
            f"The error of {WORDS[name]} tokens falls like 1/L: the exponent of the exact error between "
            f"L = 10^{np.log10(FAR[0]):.0f} and 10^{np.log10(FAR[1]):.0f} is 1, up to what the corrections at the "
            "longest simulated length leave there, falling like L^{-1/2}, and the accuracy of the quadrature."
        ),
        source="derived here",
        box="mean-fluctuation",
        measured=theory.exponent(name),
        expected=1.0,
        tolerance=unsettled / np.log(FAR[1] / FAR[0]),
        alternative=Alternative("it fell like that of Gaussian tokens of the same σ", theory.exponent(HEAVIEST)),
    )


def _fit_claim(curves: Mapping[str, ErrorCurve], theory: LawTheory) -> Claim:
    """The exact errors at the simulated lengths, all equally precise, give a fit the wrong exponent."""
    lengths = next(iter(curves.values())).lengths

    def missed(name):
        errors = theory.at(name, lengths)
        return abs(fit_rate(ErrorCurve(lengths, errors, np.diag(errors**2)), one_over_length).exponent - 1)

    return Claim(
        id="output-concentration-fit",
        statement=(
            f"A power law with a correction of relative size 1/L, fitted to the exact errors from L = {lengths[0]} to "
            f"{lengths[-1]}, misses the exponent 1 by more than a thousandth, without any noise: by how much, worst of "
            "three laws."
        ),
        source="derived here",
        box="mean-fluctuation",
        measured=max(missed(name) for name in WORDS),
        expected=1e-3,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "the exponent were read off far out", max(abs(theory.exponent(name) - 1) for name in WORDS)
        ),
    )


def _limit_claim(theory: LawTheory) -> Claim:
    """L times the exact error far out, in units of its limit."""
    length = FAR[0]

    def worst(limits):
        ratios = [length * theory.at(name, np.asarray([length]))[0] / limits[name] for name in WORDS]
        return max(ratios, key=lambda ratio: abs(ratio - 1))

    return Claim(
        id="output-concentration-limit",
        statement=(
            "For tokens that are clustered, uniform or signs, L times the error tends to the mean of tr(fluctuation) "
            f"over queries: the ratio of the two at L = 10^{np.log10(length):.0f}, worst of three laws, is 1 up to "
            "corrections of relative size L^{-1/2}."
        ),
        source="derived here",
        box="mean-fluctuation",
        measured=worst(theory.limits.weighted),
        expected=1.0,
        tolerance=length**-0.5,
        alternative=Alternative(
            "all tokens weighed the same: no factor e^{Λ(2ξ)-2Λ(ξ)}", worst(theory.limits.unweighted)
        ),
    )


def _constant_claim(theory: LawTheory) -> Claim:
    """Even moments against those of a normal coordinate of the same variance: the constant σ, by the series."""
    return Claim(
        id="output-concentration-constant",
        statement=(
            "A coordinate of each of the four laws has even moments that are at most those of a normal coordinate of "
            "the same variance σ², and hence the sub-Gaussian constant σ: the largest ratio of two such moments, up to "
            f"order {2 * MOMENTS}."
        ),
        source="derived here",
        box="four-constants",
        measured=max(theory.moment_ratios.values()),
        expected=1.0,
        tolerance=1e-12,  # rounding; second moments are equal
        alternative=Alternative(
            "the constant of the mixture were the distance of its clusters from 0", theory.mixture_over_centres
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """L times the error, a colour a law, beside its limit."""
    figure, axes = plt.subplots(figsize=SIZE)
    laws = list(dict.fromkeys(table["law"]))
    for index, (law, marker) in enumerate(zip(laws, markers(len(laws)), strict=True)):
        mine = table[table["law"] == law]
        prompts, exact, limit = (mine[mine["kind"] == kind] for kind in ("prompts", "exact", "limit"))
        times, colour = prompts["length"], f"C{index}"
        axes.plot(exact["length"], exact["length"] * exact["error"], color=colour, linewidth=1.8)
        axes.plot(limit["length"], limit["length"] * limit["error"], color=colour, linestyle="--", linewidth=1.2)
        error_bars(axes, times, times * prompts["error"], times * prompts["std_error"], color=colour, marker=marker)
        end = exact.iloc[-1]
        above = {"uniform": 3, "mixture": -3}.get(law, 0)  # which end next to each other
        label(axes, end["length"], end["length"] * end["error"], law, colour, xytext=(6, above))
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="$L$ × mean squared error")
    few_decades(axes)
    lines = {"exact": legend_line("-"), "simulated": legend_point(), "limit": legend_line("--", 1.2)}
    legend_with(axes, lines, loc="upper left")
    headline(figure, "One σ, two rates: only the Gaussian climbs")
    return figure
