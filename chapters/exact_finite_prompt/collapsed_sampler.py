r"""A prompt drawn as $L$ numbers and one vector has the law of a prompt drawn as $L$ vectors.

Left: quantiles of the two coordinates of the output, collapsed sampler against plain prompts; equal laws lie on
the diagonal. Right: their difference in standard errors of the difference; the band is two of them. Neighbouring
quantiles come from the same outputs and move together.

Alt: Two panels. Left, quantile-quantile points of two coordinates lie on the diagonal. Right, their difference in
standard errors wanders around zero, mostly within a band from minus two to two.
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
from chapters.exact_finite_prompt.marks import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import headline, ink, markers
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
    """Quantiles against quantiles, and their difference."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    coordinates = sorted(table["coordinate"].unique().tolist())
    for coordinate, marker in zip(coordinates, markers(len(coordinates)), strict=True):
        these = table[table["coordinate"] == coordinate]
        label = f"coordinate {coordinate}"
        left.plot(these["plain"], these["collapsed"], linestyle="", marker=marker, markersize=4, label=label)
        right.plot(these["chance"], these["difference"], marker=marker, markersize=4, linewidth=1)
    left.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.2)
    right.axhspan(-2, 2, color=ink(), alpha=0.08, linewidth=0)
    right.axhline(0, color=ink(), linestyle="--", linewidth=1.2)
    left.set(xlabel="quantile, plain prompts", ylabel="quantile, collapsed sampler")
    right.set(xlabel="probability", ylabel="difference, in standard errors", ylim=(-4.5, 4.5))
    left.legend(loc="upper left")
    headline(figure, "L numbers and one vector replace L vectors: the law is the same")
    return figure
