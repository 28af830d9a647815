r"""Four token laws with the same $\sigma$, and two rates.

Mean square of $L^{1/2}(T[\hat\mu_L]-T[\mu])$ over prompts and queries, two coordinates, $U=uI$. Every law has the
variance $\sigma^2$ in each coordinate and is $\sigma$-sub-Gaussian with no smaller constant, so Proposition 3.1
treats them alike. Points: simulated, with two standard errors, joined to guide the eye. Dashed: the mean of
$\operatorname{tr}(\mathrm{fluctuation})$ over queries, the limit where it is finite. Signs, uniform and clustered
tokens level off at it: their error falls like $1/L$. The Gaussian has none and climbs: its error falls slower.

Alt: Log-log plot of prompt length times error against prompt length. Points of Rademacher, uniform and mixture
tokens become flat, each on a dashed horizontal line of its own. The Gaussian points climb along a straight line with
no end in sight.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.output_concentration.error_curves import as_columns
from chapters.output_concentration.marks import SIZE
from chapters.output_concentration.scene import DIMENSION
from chapters.output_concentration.token_laws import HEAVIEST
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import error_bars, few_decades, legend_line, legend_with, markers
from lib.concentration import ErrorCurve, Rate, fit_rate, one_over_length
from lib.statistics import comparison_quantile


def numbers(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Numbers:
    """Errors by law, their exponents, and their limits."""
    return Numbers(_table(curves, limits), (*_law_claims(curves), _limit_claim(curves, limits)))


def _table(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Table:
    """Error against length by law, with the 1/L law of long prompts where there is one."""
    frames = [pd.DataFrame({"law": name, "kind": "prompts", **as_columns(curve)}) for name, curve in curves.items()]
    for name, limit in limits.items():
        lengths = curves[name].lengths.astype(float)
        frames.append(pd.DataFrame({"law": name, "kind": "limit", "length": lengths, "error": limit / lengths}))
    columns = {
        "law": Column(f"Law of a token: {DIMENSION} independent coordinates of equal variance", "name"),
        "kind": Column("`prompts`: simulated; `limit`: the mean of tr(fluctuation)/L over queries", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _rate_of(curve: ErrorCurve) -> Rate:
    """The exponent, with a correction of relative size 1/L fitted along."""
    return fit_rate(curve, one_over_length)


def _law_claims(curves: Mapping[str, ErrorCurve]) -> list[Claim]:
    """1/L for each law but the Gaussian, whose exponent is the alternative."""
    gaussian = _rate_of(curves[HEAVIEST]).exponent
    others = {name: _rate_of(curve) for name, curve in curves.items() if name != HEAVIEST}
    words = {"mixture": "clustered", "uniform": "uniform", "Rademacher": "Rademacher"}
    return [
        Claim(
            id=f"output-concentration-{name.lower()}",
            statement=(
                f"The error of {words[name]} tokens falls like 1/L: the fitted exponent, with a correction of relative "
                "size 1/L, is 1."
            ),
            source="derived here",
            box="mean-fluctuation",
            measured=rate.exponent,
            expected=1.0,
            tolerance=comparison_quantile(len(others)) * rate.std_error,
            std_error=rate.std_error,
            alternative=Alternative("it fell like that of Gaussian tokens of the same σ", gaussian),
        )
        for name, rate in others.items()
    ]


def _limit_claim(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Claim:
    """L times the error at the longest length, in units of its limit."""
    units = {name: limit / curves[name].lengths[-1] for name, limit in limits.items()}
    ratios = [(curves[name].mean[-1] / unit, curves[name].std_error[-1] / unit) for name, unit in units.items()]
    ratio, std_error = max(ratios, key=lambda pair: abs(pair[0] - 1) / pair[1])
    return Claim(
        id="output-concentration-limit",
        statement=(
            "For tokens that are clustered, uniform or signs, L times the error tends to the mean of tr(fluctuation) "
            "over queries: the ratio of the two at the longest length is 1, worst of three laws."
        ),
        source="derived here",
        box="mean-fluctuation",
        measured=ratio,
        expected=1.0,
        tolerance=comparison_quantile(len(ratios)) * std_error,
        std_error=std_error,
        alternative=Alternative("the noise were a third smaller", 1.5 * ratio),
    )


def draw(table: pd.DataFrame) -> Figure:
    """L times the error, a colour a law, over its limit."""
    figure, axes = plt.subplots(figsize=SIZE)
    laws = list(dict.fromkeys(table["law"]))
    for index, (law, marker) in enumerate(zip(laws, markers(len(laws)), strict=True)):
        mine = table[table["law"] == law]
        prompts, limit = (mine[mine["kind"] == kind] for kind in ("prompts", "limit"))
        times, look = prompts["length"], {"color": f"C{index}", "marker": marker, "label": law}
        error_bars(
            axes, times, times * prompts["error"], times * prompts["std_error"], linestyle="-", linewidth=1, **look
        )
        axes.plot(limit["length"], limit["length"] * limit["error"], color=f"C{index}", linestyle="--", linewidth=1.8)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="$L$ × mean squared error")
    few_decades(axes)
    legend_with(axes, {"limit": legend_line("--", 1.8)}, loc="upper left")
    return figure
