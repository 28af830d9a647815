"""Theory of the errors of both gradients: exact values, the form of the bounds, and the limit of long prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.concentration.bounds import BoundShape, fit_bound, looseness, tightest_bound
from chapters.concentration.experiment import DIMENSION
from chapters.concentration.gradient_errors import BILINEAR, VALUE, PairedErrors
from lib.concentration import RadialTable
from lib.finite_prompt import rate_exponent, score_statistics

# The powers of σ and of ln L in the bound.
POWERS = {VALUE: {"sigma_power": 6, "log_power": 1}, BILINEAR: {"sigma_power": 12, "log_power": 2}}
# The powers of σ and of ln L of a mean and of a covariance of the tokens.
OWN_POWERS = {VALUE: (2, 0), BILINEAR: (4, 1)}
# How far a bound is above all errors depends on the range of scales and lengths and on the gain. The distances that the
# claims state were computed where the scales reach from the first of these two to the second or farther, the lengths
# as well, and the gain is not larger.
SCALES_FROM, LENGTHS_FROM, LARGEST_GAIN = (1.1, 3.0), (16, 1024), 0.42


@dataclass(frozen=True)
class ValueErrors:
    """Exact error of ∇_V by σ at the simulated lengths, and its value if all queries had length √d."""

    right: Mapping[float, Float[np.ndarray, " k"]]
    wrong: Mapping[float, Float[np.ndarray, " k"]]


def solve_value_errors(scales: Sequence[float], gain: float, lengths: Sequence[int]) -> ValueErrors:
    """Return d times the error of the output, by quadrature."""
    table = RadialTable.at(np.log(lengths))

    def at_one_size(norm):
        scores = score_statistics(norm**2 * DIMENSION, np.log(lengths))
        return np.asarray(scores.score_error + (DIMENSION - 1) * scores.participation)

    def by_scale(error):
        return {sigma: DIMENSION * sigma**2 * error(gain * sigma) for sigma in scales}

    return ValueErrors(by_scale(lambda norm: table.error(norm, DIMENSION)), by_scale(at_one_size))


@dataclass(frozen=True)
class LooseBound:
    """Form of the bound on one gradient, and the powers of ten by which bounds exceed the errors where they do most."""

    shape: BoundShape
    """The bound with the slowest decay among the scales for c₂, and the smallest c₁ that bounds all errors."""
    looseness: float
    """The powers of ten for this shape."""
    least_looseness: float
    """The powers of ten for the best constants; c₂ may be 0, and then the bound does not fall."""
    own_looseness: float
    """The powers of ten for c₁ σ^p (ln L)^q / L^β(H), with the powers of a mean or covariance and the exponent β."""
    is_wide: bool
    """Whether scales, lengths and gain are those for which the distances of the claims were computed."""


def solve_gradient_bounds(measured: Mapping[float, PairedErrors], gain: float) -> dict[str, LooseBound]:
    """Return, for each gradient, bounds on the simulated errors at all σ and lengths."""
    lengths = np.asarray(next(iter(measured.values())).lengths)
    scales = np.asarray(list(measured))[:, None]
    decay = lengths ** -np.asarray(rate_exponent(gain * scales))
    is_wide = covers(scales, SCALES_FROM) and covers(lengths, LENGTHS_FROM) and gain <= LARGEST_GAIN

    def one(name):
        errors, (power, log_power) = mean_errors(measured, name), OWN_POWERS[name]
        fitted, tightest = (fit(list(measured), lengths, errors, **POWERS[name]) for fit in (fit_bound, tightest_bound))
        own = scales**power * np.log(lengths) ** log_power * decay
        own *= np.max(errors / own)
        loose = (looseness(values, errors) for values in (fitted(scales, lengths), tightest(scales, lengths), own))
        return LooseBound(fitted, *loose, is_wide)

    return {name: one(name) for name in POWERS}


def covers(values: np.ndarray, ends: tuple[float, float]) -> bool:
    """Return whether the values reach from the first end to the second or farther."""
    return bool(np.min(values) <= ends[0] and np.max(values) >= ends[1])


@dataclass(frozen=True)
class SingleTokens:
    """Simulated and exact errors of prompts of one token, by σ."""

    measured: Mapping[float, PairedErrors]
    exact: Mapping[float, Mapping[str, float]]


def solve_single_token_errors(measured: Mapping[float, PairedErrors], gain: float) -> SingleTokens:
    """Return both errors of one token, whose output is Vz₁ for any query: d²σ²(1 + H²) for ∇_V, d²σ⁴ for ∇_U."""
    square = DIMENSION**2
    exact = {s: {VALUE: square * s**2 * (1 + (gain * s) ** 2), BILINEAR: square * s**4} for s in measured}
    return SingleTokens(measured, exact)


def mean_errors(measured: Mapping[float, PairedErrors], name: str) -> Float[np.ndarray, "sigmas k"]:
    """Return the mean errors of one gradient, by σ and length."""
    return np.stack([errors.curve(name).mean for errors in measured.values()])


def long_prompt_limit(tau: Float[np.ndarray, "*n"], gain: float) -> Float[np.ndarray, "*n"]:
    """Return `lim L · error` of ∇_U at a query of size τ: `‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d)`, tokens of scale 1.

    The delta method of `fluctuation`, for the tilted covariance: `‖z‖² e^{Λ(2ξ)-2Λ(ξ)}` times the mean of
    `‖y yᵀ - ∇²Λ(ξ)‖²` over `y = z' - ∇Λ(ξ)`, z' of the distribution tilted by 2ξ; for a Gaussian, y is N(Γξ, Γ).
    """
    square = tau**2
    return square / gain**2 * np.exp(square) * ((square + DIMENSION) ** 2 + 2 * square + DIMENSION)


def long_prompt_ratio(tau: Float[np.ndarray, "*n"], gain: float) -> Float[np.ndarray, "*n"]:
    """Return this limit divided by the limit of ∇_V, `d (τ² + d) e^{τ²}`."""
    return long_prompt_limit(tau, gain) / (DIMENSION * (DIMENSION + tau**2) * np.exp(tau**2))
