r"""If queries or tokens are bounded, every head has the exponent one.

Local slope $-\,d\ln\text{error}/d\ln L$ of the query-averaged mean square error, against $\ln L$, for three sizes of
the head. Left: Gaussian tokens, and queries uniform on an interval, of variance one; exact. Right: tokens that are
random signs, and standard normal queries; exact sums. Dashed: $\beta(H)$, to which the slopes tend if tokens and
queries are both Gaussian. The larger the head, the later bounded queries come to their exponent.

Alt: Two panels of local slope against logarithm of length. Left, three solid curves start low, rise one after the other
and all end at one, far above three dashed levels. Right, three solid curves reach one within a few hundred tokens.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sharp_rates.bounded_averages import Slopes
from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import exponent
from chapters.sharp_rates.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, markers, sequence

QUERIES, TOKENS = "queries", "tokens"


def numbers(queries: Mapping[float, Slopes], tokens: Mapping[float, Slopes]) -> Numbers:
    """Slopes by what is bounded and by head; at the longest prompts they are one."""
    table = _table({QUERIES: queries, TOKENS: tokens})
    return Numbers(table, (_queries_claim(table.frame), _tokens_claim(table.frame)))


def _table(slopes: Mapping[str, Mapping[float, Slopes]]) -> Table:
    frames = [
        pd.DataFrame(
            {
                "bounded": bounded,
                "squared_norm": squared,
                "log_length": these.log_lengths,
                "slope": these.slope,
                "gaussian": float(exponent(squared)),
            }
        )
        for bounded, heads in slopes.items()
        for squared, these in heads.items()
    ]
    columns = {
        "bounded": Column(
            "What is bounded: `queries` uniform on [-√3, √3], or `tokens` ±1; the others Gaussian", "name"
        ),
        "squared_norm": Column("H²; tokens and queries have variance 1"),
        "log_length": Column("ln L"),
        "slope": Column("-d ln error / d ln L of the mean square error averaged over queries, exact"),
        "gaussian": Column("β(H), the limit if tokens and queries are both Gaussian [heuristic]"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _queries_claim(frame: pd.DataFrame) -> Claim:
    read = frame[(frame["bounded"] == QUERIES) & (frame["log_length"] == READ_AT)]
    return Claim(
        id="sharp-rates-bounded-queries",
        statement=(
            f"Gaussian tokens and bounded queries: at ln L = {READ_AT:g} the local slope is 1 for H² = "
            f"{', '.join(f'{squared:g}' for squared in read['squared_norm'])}; the largest distance."
        ),
        source="derived here",
        box="bounded",
        measured=float(np.max(np.abs(read["slope"] - 1))),
        expected=0.0,
        # the next term of the error is smaller by about e^{3τ²}/L, nothing at this length: what is left is quadrature
        tolerance=1e-6,
        relation="≤",
        alternative=Alternative("β(H), as for Gaussian queries", float(np.max(np.abs(read["gaussian"] - 1)))),
    )


def _tokens_claim(frame: pd.DataFrame) -> Claim:
    mine = frame[frame["bounded"] == TOKENS]
    read = mine[mine["log_length"] == mine["log_length"].max()]
    return Claim(
        id="sharp-rates-bounded-tokens",
        statement=(
            "Tokens ±1 and Gaussian queries: between the two longest prompts the local slope is 1 for H² = "
            f"{', '.join(f'{squared:g}' for squared in read['squared_norm'])}; the largest distance."
        ),
        source="derived here",
        box="bounded",
        measured=float(np.max(np.abs(read["slope"] - 1))),
        expected=0.0,
        # the next term of the error is smaller by a moment over L; of tanh's derivatives these are single digits
        tolerance=float(10 * np.exp(-read["log_length"].max())),
        relation="≤",
        alternative=Alternative("β(H), as for Gaussian tokens", float(np.max(np.abs(read["gaussian"] - 1)))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel for what is bounded, a curve a head, the Gaussian levels dashed."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharey=True)
    titles = {QUERIES: "bounded queries, Gaussian tokens", TOKENS: "bounded tokens, Gaussian queries"}
    norms = sorted(table["squared_norm"].unique().tolist())
    for panel, (bounded, title) in zip(panels, titles.items(), strict=True):
        mine = table[table["bounded"] == bounded]
        for squared, colour, marker in zip(norms, sequence(len(norms)), markers(len(norms)), strict=True):
            curve = mine[mine["squared_norm"] == squared]
            level, last = curve["gaussian"].iloc[0], curve["log_length"].max()
            panel.plot(curve["log_length"], curve["slope"], linewidth=2, color=colour, marker=marker, markersize=4.5)
            panel.axhline(level, color=colour, linestyle="--", linewidth=1.2)
            name = f"$H^2={squared:g}$" + (", if both were Gaussian" if bounded == TOKENS else "")
            place = {"xytext": (0, 3), "ha": "right", "va": "bottom"}
            label(panel, last, level, name, colour, **place)
        panel.axhline(1, color=ink(), linewidth=0.8)
        panel.set(title=title, xlabel=r"$\ln L$", ylim=(0, 1.12))
    panels[0].set(xscale="log", ylabel="local slope of the error")
    panels[0].set_xticks([5, 20, 50, 200], labels=["5", "20", "50", "200"])
    panels[0].minorticks_off()
    headline(figure, "If queries or tokens are bounded, every head has the exponent 1")
    return figure
