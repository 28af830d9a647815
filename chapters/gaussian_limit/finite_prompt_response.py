r"""Answers of finite Gaussian prompts to growing queries.

Across: the size $\tau = \|\Gamma^{1/2}Uz\|$ of the query. Up: the component of the output along the straight line
of Lemma 2.1, in units in which the lemma says $\tau$ (dashed). Each colour is a prompt length $L$: the mean over
independent prompts with its standard error (bars, mostly smaller than the line) and the standard deviation between
prompts (band). Rings mark $\tau = \sqrt{2\ln L}$, the size of the largest of $L$ standard normals. Up to some way
before its ring a prompt answers like the infinite one; beyond it the answer levels off at its largest token.

Alt: Line chart. A dashed diagonal is the infinite prompt. Six curves, one for each prompt length from 10 to one
million, leave the diagonal one after the other and flatten, the longest last; a ring on the diagonal marks
where each should leave, between 2.1 and 5.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.gaussian_limit.batches import map_indices
from chapters.gaussian_limit.gaussian_prompts import Responses, Scene
from chapters.gaussian_limit.marks import SIZE, power
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.attention import Attention, attend, fluctuation
from lib.measures import Gaussian, empirical
from lib.statistics import comparison_quantile, standard_error

# The wrong theory that the exact claims and the rate must tell from the right one.
INFLATION = 1.05
RATE_TAU = 0.5


@dataclass(frozen=True)
class Lemma:
    """Relative errors on random Gaussians: of the lemma, and of the lemma with a covariance too large."""

    dims: tuple[int, ...]
    right: Float[np.ndarray, " n"]
    wrong: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Rate:
    """L times the squared errors of prompts of one length, and their mean as `fluctuation` predicts it."""

    length: int
    errors: Float[np.ndarray, " prompts"]
    predicted: float
    wrong: float


def try_lemma(gaussians: int, *, key: PRNGKeyArray) -> Lemma:
    """`attend` against `V(m + ΓUz)` in NumPy, on random Gaussians of every rank."""
    dims = (1, 2, 5)
    normals = np.asarray(jr.normal(key, (len(dims), gaussians, 3 * max(dims) + 2, max(dims))))
    errors = [_lemma_errors(these[:, : 3 * d + 2, :d]) for d, these in zip(dims, normals, strict=True)]
    right, wrong = (np.concatenate([error[case] for error in errors]) for case in (0, 1))
    return Lemma(dims, right, wrong)


def _lemma_errors(normals: Float[np.ndarray, "n entries d"]) -> tuple[np.ndarray, np.ndarray]:
    n, _, d = normals.shape
    root, bilinear, value, vectors = np.split(normals, (d, 2 * d, 3 * d), axis=1)
    root = root * (np.arange(d) < np.arange(n)[:, None] % (d + 1))[:, None, :]
    cov, mean, query = root @ np.swapaxes(root, 1, 2), vectors[:, 0], vectors[:, 1]

    def one(bilinear, value, mean, cov, query):
        return attend(Attention(bilinear, value), Gaussian(mean, cov), query)

    outputs = np.asarray(jax.jit(jax.vmap(one))(bilinear, value, mean, cov, query))
    constant = np.einsum("nij,nj->ni", value, mean)
    slope = np.einsum("nij,njk,nkl,nl->ni", value, cov, bilinear, query)
    size = np.linalg.norm(constant, axis=1) + np.linalg.norm(slope, axis=1)
    right = np.linalg.norm(outputs - constant - slope, axis=1) / size
    wrong = np.linalg.norm(outputs - constant - INFLATION * slope, axis=1) / size
    return right, wrong


def measure_rate(scene: Scene, length: int, prompts: int, *, key: PRNGKeyArray) -> Rate:
    """L · squared error of finite prompts around the lemma, beside `tr fluctuation`."""
    query = RATE_TAU * scene.direction
    limit = attend(scene.params, scene.gaussian, query)

    @jax.jit
    def predict(scale):
        law = Gaussian(scene.gaussian.mean, scale * scene.gaussian.cov)
        return jnp.trace(fluctuation(scene.params, law, query))

    def one(index):
        prompt = empirical(scene.gaussian, length, key=jr.fold_in(key, index))
        return jnp.sum((attend(scene.params, prompt, query) - limit) ** 2)

    errors = length * map_indices(one, prompts, length)
    return Rate(length, errors, float(predict(1.0)), float(predict(INFLATION)))


def numbers(responses: Mapping[int, Responses], lemma: Lemma, rate: Rate) -> Numbers:
    """The responses by length and query size; the lemma, its rate, and the ceiling of every prompt."""
    return Numbers(_table(responses), (_lemma_claim(lemma), _rate_claim(rate), _ceiling_claim(responses)))


def _table(responses: Mapping[int, Responses]) -> Table:
    """Mean response, its standard error and the spread between prompts, at each length and query size."""
    frames = [
        pd.DataFrame(
            {
                "length": length,
                "prompts": len(these.response),
                "tau": these.taus,
                "response": these.response.mean(axis=0),
                "std_error": standard_error(these.response),
                "spread": these.response.std(axis=0, ddof=1),
                "departure": np.sqrt(2 * np.log(length)),
            }
        )
        for length, these in responses.items()
    ]
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "prompts": Column("Independent prompts averaged", "prompts"),
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖; also the answer of the infinite prompt, by Lemma 2.1"),
        "response": Column(
            "Mean over prompts of the output's component along VΓUz, in units in which the lemma says τ",
            std_error="std_error",
        ),
        "std_error": Column("Standard error of the mean response", std_error="std_error"),
        "spread": Column("Standard deviation of the response between prompts", std_error="std_error"),
        "departure": Column("√(2 ln L), where the largest score takes over [heuristic]"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _lemma_claim(lemma: Lemma) -> Claim:
    return Claim(
        id="gaussian-limit-lemma",
        statement=(
            f"On {len(lemma.right)} random Gaussians in dimensions {', '.join(map(str, lemma.dims))}, of full rank, "
            "singular and Dirac, attention equals V(m + ΓUz): the largest relative error is rounding."
        ),
        source="[BB26, Lemma 2.1]",
        measured=float(np.max(lemma.right)),
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative(f"a covariance {INFLATION - 1:.0%} too large", float(np.max(lemma.wrong))),
    )


def _rate_claim(rate: Rate) -> Claim:
    ratio = float(rate.errors.mean()) / rate.predicted
    std_error = float(standard_error(rate.errors)) / rate.predicted
    return Claim(
        id="gaussian-limit-rate",
        statement=(
            f"Prompts of {rate.length} tokens miss Lemma 2.1 at τ = {RATE_TAU} by a mean square error of "
            "tr(fluctuation)/L: the ratio of the two is 1."
        ),
        source="derived here",
        measured=ratio,
        expected=1.0,
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative(
            f"the fluctuation of tokens of a covariance {INFLATION - 1:.0%} too large",
            float(rate.errors.mean()) / rate.wrong,
        ),
    )


def _ceiling_claim(responses: Mapping[int, Responses]) -> Claim:
    """A softmax output is a convex combination: no answer beyond the largest token."""
    answers = max(float(np.max(these.response - these.largest_token[:, None])) for these in responses.values())
    line = max(float(np.max(these.taus - these.largest_token[:, None])) for these in responses.values())
    return Claim(
        id="gaussian-limit-ceiling",
        statement=(
            "No prompt answers above its own largest token: over all prompts and queries, the largest excess of a "
            "response over the largest token's component is not positive."
        ),
        source="derived here",
        measured=answers,
        expected=0.0,
        tolerance=1e-9,
        relation="≤",
        alternative=Alternative("finite prompts that follow the straight line of Lemma 2.1", line),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a length over its spread, on the lemma's line."""
    frame = table
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(frame["length"].unique().tolist())
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = frame[frame["length"] == length]
        low, high = curve["response"] - curve["spread"], curve["response"] + curve["spread"]
        axes.fill_between(curve["tau"], low, high, color=colour, alpha=0.16, linewidth=0)
        axes.errorbar(curve["tau"], curve["response"], curve["std_error"], color=colour, linewidth=2, capsize=2)
        departure = curve["departure"].max()
        axes.plot(departure, departure, "o", color=colour, markersize=9, fillstyle="none", markeredgewidth=2, zorder=5)
        axes.annotate(
            f"$L={power(length)}$",
            (curve["tau"].max(), np.asarray(curve["response"])[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=ink(),
        )
    top = 1.12 * (frame["response"] + frame["spread"]).max()
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    axes.set(xlim=(0, frame["tau"].max()), ylim=(0, max(top, 1.05 * frame["departure"].max())))
    axes.set(xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$", ylabel="answer along the line of Lemma 2.1")
    ring = Line2D([], [], color=ink(), marker="o", fillstyle="none", markersize=9, markeredgewidth=2, linestyle="")
    line = Line2D([], [], color=ink(), linestyle="--", linewidth=1.5)
    axes.legend([line, ring], [r"$L=\infty$: Lemma 2.1", r"$\tau=\sqrt{2\,\ln L}$"], loc="upper left")
    return figure
