r"""Prompts and queries with a large unnormalised weight become rarer on longer prompts, and slowly if tokens are large.

Two steps of the proof for Gaussian tokens. Left: fraction of prompts and queries with some $e^{\langle\xi,z_i\rangle}$
above $M=L^\kappa$, exact (lines) and simulated (points, two standard errors). Right: the normalised partition function
$W=\frac1L\sum_ie^{\langle\xi,z_i\rangle-\Lambda(\xi)}$, of mean 1. Beyond the size of the largest of $L$ normals the
largest term (dashed: its median) is a large part of $W$.

Details:
The exponents at the curves are slopes at the longest prompts; heuristically they are about $-c/\sigma^2$. The table
also has, for the smallest $\sigma$, the mean squared error, the part of it from prompts with a large weight, and the
bound $(\max_i\|Vz_i\|+\|T[\mu](z)\|)^2$ of this part.

Alt: Two panels. Left, log-log: falling curves with points, the lowest falling fastest and the highest almost flat near
one. Right, a band around zero, marked "many tokens share the sum", bends downward and widens as the query grows, where
it is marked "one token has a large part".
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from chapters.concentration.exact_error import LONGEST, SHORTEST
from chapters.concentration.experiment import DIMENSION
from chapters.concentration.partition_functions import Partitions
from chapters.concentration.proof_quantities import SimulatedProof, fraction_above, fraction_above_given
from chapters.style import coloured
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, few_decades, ink, label, legend_line
from lib.statistics import standard_error, worst_deviation

# Quantiles of ln W over prompts.
QUANTILES = {"lowest": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "highest": 0.95}


def numbers(partitions: Partitions, proofs: Mapping[float, SimulatedProof], gain: float, truncation: float) -> Numbers:
    """Return partition functions, fractions above M and parts of the error, and the claims on fractions and ceiling."""
    dense = np.geomspace(SHORTEST, LONGEST, 37)
    groups = _partition_groups(partitions)
    for sigma, proof in proofs.items():
        above = fraction_above(gain * sigma, DIMENSION, truncation, dense)
        groups.append({"panel": "share", "series": "exact", "fixed": sigma, "x": dense, "value": above})
        groups.append(_simulated("share", "prompts", sigma, proof.lengths, proof.samples.above))
    smallest = min(proofs)
    samples = proofs[smallest].samples
    split = {"error": samples.gap, "above": samples.gap_above, "ceiling": samples.ceiling_above}
    groups += [_simulated("split", name, smallest, proofs[smallest].lengths, part) for name, part in split.items()]
    columns = {
        "panel": Column("`partition`, `share` or `split`", "name"),
        "series": Column(
            "Quantiles 5, 25, 50, 75, 95 % of $ln W$ over prompts, and the median of its largest term; fraction "
            "of prompts and queries with a weight above $M$, exact or simulated; error, its part with a weight "
            "above $M$, and the mean of ($max ‖Vz_i‖$ plus the length of the limit)² over that part",
            "name",
        ),
        "fixed": Column("Tokens in each prompt, $L$, in the first panel; token scale $σ$ in the others"),
        "x": Column("Query size $τ$ in the first panel, tokens $L$ in the others"),
        "value": Column("$ln W$, a fraction, or a mean squared error", std_error="std_error", absolute=1e-9),
        "std_error": Column("Standard error of the simulated value: of a quantile, or of a mean", moves_with="value"),
    }
    return Numbers(Table.of(groups, columns), _claims(proofs, gain, truncation))


def _claims(proofs: Mapping[float, SimulatedProof], gain: float, truncation: float) -> Claims:
    claim = Claims("output-concentration", source="derived here")
    lengths = np.asarray(next(iter(proofs.values())).lengths, float)
    right, wrong = [], []
    for sigma, proof in proofs.items():
        above, norm = proof.samples.above, gain * sigma
        right.append(worst_deviation(above - fraction_above(norm, DIMENSION, truncation, lengths)))
        wrong.append(worst_deviation(above - fraction_above_given(norm * np.sqrt(DIMENSION), truncation, lengths)))
    claim.agree(
        "share",
        f"The fraction of prompts and queries with a weight above $M = L^κ$, $κ = {truncation:g}$, is $𝔼[1 - "
        "Φ(κ ln L / H‖z‖)^L]$: simulated fractions agree with it",
        right,
        rejects=("all queries have the root mean square length $√d$", wrong),
        comparisons=len(proofs) * len(lengths),
        box="share-above",
    )
    claim.at_most(
        "ceiling",
        "No output is longer than the longest value $‖Vz_i‖$ of its prompt (measured: the largest fraction "
        "of prompts and queries that violate this, over scales and lengths).",
        max(proof.samples.longer.mean(axis=0).max() for proof in proofs.values()),
        0,
        because="an output is a convex combination of values; rounding is allowed for in the comparison of lengths",
        rejects=(
            "the output is that of the infinite prompt",
            max(proof.samples.limit_longer.mean(axis=0).max() for proof in proofs.values()),
        ),
        source="[BB26, Prop. 3.1]",
        box="bb26-prop-3-1",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the fraction with a large weight, and the distribution of the partition function."""
    figure, (first, second) = plt.subplots(1, 2, figsize=(WIDE, 4.8), width_ratios=(1.1, 1))
    partition, fraction = (table[table["panel"] == panel] for panel in ("partition", "share"))
    sigmas = sorted(fraction["fixed"].unique())
    for (sigma, rows), colour, marker in coloured(fraction.groupby("fixed")):
        exact, prompts = (rows[rows["series"] == series] for series in ("exact", "prompts"))
        first.plot(exact["x"], exact["value"], color=colour, linewidth=2)
        error_bars(first, prompts["x"], prompts["value"], prompts["std_error"], color=colour, marker=marker)
        slope = np.polyfit(*np.log(exact[["x", "value"]].tail(3).to_numpy().T), 1)[0]
        up = {0: 3, 1: -3}.get(len(sigmas) - 1 - sigmas.index(sigma), 0)  # the highest end next to each other
        name = rf"$\sigma={sigma:g}$: like $L^{{{slope:.2g}}}$"
        label(first, exact["x"].max(), exact["value"].iloc[-1], name, colour, xytext=(6, up))
    first.set(xscale="log", yscale="log", xlim=(2, fraction["x"].max()), xlabel="prompt length $L$")
    first.set(ylabel="fraction of prompts and queries with a\nweight above the threshold $M=L^\\kappa$")
    first.set_title("Large weights, tokens of scale $\\sigma$")
    few_decades(first)
    first.set_xticks([1e1, 1e4, 1e7, 1e10])
    _partition_panel(second, partition)
    return figure


def _partition_panel(axes: Axes, frame: pd.DataFrame) -> None:
    """Draw bands of the distribution, its median, and the largest term where it is a large part of W."""
    by_name = {name: frame[frame["series"] == name] for name in (*QUANTILES, "alone")}
    taus, median, alone = by_name["median"]["x"], by_name["median"], by_name["alone"]
    for low, high, alpha in (("lowest", "highest", 0.18), ("low", "high", 0.3)):
        axes.fill_between(taus, by_name[low]["value"], by_name[high]["value"], color="C0", alpha=alpha, linewidth=0)
    axes.plot(taus, median["value"], color="C0", linewidth=2)
    axes.plot(alone["x"], alone["value"], color=ink(), linestyle="--", linewidth=1.5)
    axes.axhline(0, color=ink(), linewidth=1)
    axes.axvline(alone["x"].min(), ymin=0.36, color=ink(), linestyle=":", linewidth=1.5)
    axes.set(xlim=(0, taus.max()), ylim=(None, 4), xlabel=r"size of the query, $\tau$")
    axes.set_ylabel(r"sum of the weights over its mean, $\ln W$")
    axes.set_title(f"The sum of the weights, $L={frame['fixed'].iloc[0]:.0f}$")
    look = {"transform": axes.transAxes, "va": "top"}
    axes.text(0.02, 0.98, "many tokens\nshare the sum", ha="left", **look)
    axes.text(0.97, 0.98, "one token\nhas a large part", ha="right", **look)
    label(axes, alone["x"].min(), -4, "$\\tau$ = largest\nof $L$ normals", ink(), xytext=(-6, 0), ha="right")
    middle = Line2D([], [], color="C0", linewidth=2)
    bands = [Patch(color="C0", alpha=alpha) for alpha in (0.45, 0.18)]
    names = ["median", "half of prompts", "nine tenths", "largest term"]
    axes.legend([middle, *bands, legend_line("--", 1.5)], names, loc="lower left", handlelength=1.3, fontsize=10)


def _partition_groups(partitions: Partitions) -> list[dict]:
    """Return quantiles of ln W against τ, and the median of its largest term where it is a large part of W."""
    base, groups = {"panel": "partition", "fixed": partitions.length}, []
    for name, level in QUANTILES.items():
        value, std_error = partitions.quantile(level)
        groups.append({**base, "series": name, "x": partitions.taus, "value": value, "std_error": std_error})
    taus, logs = partitions.largest_term_alone
    return [*groups, {**base, "series": "alone", "x": taus, "value": logs}]


def _simulated(
    panel: str, series: str, sigma: float, lengths: Sequence[int], samples: Float[np.ndarray, "prompts k"]
) -> dict:
    """Return means over prompts, with standard errors."""
    means = {"x": np.asarray(lengths, float), "value": samples.mean(axis=0), "std_error": standard_error(samples)}
    return {"panel": panel, "series": series, "fixed": sigma, **means}
