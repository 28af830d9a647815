"""Weights that a head gives to the tokens of a prompt, from their scores.

Activations are values: `softmax`, `linear`, … There are two families [D26]. Normalised weights are
`s_l = κ(χ_l)/Σκ`: softmax, softplus, and hardmax as a limit. Element-wise weights depend on one score each: linear and
exp, and, with a bias to be chosen, erf, sigmoid and relu. `sink_softmax` is a softmax with one more score, whose weight
no token gets.
"""

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import as_float, public
from lib._namespace import erfc, jitted, known, namespace
from lib._namespace import sigmoid as sigmoid_of
from lib._namespace import softmax as softmax_of
from lib._namespace import softplus as softplus_of
from lib._types import AnyArray, Scalar, Scalars
from lib.single_location._moments import (
    Moments,
    argmax_moments,
    elementwise_moments,
    nan_unless,
    normalised_moments,
    sum_above,
)
from lib.single_location._prox import Channel, gauss_newton_scores, linear_scores
from lib.single_location._score_mixture import SCORE_NODES, ScoreMixture
from lib.single_location._search import minimise_scalar
from lib.single_location.several_tokens import _RelevantTokens
from lib.single_location.tasks import LocationTask

# Smallest and largest slope c of the scores c χ* that are searched, next to c = ∞; all are resolved. Normalised kernels
# are searched to twice the largest one.
_SMALLEST_SLOPE, _LARGEST_SLOPE = 0.01, 30.0
# Largest share of an average that a node at the end of the grid may have.
_END_TOLERANCE = 1e-13
# NumPy's zero and not JAX's, which would be made, in whatever precision holds, when this module is imported.
_ZERO_BIAS = np.zeros(())


class Activation(eqx.Module):
    """A map from the scores χ of all tokens to their weights s; the head's output is `Σ_l s_l z_l`.

    Attributes:
      searches_in_numpy: number of lowest risks that a process computes by NumPy, before XLA compiles a program.
    """

    searches_in_numpy: ClassVar[int] = 10

    @staticmethod
    def of_kernel(log_kernel: Callable) -> "Activation":
        """Return the weights `s_l = κ(χ_l)/Σ_m κ(χ_m)` with a kernel κ ≥ 0 that is given by its logarithm.

        Args:
          log_kernel: the function log κ, element-wise in JAX; -inf at isolated zeros is allowed.

        Returns:
          The activation. `best_risk` searches its slope c in [0.01, 60]; the limit c = ∞ is not tried.
        """
        return _Kernel(log_kernel)

    @abc.abstractmethod
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return the weight of each token.

        Args:
          chi: the scores of all tokens of a prompt, shape (..., L).

        Returns:
          The weights, shape (..., L).

        Transformations: jit, vmap, grad.
        """

    @public
    def score_mixture(self, task: LocationTask, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Return the part of the distribution of the scores of a head that averages of these weights need.

        Args:
          task: a single task.
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The joint distribution, or the marginals for element-wise activations.
        """
        return task.score_mixture(m_k, q_k)

    @abc.abstractmethod
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the averages of weights and scores that risks need.

        Args:
          mixture: the distribution that `score_mixture` returns.

        Returns:
          The moments, NaN where the grid does not resolve them.
        """

    @abc.abstractmethod
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the lowest risk with scores cχ, over c > 0, the bias and the length of v.

        The limit c = ∞ is included where the weights have one that is known.

        Args:
          mixture: the distribution of χ, as `score_mixture` returns it.

        Returns:
          The risk, shape (), NaN where it is not resolved.

        Transformations: jit, vmap, grad.
        """

    @public
    def best_risk(self, task: LocationTask) -> Scalar:
        """Return the lowest risk of a head with k = c k* and v along v*.

        Args:
          task: a single task.

        Returns:
          The risk, shape (), NaN where it is not resolved.

        Transformations: jit, vmap, grad.
        """
        one = namespace(task.length).ones(())
        return _compiled_lowest_risk(self, self.score_mixture(task, one, one))

    @public
    def head_moments(self, task: LocationTask, m_k: Scalar, q_k: Scalar) -> Moments:
        """Return the averages of which the risk of a head consists.

        Args:
          task: a single task.
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The moments, NaN where the quadrature does not resolve them.
        """
        return _compiled_moments(self, self.score_mixture(task, m_k, q_k))

    def best_risk_of_sets(self, task: _RelevantTokens) -> Scalar:
        """Return the lowest risk of a head with k = c k* and v along v* for a set of relevant tokens.

        Args:
          task: a single task, known numbers.

        Returns:
          The risk, shape (), NaN where it is not resolved.
        """
        return _compiled_lowest_risk(self, self.score_mixture(task, 1.0, 1.0))

    def moments_of_sets(self, task: _RelevantTokens, m_k: Scalar, q_k: Scalar) -> Moments:
        """Return the averages of which the risk of a head consists, for a set of relevant tokens.

        Args:
          task: a single task, known numbers.
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The moments, divided by the mean number of relevant tokens.
        """
        return self.head_moments(task, m_k, q_k)

    @public
    def prox(self, channel: Channel, starts: Float[Array, "starts L"]) -> Float[Array, " L"]:
        """Return the scores that minimise the energy of `channel`, the lowest that descents from `starts` reach.

        Args:
          channel: the fields of one prompt.
          starts: scores at which the descents begin, shape (starts, L).

        Returns:
          The scores, shape (L,).

        Transformations: jit, vmap, grad.
        """
        return gauss_newton_scores(self.weights, channel, starts)


# Compiled separately from the score mixtures: activations share the mixtures, and tasks share these functions.
@jitted()
def _compiled_moments(activation: Activation, mixture: ScoreMixture) -> Moments:
    """Return `activation.moments(mixture)`, compiled once for all tasks."""
    return activation.moments(mixture)


@jitted()
def _compiled_lowest_risk(activation: Activation, mixture: ScoreMixture) -> Scalar:
    """Return `activation.lowest_risk(mixture)`, compiled once for all tasks."""
    return activation.lowest_risk(mixture)


@partial(jax.jit, static_argnums=0)
def _evaluated(function: Callable, values: Float[Array, " n"]) -> Float[Array, " n"]:
    return function(values)


def _optimal_risk(hidden: Scalars, power: Scalars) -> Any:
    """Return `1 - (E s_ε)²/E Σs²`, the risk with v along v* and of the best length; 1 where no token has a weight."""
    xp = namespace(power)
    return 1.0 - hidden**2 / xp.where(power > 0, power, xp.inf)


class _Normalised(Activation):
    """Weights `s_l = κ(χ_l)/Σ_m κ(χ_m)` with a kernel κ > 0."""

    @abc.abstractmethod
    def log_kernel(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return `log κ`, element by element.

        Args:
          chi: scores of any shape.

        Returns:
          The logarithms, of that shape.

        Transformations: jit, vmap, grad.
        """

    @public
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return the kernels over their sum."""
        return softmax_of(self.log_kernel(chi), axis=-1)

    @public
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the moments by Laplace's identity."""
        mixture = mixture.coarsened(1.0)
        return nan_unless(mixture.resolves(1.0), normalised_moments(mixture, self.log_kernel(mixture.scores)))

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the lowest risk by a search over c in [0.01, 60]; the limit c = ∞ is not tried."""
        return self._search_slope(mixture)[1]

    def _risk(self, mixture: ScoreMixture, log_c: Scalar) -> Scalar:
        c = namespace(mixture.scores).exp(log_c)
        mixture = mixture.coarsened(c)
        moments = normalised_moments(mixture, self.log_kernel(c * mixture.scores), with_scores=False)
        return _optimal_risk(moments.hidden, moments.power)

    def _search_slope(self, mixture: ScoreMixture) -> tuple[Scalar, Scalar]:
        """The logarithm of the best finite c, and its risk."""
        xp = namespace(mixture.scores)
        flattest, steepest = xp.log(_SMALLEST_SLOPE), xp.log(2.0 * _LARGEST_SLOPE)
        return minimise_scalar(
            lambda log_c: self._risk(mixture, log_c), flattest, steepest, lattice=13, rounds=8, vectorised=False
        )


class _Softmax(_Normalised):
    """The weights `s_l = e^{χ_l} / Σ_m e^{χ_m}`."""

    @public
    def log_kernel(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return the score itself."""
        return namespace(chi).asarray(chi)

    @public
    def best_risk(self, task: LocationTask) -> Scalar:
        """Return the Bayes risk: with c = √ν (spiked) or c = ν (max) the weights are the posterior."""
        return task.bayes_risk()

    def best_risk_of_sets(self, task: _RelevantTokens) -> Scalar:
        """Return the lowest risk over c, by a global search."""
        return np.asarray(task.best_softmax(with_sink=False).risk)

    def moments_of_sets(self, task: _RelevantTokens, m_k: Scalar, q_k: Scalar) -> Moments:
        """Return the moments by Laplace's identity."""
        return task.softmax_moments(m_k, q_k)


class _SinkSoftmax(Activation):
    """The weights `s_l = e^{χ_l} / (e^{sink} + Σ_m e^{χ_m})` of a softmax with one more score, whose value is 0.

    With the sink 0 this is the softmax-1 of Miller (2023), and with the sink -∞ softmax.

    Attributes:
      sink: the score of the sink.
    """

    sink: Float[AnyArray, "*stack"] = eqx.field(
        converter=lambda sink: sink if sink is _ZERO_BIAS else as_float(sink), default_factory=lambda: _ZERO_BIAS
    )

    @public
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return the weights of the tokens, whose sum is below one."""
        sink = known(self.sink)
        xp = namespace(chi, sink)
        sink = xp.broadcast_to(xp.asarray(sink, chi.dtype)[..., None], (*chi.shape[:-1], 1))
        return softmax_of(xp.concatenate([chi, sink], axis=-1))[..., :-1]

    @public
    def score_mixture(self, task: LocationTask, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Raise, because the sink is known for sets of relevant tokens only."""
        raise ValueError(
            "The risk of one head with `sink_softmax` is known for `Several`, `Independent` and `Absent`; "
            f"`Spiked(length, snr)` is `Several(length, 1, snr)`. Got the task {type(task).__name__}."
        )

    @public
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the moments of softmax, and NaN with a sink."""
        return nan_unless(jnp.isneginf(self.sink), softmax.moments(mixture))

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return that of softmax, the limit of a sink at -∞."""
        return softmax.lowest_risk(mixture)

    @public
    def best_risk(self, task: LocationTask) -> Scalar:
        """Return the Bayes risk: with exactly one relevant token no sink, at -∞, is best."""
        return softmax.best_risk(task)

    def best_risk_of_sets(self, task: _RelevantTokens) -> Scalar:
        """Return the lowest risk over c and the sink, by a global search."""
        return np.asarray(task.best_softmax(with_sink=True).risk)

    def moments_of_sets(self, task: _RelevantTokens, m_k: Scalar, q_k: Scalar) -> Moments:
        """Return the moments by Laplace's identity."""
        return task.softmax_moments(m_k, q_k, self.sink)


class _Softplus(_Normalised):
    """Weights `s_l ∝ log(1 + e^{χ_l + bias})`: normalised, but only linear where scores are large.

    The bias is given and not optimised: as it tends to -∞ the kernel tends to $e^χ$, up to a factor, and the weights to
    softmax.

    Attributes:
      bias: the shift of the scores.
    """

    searches_in_numpy: ClassVar[int] = 1000
    bias: float | Float[AnyArray, "*stack"] = 0.0

    @public
    def log_kernel(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return `log log(1 + e^x)` with x = χ + bias, which is x far to the left."""
        x = chi + self.bias
        xp = namespace(x)
        return xp.where(x < -30.0, x, xp.log(softplus_of(xp.maximum(x, -30.0))))

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the lower of the risks at the best finite c and at c = ∞; a c beyond 60 gains below 1e-6."""
        xp = namespace(mixture.scores)
        log_c, finite = self._search_slope(mixture)
        infinite = self._infinite_slope_risk(mixture)
        # for short prompts only the limit is not resolved; their best c is finite, with worse ones on both sides
        resolved = mixture.resolved & (xp.isfinite(infinite) | (self._risk(mixture, log_c + 0.1) > finite))
        return xp.where(resolved, xp.fmin(finite, infinite), xp.nan)

    def _infinite_slope_risk(self, mixture: ScoreMixture) -> Scalar:
        """At c = ∞: weights in proportion to max(χ, 0), and the argmax where all scores are negative."""
        xp = namespace(mixture.scores)
        above_zero = mixture.weights_above(0.0)
        log_kernel = xp.log(xp.maximum(mixture.scores, 0.0))
        positive = normalised_moments(mixture, log_kernel, inside=above_zero, with_scores=False)
        all_negative = argmax_moments(mixture, inside=1.0 - above_zero)
        return _optimal_risk(positive.hidden + all_negative.hidden, positive.power + all_negative.power)


class _Kernel(_Normalised):
    """The weights of `Activation.of_kernel`."""

    searches_in_numpy: ClassVar[int] = 1000
    logarithm: Callable = eqx.field(static=True)

    def log_kernel(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return log κ of each score; where scores are known, a program for all grids of a score mixture."""
        if namespace(chi) is jnp:
            return self.logarithm(chi)
        padded = np.resize(chi, max(chi.size, SCORE_NODES))
        return np.asarray(_evaluated(self.logarithm, padded))[: chi.size].reshape(chi.shape)


class _Hardmax(Activation):
    """Weights `s_l = 1` for the largest score and 0 for all others: the softmax of infinitely large scores."""

    @public
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return a one-hot vector."""
        xp = namespace(chi)
        return (xp.argmax(chi, axis=-1)[..., None] == xp.arange(chi.shape[-1])).astype(chi.dtype)

    @public
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the moments by order statistics."""
        return nan_unless(mixture.resolved, argmax_moments(mixture))

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return `1 - P²` with the probability P that the hidden token has the largest score, for any c."""
        return 1.0 - self.moments(mixture).hidden ** 2


class _Elementwise(Activation):
    """Weights that depend on the token's own score alone."""

    searches_in_numpy: ClassVar[int] = 200

    @public
    def score_mixture(self, task: LocationTask, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Return the distributions of single scores.

        Args:
          task: a single task.
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The marginal distributions.
        """
        return task.marginals(m_k, q_k)

    @public
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the moments by averages over one token.

        Args:
          mixture: the distribution that `score_mixture` returns.

        Returns:
          The moments, NaN where the grid does not resolve them.
        """
        return nan_unless(mixture.resolves(1.0), elementwise_moments(mixture, self.weights(mixture.scores)))


class _Linear(_Elementwise):
    """The weights `s_l = 1 + χ_l` of linear attention."""

    @public
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return the scores plus one."""
        return 1.0 + namespace(chi).asarray(chi)

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the risk of least squares, in closed form given the mean of the hidden score."""
        return _affine_fit(mixture)[0]

    def best_risk_of_sets(self, task: _RelevantTokens) -> Scalar:
        """Return `1/(1/(1 - q) + νq)`."""
        q = np.asarray(task.relevance)
        return np.where(q < 1.0, 1.0 / (1.0 / np.maximum(1.0 - q, 1e-300) + np.asarray(task.snr) * q), 0.0)

    @public
    def prox(self, channel: Channel, starts: Float[Array, "starts L"]) -> Float[Array, " L"]:
        """Return the exact minimum by the root of one scalar equation; `starts` are not used."""
        return linear_scores(channel)


class _Exp(_Elementwise):
    """The weights `s_l = e^{χ_l}`: exponential, but not normalised."""

    @public
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return the exponentials of the scores."""
        return namespace(chi).exp(chi)

    @public
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the moments; NaN where squared weights exceed the grid, in the max model from $q_k = 16$ on."""
        xp = namespace(mixture.scores)
        squares = xp.abs(xp.concatenate([mixture.hidden, mixture.others])) * self.weights(mixture.scores) ** 2
        end_terms = xp.maximum(squares[:, 0], squares[:, -1])
        return nan_unless(xp.all(end_terms < _END_TOLERANCE * xp.sum(squares, axis=1)), super().moments(mixture))

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the lowest risk by a search over c below 4."""
        xp = namespace(mixture.scores)

        def risk(log_c):
            return _elementwise_risk(mixture, xp.exp(xp.exp(log_c) * mixture.scores))

        return minimise_scalar(risk, xp.log(1e-3), xp.log(4.0), lattice=33, rounds=40, broadcasts=True)[1]


class _Biased(_Elementwise):
    """Weights `s_l = shape(χ_l + bias)`."""

    bias: Float[AnyArray, "*stack"] = eqx.field(
        converter=lambda bias: bias if bias is _ZERO_BIAS else as_float(bias), default_factory=lambda: _ZERO_BIAS
    )

    @abc.abstractmethod
    def shape(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return the weight of a score that contains the bias.

        Args:
          chi: scores plus bias, of any shape.

        Returns:
          The weights, of that shape.

        Transformations: jit, vmap, grad.
        """

    @public
    def weights(self, chi: Float[AnyArray, "*batch L"]) -> Float[AnyArray, "*batch L"]:
        """Return the shape function of each score plus the bias."""
        return self.shape(chi + self.bias)


class _SmoothStep(_Biased):
    """Weights that are a smooth step of the score; it becomes sharp as c → ∞."""

    @abc.abstractmethod
    def smallest_bias(self, mixture: ScoreMixture) -> Scalar:
        """Return a bias below any that could be best.

        Args:
          mixture: the distribution of the scores.

        Returns:
          The bias, shape ().

        Transformations: jit, vmap, grad.
        """

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the lower of the risks at the best finite c and bias, and at c = ∞ with the best threshold."""
        xp = namespace(mixture.scores)
        shape, lowest_bias = self.shape, self.smallest_bias(mixture)

        def over_biases(log_c, mixture):
            scores, hidden, density = xp.exp(log_c) * mixture.scores, mixture.hidden[0], _token_density(mixture)[0]

            def risk(bias):
                return _scaled_risk(shape(scores + bias), hidden, density)

            return minimise_scalar(risk, lowest_bias, 12.0, lattice=41, rounds=16, broadcasts=True)[1]

        # a quarter of the nodes finds the place, all of them the value
        thinned = mixture.thinned(4)
        log_c, _ = minimise_scalar(
            lambda log_c: over_biases(log_c, thinned),
            xp.log(_SMALLEST_SLOPE),
            xp.log(_LARGEST_SLOPE),
            lattice=17,
            rounds=12,
        )
        smooth = over_biases(log_c, mixture)
        hard = _optimal_risk(*(sum_above(density)[0] for density in (mixture.hidden, _token_density(mixture))))
        return xp.where(mixture.resolved, xp.minimum(smooth, xp.min(hard)), xp.nan)


class _Sigmoid(_SmoothStep):
    """The weights `s_l = 1/(1 + e^{-χ_l - bias})`; the best element-wise weights of the spiked model [D26]."""

    @public
    def shape(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return the logistic function."""
        return sigmoid_of(chi)

    @public
    def smallest_bias(self, mixture: ScoreMixture) -> Scalar:
        """Return a bound from the posterior odds of one token, which begin at 1/(L - 1)."""
        return -namespace(mixture.length).log(mixture.length) - 0.5 * (mixture.hidden[0] @ mixture.scores) ** 2 - 16.0

    def best_risk_of_sets(self, task: _RelevantTokens) -> Scalar:
        """Return the risk of the posterior of a token given its own score, a sigmoid."""
        return np.asarray(task.elementwise_risk())


class _Erf(_SmoothStep):
    """The weights `s_l = 1 + erf(χ_l + bias)` [D26, M24]."""

    @public
    def shape(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return `1 + erf` without cancellation far to the left."""
        return erfc(-chi)

    @public
    def smallest_bias(self, mixture: ScoreMixture) -> Scalar:
        """Return a bound of the order of the square root of what exponential tails need."""
        xp = namespace(mixture.scores)
        return -xp.sqrt(xp.log(mixture.length) + 0.5 * (mixture.hidden[0] @ mixture.scores) ** 2) - 8.0


class _Relu(_Biased):
    """The weights `s_l = max(χ_l + bias, 0)`."""

    @public
    def shape(self, chi: Float[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
        """Return the positive part."""
        return namespace(chi).maximum(chi, 0.0)

    @public
    def score_mixture(self, task: LocationTask, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Return the distributions of single scores on a grid with a node at the kink."""
        return task.marginals(m_k, q_k, kink=-self.bias)

    @public
    def moments(self, mixture: ScoreMixture) -> Moments:
        """Return the moments by averages over the half-line above the kink."""
        weights = self.weights(mixture.scores)
        return nan_unless(
            mixture.resolved, elementwise_moments(mixture, weights, inside=mixture.weights_above(-self.bias))
        )

    @public
    def lowest_risk(self, mixture: ScoreMixture) -> Scalar:
        """Return the lowest risk over all nodes as thresholds, refined by a parabola, or that of the affine fit."""
        xp, kink = namespace(mixture.scores), mixture.scores
        hidden, total = (
            [sum_above(density * kink**power)[0] for power in range(3)]
            for density in (mixture.hidden, _token_density(mixture))
        )
        mean = hidden[1] - kink * hidden[0]
        square = total[2] - 2.0 * kink * total[1] + kink**2 * total[0]
        # where next to nothing is above the threshold, differences are noise
        risk = xp.where(total[0] > 1e-12 * mixture.length, _optimal_risk(mean, square), 1.0)
        lowest = xp.clip(xp.argmin(risk), 1, risk.size - 2)
        left, centre, right = risk[lowest - 1], risk[lowest], risk[lowest + 1]
        curvature = left - 2.0 * centre + right
        parabola = centre - xp.where(
            curvature > 0, (right - left) ** 2 / (8.0 * xp.where(curvature > 0, curvature, 1.0)), 0.0
        )
        affine, slope = _affine_fit(mixture)
        lowest_kink = xp.where(slope * xp.abs(kink[0]) < 1.0, affine, 1.0)
        return xp.where(mixture.resolved, xp.minimum(parabola, lowest_kink), xp.nan)


def _affine_fit(mixture: ScoreMixture) -> tuple[Scalar, Scalar]:
    """Return the risk of the best weights `s = 1 + cχ`, and their c."""
    total = _token_density(mixture)[0]
    mean, total_score, total_square = (
        mixture.hidden[0] @ mixture.scores,
        total @ mixture.scores,
        total @ mixture.scores**2,
    )
    determinant = mixture.length * total_square - total_score**2
    explained = (total_square - 2.0 * mean * total_score + mixture.length * mean**2) / determinant
    return 1.0 - explained, (mixture.length * mean - total_score) / (total_square - mean * total_score)


def _elementwise_risk(mixture: ScoreMixture, weights: Float[AnyArray, "*m n"]) -> Scalars:
    """Return the risk of the best multiple of these weights."""
    return _scaled_risk(weights, mixture.hidden[0], _token_density(mixture)[0])


def _scaled_risk(
    weights: Float[AnyArray, "*m n"], hidden: Float[AnyArray, " n"], density: Float[AnyArray, " n"]
) -> Scalars:
    """Return the risk of the best multiple of these weights.

    `hidden` is the probability that the hidden token is at each node, `density` the expected number of tokens there.
    """
    weights = weights / namespace(weights).max(weights, axis=-1, keepdims=True)
    return _optimal_risk(weights @ hidden, weights**2 @ density)


def _token_density(mixture: ScoreMixture) -> Float[AnyArray, "rows n"]:
    """The expected number of tokens at each node."""
    return mixture.hidden + (mixture.length - 1.0) * mixture.others


softmax = _Softmax()
softplus = _Softplus()
hardmax = _Hardmax()
linear = _Linear()
exp = _Exp()
sink_softmax = _SinkSoftmax()
erf = _Erf()
sigmoid = _Sigmoid()
relu = _Relu()
