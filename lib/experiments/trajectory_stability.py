"""Training on finite prompts beside training on infinite ones, for tokens that are not Gaussian [BB26, Theorem 4.3].

Both see the same episodes, take the same steps from the same head, and differ in nothing but the prompt: its law, or
fresh samples of it. Every task goes through the same programs; the one that reads prompts does not know whose they are,
and is compiled once a loss.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray
from pydantic import AfterValidator, Field

from lib.attention import Attention
from lib.concentration import Rate, error_curve, fit_rate, one_over_length
from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error
from lib.experiments.shards import Arrays, Shards, gather
from lib.icl.blocks import block_attention
from lib.icl.tasks import Classification, Episode, IndexRegression, Regression, Task, episode_loss, predict
from lib.measures import Empirical, Gaussian, GaussianMixture, Laplace, Rademacher, Uniform, empirical, tilted_cov

# Covariates are in R², tokens in R³.
DIMENSION = 2
NOISE = 0.3
# Heads sent together through the program of infinite prompts: one size, so that it is compiled once a task.
TOGETHER = 8
# XLA's optimiser takes longer than all runs of these programs: none of it for most, a little for drawing prompts.
UNOPTIMISED, HARDLY_OPTIMISED = ({"xla_backend_optimization_level": level} for level in (0, 1))
# Central differences of the gradient, in double precision.
DIFFERENCE = 1e-4
CHECKPOINTS = ("start", "half-way", "end")
CONTROL = "Laplace (control)"
# The task whose risk is drawn against time.
SHOWN = "signs"


def with_signs(tasks: list[str]) -> list[str]:
    """Each once, and the one that is drawn against time."""
    if SHOWN not in tasks:
        raise ValueError(f"needs {SHOWN!r} among the tasks, because its risk is drawn against time")
    return list(dict.fromkeys(tasks))


@experiment
def trajectory_stability(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    tasks: Annotated[
        list[Literal["Gaussian", "signs", "uniform", "mixture", "tanh target", "classification"]],
        Field(min_length=1, description="Sub-Gaussian tasks, signs among them; the control comes with any."),
        AfterValidator(with_signs),
    ],
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**5)]],
        Field(min_length=4, max_length=12, description="Prompt lengths L; four at least, for slopes with a bend."),
        AfterValidator(lambda lengths: sorted(set(lengths))),
    ],
    episodes: Annotated[int, Field(ge=8, le=4096, description="Episodes that all training shares.")],
    steps: Annotated[int, Field(ge=8, le=10**4, description="Steps of gradient descent.")],
    step_size: Annotated[float, Field(gt=0.0, le=0.1, description="Their size: time is step size times steps.")],
    runs: Annotated[int, Field(ge=3, le=256, description="Independent finite-prompt trainings at each length.")],
    prompts: Annotated[
        int, Field(ge=256, le=10**6, description="Fresh episodes that measure the gradient's error at a checkpoint.")
    ],
    shard_lengths: Annotated[
        int,
        Field(ge=1, le=12, description="Lengths to a shard: more are less work in all, fewer spread it wider."),
    ],
) -> Result:
    """Gaps between trajectories, Grönwall's envelope, transfer of risk, and the error of the gradient on the way."""
    training = Training(tuple(lengths), episodes, steps, step_size, runs, shard_lengths)
    studies = studies_of(tasks, training, prompts, jr.key(seed))
    light = {name: study for name, study in studies.items() if name != CONTROL}
    return Result(
        tables={
            "concentration_along_training": concentration_table(studies),
            "gaps_along_training": gaps_table(studies),
            "gronwall_envelope": envelope_table(light),
            "risk_transfer": risk_table(light),
        },
        claims=(
            rate_claim(light),
            norm_claim(light),
            control_claim(studies[CONTROL]),
            gap_claim(light),
            envelope_claim(light),
            risk_claim(light),
        ),
    )


def shards(*, seed: int, tasks: list[str], lengths: list[int], prompts: int, **training: Any) -> Shards:
    """Trainings by task, run and group of lengths; errors of gradients by task and group of lengths."""
    studies = studies_of(tasks, Training(lengths=tuple(lengths), **training), prompts, jr.key(seed))
    return {
        name: compute
        for study in studies.values()
        for pieces in (study.training_shards, study.checkpoint_shards)
        for name, compute in pieces.items()
    }


# --- scenes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A task and the head that training starts from."""

    task: Task
    start: Attention


def scenes() -> dict[str, Scene]:
    """Six sub-Gaussian tasks, covariates of covariance I, and the control.

    The gain starts large and the bilinear form small, and since the flow of regression keeps ‖A‖² - b² it ends with A
    small too: with queries of covariance I this is what makes H² < ½.
    """
    ones, eye = np.ones(DIMENSION), np.eye(DIMENSION)
    # bounded tasks, so that all labels share one sub-Gaussian constant; E ‖w‖² = 1
    weights = Uniform(np.sqrt(3 / DIMENSION) * ones)
    apart = np.diag([0.64, 0.0])
    halves = GaussianMixture(np.zeros(2), Gaussian([[0.8, 0.0], [-0.8, 0.0]], np.stack([eye - apart] * 2)))
    tasks = {
        "Gaussian": Regression(Gaussian(0 * ones, eye), weights, NOISE),
        "signs": Regression(Rademacher(ones), weights, NOISE),
        "uniform": Regression(Uniform(np.sqrt(3) * ones), weights, NOISE),
        "mixture": Regression(halves, weights, NOISE),
        "tanh target": IndexRegression(jnp.tanh, weights, NOISE),
        "classification": Classification(weights),
    }
    start = block_attention(0.1 * eye, 3.5)
    # unit variance; queries are signs, so that tilts are bounded: they stay between half the pole and the pole, √2
    control = Regression(Laplace(np.sqrt(0.5) * ones), weights, NOISE, Rademacher(ones))
    return {name: Scene(task, start) for name, task in tasks.items()} | {
        CONTROL: Scene(control, block_attention(0.9 * eye, 0.1))
    }


def as_head(flat: Float[Array, " p"] | Float[np.ndarray, " p"]) -> Attention:
    """The head whose entries these are: gaps and gradients are vectors of R^p."""
    size = DIMENSION + 1
    bilinear, value = jnp.split(jnp.asarray(flat), [size**2])
    return Attention(bilinear.reshape(size, size), value.reshape(1, size))


def as_flat(params: Attention) -> Float[np.ndarray, " p"]:
    """The inverse of `as_head`."""
    return np.concatenate([np.ravel(params.bilinear), np.ravel(params.value)])


# --- the programs -----------------------------------------------------------------------------------------


@partial(jax.jit, static_argnums=(0, 1))
def read_prompts(
    loss: Callable,
    lengths: tuple[int, ...],
    heads: Float[Array, "k p"],
    tokens: Float[Array, "n L e"],
    asked: tuple[Float[Array, "n e"], Float[Array, " n"]],
) -> tuple[Float[Array, "n k"], Float[Array, "n k p"]]:
    """Loss and gradient of head j on the first `lengths[j]` tokens of each prompt."""

    def one(points, query, target):
        def cost(flat, length):
            return loss(predict(as_head(flat), Empirical(points[:length]), query), target)

        pairs = [jax.value_and_grad(cost)(flat, length) for flat, length in zip(heads, lengths, strict=True)]
        values, slopes = zip(*pairs, strict=True)
        return jnp.stack(values), jnp.stack(slopes)

    return jax.vmap(one)(tokens, *asked)


class Programs:
    """What is compiled for one task: its episodes, their prompts and covariances, and gradients of infinite prompts."""

    def __init__(self, task: Task, longest: int):
        def prompt(episode, key):
            return empirical(episode.measure, longest, key=key).points

        def cost(flat, episode):
            return episode_loss(as_head(flat), episode.measure, task, episode)

        def covariance(episode):
            return tilted_cov(episode.measure, jnp.zeros(DIMENSION + 1))

        both = jax.vmap(jax.vmap(jax.value_and_grad(cost), (0, None)), (None, 0))
        self.episodes = jax.jit(jax.vmap(lambda key: task.draw(key=key)), compiler_options=UNOPTIMISED)
        self.tokens = jax.jit(jax.vmap(prompt), compiler_options=HARDLY_OPTIMISED)
        self.covariances = jax.jit(jax.vmap(covariance), compiler_options=UNOPTIMISED)
        self._infinite = jax.jit(both, compiler_options=UNOPTIMISED)

    def read_laws(
        self, heads: Float[np.ndarray, "m p"], episodes: Episode
    ) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m p"]]:
        """Loss and gradient of each head on the law of each episode."""
        padded = np.concatenate([heads, np.repeat(heads[-1:], -len(heads) % TOGETHER, axis=0)])
        parts = [self._infinite(padded[i : i + TOGETHER], episodes) for i in range(0, len(padded), TOGETHER)]
        values, slopes = (np.concatenate(part, axis=1)[:, : len(heads)] for part in zip(*parts, strict=True))
        return values, slopes


def keys(key: PRNGKeyArray, indices: Int[np.ndarray, " n"]) -> Key[Array, " n"]:
    """One a global index: nothing depends on how the indices are dealt out."""
    return jax.vmap(partial(jr.fold_in, key))(indices)


# --- one task ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """How everything is trained."""

    lengths: tuple[int, ...]
    episodes: int
    steps: int
    step_size: float
    runs: int
    shard_lengths: int

    @property
    def groups(self) -> list[slice]:
        """Lengths of one shard, by their places."""
        return [slice(i, i + self.shard_lengths) for i in range(0, len(self.lengths), self.shard_lengths)]

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        """Step size times step, from 0 on."""
        return self.step_size * np.arange(self.steps + 1)


@dataclass(frozen=True)
class InfinitePath:
    """Gradient descent on the mean loss of infinite prompts: R_∞ of the shared episodes."""

    heads: Float[np.ndarray, "t p"]
    risks: Float[np.ndarray, " t"]
    slopes: Float[np.ndarray, "t p"]


@dataclass(frozen=True)
class FinitePaths:
    """The same with fresh prompts at every step: risks and slopes are those of the prompts drawn."""

    heads: Float[np.ndarray, "runs t k p"]
    risks: Float[np.ndarray, "runs t k"]
    slopes: Float[np.ndarray, "runs t k p"]


class Study:
    """All that is measured of one task, each thing once."""

    def __init__(self, name: str, scene: Scene, training: Training, prompts: int, key: PRNGKeyArray):
        self.name = "-".join(re.findall(r"\w+", name))  # fit for a file
        self.scene, self.training, self.prompts = scene, training, prompts
        self.episode_key, self.training_key, self.checkpoint_key = jr.split(key, 3)
        self.programs = Programs(scene.task, max(training.lengths))

    @cached_property
    def episodes(self) -> Episode:
        """Those that all training shares."""
        return self.programs.episodes(keys(self.episode_key, np.arange(self.training.episodes)))

    @cached_property
    def infinite(self) -> InfinitePath:
        """One path: nothing about it is random once the episodes are drawn."""
        head, path = as_flat(self.scene.start), []
        for _ in self.training.times:
            values, slopes = self.programs.read_laws(head[None], self.episodes)
            path.append((head, values.mean(), slopes[:, 0].mean(axis=0)))
            head = head - self.training.step_size * path[-1][2]
        return InfinitePath(*map(np.stack, zip(*path, strict=True)))

    @property
    def training_shards(self) -> Shards:
        """A run and a group of lengths each."""
        return {
            f"{self.name}-run-{run}-from-{self.training.lengths[group.start]}": partial(self._finite_path, run, group)
            for run in range(self.training.runs)
            for group in self.training.groups
        }

    @cached_property
    def finite(self) -> FinitePaths:
        """Run r draws prompt i of step t from the key folded with r, t and i; lengths share its first tokens."""
        paths = iter(gather(self.training_shards))
        runs = [[next(paths) for _ in self.training.groups] for _ in range(self.training.runs)]

        def whole(part: str) -> np.ndarray:
            return np.stack([np.concatenate([path[part] for path in run], axis=1) for run in runs])

        return FinitePaths(whole("heads"), whole("risks"), whole("slopes"))

    def _finite_path(self, run: int, group: slice) -> Arrays:
        training, path = self.training, []
        lengths, key = training.lengths[group], jr.fold_in(self.training_key, run)
        asked = self.episodes.query, self.episodes.target
        heads = np.tile(as_flat(self.scene.start), (len(lengths), 1))
        for step in range(training.steps + 1):
            drawn = keys(jr.fold_in(key, step), np.arange(training.episodes))
            tokens = self.programs.tokens(self.episodes, drawn)
            values, slopes = read_prompts(self.scene.task.loss, lengths, heads, tokens, asked)
            path.append((heads, np.mean(values, axis=0), np.mean(slopes, axis=0)))
            heads = heads - training.step_size * path[-1][2]
        return dict(zip(("heads", "risks", "slopes"), map(np.stack, zip(*path, strict=True)), strict=True))

    @cached_property
    def parameter_gaps(self) -> Float[np.ndarray, "runs t k"]:
        """`‖θ_L(t) - θ_∞(t)‖`."""
        return np.linalg.norm(self.finite.heads - self.infinite.heads[:, None], axis=-1)

    @cached_property
    def gradient_gaps(self) -> Float[np.ndarray, "runs t k"]:
        """`‖∇R̂_L(θ_L(t)) - ∇R_∞(θ_∞(t))‖`."""
        return np.linalg.norm(self.finite.slopes - self.infinite.slopes[:, None], axis=-1)

    @cached_property
    def prompt_noise(self) -> Float[np.ndarray, " k"]:
        """g(L): `‖∇R̂_L - ∇R_∞‖` at θ_L(t), root mean square over runs, the largest over time."""
        heads = self.finite.heads
        slopes = self.programs.read_laws(heads.reshape(-1, heads.shape[-1]), self.episodes)[1].mean(axis=0)
        gaps = np.linalg.norm(self.finite.slopes - slopes.reshape(heads.shape), axis=-1)
        return root_mean_square(gaps).max(axis=0)

    @cached_property
    def curvature(self) -> float:
        """β: the largest norm of the Hessian of R_∞ along θ_∞, at nine times, by central differences."""
        times = np.linspace(0, self.training.steps, 9).round().astype(int)
        centres = self.infinite.heads[times]
        moves = DIFFERENCE * np.eye(centres.shape[1])
        probes = (centres[:, None, None] + np.stack([moves, -moves])).reshape(-1, centres.shape[1])
        slopes = self.programs.read_laws(probes, self.episodes)[1].mean(axis=0)
        up, down = np.moveaxis(slopes.reshape(len(times), 2, len(moves), -1), 1, 0)
        return float(np.linalg.norm((up - down) / (2 * DIFFERENCE), ord=2, axis=(1, 2)).max())

    @cached_property
    def envelope(self) -> Float[np.ndarray, "t k"]:
        """`g(L) t e^{βt}`."""
        times = self.training.times[:, None]
        return self.prompt_noise * times * np.exp(self.curvature * times)

    @cached_property
    def checkpoints(self) -> Float[np.ndarray, "3 p"]:
        """θ_∞ at the start, half-way and at the end."""
        return self.infinite.heads[[0, self.training.steps // 2, self.training.steps]]

    @cached_property
    def squared_norms(self) -> Float[np.ndarray, " 3"]:
        """H² at the checkpoints: the largest `‖Γ^{1/2} U Γ_q^{1/2}‖²` over the episodes' Γ; queries have Γ_q = I."""
        covs = np.asarray(self.programs.covariances(self.episodes))
        forms = np.stack([np.asarray(as_head(flat).bilinear)[:, :DIMENSION] for flat in self.checkpoints])
        scores = np.einsum("cij,nik,ckl->cnjl", forms, covs, forms)
        return np.linalg.eigvalsh(scores)[..., -1].max(axis=1)

    @property
    def checkpoint_shards(self) -> Shards:
        """A group of lengths each."""
        return {
            f"{self.name}-checkpoints-from-{self.training.lengths[group.start]}": partial(self._squared_gaps, group)
            for group in self.training.groups
        }

    @cached_property
    def squared_gaps(self) -> Float[np.ndarray, "prompts 3 k"]:
        """`‖∇ of one prompt's loss - that of its law‖²` at the checkpoints, on fresh episodes."""
        return np.concatenate([part["gaps"] for part in gather(self.checkpoint_shards)], axis=-1)

    def _squared_gaps(self, group: slice) -> Arrays:
        size, lengths = self.training.episodes, self.training.lengths[group]
        batches = [self._batch_of_gaps(np.arange(i, i + size), lengths) for i in range(0, self.prompts, size)]
        return {"gaps": np.concatenate(batches)[: self.prompts]}

    def _batch_of_gaps(self, indices: Int[np.ndarray, " n"], lengths: tuple[int, ...]) -> Float[np.ndarray, "n 3 k"]:
        loss, mine = self.scene.task.loss, keys(self.checkpoint_key, indices)
        episodes = self.programs.episodes(keys_of(mine, 0))
        tokens = self.programs.tokens(episodes, keys_of(mine, 1))
        limits = self.programs.read_laws(self.checkpoints, episodes)[1]
        gaps = []
        for checkpoint, limit in zip(self.checkpoints, np.moveaxis(limits, 1, 0), strict=True):
            heads = np.tile(checkpoint, (len(lengths), 1))
            slopes = read_prompts(loss, lengths, heads, tokens, (episodes.query, episodes.target))[1]
            gaps.append(np.sum((np.asarray(slopes) - limit[:, None]) ** 2, axis=-1))
        return np.stack(gaps, axis=1)

    @cached_property
    def rates(self) -> list[Rate]:
        """The exponent of the mean squared gap at each checkpoint, a term 1/L fitted along."""
        curves = [error_curve(self.training.lengths, self.squared_gaps[:, c]) for c in range(len(CHECKPOINTS))]
        return [fit_rate(curve, one_over_length) for curve in curves]

    @cached_property
    def excess(self) -> Float[np.ndarray, "runs k"]:
        """`R_L(θ_L(t)) - R_∞(θ_∞(t))`, a mean over the last quarter of training."""
        late = slice(-(self.training.steps // 4), None)
        return (self.finite.risks[:, late] - self.infinite.risks[late, None]).mean(axis=1)


def studies_of(tasks: Sequence[str], training: Training, prompts: int, key: PRNGKeyArray) -> dict[str, Study]:
    """The tasks asked for and the control, each with a key of its own."""
    return {
        name: Study(name, scene, training, prompts, jr.fold_in(key, index))
        for index, (name, scene) in enumerate(scenes().items())
        if name in (*tasks, CONTROL)
    }


def keys_of(many: Key[Array, " n"], purpose: int) -> Key[Array, " n"]:
    """From each key the one for this purpose."""
    return jax.vmap(lambda key: jr.fold_in(key, purpose))(many)


def root_mean_square(gaps: Float[np.ndarray, "runs ..."]) -> Float[np.ndarray, "..."]:
    """Over runs."""
    return np.sqrt(np.mean(gaps**2, axis=0))


# --- concentration at the checkpoints ---------------------------------------------------------------------


def concentration_table(studies: Mapping[str, Study]) -> Table:
    """Squared gap of one prompt's gradient by task, checkpoint and length, and the exponent of its fall."""
    frames = [
        pd.DataFrame(
            {
                "task": name,
                "checkpoint": checkpoint,
                "squared_norm": study.squared_norms[index],
                "length": study.training.lengths,
                "gap": study.squared_gaps[:, index].mean(axis=0),
                "gap_std_error": standard_error(study.squared_gaps[:, index]),
                "exponent": study.rates[index].exponent,
                "exponent_std_error": study.rates[index].std_error,
            }
        )
        for name, study in studies.items()
        for index, checkpoint in enumerate(CHECKPOINTS)
    ]
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "checkpoint": Column("Where on the trajectory of infinite prompts", "name"),
        "squared_norm": Column("H², the largest ‖Γ^{1/2} U Γ_q^{1/2}‖² over the shared episodes"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "gap": Column("Mean of ‖gradient of one prompt's loss - that of its law‖²", std_error="gap_std_error"),
        "gap_std_error": Column("Standard error of the mean", std_error="gap_std_error"),
        "exponent": Column("r of gap ∝ L^-r, with a correction 1/L fitted along", std_error="exponent_std_error"),
        "exponent_std_error": Column("Standard error of r", std_error="exponent_std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def rate_claim(light: Mapping[str, Study]) -> Claim:
    """All exponents of sub-Gaussian tasks are 1: the worst, in standard errors."""
    rates = [rate for study in light.values() for rate in study.rates]

    def worst(exponent: float) -> float:
        return max(abs(rate.exponent - exponent) / rate.std_error for rate in rates)

    return Claim(
        id="trajectory-stability-rate",
        statement=(
            f"For {len(light)} sub-Gaussian tasks, at the start, half-way and at the end of training, the mean squared "
            f"error of the gradient falls like 1/L: the worst of {len(rates)} exponents is that many standard errors "
            "from 1."
        ),
        source="[BB26, Thm 4.3]",
        figure="concentration_along_training",
        measured=worst(1.0),
        expected=0.0,
        tolerance=comparison_quantile(len(rates)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("it fell like L^{-1/2}", worst(0.5)),
    )


def norm_claim(light: Mapping[str, Study]) -> Claim:
    """H² < ½ all along, the condition under which the exponent 1 is expected."""
    return Claim(
        id="trajectory-stability-norm",
        statement=(
            "At all checkpoints of the sub-Gaussian tasks H² stays below ½, where averages over queries fall like the "
            "error at one query: the largest H²."
        ),
        source="derived here",
        figure="concentration_along_training",
        measured=max(float(study.squared_norms.max()) for study in light.values()),
        expected=0.5,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("training from a balanced start, which ends at H² = d^{-1/2}", DIMENSION**-0.5),
    )


def control_claim(control: Study) -> Claim:
    """The control's exponents are below 1 by more than chance."""
    steepest = max(control.rates, key=lambda rate: rate.exponent)
    bound = 1 - comparison_quantile(len(control.rates)) * steepest.std_error
    return Claim(
        id="trajectory-stability-control",
        statement=(
            "Laplace tokens tilted beyond half their pole are not sub-Gaussian, and the error of their gradient falls "
            "more slowly than 1/L, beyond chance, at every checkpoint: the largest of the three exponents."
        ),
        source="derived here",
        figure="concentration_along_training",
        measured=steepest.exponent,
        expected=bound,
        tolerance=0.0,
        relation="≤",
        std_error=steepest.std_error,
        alternative=Alternative("it fell like 1/L, as in the sub-Gaussian tasks", 1.0),
    )


# --- gaps between trajectories ----------------------------------------------------------------------------


def exponents(gaps: Float[np.ndarray, "runs k"], lengths: tuple[int, ...]) -> Float[np.ndarray, " runs"]:
    """Of each run: minus the slope of a straight line through `ln gap` against `ln L`."""
    return -np.polyfit(np.log(lengths), np.log(gaps).T, 1)[0]


def gaps_table(studies: Mapping[str, Study]) -> Table:
    """Both gaps, the largest over time, by task and length."""
    frames = []
    for name, study in studies.items():
        for kind, gaps in (("parameters", study.parameter_gaps), ("gradient", study.gradient_gaps)):
            largest = gaps.max(axis=1)
            slopes = exponents(largest, study.training.lengths)
            frames.append(
                pd.DataFrame(
                    {
                        "task": name,
                        "kind": kind,
                        "length": study.training.lengths,
                        "gap": largest.mean(axis=0),
                        "gap_std_error": standard_error(largest),
                        "exponent": slopes.mean(),
                        "exponent_std_error": float(standard_error(slopes)),
                    }
                )
            )
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "kind": Column("`parameters`: ‖θ_L(t) - θ_∞(t)‖; `gradient`: that of the two gradients followed", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "gap": Column("The largest gap over training time, mean over runs", std_error="gap_std_error"),
        "gap_std_error": Column("Standard error of the mean", std_error="gap_std_error"),
        "exponent": Column("r of gap ∝ L^-r, a straight line a run, mean", std_error="exponent_std_error"),
        "exponent_std_error": Column("Standard error of r, from runs", std_error="exponent_std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def gap_claim(light: Mapping[str, Study]) -> Claim:
    """By how many standard errors the exponent of the parameter gap falls short of ½, worst over tasks."""
    slopes = [exponents(study.parameter_gaps.max(axis=1), study.training.lengths) for study in light.values()]
    errors = np.asarray([float(standard_error(runs)) for runs in slopes])
    means = np.asarray([runs.mean() for runs in slopes])
    return Claim(
        id="trajectory-stability-gap",
        statement=(
            f"For {len(light)} sub-Gaussian tasks, the largest distance over training time between the parameters of "
            "finite and infinite prompts falls at least like L^{-1/2}: by how many standard errors the slowest falls "
            "short."
        ),
        source="[BB26, Thm 4.3]",
        figure="gaps_along_training",
        measured=float(np.max((0.5 - means) / errors)),
        expected=0.0,
        tolerance=comparison_quantile(len(light)),
        relation="≤",
        std_error=1.0,
        alternative=Alternative("it did not fall", float(np.max(0.5 / errors))),
    )


# --- Grönwall ---------------------------------------------------------------------------------------------


def envelope_table(light: Mapping[str, Study]) -> Table:
    """Gap and envelope against time, at the shortest, a middle and the longest length."""
    frames = []
    for name, study in light.items():
        times, lengths = study.training.times[1:], study.training.lengths
        for index in sorted({0, len(lengths) // 2, len(lengths) - 1}):
            square = study.parameter_gaps[:, 1:, index] ** 2
            gap = np.sqrt(square.mean(axis=0))
            frames.append(
                pd.DataFrame(
                    {
                        "task": name,
                        "length": lengths[index],
                        "time": times,
                        "gap": gap,
                        "std_error": standard_error(square) / (2 * gap),
                        "envelope": study.envelope[1:, index],
                        "linear": study.prompt_noise[index] * times,
                        "curvature": study.curvature,
                    }
                )
            )
    columns = {
        "task": Column("The task", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "time": Column("Step size times step, t"),
        "gap": Column("‖θ_L(t) - θ_∞(t)‖, root mean square over runs", std_error="std_error"),
        "std_error": Column("Its standard error", std_error="std_error"),
        "envelope": Column("g(L) t e^{βt}, g(L) the largest measured gap between gradients at one head"),
        "linear": Column("g(L) t, the envelope if differences did not grow"),
        "curvature": Column("β, the largest norm of the Hessian of R_∞ along the infinite trajectory"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def envelope_claim(light: Mapping[str, Study]) -> Claim:
    """Gap over envelope, the largest over tasks, lengths and time."""
    gaps = {name: root_mean_square(study.parameter_gaps)[1:] for name, study in light.items()}
    ratio = max(float(np.max(gaps[name] / study.envelope[1:])) for name, study in light.items())
    frozen = max(float(np.max(gaps[name][:, 0] / study.envelope[1:, -1])) for name, study in light.items())
    lengths = next(iter(light.values())).training.lengths
    return Claim(
        id="trajectory-stability-envelope",
        statement=(
            "At every length and all along training the distance between the two trajectories stays below g(L) t "
            "e^{βt}, with β the curvature of R_∞ along its own trajectory: the largest ratio of distance to envelope."
        ),
        source="[BB26, Thm 4.3]",
        figure="gronwall_envelope",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(f"at L = {lengths[-1]} the distance were that at L = {lengths[0]}", frozen),
    )


# --- risk -------------------------------------------------------------------------------------------------


def risk_table(light: Mapping[str, Study]) -> Table:
    """Risk against time for one task, and the excess at the end for all."""
    shown = light[SHOWN]
    frames = [
        pd.DataFrame(
            {
                "task": SHOWN,
                "length": length,
                "time": shown.training.times,
                "risk": shown.finite.risks[..., index].mean(axis=0),
                "risk_std_error": standard_error(shown.finite.risks[..., index]),
                "infinite": shown.infinite.risks,
            }
        )
        for index, length in enumerate(shown.training.lengths)
    ]
    frames += [
        pd.DataFrame(
            {
                "task": name,
                "length": study.training.lengths,
                "excess": study.excess.mean(axis=0),
                "excess_std_error": standard_error(study.excess),
            }
        )
        for name, study in light.items()
    ]
    columns = {
        "task": Column("The task", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "time": Column("Step size times step, t; none for the excess at the end"),
        "risk": Column("R_L(θ_L(t)), from the fresh prompts of each step", std_error="risk_std_error"),
        "risk_std_error": Column("Its standard error, from runs", std_error="risk_std_error"),
        "infinite": Column("R_∞(θ_∞(t))"),
        "excess": Column("R_L(θ_L) - R_∞(θ_∞), mean of the last quarter of training", std_error="excess_std_error"),
        "excess_std_error": Column("Its standard error, from runs", std_error="excess_std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def risk_claim(light: Mapping[str, Study]) -> Claim:
    """Excess at the longest length over that at the shortest, in units of L^{-1/2}, worst over tasks."""
    lengths = next(iter(light.values())).training.lengths
    unit = np.sqrt(lengths[-1] / lengths[0])
    ratios, errors = [], []
    for study in light.values():
        first, last = study.excess[:, 0], study.excess[:, -1]
        ratio = last.mean() / first.mean()
        ratios.append(unit * ratio)
        errors.append(unit * float(standard_error(last - ratio * first)) / first.mean())
    worst = int(np.argmax(ratios))
    return Claim(
        id="trajectory-stability-risk",
        statement=(
            f"For {len(light)} sub-Gaussian tasks, what training on prompts of L tokens ends above the infinite one's "
            f"risk falls from L = {lengths[0]} to {lengths[-1]} at least like L^{{-1/2}}: the largest ratio to it."
        ),
        source="[BB26, Thm 4.3]",
        figure="risk_transfer",
        measured=ratios[worst],
        expected=1.0,
        tolerance=comparison_quantile(len(light)) * errors[worst],
        relation="≤",
        std_error=errors[worst],
        alternative=Alternative("it did not fall", unit),
    )
