r"""How much more $\nabla_U$ errs than $\nabla_V$.

Ratio of the two mean squared errors, with two standard errors. Left: for queries of the law $\nu$, against length,
by token scale; dash-dotted, a line proportional to $\ln L$. Right: for one query of size $\tau$, tokens of scale 1,
at the lengths drawn on the left. Dashed: prompts of infinite length. The factor grows with the query, until the
prompt is too short for it and the ratio levels off; longer prompts follow the dashed curve further.

Alt: Two panels. Left, ratios between three and forty rise with the logarithm of the length, for large scales in
proportion to it. Right, on a logarithmic axis, ratios rise with the query along a dashed curve and leave it one
after the other, short prompts first, each levelling off at its own height.
"""

from collections.abc import Mapping, Sequence

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from chapters.gradient_concentration.gradient_errors import DIMENSION, Errors, errors_of
from chapters.gradient_concentration.marks import MARKERS, SIZE, line
from chapters.gradient_concentration.parameters import MODERATE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.measures import Gaussian
from lib.statistics import comparison_quantile


def simulate(
    taus: Sequence[float], gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, Errors]:
    """By τ: prompts of tokens of scale 1, all asked the one query of that size."""
    return {
        tau: errors_of(1.0, gain, point(tau / gain), lengths, prompts, key=jr.fold_in(key, index))
        for index, tau in enumerate(taus)
    }


def point(norm: float) -> Gaussian:
    """The query of this length, as a law without width: of the type of `normal`, so that nothing compiles twice."""
    return Gaussian(norm * np.eye(DIMENSION)[0], np.zeros((DIMENSION, DIMENSION)))


def long_prompt_law(tau: Float[np.ndarray, "*n"], gain: float) -> Float[np.ndarray, "*n"]:
    """`lim L · error` of ∇_U at a query of size τ, tokens of scale 1: `‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d)`.

    The delta method of `fluctuation`, for the tilted covariance: `‖z‖² e^{Λ(2ξ)-2Λ(ξ)}` times the mean of
    `‖y yᵀ - ∇²Λ(ξ)‖²` over `y = z' - ∇Λ(ξ)`, z' of the law tilted by 2ξ, which for a Gaussian is N(Γξ, Γ).
    """
    square = tau**2
    return square / gain**2 * np.exp(square) * ((square + DIMENSION) ** 2 + 2 * square + DIMENSION)


def log_ratio(errors: Errors) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """`ln` of the error of ∇_U over that of ∇_V at each length, with its covariance: both are of the same prompts."""
    relative = errors.samples / errors.samples.mean(axis=0)
    difference = relative[..., 1] - relative[..., 0]
    ratio = np.log(errors.bilinear.mean / errors.value.mean)
    return ratio, np.cov(difference, rowvar=False) / len(difference)


def numbers(measured: Mapping[float, Errors], asked: Mapping[float, Errors], gain: float) -> Numbers:
    """Ratios of the two errors, what long prompts make of one query, and that the factor grows with the length."""
    return Numbers(_table(measured, asked, gain), (_query_claim(asked, gain), _growth_claim(measured)))


def _table(measured: Mapping[float, Errors], asked: Mapping[float, Errors], gain: float) -> Table:
    """Ratio of the two errors: by σ and length, and by query size and length."""
    frames = []
    for panel, family in {"scale": measured, "query": asked}.items():
        for number, errors in family.items():
            logs, cov = log_ratio(errors)
            ratio = np.exp(logs)
            lengths = errors.value.lengths.astype(float)
            spread = ratio * np.sqrt(np.diagonal(cov))
            base = {"panel": panel, "series": "prompts", "number": number, "length": lengths}
            frames.append(pd.DataFrame({**base, "ratio": ratio, "std_error": spread}))
    taus = np.linspace(min(asked), max(asked), 60)
    limit = long_prompt_law(taus, gain) / (DIMENSION * (DIMENSION + taus**2) * np.exp(taus**2))
    frames.append(pd.DataFrame({"panel": "query", "series": "limit", "number": taus, "ratio": limit}))
    columns = {
        "panel": Column("`scale`: queries N(0, I), tokens of scale σ; `query`: one query, tokens of scale 1", "name"),
        "series": Column("`prompts`: simulated; `limit`: prompts of infinite length", "name"),
        "number": Column("σ in the first panel, τ in the second"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "ratio": Column("Mean squared error of ∇_U over that of ∇_V", std_error="std_error"),
        "std_error": Column("Standard error of the simulated ratio", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _query_claim(asked: Mapping[float, Errors], gain: float) -> Claim:
    """L times the error of ∇_U at the longest length over its limit, worst over moderate queries."""
    taus = np.asarray([tau for tau in asked if tau <= MODERATE])
    curves = [asked[tau].bilinear for tau in taus]
    scaled, std_error = (
        np.asarray([curve.lengths[-1] * number[-1] for curve, number in pairs])
        for pairs in ([(c, c.mean) for c in curves], [(c, c.std_error) for c in curves])
    )

    def worst(law):
        return float(np.max(np.abs(scaled - law) / std_error))

    return Claim(
        id="gradient-concentration-query",
        statement=(
            f"At {len(taus)} queries of size τ ≤ {MODERATE}, L times the mean squared error of ∇_U is that of long "
            "prompts, ‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d): the worst deviation at the longest length, in standard errors."
        ),
        source="derived here",
        measured=worst(long_prompt_law(taus, gain)),
        expected=0.0,
        tolerance=comparison_quantile(len(taus)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative(
            "all tokens weighed the same, ‖z‖² (d² + d)", worst((taus / gain) ** 2 * (DIMENSION**2 + DIMENSION))
        ),
    )


def _growth_claim(measured: Mapping[float, Errors]) -> Claim:
    """At the largest σ the extra factor grows with the length, by more than chance."""
    sigma = max(measured)
    ratio, cov = log_ratio(measured[sigma])
    growth = np.exp(ratio[-1] - ratio[0])
    std_error = growth * np.sqrt(cov[0, 0] + cov[-1, -1] - 2 * cov[0, -1])
    low, high = measured[sigma].value.lengths[[0, -1]]
    return Claim(
        id="gradient-concentration-extra",
        statement=(
            f"At σ = {sigma:g} the error of ∇_U, over that of ∇_V, grows from L = {low} to L = {high}: by how much, "
            "beyond what chance would do to a constant ratio."
        ),
        source="[BB26, Prop. 3.4]",
        measured=growth,
        expected=1 + comparison_quantile(1) * std_error,
        tolerance=0.0,
        relation="≥",
        std_error=std_error,
        alternative=Alternative("both errors followed one law, up to a constant", 1.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Ratios against length by scale, and against the size of one query by length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    scale = table[table["panel"] == "scale"]
    sigmas = sorted(scale["number"].unique())
    for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), MARKERS, strict=False):
        mine = scale[scale["number"] == sigma]
        _bars(left, mine["length"], mine, rf"$\sigma={sigma:g}$", colour=colour, marker=marker)
    top = scale[scale["number"] == sigmas[-1]].iloc[-1]
    lengths = sorted(scale["length"].unique())
    left.axline((1, 0), (top["length"], 1.25 * top["ratio"]), color=ink(), linestyle="-.", linewidth=1.2)
    left.set(xscale="log", xlim=(lengths[0] / 2, 2 * lengths[-1]), ylim=(0, 1.4 * scale["ratio"].max()))
    left.set(xlabel="prompt length $L$", ylabel=r"error of $\nabla_U$ over error of $\nabla_V$")
    handles, labels = left.get_legend_handles_labels()
    left.legend([*handles, line("-.", 1.2)], [*labels, r"$\propto\ln L$"], loc="upper left")
    query = table[table["panel"] == "query"]
    for length, colour, marker in zip(lengths, sequence(len(lengths)), MARKERS, strict=False):
        mine = query[query["length"] == length]
        _bars(right, mine["number"], mine, f"$L={length:g}$", colour=colour, marker=marker)
    limit = query[query["series"] == "limit"]
    right.plot(limit["number"], limit["ratio"], color=ink(), linestyle="--", linewidth=1.6, label=r"$L=\infty$")
    measured = query[query["series"] == "prompts"]["ratio"]
    right.set(yscale="log", ylim=(measured.min() / 2, 8 * measured.max()), xlabel=r"size of the query, $\tau$")
    right.legend(loc="lower right")
    for panel in (left, right):
        panel.xaxis.set_minor_locator(NullLocator())
    return figure


def _bars(axes: Axes, x, frame, label: str, *, colour, marker: str) -> None:
    axes.errorbar(
        x,
        frame["ratio"],
        2 * frame["std_error"],
        color=colour,
        marker=marker,
        markersize=5.5,
        linewidth=1,
        capsize=2,
        label=label,
    )
