"""How fast the output of a finite prompt approaches that of its law: bound, simulation and exact curve in one place.

Tokens of scale σ, standard normal queries, U = uI and V = I. For Gaussian tokens the error in L²(ν) is known exactly
at any length; over σ² it depends on σ through H = uσ alone.
"""

from collections.abc import Mapping
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import AfterValidator, Field
from scipy.special import log_ndtr, ndtri

from lib.attention import Attention, attend, fluctuation
from lib.concentration import (
    BoundShape,
    ErrorCurve,
    Rate,
    ScoreTable,
    chi_density,
    error_curve,
    fit_bound,
    fit_rate,
    isotropic_error,
    one_over_length,
    output_gap,
    sample_gaps,
    score_table,
)
from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error
from lib.measures import Empirical, Gaussian, GaussianMixture, Measure, Uniform

# The wrong theory that the exact curve must be told from: query sizes τ this much too large.
INFLATION = 1.05
# Where the exact curves begin and end, and the length up to which the constants of the bound are fitted.
SHORTEST, SPLIT, LONGEST = 2, 10**6, 10**12
# Queries asked of each prompt: a query costs a fraction of the tokens it is asked of.
QUERIES = 4
# The share of a mixture's variance that lies within its components.
WITHIN = 0.1
# Of tokens and queries, where the dimension is not what varies.
DIMENSION = 2
# A softmax output may pass the largest value by rounding only.
ROUNDING = 1e-9


def increasing(numbers: list) -> list:
    """Each once, in order."""
    return sorted(set(numbers))


@experiment
def output_concentration(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="u of U = uI; V = I.")],
    scales: Annotated[
        list[Annotated[float, Field(ge=1.0, le=4.0)]],
        Field(min_length=2, max_length=6, description="Token scales σ, at least two of them."),
        AfterValidator(increasing),
    ],
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(min_length=4, max_length=12, description="Prompt lengths L that are simulated."),
        AfterValidator(increasing),
    ],
    prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts for each σ and each token law.")],
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=16)]],
        Field(min_length=2, max_length=6, description="Dimensions that are compared."),
        AfterValidator(increasing),
    ],
    dimension_scale: Annotated[float, Field(ge=1.0, le=1.6, description="σ at which dimensions are compared.")],
    dimension_lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(min_length=1, max_length=8, description="Prompt lengths simulated in each dimension."),
        AfterValidator(increasing),
    ],
    dimension_prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts in each dimension.")],
    law_scale: Annotated[float, Field(ge=1.8, le=3.0, description="σ at which four token laws are compared.")],
    truncation: Annotated[float, Field(ge=0.2, le=1.0, description="κ of the truncation M = L^κ of the proof.")],
    partition_length: Annotated[int, Field(ge=16, le=10**5, description="L of the partition functions.")],
    partition_prompts: Annotated[int, Field(ge=500, le=10**6, description="Partition functions drawn.")],
) -> Result:
    """[BB26, Prop. 3.1] beside simulation and the exact finite-prompt theory."""
    scale_key, dimension_key, law_key, partition_key = jr.split(jr.key(seed), 4)
    dense = np.append(np.geomspace(SHORTEST, SPLIT, 10), np.geomspace(SPLIT, LONGEST, 10)[1:])
    everywhere = np.unique(np.concatenate([dense, lengths, dimension_lengths]))
    theory = Theory(score_table(np.log(everywhere)), everywhere)

    def ask(law, key):
        options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
        return np.asarray(sample_gaps(Anatomy(truncation), head(gain), law, isotropic(DIMENSION), lengths, **options))

    parts = {sigma: ask(clusters(sigma, within=1.0), jr.fold_in(scale_key, i)) for i, sigma in enumerate(scales)}
    curves = {sigma: error_curve(lengths, these[..., 0]) for sigma, these in parts.items()}
    exact = np.stack([sigma**2 * theory(gain * sigma, DIMENSION, dense) for sigma in scales])
    short = dense <= SPLIT
    bound = fit_bound(scales, dense[short], exact[:, short])
    norm = gain * dimension_scale
    widths = dimension_curves(norm, dimensions, dimension_lengths, dimension_prompts, key=dimension_key)
    laws = {
        name: error_curve(lengths, ask(law, jr.fold_in(law_key, i))[..., 0])
        for i, (name, law) in enumerate(token_laws(law_scale).items())
    }
    limits = law_limits(law_scale, gain)
    partitions = partition_functions(partition_length, partition_prompts, key=partition_key)
    return Result(
        tables={
            "output_error_vs_length": error_table(curves, dense, exact, bound),
            "output_error_by_dimension": dimension_table(widths, theory, norm, dense),
            "output_error_by_law": law_table(laws, limits),
            "output_proof": proof_table(
                partitions, parts, lengths, gain=gain, truncation=truncation, partition_length=partition_length
            ),
        },
        claims=(
            exact_claim(curves, theory, gain),
            bound_claim(bound, np.asarray(scales), dense[~short], exact[:, ~short]),
            dimension_claim(widths, theory, norm),
            *law_claims(laws),
            limit_claim(laws, limits),
            share_claim(parts, lengths, gain, truncation),
            ceiling_claim(parts),
        ),
    )


# --- the scene --------------------------------------------------------------------------------------------


class Theory:
    """The exact error over σ² as a function of H, d and L, at the lengths of one table of score statistics."""

    def __init__(self, table: ScoreTable, lengths: Float[np.ndarray, " k"]):
        self.table, self.lengths = table, lengths

    def __call__(self, operator_norm: float, dimension: int, lengths) -> Float[np.ndarray, " l"]:
        """Only lengths of the table have an answer."""
        errors = isotropic_error(self.table, operator_norm, dimension)
        places = np.searchsorted(self.lengths, lengths)
        assert np.array_equal(self.lengths[places], lengths)
        return errors[places]


def head(gain: float, dimension: int = DIMENSION) -> Attention:
    """U = gain · I, V = I."""
    return Attention(gain * np.eye(dimension), np.eye(dimension))


def isotropic(dimension: int) -> Gaussian:
    """N(0, I)."""
    return Gaussian(np.zeros(dimension), np.eye(dimension))


def clusters(scale: float, *, within: float, dimension: int = DIMENSION) -> GaussianMixture:
    """Independent coordinates of variance σ², of which the share `within` is that of a Gaussian and the rest of a sign.

    From signs (0) over clusters at the corners of a cube to the Gaussian (1): one type, hence compiled once.
    """
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * dimension), axis=-1).reshape(-1, dimension)
    covs = np.broadcast_to(within * scale**2 * np.eye(dimension), (len(corners), dimension, dimension))
    return GaussianMixture(np.zeros(len(corners)), Gaussian(np.sqrt(1 - within) * scale * corners, covs))


def token_laws(scale: float, dimension: int = DIMENSION) -> dict[str, Measure]:
    """Four products of symmetric laws of variance σ², each σ-sub-Gaussian and with no smaller constant."""
    return {
        "Gaussian": clusters(scale, within=1.0, dimension=dimension),
        "mixture": clusters(scale, within=WITHIN, dimension=dimension),
        "uniform": Uniform(np.full(dimension, np.sqrt(3.0) * scale)),
        "Rademacher": clusters(scale, within=0.0, dimension=dimension),
    }


def deviations(curve: ErrorCurve, expected: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Distances of the means from `expected`, in standard errors."""
    return np.abs(curve.mean - expected) / curve.std_error


# --- the error and its anatomy ----------------------------------------------------------------------------


class Anatomy(eqx.Module):
    """A gap and what the proof makes of it, with the truncation M = L^κ.

    The gap; whether the largest weight passes M; the gap if it does; then also the proof's bound
    `(max_i ‖Vz_i‖ + ‖T[μ](z)‖)²`; by how much the output, and the limit, pass `max_i ‖Vz_i‖`.
    """

    truncation: float = eqx.field(static=True)

    def __call__(
        self, params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " d"]
    ) -> Float[Array, " 6"]:
        """Of one prompt and one query."""
        answer, limit = attend(params, prompt, query), attend(params, measure, query)
        sizes = jnp.linalg.norm(jnp.stack([answer, limit]), axis=1)
        largest = jnp.sqrt(jnp.max(jnp.sum((prompt.points @ params.value.T) ** 2, axis=1)))
        highest = jnp.max(prompt.points @ (params.bilinear @ query))
        above = highest > self.truncation * jnp.log(prompt.points.shape[0])
        gap = jnp.sum((answer - limit) ** 2)
        excess = jnp.maximum(sizes - largest, 0.0)
        return jnp.stack([gap, above, gap * above, (largest + sizes[1]) ** 2 * above, *excess])


GAP, ABOVE, GAP_ABOVE, CEILING_ABOVE, EXCESS, LIMIT_EXCESS = range(6)


def share_above(
    operator_norm: float, dimension: int, truncation: float, length: float | Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """`P(max_i ⟨Uz, z_i⟩ > κ ln L) = E[1 - Φ(κ ln L / H‖z‖)^L]`, the outer mean over ‖z‖ by a trapezoid."""
    radius = np.linspace(0.0, 12.0 + np.sqrt(dimension), 6001)[1:, None]
    tail = -np.expm1(length * log_ndtr(truncation * np.log(length) / (operator_norm * radius)))
    return np.trapezoid(tail * chi_density(radius, dimension), radius, axis=0)


def error_table(
    curves: Mapping[float, ErrorCurve],
    dense: Float[np.ndarray, " n"],
    exact: Float[np.ndarray, "sigmas n"],
    bound: BoundShape,
) -> Table:
    """Error against length by σ: exact, simulated, and the form of the bound."""
    frames = []
    for (sigma, curve), values in zip(curves.items(), exact, strict=True):
        shape = pd.DataFrame({"sigma": sigma, "length": dense, "error": bound(sigma, dense)})
        frames += [
            pd.DataFrame({"sigma": sigma, "kind": "exact", "length": dense, "error": values}),
            shape.assign(kind=np.where(dense <= SPLIT, "fitted", "bound")),
            pd.DataFrame({"sigma": sigma, "kind": "prompts", **as_columns(curve)}),
        ]
    columns = {
        "sigma": Column("Token scale σ"),
        "kind": Column(
            "`exact`: by quadrature; `prompts`: simulated; `fitted`, `bound`: c₁ σ⁶ ln L / L^(c₂/σ²), where its two "
            "constants were fitted to the exact values, and beyond",
            "name",
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output, E ‖T[μ̂_L] - T[μ]‖² in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def as_columns(curve: ErrorCurve, unit: float = 1.0) -> dict[str, np.ndarray]:
    """Length, error and standard error, the latter two over `unit`."""
    return {"length": curve.lengths.astype(float), "error": curve.mean / unit, "std_error": curve.std_error / unit}


def exact_claim(curves: Mapping[float, ErrorCurve], theory: Theory, gain: float) -> Claim:
    """Simulated against exact error, worst over σ and L."""

    def worst(inflation):
        return max(
            deviations(curve, sigma**2 * theory(inflation * gain * sigma, DIMENSION, curve.lengths)).max()
            for sigma, curve in curves.items()
        )

    comparisons = sum(curve.lengths.size for curve in curves.values())
    return Claim(
        id="output-concentration-exact",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the error of simulated Gaussian prompts in "
            "L²(ν) is the exact one: the worst deviation, in standard errors."
        ),
        source="derived here",
        figure="output_error_vs_length",
        measured=worst(1.0),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        std_error=1.0,
        alternative=Alternative(f"query sizes τ were {INFLATION - 1:.0%} larger", worst(INFLATION)),
    )


def bound_claim(
    bound: BoundShape,
    sigmas: Float[np.ndarray, " s"],
    lengths: Float[np.ndarray, " n"],
    errors: Float[np.ndarray, "s n"],
) -> Claim:
    """The exact errors over the bound whose constants were fitted to shorter prompts."""
    ratio, blind = (
        float(np.max(errors / shape))
        for shape in (bound(sigmas[:, None], lengths), sigmas[:, None] ** 6 * bound(1.0, lengths))
    )
    return Claim(
        id="output-concentration-bound",
        statement=(
            f"With constants fitted up to L = 10^{np.log10(SPLIT):.0f}, c₁σ⁶ ln L / L^(c₂/σ²) bounds the exact error "
            f"for all σ up to L = 10^{np.log10(LONGEST):.0f}: the largest ratio of error to bound on the longer half."
        ),
        source="[BB26, Prop. 3.1]",
        figure="output_error_vs_length",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the rate were L^-c₂ at every σ", blind),
    )


# --- dimensions -------------------------------------------------------------------------------------------


def dimension_curves(
    norm: float, dimensions: list[int], lengths: list[int], prompts: int, *, key: PRNGKeyArray
) -> dict[int, ErrorCurve]:
    """Errors over σ², at H = `norm`: tokens and queries in the first d coordinates of one space, compiled once."""
    largest = max(dimensions)
    params = head(norm, largest)

    def curve(d):
        flat = Gaussian(np.zeros(largest), np.diag((np.arange(largest) < d).astype(float)))
        options = {"prompts": prompts, "key": jr.fold_in(key, d), "queries_per_prompt": QUERIES}
        return error_curve(lengths, sample_gaps(output_gap, params, flat, flat, lengths, **options))

    return {d: curve(d) for d in dimensions}


def dimension_table(
    curves: Mapping[int, ErrorCurve], theory: Theory, norm: float, dense: Float[np.ndarray, " n"]
) -> Table:
    """Error against length by dimension, over the mean square of the infinite prompt's output."""
    frames = []
    for d, curve in curves.items():
        size = norm**2 * d
        frames += [
            pd.DataFrame({"dimension": d, "kind": "exact", "length": dense, "error": theory(norm, d, dense) / size}),
            pd.DataFrame({"dimension": d, "kind": "prompts", **as_columns(curve, size)}),
        ]
    columns = {
        "dimension": Column("Dimension d of tokens and queries"),
        "kind": Column("`exact`: by quadrature; `prompts`: simulated", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error over the mean square H²dσ² of the limit", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean, in the same unit", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def dimension_claim(curves: Mapping[int, ErrorCurve], theory: Theory, norm: float) -> Claim:
    """Simulated against exact error, worst over d and L."""

    def worst(expected):
        return max(deviations(curve, expected(d, curve.lengths)).max() for d, curve in curves.items())

    comparisons = sum(curve.lengths.size for curve in curves.values())
    return Claim(
        id="output-concentration-dimension",
        statement=(
            f"At {comparisons} pairs of a dimension and a prompt length, the error of simulated Gaussian prompts is "
            "the exact one: the worst deviation, in standard errors."
        ),
        source="derived here",
        figure="output_error_by_dimension",
        measured=worst(lambda d, lengths: theory(norm, d, lengths)),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        std_error=1.0,
        alternative=Alternative(
            "each coordinate erred as if it were alone, d times the error of dimension one",
            worst(lambda d, lengths: d * theory(norm, 1, lengths)),
        ),
    )


# --- laws of tokens ---------------------------------------------------------------------------------------


def law_limits(scale: float, gain: float) -> dict[str, float]:
    """`lim L · E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)}`: the mean of `tr fluctuation` over queries, where it is finite.

    The coordinates of token and query are independent, so with `r = e^{Λ(2ξ)-2Λ(ξ)}` of one coordinate the mean is
    `d · E[fluctuation] · E[r]^{d-1}`, each over one normal. At H² ≥ ½ Gaussian tokens have none.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    params, weights = head(gain, 1), jnp.asarray(weights / weights.sum())

    def limit(law):
        def one(z):
            tilt = gain * z[None]
            return fluctuation(params, law, z[None])[0, 0], jnp.exp(law.log_mgf(2 * tilt) - 2 * law.log_mgf(tilt))

        noise, ratio = jax.vmap(one)(jnp.asarray(nodes))
        return DIMENSION * (weights @ noise) * (weights @ ratio) ** (DIMENSION - 1)

    laws = {name: law for name, law in token_laws(scale, 1).items() if name != "Gaussian"}
    limits = jax.jit(lambda: {name: limit(law) for name, law in laws.items()})()
    return {name: float(value) for name, value in limits.items()}


def law_table(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Table:
    """Error against length by law, with the 1/L law of long prompts where there is one."""
    frames = [pd.DataFrame({"law": name, "kind": "prompts", **as_columns(curve)}) for name, curve in curves.items()]
    for name, limit in limits.items():
        lengths = curves[name].lengths.astype(float)
        frames.append(pd.DataFrame({"law": name, "kind": "limit", "length": lengths, "error": limit / lengths}))
    columns = {
        "law": Column(f"Law of a token: {DIMENSION} independent coordinates of equal variance", "name"),
        "kind": Column("`prompts`: simulated; `limit`: the mean of tr(fluctuation)/L over queries", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def rate_of(curve: ErrorCurve) -> Rate:
    """The exponent, with a correction of relative size 1/L fitted along."""
    return fit_rate(curve, one_over_length)


def law_claims(curves: Mapping[str, ErrorCurve]) -> list[Claim]:
    """1/L for each law but the Gaussian, whose exponent is the alternative."""
    gaussian = rate_of(curves["Gaussian"]).exponent
    others = {name: rate_of(curve) for name, curve in curves.items() if name != "Gaussian"}
    words = {"mixture": "clustered", "uniform": "uniform", "Rademacher": "Rademacher"}
    return [
        Claim(
            id=f"output-concentration-{name.lower()}",
            statement=(
                f"The error of {words[name]} tokens falls like 1/L: the fitted exponent, with a correction of relative "
                "size 1/L, is 1."
            ),
            source="derived here",
            figure="output_error_by_law",
            measured=rate.exponent,
            expected=1.0,
            tolerance=comparison_quantile(len(others)) * rate.std_error,
            std_error=rate.std_error,
            alternative=Alternative("it fell like that of Gaussian tokens of the same σ", gaussian),
        )
        for name, rate in others.items()
    ]


def limit_claim(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Claim:
    """L times the error at the longest length, in units of its limit."""
    units = {name: limit / curves[name].lengths[-1] for name, limit in limits.items()}
    ratios = [(curves[name].mean[-1] / unit, curves[name].std_error[-1] / unit) for name, unit in units.items()]
    ratio, std_error = max(ratios, key=lambda pair: abs(pair[0] - 1) / pair[1])
    return Claim(
        id="output-concentration-limit",
        statement=(
            "For tokens that are clustered, uniform or signs, L times the error tends to the mean of tr(fluctuation) "
            "over queries: the ratio of the two at the longest length is 1, worst of three laws."
        ),
        source="derived here",
        figure="output_error_by_law",
        measured=ratio,
        expected=1.0,
        tolerance=comparison_quantile(len(ratios)) * std_error,
        std_error=std_error,
        alternative=Alternative("the noise were a third smaller", 1.5 * ratio),
    )


# --- the proof --------------------------------------------------------------------------------------------


def partition_taus() -> Float[np.ndarray, " taus"]:
    """Query sizes at which partition functions are drawn."""
    return np.linspace(0.0, 7.0, 22)


def partition_functions(length: int, prompts: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "prompts taus"]:
    """`ln W`, `W = (1/L) Σ_i e^{τ g_i - τ²/2}`, of standard normal scores; all τ are asked of the same prompts."""
    law = isotropic(1)
    points = law.sample(prompts * length, key=key).reshape(prompts, length, 1)

    @jax.jit
    def log_partition(tau):
        return jax.vmap(lambda tokens: Empirical(tokens).log_mgf(tau[None]) - law.log_mgf(tau[None]))(points)

    return np.stack([np.asarray(log_partition(tau)) for tau in jnp.asarray(partition_taus())], axis=1)


def proof_table(
    partitions: Float[np.ndarray, "n taus"],
    parts: Mapping[float, Float[np.ndarray, "prompts k parts"]],
    lengths: list[int],
    *,
    gain: float,
    truncation: float,
    partition_length: int,
) -> Table:
    """Three panels: partition functions against τ, share above M against L by σ, the parts of the error at least σ."""
    quantiles = {"lowest": 0.05, "low": 0.25, "median": 0.5, "high": 0.75, "highest": 0.95}
    taus = partition_taus()
    spread = [
        pd.DataFrame({"panel": "partition", "series": name, "x": taus, "value": np.quantile(partitions, q, axis=0)})
        for name, q in quantiles.items()
    ]
    # The largest of L normals: at τ beyond its size, its term alone is most of W.
    largest = -ndtri(1 - 0.5 ** (1 / partition_length))
    beyond = np.linspace(largest, max(taus[-1], largest), 20)
    alone = {"series": "alone", "x": beyond, "value": largest * beyond - np.log(partition_length) - beyond**2 / 2}
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
            simulated("share", "prompts", sigma, lengths, these[..., ABOVE]),
        )
    ]
    least = min(parts)
    split = [
        simulated("split", name, least, lengths, parts[least][..., part])
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
        "x": Column("Query size τ in the first panel, tokens L in the others"),
        "value": Column("ln W, a share, or a mean squared error", std_error="std_error", absolute=1e-9),
        "std_error": Column("Standard error of the simulated value", std_error="std_error"),
    }
    return Table(
        pd.concat([*spread, pd.DataFrame(alone).assign(panel="partition"), *shares, *split], ignore_index=True).reindex(
            columns=list(columns)
        ),
        columns,
    )


def simulated(
    panel: str, series: str, sigma: float, lengths: list[int], samples: Float[np.ndarray, "prompts k"]
) -> pd.DataFrame:
    """Means over prompts, with standard errors."""
    means = {"x": np.asarray(lengths, float), "value": samples.mean(axis=0), "std_error": standard_error(samples)}
    return pd.DataFrame({"panel": panel, "series": series, "sigma": sigma, **means})


def share_claim(
    parts: Mapping[float, Float[np.ndarray, "prompts k parts"]], lengths: list[int], gain: float, truncation: float
) -> Claim:
    """Simulated against exact share above the truncation, worst over σ and L."""
    sizes = np.asarray(lengths, float)

    def worst(share):
        return max(
            np.max(np.abs(these[..., ABOVE].mean(axis=0) - share(gain * sigma)) / standard_error(these[..., ABOVE]))
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
        figure="output_proof",
        measured=worst(lambda norm: share_above(norm, DIMENSION, truncation, sizes)),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("all queries had the root mean square length √d", worst(of_one_query)),
    )


def ceiling_claim(parts: Mapping[float, Float[np.ndarray, "prompts k parts"]]) -> Claim:
    """`‖T[μ̂_L](z)‖ ≤ max_i ‖Vz_i‖`, prompt by prompt."""
    excess, wrong = (max(float(these[..., part].max()) for these in parts.values()) for part in (EXCESS, LIMIT_EXCESS))
    return Claim(
        id="output-concentration-ceiling",
        statement=(
            "No output is longer than the longest value ‖Vz_i‖ of its prompt: the largest excess over all prompts, "
            "queries and lengths."
        ),
        source="[BB26, Prop. 3.1]",
        figure="output_proof",
        measured=excess,
        expected=0.0,
        tolerance=ROUNDING,
        relation="≤",
        alternative=Alternative("outputs were those of the infinite prompt", wrong),
    )
