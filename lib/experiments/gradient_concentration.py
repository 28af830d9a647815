"""How fast the gradients of a finite prompt's output approach those of its law, in L²(ν) and Hilbert–Schmidt norm.

Gaussian tokens of scale σ, standard normal queries, U = uI and V = I. The error of ∇_V is the number of outputs times
that of the output, hence exact at any length; ∇_U sees the covariance of the tilted tokens and errs more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import AfterValidator, Field

from lib.attention import Attention
from lib.concentration import (
    BoundShape,
    ErrorCurve,
    ScoreTable,
    bilinear_gap,
    error_curve,
    fit_bound,
    isotropic_error,
    sample_gaps,
    score_table,
    value_gap,
)
from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile
from lib.measures import Empirical, Gaussian, Measure

# Of tokens, queries and outputs.
DIMENSION = 2
# The wrong theory that the exact curve must be told from: query sizes τ this much too large.
INFLATION = 1.05
# Queries asked of each prompt: a query costs a fraction of the tokens it is asked of.
QUERIES = 4
# Up to this query size the error at the longest length is compared with its limit: beyond, rare prompts carry the mean.
MODERATE = 0.5


def at_least_four(lengths: list[int]) -> list[int]:
    """Two to fit the constants of the bound and two to try them on."""
    if len(set(lengths)) < 4:
        raise ValueError("needs four different lengths: constants are fitted to one half and tried on the other")
    return sorted(set(lengths))


def some_moderate(taus: list[float]) -> list[float]:
    """One at least where the limit is near."""
    if min(taus) > MODERATE:
        raise ValueError(f"needs a query size of at most {MODERATE}, because the limit law is tested there")
    return sorted(set(taus))


@experiment
def gradient_concentration(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="u of U = uI; V = I.")],
    scales: Annotated[
        list[Annotated[float, Field(ge=1.0, le=4.0)]],
        Field(min_length=2, max_length=6, description="Token scales σ, at least two of them."),
        AfterValidator(lambda scales: sorted(set(scales))),
    ],
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(min_length=4, max_length=12, description="Prompt lengths L."),
        AfterValidator(at_least_four),
    ],
    prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts for each σ and each query size.")],
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=20.0)]],
        Field(min_length=2, max_length=20, description="Query sizes τ asked one by one, of tokens of scale 1."),
        AfterValidator(some_moderate),
    ],
) -> Result:
    """[BB26, Prop. 3.4] beside simulation, the exact error of ∇_V and the long-prompt law of ∇_U."""
    scale_key, query_key = jr.split(jr.key(seed))
    table = score_table(np.log(lengths))
    measured = {
        sigma: draw(sigma, gain, normal(1.0), lengths, prompts, key=jr.fold_in(scale_key, index))
        for index, sigma in enumerate(scales)
    }
    asked = {
        tau: draw(1.0, gain, point(tau / gain), lengths, prompts, key=jr.fold_in(query_key, index))
        for index, tau in enumerate(taus)
    }
    exact = {sigma: DIMENSION * sigma**2 * isotropic_error(table, gain * sigma, DIMENSION) for sigma in scales}
    half = len(lengths) // 2
    bounds = {
        name: fit_bound(scales, np.asarray(lengths[:half]), means(measured, name)[:, :half], **powers)
        for name, powers in POWERS.items()
    }
    return Result(
        tables={
            "gradient_error_vs_length": error_table(measured, exact, bounds, half),
            "gradient_extra_factor": factor_table(measured, asked, gain),
        },
        claims=(
            value_claim(measured, exact, table, gain),
            *(bound_claim(name, bound, measured, half) for name, bound in bounds.items()),
            query_claim(asked, gain),
            growth_claim(measured),
        ),
    )


# --- the scene --------------------------------------------------------------------------------------------


VALUE, BILINEAR = "value", "bilinear"
# The powers of σ and of ln L in the bound.
POWERS = {VALUE: {"sigma_power": 6, "log_power": 1}, BILINEAR: {"sigma_power": 12, "log_power": 2}}
SYMBOL = {VALUE: "∇_V", BILINEAR: "∇_U"}


def normal(scale: float) -> Gaussian:
    """N(0, scale² I)."""
    return Gaussian(np.zeros(DIMENSION), scale**2 * np.eye(DIMENSION))


def point(norm: float) -> Gaussian:
    """The query of this length, as a law without width: of the type of `normal`, so that nothing compiles twice."""
    return Gaussian(norm * np.eye(DIMENSION)[0], np.zeros((DIMENSION, DIMENSION)))


@dataclass(frozen=True)
class Errors:
    """Both errors of the same prompts: a curve each, and the samples, whose last axis is (∇_V, ∇_U)."""

    samples: Float[np.ndarray, "prompts k 2"]
    value: ErrorCurve
    bilinear: ErrorCurve

    def curve(self, name: str) -> ErrorCurve:
        """By name."""
        return {VALUE: self.value, BILINEAR: self.bilinear}[name]


def both_gaps(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " d"]) -> Float[Array, " 2"]:
    """The gaps of ∇_V and ∇_U at one prompt and one query."""
    return jnp.stack([value_gap(params, prompt, measure, query), bilinear_gap(params, prompt, measure, query)])


def draw(
    sigma: float, gain: float, queries: Gaussian, lengths: list[int], prompts: int, *, key: PRNGKeyArray
) -> Errors:
    """Prompts of Gaussian tokens of scale σ."""
    params = Attention(gain * np.eye(DIMENSION), np.eye(DIMENSION))
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    samples = np.asarray(sample_gaps(both_gaps, params, normal(sigma), queries, lengths, **options))
    return Errors(samples, *(error_curve(lengths, samples[..., index]) for index in range(2)))


def means(measured: Mapping[float, Errors], name: str) -> Float[np.ndarray, "sigmas k"]:
    """Mean errors by σ and length."""
    return np.stack([errors.curve(name).mean for errors in measured.values()])


# --- by scale and length ----------------------------------------------------------------------------------


def error_table(
    measured: Mapping[float, Errors],
    exact: Mapping[float, Float[np.ndarray, " k"]],
    bounds: Mapping[str, BoundShape],
    half: int,
) -> Table:
    """Errors of both gradients against length by σ: simulated, exact for ∇_V, and the form of the bound."""
    frames = []
    for sigma, errors in measured.items():
        lengths = errors.value.lengths.astype(float)
        for name, bound in bounds.items():
            base, curve = {"gradient": SYMBOL[name], "sigma": sigma, "length": lengths}, errors.curve(name)
            kinds = ["fitted"] * half + ["bound"] * (len(lengths) - half)
            frames += [
                pd.DataFrame({**base, "kind": "prompts", "error": curve.mean, "std_error": curve.std_error}),
                pd.DataFrame({**base, "kind": kinds, "error": bound(sigma, lengths)}),
            ]
        known = {"gradient": SYMBOL[VALUE], "sigma": sigma, "length": lengths}
        frames.append(pd.DataFrame({**known, "kind": "exact", "error": exact[sigma]}))
    columns = {
        "gradient": Column("The gradient with respect to V or to U", "name"),
        "sigma": Column("Token scale σ"),
        "kind": Column(
            "`prompts`: simulated; `exact`: by quadrature; `fitted`, `bound`: c₁ σ^p (ln L)^q / L^(c₂/σ²), p, q = 6, 1 "
            "for ∇_V and 12, 2 for ∇_U, where its constants were fitted to the simulation, and beyond",
            "name",
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared Hilbert–Schmidt norm of the gradient's error, in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def value_claim(
    measured: Mapping[float, Errors], exact: Mapping[float, Float[np.ndarray, " k"]], table: ScoreTable, gain: float
) -> Claim:
    """The simulated error of ∇_V against the exact one, worst over σ and L."""

    def worst(expected):
        return max(
            np.max(np.abs(errors.value.mean - expected(sigma)) / errors.value.std_error)
            for sigma, errors in measured.items()
        )

    comparisons = means(measured, VALUE).size
    return Claim(
        id="gradient-concentration-value",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the simulated error of ∇_V is the number of "
            "outputs times the exact error of the output: the worst deviation, in standard errors."
        ),
        source="derived here",
        figure="gradient_error_vs_length",
        measured=worst(lambda sigma: exact[sigma]),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        std_error=1.0,
        alternative=Alternative(
            f"query sizes τ were {INFLATION - 1:.0%} larger",
            worst(lambda sigma: DIMENSION * sigma**2 * isotropic_error(table, INFLATION * gain * sigma, DIMENSION)),
        ),
    )


def bound_claim(name: str, bound: BoundShape, measured: Mapping[float, Errors], half: int) -> Claim:
    """Simulated errors over the bound whose constants were fitted to the shorter half of the lengths."""
    lengths = next(iter(measured.values())).value.lengths
    errors = means(measured, name)
    shape = bound(np.asarray(list(measured))[:, None], lengths[half:])
    ratio, frozen = float(np.max(errors[:, half:] / shape)), float(np.max(errors[:, :1] / shape))
    return Claim(
        id=f"gradient-concentration-bound-{name}",
        statement=(
            f"With constants fitted up to L = {lengths[half - 1]}, c₁ σ^{bound.sigma_power} (ln L)^{bound.log_power} / "
            f"L^(c₂/σ²) bounds the simulated error of {SYMBOL[name]} for all σ up to L = {lengths[-1]}: the largest "
            "ratio of error to bound on the longer half."
        ),
        source="[BB26, Prop. 3.4]",
        figure="gradient_error_vs_length",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(f"errors stayed what they are at L = {lengths[0]}", frozen),
    )


# --- the extra factor -------------------------------------------------------------------------------------


def long_prompt_law(tau: Float[np.ndarray, "*n"], gain: float) -> Float[np.ndarray, "*n"]:
    """`lim L · error` of ∇_U at a query of size τ, tokens of scale 1: `‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d)`.

    The delta method of `fluctuation`, for the tilted covariance: `‖z‖² e^{Λ(2ξ)-2Λ(ξ)}` times the mean of
    `‖y yᵀ - ∇²Λ(ξ)‖²` over `y = z' - ∇Λ(ξ)`, z' of the law tilted by 2ξ, which for a Gaussian is N(Γξ, Γ).
    """
    square = tau**2
    return square / gain**2 * np.exp(square) * ((square + DIMENSION) ** 2 + 2 * square + DIMENSION)


def log_ratio(errors: Errors) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """`ln` of the error of ∇_U over that of ∇_V at each length, with its covariance: both are of the same prompts."""
    relative = errors.samples / errors.samples.mean(axis=0)
    difference = relative[..., 1] - relative[..., 0]
    ratio = np.log(errors.bilinear.mean / errors.value.mean)
    return ratio, np.cov(difference, rowvar=False) / len(difference)


def factor_table(measured: Mapping[float, Errors], asked: Mapping[float, Errors], gain: float) -> Table:
    """Ratio of the two errors: by σ and length, and by query size and length."""
    frames = []
    for panel, family in {"scale": measured, "query": asked}.items():
        for number, errors in family.items():
            logs, cov = log_ratio(errors)
            ratio = np.exp(logs)
            lengths = errors.value.lengths.astype(float)
            spread = ratio * np.sqrt(np.diagonal(cov))
            base = {"panel": panel, "series": "prompts", "number": number, "length": lengths}
            frames.append(pd.DataFrame({**base, "ratio": ratio, "std_error": spread}))
    taus = np.linspace(min(asked), max(asked), 60)
    limit = long_prompt_law(taus, gain) / (DIMENSION * (DIMENSION + taus**2) * np.exp(taus**2))
    frames.append(pd.DataFrame({"panel": "query", "series": "limit", "number": taus, "ratio": limit}))
    columns = {
        "panel": Column("`scale`: queries N(0, I), tokens of scale σ; `query`: one query, tokens of scale 1", "name"),
        "series": Column("`prompts`: simulated; `limit`: prompts of infinite length", "name"),
        "number": Column("σ in the first panel, τ in the second"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "ratio": Column("Mean squared error of ∇_U over that of ∇_V", std_error="std_error"),
        "std_error": Column("Standard error of the simulated ratio", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def query_claim(asked: Mapping[float, Errors], gain: float) -> Claim:
    """L times the error of ∇_U at the longest length over its limit, worst over moderate queries."""
    taus = np.asarray([tau for tau in asked if tau <= MODERATE])
    curves = [asked[tau].bilinear for tau in taus]
    scaled, std_error = (
        np.asarray([curve.lengths[-1] * number[-1] for curve, number in pairs])
        for pairs in ([(c, c.mean) for c in curves], [(c, c.std_error) for c in curves])
    )

    def worst(law):
        return float(np.max(np.abs(scaled - law) / std_error))

    return Claim(
        id="gradient-concentration-query",
        statement=(
            f"At {len(taus)} queries of size τ ≤ {MODERATE}, L times the mean squared error of ∇_U is that of long "
            "prompts, ‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d): the worst deviation at the longest length, in standard errors."
        ),
        source="derived here",
        figure="gradient_extra_factor",
        measured=worst(long_prompt_law(taus, gain)),
        expected=0.0,
        tolerance=comparison_quantile(len(taus)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative(
            "all tokens weighed the same, ‖z‖² (d² + d)", worst((taus / gain) ** 2 * (DIMENSION**2 + DIMENSION))
        ),
    )


def growth_claim(measured: Mapping[float, Errors]) -> Claim:
    """At the largest σ the extra factor grows with the length, by more than chance."""
    sigma = max(measured)
    ratio, cov = log_ratio(measured[sigma])
    growth = np.exp(ratio[-1] - ratio[0])
    std_error = growth * np.sqrt(cov[0, 0] + cov[-1, -1] - 2 * cov[0, -1])
    low, high = measured[sigma].value.lengths[[0, -1]]
    return Claim(
        id="gradient-concentration-extra",
        statement=(
            f"At σ = {sigma:g} the error of ∇_U, over that of ∇_V, grows from L = {low} to L = {high}: by how much, "
            "beyond what chance would do to a constant ratio."
        ),
        source="[BB26, Prop. 3.4]",
        figure="gradient_extra_factor",
        measured=growth,
        expected=1 + comparison_quantile(1) * std_error,
        tolerance=0.0,
        relation="≥",
        std_error=std_error,
        alternative=Alternative("both errors followed one law, up to a constant", 1.0),
    )
