r"""The three steps of the proof, on Gaussian tokens.

Left: the normalised partition function $W=\frac1L\sum_ie^{\langle\xi,z_i\rangle-\Lambda(\xi)}$, whose mean is 1 at
every query size $\tau$: median, central half and nine tenths of its distribution over prompts. It concentrates for
small $\tau$ only. Once $\tau$ passes the size of the largest of $L$ normals (dotted), the largest term alone
(dashed: its median) is most of $W$. Middle: share of prompts and queries with a weight above $M=L^\kappa$; exact
(lines), simulated (points, two standard errors). It is this share that falls like $L^{-c/\sigma^2}$. Right, at the
least $\sigma$: the error, its part from the prompts above $M$, and the bound
$(\max_i\|Vz_i\|+\|T[\mu](z)\|)^2$ of that part, means over all prompts.

Alt: Three panels. Left, a band around zero that bends downward and widens as the query grows. Middle, log-log: four
falling curves with points, the lowest falling fastest and the highest almost flat near one. Right, log-log: an
upper series stays nearly flat while two lower ones fall together, the lower of the two ever further below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator
from scipy.special import log_ndtr, ndtri

from chapters.output_concentration.anatomy import ABOVE, CEILING_ABOVE, EXCESS, GAP, GAP_ABOVE, LIMIT_EXCESS, Parts
from chapters.output_concentration.exact_error import LONGEST, SHORTEST
from chapters.output_concentration.marks import MARKERS, coloured, error_bars
from chapters.output_concentration.scene import DIMENSION, isotropic
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.concentration import chi_density
from lib.measures import Empirical
from lib.statistics import comparison_quantile, standard_error

# A softmax output may pass the largest value by rounding only.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Partitions:
    """Of prompts of one length: `ln W` at each query size τ."""

    length: int
    taus: Float[np.ndarray, " taus"]
    logs: Float[np.ndarray, "prompts taus"]


def partition_taus() -> Float[np.ndarray, " taus"]:
    """Query sizes at which partition functions are drawn."""
    return np.linspace(0.0, 7.0, 22)


def partition_functions(length: int, prompts: int, *, key: PRNGKeyArray) -> Partitions:
    """`ln W`, `W = (1/L) Σ_i e^{τ g_i - τ²/2}`, of standard normal scores; all τ are asked of the same prompts."""
    law = isotropic(1)
    points = law.sample(prompts * length, key=key).reshape(prompts, length, 1)

    @jax.jit
    def log_partition(tau):
        return jax.vmap(lambda tokens: Empirical(tokens).log_mgf(tau[None]) - law.log_mgf(tau[None]))(points)

    taus = partition_taus()
    return Partitions(length, taus, np.stack([np.asarray(log_partition(tau)) for tau in jnp.asarray(taus)], axis=1))


def share_above(
    operator_norm: float, dimension: int, truncation: float, length: float | Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """`P(max_i ⟨Uz, z_i⟩ > κ ln L) = E[1 - Φ(κ ln L / H‖z‖)^L]`, the outer mean over ‖z‖ by a trapezoid."""
    radius = np.linspace(0.0, 12.0 + np.sqrt(dimension), 6001)[1:, None]
    tail = -np.expm1(length * log_ndtr(truncation * np.log(length) / (operator_norm * radius)))
    return np.trapezoid(tail * chi_density(radius, dimension), radius, axis=0)


def numbers(partitions: Partitions, parts: Mapping[float, Parts], gain: float, truncation: float) -> Numbers:
    """Partition functions, shares above M and the parts of the error; how large the shares are, and the ceiling."""
    table = _table(partitions, parts, gain, truncation)
    return Numbers(table, (_share_claim(parts, gain, truncation), _ceiling_claim(parts)))


def _table(partitions: Partitions, parts: Mapping[float, Parts], gain: float, truncation: float) -> Table:
    """Three panels: partition functions against τ, share above M against L by σ, the parts of the error at least σ."""
    dense = np.geomspace(SHORTEST, LONGEST, 37)
    shares = [
        frame
        for sigma, these in parts.items()
        for frame in (
            pd.DataFrame(
                {
                    "panel": "share",
                    "series": "exact",
                    "sigma": sigma,
                    "x": dense,
                    "value": share_above(gain * sigma, DIMENSION, truncation, dense),
                }
            ),
            _simulated("share", "prompts", sigma, these.lengths, these.of(ABOVE)),
        )
    ]
    least = min(parts)
    split = [
        _simulated("split", name, least, parts[least].lengths, parts[least].of(part))
        for name, part in {"error": GAP, "above": GAP_ABOVE, "ceiling": CEILING_ABOVE}.items()
    ]
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
        "std_error": Column("Standard error of the simulated value", std_error="std_error"),
    }
    frames = [*_partition_frames(partitions), *shares, *split]
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _partition_frames(partitions: Partitions) -> list[pd.DataFrame]:
    """Quantiles of ln W against τ, then the median of its largest term where that is most of it."""
    quantiles = {"lowest": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "highest": 0.95}
    base, taus, length = {"panel": "partition", "tokens": partitions.length}, partitions.taus, partitions.length
    spread = [
        pd.DataFrame({**base, "series": name, "x": taus, "value": np.quantile(partitions.logs, q, axis=0)})
        for name, q in quantiles.items()
    ]
    # The largest of L normals: at τ beyond its size, its term alone is most of W.
    largest = -ndtri(1 - 0.5 ** (1 / length))
    beyond = np.linspace(largest, max(taus[-1], largest), 20)
    alone = {"series": "alone", "x": beyond, "value": largest * beyond - np.log(length) - beyond**2 / 2}
    return [*spread, pd.DataFrame({**base, **alone})]


def _simulated(
    panel: str, series: str, sigma: float, lengths: Sequence[int], samples: Float[np.ndarray, "prompts k"]
) -> pd.DataFrame:
    """Means over prompts, with standard errors."""
    means = {"x": np.asarray(lengths, float), "value": samples.mean(axis=0), "std_error": standard_error(samples)}
    return pd.DataFrame({"panel": panel, "series": series, "sigma": sigma, **means})


def _share_claim(parts: Mapping[float, Parts], gain: float, truncation: float) -> Claim:
    """Simulated against exact share above the truncation, worst over σ and L."""
    lengths = next(iter(parts.values())).lengths
    sizes = np.asarray(lengths, float)

    def worst(share):
        return max(
            np.max(np.abs(these.of(ABOVE).mean(axis=0) - share(gain * sigma)) / standard_error(these.of(ABOVE)))
            for sigma, these in parts.items()
        )

    def of_one_query(norm):
        return -np.expm1(sizes * log_ndtr(truncation * np.log(sizes) / (norm * np.sqrt(DIMENSION))))

    comparisons = len(parts) * len(lengths)
    return Claim(
        id="output-concentration-share",
        statement=(
            f"The share of prompts and queries with a weight above M = L^{truncation:g} is E[1 - Φ(κ ln L / H‖z‖)^L], "
            f"κ = {truncation:g}: the worst deviation of {comparisons} simulated shares, in standard errors."
        ),
        source="derived here",
        measured=worst(lambda norm: share_above(norm, DIMENSION, truncation, sizes)),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("all queries had the root mean square length √d", worst(of_one_query)),
    )


def _ceiling_claim(parts: Mapping[float, Parts]) -> Claim:
    """`‖T[μ̂_L](z)‖ ≤ max_i ‖Vz_i‖`, prompt by prompt."""
    excess, wrong = (max(float(these.of(part).max()) for these in parts.values()) for part in (EXCESS, LIMIT_EXCESS))
    return Claim(
        id="output-concentration-ceiling",
        statement=(
            "No output is longer than the longest value ‖Vz_i‖ of its prompt: the largest excess over all prompts, "
            "queries and lengths."
        ),
        source="[BB26, Prop. 3.1]",
        measured=excess,
        expected=0.0,
        tolerance=ROUNDING,
        relation="≤",
        alternative=Alternative("outputs were those of the infinite prompt", wrong),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a step: partition functions, the share of large weights, the parts of the error."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 4.2))
    _partition_panel(left, table[table["panel"] == "partition"])
    share = table[table["panel"] == "share"]
    for sigma, colour, marker in coloured(sorted(share["sigma"].unique())):
        mine = share[share["sigma"] == sigma]
        exact, prompts = (mine[mine["series"] == series] for series in ("exact", "prompts"))
        middle.plot(exact["x"], exact["value"], color=colour, linewidth=2)
        error_bars(middle, _as_error(prompts), colour, marker, rf"$\sigma={sigma:g}$")
    middle.set(xscale="log", yscale="log", xlim=(2, share["x"].max()), title="weights above $M$")
    middle.set(xlabel="prompt length $L$", ylabel="share of prompts and queries")
    middle.set_xticks([1e1, 1e4, 1e7, 1e10])
    middle.legend(loc="lower left", handletextpad=0.3)
    split = table[table["panel"] == "split"]
    names = {"ceiling": "bound above $M$", "error": "error", "above": "error above $M$"}
    for index, (series, name) in enumerate(names.items()):
        error_bars(right, _as_error(split[split["series"] == series]), f"C{index}", MARKERS[index], name, linewidth=1.0)
    right.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean square")
    right.set_title(rf"parts of the error, $\sigma={split['sigma'].iloc[0]:g}$")
    for panel in (middle, right):
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_minor_locator(NullLocator())
    right.legend(loc="lower left")
    return figure


def _partition_panel(axes: Axes, frame: pd.DataFrame) -> None:
    by_name = {name: frame[frame["series"] == name] for name in ("lowest", "low", "median", "high", "highest")}
    taus = by_name["median"]["x"].to_numpy()
    for low, high, alpha in (("lowest", "highest", 0.18), ("low", "high", 0.3)):
        axes.fill_between(taus, by_name[low]["value"], by_name[high]["value"], color="C0", alpha=alpha, linewidth=0)
    axes.plot(taus, by_name["median"]["value"], color="C0", linewidth=2)
    alone = frame[frame["series"] == "alone"]
    axes.plot(alone["x"], alone["value"], color=ink(), linestyle="--", linewidth=1.5)
    axes.axhline(0, color=ink(), linewidth=1)
    axes.axvline(alone["x"].min(), color=ink(), linestyle=":", linewidth=1.5)
    axes.set(xlim=(0, taus.max()), xlabel=r"size of the query, $\tau$", ylabel=r"$\ln W$")
    axes.set_title(f"partition functions, $L={int(frame['tokens'].iloc[0])}$")
    axes.legend(
        [Line2D([], [], color="C0", linewidth=2), Patch(color="C0", alpha=0.45), Patch(color="C0", alpha=0.18)],
        ["median", "half", "nine tenths"],
        loc="lower left",
        fontsize="small",
    )


def _as_error(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={"x": "length", "value": "error"})
