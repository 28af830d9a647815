r"""Training with a long prompt: fast to the valley, then slowly along it.

Gradient flow of the exact risk from a balanced start ($\Sigma=I$, $d=5$, no noise), against training time. Top:
mean square error $2R_L$. Middle: $bu$, which an infinite prompt wants to be 1. Bottom: $u$ of $A=uI$. Black,
dashed: the infinite prompt. Short ticks at the right: the head of least risk at each length. The risk of a long
prompt vanishes with its length; the time of the drift grows with it, and its end does not approach the infinite
flow's limit.

Alt: Three charts above each other against logarithmic time. The mean square error falls together for all lengths,
then stops at levels proportional to one over the length. The product rises to one and stays. The parameter u
rises with the dashed infinite curve to 0.67, then falls to about 0.35, later for longer prompts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.integrate import quad, solve_ivp

from chapters.risk_and_parameters.heads import DIMENSION, Head, best_heads, exact_risk
from chapters.risk_and_parameters.marks import tokens
from chapters.risk_and_parameters.valley import best_in_the_valley
from chapters.risk_and_parameters.words import power
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.icl import Blocks, LinearRegression, balanced_start, infinite_limit

# Until when a long prompt's flow is asked to follow the infinite one, which has then all but arrived.
FOLLOWED = 3.0
# The part of the drift whose duration is predicted, in units of the u where it ends.
LATE = (1.2, 1.05)


@dataclass(frozen=True)
class Drift:
    """One flow from the balanced start of scale `alpha`, and what it is compared with."""

    length: int
    alpha: float
    times: Float[np.ndarray, " times"]
    tilts: Float[np.ndarray, " times"]
    gains: Float[np.ndarray, " times"]
    risks: Float[np.ndarray, " times"]
    best: Head
    at_infinite_limit: float
    late: float


def simulate(lengths: Iterable[int], alpha: float) -> list[Drift]:
    """The flow at each length, the shortest first."""
    return [drift(length, alpha) for length in sorted(set(lengths))]


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
    norms, gains = solved.y
    crossings = [crossed[0] if len(crossed) else np.nan for crossed in solved.t_events]
    return Drift(
        length=length,
        alpha=alpha,
        times=times,
        tilts=norms / DIMENSION**0.5,
        gains=gains,
        risks=np.array([evaluate(point)[0] for point in solved.y.T]),
        best=best_heads(DIMENSION, length)[0],
        at_infinite_limit=evaluate(_as_point(infinite_limit(LinearRegression(jnp.eye(DIMENSION)))))[0],
        late=float(crossings[1] - crossings[0]),
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
    """Time over L from u = `high` to `low` along ‖A‖ = √d u, b = 1/u, downhill in ½ `valley_law`.

    An arc of the curve has length `√(d + u⁻⁴) du`, so `du/dt = -(½ dlaw/du)/((d + u⁻⁴) L)`.
    """

    def slope(tilt):
        squared, shrunk = tilt**2, 1 - 2 * tilt**2
        bracket = 1 / shrunk + 1 / squared
        by_squared = DIMENSION / shrunk * bracket + 2 / shrunk**2 - 1 / squared**2
        return tilt * DIMENSION * shrunk ** (-DIMENSION / 2) * by_squared

    return float(quad(lambda tilt: (DIMENSION + tilt**-4) / slope(tilt), low, high)[0])


def numbers(flows: list[Drift]) -> Numbers:
    """Each flow beside the infinite one: early it follows, then it drifts, and ends where its own risk is least."""
    longest = flows[-1]
    claims = (_follow_claim(flows), _end_claim(flows), _duration_claim(longest), _risk_claim(longest))
    return Numbers(_table(flows), claims)


def _table(flows: list[Drift]) -> Table:
    """Risk, tilt and product along each flow, beside the infinite one."""
    frames = []
    for flow in flows:
        product = infinite_product(flow.times, flow.alpha)
        frames.append(
            pd.DataFrame(
                {
                    "length": flow.length,
                    "time": flow.times,
                    "risk": 2 * flow.risks,
                    "tilt": flow.tilts,
                    "product": flow.tilts * flow.gains,
                    "infinite_risk": DIMENSION * (1 - product) ** 2,
                    "infinite_tilt": np.sqrt(product) * DIMENSION**-0.25,
                    "infinite_product": product,
                    "best_tilt": flow.best.tilt,
                }
            )
        )
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "time": Column("Time of the gradient flow of R"),
        "risk": Column("Mean square error 2R_L along the flow, exact"),
        "tilt": Column("u of A = uI, exact"),
        "product": Column("b u, which the infinite prompt wants to be 1"),
        "infinite_risk": Column("2R of the infinite prompt along its own flow", absolute=1e-12),
        "infinite_tilt": Column("u along the infinite flow"),
        "infinite_product": Column("b u along the infinite flow"),
        "best_tilt": Column("u of the head of least risk at this length"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _follow_claim(flows: list[Drift]) -> Claim:
    """The longest prompt's parameters beside the infinite flow's, early."""

    def farthest(flow: Drift) -> float:
        early = flow.times <= FOLLOWED
        product = infinite_product(flow.times[early], flow.alpha)
        moved = np.abs(flow.tilts[early] - np.sqrt(product) * DIMENSION**-0.25)
        return float(np.max(np.maximum(moved, np.abs(flow.tilts[early] * flow.gains[early] - product))))

    return Claim(
        id="risk-and-parameters-follows",
        statement=(
            f"Up to time {FOLLOWED:g}, when the infinite flow has arrived, the flow at L = {power(flows[-1].length)} "
            "follows it: the largest distance in u and in bu."
        ),
        source="derived here",
        measured=farthest(flows[-1]),
        expected=0.0,
        tolerance=0.02,
        relation="≤",
        alternative=Alternative(f"prompts of {power(flows[0].length)} tokens", farthest(flows[0])),
    )


def _end_claim(flows: list[Drift]) -> Claim:
    """Where the flows end, against the best head of their length."""

    def worst(ends) -> float:
        return max(abs(end / flow.best.tilt - 1) for end, flow in zip(ends, flows, strict=True))

    return Claim(
        id="risk-and-parameters-end",
        statement=(
            "Every flow ends at the head of least risk for its length, not at the limit of the infinite flow: the "
            f"largest relative distance in u, for {len(flows)} lengths."
        ),
        source="derived here",
        measured=worst([flow.tilts[-1] for flow in flows]),
        expected=0.0,
        tolerance=1e-4,
        relation="≤",
        alternative=Alternative(
            "they stay at the infinite flow's limit, d^{-1/4}", worst([DIMENSION**-0.25] * len(flows))
        ),
    )


def _duration_claim(flow: Drift) -> Claim:
    """How long the late drift takes, against the flow that the law of the valley drives along it."""
    expected = valley_duration(*(factor * best_in_the_valley(DIMENSION)[0] ** 0.5 for factor in LATE))
    return Claim(
        id="risk-and-parameters-duration",
        statement=(
            f"At L = {power(flow.length)} the drift from {LATE[0]:g} to {LATE[1]:g} times the final u takes the time, "
            "divided by L, that the flow along the curve bu = 1 takes under the limit law."
        ),
        source="derived here",
        measured=flow.late / flow.length,
        expected=expected,
        tolerance=0.02 * expected,
        alternative=Alternative("a time proportional to √L", expected / flow.length**0.5),
    )


def _risk_claim(flow: Drift) -> Claim:
    """The final risk times L against the minimum of the law."""
    expected = best_in_the_valley(DIMENSION)[1]
    return Claim(
        id="risk-and-parameters-risk",
        statement=(
            f"The risk vanishes like 1/L though the parameters do not converge to the infinite flow's limit: at L = "
            f"{power(flow.length)} the flow ends at a mean square error "
            "times L equal to the least value of the limit law."
        ),
        source="derived here",
        measured=2 * flow.risks[-1] * flow.length,
        expected=expected,
        tolerance=0.002 * expected,
        alternative=Alternative(
            "the same prompts at the limit of the infinite flow", 2 * flow.at_infinite_limit * flow.length
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Risk, product and tilt above each other, a curve a length, on the infinite flow's."""
    frame = table[table["time"] > 0]
    figure, panels = plt.subplots(3, 1, figsize=(8.0, 8.0), sharex=True, height_ratios=(3, 2, 3))
    lengths = sorted(frame["length"].unique().tolist())
    end = frame["time"].max()
    longest = frame[frame["length"] == lengths[-1]]
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = frame[frame["length"] == length]
        for panel, column in zip(panels, ("risk", "product", "tilt"), strict=True):
            # a flow that has arrived stays where it is
            times, values = [*curve["time"], end], [*curve[column], curve[column].iloc[-1]]
            panel.plot(times, values, color=colour, linewidth=2, label=tokens(length))
        best = curve["best_tilt"].max()
        panels[2].plot([0.6 * end, end], [best, best], color=colour, linewidth=5, solid_capstyle="butt")
    for panel, column in zip(panels, ("infinite_risk", "infinite_product", "infinite_tilt"), strict=True):
        panel.plot(longest["time"], longest[column], color=ink(), linestyle="--", linewidth=1.4, label=r"$L=\infty$")
    panels[0].set(yscale="log", ylabel="mean square error $2R$")
    panels[0].set(ylim=(0.3 * frame["risk"].min(), 2 * frame["risk"].max()))
    panels[1].set(ylabel="$bu$", ylim=(0, 1.1))
    panels[2].set(ylabel="$u$", xlabel="training time", xscale="log", xlim=(frame["time"].min(), end))
    panels[1].legend(loc="lower right", ncols=2)
    return figure
