"""What is known of both errors beside the simulation: exact values, the form of the bounds, and long prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.gradient_concentration.gradient_errors import BILINEAR, DIMENSION, VALUE, PairedErrors
from lib.concentration import BoundShape, fit_bound, isotropic_error, radial_table

# The wrong theory that the exact curve must be told from: query sizes τ this much too large.
INFLATION = 1.05
# The powers of σ and of ln L in the bound.
POWERS = {VALUE: {"sigma_power": 6, "log_power": 1}, BILINEAR: {"sigma_power": 12, "log_power": 2}}


@dataclass(frozen=True)
class ValueErrors:
    """By σ, at the simulated lengths: the exact error of ∇_V, and what it were if query sizes τ were too large."""

    right: Mapping[float, Float[np.ndarray, " k"]]
    wrong: Mapping[float, Float[np.ndarray, " k"]]


def value_errors(scales: Sequence[float], gain: float, lengths: Sequence[int]) -> ValueErrors:
    """d times the error of the output, by quadrature."""
    table = radial_table(np.log(lengths))

    def exact(inflation):
        return {
            sigma: DIMENSION * sigma**2 * isotropic_error(table, inflation * gain * sigma, DIMENSION)
            for sigma in scales
        }

    return ValueErrors(exact(1.0), exact(INFLATION))


@dataclass(frozen=True)
class FittedBounds:
    """By gradient: the form of the bound, and the length up to which its constants were fitted."""

    shapes: Mapping[str, BoundShape]
    fitted_up_to: int


def fit(measured: Mapping[float, PairedErrors]) -> FittedBounds:
    """The constants of each bound, from the errors at the shorter half of the lengths."""
    lengths = np.asarray(next(iter(measured.values())).lengths)
    short = lengths[: len(lengths) // 2]
    shapes = {
        name: fit_bound(list(measured), short, mean_errors(measured, name)[:, : len(short)], **powers)
        for name, powers in POWERS.items()
    }
    return FittedBounds(shapes, int(short[-1]))


def mean_errors(measured: Mapping[float, PairedErrors], name: str) -> Float[np.ndarray, "sigmas k"]:
    """Of one gradient, by σ and length."""
    return np.stack([errors.curve(name).mean for errors in measured.values()])


def long_prompt_law(tau: Float[np.ndarray, "*n"], gain: float) -> Float[np.ndarray, "*n"]:
    """`lim L · error` of ∇_U at a query of size τ, tokens of scale 1: `‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d)`.

    The delta method of `fluctuation`, for the tilted covariance: `‖z‖² e^{Λ(2ξ)-2Λ(ξ)}` times the mean of
    `‖y yᵀ - ∇²Λ(ξ)‖²` over `y = z' - ∇Λ(ξ)`, z' of the law tilted by 2ξ, which for a Gaussian is N(Γξ, Γ).
    """
    square = tau**2
    return square / gain**2 * np.exp(square) * ((square + DIMENSION) ** 2 + 2 * square + DIMENSION)


def long_prompt_ratio(tau: Float[np.ndarray, "*n"], gain: float) -> Float[np.ndarray, "*n"]:
    """The same over that of ∇_V, `d (τ² + d) e^{τ²}`."""
    return long_prompt_law(tau, gain) / (DIMENSION * (DIMENSION + tau**2) * np.exp(tau**2))
