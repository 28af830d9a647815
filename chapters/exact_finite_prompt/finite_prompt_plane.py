r"""Two functions carry the whole theory: participation and score error over the plane.

Across: the size $\tau$ of the query. Up: $\ln L$. Left: participation $P=\mathbb{E}\sum_i p_i^2$, the inverse of
the number of tokens that matter. Right: score error $Q=\mathbb{E}(\hat g-\tau)^2$. Both in decades (thin lines,
one every five). On the dashed line $\tau=\sqrt{2\ln L}$ the largest score takes over: above it both fall like
powers of $L$, below it length hardly helps.

Alt: Two heat maps over query size and logarithm of length. In both, values near one fill the lower right corner,
separated by a dashed parabola from the upper left, where they fall by dozens of decades towards small queries and
long prompts.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.marks import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from lib.finite_prompt import LARGEST_TAU, quadrature_error, score_statistics
from lib.partition import Resolution, levels, log_survival, log_tilted
from lib.tabulate import tabulate

INFLATION = 1.05
# Where the accuracy of the quadrature is asked for.
PROBES = 24


@dataclass(frozen=True)
class Plane:
    """Participation and score error at the points of a rectangular grid of (τ, ln L)."""

    tau: Float[np.ndarray, " points"]
    log_length: Float[np.ndarray, " points"]
    participation: Float[np.ndarray, " points"]
    score_error: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class WeightSums:
    """What participation and the pairs of weights add up to, all over the plane; the same with a τ too large."""

    right: Float[np.ndarray, " points"]
    inflated: Float[np.ndarray, " probes"]


@dataclass(frozen=True)
class Accuracy:
    """Relative errors at random points: the one that the quadrature reports, and with nodes half as dense."""

    reported: Float[np.ndarray, " probes"]
    coarse: Float[np.ndarray, " probes"]


def evaluate(taus: int, lengths: int) -> Plane:
    """Participation and score error on a rectangular grid of (τ, ln L)."""
    tau, log_length = np.meshgrid(np.linspace(0.0, 12.0, taus), np.linspace(0.0, 80.0, lengths))
    found = tabulate(score_statistics, tau**2, log_length)
    return Plane(tau.ravel(), log_length.ravel(), found.participation.ravel(), found.score_error.ravel())


def add_weights(plane: Plane) -> WeightSums:
    """`1 = E (Σp)² = P + L (L - 1) E p_1 p_2`, the pairs by an integral of their own."""
    pairs = np.asarray(_pairs(jnp.asarray(plane.tau), jnp.asarray(plane.log_length)))
    probes = slice(None, None, max(1, pairs.size // 50))
    inflated = tabulate(score_statistics, (INFLATION * plane.tau[probes]) ** 2, plane.log_length[probes])
    return WeightSums(plane.participation + pairs, inflated.participation + pairs[probes])


@jax.jit
def _pairs(taus: Float[Array, " n"], log_lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """`L (L - 1) ∫ E[e^u exp(-e^u)]² φ^{L-2} dy`: the weight that pairs of different tokens carry."""

    def one(point):
        tau, log_length = jnp.maximum(point[0], 1e-6), point[1]
        y, spacing = levels(tau, log_length)
        rest = (jnp.expm1(log_length) - 1) * log_survival(y, tau)
        pairs = spacing * jnp.sum(jnp.exp(2 * log_length + 2 * log_tilted(1, y, tau) + rest))
        return -jnp.expm1(-log_length) * pairs

    return jax.lax.map(one, (taus, log_lengths))


def probe_quadrature(*, key: PRNGKeyArray) -> Accuracy:
    """The error the quadrature reports, at random points of the whole guaranteed domain."""
    tau_key, length_key = jr.split(key)
    taus = jr.uniform(tau_key, (PROBES,), minval=0.1, maxval=LARGEST_TAU)
    log_lengths = jr.uniform(length_key, (PROBES,), minval=0.1, maxval=330.0)
    reported, coarse = jax.jit(quadrature_error)(taus, log_lengths), _coarse_error(taus, log_lengths)
    return Accuracy(np.asarray(reported), np.asarray(coarse))


@jax.jit
def _coarse_error(taus: Float[Array, " n"], log_lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """Relative error of the participation's normalisation with half the nodes."""
    coarse = Resolution(levels=96, step=0.5)

    def one(point):
        tau, log_length = point
        y, spacing = levels(tau, log_length, resolution=coarse)
        rest = jnp.expm1(log_length) * log_survival(y, tau, resolution=coarse)
        terms = jnp.exp(log_length + log_tilted(1, y, tau, resolution=coarse) + rest)
        return jnp.abs(spacing * jnp.sum(terms) - 1)

    return jax.lax.map(one, (taus, log_lengths))


def numbers(plane: Plane, sums: WeightSums, accuracy: Accuracy) -> Numbers:
    """The plane; the weights sum to one on it, and the quadrature is as accurate as it says."""
    return Numbers(_table(plane), (_weights_claim(sums), _accuracy_claim(accuracy)))


def _table(plane: Plane) -> Table:
    """The plane, with what each number means."""
    frame = pd.DataFrame(
        {
            "tau": plane.tau,
            "log_length": plane.log_length,
            "participation": plane.participation,
            "score_error": plane.score_error,
        }
    )
    columns = {
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "log_length": Column("ln L, the natural logarithm of the prompt length"),
        "participation": Column("P = E Σp², the inverse of the number of tokens that matter"),
        "score_error": Column("Q = E(ĝ - τ)², squared error of the mean score"),
    }
    return Table(frame, columns)


def _weights_claim(sums: WeightSums) -> Claim:
    return Claim(
        id="exact-finite-prompt-weights",
        statement=(
            f"The weights of a prompt sum to one: at {sums.right.size} points of the plane, participation and the "
            "separately integrated products of pairs of weights add up to 1; the largest deviation."
        ),
        source="derived here",
        measured=float(np.max(np.abs(sums.right - 1))),
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative(
            f"a participation at a τ {INFLATION - 1:.0%} too large", float(np.max(np.abs(sums.inflated - 1)))
        ),
    )


def _accuracy_claim(accuracy: Accuracy) -> Claim:
    return Claim(
        id="exact-finite-prompt-accuracy",
        statement=(
            f"At {PROBES} random points with τ ≤ {LARGEST_TAU:g} and ln L ≤ 330, the relative error that the "
            "quadrature reports of itself, from a finer step and from a longer reach, is rounding."
        ),
        source="derived here",
        measured=float(np.max(accuracy.reported)),
        expected=0.0,
        tolerance=1e-11,
        relation="≤",
        alternative=Alternative("nodes half as dense", float(np.max(accuracy.coarse))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A heat map a function, of one colour scale."""
    frame = table
    titles = {"participation": "participation $P$", "score_error": "score error $Q$"}
    decades = np.arange(np.floor(np.log10(frame[list(titles)].min().min())), 4)
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True, sharey=True)
    for panel, (column, title) in zip(panels, titles.items(), strict=True):
        grid = np.log10(frame.pivot(index="log_length", columns="tau", values=column))
        taus, lengths = np.asarray(grid.columns, float), np.asarray(grid.index, float)
        image = panel.contourf(taus, lengths, grid, levels=decades, cmap="viridis")
        panel.contour(taus, lengths, grid, levels=decades[-4::-5][::-1], colors="w", linewidths=0.8, linestyles="-")
        panel.plot(taus, taus**2 / 2, color="k", linestyle="--", linewidth=2)
        panel.set(ylim=(0, lengths.max()), xlim=(0, taus.max()), title=title, xlabel=r"size of the query, $\tau$")
        panel.grid(False)
    panels[0].set_ylabel(r"$\ln L$")
    # the colour map is the same on both sheets, and so are the colours that show on it
    panels[0].annotate(r"$\tau=\sqrt{2\,\ln L}$", (7.2, 26), xytext=(6, -14), textcoords="offset points", color="k")
    bar = figure.colorbar(image, ax=panels, shrink=0.9, ticks=decades[-4::-5])
    bar.ax.set_yticklabels([f"$10^{{{decade:.0f}}}$" for decade in decades[-4::-5]])
    return figure
