"""Training on prompts of one length, from a balanced start to the end of its drift, beside the infinite prompt's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.integrate import quad, solve_ivp

from chapters.risk_and_parameters.isotropic_heads import DIMENSION, best_heads, exact_risk
from lib.icl import Blocks, LinearRegression, balanced_start, best_in_the_valley, infinite_limit

# Until when a long prompt's flow is asked to follow the infinite one, which has then all but arrived.
FOLLOWED = 3.0
# The part of the drift whose duration is predicted, in units of the u where it ends.
LATE = (1.2, 1.05)


@dataclass(frozen=True)
class Drift:
    """The exact flow of u, b and 2R from the balanced start of scale `alpha`, beside the infinite prompt's."""

    length: int
    alpha: float
    time: Float[np.ndarray, " times"]
    tilt: Float[np.ndarray, " times"]
    gain: Float[np.ndarray, " times"]
    risk: Float[np.ndarray, " times"]
    # u of the head of least risk at this length; and 2R where the infinite flow ends
    best_tilt: float
    risk_at_limit: float
    # how long the part `LATE` takes; NaN if it does not get there
    late: float

    @property
    def product(self) -> Float[np.ndarray, " times"]:
        """`b u`, which the infinite prompt wants to be 1."""
        return self.tilt * self.gain

    @property
    def infinite_product(self) -> Float[np.ndarray, " times"]:
        """`b u` along the infinite flow."""
        return infinite_product(self.time, self.alpha)

    @property
    def infinite_tilt(self) -> Float[np.ndarray, " times"]:
        """u along the infinite flow, where `‖A‖ = b`."""
        return np.sqrt(self.infinite_product) * DIMENSION**-0.25

    @property
    def infinite_risk(self) -> Float[np.ndarray, " times"]:
        """2R of the infinite prompt along its own flow."""
        return DIMENSION * (1 - self.infinite_product) ** 2

    @property
    def early_distance(self) -> float:
        """The largest distance from the infinite flow, in u and in bu, while that is on its way."""
        moved = np.maximum(np.abs(self.tilt - self.infinite_tilt), np.abs(self.product - self.infinite_product))
        return float(np.max(moved[self.time <= FOLLOWED]))


def simulate(lengths: Iterable[int], alpha: float) -> list[Drift]:
    """The flow at each length, the shortest first."""
    return [drift(length, alpha) for length in sorted(lengths)]


def drift(length: int, alpha: float) -> Drift:
    """The exact flow at `length`, over eight decades of time and more.

    Curvatures differ by a factor L across and along the valley: the integrator is implicit. It is SciPy's, because to
    compile one costs ten seconds and here are two numbers.
    """
    evaluate = exact_risk(DIMENSION, length)
    # the fast part needs an even grid, the drift one in the logarithm
    times = np.unique(np.concatenate([np.linspace(0, FOLLOWED, 31), np.geomspace(0.01, 10.0 * length, 90)]))
    solved = solve_ivp(
        lambda time, point: -evaluate(point)[1],
        (0.0, times[-1]),
        _as_point(balanced_start(np.eye(DIMENSION), alpha)),
        method="LSODA",
        t_eval=times,
        events=[_falls_to(factor * best_in_the_valley(DIMENSION)[0] ** 0.5) for factor in LATE],
        rtol=1e-10,
        atol=1e-12,
    )
    norm, gain = solved.y
    begins, ends = (crossed[0] if len(crossed) else np.nan for crossed in solved.t_events)
    return Drift(
        length=length,
        alpha=alpha,
        time=times,
        tilt=norm / DIMENSION**0.5,
        gain=gain,
        risk=2 * np.array([evaluate(point)[0] for point in solved.y.T]),
        best_tilt=best_heads(DIMENSION, length)[0].tilt,
        risk_at_limit=2 * evaluate(_as_point(infinite_limit(LinearRegression(jnp.eye(DIMENSION)))))[0],
        late=float(ends - begins),
    )


def _as_point(blocks: Blocks) -> np.ndarray:
    """(‖A‖, b)."""
    return np.array([float(jnp.linalg.norm(blocks.matrix)), float(blocks.gain)])


def _falls_to(tilt: float) -> Callable[[float, np.ndarray], float]:
    """The event that u comes down to `tilt`."""

    def event(time, point):
        return point[0] / DIMENSION**0.5 - tilt

    event.direction = -1  # pyright: ignore
    return event


def infinite_product(times: np.ndarray, alpha: float) -> np.ndarray:
    """`b u` along the infinite flow from the balanced start: with b = ‖A‖ kept, it obeys a logistic equation."""
    scale = np.sqrt(DIMENSION)
    return 1 / (1 + (scale / alpha**2 - 1) * np.exp(-2 * scale * times))


def valley_duration(high: float, low: float) -> float:
    """Time over L from u = `high` to `low` along ‖A‖ = √d u, b = 1/u, downhill in ½ `valley_limit`.

    An arc of the curve has length `√(d + u⁻⁴) du`, so `du/dt = -(½ dlaw/du)/((d + u⁻⁴) L)`.
    """

    def slope(tilt):
        squared, shrunk = tilt**2, 1 - 2 * tilt**2
        bracket = 1 / shrunk + 1 / squared
        by_squared = DIMENSION / shrunk * bracket + 2 / shrunk**2 - 1 / squared**2
        return tilt * DIMENSION * shrunk ** (-DIMENSION / 2) * by_squared

    return float(quad(lambda tilt: (DIMENSION + tilt**-4) / slope(tilt), low, high)[0])
