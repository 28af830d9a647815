"""An infinite Gaussian prompt is linear attention; finite prompts and other laws depart from it.

[BB26, Lemma 2.1] is computed on random Gaussians, approached by finite prompts, and put beside what other
measures of the same covariance do instead.
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
from pydantic import AfterValidator, Field

from lib.attention import Attention, attend, fluctuation
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
from lib.finite_prompt import participation as exact_participation
from lib.measures import (
    Empirical,
    Gaussian,
    GaussianMixture,
    Laplace,
    Measure,
    Rademacher,
    Uniform,
    empirical,
)

# The wrong theory that the exact claims and the rate must tell from the right one.
INFLATION = 1.05
# From this many prompts on, the mean output of a length is drawn and tested.
ENOUGH_PROMPTS = 1000
FEWEST_PROMPTS = 8
# From this length on the laws in ln L of Laplace prompts are fitted; shorter prompts still carry corrections.
LONG = 100
SHORT = 100
# Where the Laplace pictures are taken, in units of the pole 1/b.
INSIDE, BETWEEN, BEYOND = 0.4, 0.8, 2.5
RATE_TAU = 0.5
# How many numbers one batch may hold: a few fit a cache, all of them no memory.
TOGETHER = 2**16


def short_and_long(lengths: list[int]) -> list[int]:
    """One length short enough to afford many prompts, two long enough to see a growth law."""
    if min(lengths) > SHORT:
        raise ValueError(f"needs one length of at most {SHORT}, because few prompts are drawn of long ones")
    if len({length for length in lengths if length >= LONG}) < 2:
        raise ValueError(f"needs two different lengths of at least {LONG}, because laws in L are fitted there")
    return lengths


@experiment
def gaussian_limit(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**7)]],
        Field(min_length=2, max_length=12, description=f"Prompt lengths L, one at most {SHORT}, two at least {LONG}."),
        AfterValidator(short_and_long),
    ],
    prompts: Annotated[int, Field(ge=ENOUGH_PROMPTS, le=10**5, description="Most prompts drawn at one length.")],
    tokens: Annotated[
        int,
        Field(
            ge=SHORT * ENOUGH_PROMPTS,
            le=10**11,
            description=f"Tokens drawn at one length: long prompts are fewer, never below {FEWEST_PROMPTS}.",
        ),
    ],
    largest_tau: Annotated[float, Field(ge=2.0, le=20.0, description="Largest query size τ = ‖Γ^{1/2} U z‖.")],
    queries: Annotated[int, Field(ge=6, le=200, description="Query sizes between 0 and the largest, both included.")],
    rate_length: Annotated[int, Field(ge=500, le=10**5, description="Prompt length at which the rate is measured.")],
    rate_prompts: Annotated[int, Field(ge=1000, le=10**6, description="Prompts that measure the rate.")],
    measure_length: Annotated[
        int, Field(ge=1000, le=10**6, description="Prompt length for the measures that are not Gaussian.")
    ],
    measure_prompts: Annotated[int, Field(ge=50, le=10**4, description="Prompts for each of those measures.")],
    gaussians: Annotated[int, Field(ge=2, le=10**4, description="Random Gaussians of each dimension for the lemma.")],
) -> Result:
    """Lemma 2.1 exactly, its approach by finite prompts, and its failure for every other law."""
    lemma_key, response_key, rate_key, measures_key, laplace_key = jr.split(jr.key(seed), 5)
    scene = Scene.fixed()
    taus = jnp.linspace(0.0, largest_tau, queries)
    counts = {length: max(FEWEST_PROMPTS, min(prompts, tokens // length)) for length in sorted(set(lengths))}
    responses = {
        length: respond(scene, taus, length, count, key=jr.fold_in(response_key, length))
        for length, count in counts.items()
    }
    others = {
        name: sweep(measure, tilts_of(name), measure_length, measure_prompts, key=jr.fold_in(measures_key, index))
        for index, (name, measure) in enumerate(one_coordinate_measures().items())
    }
    laplace = {
        length: laplace_outputs(length, count, key=jr.fold_in(laplace_key, length)) for length, count in counts.items()
    }
    return Result(
        tables={
            "finite_prompt_response": response_table(responses, np.asarray(taus)),
            "mean_output": mean_output_table(responses, np.asarray(taus)),
            "other_measures": other_measures_table(others),
            "laplace_domain": laplace_table(laplace),
        },
        claims=(
            lemma_claim(gaussians, key=lemma_key),
            rate_claim(scene, rate_length, rate_prompts, key=rate_key),
            ceiling_claim(responses, np.asarray(taus)),
            mean_claim(responses, np.asarray(taus)),
            *measure_claims(others),
            *laplace_claims(laplace),
        ),
    )


# --- Gaussian prompts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """One head, one Gaussian, and queries `τ · direction` with `‖Γ^{1/2} U direction‖ = 1`.

    `reading` is the component along the lemma's line: `⟨reading, V(m + ΓU τ direction) - Vm⟩ = τ`.
    """

    params: Attention
    gaussian: Gaussian
    direction: Float[Array, " d"]
    reading: Float[Array, " e"]

    @classmethod
    def fixed(cls) -> "Scene":
        """Three dimensions, two outputs, nothing symmetric, nothing centred."""
        params = Attention([[0.9, 0.3, -0.2], [-0.4, 0.7, 0.1], [0.2, 0.1, 0.8]], [[1.0, 0.5, -0.3], [-0.2, 0.8, 0.6]])
        gaussian = Gaussian([0.5, -0.3, 0.2], [[1.0, 0.4, -0.2], [0.4, 0.8, 0.3], [-0.2, 0.3, 0.6]])
        direction = jnp.asarray([1.0, 0.6, 0.3])
        tilt = params.bilinear @ direction
        direction /= jnp.sqrt(tilt @ gaussian.cov @ tilt)
        line = params.value @ gaussian.cov @ params.bilinear @ direction
        return cls(params, gaussian, direction, line / (line @ line))

    def read(self, output: Float[Array, "*n e"]) -> Float[Array, "*n"]:
        """Where on the lemma's line an output falls, in units of τ."""
        return (output - self.params.value @ self.gaussian.mean) @ self.reading


@dataclass(frozen=True)
class Responses:
    """Of prompts of one length: response and Σp² a prompt and a query, largest token a prompt."""

    response: Float[np.ndarray, "prompts queries"]
    participation: Float[np.ndarray, "prompts queries"]
    largest_token: Float[np.ndarray, " prompts"]


def respond(scene: Scene, taus: Float[Array, " queries"], length: int, prompts: int, *, key: PRNGKeyArray) -> Responses:
    """Prompts of `length` Gaussian tokens, each asked all queries; memory stays near one long prompt's."""

    def one_prompt(index):
        prompt = empirical(scene.gaussian, length, key=jr.fold_in(key, index))

        def one_query(tau):
            output = attend(scene.params, prompt, tau * scene.direction)
            return scene.read(output), participation(scene.params, prompt, tau * scene.direction)

        largest = jnp.max(scene.read(prompt.points @ scene.params.value.T))
        return *_map(one_query, taus, length), largest

    return Responses(*_map_indices(one_prompt, prompts, length * taus.size))


def participation(params: Attention, prompt: Empirical, query: Float[Array, " d"]) -> Float[Array, ""]:
    """`Σ p_i²` of the softmax weights: `e^{Λ(2ξ) - 2Λ(ξ)} / L` for a prompt of L tokens, in [1/L, 1]."""
    tilt = params.bilinear @ query
    return jnp.exp(prompt.log_mgf(2 * tilt) - 2 * prompt.log_mgf(tilt)) / prompt.points.shape[0]


def _map(one, queries: Float[Array, "queries ..."], length: int):
    """Queries of one prompt: all at once where they fit together, else one by one."""
    return jax.lax.map(one, queries, batch_size=len(queries) if length * len(queries) <= TOGETHER else 1)


def _map_indices(one, n: int, size: int):
    """`one` of 0, 1, …, n - 1, each of about `size` numbers; a whole number of batches compiles once."""
    batch_size = max(1, min(n, TOGETHER // size))
    batches = -(-n // batch_size)
    results = jax.jit(partial(jax.lax.map, one, batch_size=batch_size))(jnp.arange(batches * batch_size))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:n], results)


def response_table(responses: Mapping[int, Responses], taus: Float[np.ndarray, " queries"]) -> Table:
    """Mean response, its standard error and the spread between prompts, at each length and query size."""
    frames = [
        pd.DataFrame(
            {
                "length": length,
                "prompts": len(these.response),
                "tau": taus,
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


def mean_output_table(responses: Mapping[int, Responses], taus: Float[np.ndarray, " queries"]) -> Table:
    """Slope of the mean response beside `1 - E Σp²`, both measured on the same prompts, at τ > 0, of many prompts."""
    asked = taus > 0
    frames = [
        pd.DataFrame(
            {
                "length": length,
                "tau": taus[asked],
                "slope": these.response.mean(axis=0)[asked] / taus[asked],
                "slope_std_error": standard_error(these.response)[asked] / taus[asked],
                "shrinkage": 1 - these.participation.mean(axis=0)[asked],
                "shrinkage_std_error": standard_error(these.participation)[asked],
                "exact": 1 - tabulate(exact_participation, taus[asked], np.log(length)),
                "gap_std_error": standard_error(these.response[:, asked] / taus[asked] + these.participation[:, asked]),
            }
        )
        for length, these in _well_sampled(responses).items()
    ]
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "slope": Column("Mean response divided by τ: 1 is Lemma 2.1", std_error="slope_std_error"),
        "slope_std_error": Column("Standard error of the slope", std_error="slope_std_error"),
        "shrinkage": Column("1 - E Σp², the slope that Stein's identity predicts", std_error="shrinkage_std_error"),
        "shrinkage_std_error": Column("Standard error of the shrinkage", std_error="shrinkage_std_error"),
        "exact": Column("1 - P by quadrature"),
        "gap_std_error": Column("Standard error of slope - shrinkage, prompt by prompt", std_error="gap_std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def lemma_claim(gaussians: int, *, key: PRNGKeyArray) -> Claim:
    """`attend` against `V(m + ΓUz)` in NumPy, on random Gaussians of every rank."""
    dims = (1, 2, 5)
    normals = np.asarray(jr.normal(key, (len(dims), gaussians, 3 * max(dims) + 2, max(dims))))
    errors = [_lemma_errors(these[:, : 3 * d + 2, :d]) for d, these in zip(dims, normals, strict=True)]
    right, wrong = (max(float(np.max(error[case])) for error in errors) for case in (0, 1))
    return Claim(
        id="gaussian-limit-lemma",
        statement=(
            f"On {gaussians * len(dims)} random Gaussians in dimensions {', '.join(map(str, dims))}, of full rank, "
            "singular and Dirac, attention equals V(m + ΓUz): the largest relative error is rounding."
        ),
        source="[BB26, Lemma 2.1]",
        figure="finite_prompt_response",
        measured=right,
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative(f"a covariance {INFLATION - 1:.0%} too large", wrong),
    )


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


def rate_claim(scene: Scene, length: int, prompts: int, *, key: PRNGKeyArray) -> Claim:
    """L · mean square error of finite prompts around the lemma, in units of `tr fluctuation`."""
    query = RATE_TAU * scene.direction
    limit = attend(scene.params, scene.gaussian, query)

    @jax.jit
    def predict(scale):
        law = Gaussian(scene.gaussian.mean, scale * scene.gaussian.cov)
        return jnp.trace(fluctuation(scene.params, law, query))

    def one(index):
        prompt = empirical(scene.gaussian, length, key=jr.fold_in(key, index))
        return jnp.sum((attend(scene.params, prompt, query) - limit) ** 2)

    errors = length * _map_indices(one, prompts, length)
    predicted, wrong = float(predict(1.0)), float(predict(INFLATION))
    std_error = float(standard_error(errors)) / predicted
    return Claim(
        id="gaussian-limit-rate",
        statement=(
            f"Prompts of {length} tokens miss Lemma 2.1 at τ = {RATE_TAU} by a mean square error of "
            "tr(fluctuation)/L: the ratio of the two is 1."
        ),
        source="derived here",
        figure="finite_prompt_response",
        measured=float(errors.mean()) / predicted,
        expected=1.0,
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative(
            f"the fluctuation of tokens of a covariance {INFLATION - 1:.0%} too large",
            float(errors.mean()) / wrong,
        ),
    )


def ceiling_claim(responses: Mapping[int, Responses], taus: Float[np.ndarray, " queries"]) -> Claim:
    """A softmax output is a convex combination: no answer beyond the largest token."""
    answers = max(float(np.max(these.response - these.largest_token[:, None])) for these in responses.values())
    line = max(float(np.max(taus - these.largest_token[:, None])) for these in responses.values())
    return Claim(
        id="gaussian-limit-ceiling",
        statement=(
            "No prompt answers above its own largest token: over all prompts and queries, the largest excess of a "
            "response over the largest token's component is not positive."
        ),
        source="derived here",
        figure="finite_prompt_response",
        measured=answers,
        expected=0.0,
        tolerance=1e-9,
        relation="≤",
        alternative=Alternative("finite prompts that follow the straight line of Lemma 2.1", line),
    )


def mean_claim(responses: Mapping[int, Responses], taus: Float[np.ndarray, " queries"]) -> Claim:
    """`E[ĝ - τ(1 - Σp²)] = 0`, prompt by prompt, in standard errors, at every length with prompts enough."""
    asked = taus > 0
    tested = _well_sampled(responses).values()
    shrunk = [these.response - taus * (1 - these.participation) for these in tested]
    unshrunk = [these.response - taus for these in tested]
    bound = comparison_quantile(len(tested) * int(asked.sum()))
    return Claim(
        id="gaussian-limit-mean-output",
        statement=(
            "The mean response of a finite prompt is τ(1 - E Σp²): the worst deviation over all τ > 0 and all "
            f"lengths with at least {ENOUGH_PROMPTS} prompts, in standard errors."
        ),
        source="derived here",
        figure="mean_output",
        measured=max(_worst_deviation(gap[:, asked]) for gap in shrunk),
        expected=0.0,
        tolerance=bound,
        std_error=1.0,
        alternative=Alternative(
            "no shrinkage, a mean response of τ", max(_worst_deviation(g[:, asked]) for g in unshrunk)
        ),
    )


def _well_sampled(responses: Mapping[int, Responses]) -> dict[int, Responses]:
    """The lengths with prompts enough to test; the budget of tokens leaves at least one."""
    return {length: these for length, these in responses.items() if len(these.response) >= ENOUGH_PROMPTS}


def _worst_deviation(samples: Float[np.ndarray, "n k"]) -> float:
    return float(np.max(np.abs(samples.mean(axis=0)) / standard_error(samples)))


# --- other measures ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """One measure of one coordinate: its exact output and those of finite prompts, along a grid of tilts."""

    tilts: Float[np.ndarray, " tilts"]
    exact: Float[np.ndarray, " tilts"]
    outputs: Float[np.ndarray, "prompts tilts"]


def one_coordinate_measures() -> dict[str, Measure]:
    """Five laws of mean 0 and variance 1: linear attention cannot tell them apart."""
    narrow = 0.45
    gap = np.sqrt((1 - narrow**2) / 0.21)
    components = Gaussian(jnp.asarray([[0.7 * gap], [-0.3 * gap]]), jnp.full((2, 1, 1), narrow**2))
    return {
        "Gaussian": Gaussian([0.0], [[1.0]]),
        "Rademacher": Rademacher([1.0]),
        "uniform": Uniform([np.sqrt(3.0)]),
        "Laplace": Laplace([np.sqrt(0.5)]),
        "mixture": GaussianMixture(jnp.log(jnp.asarray([0.3, 0.7])), components),
    }


def tilts_of(name: str) -> Float[np.ndarray, " tilts"]:
    """Tilts from -4 to 4; for the Laplace law nine tenths of the way to its poles."""
    return np.linspace(-1, 1, 61) * (0.9 * np.sqrt(2.0) if name == "Laplace" else 4.0)


def sweep(
    measure: Measure, tilts: Float[np.ndarray, " tilts"], length: int, prompts: int, *, key: PRNGKeyArray
) -> Sweep:
    """`attend` with U = V = 1 on the measure and on finite prompts of it."""
    queries = jnp.asarray(tilts)[:, None]
    exact = jax.jit(jax.vmap(lambda query: attend(_unit_head(), measure, query)[0]))(queries)
    tokens = _map_indices(lambda index: measure.sample(length, key=jr.fold_in(key, index)), prompts, length)
    return Sweep(tilts, np.asarray(exact), np.asarray(_answers(tokens, queries)))


def _unit_head() -> Attention:
    return Attention([[1.0]], [[1.0]])


@jax.jit
def _answers(
    prompts: Float[Array, "prompts length 1"], queries: Float[Array, "queries 1"]
) -> Float[Array, "prompts queries"]:
    def one_prompt(points):
        return _map(lambda query: attend(_unit_head(), Empirical(points), query)[0], queries, len(points))

    return jax.lax.map(one_prompt, prompts)


def other_measures_table(sweeps: Mapping[str, Sweep]) -> Table:
    """Exact output and mean output of finite prompts, by measure and tilt."""
    frames = [
        pd.DataFrame(
            {
                "measure": name,
                "tilt": these.tilts,
                "exact": these.exact,
                "prompts_mean": these.outputs.mean(axis=0),
                "prompts_std_error": standard_error(these.outputs),
            }
        )
        for name, these in sweeps.items()
    ]
    columns = {
        "measure": Column("Law of one token coordinate, of mean 0 and variance 1", "name"),
        "tilt": Column("Score per unit of token, ξ = Uz"),
        "exact": Column("Output Λ'(ξ) of the infinite prompt", absolute=1e-12),
        "prompts_mean": Column("Mean output of finite prompts", std_error="prompts_std_error"),
        "prompts_std_error": Column("Standard error of that mean", std_error="prompts_std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def measure_claims(sweeps: Mapping[str, Sweep]) -> list[Claim]:
    """Each exact curve that is not a line against its finite prompts, where these have a second moment."""
    words = {
        "Rademacher": "s·tanh(sξ) for signs ±s",
        "uniform": "Langevin's function a·coth(aξ) - 1/ξ for the uniform law on [-a, a]",
        "Laplace": f"2b²ξ/(1 - b²ξ²) for the Laplace law of scale b, at |ξ| ≤ {INSIDE}/b",
        "mixture": "two affine experts gated by a softmax for a mixture of two Gaussians",
    }
    chosen = {
        name: (np.abs(sweeps[name].tilts) <= INSIDE * np.sqrt(2.0)) if name == "Laplace" else np.ones(61, bool)
        for name in words
    }
    bound = comparison_quantile(sum(int(tilts.sum()) for tilts in chosen.values()))
    claims = []
    for name, formula in words.items():
        outputs, tilts = sweeps[name].outputs[:, chosen[name]], sweeps[name].tilts[chosen[name]]
        claims.append(
            Claim(
                id=f"gaussian-limit-{name.lower()}",
                statement=(
                    f"In the limit attention answers {formula}: the worst deviation of the mean over finite "
                    f"prompts, over {len(tilts)} tilts, in standard errors."
                ),
                source="derived here",
                figure="other_measures",
                measured=_worst_deviation(outputs - sweeps[name].exact[chosen[name]]),
                expected=0.0,
                tolerance=bound,
                std_error=1.0,
                alternative=Alternative(
                    "the line of the Gaussian of the same covariance", _worst_deviation(outputs - tilts)
                ),
            )
        )
    return claims


# --- Laplace tokens ---------------------------------------------------------------------------------------


def laplace_outputs(length: int, prompts: int, *, key: PRNGKeyArray) -> dict[float, Float[np.ndarray, " prompts"]]:
    """Outputs for Laplace tokens of scale 1, by tilt; the three tilts are asked of the same prompts."""
    law = Laplace([1.0])
    tilts = (INSIDE, BETWEEN, BEYOND)

    def one(index):
        prompt = empirical(law, length, key=jr.fold_in(key, index))
        return jax.vmap(lambda tilt: attend(_unit_head(), prompt, tilt[None])[0])(jnp.asarray(tilts))

    outputs = _map_indices(one, prompts, length)
    return dict(zip(tilts, outputs.T, strict=True))


def laplace_table(outputs: Mapping[int, Mapping[float, np.ndarray]]) -> Table:
    """Mean and quantiles over prompts, by tilt and length, beside the limit or, beyond the pole, ln L."""
    offset = _growth(outputs, BEYOND)[2]
    rows = [
        {
            "tilt": tilt,
            "length": length,
            "prompts": values.size,
            "mean": values.mean(),
            "std_error": standard_error(values),
            **dict(zip(("q05", "q25", "q75", "q95"), np.quantile(values, (0.05, 0.25, 0.75, 0.95)), strict=True)),
            "law": offset + np.log(length) if tilt > 1 else 2 * tilt / (1 - tilt**2),
        }
        for tilt in (INSIDE, BETWEEN, BEYOND)
        for length, by_tilt in outputs.items()
        for values in (by_tilt[tilt],)
    ]
    columns = {
        "tilt": Column("Score per unit of token ξ, in units of the pole 1/b", "1/b"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "prompts": Column("Independent prompts", "prompts"),
        "mean": Column("Mean output over prompts", "b", std_error="std_error"),
        "std_error": Column("Standard error of the mean output", "b", std_error="std_error"),
        "q05": Column("5 % quantile of the output over prompts", "b", std_error="std_error"),
        "q25": Column("25 % quantile", "b", std_error="std_error"),
        "q75": Column("75 % quantile", "b", std_error="std_error"),
        "q95": Column("95 % quantile", "b", std_error="std_error"),
        "law": Column(
            "2b²ξ/(1 - b²ξ²) before the pole; beyond it b ln L + const, const fitted",
            "b",
            std_error="std_error",
        ),
    }
    return Table(pd.DataFrame(rows), columns)


def laplace_claims(outputs: Mapping[int, Mapping[float, np.ndarray]]) -> list[Claim]:
    """Beyond the pole the mean grows like ln L and the spread does not shrink."""
    growth, growth_error, _ = _growth(outputs, BEYOND)
    settled, *_ = _growth(outputs, INSIDE)
    spread, spread_error = _spread_exponent(outputs, BEYOND)
    shrinking, _ = _spread_exponent(outputs, INSIDE)
    inside = f"the outputs settle, as they do on the same prompts at {INSIDE}/b"
    return [
        Claim(
            id="gaussian-limit-laplace-growth",
            statement=(
                f"At ξ = {BEYOND}/b, beyond the pole, the mean output of Laplace tokens grows by b for each unit "
                "of ln L."
            ),
            source="derived here",
            figure="laplace_domain",
            measured=growth,
            expected=1.0,
            tolerance=comparison_quantile(2) * growth_error,
            std_error=growth_error,
            alternative=Alternative(inside, settled),
        ),
        Claim(
            id="gaussian-limit-laplace-spread",
            statement=(
                f"At ξ = {BEYOND}/b the output stays random: its mean absolute deviation over prompts follows a power "
                "of L of exponent 0."
            ),
            source="derived here",
            figure="laplace_domain",
            measured=spread,
            expected=0.0,
            tolerance=comparison_quantile(2) * spread_error,
            std_error=spread_error,
            alternative=Alternative(inside, shrinking),
        ),
    ]


def _growth(outputs: Mapping[int, Mapping[float, np.ndarray]], tilt: float) -> tuple[float, float, float]:
    """Slope of the mean output in ln L, its standard error, and the offset of a slope of one."""
    kept = {length: by_tilt[tilt] for length, by_tilt in outputs.items() if length >= LONG}
    x = np.log(list(kept))
    means = np.asarray([values.mean() for values in kept.values()])
    errors = np.asarray([standard_error(values) for values in kept.values()])
    slope, error = _weighted_slope(x, means, errors)
    return slope, error, float(np.average(means - x, weights=errors**-2))


def _spread_exponent(outputs: Mapping[int, Mapping[float, np.ndarray]], tilt: float) -> tuple[float, float]:
    """Slope in ln L of the log of the mean absolute deviation, and its standard error by the delta method."""
    kept = {length: by_tilt[tilt] for length, by_tilt in outputs.items() if length >= LONG}
    deviations = [np.abs(values - values.mean()) for values in kept.values()]
    spreads = np.asarray([these.mean() for these in deviations])
    errors = np.asarray([standard_error(these) for these in deviations]) / spreads
    return _weighted_slope(np.log(list(kept)), np.log(spreads), errors)


def _weighted_slope(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    weights = errors**-2
    centred = x - np.average(x, weights=weights)
    precision = float(np.sum(weights * centred**2))
    return float(np.sum(weights * centred * y)) / precision, precision**-0.5
