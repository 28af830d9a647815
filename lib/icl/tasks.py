"""In-context learning in general: a task draws episodes and has a loss, and one head answers all of them.

An episode is a prompt's law, a query and a target. The law is a `Measure`, so the infinite prompt is `attend` on it and
a finite one `attend` on a sample of it; [BB26, Theorem 4.3] is about training on either. A new task is one small class.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.nn import log_sigmoid, log_softmax, softplus
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import as_float
from lib.attention import Attention, attend
from lib.measures import Gaussian, Measure, Pushforward


class Episode(eqx.Module):
    """One draw of the hidden task: the law of tokens given it, a query, and the target to predict."""

    measure: Measure
    query: Float[Array, "*episodes e"]
    target: Float[Array, "*episodes"]


class Task(eqx.Module):
    """A law of episodes and a loss. Verbs take one episode; batches are stacked pytrees under `jax.vmap`."""

    @abc.abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> Episode:
        """One episode."""

    @staticmethod
    @abc.abstractmethod
    def loss(prediction: Float[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
        """What a prediction costs, smooth in the prediction."""


def predict(params: Attention, prompt: Measure, query: Float[Array, " e"]) -> Float[Array, ""]:
    """The last coordinate of the head's output: where tokens carry labels, the query has none."""
    return attend(params, prompt, query)[-1]


def episode_loss(params: Attention, prompt: Measure, task: Task, episode: Episode) -> Float[Array, ""]:
    """The loss of the head that reads `prompt`: the law `episode.measure` itself, or a sample of it.

    Its mean over episodes is R_∞ in the first case, and R_L, over prompts too, for samples of L tokens
    [BB26, Section 4].
    """
    return task.loss(predict(params, prompt, episode.query), episode.target)


def hide_label(measure: Measure, token: Float[Array, " e"]) -> Episode:
    """The episode that asks for the label, the last coordinate, of one more token."""
    return Episode(measure, token.at[-1].set(0.0), token[-1])


def half_square(prediction: Float[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
    """`½ (ŷ - y)²`, the paper's."""
    return 0.5 * (prediction - target) ** 2


def logistic(prediction: Float[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
    """`ln(1 + e^{-yŷ})` for labels y = ±1: smooth, and Lipschitz."""
    return softplus(-target * prediction)


# --- tasks ------------------------------------------------------------------------------------------------


class GeneralRegression(Task):
    """Tokens `(x, ⟨w, x⟩ + noise)` with covariates x of any law and w ~ `task_vectors`; half the square error.

    The query's covariate is of the law `query_covariates`, by default that of the prompt's. Given w a token is linear
    in `(x, noise)`, hence `Λ(ξ, η) = Λ_x(ξ + ηw) + ½ noise_std² η²`. Where the three laws are N(0, cov),
    N(0, task_scale² I) and N(0, query_cov), this is `LinearRegression(cov, query_cov, task_scale, noise_std)`, which
    knows its risks in closed form; here they are means over episodes.
    """

    covariates: Measure
    task_vectors: Measure
    noise_std: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)
    query_covariates: Measure | None = None

    def draw(self, *, key):
        """A task vector, then a token like the prompt's, or with a covariate of its own law."""
        vector_key, token_key = jr.split(key)
        w = self.task_vectors.sample(1, key=vector_key)[0]
        asked = self._tokens(self.covariates if self.query_covariates is None else self.query_covariates, w)
        return hide_label(self._tokens(self.covariates, w), asked.sample(1, key=token_key)[0])

    def _tokens(self, covariates: Measure, w: Float[Array, " d"]) -> Measure:
        d = w.shape[0]
        noise = Gaussian(jnp.zeros(1), jnp.eye(1))
        matrix = jnp.eye(d + 1).at[d, :d].set(w).at[d, d].set(self.noise_std)
        return Pushforward(Independent(covariates, noise), matrix, jnp.zeros(d + 1))

    loss = staticmethod(half_square)


class IndexRegression(Task):
    """Tokens `(x, f(⟨w, x⟩) + noise)` with x ~ N(0, I) and w ~ `task_vectors`; half the square error."""

    function: Callable[[Float[Array, ""]], Float[Array, ""]] = eqx.field(static=True)
    task_vectors: Measure
    noise_std: Float[Array, ""] = eqx.field(converter=as_float, default=0.0)

    def draw(self, *, key):
        """A task vector, then one more token."""
        vector_key, token_key = jr.split(key)
        measure = SingleIndex(self.task_vectors.sample(1, key=vector_key)[0], Noisy(self.function, self.noise_std))
        return hide_label(measure, measure.sample(1, key=token_key)[0])

    loss = staticmethod(half_square)


class Classification(Task):
    """Tokens `(x, ±1)`, x ~ N(0, I), 1 with chance `1/(1 + e^{-⟨w, x⟩})`, w ~ `task_vectors`; the logistic loss."""

    task_vectors: Measure

    def draw(self, *, key):
        """A task vector, then one more token."""
        vector_key, token_key = jr.split(key)
        measure = SingleIndex(self.task_vectors.sample(1, key=vector_key)[0], Logistic())
        return hide_label(measure, measure.sample(1, key=token_key)[0])

    loss = staticmethod(logistic)


# --- their measures ---------------------------------------------------------------------------------------


class Independent(Measure):
    """The product of two measures: `Λ(ξ, η) = Λ_first(ξ) + Λ_second(η)`."""

    first: Measure
    second: Measure

    @property
    def dimension(self):
        """That of both together."""
        return self.first.dimension + self.second.dimension

    def log_mgf(self, tilt):
        """The sum over both."""
        d = self.first.dimension
        return self.first.log_mgf(tilt[:d]) + self.second.log_mgf(tilt[d:])

    def sample(self, n, *, key):
        """Side by side."""
        first_key, second_key = jr.split(key)
        return jnp.concatenate([self.first.sample(n, key=first_key), self.second.sample(n, key=second_key)], axis=1)


class Labels(eqx.Module):
    """The law of a label y given the score ⟨w, x⟩ of its covariate."""

    @abc.abstractmethod
    def log_mgf(self, score: Float[Array, ""], tilt: Float[Array, ""]) -> Float[Array, ""]:
        """`log E[e^{tilt · y} | score]`."""

    @abc.abstractmethod
    def sample(self, scores: Float[Array, " n"], *, key: PRNGKeyArray) -> Float[Array, " n"]:
        """A label a score."""


class Noisy(Labels):
    """`y = f(score) + noise_std · N(0, 1)`."""

    function: Callable[[Float[Array, ""]], Float[Array, ""]] = eqx.field(static=True)
    noise_std: Float[Array, ""] = eqx.field(converter=as_float)

    def log_mgf(self, score, tilt):
        """`tilt f(score) + ½ noise_std² tilt²`."""
        return tilt * self.function(score) + 0.5 * (self.noise_std * tilt) ** 2

    def sample(self, scores, *, key):
        """Values and noise."""
        return jax.vmap(self.function)(scores) + self.noise_std * jr.normal(key, scores.shape, scores.dtype)


class Logistic(Labels):
    """`y = ±1`, and 1 with chance `1/(1 + e^{-score})`."""

    def log_mgf(self, score, tilt):
        """`log(σ(score) e^{tilt} + σ(-score) e^{-tilt})`."""
        return jnp.logaddexp(log_sigmoid(score) + tilt, log_sigmoid(-score) - tilt)

    def sample(self, scores, *, key):
        """Signs."""
        return jnp.where(jr.logistic(key, scores.shape, scores.dtype) < scores, 1.0, -1.0)


# Trapezoid nodes for a standard normal: exact to rounding for functions analytic in a strip of width ≫ 1/8.
_NODES = np.linspace(-8.0, 8.0, 129)


class SingleIndex(Measure):
    """Tokens (x, y): x ~ N(0, I_d), and y depends on x through ⟨direction, x⟩ only.

    A tilt by ξ moves x by ξ, so only the score is left to integrate over, in whatever dimension:
    `Λ(ξ, η) = ½‖ξ‖² + log E_g exp Λ_y(η | ⟨w, ξ⟩ + ‖w‖g)` with g standard normal. Derived here. By a trapezoid of 129
    nodes: 1e-8 for tanh and logistic labels up to ‖w‖ = 4 or so, and not to be trusted for labels with jumps.
    """

    direction: Float[Array, "*stack d"]
    labels: Labels

    def log_mgf(self, tilt):
        """By quadrature over the score."""
        covariate_tilt, label_tilt = tilt[:-1], tilt[-1]
        nodes = jnp.asarray(_NODES, tilt.dtype)
        scores = self.direction @ covariate_tilt + jnp.linalg.norm(self.direction) * nodes
        given_score = jax.vmap(self.labels.log_mgf, (0, None))(scores, label_tilt)
        return 0.5 * covariate_tilt @ covariate_tilt + logsumexp(log_softmax(-0.5 * nodes**2) + given_score)

    def sample(self, n, *, key):
        """Normal covariates and their labels."""
        covariate_key, label_key = jr.split(key)
        x = jr.normal(covariate_key, (n, self.direction.shape[-1]), self.direction.dtype)
        return jnp.column_stack([x, self.labels.sample(x @ self.direction, key=label_key)])
