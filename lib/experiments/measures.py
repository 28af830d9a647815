"""The opening chapter: a prompt is a probability measure, and attention is the mean of that measure, tilted.

What attention sees of a prompt (not the order), what it does to the law behind it (a tilt), how one prompt that
grows finds the answer of its law, and what one token alone answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int, PRNGKeyArray
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
from lib.finite_prompt import score_error
from lib.measures import Empirical, Gaussian, GaussianMixture, empirical, tilted_mean

# What rounding may cost a comparison of numbers of order one in float64.
ROUNDING = 1e-12
# The wrong theory that the measured fluctuation must tell from the right one.
INFLATION = 1.1
# How many numbers one batch of prompts may hold.
TOGETHER = 2**19


def one_and_more(lengths: list[int]) -> list[int]:
    """A prompt of one token, and at least two longer ones to see a rate."""
    if 1 not in lengths or len({length for length in lengths if length > 1}) < 2:
        raise ValueError("needs the length 1 and two longer ones, because a rate is fitted to those and fails at 1")
    return sorted(set(lengths))


@experiment
def measures(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    tokens: Annotated[int, Field(ge=10, le=10**4, description="Tokens of the prompt that is shuffled.")],
    changes: Annotated[int, Field(ge=10, le=300, description="Times each change is made to that prompt.")],
    shown_tokens: Annotated[int, Field(ge=10, le=500, description="Tokens drawn in the picture of the tilt.")],
    grid: Annotated[int, Field(ge=16, le=48, description="Points a side at which densities are computed.")],
    mean_tokens: Annotated[int, Field(ge=10**4, le=10**8, description="Tokens that check the tilted mean.")],
    paths: Annotated[int, Field(ge=2, le=12, description="Prompts that grow token by token.")],
    path_length: Annotated[int, Field(ge=10**3, le=10**7, description="Tokens each of them grows to.")],
    spread_lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=10**5)]],
        Field(
            min_length=1, max_length=8, description="Prompt lengths at which the spread between prompts is measured."
        ),
    ],
    spread_prompts: Annotated[
        int, Field(ge=15_000, le=10**7, description="Prompts of each of these lengths; fewer miss an error of 10 %.")
    ],
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=2.0)]],
        Field(min_length=1, max_length=4, description="Query sizes τ, the standard deviation of a score."),
    ],
    short_lengths: Annotated[
        list[Annotated[int, Field(ge=1, le=10**5)]],
        Field(min_length=3, max_length=20, description="Prompt lengths from one token on, 1 among them."),
        AfterValidator(one_and_more),
    ],
    short_prompts: Annotated[int, Field(ge=1000, le=10**6, description="Prompts of each of these lengths.")],
) -> Result:
    """What a prompt is to attention, exactly and by simulation."""
    token_key, shuffle_key, path_key, spread_key, short_key = jr.split(jr.key(seed), 5)
    theory = Theory.of_the_mixture()
    drawn = {
        name: np.asarray(draw(law, mean_tokens, key=jr.fold_in(token_key, index)))
        for index, (name, law) in enumerate(laws().items())
    }
    order = edited_prompts(drawn["mixture"][: tokens + changes], changes, key=shuffle_key)
    path_lengths = np.unique(np.geomspace(1, path_length, round(24 * np.log10(path_length)) + 1).astype(int))
    grown = outputs_of_prefixes(path_lengths, paths, key=path_key)
    spread_lengths = sorted(set(spread_lengths))
    spreads = outputs_of_prefixes(np.asarray(spread_lengths), spread_prompts, key=spread_key)
    short = short_prompt_errors(taus, short_lengths, short_prompts, key=short_key)
    exact = tabulate(score_error, np.asarray(taus), np.log(short_lengths)[:, None])
    return Result(
        tables={
            "order_does_not_matter": order_table(order),
            "the_tilt": tilt_table({name: points[:shown_tokens] for name, points in drawn.items()}, grid),
            "one_prompt_converges": path_table(theory, path_lengths, grown, spread_lengths, spreads),
            "single_token": single_token_table(taus, short_lengths, short, exact),
        },
        claims=(
            *order_claims(order),
            tilted_law_claim(grid),
            tilted_mean_claim(drawn),
            one_prompt_claim(theory, path_length, grown[:, -1]),
            fluctuation_claim(theory, spread_lengths, spreads),
            single_token_claim(taus, short[:, 0]),
            short_prompts_claim(taus, short_lengths, short, exact),
        ),
    )


# --- the scene --------------------------------------------------------------------------------------------


def head() -> Attention:
    """Two-dimensional tokens, nothing symmetric."""
    return Attention([[0.8, 0.2], [-0.1, 0.7]], [[1.0, 0.4], [-0.3, 0.9]])


def first_output() -> Attention:
    """The same head, read at its first output."""
    return Attention(head().bilinear, head().value[:1])


def asked() -> Float[np.ndarray, " 2"]:
    """The query z of this chapter."""
    return np.asarray([1.0, 0.7])


def tilt() -> Float[np.ndarray, " 2"]:
    """ξ = Uz."""
    return np.asarray(head().bilinear) @ asked()


def laws() -> dict[str, GaussianMixture]:
    """A Gaussian, written as a mixture of one, and a mixture of three."""
    gaussian = Gaussian([[-0.5, -0.4]], [[[0.9, 0.45], [0.45, 0.7]]])
    three = Gaussian(
        [[-1.3, -0.9], [0.3, 1.7], [1.7, -0.9]],
        [[[0.30, 0.10], [0.10, 0.25]], [[0.40, -0.15], [-0.15, 0.20]], [[0.15, 0.05], [0.05, 0.35]]],
    )
    return {
        "Gaussian": GaussianMixture([0.0], gaussian),
        "mixture": GaussianMixture(np.log([0.6, 0.25, 0.15]), three),
    }


@jax.jit
def log_mgf_and_mean(law: GaussianMixture, tilt: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, " d"]]:
    """`Λ` and `∇Λ` at a tilt."""
    return law.log_mgf(tilt), tilted_mean(law, tilt)


@eqx.filter_jit
def draw(law: GaussianMixture, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
    """`n` tokens, compiled once."""
    return law.sample(n, key=key)


@eqx.filter_jit
def over_prompts(one, prompts: int, size: int):
    """`one` of 0, 1, …, prompts - 1, each of about `size` numbers, in batches that fit a cache."""
    batch = max(1, min(prompts, TOGETHER // size))
    rounds = -(-prompts // batch)
    return jax.tree.map(lambda leaf: leaf[:prompts], jax.lax.map(one, jnp.arange(rounds * batch), batch_size=batch))


def prefix_outputs(
    params: Attention, points: Float[Array, "n d"], query: Float[np.ndarray, " d"], lengths: Int[np.ndarray, " k"]
) -> Float[Array, "k e"]:
    """`attend` on the first L tokens of a prompt, for each L of `lengths`: running sums in place of many softmaxes."""
    scores = points @ (params.bilinear @ query)
    weights = jnp.exp(scores - scores.max())[:, None]
    sums = jnp.cumsum(weights * points, axis=0)[lengths - 1] / jnp.cumsum(weights, axis=0)[lengths - 1]
    return sums @ params.value.T


# --- order does not matter --------------------------------------------------------------------------------


SHUFFLED = "tokens shuffled"
DOUBLED = "each token twice, shuffled"
REPEATED = "one token twice"
REPLACED = "one token replaced"
PLACED = "positions added, shuffled"


@jax.jit
def answers(params: Attention, prompts: Float[Array, "n L d"], query: Float[Array, " d"]) -> Float[Array, "n e"]:
    """`attend` on each prompt of a stack."""
    return jax.vmap(lambda points: attend(params, Empirical(points), query))(prompts)


def edited_prompts(
    drawn: Float[np.ndarray, "n d"], changes: int, *, key: PRNGKeyArray
) -> dict[str, Float[np.ndarray, "changes e"]]:
    """Output of a changed prompt minus that of the prompt, over the size of the latter, by kind of change.

    The last `changes` of the tokens drawn are those that replace others, the first make the prompt.
    Also under `predicted` what one repeated token should do, and under `averaged` what it would do to a plain mean.
    """
    shuffle_key, double_key = jr.split(key)
    params, query = head(), asked()
    prompt, fresh = drawn[:-changes], drawn[-changes:]
    tokens = len(prompt)
    which = np.arange(changes) % tokens
    shuffled = prompt[np.argsort(jr.uniform(shuffle_key, (changes, tokens)))]
    doubled = np.tile(prompt, (2, 1))[np.argsort(jr.uniform(double_key, (changes, 2 * tokens)))]
    repeated, replaced = (np.tile(prompt, (changes, 1, 1)) for _ in range(2))
    repeated = np.concatenate([repeated, prompt[which][:, None]], axis=1)
    replaced[np.arange(changes), which] = fresh
    # A token that carries its place: a third coordinate, which the scores read and the values do not.
    bilinear, value = np.eye(3), np.pad(params.value, ((0, 0), (0, 1)))
    bilinear[:2, :2] = params.bilinear
    place = np.linspace(0.0, 1.0, tokens)[:, None]
    placed = np.stack([np.hstack([points, place]) for points in (prompt, *shuffled)])
    placed = np.asarray(answers(Attention(bilinear, value), placed, np.append(query, 1.0)))

    scores = prompt @ tilt()
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    values = prompt @ np.asarray(params.value).T
    output = weights @ values
    share, pull = weights[which][:, None], values[which] - output
    changed = {
        SHUFFLED: answers(params, shuffled, query) - output,
        DOUBLED: answers(params, doubled, query) - output,
        REPEATED: answers(params, repeated, query) - output,
        REPLACED: answers(params, replaced, query) - output,
        PLACED: placed[1:] - placed[0],
        "predicted": share / (1 + share) * pull,
        "averaged": pull / (tokens + 1),
    }
    return {name: np.asarray(these) / np.linalg.norm(output) for name, these in changed.items()}


def order_table(order: Mapping[str, np.ndarray]) -> Table:
    """How far each change moves the output: one change a row."""
    frames = [
        pd.DataFrame({"change": name, "trial": np.arange(len(order[name])), "distance": _lengths(order[name])})
        for name in (SHUFFLED, DOUBLED, REPEATED, REPLACED, PLACED)
    ]
    columns = {
        "change": Column("What was done to the prompt", "name"),
        "trial": Column("Which shuffle, or which token"),
        "distance": Column(
            "Distance between the outputs before and after, over the size of the output", absolute=ROUNDING
        ),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def order_claims(order: Mapping[str, np.ndarray]) -> list[Claim]:
    """Shuffling and doubling do nothing; repeating one token does exactly what its weight says."""
    unmoved = max(float(_lengths(order[name]).max()) for name in (SHUFFLED, DOUBLED))
    right, wrong = (float(_lengths(order[REPEATED] - order[theory]).max()) for theory in ("predicted", "averaged"))
    return [
        Claim(
            id="measures-order",
            statement=(
                "Shuffling the tokens of a prompt, or writing each of them twice, moves the output of attention by "
                "rounding errors only: the largest move, relative to the output."
            ),
            source="[BB26]",
            figure="order_does_not_matter",
            measured=unmoved,
            expected=0.0,
            tolerance=ROUNDING,
            relation="≤",
            alternative=Alternative("each token carried its position", float(_lengths(order[PLACED]).max())),
        ),
        Claim(
            id="measures-one-more",
            statement=(
                "A token of softmax weight p, written once more, moves the output T by p/(1 + p) · (Vz - T): the "
                "largest deviation, relative to the output."
            ),
            source="derived here",
            figure="order_does_not_matter",
            measured=right,
            expected=0.0,
            tolerance=ROUNDING,
            relation="≤",
            alternative=Alternative("every token counted the same, as in a plain mean", wrong),
        ),
    ]


def _lengths(vectors: Float[np.ndarray, "n e"]) -> Float[np.ndarray, " n"]:
    return np.linalg.norm(vectors, axis=1)


# --- the tilt ---------------------------------------------------------------------------------------------


# The window in which densities are computed.
LEFT, RIGHT, BOTTOM, TOP = -3.4, 3.8, -3.0, 3.6


def tilted_law(law: GaussianMixture, tilt: Float[np.ndarray, " d"], *, gated: bool = True) -> GaussianMixture:
    """The tilted law in closed form: means `m_k + Γ_k ξ`, covariances unchanged, weights moved by `Λ_k(ξ)`.

    `gated=False` leaves the weights where they were: the mistake that a claim must notice.
    """
    means, covs = np.asarray(law.components.mean), np.asarray(law.components.cov)
    moves = means @ tilt + 0.5 * tilt @ covs @ tilt
    return GaussianMixture(np.asarray(law.log_weights) + gated * moves, Gaussian(means + covs @ tilt, covs))


def log_density(law: GaussianMixture, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Log-density of a mixture with regular covariances, in NumPy."""
    log_weights = np.asarray(law.log_weights)
    means, covs = np.asarray(law.components.mean), np.asarray(law.components.cov)
    offsets = points[:, None] - means
    squares = np.einsum("nki,kij,nkj->nk", offsets, np.linalg.inv(covs), offsets)
    logs = log_weights - np.logaddexp.reduce(log_weights) - 0.5 * (squares + np.linalg.slogdet(2 * np.pi * covs)[1])
    return np.logaddexp.reduce(logs, axis=1)


def log_tilted_density(law: GaussianMixture, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """The definition: `log μ(z) + ⟨ξ, z⟩ - Λ(ξ)`."""
    return log_density(law, points) + points @ tilt() - float(log_mgf_and_mean(law, tilt())[0])


def window(grid: int) -> Float[np.ndarray, "n 2"]:
    """Points of a square grid, row after row."""
    across, up = np.meshgrid(np.linspace(LEFT, RIGHT, grid), np.linspace(BOTTOM, TOP, grid))
    return np.stack([across.ravel(), up.ravel()], axis=1)


def tilt_table(shown: Mapping[str, Float[np.ndarray, "n 2"]], grid: int) -> Table:
    """Densities on a grid, tokens with their weights, the two means and the tilt, for each law."""
    frames = []
    points = window(grid)
    for name, law in laws().items():
        tokens = shown[name]
        weights = np.exp(tokens @ tilt())
        weights /= weights.mean()
        densities = {"density": np.exp(log_density(law, points)), "tilted": np.exp(log_tilted_density(law, points))}
        frames += [
            _points("density", name, points).assign(**densities),
            _points("token", name, tokens).assign(weight=weights),
            _points("mean", name, log_mgf_and_mean(law, np.zeros(2))[1][None]),
            _points("tilted mean", name, log_mgf_and_mean(law, tilt())[1][None]),
            _points("prompt's output", name, (weights @ tokens / len(tokens))[None]),
            _points("tilt", name, tilt()[None]),
        ]
    columns = {
        "kind": Column(
            "What stands at (x, y): a grid point, a token, a mean, the tilted mean of the law or of the prompt; for "
            "`tilt`, (x, y) is ξ itself",
            "name",
        ),
        "law": Column("Law of a token", "name"),
        "x": Column("First coordinate"),
        "y": Column("Second coordinate"),
        "density": Column("Density of the law, at grid points", absolute=ROUNDING),
        "tilted": Column("Density of the tilted law, at grid points", absolute=ROUNDING),
        "weight": Column("Softmax weight of a token, times the number of tokens: 1 is an equal share"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _points(kind: str, law: str, points) -> pd.DataFrame:
    points = np.asarray(points)
    return pd.DataFrame({"kind": kind, "law": law, "x": points[:, 0], "y": points[:, 1]}).reindex(
        columns=["kind", "law", "x", "y", "density", "tilted", "weight"]
    )


def tilted_law_claim(grid: int) -> Claim:
    """The definition against the closed form, in logarithms, on the grid of the picture."""
    points = window(grid)

    def worst(gated):
        return max(
            float(
                np.abs(
                    log_tilted_density(law, points) - log_density(tilted_law(law, tilt(), gated=gated), points)
                ).max()
            )
            for law in laws().values()
        )

    return Claim(
        id="measures-tilted-law",
        statement=(
            "The tilted Gaussian is N(m + Γξ, Γ), and the tilted mixture is the mixture of the tilted components "
            "with weights proportional to π_k e^{Λ_k(ξ)}: the largest error of a log-density on the grid drawn."
        ),
        source="derived here",
        figure="the_tilt",
        measured=worst(gated=True),
        expected=0.0,
        tolerance=ROUNDING,
        relation="≤",
        alternative=Alternative("the weights of the mixture stayed where they were", worst(gated=False)),
    )


def tilted_mean_claim(drawn: Mapping[str, Float[np.ndarray, "n 2"]]) -> Claim:
    """`∇Λ(ξ)` against the weighted mean of many tokens, whose standard error its own weights give."""
    right, wrong = [], []
    for name, law in laws().items():
        points = drawn[name]
        weights = np.exp(points @ tilt() - float(log_mgf_and_mean(law, tilt())[0]))
        weights /= weights.sum()
        mean = weights @ points
        errors = np.sqrt(weights**2 @ (points - mean) ** 2)
        right += list((mean - np.asarray(log_mgf_and_mean(law, tilt())[1])) / errors)
        wrong += list((mean - np.asarray(log_mgf_and_mean(law, np.zeros(2))[1])) / errors)
    return Claim(
        id="measures-tilted-mean",
        statement=(
            f"The mean of {len(drawn['mixture'])} tokens weighted by e^⟨ξ,z⟩ is ∇Λ(ξ), for the Gaussian and for "
            "the mixture: the worst of four deviations, in standard errors."
        ),
        source="derived here",
        figure="the_tilt",
        measured=float(np.abs(right).max()),
        expected=0.0,
        tolerance=comparison_quantile(len(right)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("the mean were that of the law before the tilt", float(np.abs(wrong).max())),
    )


# --- one prompt converges ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Theory:
    """Of the first output under the mixture: its limit, `lim L · Var`, and the mean without the tilt."""

    limit: float
    variance: float
    untilted: float

    @classmethod
    def of_the_mixture(cls) -> "Theory":
        """`attend` and `fluctuation` at the query of this chapter."""

        @jax.jit
        def compute(params, law, query):
            untilted = params.value @ tilted_mean(law, jnp.zeros(2))
            return attend(params, law, query)[0], fluctuation(params, law, query)[0, 0], untilted[0]

        return cls(*map(float, compute(first_output(), laws()["mixture"], asked())))


def outputs_of_prefixes(
    lengths: Int[np.ndarray, " k"], prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "prompts k"]:
    """First output of independent prompts, each read at its first L tokens for every L of `lengths`."""
    law, params, query, longest = laws()["mixture"], first_output(), asked(), int(lengths.max())

    def one(index):
        points = empirical(law, longest, key=jr.fold_in(key, index)).points
        return prefix_outputs(params, points, query, lengths)[:, 0]

    return np.asarray(over_prompts(one, prompts, longest))


def path_table(
    theory: Theory,
    path_lengths: Int[np.ndarray, " n"],
    paths: Float[np.ndarray, "paths n"],
    spread_lengths: list[int],
    outputs: Float[np.ndarray, "prompts k"],
) -> Table:
    """Paths, and the spread between independent prompts, beside limit and predicted standard deviation."""
    frames = [
        pd.DataFrame({"kind": "one prompt", "prompt": index, "length": path_lengths, "output": path, "spread": np.nan})
        for index, path in enumerate(paths)
    ]
    spread = outputs.std(axis=0, ddof=1)
    many = {
        "kind": "many prompts",
        "length": spread_lengths,
        "output": outputs.mean(axis=0),
        "output_se": standard_error(outputs),
        "spread": spread,
        "spread_se": standard_error((outputs - outputs.mean(axis=0)) ** 2) / (2 * spread),
    }
    frames.append(pd.DataFrame(many))
    frame = pd.concat(frames, ignore_index=True)
    frame["limit"], frame["predicted"] = theory.limit, np.sqrt(theory.variance / frame["length"])
    frame["standardised"] = (frame["output"] - theory.limit) / frame["predicted"]
    frame["spread_ratio"] = frame["spread"] / frame["predicted"]
    columns = {
        "kind": Column("`one prompt` that grows, or `many prompts` of one length", "name"),
        "prompt": Column("Which of the prompts that grow"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "output": Column("First output; for many prompts its mean", std_error="output_se"),
        "output_se": Column("Standard error of that mean", std_error="output_se"),
        "spread": Column("Standard deviation between prompts", std_error="spread_se"),
        "spread_se": Column("Standard error of the spread", std_error="spread_se"),
        "limit": Column("Output of the law, V∇Λ(Uz)"),
        "predicted": Column("Predicted standard deviation √(fluctuation/L)"),
        "standardised": Column("Output minus limit, in predicted standard deviations"),
        "spread_ratio": Column("Spread over predicted standard deviation"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def one_prompt_claim(theory: Theory, length: int, outputs: Float[np.ndarray, " paths"]) -> Claim:
    """Every path ends where the law says, in predicted standard deviations."""
    spread = np.sqrt(theory.variance / length)
    right, wrong = (float(np.abs(outputs - centre).max()) / spread for centre in (theory.limit, theory.untilted))
    return Claim(
        id="measures-one-prompt",
        statement=(
            f"Each of {len(outputs)} prompts, grown to {length} tokens, answers V∇Λ(Uz) up to its fluctuation: the "
            "worst deviation, in predicted standard deviations."
        ),
        source="[BB26]",
        figure="one_prompt_converges",
        measured=right,
        expected=0.0,
        tolerance=comparison_quantile(len(outputs)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("the limit were V times the mean of the law, without the tilt", wrong),
    )


def fluctuation_claim(theory: Theory, lengths: list[int], outputs: Float[np.ndarray, "prompts k"]) -> Claim:
    """L · mean square of output minus limit, in units of `fluctuation`, at the longest length."""
    ratios = np.asarray(lengths) * (outputs - theory.limit) ** 2 / theory.variance
    ratio, error = float(ratios.mean(axis=0)[-1]), float(standard_error(ratios)[-1])
    return Claim(
        id="measures-fluctuation",
        statement=(
            f"Over {len(outputs)} prompts of {lengths[-1]} tokens, L times the mean square of output minus limit is "
            "the predicted fluctuation: the ratio of the two is 1."
        ),
        source="derived here",
        figure="one_prompt_converges",
        measured=ratio,
        expected=1.0,
        tolerance=comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative(f"the fluctuation were {INFLATION - 1:.0%} larger", ratio / INFLATION),
    )


# --- one token alone --------------------------------------------------------------------------------------


def short_prompt_errors(
    taus: list[float], lengths: list[int], prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "prompts lengths taus"]:
    """Squared errors of prompts of standard normal tokens at V = 1, Uz = τ, where the limit is τ.

    Each prompt is read at its first L tokens, for every L of `lengths`.
    """
    law, longest = Gaussian([0.0], [[1.0]]), max(lengths)

    def one(index):
        points = empirical(law, longest, key=jr.fold_in(key, index)).points
        outputs = [prefix_outputs(Attention([[tau]], [[1.0]]), points, np.ones(1), np.asarray(lengths)) for tau in taus]
        return (jnp.concatenate(outputs, axis=1) - np.asarray(taus)) ** 2

    return np.asarray(over_prompts(one, prompts, longest * len(taus)))


def bound_constants(lengths: list[int], errors: Float[np.ndarray, " lengths"]) -> tuple[float, float]:
    """c₁ and c₂ of `c₁ ln L / L^c₂`: c₂ the fitted slope over L ≥ 2, c₁ the least that bounds those values."""
    longer = np.asarray([length >= 2 for length in lengths])
    logs, errors = np.log(np.asarray(lengths)[longer]), errors[longer]
    power = -np.polyfit(logs, np.log(errors), 1)[0]
    return float(np.max(errors * np.exp(power * logs) / logs)), float(power)


def single_token_table(
    taus: list[float],
    lengths: list[int],
    errors: Float[np.ndarray, "prompts lengths taus"],
    exact: Float[np.ndarray, "lengths taus"],
) -> Table:
    """Mean squared errors of prompts, their exact values, and the form of the bound, from L = 1 on."""
    frames = []
    dense = np.geomspace(1, max(lengths), 121)
    for tau, these, values in zip(taus, np.moveaxis(errors, -1, 0), exact.T, strict=True):
        constant, power = bound_constants(lengths, values)
        bound = constant * np.log(dense) / dense**power
        prompts = {"error": these.mean(axis=0), "std_error": standard_error(these)}
        frames += [
            pd.DataFrame({"tau": tau, "kind": "prompts", "length": lengths, **prompts}),
            pd.DataFrame({"tau": tau, "kind": "exact", "length": lengths, "error": values}),
            pd.DataFrame({"tau": tau, "kind": "bound", "length": dense, "error": bound}),
        ]
    columns = {
        "tau": Column("Size of the query, τ: the standard deviation of a score"),
        "kind": Column(
            "`prompts`: simulated; `exact`: by quadrature; `bound`: c₁ ln L / L^c₂, c₂ the slope fitted to the exact "
            "values at L ≥ 2, c₁ the least constant that bounds them",
            "name",
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output around its limit", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def single_token_claim(taus: list[float], errors: Float[np.ndarray, "prompts taus"]) -> Claim:
    """At L = 1, simulated error over 1 + τ², at the query size where it is furthest from 1."""
    ratios = errors / (1 + np.asarray(taus) ** 2)
    means, std_errors = ratios.mean(axis=0), standard_error(ratios)
    worst = int(np.argmax(np.abs(means - 1) / std_errors))
    return Claim(
        id="measures-single-token",
        statement=(
            "A prompt of one standard normal token misses the limit by a mean square of 1 + τ²: the ratio of the "
            f"two is 1, worst of {len(taus)} query sizes. At L = 1 the bound c₁σ⁶ ln L / L^(c₂/σ²) is 0."
        ),
        source="[BB26, Prop. 3.1]",
        figure="single_token",
        measured=means[worst],
        expected=1.0,
        tolerance=comparison_quantile(len(taus)) * std_errors[worst],
        std_error=float(std_errors[worst]),
        alternative=Alternative("the bound held for one token", 0.0),
    )


def short_prompts_claim(
    taus: list[float],
    lengths: list[int],
    errors: Float[np.ndarray, "prompts lengths taus"],
    exact: Float[np.ndarray, "lengths taus"],
) -> Claim:
    """Simulated errors against the quadrature at all L ≥ 2."""
    squares = np.asarray(taus) ** 2
    asymptotic = (1 + squares) * np.exp(squares) / np.asarray(lengths)[:, None]
    longer = np.asarray(lengths) >= 2
    right, wrong = (
        (np.abs(errors.mean(axis=0) - theory) / standard_error(errors))[longer].ravel()
        for theory in (exact, asymptotic)
    )
    return Claim(
        id="measures-short-prompts",
        statement=(
            f"At {len(right)} pairs of a query size and a length L ≥ 2, the simulated mean squared error is the "
            "exact one: the worst deviation, in standard errors."
        ),
        source="derived here",
        figure="single_token",
        measured=float(max(right)),
        expected=0.0,
        tolerance=comparison_quantile(len(right)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("short prompts followed the law of long ones, (1 + τ²)e^{τ²}/L", float(max(wrong))),
    )
