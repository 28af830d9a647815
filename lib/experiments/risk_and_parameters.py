"""Long prompts fix the risk, not the parameters: the drift along a valley, the price of one head, two heads.

In-context regression with Σ = I and no noise, where a head is two numbers and everything but the two heads is exact.
Derived here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize

from lib.attention import attend
from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error
from lib.icl import (
    Blocks,
    LinearRegression,
    QueryAverage,
    ScoreTable,
    balanced_start,
    block_attention,
    block_risk,
    infinite_limit,
    radial_average,
    score_table,
)
from lib.measures import Empirical

# The dimension of the flow and of the two heads.
DIMENSION = 5
# Until when a long prompt's flow is asked to follow the infinite one, which has then all but arrived.
FOLLOWED = 3.0
# The part of the drift whose duration is predicted, in units of the u where it ends.
LATE = (1.2, 1.05)
# Where the price of one head is compared with its limit.
LONG = 10**8
# Up to which u the square errors of one head have a variance that a simulation measures.
MILD_TILT = 0.3
# Up to which u the law of two heads for L → ∞ is compared with prompts of some hundred tokens.
SMALL_TILT = 0.2
# How many numbers one batch of prompts may hold.
TOGETHER = 2**20


@experiment
def risk_and_parameters(
    *,
    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")],
    alpha: Annotated[float, Field(ge=0.2, le=0.94, description="Scale of the balanced start, A(0) = αI/√d, b(0) = α.")],
    flow_lengths: Annotated[
        list[Annotated[int, Field(ge=50, le=10**9)]],
        Field(min_length=2, max_length=6, description="Prompt lengths of the flows."),
    ],
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=100)]],
        Field(min_length=1, max_length=8, description="Dimensions in which the best head is searched."),
    ],
    price_lengths: Annotated[
        list[Annotated[int, Field(ge=20, le=10**9)]],
        Field(min_length=1, max_length=4, description="Prompt lengths of the best heads; 10⁸ is added."),
    ],
    heads_length: Annotated[int, Field(ge=50, le=2000, description="Length of the simulated prompts.")],
    tilts: Annotated[
        list[Annotated[float, Field(ge=0.02, le=0.6)]],
        Field(min_length=2, max_length=12, description="Heads u to simulate, A = uI; the smallest at most 0.1."),
    ],
    prompts: Annotated[int, Field(ge=2000, le=10**7, description="Prompts simulated.")],
) -> Result:
    """Flows at several lengths, the best head in several dimensions, and one head against two."""
    if min(tilts) > 0.1:
        raise ValueError(f"`tilts` must reach 0.1, where two heads are compared with linear attention. Got {tilts}.")
    flows = [drift(length, alpha) for length in sorted(set(flow_lengths))]
    heads = [
        found
        for dimension in sorted(set(dimensions))
        for length in sorted({*price_lengths, LONG})
        for found in best_heads(dimension, length)
    ]
    pairs = heads_frame(heads_length, sorted(set(tilts)), prompts, key=jr.key(seed))
    return Result(
        tables={
            "drift_along_the_valley": drift_table(flows, alpha),
            "price_of_one_head": price_table(heads),
            "two_opposite_heads": heads_table(pairs),
        },
        claims=(
            follow_claim(flows, alpha),
            end_claim(flows),
            duration_claim(flows[-1]),
            risk_claim(flows[-1]),
            price_claim(heads),
            tilt_claim(heads),
            large_dimension_claim(),
            one_head_claim(pairs),
            two_heads_claim(pairs, heads_length),
            law_claim(pairs, heads_length),
        ),
    )


# --- a head of two numbers --------------------------------------------------------------------------------


def isotropic_head(dimension: int, norm: Float[Array, ""], gain: Float[Array, ""]) -> Blocks:
    """`A = ‖A‖ I/√d` and b: the flow of (A, b) from a multiple of the identity is the flow of (‖A‖, b)."""
    return Blocks(norm * jnp.eye(dimension) / jnp.sqrt(dimension), gain)


@partial(jax.jit, static_argnums=0)
def _risk_and_slope(dimension: int, point: Float[Array, "2"], scores: ScoreTable, queries: QueryAverage):
    task = LinearRegression(jnp.eye(dimension))
    return jax.value_and_grad(lambda at: block_risk(task, isotropic_head(dimension, at[0], at[1]), scores, queries))(
        point
    )


def exact_risk(dimension: int, length: int) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """`(‖A‖, b) ↦ R_L` and its gradient, compiled once a dimension."""
    scores, queries = score_table(float(np.log(length))), radial_average(dimension)

    def evaluate(point):
        value, slope = _risk_and_slope(dimension, jnp.asarray(point), scores, queries)
        return float(value), np.asarray(slope)

    return evaluate


def valley_law(squared_tilt: np.ndarray | float, dimension: int) -> np.ndarray | float:
    """`lim 2R_L L = d (1 - 2s)^{-d/2} [1/(1 - 2s) + 1/s]` on A = uI, bu = 1, s = u² < ½."""
    growth = np.exp(-dimension / 2 * np.log1p(-2 * squared_tilt))
    return dimension * growth * (1 / (1 - 2 * squared_tilt) + 1 / squared_tilt)


def best_in_the_valley(dimension: int) -> tuple[float, float]:
    """The s that minimises `valley_law`, and the minimum: s solves (d + 2)s² - (d + 4)s + 1 = 0, and is about 1/d."""
    squared = 2 / (dimension + 4 + np.sqrt(dimension**2 + 4.0 * dimension + 8))
    return float(squared), float(valley_law(squared, dimension))


# --- the flow ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drift:
    """One flow from the balanced start, and what it is compared with."""

    length: int
    times: Float[np.ndarray, " times"]
    tilts: Float[np.ndarray, " times"]
    gains: Float[np.ndarray, " times"]
    risks: Float[np.ndarray, " times"]
    best: "Head"
    at_infinite_limit: float
    late: float


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
        as_point(balanced_start(np.eye(DIMENSION), alpha)),
        method="LSODA",
        t_eval=times,
        events=[falls_to(factor * best_in_the_valley(DIMENSION)[0] ** 0.5) for factor in LATE],
        rtol=1e-10,
        atol=1e-12,
    )
    norms, gains = solved.y
    crossings = [crossed[0] if len(crossed) else np.nan for crossed in solved.t_events]
    return Drift(
        length=length,
        times=times,
        tilts=norms / DIMENSION**0.5,
        gains=gains,
        risks=np.array([evaluate(point)[0] for point in solved.y.T]),
        best=best_heads(DIMENSION, length)[0],
        at_infinite_limit=evaluate(as_point(infinite_limit(LinearRegression(jnp.eye(DIMENSION)))))[0],
        late=float(crossings[1] - crossings[0]),
    )


def as_point(blocks: Blocks) -> np.ndarray:
    """(‖A‖, b)."""
    return np.array([float(jnp.linalg.norm(blocks.matrix)), float(blocks.gain)])


def falls_to(tilt: float) -> Callable[[float, np.ndarray], float]:
    """The event that u comes down to `tilt`."""

    def event(time, point):
        return point[0] / DIMENSION**0.5 - tilt

    event.direction = -1  # pyright: ignore
    return event


def infinite_product(times: np.ndarray, alpha: float) -> np.ndarray:
    """`b u` along the infinite flow from the balanced start: with b = ‖A‖ kept, it obeys a logistic equation."""
    scale = np.sqrt(DIMENSION)
    return 1 / (1 + (scale / alpha**2 - 1) * np.exp(-2 * scale * times))


def drift_table(flows: list[Drift], alpha: float) -> Table:
    """Risk, tilt and product along each flow, beside the infinite one."""
    frames = []
    for flow in flows:
        product = infinite_product(flow.times, alpha)
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


def follow_claim(flows: list[Drift], alpha: float) -> Claim:
    """The longest prompt's parameters beside the infinite flow's, early."""

    def farthest(flow: Drift) -> float:
        early = flow.times <= FOLLOWED
        product = infinite_product(flow.times[early], alpha)
        moved = np.abs(flow.tilts[early] - np.sqrt(product) * DIMENSION**-0.25)
        return float(np.max(np.maximum(moved, np.abs(flow.tilts[early] * flow.gains[early] - product))))

    return Claim(
        id="risk-and-parameters-follows",
        statement=(
            f"Up to time {FOLLOWED:g}, when the infinite flow has arrived, the flow at L = {power(flows[-1].length)} "
            "follows it: the largest distance in u and in bu."
        ),
        source="derived here",
        figure="drift_along_the_valley",
        measured=farthest(flows[-1]),
        expected=0.0,
        tolerance=0.02,
        relation="≤",
        alternative=Alternative(f"prompts of {power(flows[0].length)} tokens", farthest(flows[0])),
    )


def end_claim(flows: list[Drift]) -> Claim:
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
        figure="drift_along_the_valley",
        measured=worst([flow.tilts[-1] for flow in flows]),
        expected=0.0,
        tolerance=1e-4,
        relation="≤",
        alternative=Alternative(
            "they stay at the infinite flow's limit, d^{-1/4}", worst([DIMENSION**-0.25] * len(flows))
        ),
    )


def duration_claim(flow: Drift) -> Claim:
    """How long the late drift takes, against the flow that the law of the valley drives along it."""
    expected = valley_duration(*(factor * best_in_the_valley(DIMENSION)[0] ** 0.5 for factor in LATE))
    return Claim(
        id="risk-and-parameters-duration",
        statement=(
            f"At L = {power(flow.length)} the drift from {LATE[0]:g} to {LATE[1]:g} times the final u takes the time, "
            "divided by L, that the flow along the curve bu = 1 takes under the limit law."
        ),
        source="derived here",
        figure="drift_along_the_valley",
        measured=flow.late / flow.length,
        expected=expected,
        tolerance=0.02 * expected,
        alternative=Alternative("a time proportional to √L", expected / flow.length**0.5),
    )


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


def risk_claim(flow: Drift) -> Claim:
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
        figure="drift_along_the_valley",
        measured=2 * flow.risks[-1] * flow.length,
        expected=expected,
        tolerance=0.002 * expected,
        alternative=Alternative(
            "the same prompts at the limit of the infinite flow", 2 * flow.at_infinite_limit * flow.length
        ),
    )


def power(length: int) -> str:
    """10⁶ rather than 1000000."""
    exponent = round(np.log10(length))
    return (
        "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        if length == 10**exponent
        else f"{length}"
    )


# --- the price of one head --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """The head of least risk found from one start, and its risk over that of the best linear head."""

    dimension: int
    length: int
    tilt: float
    gain: float
    ratio: float


def best_heads(dimension: int, length: int) -> list[Head]:
    """The minimum of the exact risk over (u, b), searched from three starts on the curve bu = 1."""
    evaluate = exact_risk(dimension, length)

    def log_risk(logarithms):
        # in logarithms, because a risk of 1e-8 has gradients below any tolerance long before its minimum
        point = np.exp(logarithms)
        value, slope = evaluate(point)
        return np.log(value), point * slope / value

    linear = float(LinearRegression(jnp.eye(dimension)).linear_attention_risk(length))
    found = []
    for tilt in (0.1 * dimension**-0.5, dimension**-0.5, dimension**-0.25):
        start = np.log([tilt * dimension**0.5, 1 / tilt])
        search = minimize(log_risk, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        norm, gain = np.exp(search.x)
        found.append(Head(dimension, length, norm / dimension**0.5, gain, float(np.exp(search.fun)) / linear))
    return found


def price_table(heads: list[Head]) -> Table:
    """The closed limit on a fine grid of dimensions, and the best heads found."""
    dimensions = np.unique(np.round(np.geomspace(1, 1000, 60)).astype(int))
    limits = np.array([best_in_the_valley(dimension) for dimension in dimensions.tolist()])
    curve = pd.DataFrame(
        {
            "dimension": dimensions,
            "limit": limits[:, 1] / (dimensions * (dimensions + 1)),
            "limit_squared": dimensions * limits[:, 0],
        }
    )
    firsts = {(head.dimension, head.length): head for head in reversed(heads)}
    points = pd.DataFrame(
        [
            {
                "dimension": head.dimension,
                "length": head.length,
                "ratio": head.ratio,
                "squared": head.dimension * head.tilt**2,
            }
            for _, head in sorted(firsts.items())
        ]
    )
    frame = pd.concat([points, curve], ignore_index=True)
    columns = {
        "dimension": Column("Dimension d of the covariates"),
        "length": Column("Tokens in a prompt, where the best head was searched", "tokens"),
        "ratio": Column("Least risk of a softmax head over that of linear attention, exact"),
        "squared": Column("d u² of that head, A = uI"),
        "limit": Column("The limit of the ratio for L → ∞"),
        "limit_squared": Column("The limit of d u²"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def price_claim(heads: list[Head]) -> Claim:
    """The ratio at the longest prompts against its limit, from every start."""
    longest = [head for head in heads if head.length == LONG]

    def worst(ratios) -> float:
        limits = [best_in_the_valley(h.dimension)[1] / (h.dimension * (h.dimension + 1)) for h in longest]
        return max(abs(ratio / limit - 1) for ratio, limit in zip(ratios, limits, strict=True))

    return Claim(
        id="risk-and-parameters-price",
        statement=(
            f"At L = {power(LONG)} the best softmax head, found from three starts in each of "
            f"{len({head.dimension for head in longest})} dimensions, has the risk of the best linear head times "
            "the closed limit: the largest relative distance."
        ),
        source="derived here",
        figure="price_of_one_head",
        measured=worst([head.ratio for head in longest]),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("one softmax head costs what a linear head costs", worst([1.0] * len(longest))),
    )


def tilt_claim(heads: list[Head]) -> Claim:
    """u and b of the same heads."""
    longest = [head for head in heads if head.length == LONG]

    def worst(points) -> float:
        limits = [best_in_the_valley(head.dimension)[0] ** 0.5 for head in longest]
        return max(
            max(abs(tilt / limit - 1), abs(gain * limit - 1))
            for (tilt, gain), limit in zip(points, limits, strict=True)
        )

    at_limit = [(head.dimension**-0.25, head.dimension**0.25) for head in longest]
    return Claim(
        id="risk-and-parameters-best-head",
        statement=(
            f"At L = {power(LONG)} these heads have the u that minimises the law of the valley, and b = 1/u: the "
            "largest relative distance."
        ),
        source="derived here",
        figure="price_of_one_head",
        measured=worst([(head.tilt, head.gain) for head in longest]),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("the limit of the infinite flow is best", worst(at_limit)),
    )


def large_dimension_claim() -> Claim:
    """The closed limit for d = 10⁵."""
    dimension = 10**5
    return Claim(
        id="risk-and-parameters-price-e",
        statement=f"The limit of the price tends to e as the dimension grows: its value at d = {power(dimension)}.",
        source="derived here",
        figure="price_of_one_head",
        measured=best_in_the_valley(dimension)[1] / (dimension * (dimension + 1.0)),
        expected=np.e,
        tolerance=1e-3,
        alternative=Alternative("it stays what it is at d = 20", best_in_the_valley(20)[1] / (20 * 21)),
    )


# --- two opposite heads -----------------------------------------------------------------------------------


def heads_frame(length: int, tilts: list[float], prompts: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """2R·L of one head and of two opposite ones at their best gain, by simulation, with what theory there is."""
    one, two, targets = simulate(length, np.asarray(tilts), prompts, key=key)
    linear = float(LinearRegression(jnp.eye(DIMENSION)).linear_attention_risk(length))
    found = pd.DataFrame({"tilt": tilts})
    for name, answers in (("one", one), ("two", two)):
        errors = best_gain_errors(answers, targets)
        found[f"{name}_simulated"] = length * errors.mean(axis=1)
        found[f"{name}_std_error"] = length * standard_error(errors, axis=1)
    theory = np.unique([*tilts, *np.geomspace(tilts[0], tilts[-1], 40)])
    return pd.DataFrame(
        {
            "tilt": theory,
            "one_exact": [2 * length * best_gain_risk(tilt, length) for tilt in theory],
            "two_law": shrunken(opposite_law(theory**2, DIMENSION), length),
            "linear": 2 * length * linear,
        }
    ).merge(found, how="left", on="tilt")


def simulate(length: int, tilts: np.ndarray, prompts: int, *, key: PRNGKeyArray):
    """Answers of the head A = uI, b = 1 and of half of it with half of its opposite, for each u; and the labels.

    In single precision, like training; averages are taken in double.
    """
    one, zero = jnp.ones((), jnp.float32), jnp.zeros((), jnp.float32)
    task = LinearRegression(np.eye(DIMENSION, dtype=np.float32), task_scale=one, noise_std=zero)
    keys = np.asarray(tilts, np.float32)
    matrices = jnp.asarray(keys)[:, None, None] * jnp.eye(DIMENSION, dtype=jnp.float32)

    def answers(tokens, query):
        def answer(matrix):
            ahead, behind = (
                attend(block_attention(sign * matrix, sign), Empirical(tokens), query)[0] for sign in (1.0, -1.0)
            )
            return ahead, (ahead + behind) / 2

        return jax.vmap(answer)(matrices)

    batch = max(1, min(prompts, TOGETHER // length))

    def draw(key):
        drawn = task.draw(length, batch, key=key)
        return *jax.vmap(answers)(drawn.tokens, drawn.queries), drawn.targets

    batches = jax.jit(lambda keys: jax.lax.map(draw, keys))(jr.split(key, -(-prompts // batch)))
    one, two, targets = (np.concatenate(np.asarray(part, np.float64)) for part in batches)
    return one.T, two.T, targets


def best_gain_errors(answers: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Square errors at the gain that is best on these prompts, whose choice moves their mean to second order only."""
    gains = (answers @ targets) / np.sum(answers**2, axis=1)
    return (gains[:, None] * answers - targets) ** 2


def best_gain_risk(tilt: float, length: int) -> float:
    """`min_b R_L` at A = uI: the risk is quadratic in b, so three values suffice."""
    evaluate = exact_risk(DIMENSION, length)
    behind, nothing, ahead = (evaluate(np.array([tilt * DIMENSION**0.5, gain]))[0] for gain in (-1.0, 0.0, 1.0))
    return nothing - ((ahead - behind) / 2) ** 2 / (2 * (ahead + behind - 2 * nothing))


def opposite_law(squared_tilt: np.ndarray | float, dimension: int) -> np.ndarray | float:
    """`lim 2R_L L` of two opposite heads with bu = 1: `E[(d/s) sinh(s|x|²) + |x|² cosh(s|x|²)]`, s = u² < ½.

    Their fluctuations have correlation: by the delta method the variance of half the difference is
    ⟨v, Γv⟩ sinh τ² + ⟨v, Γξ⟩² cosh τ², where one head has (⟨v, Γv⟩ + ⟨v, Γξ⟩²) e^{τ²}.
    """
    more, less = 1 - 2 * squared_tilt, 1 + 2 * squared_tilt
    first = (more ** (-dimension / 2) - less ** (-dimension / 2)) / (2 * squared_tilt)
    second = (more ** (-dimension / 2 - 1) + less ** (-dimension / 2 - 1)) / 2
    return dimension * (first + second)


def shrunken(law: np.ndarray | float, length: int) -> np.ndarray | float:
    """2R·L at the best gain of an unbiased answer whose error has variance law/L: d V/(d + V) in place of V."""
    return law / (1 + law / (DIMENSION * length))


def heads_table(frame: pd.DataFrame) -> Table:
    """Both against u."""
    columns = {
        "tilt": Column("u: keys uI, and -uI for the opposite head"),
        "one_exact": Column("2R·L of one head at its best gain, exact"),
        "two_law": Column("2R·L of two opposite heads at their best gain, by the law for L → ∞"),
        "linear": Column("2R·L of the best linear head, exact"),
        "one_simulated": Column("2R·L of one head over simulated prompts, where any", std_error="one_std_error"),
        "one_std_error": Column("Its standard error", std_error="one_std_error"),
        "two_simulated": Column("2R·L of two opposite heads over the same prompts", std_error="two_std_error"),
        "two_std_error": Column("Its standard error", std_error="two_std_error"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def one_head_claim(frame: pd.DataFrame) -> Claim:
    """One simulated head against the exact risk."""

    mild = frame.query("tilt <= @MILD_TILT and one_simulated.notna()")

    def worst(column: str) -> float:
        return float(np.max(np.abs(mild["one_simulated"] - mild[column]) / mild["one_std_error"]))

    return Claim(
        id="risk-and-parameters-one-head",
        statement=(
            f"One simulated head has the exact risk at {len(mild)} values of u up to {MILD_TILT:g}: the worst "
            "deviation in standard errors."
        ),
        source="derived here",
        figure="two_opposite_heads",
        measured=worst("one_exact"),
        expected=0.0,
        tolerance=comparison_quantile(len(mild)),
        std_error=1.0,
        alternative=Alternative("two opposite heads' law", worst("two_law")),
    )


def two_heads_claim(frame: pd.DataFrame, length: int) -> Claim:
    """At the smallest u, two heads against the best linear head."""
    at = frame.loc[frame["tilt"].idxmin()]
    error = at["two_std_error"] / at["linear"]
    return Claim(
        id="risk-and-parameters-two-heads",
        statement=(
            f"At u = {at['tilt']:g} and L = {length} two opposite heads have the risk of the best linear head, to a "
            "twentieth: the ratio of the two."
        ),
        source="derived here",
        figure="two_opposite_heads",
        measured=at["two_simulated"] / at["linear"],
        expected=1.0,
        tolerance=0.05 + comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative("one head, the same keys", at["one_simulated"] / at["linear"]),
    )


def law_claim(frame: pd.DataFrame, length: int) -> Claim:
    """Two simulated heads against the law for L → ∞, at small u."""
    small = frame.query("tilt <= @SMALL_TILT and two_simulated.notna()")
    uncorrelated = shrunken(np.asarray(valley_law(np.asarray(small["tilt"]) ** 2, DIMENSION)) / 2, length)

    def worst(simulated) -> float:
        return float(np.max(np.abs(simulated / small["two_law"] - 1)))

    error = float(np.max(small["two_std_error"] / small["two_law"]))
    return Claim(
        id="risk-and-parameters-opposite-law",
        statement=(
            f"Up to u = {small['tilt'].max():g} two simulated heads follow the law of their correlated fluctuations: "
            "the largest relative distance, of which a twentieth is allowed to the finite prompt."
        ),
        source="derived here",
        figure="two_opposite_heads",
        measured=worst(small["two_simulated"]),
        expected=0.0,
        tolerance=0.05 + comparison_quantile(len(small)) * error,
        std_error=error,
        alternative=Alternative("two heads whose fluctuations are independent", worst(uncorrelated)),
    )
