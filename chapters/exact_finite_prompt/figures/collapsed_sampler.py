r"""A prompt drawn as $L$ numbers and one vector has the law of a prompt drawn as $L$ vectors.

The share of prompts whose output is smaller, for two coordinates of the output. Lines: quantiles of the collapsed
sampler, in bands of two standard errors. Points: quantiles of plain prompts, every fifth of a hundred, with bars of two
standard errors. Neighbouring quantiles come from the same outputs and move together.

Alt: Line chart of two distribution functions, curves in the shape of an S that rise from zero to one. Points with short
bars, from plain prompts, lie on both from one end to the other.
"""

from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.exact_finite_prompt import plain_prompts
from chapters.exact_finite_prompt.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, label, legend_line, legend_point, legend_with, markers
from lib.batching import map_batched
from lib.finite_prompt import QueryRay, sample_output
from lib.statistics import quantile_error


@dataclass(frozen=True)
class Samplers:
    """Outputs of two samplers of the same law, and of one that forgets what is left of the tokens."""

    plain: Float[np.ndarray, "prompts e"]
    collapsed: Float[np.ndarray, "prompts e"]
    scores_only: Float[np.ndarray, "prompts e"]


def simulate(ray: QueryRay, tau: float, length: int, prompts: int, *, key: PRNGKeyArray) -> Samplers:
    """Plain and collapsed outputs at one query, from independent keys."""
    plain_key, collapsed_key = jr.split(key)
    (plain,) = np.moveaxis(plain_prompts.simulate(ray, [tau], length, prompts, key=plain_key), 1, 0)
    sample = partial(sample_output, ray.params, ray.gaussian, ray.queries(tau), length)
    collapsed = map_batched(lambda key: sample(key=key), jr.split(collapsed_key, prompts), size=length)
    # moved onto the lemma's line: what a sampler would give that draws the scores alone
    scores_only = ray.params.value @ ray.gaussian.mean + jnp.outer(ray.read(collapsed), ray.line)
    return Samplers(plain, np.asarray(collapsed), np.asarray(scores_only))


def numbers(samplers: Samplers) -> Numbers:
    """Quantiles of both samplers; whether their laws can be told apart."""
    return Numbers(_table(samplers), (_samplers_claim(samplers),))


def _table(samplers: Samplers) -> Table:
    """Quantiles of the two coordinates of the output, of both samplers."""
    chances = np.linspace(0.01, 0.99, 99)
    frames = [
        pd.DataFrame(
            {
                "coordinate": coordinate + 1,
                "chance": chances,
                **_quantiles("plain", samplers.plain[:, coordinate], chances),
                **_quantiles("collapsed", samplers.collapsed[:, coordinate], chances),
            }
        )
        for coordinate in range(samplers.plain.shape[1])
    ]
    columns = {
        "coordinate": Column("Coordinate of the output"),
        "chance": Column("Probability of an output below"),
        "plain": Column("Quantile of plain prompts, L vectors each", std_error="plain_se"),
        "plain_se": Column("Its standard error", moves_with="plain"),
        "collapsed": Column(
            "Quantile of the collapsed sampler, L numbers and one vector each", std_error="collapsed_se"
        ),
        "collapsed_se": Column("Its standard error", moves_with="collapsed"),
        "difference": Column("Collapsed less plain, in standard errors of the difference", moves_with="collapsed"),
    }
    frame = pd.concat(frames, ignore_index=True)
    difference = (frame["collapsed"] - frame["plain"]) / np.hypot(frame["plain_se"], frame["collapsed_se"])
    return Table(frame.assign(difference=difference), columns)


def _quantiles(name: str, samples: np.ndarray, chances: np.ndarray) -> dict[str, np.ndarray]:
    """Quantiles and their standard errors."""
    return {name: np.quantile(samples, chances), f"{name}_se": quantile_error(samples, chances)}


def _samplers_claim(samplers: Samplers) -> Claim:
    """Two-sample Kolmogorov-Smirnov tests on projections of the output."""
    from scipy.stats import ks_2samp  # a second to import, and only this claim needs it

    angles = np.linspace(0, np.pi, 5)[:-1]
    directions = np.stack([np.cos(angles), np.sin(angles)])

    def smallest_chance(outputs: np.ndarray) -> float:
        pairs = zip((samplers.plain @ directions).T, (outputs @ directions).T, strict=True)
        return min(float(ks_2samp(a, b, method="asymp").pvalue) for a, b in pairs)  # pyright: ignore

    return Claim(
        id="exact-finite-prompt-collapsed",
        statement=(
            f"The collapsed sampler has the law of plain prompts: the smallest chance that Kolmogorov-Smirnov tests on "
            f"{len(angles)} projections of {len(samplers.plain)} outputs each give to a difference this large."
        ),
        source="derived here",
        box="collapse",
        measured=smallest_chance(samplers.collapsed),
        expected=1e-3 / len(angles),
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "a sampler that draws the scores and forgets the rest of the tokens",
            smallest_chance(samplers.scores_only),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A distribution a coordinate: a line of the collapsed sampler, points of plain prompts."""
    figure, axes = plt.subplots(figsize=SIZE)
    coordinates = sorted(table["coordinate"].unique().tolist())
    for index, (coordinate, marker) in enumerate(zip(coordinates, markers(len(coordinates)), strict=True)):
        these, colour = table[table["coordinate"] == coordinate], f"C{index}"
        quantile, reach = these["collapsed"], 2 * these["collapsed_se"]
        axes.plot(quantile, these["chance"], color=colour, linewidth=1.5)
        axes.fill_betweenx(these["chance"], quantile - reach, quantile + reach, color=colour, alpha=0.25, linewidth=0)
        some = these.iloc[4::5]
        look = {"color": colour, "marker": marker, "markersize": 5, "linestyle": "", "capsize": 2, "elinewidth": 1.5}
        axes.errorbar(some["plain"], some["chance"], xerr=2 * some["plain_se"], **look)
        middle = these.iloc[(these["chance"] - 0.72).abs().argmin()]
        place = {"xytext": (10, -2)} if index % 2 == 0 else {"xytext": (-10, 2), "ha": "right"}
        label(axes, middle["plain"], middle["chance"], f"coordinate {coordinate}", colour, **place)
    axes.set(xlabel="output of a prompt", ylabel="share of prompts below", ylim=(0, 1))
    legend_with(axes, {"collapsed sampler": legend_line("-", 1.5), "plain prompts": legend_point()}, loc="upper left")
    headline(figure, "L numbers and one vector replace L vectors: the law is the same")
    return figure
