r"""The three steps of the proof, on Gaussian tokens.

Above: the normalised partition function $W=\frac1L\sum_ie^{\langle\xi,z_i\rangle-\Lambda(\xi)}$, whose mean is 1 at
every query size $\tau$: median, central half and nine tenths of its distribution over prompts. It concentrates for
small $\tau$ only. Once $\tau$ passes the size of the largest of $L$ normals (dotted), the largest term alone
(dashed: its median) is most of $W$. Below on the left: share of prompts and queries with a weight above
$M=L^\kappa$; exact (lines), simulated (points, two standard errors). It is this share that falls like
$L^{-c/\sigma^2}$. On the right, at the least $\sigma$: the error, its part from the prompts above $M$, and the bound
$(\max_i\|Vz_i\|+\|T[\mu](z)\|)^2$ of that part, means over all prompts.

Alt: Three panels. Above, a band around zero that bends downward and widens as the query grows. Below on
the left, log-log: falling curves with points, the lowest falling fastest and the highest almost flat near one. On the
right, log-log: an upper series stays nearly flat while two lower ones fall together, the lower ever further below.
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

from chapters.output_concentration.exact_error import LONGEST, SHORTEST
from chapters.output_concentration.experiment import DIMENSION
from chapters.output_concentration.partition_functions import Partitions
from chapters.output_concentration.proof_quantities import Parts, share_above, share_above_given
from chapters.output_concentration.style import coloured
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, few_decades, headline, ink, legend_line, markers
from lib.statistics import comparison_quantile, standard_error, worst_deviation

# Of ln W over prompts.
QUANTILES = {"lowest": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "highest": 0.95}


def numbers(partitions: Partitions, parts: Mapping[float, Parts], gain: float, truncation: float) -> Numbers:
    """Partition functions, shares above M and the parts of the error; how large the shares are, and the ceiling."""
    table = _table(partitions, parts, gain, truncation)
    return Numbers(table, (_share_claim(parts, gain, truncation), _ceiling_claim(parts)))


def _table(partitions: Partitions, parts: Mapping[float, Parts], gain: float, truncation: float) -> Table:
    """Three panels: partition functions against τ, share above M against L by σ, the parts of the error at least σ."""
    dense = np.geomspace(SHORTEST, LONGEST, 37)
    frames = _partition_frames(partitions)
    for sigma, these in parts.items():
        exact = {"x": dense, "value": share_above(gain * sigma, DIMENSION, truncation, dense)}
        frames.append(pd.DataFrame({"panel": "share", "series": "exact", "sigma": sigma, **exact}))
        frames.append(_simulated("share", "prompts", sigma, these.lengths, these.samples.above))
    least = min(parts)
    of_least = parts[least].samples
    split = {"error": of_least.gap, "above": of_least.gap_above, "ceiling": of_least.ceiling_above}
    frames += [_simulated("split", name, least, parts[least].lengths, samples) for name, samples in split.items()]
    columns = {
        "panel": Column("`partition`, `share` or `split`", "name"),
        "series": Column(
            "Quantiles 5, 25, 50, 75, 95 % of ln W over prompts, and the median of its largest term; share of prompts "
            "and queries with a weight above M, exact or simulated; error, its part with a weight above M, and there "
            "the mean of the square of max‖Vz_i‖ plus the length of the limit",
            "name",
        ),
        "sigma": Column("Token scale σ"),
        "tokens": Column("Tokens in each prompt of the first panel, L", "tokens"),
        "x": Column("Query size τ in the first panel, tokens L in the others"),
        "value": Column("ln W, a share, or a mean squared error", std_error="std_error", absolute=1e-9),
        "std_error": Column("Standard error of the simulated value: of a quantile, or of a mean", moves_with="value"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _partition_frames(partitions: Partitions) -> list[pd.DataFrame]:
    """Quantiles of ln W against τ, then the median of its largest term where that is most of it."""
    base, frames = {"panel": "partition", "tokens": partitions.length}, []
    for name, level in QUANTILES.items():
        value, std_error = partitions.quantile(level)
        frames.append(
            pd.DataFrame({**base, "series": name, "x": partitions.taus, "value": value, "std_error": std_error})
        )
    taus, logs = partitions.largest_term_alone
    return [*frames, pd.DataFrame({**base, "series": "alone", "x": taus, "value": logs})]


def _simulated(
    panel: str, series: str, sigma: float, lengths: Sequence[int], samples: Float[np.ndarray, "prompts k"]
) -> pd.DataFrame:
    """Means over prompts, with standard errors."""
    means = {"x": np.asarray(lengths, float), "value": samples.mean(axis=0), "std_error": standard_error(samples)}
    return pd.DataFrame({"panel": panel, "series": series, "sigma": sigma, **means})


def _share_claim(parts: Mapping[float, Parts], gain: float, truncation: float) -> Claim:
    """Simulated against exact share above the truncation, worst over σ and L."""
    lengths = np.asarray(next(iter(parts.values())).lengths, float)

    def worst(share):
        return max(worst_deviation(these.samples.above - share(gain * sigma)) for sigma, these in parts.items())

    comparisons = len(parts) * len(lengths)
    return Claim(
        id="output-concentration-share",
        statement=(
            f"The share of prompts and queries with a weight above M = L^{truncation:g} is E[1 - Φ(κ ln L / H‖z‖)^L], "
            f"κ = {truncation:g}: the worst deviation of {comparisons} simulated shares, in standard errors."
        ),
        source="derived here",
        box="share-above",
        measured=worst(lambda norm: share_above(norm, DIMENSION, truncation, lengths)),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        alternative=Alternative(
            "all queries had the root mean square length √d",
            worst(lambda norm: share_above_given(norm * np.sqrt(DIMENSION), truncation, lengths)),
        ),
    )


def _ceiling_claim(parts: Mapping[float, Parts]) -> Claim:
    """`‖T[μ̂_L](z)‖ ≤ max_i ‖Vz_i‖`, prompt by prompt."""
    return Claim(
        id="output-concentration-ceiling",
        statement=(
            "No output is longer than the longest value ‖Vz_i‖ of its prompt: the largest share that is, of prompts "
            "and queries, over scales and lengths."
        ),
        source="[BB26, Prop. 3.1]",
        box="bb26-prop-3-1",
        measured=max(float(these.samples.longer.mean(axis=0).max()) for these in parts.values()),
        expected=0.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(
            "outputs were those of the infinite prompt",
            max(float(these.samples.limit_longer.mean(axis=0).max()) for these in parts.values()),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a step: partition functions above, the share of large weights and the parts of the error below."""
    figure, grid = plt.subplot_mosaic([["first", "first"], ["second", "third"]], figsize=(8.0, 7.4))
    partition, share, split = (table[table["panel"] == panel] for panel in ("partition", "share", "split"))
    _partition_panel(grid["first"], partition)
    second, third = grid["second"], grid["third"]
    for sigma, colour, marker in coloured(sorted(share["sigma"].unique())):
        mine = share[share["sigma"] == sigma]
        exact, prompts = (mine[mine["series"] == series] for series in ("exact", "prompts"))
        second.plot(exact["x"], exact["value"], color=colour, linewidth=2)
        look = {"color": colour, "marker": marker, "label": rf"$\sigma={sigma:g}$"}
        error_bars(second, prompts["x"], prompts["value"], prompts["std_error"], **look)
    second.set(xscale="log", yscale="log", xlim=(2, share["x"].max()))
    second.set(xlabel="prompt length $L$", ylabel="share of prompts and queries")
    second.set_title("2. weights above $M$ become rare")
    names = {"ceiling": "bound above $M$", "error": "error", "above": "error above $M$"}
    for index, (series, marker) in enumerate(zip(names, markers(len(names)), strict=True)):
        mine, look = split[split["series"] == series], {"color": f"C{index}", "marker": marker, "label": names[series]}
        error_bars(third, mine["x"], mine["value"], mine["std_error"], linestyle="-", linewidth=1, **look)
    third.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean square")
    third.set_title(rf"3. what they add to the error, $\sigma={split['sigma'].iloc[0]:g}$")
    for panel in (second, third):
        few_decades(panel)
        panel.legend(loc="lower left", handletextpad=0.3)
    second.set_xticks([1e1, 1e4, 1e7, 1e10])
    headline(figure, "Why the output concentrates: large weights become rarer")
    return figure


def _partition_panel(axes: Axes, frame: pd.DataFrame) -> None:
    """Bands of the distribution, its median, and the largest term where it is alone."""
    by_name = {name: frame[frame["series"] == name] for name in (*QUANTILES, "alone")}
    taus, median, alone = by_name["median"]["x"], by_name["median"], by_name["alone"]
    for low, high, alpha in (("lowest", "highest", 0.18), ("low", "high", 0.3)):
        axes.fill_between(taus, by_name[low]["value"], by_name[high]["value"], color="C0", alpha=alpha, linewidth=0)
    axes.plot(taus, median["value"], color="C0", linewidth=2)
    axes.plot(alone["x"], alone["value"], color=ink(), linestyle="--", linewidth=1.5)
    axes.axhline(0, color=ink(), linewidth=1)
    axes.axvline(alone["x"].min(), color=ink(), linestyle=":", linewidth=1.5)
    axes.set(xlim=(0, taus.max()), xlabel=r"size of the query, $\tau$", ylabel=r"$\ln W$")
    axes.set_title(
        f"1. the partition function concentrates, until one token takes over ($L={int(frame['tokens'].iloc[0])}$)"
    )
    middle = Line2D([], [], color="C0", linewidth=2)
    bands = [Patch(color="C0", alpha=alpha) for alpha in (0.45, 0.18)]
    names = ["median of $W$", "half of the prompts", "nine tenths", "largest term alone", "largest of $L$ normals"]
    axes.legend([middle, *bands, legend_line("--", 1.5), legend_line(":", 1.5)], names, loc="lower left")
