"""In-context learning in general: a task draws episodes and has a loss, and one head predicts their targets.

An episode is a distribution of tokens, a query and a target. The distribution is a `Measure`, so that the infinite
prompt is `attend` on it and a finite one `attend` on a sample of it; [BB26, Theorem 4.3] is about training on either. A
new task is a class with `draw` and `loss`.
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

from lib.attention import Attention, attend
from lib.measures import Gaussian, Measure, Pushforward


class Episode(eqx.Module):
    """One draw of the hidden task.

    Attributes:
      measure: the distribution of tokens given the task.
      query: the query, shape (e,).
      target: the target to predict, shape ().
    """

    measure: Measure
    query: Float[Array, "*episodes e"]
    target: Float[Array, "*episodes"]


class Task(eqx.Module):
    """A distribution of episodes and a loss. Functions take one episode; a stack of episodes is for `jax.vmap`."""

    @abc.abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> Episode:
        """Draw a hidden task and return its episode.

        Args:
          key: JAX random key.

        Returns:
          The episode.

        Transformations: jit, vmap, grad.
        """

    @staticmethod
    @abc.abstractmethod
    def loss(prediction: Float[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
        """Return the loss of a prediction, smooth in the prediction.

        Args:
          prediction: ŷ, shape ().
          target: y, shape ().

        Returns:
          The loss, shape ().

        Transformations: jit, vmap, grad.
        """


def predict(params: Attention, prompt: Measure, query: Float[Array, " e"]) -> Float[Array, ""]:
    """Return ŷ, the last coordinate of the head's output: the place of the label in tokens, empty in the query.

    Args:
      params: the head.
      prompt: the prompt as a measure, tokens in $R^e$.
      query: shape (e,).

    Returns:
      The prediction, shape ().

    Raises:
      ValueError: as `lib.attention.attend`.

    Transformations: jit, vmap, grad.
    """
    return attend(params, prompt, query)[-1]


def episode_loss(params: Attention, prompt: Measure, task: Task, episode: Episode) -> Float[Array, ""]:
    """Return the loss of the head's prediction from a prompt.

    Its mean over episodes is $R_∞$ if `prompt` is the distribution `episode.measure` itself, and $R_L$, over prompts
    too, if it is a sample of L tokens.

    Args:
      params: the head.
      prompt: `episode.measure` or a sample of it.
      task: the task, which defines the loss.
      episode: query and target.

    Returns:
      The loss, shape ().

    Raises:
      ValueError: as `lib.attention.attend`.

    Source: [BB26, Section 4]. Transformations: jit, vmap, grad.
    """
    return task.loss(predict(params, prompt, episode.query), episode.target)


def hide_label(measure: Measure, token: Float[Array, " e"]) -> Episode:
    """Return the episode whose target is the label, the last coordinate, of one more token.

    Args:
      measure: the distribution of tokens.
      token: the further token, shape (e,).

    Returns:
      The episode; its query is `token` with 0 in place of the label.

    Transformations: jit, vmap, grad.
    """
    token = jnp.asarray(token)
    return Episode(measure, token.at[-1].set(0.0), token[-1])


def half_square(prediction: Float[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
    """Return `½ (ŷ - y)²`, the loss of [BB26].

    Args:
      prediction: ŷ, shape ().
      target: y, shape ().

    Returns:
      The loss, shape ().

    Transformations: jit, vmap, grad.
    """
    return 0.5 * (prediction - target) ** 2


def logistic(prediction: Float[Array, ""], target: Float[Array, ""]) -> Float[Array, ""]:
    """Return `ln(1 + e^{-yŷ})` for labels y = ±1; smooth and Lipschitz in ŷ.

    Args:
      prediction: ŷ, shape ().
      target: y, shape ().

    Returns:
      The loss, shape ().

    Transformations: jit, vmap, grad.
    """
    return softplus(-target * prediction)


# --- tasks ------------------------------------------------------------------------------------------------


class GeneralRegression(Task):
    """Tokens `(x, ⟨w, x⟩ + noise)` with covariates of any distribution and w ~ `task_vectors`; half the square error.

    Given w a token is linear in `(x, noise)`, hence `Λ(ξ, η) = Λ_x(ξ + ηw) + ½ noise_std² η²`. For covariates N(0,
    cov), task vectors N(0, task_scale² I) and queries N(0, query_cov) this is `LinearRegression(cov, query_cov,
    task_scale, noise_std)`, whose risks have closed forms; here they are means over episodes.

    Attributes:
      covariates: distribution of x in the prompt, of dimension d.
      task_vectors: distribution of w, of dimension d.
      noise_std: standard deviation of the noise on labels, shape ().
      query_covariates: distribution of x in the query; that of the prompt by default.
    """

    covariates: Measure
    task_vectors: Measure
    noise_std: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.0)
    query_covariates: Measure | None = None

    def draw(self, *, key: PRNGKeyArray) -> Episode:
        """Draw w, then one more token, whose covariate is from `query_covariates`."""
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
    """Tokens `(x, f(⟨w, x⟩) + noise)` with x ~ N(0, I) and w ~ `task_vectors`; half the square error.

    Attributes:
      function: f, from scalars to scalars.
      task_vectors: distribution of w.
      noise_std: standard deviation of the noise on labels, shape ().
    """

    function: Callable[[Float[Array, ""]], Float[Array, ""]] = eqx.field(static=True)
    task_vectors: Measure
    noise_std: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.0)

    def draw(self, *, key: PRNGKeyArray) -> Episode:
        """Draw w, then one more token."""
        vector_key, token_key = jr.split(key)
        measure = SingleIndex(self.task_vectors.sample(1, key=vector_key)[0], Noisy(self.function, self.noise_std))
        return hide_label(measure, measure.sample(1, key=token_key)[0])

    loss = staticmethod(half_square)


class Classification(Task):
    """Tokens `(x, ±1)` with x ~ N(0, I) and `P(1 | x) = 1/(1 + e^{-⟨w, x⟩})`, w ~ `task_vectors`; the logistic loss.

    Attributes:
      task_vectors: distribution of w.
    """

    task_vectors: Measure

    def draw(self, *, key: PRNGKeyArray) -> Episode:
        """Draw w, then one more token."""
        vector_key, token_key = jr.split(key)
        measure = SingleIndex(self.task_vectors.sample(1, key=vector_key)[0], Logistic())
        return hide_label(measure, measure.sample(1, key=token_key)[0])

    loss = staticmethod(logistic)


# --- their measures ---------------------------------------------------------------------------------------


class Independent(Measure):
    """The product of two measures.

    Attributes:
      first: distribution of the first coordinates.
      second: distribution of the further coordinates.
    """

    first: Measure
    second: Measure

    @property
    def dimension(self) -> int:
        """The sum of both dimensions."""
        return self.first.dimension + self.second.dimension

    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ, η) = Λ_first(ξ) + Λ_second(η)`."""
        d = self.first.dimension
        return self.first.log_mgf(tilt[:d]) + self.second.log_mgf(tilt[d:])

    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n tokens of both measures side by side."""
        first_key, second_key = jr.split(key)
        return jnp.concatenate([self.first.sample(n, key=first_key), self.second.sample(n, key=second_key)], axis=1)


class Labels(eqx.Module):
    """The distribution of a label y given the score ⟨w, x⟩ of its covariate."""

    @abc.abstractmethod
    def log_mgf(self, score: Float[Array, ""], tilt: Float[Array, ""]) -> Float[Array, ""]:
        """Return `log E[e^{tilt · y} | score]`.

        Args:
          score: ⟨w, x⟩, shape ().
          tilt: shape ().

        Returns:
          The logarithm, shape ().

        Transformations: jit, vmap, grad.
        """

    @abc.abstractmethod
    def sample(self, scores: Float[Array, " n"], *, key: PRNGKeyArray) -> Float[Array, " n"]:
        """Return one label per score.

        Args:
          scores: ⟨w, x⟩ of each token, shape (n,).
          key: JAX random key.

        Returns:
          The labels, shape (n,).

        Transformations: jit, vmap, grad.
        """


class Noisy(Labels):
    """Labels `y = f(score) + noise_std · N(0, 1)`.

    Attributes:
      function: f, from scalars to scalars.
      noise_std: standard deviation of the noise, shape ().
    """

    function: Callable[[Float[Array, ""]], Float[Array, ""]] = eqx.field(static=True)
    noise_std: Float[Array, ""] = eqx.field(converter=jnp.asarray)

    def log_mgf(self, score: Float[Array, ""], tilt: Float[Array, ""]) -> Float[Array, ""]:
        """Return `tilt f(score) + ½ noise_std² tilt²`."""
        return tilt * self.function(score) + 0.5 * (self.noise_std * tilt) ** 2

    def sample(self, scores: Float[Array, " n"], *, key: PRNGKeyArray) -> Float[Array, " n"]:
        """Return `f(scores)` plus noise."""
        return jax.vmap(self.function)(scores) + self.noise_std * jr.normal(key, scores.shape, scores.dtype)


class Logistic(Labels):
    """Labels `y = ±1` with `P(y = 1) = 1/(1 + e^{-score})`."""

    def log_mgf(self, score: Float[Array, ""], tilt: Float[Array, ""]) -> Float[Array, ""]:
        """Return `log(σ(score) e^{tilt} + σ(-score) e^{-tilt})`."""
        return jnp.logaddexp(log_sigmoid(score) + tilt, log_sigmoid(-score) - tilt)

    def sample(self, scores: Float[Array, " n"], *, key: PRNGKeyArray) -> Float[Array, " n"]:
        """Return random signs, from logistic noise."""
        return jnp.where(jr.logistic(key, scores.shape, scores.dtype) < scores, 1.0, -1.0)


# Trapezoid nodes for a standard normal: exact to rounding for functions analytic in a strip of width ≫ 1/8.
_NODES = np.linspace(-8.0, 8.0, 129)


class SingleIndex(Measure):
    """Tokens (x, y) with x ~ $N(0, I_d)$, where y depends on x through ⟨direction, x⟩ only.

    A tilt by ξ moves x by ξ, so that only the score is left to integrate over, in any dimension: `Λ(ξ, η) = ½‖ξ‖² + log
    E_g exp Λ_y(η | ⟨w, ξ⟩ + ‖w‖g)` with g standard normal. Derived here. The integral is a trapezoid of 129 nodes,
    whose error is 1e-8 for tanh and logistic labels up to about ‖w‖ = 4; it is not valid for labels with jumps.

    Attributes:
      direction: w, shape (d,), or (..., d) for a stack.
      labels: distribution of y given the score.
    """

    direction: Float[Array, "*stack d"]
    labels: Labels

    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return Λ, by quadrature over the score."""
        covariate_tilt, label_tilt = tilt[:-1], tilt[-1]
        nodes = jnp.asarray(_NODES, tilt.dtype)
        scores = self.direction @ covariate_tilt + jnp.linalg.norm(self.direction) * nodes
        given_score = jax.vmap(self.labels.log_mgf, (0, None))(scores, label_tilt)
        gaussian = jnp.asarray(0.5 * covariate_tilt @ covariate_tilt)
        return gaussian + logsumexp(log_softmax(-0.5 * nodes**2) + given_score)

    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n normal covariates with their labels."""
        covariate_key, label_key = jr.split(key)
        x = jr.normal(covariate_key, (n, self.direction.shape[-1]), self.direction.dtype)
        return jnp.column_stack([x, self.labels.sample(x @ self.direction, key=label_key)])
