"""Softmax heads on one key, with two relevant tokens of three, against one sigmoid.

Heads `h` output `Σ_h t_h p_h`, where `p_h` is the softmax of the slope `κ_h ≥ 0` times the scores. Their risk is
quadratic in the values t, so that the best values are the solution of a linear system. As two slopes approach each
other, the pair spans `p` and its derivative in the slope; the least risk of two heads is that limit, for large values
of opposite signs.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special
from jaxtyping import Float

from companion import Claims
from lib.single_location import Several, best_risk, sigmoid

LENGTH, RELEVANT, STRENGTH = 3, 2, 100.0
# Nodes of the quadrature in each direction, and how far they reach in standard deviations.
NODES, REACH = 61, 8.0
# The largest slope of the search, and the number of slopes of its lattice.
STEEPEST, LATTICE = 6.0, 24
# Half the least relative distance of two slopes.
CLOSEST = 1e-3


@dataclass(frozen=True)
class HeadsOnOneKey:
    """Least risks at L = 3, r = 2 and ν = 100.

    Attributes:
      one: of one softmax head.
      two: of two softmax heads on one key, both slopes positive.
      one_sigmoid: of one sigmoid head.
    """

    one: float
    two: float
    one_sigmoid: float


def solve_heads_on_one_key() -> HeadsOnOneKey:
    """Return the least risks over slopes and values."""
    scores, chances = _prompts()
    middles = np.linspace(0.0, STEEPEST, LATTICE + 1)[1:]
    ones = [_risk([slope], scores, chances) for slope in middles]
    place = int(np.argmin(ones))
    one = scipy.optimize.minimize_scalar(
        lambda slope: _risk([slope], scores, chances),
        bounds=(0.5 * middles[place], 2.0 * middles[place]),
        method="bounded",
        options={"xatol": 1e-8},
    )
    pairs = [(middle, spread) for middle in middles for spread in np.linspace(CLOSEST, 1.0, 7)]
    start = min(pairs, key=lambda pair: _risk(_slopes(*pair), scores, chances))
    two = scipy.optimize.minimize(
        lambda pair: _risk(_slopes(*pair), scores, chances),
        start,
        method="Nelder-Mead",
        bounds=[(middles[0] / 10.0, STEEPEST), (CLOSEST, 1.0)],
        options={"xatol": 1e-7, "fatol": 1e-12},
    )
    task = Several(float(LENGTH), float(RELEVANT), STRENGTH)
    return HeadsOnOneKey(one.fun, two.fun, float(best_risk(task, sigmoid)))  # pyright: ignore[reportAttributeAccessIssue]


def claims(risks: HeadsOnOneKey) -> Claims:
    """Claim how far softmax heads on one key are from a sigmoid, and that a second head helps."""
    claim = Claims("several-heads", source="derived here", box="which-weights-are-bayes")
    setting = f"$L = {LENGTH}$, $r = {RELEVANT}$, $ν = {STRENGTH:g}$"
    per_head = math.log(STRENGTH) ** 2 / STRENGTH
    claim.at_least(
        "one",
        f"At {setting}, a second softmax head on the same key lowers the risk at least by the factor $(ln ν)²/ν$ "
        "(least risk of one head).",
        risks.one,
        risks.two / per_head,
        because="the least risk of two heads over the factor $(ln ν)²/ν$, the heuristic gain of one head",
        source="heuristic",
        box=None,
        rejects=("a second head does not help", risks.two),
    )
    claim.at_least(
        "two",
        f"At {setting}, two softmax heads on one key have a risk above $1/ν²$ "
        "(least risk over positive slopes, approached as the slopes coincide).",
        risks.two,
        STRENGTH**-2,
        because="one power of the strength for each head, the heuristic without its logarithms",
        source="heuristic",
        box=None,
        rejects=("two heads on one key find both tokens, as the sigmoid does", risks.one_sigmoid),
    )
    claim.at_most(
        "sigmoid",
        r"The risk of the best sigmoid is exponentially small: at most "
        rf"$\sqrt{{(L-r)/r}}\sqrt{{π/(2ν)}}e^{{-ν/8}}$ (at {setting}).",
        risks.one_sigmoid,
        math.sqrt((LENGTH - RELEVANT) / RELEVANT * math.pi / (2.0 * STRENGTH)) * math.exp(-STRENGTH / 8.0),
        because="the integral of the risk, with its Gaussian factor replaced by its largest value",
        rejects=("the sigmoid is no better than two softmax heads on one key", risks.two),
    )
    return claim


def _prompts() -> tuple[Float[np.ndarray, "3 n"], Float[np.ndarray, " n"]]:
    """Return scores up to a shift that softmax ignores, with the probabilities of a product quadrature.

    The difference of the two relevant scores and the distance of their mean from the third score are independent.
    """
    nodes = np.linspace(-REACH, REACH, NODES)
    weights = np.exp(-0.5 * nodes**2)
    half = math.sqrt(0.5) * nodes[:, None]
    distance = math.sqrt(STRENGTH) + math.sqrt(1.5) * nodes
    scores = np.stack(np.broadcast_arrays(half, -half, -distance)).reshape(LENGTH, -1)
    return scores, np.outer(weights, weights).ravel() / weights.sum() ** 2


def _slopes(middle: float, spread: float) -> list[float]:
    return [middle * (1.0 + spread), middle * (1.0 - spread)]


def _risk(slopes: list[float], scores: Float[np.ndarray, "3 n"], chances: Float[np.ndarray, " n"]) -> float:
    """Return the risk of heads with these slopes and the best values."""
    weights = [scipy.special.softmax(slope * scores, axis=0) for slope in slopes]
    # the difference of two heads in place of the second keeps the linear system well conditioned
    spanning = np.stack([weights[0], *((each - weights[0]) / (slopes[0] - slopes[1]) for each in weights[1:])])
    gram = np.einsum("hln,gln,n->hg", spanning, spanning, chances, optimize=True)
    hits = spanning[:, :RELEVANT].sum(axis=1) @ chances
    return float(1.0 - hits @ np.linalg.solve(gram, hits) / RELEVANT)
