r"""If queries are bounded and tokens Gaussian, or tokens bounded and queries Gaussian, the error has the exponent one.

The exponent is $-\,d\ln\text{error}/d\ln L$ of the query-averaged mean square error. Left: Gaussian tokens and queries
uniform on an interval, with variance one; exact. Right: tokens that are random signs and standard normal queries; exact
sums. Dashed: the limit $\beta(H)$ if both are Gaussian.

Alt: Two panels of local slope against logarithm of length. Left, three solid curves start low, rise one after the other
and all end at one, far above three dashed levels. Right, three solid curves reach one within a few hundred tokens.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import exponent
from chapters.sharp_rates.slopes import Slopes
from chapters.style import coloured
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at

QUERIES, TOKENS = "queries", "tokens"


def numbers(queries: Mapping[float, Slopes], tokens: Mapping[float, Slopes]) -> Numbers:
    """Return the slopes for bounded queries and bounded tokens, and the claims that they end at one."""
    groups = [
        {
            "bounded": bounded,
            "squared_norm": squared,
            "log_length": head.log_lengths,
            "slope": head.slope,
            "gaussian": float(exponent(squared)),
        }
        for bounded, heads in ((QUERIES, queries), (TOKENS, tokens))
        for squared, head in heads.items()
    ]
    columns = {
        "bounded": Column(
            "The bounded variable: `queries` uniform on $[-√3, √3]$, or `tokens` ±1; the other one is Gaussian", "name"
        ),
        "squared_norm": Column("$H²$; tokens and queries have variance 1"),
        "log_length": Column("$ln L$"),
        "slope": Column("Exact $-d ln(\\mathrm{error})/d ln L$ of the mean square error averaged over queries"),
        "gaussian": Column("$β(H)$, the limit if tokens and queries are both Gaussian [heuristic]"),
    }
    table = Table.of(groups, columns)
    claim = Claims("sharp-rates", source="derived here", box="bounded")
    of_queries, of_tokens = (table.frame[table.frame["bounded"] == bounded] for bounded in (QUERIES, TOKENS))
    read = of_queries[of_queries["log_length"] == READ_AT]
    claim.at_most(
        "bounded-queries",
        f"With Gaussian tokens and bounded queries the local slope of the error at $ln L = {READ_AT:g}$ is 1, for "
        f"$H² = {', '.join(f'{squared:g}' for squared in queries)}$ (measured: the largest distance).",
        (read["slope"] - 1).abs().max(),
        0.0,
        within=1e-6,
        because="the next term of the error, smaller by about $e^{3τ²}/L$, is negligible here; the rest is quadrature",
        rejects=("the slope is $β(H)$, as for Gaussian queries", (read["gaussian"] - 1).abs().max()),
    )
    longest = of_tokens["log_length"].max()
    read = of_tokens[of_tokens["log_length"] == longest]
    claim.at_most(
        "bounded-tokens",
        "With tokens $±1$ and Gaussian queries the local slope of the error between the two longest prompts is 1, "
        f"for $H² = {', '.join(f'{squared:g}' for squared in tokens)}$ (measured: the largest distance).",
        (read["slope"] - 1).abs().max(),
        0.0,
        within=10 * np.exp(-longest),
        because="$10/L$: the next term is smaller by $1/L$ times moments of derivatives of tanh, which are below ten",
        rejects=("the slope is $β(H)$, as for Gaussian tokens", (read["gaussian"] - 1).abs().max()),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per bounded variable and one curve per head, with dashed lines at the Gaussian exponents."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharey=True)
    titles = {QUERIES: "bounded queries, Gaussian tokens", TOKENS: "bounded tokens, Gaussian queries"}
    norms = sorted(table["squared_norm"].unique().tolist())
    for panel, (bounded, title) in zip(panels, titles.items(), strict=True):
        rows = table[table["bounded"] == bounded]
        for squared, colour, marker in coloured(norms):
            curve = rows[rows["squared_norm"] == squared]
            level, last = curve["gaussian"].iloc[0], curve["log_length"].max()
            panel.plot(curve["log_length"], curve["slope"], linewidth=2, color=colour, marker=marker, markersize=4.5)
            panel.axhline(level, color=colour, linestyle="--", linewidth=1.2)
            name = f"$H^2={squared:g}$"
            label(panel, last, level, f"{name}, both Gaussian", colour, ha="right", va="bottom", xytext=(0, 3))
            if bounded == QUERIES:
                start = curve.sort_values("log_length").iloc[0]
                label(panel, start["log_length"], start["slope"], name, colour, ha="right", xytext=(-6, 0))
            elif squared == norms[-1]:
                label(panel, last, 1, "all three $H^2$ coincide", colour, ha="right", va="top", xytext=(0, -6))
        panel.axhline(1, color=ink(), linewidth=0.8)
        panel.set(title=title, xlabel=r"$\ln L$", ylim=(0, 1.12))
    panels[0].set(xscale="log", xlim=(1.7, None), ylabel="exponent of the error (local slope)")
    ticks_at(panels[0].xaxis, [5, 20, 50, 200])
    label(panels[0], 1.7, 0.285, "size of the head, $H^2$", ink(), xytext=(8, 0))
    return figure
