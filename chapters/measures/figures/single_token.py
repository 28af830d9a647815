r"""The error of normal tokens is known exactly at every length; at one token it is not zero, but the bound is.

The vertical axis is $\mathbb{E}\,(T[\hat\mu_L]-\tau)^2$ of prompts of $L$ standard normal tokens; the output of the
infinite prompt is $\tau$. Points are simulated, with two standard errors (smaller than the points); solid curves are
exact, by quadrature. The paper leaves the constants of the bound open; here $c_2$ is the slope fitted to the exact
values at $L\ge2$, and $c_1$ the smallest constant that bounds them.

Alt: Log-log plot of mean squared error against prompt length from one token on, one colour for each query size. Points
are on solid falling curves. The dashed curves of the bound touch the solid ones at two tokens, run above them from
there on, and plunge towards zero at one token, where rings mark errors between one and a few units.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from chapters.measures.short_prompt_errors import ShortPrompts
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point, legend_with
from lib.statistics import comparison_quantile, standard_error, tells_apart


def numbers(simulated: ShortPrompts, exact: Float[np.ndarray, "lengths taus"]) -> Numbers:
    """Return simulated and exact errors with the form of the bound, and the claims on short prompts."""
    taus, lengths = simulated.taus, simulated.lengths
    groups, longer, dense = [], simulated.longer, np.geomspace(1, max(lengths), 121)
    for tau, squares, values in zip(taus, np.moveaxis(simulated.squares, -1, 0), exact.T, strict=True):
        bound = _form_of_the_bound(np.asarray(lengths)[longer], values[longer], dense)
        prompts = {"error": squares.mean(axis=0), "std_error": standard_error(squares)}
        groups += [
            {"tau": tau, "kind": "prompts", "length": lengths, **prompts},
            {"tau": tau, "kind": "exact", "length": lengths, "error": values},
            {"tau": tau, "kind": "bound", "length": dense, "error": bound},
        ]
    columns = {
        "tau": Column("Size of the query, $τ$: the standard deviation of a score"),
        "kind": Column(
            "`prompts`: simulated; `exact`: by quadrature; `bound`: $c₁ ln L / L^{c₂}$, $c₂$ the slope fitted to "
            "the exact values at $L ≥ 2$, $c₁$ the smallest constant that bounds them",
            "name",
        ),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Estimate("Mean squared error of the output around its limit", std_error="std_error"),
    }
    return Numbers(Table.of(groups, columns), _claims(simulated, exact))


def _claims(simulated: ShortPrompts, exact: Float[np.ndarray, "lengths taus"]) -> Claims:
    claim = Claims("measures", source="[BB26, Prop. 3.1]")
    squares = np.asarray(simulated.taus) ** 2
    ratios = simulated.single_tokens / (1 + squares)
    means, std_errors = ratios.mean(axis=0), standard_error(ratios)
    worst = np.argmax(np.abs(means - 1) / std_errors)
    claim.equal(
        "single-token",
        "A prompt of one standard normal token has a mean squared error of $1 + τ²$ (measured: the ratio of "
        f"the two, at the one of {len(squares)} query sizes with the largest deviation). At $L = 1$ the bound "
        "$c₁σ⁶ ln L / L^{c₂/σ²}$ is 0.",
        means[worst],
        1,
        within=comparison_quantile(len(squares)) * std_errors[worst],
        because=f"99.9 % quantile of the largest of {len(squares)} normal deviations, times the standard error",
        rejects=("the bound also holds for one token, where $ln L$ is 0", np.log(1.0)),
        std_error=std_errors[worst],
        box="bb26-prop-3-1",
    )
    # all L ≥ 2, where errors can differ from those of long prompts
    long = (1 + squares) * np.exp(squares) / np.asarray(simulated.lengths)[:, None]
    means, std_errors, right, wrong = (
        values[simulated.longer]
        for values in (simulated.squares.mean(axis=0), standard_error(simulated.squares), exact, long)
    )
    tolerance = comparison_quantile(right.size)
    claim.agree(
        "short-prompts",
        f"At {right.size} pairs of a query size and a length $L ≥ 2$, the simulated mean squared error "
        "agrees with the exact one",
        (means - right) / std_errors,
        rejects=("short prompts have the error of long ones, $(1 + τ²)e^{τ²}/L$", (means - wrong) / std_errors),
        requires=(
            tells_apart(right - wrong, std_errors, tolerance),
            f"at these lengths and at $τ ≤ {max(simulated.taus):g}$ the exact error and that of long prompts, $(1 + "
            f"τ²)e^{{τ²}}/L$, differ by less than {2 * tolerance:.2g} standard errors of {len(simulated.squares)} "
            "prompts, so that the simulation cannot tell them apart",
        ),
        source="derived here",
        box="short-prompt-error",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw, in one colour per query size, simulated points, the exact curve, the form of the bound, and one ring."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.8))
    errors = table[table["kind"] == "exact"]["error"]
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean squared error")
    axes.set(xlim=(0.85, 1.15 * table["length"].max()), ylim=(errors.min() / 2, 6 * errors.max()))
    for (tau, rows), colour, marker in coloured(table.groupby("tau")):
        prompts, exact, bound = (rows[rows["kind"] == kind] for kind in ("prompts", "exact", "bound"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.6, linestyle="--")
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], color=colour, marker=marker)
        for curve, name, down in ((exact, rf"$\tau={tau:g}$", 0), (bound, rf"bound, $\tau={tau:g}$", -5)):
            label(axes, curve["length"].iloc[-1], curve["error"].iloc[-1], name, colour, xytext=(10, down))
        axes.plot(1, 1 + tau**2, "o", color=ink(), markersize=12, fillstyle="none", markeredgewidth=1.6, zorder=6)
    # above the last ring, that of the largest query
    label(axes, 1, 1 + tau**2, "at one token: error $1+\\tau^2$ (rings), bound 0", ink(), xytext=(-4, 20))
    lines = {"exact": legend_line("-"), "simulated": legend_point()}
    lines[r"form of the bound, $c_1\,\ln L\,/\,L^{c_2}$"] = legend_line("--", 1.6)
    legend_with(axes, lines, loc="lower left", bbox_to_anchor=(0.04, 0.0))
    return figure


def _form_of_the_bound(
    lengths: Int[np.ndarray, " k"], errors: Float[np.ndarray, " k"], at: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Return `c₁ ln L / L^{c₂}` at the lengths `at`: c₂ the fitted slope, c₁ the smallest that bounds all errors."""
    logs = np.log(np.asarray(lengths, float))
    centred = logs - logs.mean()
    slope = -(np.log(errors) @ centred) / (centred @ centred)

    def form(length):
        return np.log(length) * np.exp(-slope * np.log(length))

    return np.max(errors / form(lengths)) * form(at)
