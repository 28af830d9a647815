"""Exact gradient flows on finite prompts, from a balanced start to the end of the drift along the valley."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.integrate import quad, solve_ivp

from chapters.risk_and_parameters.isotropic_heads import DIMENSION, best_heads, exact_risk
from lib.icl import Blocks, LinearRegression, ScoreTable, best_in_the_valley

# The training time up to which the flows are compared with the infinite flow, which is then almost at its limit.
INFINITE_FLOW_TIME = 3.0
# The part of the drift whose duration is predicted, in units of the final u.
LATE_DRIFT = (1.2, 1.05)


@dataclass(frozen=True)
class Drift:
    """The exact flow of u, b and 2R from the balanced start of scale `alpha`, with the infinite flow at its times."""

    length: int
    alpha: float
    time: Float[np.ndarray, " times"]
    tilt: Float[np.ndarray, " times"]
    gain: Float[np.ndarray, " times"]
    risk: Float[np.ndarray, " times"]
    # u of the head of least risk at this length, and 2R of this length at the limit of the infinite flow
    best_tilt: float
    risk_at_limit: float
    # duration of the part `LATE_DRIFT`; NaN if the flow does not pass through it
    late: float

    @property
    def product(self) -> Float[np.ndarray, " times"]:
        """The product `b u`, which is 1 at the minima of the infinite risk."""
        return self.tilt * self.gain

    @property
    def infinite_product(self) -> Float[np.ndarray, " times"]:
        """The product `b u` along the infinite flow."""
        return infinite_product(self.time, self.alpha)

    @property
    def infinite_tilt(self) -> Float[np.ndarray, " times"]:
        """The parameter u along the infinite flow, where `‖A‖ = b`."""
        return np.sqrt(self.infinite_product) * DIMENSION**-0.25

    @property
    def infinite_risk(self) -> Float[np.ndarray, " times"]:
        """The mean square error 2R of the infinite prompt along the infinite flow."""
        return DIMENSION * (1 - self.infinite_product) ** 2

    @property
    def early_distance(self) -> float:
        """The largest distance from the infinite flow, in u and in bu, up to `INFINITE_FLOW_TIME`."""
        distances = np.maximum(np.abs(self.tilt - self.infinite_tilt), np.abs(self.product - self.infinite_product))
        return float(np.max(distances[self.time <= INFINITE_FLOW_TIME]))


def solve_flows(lengths: Iterable[int], alpha: float) -> list[Drift]:
    """Return the flow at each length, in increasing order of length."""
    lengths = sorted(lengths)
    ScoreTable.at_each(np.log(lengths))  # computed together; `exact_risk` reads them from the cache
    return [solve_flow(length, alpha) for length in lengths]


def solve_flow(length: int, alpha: float) -> Drift:
    """Solve the exact flow at `length` up to the time 10 L, when the drift has ended.

    The curvatures across and along the valley differ by a factor L, so the integrator is implicit. It is SciPy's,
    because compiling one in JAX takes ten seconds and the state has only two numbers.
    """
    evaluate = exact_risk(DIMENSION, length)
    # an even grid resolves the fast part, a logarithmic grid the drift
    times = np.unique(np.concatenate([np.linspace(0, INFINITE_FLOW_TIME, 31), np.geomspace(0.01, 10.0 * length, 90)]))
    solution = solve_ivp(
        lambda time, point: -evaluate(point)[1],
        (0.0, times[-1]),
        _as_point(Blocks.balanced(np.eye(DIMENSION), alpha)),
        method="LSODA",
        t_eval=times,
        events=[_falls_to(tilt) for tilt in late_tilts()],
        rtol=1e-10,
        atol=1e-12,
    )
    norm, gain = solution.y
    late_begin, late_end = (crossings[0] if len(crossings) else np.nan for crossings in solution.t_events)
    return Drift(
        length=length,
        alpha=alpha,
        time=times,
        tilt=norm / DIMENSION**0.5,
        gain=gain,
        risk=2 * np.array([evaluate(point)[0] for point in solution.y.T]),
        best_tilt=best_heads(DIMENSION, length)[0].tilt,
        risk_at_limit=2 * evaluate(_as_point(Blocks.infinite_limit(LinearRegression(jnp.eye(DIMENSION)))))[0],
        late=float(late_end - late_begin),
    )


def _as_point(blocks: Blocks) -> np.ndarray:
    """Return (‖A‖, b)."""
    return np.array([float(jnp.linalg.norm(blocks.matrix)), float(blocks.gain)])


def _falls_to(tilt: float) -> Callable[[float, np.ndarray], float]:
    """Return the event that u falls to `tilt`."""

    def event(time, point):
        return point[0] / DIMENSION**0.5 - tilt

    event.direction = -1  # pyright: ignore
    return event


def infinite_product(times: np.ndarray, alpha: float) -> np.ndarray:
    """Return `b u` along the infinite flow from the balanced start, where b = ‖A‖ is conserved: a logistic curve."""
    scale = np.sqrt(DIMENSION)
    return 1 / (1 + (scale / alpha**2 - 1) * np.exp(-2 * scale * times))


def late_tilts() -> list[float]:
    """Return u at the start and at the end of the part `LATE_DRIFT`."""
    end = best_in_the_valley(DIMENSION).squared_tilt ** 0.5
    return [factor * end for factor in LATE_DRIFT]


def valley_duration(high: float, low: float) -> float:
    """Return the time, divided by L, that the flow of ½ `valley_limit` along bu = 1 takes from u = `high` to `low`.

    An arc of the curve ‖A‖ = √d u, b = 1/u has length `√(d + u⁻⁴) du`, so `du/dt = -(½ df/du)/((d + u⁻⁴) L)` with f
    the limit `valley_limit`.
    """

    def slope(tilt):
        squared, remainder = tilt**2, 1 - 2 * tilt**2
        bracket = 1 / remainder + 1 / squared
        by_squared = DIMENSION / remainder * bracket + 2 / remainder**2 - 1 / squared**2
        return tilt * DIMENSION * remainder ** (-DIMENSION / 2) * by_squared

    return float(quad(lambda tilt: (DIMENSION + tilt**-4) / slope(tilt), low, high)[0])
