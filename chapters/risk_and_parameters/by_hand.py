"""Claims on the numbers of the by-hand cells."""

import numpy as np

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.valley_drift import LATE_DRIFT, late_tilts, valley_duration
from companion import Claims
from lib.icl import LinearRegression, heads_risk
from lib.statistics import standard_error

# Length of the prompts, and u, of the simulated heads.
LENGTH, TILT = 200, 0.2


def drift_takes_time(duration: float, tilts: np.ndarray, slopes: np.ndarray) -> Claims:
    """Claim the time of the late drift over L, from the slopes of the limiting risk at these u."""
    claim = Claims("risk-and-parameters-by-hand", source="derived here", box="time-of-the-drift")
    expected = valley_duration(*late_tilts())
    claim.equal(
        "drift",
        f"From {LATE_DRIFT[0]:g} to {LATE_DRIFT[1]:g} times the final $u$ the drift takes the time of the integral "
        "along the curve $bu = 1$ (time divided by $L$).",
        duration,
        expected,
        within=0.005 * expected,
        because="half a percent, for finite differences of the limit in place of its derivative",
        rejects=(
            "arcs are measured in $u$ and $b$, not in $‖A‖$ and $b$",
            np.trapezoid(2 * (1 + tilts**-4) / slopes, tilts),
        ),
    )
    return claim


def opposite_heads_have_small_errors(squares: np.ndarray) -> Claims:
    """Claim L times the mean square error of the heads u = ±1/5 with the gains ±5/2 on prompts of 200 pairs."""
    claim = Claims("risk-and-parameters-by-hand", source="derived here", box="two-opposite-heads")
    pair, one = (
        2 * LENGTH * float(heads_risk(LinearRegression(np.eye(DIMENSION)), keys, values, np.log(LENGTH)))
        for keys, values in (
            (np.array([TILT, -TILT]), np.array([0.5, -0.5]) / TILT),
            (np.array([TILT]), np.array([1 / TILT])),
        )
    )
    claim.equal(
        "pair",
        "On drawn prompts of 200 pairs the two opposite heads with $u = ±1/5$ have the exact mean square error, times "
        "$L$.",
        LENGTH * squares.mean(),
        pair,
        std_error=LENGTH * standard_error(squares),
        rejects=("the errors of the two heads are independent, so that it is half the error of one", one / 2),
    )
    return claim
