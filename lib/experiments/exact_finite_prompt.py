"""What a finite Gaussian prompt does, exactly: its mean, its error and its law, at any length.

The two functions of lib.finite_prompt over the plane of query size and length, beside honest simulation, and the
collapsed sampler beside plain prompts. Derived here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field

from lib.attention import Attention, attend
from lib.experiments.registry import experiment
from lib.experiments.result import (
    Alternative,
    Claim,
    Column,
    Result,
    Table,
    comparison_quantile,
    standard_error,
)
from lib.experiments.tabulate import tabulate
from lib.finite_prompt import (
    LARGEST_TAU,
    mean_output,
    output_error,
    quadrature_error,
    sample_output,
    score_statistics,
)
from lib.measures import Gaussian, empirical
from lib.partition import Resolution, levels, log_survival, log_tilted

INFLATION = 1.05
# How many numbers one batch of prompts may hold.
TOGETHER = 2**16
# Where the accuracy of the quadrature is asked for.
PROBES = 24


@experiment
def exact_finite_prompt(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    plane_taus: Annotated[int, Field(ge=6, le=200, description="Query sizes across the plane, from 0 to 12.")],
    plane_lengths: Annotated[int, Field(ge=6, le=200, description="Lengths up the plane, from ln L = 0 to 80.")],
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=140)]],
        Field(min_length=2, max_length=8, description="Lengths of the mean answers, as powers of ten."),
    ],
    freezing_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(min_length=2, max_length=8, description="ln L of the freezing curves."),
    ],
    taus: Annotated[
        list[Annotated[float, Field(ge=0.0, le=8.0)]],
        Field(min_length=2, max_length=6, description="Query sizes of the error curves."),
    ],
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**5)]],
        Field(min_length=2, max_length=12, description="Lengths at which prompts are simulated."),
    ],
    tokens: Annotated[int, Field(ge=10**5, le=10**10, description="Tokens drawn at one length and query size.")],
    prompts: Annotated[int, Field(ge=500, le=10**6, description="Most prompts drawn at one length and query size.")],
    collapsed_length: Annotated[int, Field(ge=2, le=10**5, description="Length of the prompts of the two samplers.")],
    collapsed_prompts: Annotated[int, Field(ge=500, le=10**5, description="Prompts of each of the two samplers.")],
) -> Result:
    """The exact theory over the plane, its limits, its agreement with simulation, and the collapsed sampler."""
    error_key, law_key, probe_key = jr.split(jr.key(seed), 3)
    scene = Scene.fixed()
    plane = plane_frame(plane_taus, plane_lengths)
    simulated = {
        length: simulate(scene, taus, length, min(prompts, -(-tokens // length)), key=jr.fold_in(error_key, length))
        for length in sorted(set(lengths))
    }
    errors = error_frame(scene, taus, simulated)
    samplers = draw_both(scene, max(taus), collapsed_length, collapsed_prompts, key=law_key)
    return Result(
        tables={
            "shrunken_mean": shrunken_mean_table(decades),
            "finite_prompt_plane": plane_table(plane),
            "freezing": freezing_table(freezing_log_lengths),
            "exact_error": error_table(errors),
            "collapsed_sampler": samplers_table(samplers),
        },
        claims=(
            weights_claim(plane),
            accuracy_claim(key=probe_key),
            freezing_claim(max(freezing_log_lengths)),
            error_claim(errors),
            mean_claim(scene, taus, simulated),
            samplers_claim(samplers),
        ),
    )


# --- the two functions over the plane ---------------------------------------------------------------------


def plane_frame(taus: int, lengths: int) -> pd.DataFrame:
    """Participation and score error on a rectangular grid of (τ, ln L)."""
    tau, log_length = np.meshgrid(np.linspace(0.0, 12.0, taus), np.linspace(0.0, 80.0, lengths))
    found = tabulate(score_statistics, tau**2, log_length)
    return pd.DataFrame(
        {
            "tau": tau.ravel(),
            "log_length": log_length.ravel(),
            "participation": found.participation.ravel(),
            "score_error": found.score_error.ravel(),
        }
    )


def plane_table(frame: pd.DataFrame) -> Table:
    """The plane, with what each number means."""
    columns = {
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "log_length": Column("ln L, the natural logarithm of the prompt length"),
        "participation": Column("P = E Σp², the inverse of the number of tokens that matter"),
        "score_error": Column("Q = E(ĝ - τ)², squared error of the mean score"),
    }
    return Table(frame, columns)


def shrunken_mean_table(decades: list[int]) -> Table:
    """`τ (1 - P)` against τ, with the ceiling √(2 ln L), for lengths no computer can hold."""
    taus = np.linspace(0.0, 20.0, 61)
    frames = []
    for decade in sorted(set(decades)):
        log_length = decade * np.log(10.0)
        shrinkage = 1 - tabulate(score_statistics, taus**2, log_length).participation
        frames.append(
            pd.DataFrame({"decade": decade, "tau": taus, "mean": taus * shrinkage, "ceiling": np.sqrt(2 * log_length)})
        )
    columns = {
        "decade": Column("log₁₀ L"),
        "tau": Column("Size of the query, τ; also the answer of the infinite prompt"),
        "mean": Column("Mean answer τ (1 - P) along the line of Lemma 2.1, in units of τ", absolute=1e-12),
        "ceiling": Column("√(2 ln L), about the largest of L standard normals"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def freezing_table(log_lengths: list[float]) -> Table:
    """Participation against a = τ/√(2 ln L), and the limit (1 - 1/a)₊ of the random-energy model."""
    frames = []
    for log_length in sorted(set(log_lengths)):
        critical = np.sqrt(2 * log_length)
        ratio = np.linspace(0.0, min(2.5, LARGEST_TAU / critical), 61)
        frames.append(
            pd.DataFrame(
                {
                    "log_length": log_length,
                    "ratio": ratio,
                    "participation": tabulate(score_statistics, (ratio * critical) ** 2, log_length).participation,
                    "limit": frozen_participation(ratio),
                }
            )
        )
    columns = {
        "log_length": Column("ln L"),
        "ratio": Column("a = τ/√(2 ln L), the size of the query in units of the largest score"),
        "participation": Column("P = E Σp², exact"),
        "limit": Column("(1 - 1/a)₊, its limit for L → ∞ at fixed a"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def frozen_participation(ratio: np.ndarray) -> np.ndarray:
    """`(1 - 1/a)₊`: the weights of the frozen random-energy model are Poisson-Dirichlet of parameter 1/a."""
    return 1 - 1 / np.maximum(ratio, 1.0)


def weights_claim(plane: pd.DataFrame) -> Claim:
    """`1 = E (Σp)² = P + L (L - 1) E p_1 p_2`, the pairs by an integral of their own."""
    pairs = np.asarray(_pairs(jnp.asarray(plane["tau"]), jnp.asarray(plane["log_length"])))
    participation = np.asarray(plane["participation"])
    probes = plane.iloc[:: max(1, len(plane) // 50)]
    taus, log_lengths = np.asarray(probes["tau"]), np.asarray(probes["log_length"])
    inflated = tabulate(score_statistics, (INFLATION * taus) ** 2, log_lengths)
    return Claim(
        id="exact-finite-prompt-weights",
        statement=(
            f"The weights of a prompt sum to one: at {len(plane)} points of the plane, participation and the "
            "separately integrated products of pairs of weights add up to 1; the largest deviation."
        ),
        source="derived here",
        figure="finite_prompt_plane",
        measured=float(np.max(np.abs(participation + pairs - 1))),
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative(
            f"a participation at a τ {INFLATION - 1:.0%} too large",
            float(np.max(np.abs(inflated.participation + pairs[probes.index] - 1))),
        ),
    )


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


def accuracy_claim(*, key: PRNGKeyArray) -> Claim:
    """The error the quadrature reports, at random points of the whole guaranteed domain."""
    tau_key, length_key = jr.split(key)
    taus = jr.uniform(tau_key, (PROBES,), minval=0.1, maxval=LARGEST_TAU)
    log_lengths = jr.uniform(length_key, (PROBES,), minval=0.1, maxval=330.0)
    return Claim(
        id="exact-finite-prompt-accuracy",
        statement=(
            f"At {PROBES} random points with τ ≤ {LARGEST_TAU:g} and ln L ≤ 330, the relative error that the "
            "quadrature reports of itself, from a finer step and from a longer reach, is rounding."
        ),
        source="derived here",
        figure="finite_prompt_plane",
        measured=float(jnp.max(jax.jit(quadrature_error)(taus, log_lengths))),
        expected=0.0,
        tolerance=1e-11,
        relation="≤",
        alternative=Alternative("nodes half as dense", float(jnp.max(_coarse_error(taus, log_lengths)))),
    )


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


def freezing_claim(log_length: float) -> Claim:
    """Participation beyond freezing against its limit, at the longest prompt."""
    ratio = min(2.0, 0.99 * LARGEST_TAU / np.sqrt(2 * log_length))
    measured = float(tabulate(score_statistics, 2 * ratio**2 * log_length, log_length).participation)
    return Claim(
        id="exact-finite-prompt-freezing",
        statement=(
            f"Beyond freezing a few tokens carry the answer, however long the prompt: at ln L = {log_length:g} and "
            f"τ = {ratio:.2f}·√(2 ln L), participation is near its limit 1 - √(2 ln L)/τ."
        ),
        source="derived here",
        figure="freezing",
        measured=measured,
        expected=float(frozen_participation(np.asarray(ratio))),
        # the largest of L normals falls short of √(2 ln L) by this fraction
        tolerance=float(np.log(4 * np.pi * log_length) / (2 * log_length)),
        alternative=Alternative("as many tokens as before freezing, e^{τ²}/L capped at 1", 1.0),
    )


# --- simulation -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """One head on three-dimensional Gaussian tokens, and queries `τ · direction` with `‖Γ^{1/2} U direction‖ = 1`."""

    params: Attention
    gaussian: Gaussian
    direction: Float[Array, " d"]

    @classmethod
    def fixed(cls) -> "Scene":
        """Nothing symmetric, nothing centred; U is not square."""
        params = Attention([[0.8, -0.3], [0.1, 0.6], [0.4, 0.5]], [[1.0, 0.4, -0.2], [-0.3, 0.9, 0.5]])
        gaussian = Gaussian([0.4, -0.2, 0.1], [[0.9, 0.3, 0.1], [0.3, 1.1, -0.4], [0.1, -0.4, 0.7]])
        direction = jnp.asarray([1.0, 0.7])
        tilt = params.bilinear @ direction
        return cls(params, gaussian, direction / jnp.sqrt(tilt @ gaussian.cov @ tilt))


def simulate(
    scene: Scene, taus: list[float], length: int, prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "prompts taus e"]:
    """Outputs of plain prompts; every prompt is asked one query of each size."""
    queries = jnp.asarray(taus)[:, None] * scene.direction

    def one_prompt(index):
        prompt = empirical(scene.gaussian, length, key=jr.fold_in(key, index))
        return jax.lax.map(partial(attend, scene.params, prompt), queries)

    batch_size = max(1, min(prompts, TOGETHER // (3 * length)))
    outputs = jax.jit(partial(jax.lax.map, one_prompt, batch_size=batch_size))(
        jnp.arange(-(-prompts // batch_size) * batch_size)
    )
    return np.asarray(outputs)[:prompts]


def error_frame(scene: Scene, taus: list[float], simulated: Mapping[int, np.ndarray]) -> pd.DataFrame:
    """Exact error and its large-L form on a fine grid of lengths, simulated error where there are prompts."""
    log_lengths = np.linspace(np.log(2.0), 12 * np.log(10.0), 40)
    queries = jnp.asarray(taus)[:, None] * scene.direction
    by_query = jax.vmap(partial(output_error, scene.params, scene.gaussian), (0, None))
    exact_at = jax.jit(jax.vmap(by_query, (None, 0)))
    limits = np.asarray(jax.vmap(partial(attend, scene.params, scene.gaussian))(queries))
    at_lengths = np.log(list(simulated))
    grid, points = exact_at(queries, log_lengths), exact_at(queries, at_lengths)
    frames = []
    for i, tau in enumerate(taus):
        frames.append(pd.DataFrame({"tau": tau, "log_length": log_lengths, "exact": np.asarray(grid)[:, i]}))
        squares = [np.sum((outputs[:, i] - limits[i]) ** 2, axis=1) for outputs in simulated.values()]
        frames.append(
            pd.DataFrame(
                {
                    "tau": tau,
                    "log_length": at_lengths,
                    "exact": np.asarray(points)[:, i],
                    "prompts": [len(these) for these in squares],
                    "simulated": [these.mean() for these in squares],
                    "std_error": [float(standard_error(these)) for these in squares],
                }
            )
        )
    frame = pd.concat(frames, ignore_index=True)
    along, total = _energies(scene)
    tau_squared = frame["tau"] ** 2
    frame["delta_method"] = np.exp(tau_squared - frame["log_length"]) * (total + tau_squared * along)
    return frame.reindex(
        columns=["tau", "log_length", "exact", "delta_method", "prompts", "simulated", "std_error"]
    ).sort_values(["tau", "log_length"], ignore_index=True)


def _energies(scene: Scene) -> tuple[float, float]:
    """`‖VΓξ‖²/τ²` along the query's direction, and `tr VΓVᵀ`."""
    value, cov = np.asarray(scene.params.value), np.asarray(scene.gaussian.cov)
    drift = value @ cov @ np.asarray(scene.params.bilinear @ scene.direction)
    return float(drift @ drift), float(np.trace(value @ cov @ value.T))


def error_table(frame: pd.DataFrame) -> Table:
    """Error against length, by query size."""
    columns = {
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "log_length": Column("ln L"),
        "exact": Column("Mean square distance between the outputs of finite and infinite prompt, exact"),
        "delta_method": Column("tr(fluctuation)/L = e^{τ²}(tr VΓVᵀ + ‖VΓξ‖²)/L, its form for L → ∞"),
        "prompts": Column("Independent prompts simulated, where there are any", "prompts"),
        "simulated": Column("Their mean square error", std_error="std_error"),
        "std_error": Column("Its standard error", std_error="std_error"),
    }
    return Table(frame, columns)


def error_claim(frame: pd.DataFrame) -> Claim:
    """The worst deviation of simulation from the exact error, in standard errors."""
    seen = frame.dropna(subset=["simulated"])

    def worst(column: str) -> float:
        return float(np.max(np.abs(seen["simulated"] - seen[column]) / seen["std_error"]))

    return Claim(
        id="exact-finite-prompt-error",
        statement=(
            f"At {len(seen)} pairs of query size and length, the mean square error of simulated prompts equals the "
            "exact one: the worst deviation in standard errors."
        ),
        source="derived here",
        figure="exact_error",
        measured=worst("exact"),
        expected=0.0,
        tolerance=comparison_quantile(len(seen)),
        std_error=1.0,
        alternative=Alternative("the large-L form at every length", worst("delta_method")),
    )


def mean_claim(scene: Scene, taus: list[float], simulated: Mapping[int, np.ndarray]) -> Claim:
    """Mean outputs of the same prompts against linear attention shrunk by 1 - P, coordinate by coordinate."""
    asked = np.asarray(taus) > 0
    queries = jnp.asarray(taus)[asked][:, None] * scene.direction
    by_query = jax.vmap(partial(mean_output, scene.params, scene.gaussian), (0, None))
    exact = np.asarray(jax.jit(jax.vmap(by_query, (None, 0)))(queries, np.log(list(simulated))))
    limit = np.asarray(jax.vmap(partial(attend, scene.params, scene.gaussian))(queries))

    def worst(expected) -> float:
        return max(
            float(np.max(np.abs(outputs[:, asked].mean(axis=0) - mean) / standard_error(outputs[:, asked])))
            for outputs, mean in zip(simulated.values(), expected, strict=True)
        )

    return Claim(
        id="exact-finite-prompt-mean",
        statement=(
            "The mean output of simulated prompts is linear attention shrunk by 1 - P, with P from the quadrature: the "
            f"worst deviation over {exact.size} coordinates, query sizes and lengths, in standard errors."
        ),
        source="derived here",
        figure="shrunken_mean",
        measured=worst(exact),
        expected=0.0,
        tolerance=comparison_quantile(exact.size),
        std_error=1.0,
        alternative=Alternative("no shrinkage: the answer of the infinite prompt", worst([limit] * len(simulated))),
    )


# --- the collapsed sampler --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Samplers:
    """Outputs of two samplers of the same law, and of one that forgets what is left of the tokens."""

    plain: Float[np.ndarray, "prompts e"]
    collapsed: Float[np.ndarray, "prompts e"]
    scores_only: Float[np.ndarray, "prompts e"]


def draw_both(scene: Scene, tau: float, length: int, prompts: int, *, key: PRNGKeyArray) -> Samplers:
    """Plain and collapsed outputs at one query, from independent keys."""
    plain_key, collapsed_key = jr.split(key)
    query = tau * scene.direction
    plain = simulate(scene, [tau], length, prompts, key=plain_key)[:, 0]
    draw = partial(sample_output, scene.params, scene.gaussian, query, length)
    batch = max(1, min(prompts, TOGETHER // length))
    collapsed = jax.jit(lambda keys: jax.lax.map(lambda key: draw(key=key), keys, batch_size=batch))(
        jr.split(collapsed_key, prompts)
    )
    scores_only = _without_rest(scene, query, np.asarray(collapsed))
    return Samplers(plain, np.asarray(collapsed), scores_only)


def _without_rest(scene: Scene, query: Float[Array, " d"], outputs: np.ndarray) -> np.ndarray:
    """The outputs moved onto the lemma's line: what a sampler would give that draws the scores alone."""
    centre = np.asarray(scene.params.value @ scene.gaussian.mean)
    line = np.asarray(scene.params.value @ scene.gaussian.cov @ scene.params.bilinear @ query)
    line = line / np.linalg.norm(line)
    return centre + np.outer((outputs - centre) @ line, line)


def samplers_table(samplers: Samplers) -> Table:
    """Quantiles of the two coordinates of the output, of both samplers."""
    chances = np.linspace(0.01, 0.99, 99)
    frames = [
        pd.DataFrame(
            {
                "coordinate": coordinate + 1,
                "chance": chances,
                "plain": np.quantile(samplers.plain[:, coordinate], chances),
                "collapsed": np.quantile(samplers.collapsed[:, coordinate], chances),
                "std_error": _quantile_error(samplers.plain[:, coordinate], chances),
            }
        )
        for coordinate in range(samplers.plain.shape[1])
    ]
    columns = {
        "coordinate": Column("Coordinate of the output"),
        "chance": Column("Probability of an output below"),
        "plain": Column("Quantile of plain prompts, L vectors each", std_error="std_error"),
        "collapsed": Column("Quantile of the collapsed sampler, L numbers and one vector each", std_error="std_error"),
        "std_error": Column("Standard error of either quantile", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _quantile_error(samples: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """`√(p(1-p)/n) / density`, the density by the distance between neighbouring quantiles."""
    width = 0.01
    density = 2 * width / (np.quantile(samples, chances + width) - np.quantile(samples, chances - width))
    return np.sqrt(chances * (1 - chances) / len(samples)) / density


def samplers_claim(samplers: Samplers) -> Claim:
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
        figure="collapsed_sampler",
        measured=smallest_chance(samplers.collapsed),
        expected=1e-3 / len(angles),
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "a sampler that draws the scores and forgets the rest of the tokens",
            smallest_chance(samplers.scores_only),
        ),
    )
