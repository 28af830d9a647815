r"""On average over queries $\nabla_U$ has a larger error than $\nabla_V$, by a ratio that grows over the simulated
lengths.

Both panels show the ratio of the two mean squared errors, with two standard errors. Left: against the length, by token
scale. Right: for one query of size $\tau$; longer prompts follow the limit (dashed) up to larger queries. The ratio
then levels off, higher for longer prompts, and falls again, towards $1/u^2$ (a heuristic), with $U=uI$.

Alt: Two panels. Left, ratios rise with the logarithm of the length, for the largest scale about in proportion to it.
Right, on a logarithmic axis, ratios rise with the query along a dashed curve and leave it one after the other, short
prompts first, each with a flat maximum at its own height and a slow fall beyond it.
"""

from collections.abc import Mapping

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.concentration.experiment import DIMENSION
from chapters.concentration.gradient_errors import BILINEAR, PairedErrors
from chapters.concentration.gradient_theory import long_prompt_limit, long_prompt_ratio
from chapters.concentration.parameters import MODERATE
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, markers
from lib.statistics import comparison_quantile, tells_apart


def numbers(measured: Mapping[float, PairedErrors], by_query: Mapping[float, PairedErrors], gain: float) -> Numbers:
    """Return ratios of the two errors, and the claims on long prompts and on the growth with the length."""
    groups = []
    for panel, family in {"scale": measured, "query": by_query}.items():
        for number, errors in family.items():
            logs, cov = errors.log_ratio
            base = {"panel": panel, "number": number, "length": errors.lengths}
            ratio = {"ratio": np.exp(logs), "std_error": np.exp(logs) * np.sqrt(np.diagonal(cov))}
            groups.append({**base, **ratio})
    taus = np.linspace(min(by_query), max(by_query), 60)
    groups.append({"panel": "query", "number": taus, "length": np.inf, "ratio": long_prompt_ratio(taus, gain)})
    columns = {
        "panel": Column(
            "`scale`: queries $N(0, I)$, tokens of scale $σ$; `query`: one query, tokens of scale 1", "name"
        ),
        "number": Column("$σ$ in the first panel, $τ$ in the second"),
        "length": Column("Tokens in the prompt, $L$; infinite in the limit of long prompts", "tokens"),
        "ratio": Estimate("Mean squared error of $∇_U$ divided by that of $∇_V$", std_error="std_error"),
    }
    return Numbers(Table.of(groups, columns), _claims(measured, by_query, gain))


def _claims(measured: Mapping[float, PairedErrors], by_query: Mapping[float, PairedErrors], gain: float) -> Claims:
    claim = Claims("gradient-concentration", source="derived here", box="gradient-fluctuation")
    # L times the error of ∇_U at the longest length, at small queries: its limit, and that of equal weights
    curves = {tau: errors.curve(BILINEAR) for tau, errors in by_query.items() if tau <= MODERATE}
    taus, length = np.asarray(list(curves)), next(iter(curves.values())).lengths[-1]
    means, std_errors = np.asarray([(curve.mean[-1], curve.std_error[-1]) for curve in curves.values()]).T
    weighted = long_prompt_limit(taus, gain) / length
    unweighted = (taus / gain) ** 2 * (DIMENSION**2 + DIMENSION) / length
    tolerance = comparison_quantile(len(curves))
    claim.agree(
        "query",
        f"At {len(curves)} queries of size $τ ≤ {MODERATE}$, $L$ times the mean squared error of $∇_U$ at the longest "
        "length agrees with the limit of long prompts, $‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d)$",
        (means - weighted) / std_errors,
        rejects=(
            "all tokens have the same weight, so that the limit is $‖z‖² (d² + d)$",
            (means - unweighted) / std_errors,
        ),
        requires=(
            tells_apart(weighted - unweighted, std_errors, tolerance),
            f"at $τ ≤ {max(curves):g}$ the limit hardly differs from that of equal weights, $‖z‖² (d² + d)$: by less "
            f"than {2 * tolerance:.2g} standard errors, so that the simulation cannot tell them apart",
        ),
    )
    sigma = max(measured)
    lengths, (logs, cov) = measured[sigma].lengths, measured[sigma].log_ratio
    growth = np.exp(logs[-1] - logs[0])
    std_error = growth * np.sqrt(cov[0, 0] + cov[-1, -1] - 2 * cov[0, -1])
    claim.at_least(
        "extra",
        f"At $σ = {sigma:g}$ the ratio of the errors of $∇_U$ and $∇_V$ grows from $L = {lengths[0]}$ to $L "
        f"= {lengths[-1]:,}$ (measured: the factor of this growth).",
        growth,
        1 + comparison_quantile(1) * std_error,
        because="the 99.9 % quantile of the growth that chance gives to a constant ratio",
        rejects=("both errors decrease in proportion to each other", 1.0),
        std_error=std_error,
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw ratios against the length by scale, and against the query size by length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.8))
    scale, query = (table[table["panel"] == panel] for panel in ("scale", "query"))
    sigmas, lengths = sorted(scale["number"].unique()), sorted(scale["length"].unique())
    # other colours than those of the lengths on the right
    reds = mpl.colormaps["autumn"](np.linspace(0.55, 0.0, len(sigmas)))
    line = {"linestyle": "-", "linewidth": 1}
    for (sigma, rows), colour, marker in zip(scale.groupby("number"), reds, markers(len(sigmas)), strict=True):
        error_bars(left, rows["length"], rows["ratio"], rows["std_error"], color=colour, marker=marker, **line)
        end, name = rows.iloc[-1], rf"$\sigma={sigma:g}$"
        rank = (scale.loc[scale["length"] == lengths[-1], "ratio"] < end["ratio"]).sum()
        label(left, end["length"], end["ratio"], name, colour, xytext=(8, 4 * (rank - 2)))
    top = scale[scale["number"] == sigmas[-1]].iloc[-1]
    left.axline((1, 0), (top["length"], 1.25 * top["ratio"]), color=ink(), linestyle="-.", linewidth=1.2)
    label(left, top["length"], 1.25 * top["ratio"], r"like $\ln L$", ink(), xytext=(-10, 6), ha="right")
    left.set(xscale="log", xlim=(lengths[0] / 2, 2 * lengths[-1]), ylim=(0, 1.4 * scale["ratio"].max()))
    left.set(xlabel="prompt length $L$", ylabel=r"error of $\nabla_U$ / error of $\nabla_V$")
    left.set_title("average over queries,\ntokens of scale $\\sigma$")
    label(left, 2 * lengths[-1], 1, "equal errors", ink(), xytext=(0, 9), ha="right")
    limit, finite = query[np.isinf(query["length"])], query[np.isfinite(query["length"])]
    for (length, rows), colour, marker in coloured(finite.groupby("length")):
        error_bars(right, rows["number"], rows["ratio"], rows["std_error"], color=colour, marker=marker, **line)
        label(right, rows["number"].iloc[-1], rows["ratio"].iloc[-1], f"$L={length:g}$", colour, xytext=(10, 0))
    right.plot(limit["number"], limit["ratio"], color=ink(), linestyle="--", linewidth=1.6)
    right.set(yscale="log", ylim=(finite["ratio"].min() / 1.5, 2 * finite["ratio"].max()))
    right.set(xlabel=r"size of the query, $\tau$", title="one query,\ntokens of scale 1")
    inside = limit[limit["ratio"] < 1.5 * finite["ratio"].max()].iloc[-1]
    label(right, inside["number"], inside["ratio"], r"$L=\infty$", ink(), xytext=(-8, 0), ha="right")
    label(right, query["number"].max(), 1, "equal errors", ink(), xytext=(0, -9), ha="right")
    for panel in (left, right):
        panel.axhline(1, color=ink(), linestyle=":", linewidth=1.5)
    left.minorticks_off()
    return figure
