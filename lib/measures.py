"""A prompt is a probability measure, and a measure is known by `Λ(ξ) = log ∫ exp⟨ξ, z⟩ μ(dz)`.

Everything attention needs is a derivative of `log_mgf`: the gradient is the mean of the exponentially
tilted measure, the Hessian its covariance. A new measure is `log_mgf` and `sample`, and nothing else changes.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.special
from jax.nn import log_softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import (
    as_array,
    as_float,
    is_concrete,
    public,
    require_count,
    require_covariance,
    require_finite,
    require_now_or_then,
    require_positive,
)
from lib._namespace import known, namespace
from lib._types import AnyArray
from lib.random import _uniform, normal


class Measure(eqx.Module):
    """A probability measure μ on $R^d$, given by its log-moment-generating function Λ and a sampler.

    A subclass defines `log_mgf` and `sample`; everything else follows from them. Functions take one measure. A stack of
    measures, whose leaves have a leading axis, is for `jax.vmap`.
    """

    @property
    def dimension(self) -> int:
        """The dimension d of the tokens.

        By default it is read from the shape of a token, which is not drawn.

        Raises:
          ValueError: if the measure is a stack of measures.
        """
        return _last_axis(self, jax.eval_shape(lambda: self.sample(1, key=jr.key(0))), 2)

    @abc.abstractmethod
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = log E exp⟨ξ, z⟩`, which is convex, and 0 at ξ = 0.

        Args:
          tilt: ξ, shape (d,).

        Returns:
          Λ(ξ), shape (); `+inf` outside the domain of Λ.

        Transformations: jit, vmap, grad.
        """

    @abc.abstractmethod
    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n independent tokens z ~ μ.

        Args:
          n: the number of tokens, n ≥ 1; static under `jit`.
          key: JAX random key.

        Returns:
          The tokens, one per row, shape (n, d). NumPy draws those of independent coordinates and of a Gaussian in
          double precision if key and measure are known; otherwise each n takes half a second to compile.

        Transformations: jit, vmap, grad.
        """

    def _derivatives_in_numpy(self, tilt: Float[np.ndarray, " d"]) -> Iterable[Any]:
        """Return Λ(ξ), its gradient and its Hessian, one after the other, or nothing, so that JAX differentiates Λ."""
        return ()


class Gaussian(Measure):
    """The Gaussian `N(mean, cov)`, whose Λ is quadratic: the one measure under which attention is affine in its query.

    Args:
      mean: shape (d,), or (..., d) for a stack of Gaussians.
      cov: shape (d, d), or (..., d, d) for a stack. It may be singular. Its asymmetry and its negative eigenvalues may
        not exceed `d * eps(dtype) * largest eigenvalue`.

    Raises:
      ValueError: if shapes do not fit, an entry is not finite, or `cov` is not a covariance.
    """

    mean: Float[Array, "*stack d"] = eqx.field(converter=as_float)
    cov: Float[Array, "*stack d d"] = eqx.field(converter=as_float)

    def __check_init__(self):
        """Check the shapes, and the values where they are concrete."""
        if 0 in self.mean.shape[-1:] or self.mean.ndim < 1 or self.cov.shape != (*self.mean.shape, self.mean.shape[-1]):
            raise ValueError(
                "`Gaussian(mean, cov)` needs a mean of shape (d,) and a covariance of shape (d, d), d ≥ 1, because "
                f"⟨ξ, cov ξ⟩ pairs them. Got shapes {self.mean.shape} and {self.cov.shape}."
            )
        require_finite("Gaussian", "mean", self.mean, "it is the centre of a probability measure.")
        require_covariance("Gaussian", "cov", self.cov)

    @property
    def dimension(self) -> int:
        """The dimension d of the mean."""
        return _last_axis(self, self.mean, 1)

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = ⟨mean, ξ⟩ + ½⟨ξ, cov ξ⟩`."""
        return self.mean @ tilt + 0.5 * tilt @ self.cov @ tilt

    def _derivatives_in_numpy(self, tilt: Float[np.ndarray, " d"]) -> Iterable[Any]:
        mean, cov = np.asarray(self.mean, np.float64), np.asarray(self.cov, np.float64)
        yield mean @ tilt + 0.5 * tilt @ cov @ tilt
        yield mean + cov @ tilt
        yield cov

    @public
    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n tokens `mean + R g`, with `R Rᵀ = cov` and g ~ N(0, I)."""
        normals = normal(key, (n, self.mean.shape[-1]), self.mean.dtype)
        return as_array(known(self.mean) + normals @ _covariance_root(known(self.cov)).T)


@public
def _covariance_root(cov: Float[AnyArray, "d d"]) -> Float[AnyArray, "d d"]:
    """Return a matrix R with `R Rᵀ = cov`, from the eigenvalues of `cov`."""
    xp = namespace(cov)
    # the decomposition exists in single and double precision only
    wide = cov.astype(jnp.promote_types(cov.dtype, jnp.float32))
    eigenvalues, eigenvectors = xp.linalg.eigh(wide)
    return (eigenvectors * xp.sqrt(xp.maximum(eigenvalues, 0.0))).astype(cov.dtype)


class GaussianMixture(Measure):
    """The mixture `Σ_k π_k N(m_k, Γ_k)`: attention becomes affine functions of the query, weighted by a softmax.

    Args:
      log_weights: `log π_k` up to a common constant, shape (K,); -inf removes a component.
      components: one `Gaussian` whose leaves have a leading axis K: means (K, d), covariances (K, d, d).

    Raises:
      ValueError: if there is not one log-weight per component, or if the log-weights cannot be normalised.
    """

    log_weights: Float[Array, " K"] = eqx.field(converter=as_float)
    components: Gaussian

    def __check_init__(self):
        """Check that there is one log-weight per component, and that the log-weights can be normalised."""
        if self.log_weights.ndim != 1 or self.components.mean.shape[:-1] != self.log_weights.shape:
            raise ValueError(
                "`GaussianMixture(log_weights, components)` needs one log-weight a component: shapes (K,), "
                f"(K, d) and (K, d, d). Got log-weights {self.log_weights.shape}, means "
                f"{self.components.mean.shape} and covariances {self.components.cov.shape}."
            )
        if not self.log_weights.size:
            raise ValueError("`GaussianMixture(log_weights=...)` needs at least one component. Got shape (0,).")
        if is_concrete(self.log_weights):
            weights = np.asarray(self.log_weights)
            if np.isnan(weights).any() or np.isposinf(weights).any() or np.isneginf(weights).all():
                raise ValueError(
                    "`GaussianMixture(log_weights=...)` must be below +inf, never NaN, and not all -inf: they "
                    f"are normalised to a probability. Got {weights}."
                )

    @property
    def dimension(self) -> int:
        """The dimension d of the components."""
        return _last_axis(self, self.components.mean, 2)

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = log Σ_k π_k exp Λ_k(ξ)`."""
        return logsumexp(log_softmax(self.log_weights) + jax.vmap(Gaussian.log_mgf, (0, None))(self.components, tilt))

    @public
    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n tokens, each from a component drawn with probabilities π.

        Memory is O(n d) for any number of components.
        """
        label_key, token_key = jr.split(key)
        labels = jr.categorical(label_key, self.log_weights, shape=(n,))
        normals = as_array(normal(token_key, (n, self.components.mean.shape[-1]), self.components.mean.dtype))

        def place(tokens, component):
            index, gaussian = component
            mine = gaussian.mean + normals @ _covariance_root(gaussian.cov).T
            return jnp.where((labels == index)[:, None], mine, tokens), None

        return jax.lax.scan(place, jnp.zeros_like(normals), (jnp.arange(self.log_weights.size), self.components))[0]


class Empirical(Measure):
    """The empirical measure `(1/n) Σ_i δ_{z_i}` of a given prompt; the gradient of its Λ is textbook softmax attention.

    Args:
      points: the tokens $z_i$, one per row, shape (n, d) with n ≥ 1, or (..., n, d) for a stack of prompts.

    Raises:
      ValueError: if there is no token, or an entry is not finite.
    """

    points: Float[Array, "*stack n d"] = eqx.field(converter=as_float)

    def __check_init__(self):
        """Check that there is at least one token and that all are finite."""
        if self.points.ndim < 2:
            raise ValueError(
                "`Empirical(points=...)` needs one token per row, shape (n, d). "
                f"Got shape {self.points.shape}; a single token z is `points=z[None, :]`."
            )
        if 0 in self.points.shape:
            raise ValueError(
                "`Empirical(points=...)` needs at least one token: an empty prompt defines no probability "
                f"measure. Got shape {self.points.shape}."
            )
        require_finite("Empirical", "points", self.points, "a token is a point of R^d.")

    @property
    def dimension(self) -> int:
        """The dimension d of the tokens."""
        return _last_axis(self, self.points, 2)

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = log (1/n) Σ_i exp⟨ξ, z_i⟩`."""
        return logsumexp(self.points @ tilt) - jnp.log(self.points.shape[-2])

    def _derivatives_in_numpy(self, tilt: Float[np.ndarray, " d"]) -> Iterable[Any]:
        points = np.asarray(self.points, np.float64)
        scores = points @ tilt
        yield scipy.special.logsumexp(scores) - np.log(len(points))
        weights = scipy.special.softmax(scores)
        mean = weights @ points
        yield mean
        yield (weights * (points - mean).T) @ (points - mean)

    @public
    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n tokens of the prompt, drawn with replacement."""
        return jr.choice(key, self.points, (n,))


class _IndependentCoordinates(Measure):
    """Independent coordinates of a standard distribution, times their widths, the only field of a subclass."""

    _standard: ClassVar[Callable]  # draws the standard coordinates of a key, a shape and a type

    def _width(self) -> tuple[str, Float[Array, "*stack d"]]:
        (name,) = (field.name for field in dataclasses.fields(self))
        return name, getattr(self, name)

    def __check_init__(self):
        """Check that there is one positive width per coordinate."""
        name, width = self._width()
        owner = type(self).__name__
        if width.ndim < 1 or width.shape[-1] == 0:
            raise ValueError(
                f"`{owner}({name}=...)` needs one positive number a coordinate, shape (d,) with d ≥ 1, because it "
                f"also says the dimension. Got shape {width.shape}."
            )
        require_positive(owner, name, width, "it is the width of each coordinate.")

    @property
    def dimension(self) -> int:
        """The dimension d of the widths."""
        return _last_axis(self, self._width()[1], 1)

    @public
    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n tokens of standard coordinates, times their widths."""
        width = known(self._width()[1])
        return as_array(width * self._standard(key, (n, *width.shape), width.dtype))


class Rademacher(_IndependentCoordinates):
    """Independent coordinates `±scale_i`, both signs with probability ½.

    Args:
      scale: shape (d,), or (..., d) for a stack; positive.

    Raises:
      ValueError: if an entry of `scale` is not finite and positive.
    """

    scale: Float[Array, "*stack d"] = eqx.field(converter=as_float)
    _standard = staticmethod(lambda key, shape, dtype: (2 * (_uniform(key, shape) < 0.5) - 1).astype(dtype))

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = Σ_i log cosh(scale_i ξ_i)`."""
        angle = self.scale * tilt
        return jnp.sum(jnp.logaddexp(angle, -angle) - jnp.log(2.0))


class Uniform(_IndependentCoordinates):
    """The uniform distribution on the box `Π_i [-halfwidth_i, halfwidth_i]`.

    Args:
      halfwidth: shape (d,), or (..., d) for a stack; positive.

    Raises:
      ValueError: if an entry of `halfwidth` is not finite and positive.
    """

    halfwidth: Float[Array, "*stack d"] = eqx.field(converter=as_float)
    _standard = staticmethod(lambda key, shape, dtype: 2 * _uniform(key, shape, dtype) - 1)

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = Σ_i log(sinh(a_i ξ_i) / (a_i ξ_i))`, with a = halfwidth."""
        return jnp.sum(_log_sinhc(self.halfwidth * tilt))


# log(sinh x / x) = Σ_k (-1)^{k+1} ζ(2k)/k (x/π)^{2k}, from Euler's product; 17 terms reach 1e-18 at |x| = 1.
_ORDERS = np.arange(17, 0, -1)
_LOG_SINHC_SERIES = np.append((-1.0) ** (_ORDERS + 1) * scipy.special.zeta(2 * _ORDERS) / _ORDERS, 0.0)


def _log_sinhc(x: Float[Array, " d"]) -> Float[Array, " d"]:
    small = jnp.abs(x) < 1.0
    near = jnp.where(small, x, 0.0)
    far = jnp.abs(jnp.where(small, 1.0, x))
    series = jnp.polyval(jnp.asarray(_LOG_SINHC_SERIES, x.dtype), (near / jnp.pi) ** 2)
    return jnp.where(small, series, far + jnp.log1p(-jnp.exp(-2.0 * far)) - jnp.log(2.0 * far))


class Laplace(_IndependentCoordinates):
    """Independent coordinates of density `exp(-|x|/b)/(2b)`, with b = scale_i.

    The tails are exponential, heavier than Gaussian ones: Λ is `+inf` unless every `|ξ_i| < 1/b_i`, and outside this
    domain the attention of a finite prompt has no limit as the prompt grows.

    Args:
      scale: shape (d,), or (..., d) for a stack; positive.

    Raises:
      ValueError: if an entry of `scale` is not finite and positive.
    """

    scale: Float[Array, "*stack d"] = eqx.field(converter=as_float)

    @staticmethod
    def _standard(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any) -> Float[AnyArray, "..."]:
        lowest = float(jnp.finfo(dtype).epsneg) - 1
        signed = (1 - lowest) * _uniform(key, shape, dtype) + lowest
        xp = namespace(signed)
        return xp.sign(signed) * xp.log1p(-xp.abs(signed))

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = -Σ_i log(1 - b_i² ξ_i²)`; `+inf` where some `|ξ_i| ≥ 1/b_i`."""
        reach = self.scale * tilt
        inside = jnp.all(jnp.abs(reach) < 1.0)
        safe = jnp.where(inside, reach, 0.0)
        return jnp.where(inside, -jnp.sum(jnp.log1p(-safe) + jnp.log1p(safe)), jnp.inf)


class Pushforward(Measure):
    """The distribution of `matrix @ z + offset` for z ~ `measure`.

    Args:
      measure: the distribution of z, of dimension d.
      matrix: shape (e, d).
      offset: shape (e,).

    Raises:
      ValueError: if shapes do not fit, or an entry is not finite.
    """

    measure: Measure
    matrix: Float[Array, "e d"] = eqx.field(converter=as_float)
    offset: Float[Array, " e"] = eqx.field(converter=as_float)

    def __check_init__(self):
        """Check that `matrix` maps tokens of `measure` to the space of `offset`."""
        d = self.measure.dimension
        if self.matrix.ndim != 2 or self.matrix.shape != (*self.offset.shape, d):
            raise ValueError(
                "`Pushforward(measure, matrix, offset)` needs a matrix of shape (e, d) and an offset of shape "
                f"(e,), with d = {d} the dimension of `measure`: tokens become matrix @ z + offset. "
                f"Got shapes {self.matrix.shape} and {self.offset.shape}."
            )
        require_finite("Pushforward", "matrix", self.matrix, "it maps tokens to tokens.")
        require_finite("Pushforward", "offset", self.offset, "it moves tokens.")

    @property
    def dimension(self) -> int:
        """The dimension e of `offset`."""
        return _last_axis(self, self.offset, 1)

    @public
    def log_mgf(self, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, ""]:
        """Return `Λ(ξ) = Λ_measure(matrixᵀ ξ) + ⟨offset, ξ⟩`."""
        return self.measure.log_mgf(self.matrix.T @ tilt) + self.offset @ tilt

    @public
    def sample(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Return n tokens `matrix @ z + offset`."""
        return self.measure.sample(n, key=key) @ self.matrix.T + self.offset


def _last_axis(measure: Measure, leaf: jax.ShapeDtypeStruct | Float[Array, "..."], axes: int) -> int:
    """Return the length of the last axis of a leaf, which has `axes` axes in a single measure."""
    if len(leaf.shape) != axes:
        rule = (
            f"A verb takes one measure, of {axes} axes here: call it under `jax.vmap` if this is a stack of measures."
        )
        raise ValueError(f"{rule} Got a `{type(measure).__name__}` of {leaf.shape}.")
    return leaf.shape[-1]


@public
def empirical(measure: Measure, n: int, *, key: PRNGKeyArray) -> Empirical:
    """Return `μ̂_n`, the empirical measure of n independent tokens of μ.

    Args:
      measure: μ.
      n: the number of tokens, n ≥ 1; static under `jit`.
      key: JAX random key.

    Returns:
      The prompt as a measure, `points` of shape (n, d).

    Raises:
      ValueError: if n is not a whole number ≥ 1.

    Source: the finite prompt of [BB26]. Transformations: jit, vmap, grad.
    """
    n = require_count("empirical", "n", n, "an empty prompt defines no probability measure.")
    return Empirical(measure.sample(n, key=key))


@public
def tilted_mean(measure: Measure, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, " d"]:
    """Return `∇Λ(ξ)`, the mean of the measure proportional to `exp⟨ξ, z⟩ μ(dz)`.

    Args:
      measure: μ.
      tilt: ξ, shape (d,), inside the domain of Λ; ξ = 0 gives the mean of μ.

    Returns:
      The tilted mean, shape (d,).

    Raises:
      ValueError: if the shape of `tilt` does not fit, or Λ(ξ) is not finite. Inside `jit` the latter is a runtime
        error.

    Transformations: jit, vmap, grad.
    """
    _require_tilt(measure, tilt)
    log_mgf, mean = _derivatives(measure, tilt, 1)
    return _inside_domain(mean, log_mgf, tilt)


@public
def tilted_cov(measure: Measure, tilt: Float[Array | np.ndarray, " d"]) -> Float[Array, "d d"]:
    """Return `∇²Λ(ξ)`, the covariance of the measure proportional to `exp⟨ξ, z⟩ μ(dz)`.

    Args:
      measure: μ.
      tilt: ξ, shape (d,), inside the domain of Λ; ξ = 0 gives the covariance of μ.

    Returns:
      The tilted covariance, shape (d, d).

    Raises:
      ValueError: as `tilted_mean`.

    Transformations: jit, vmap, grad.
    """
    _require_tilt(measure, tilt)
    log_mgf, _, cov = _derivatives(measure, tilt, 2)
    return _inside_domain(cov, log_mgf, tilt)


def _derivatives(measure: Measure, tilt: Float[Array | np.ndarray, " d"], order: int) -> Sequence[Any]:
    """Return Λ(ξ) and its first `order` derivatives, by NumPy if the arguments are known and the measure has a formula.

    NumPy computes in double precision.
    """
    leaves = jax.tree.leaves(measure)
    if is_concrete(tilt, *leaves):
        with np.errstate(all="ignore"):
            formulas = measure._derivatives_in_numpy(np.asarray(tilt, np.float64))
            dtype = jnp.result_type(tilt, *leaves)
            if found := [np.asarray(each).astype(dtype) for each in islice(formulas, order + 1)]:
                return found
    return _differentiated(measure, tilt, order)


@eqx.filter_jit
def _differentiated(measure: Measure, tilt: Float[Array | np.ndarray, " d"], order: int) -> tuple[Any, ...]:
    if order == 1:
        return jax.value_and_grad(measure.log_mgf)(tilt)

    def mean_and_both(tilt):
        log_mgf, mean = jax.value_and_grad(measure.log_mgf)(tilt)
        return mean, (log_mgf, mean)

    cov, both = jax.jacfwd(mean_and_both, has_aux=True)(tilt)
    return *both, cov


def _require_tilt(measure: Measure, tilt: Float[Array | np.ndarray, " d"]) -> None:
    if jnp.shape(tilt) != (d := measure.dimension,):
        raise ValueError(
            f"The tilt ξ must be a vector of the measure's space R^{d}, because Λ(ξ) = log E exp⟨ξ, z⟩. "
            f"Got shape {jnp.shape(tilt)}."
        )


def _inside_domain(value, log_mgf: Float[AnyArray, ""], tilt: Float[Array | np.ndarray, " d"]):
    log_mgf = known(log_mgf)
    return as_array(
        require_now_or_then(
            value,
            namespace(log_mgf).isfinite(log_mgf),
            "The tilt ξ must lie where Λ(ξ) = log E exp⟨ξ, z⟩ is finite: elsewhere the tilted distribution does not "
            f"exist, or the scores ⟨ξ, z⟩ are too large for {jnp.result_type(log_mgf)}.",
            lambda: f"Got Λ = {log_mgf} at ξ = {tilt}.",
        )
    )
