r"""Centred elliptical tokens give the direction of linear attention, but its length only if they are Gaussian.

The vertical axis is the length of the output minus $Vm$, along $V\Gamma Uz$, for three elliptical distributions with
the same mean and covariance $\Gamma$. Curves are exact for the infinite prompt; points are means of finite prompts,
with two standard errors. Inset: the three outputs at the largest query. Large queries favour the larger of two scales;
tokens on an ellipsoid have outputs inside it.

Alt: Line chart of output length against query size. A straight diagonal for Gaussian tokens; a curve above it for a
mixture of two scales, a curve below it for tokens on an ellipsoid. All three touch at the origin. An
inset has three parallel arrows of different lengths.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.gaussian_limit.elliptical_prompts import CLUSTERS, COMPARED, EllipticalOutputs, length_factors
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.schematics import arrow
from companion.figures.style import COLUMN, error_bars, ink, label
from lib.statistics import comparison_quantile, standard_error, worst_deviation

SCALES = "two scales"
# Colour and name in the picture of each distribution.
LAWS = {
    SCALES: ("C1", "Gaussian,\none of two scales"),
    "Gaussian": ("C0", "Gaussian; dashed:\nlinear attention,\nall three"),
    "ellipsoid": ("C2", "on an ellipsoid"),
}
# The direction of the arrows in the inset.
RAY = np.array([0.95, 0.31])


def numbers(taus: Float[np.ndarray, " taus"], outputs: Mapping[str, EllipticalOutputs]) -> Numbers:
    """Return lengths of outputs by distribution, and the claims on direction and length."""
    clusters = outputs[CLUSTERS]
    outputs = {name: sample for name, sample in outputs.items() if name != CLUSTERS}
    groups = [
        {
            "law": name,
            "tau": taus,
            "exact": sample.exact @ sample.line / (sample.line @ sample.line),
            "prompts_mean": sample.along.mean(axis=0),
            "prompts_std_error": standard_error(sample.along),
        }
        for name, sample in outputs.items()
    ]
    columns = {
        "law": Column("Elliptical distribution of the tokens; all have the same mean and covariance $Γ$", "name"),
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$; also the output of linear attention"),
        "exact": Column("Output of the infinite prompt along $VΓUz$, in the unit in which Lemma 2.1 gives $τ$"),
        "prompts_mean": Estimate("Mean output of finite prompts", std_error="prompts_std_error"),
    }
    return Numbers(Table.of(groups, columns), _claims(taus, outputs, clusters))


def _claims(
    taus: Float[np.ndarray, " taus"], outputs: Mapping[str, EllipticalOutputs], clusters: EllipticalOutputs
) -> Claims:
    claim = Claims("gaussian-limit-elliptical", source="derived here", box="elliptical")
    claim.at_most(
        "direction",
        "The output for elliptical tokens of mean $m$ is $Vm$ plus a multiple of $VΓUz$ (measured: the "
        "largest part across that direction, relative to the output, over all distributions and query sizes).",
        max(sample.off_the_line for sample in outputs.values()),
        0,
        within=1e-10,
        because="rounding of numbers of order one in float64, with a margin",
        rejects=(
            "the same holds for two clusters of the same mean and covariance, which are not elliptical",
            clusters.off_the_line,
        ),
    )
    # queries at which many tokens of the finite prompts matter
    compared = taus <= COMPARED
    tau, closed = taus[compared], length_factors(taus[compared])
    samples = {name: sample.along[:, compared] for name, sample in outputs.items()}
    comparisons, prompts = len(samples) * tau.size, len(next(iter(samples.values())))
    claim.agree(
        "length",
        f"The output for elliptical tokens has the length $ψ(τ²)τ$, not $τ$: the means over {prompts} finite prompts "
        f"agree with it, for {len(samples)} distributions and {tau.size} query sizes up to {COMPARED:g}",
        [worst_deviation(sample - tau * closed[name]) for name, sample in samples.items()],
        within=comparison_quantile(comparisons, samples=prompts),
        because=f"99.9 % quantile of the largest of {comparisons} Student deviations",
        rejects=(
            "the output is $VΓUz$, a readout of the covariance, for every elliptical distribution",
            [worst_deviation(sample - tau) for sample in samples.values()],
        ),
        comparisons=comparisons,
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per distribution, the line of linear attention, and the three outputs as arrows in an inset."""
    figure, axes = plt.subplots(figsize=(COLUMN, 5.0))
    inset = axes.inset_axes((0.05, 0.55, 0.45, 0.31))
    for row, ((law, curve), marker) in enumerate(zip(table.groupby("law", sort=False), ("^", "o", "s"), strict=True)):
        (colour, name), last = LAWS[str(law)], curve.iloc[-1]
        axes.plot(curve["tau"], curve["exact"], color=colour, linewidth=2)
        shown = curve.iloc[1::3]
        error_bars(axes, shown["tau"], shown["prompts_mean"], shown["prompts_std_error"], color=colour, marker=marker)
        label(axes, last["tau"], last["exact"], name, colour)
        # three parallel arrows, one above the other
        start = np.array([0.0, -0.7 * row])
        arrow(inset, tuple(start), tuple(start + last["exact"] * RAY), color=colour, linewidth=2.2, mutation_scale=14)
        if law == SCALES:
            few, name = shown.iloc[-1], "points: finite prompts,\nhere too short"
            label(axes, few["tau"], few["prompts_mean"], name, colour, xytext=(18, 0))
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    inset.set(xlim=(-0.1, 5), ylim=(-1.6, 2.2))
    inset.axis("off")
    inset.set_title(f"outputs at $\\tau={table['tau'].max():g}$:\none direction, three lengths", fontsize=12)
    axes.set(xlim=(0, table["tau"].max()), ylim=(0, 1.3 * table["exact"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel="length of the output\nin the direction of linear attention")
    return figure
