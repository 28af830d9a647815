r"""Gaussian queries get Gaussian outputs if the tokens are Gaussian and the prompt is infinite.

Law of the first coordinate of the output over Gaussian queries, less its mean and divided by its standard deviation
as the second half of Lemma 2.1 gives them. Dashed: the standard normal. Circles: infinite Gaussian prompts. Squares: a
fresh Gaussian prompt of finite length for every query, which gives large queries too short an answer. Triangles:
infinite prompts of a mixture of two Gaussians that has the same mean and the same covariance. Bars: two standard
errors.

Alt: Three histograms against a dashed bell curve. Circles, for Gaussian tokens and infinite prompts, lie on the bell.
Squares, for finite prompts, are higher in the middle and lower in the tails. Triangles, for the mixture, have two
peaks and end early on both sides.
"""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.gaussian_limit.gaussian_prompts import query_law, two_clusters
from chapters.gaussian_limit.style import SIZE
from chapters.gaussian_limit.transport import Matching, transport_claim
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, legend_line, legend_with
from lib.attention import attend
from lib.finite_prompt import QueryRay
from lib.measures import Empirical

INFINITE, MIXTURE = "infinite prompts", "infinite prompts, mixture"
WIDTH = 0.25


# Outputs by kind of prompt, one a query, less the mean that the lemma predicts and whitened by its covariance.
Outputs = Mapping[str, Float[np.ndarray, "queries e"]]


def simulate(ray: QueryRay, queries: int, length: int, *, key: PRNGKeyArray) -> Outputs:
    """Answers to queries drawn from `query_law`, of three kinds of prompt."""
    query_key, prompt_key = jr.split(key)
    asked = query_law().sample(queries, key=query_key)
    through = ray.params.value @ ray.gaussian.cov @ ray.params.bilinear
    mean = ray.params.value @ ray.gaussian.mean + through @ query_law().mean
    root = jnp.linalg.cholesky(through @ query_law().cov @ through.T)

    def infinite(measure) -> Float[Array, "queries e"]:
        return jax.jit(jax.vmap(partial(attend, ray.params, measure)))(asked)

    @jax.jit
    @jax.vmap
    def finite(points, query):
        return attend(ray.params, Empirical(points), query)

    tokens = ray.gaussian.sample(queries * length, key=prompt_key).reshape(queries, length, 3)
    outputs = {
        INFINITE: infinite(ray.gaussian),
        f"prompts of {length} tokens": finite(tokens, asked),
        MIXTURE: infinite(two_clusters(ray.gaussian)),
    }
    return {kind: np.asarray(jnp.linalg.solve(root, (each - mean).T).T) for kind, each in outputs.items()}


def numbers(outputs: Outputs, matching: Matching) -> Numbers:
    """Return histograms of the first coordinate, a test against the lemma's distribution, and the optimal transport."""
    return Numbers(_table(outputs), (_law_claim(outputs), transport_claim(matching)))


def _table(outputs: Outputs) -> Table:
    """Density in bins, by kind of prompt."""
    edges = np.arange(-4.0, 4.0 + WIDTH / 2, WIDTH)
    frames = []
    for kind, these in outputs.items():
        share = np.histogram(these[:, 0], edges)[0] / len(these)
        error = np.sqrt(share * (1 - share) / len(these))
        rows = {"kind": kind, "output": (edges[1:] + edges[:-1]) / 2, "density": share / WIDTH}
        frames.append(pd.DataFrame({**rows, "std_error": error / WIDTH}))
    columns = {
        "kind": Column("What answers: Gaussian tokens unless a mixture is named", "name"),
        "output": Column("Middle of a bin: first output coordinate, standardised as Lemma 2.1 says"),
        "density": Column("Share of the outputs in the bin, over its width", std_error="std_error"),
        "std_error": Column("Its standard error", moves_with="density"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _law_claim(outputs: Outputs) -> Claim:
    """Kolmogorov-Smirnov tests of projections against the standard normal."""
    from scipy.stats import kstest  # a second to import, and only this claim needs it

    angles = np.linspace(0, np.pi, 5)[:-1]
    directions = np.stack([np.cos(angles), np.sin(angles)])

    def smallest_chance(kind: str) -> float:
        return min(float(kstest(column, "norm").pvalue) for column in (outputs[kind] @ directions).T)  # pyright: ignore

    return Claim(
        id="gaussian-limit-output-law",
        statement=(
            "Gaussian queries have outputs N(Vm + VΓUm_q, VΓUΓ_qUᵀΓVᵀ): the smallest chance that Kolmogorov-Smirnov "
            f"tests on {len(angles)} projections of {len(outputs[INFINITE])} outputs give to a difference this large."
        ),
        source="[BB26, Lemma 2.1]",
        box="bb26-lemma-2-1-outputs",
        measured=smallest_chance(INFINITE),
        expected=1e-3 / len(angles),  # so many tests together are wrong once in a thousand
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "tokens of a mixture of the same mean and covariance, on the same queries", smallest_chance(MIXTURE)
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Three histograms on the lemma's normal."""
    figure, axes = plt.subplots(figsize=SIZE)
    output = np.linspace(-4.0, 4.0, 201)
    axes.plot(output, np.exp(-(output**2) / 2) / np.sqrt(2 * np.pi), color=ink(), linestyle="--", linewidth=1.5)
    for (kind, these), marker in zip(table.groupby("kind", sort=False), ("o", "s", "^"), strict=True):
        error_bars(axes, these["output"], these["density"], these["std_error"], marker=marker, label=kind)
    axes.set(xlim=(-4, 4), ylim=(0, None))
    axes.set(xlabel="output, standardised as Lemma 2.1 says", ylabel="density over queries")
    legend_with(axes, {"Lemma 2.1: normal": legend_line("--", 1.5)}, loc="upper left", fontsize="small")
    headline(figure, "Gaussian queries get Gaussian outputs from Gaussian tokens, and not from a mixture")
    return figure
