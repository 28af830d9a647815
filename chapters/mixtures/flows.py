"""Gradient flow of the risk near the two families of minimisers, and from a start that leads to the Bayes risk."""

from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
import pandas as pd
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.integrate import solve_ivp
from scipy.special import expit

from chapters.mixtures.gated_scores import GatedScore, bayes_score
from chapters.mixtures.labelled_heads import Blocks, excess, head_with_constant_gate, head_without_gate
from chapters.mixtures.landscape import ROUNDING, TOKENS
from chapters.mixtures.score_derivatives import (
    Classes,
    Parameters,
    blocks_of,
    flat,
    hessian,
    parameters_of,
    scores_and_slopes,
    slope,
)
from chapters.mixtures.settings import classes, published_classes
from chapters.mixtures.style import CONSTANT, GATELESS, LARGE_SIZE, PUBLISHED_SIZE
from lib.flow import follow_flow
from lib.measures import GaussianMixture
from lib.random import normal

# Times at which the distance to the minimisers is recorded.
TIMES = np.geomspace(1.0, 1e9, 181)
# A mixture in three dimensions that leaves room for the start of Theorem 3.6, and the times of its flow.
INVARIANT_MEAN, INVARIANT_COV = np.array([0.8, 0.0, 0.6]), np.diag([1.0, 1.5, 2.0])
INVARIANT_TIMES = np.linspace(0.25, 36.0, 144)
FAMILIES = {GATELESS: head_without_gate, CONSTANT: head_with_constant_gate}


def distance(family: str, score: GatedScore | Parameters, best: GatedScore) -> float:
    """Return the Euclidean distance of (w, b, r, s) to a family of minimisers."""
    slope, intercept, height, gate_slope = map(
        np.asarray, (score.slope, score.intercept, score.height, score.gate_slope)
    )
    along, off = slope - np.asarray(best.slope), float(intercept - best.intercept)
    if family == GATELESS:
        return float(np.sqrt(np.sum(along**2) + off**2 + height**2))
    # {(w*, b* - r σ(s_0), r, 0)} is a line in the plane of b and r
    chance = expit(float(best.gate_offset))
    off = (off + chance * height) / np.sqrt(1 + chance**2)
    return float(np.sqrt(np.sum(along**2) + off**2 + np.sum(gate_slope**2)))


def solve_flow(start: Blocks, times: np.ndarray) -> Blocks:
    """Return the gradient flow of the risk of `published_classes` at these times, by an implicit method.

    The times are far longer than the inverse of the largest curvature. Each leaf has a leading axis of times.
    """
    solution = solve_ivp(
        lambda _, point: -slope(point),
        (0.0, times[-1]),
        flat(start),
        method="Radau",
        t_eval=times,
        jac=lambda _, point: -hessian(point),
        rtol=1e-8,
        atol=1e-13,
    )
    return blocks_of(solution.y.T)


def _distances(path: Blocks, best: GatedScore, family: str) -> Float[np.ndarray, " n"]:
    scores, best = _scores(path, published_classes()), jax.tree.map(np.asarray, best)
    return np.array([distance(family, score, best) for score in scores])


def _scores(path: Blocks, law: GaussianMixture) -> list[Parameters]:
    """Return the parameters of the score of each head along a path."""
    of_law = Classes.of(law)
    return [parameters_of(Blocks(*blocks), of_law) for blocks in zip(*map(np.asarray, path), strict=True)]


def perturbed(blocks: Blocks, size: float, key: PRNGKeyArray) -> Blocks:
    """Return the head moved by `size` in a random direction of the space of all its blocks."""
    entries = flat(blocks)
    noise = np.asarray(normal(key, entries.shape))
    return blocks_of(entries + size * noise / np.linalg.norm(noise))


def solve_near_minimisers(starts: int, *, key: PRNGKeyArray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the distance to each family of minimisers along the gradient flow, from starts near one of its heads.

    Args:
      starts: number of starts at the distance `LARGE_SIZE` from each head; one more starts at `PUBLISHED_SIZE`.
      key: JAX random key of the directions.

    Returns:
      One row per family, start and time: `family`, `size`, `start`, `time`, `distance`, that of (w, b, r, s) to the
      family; `balance`, the change of ‖U_11‖² + ‖u_12‖² - ‖v_21‖² - v_22² since the start.
      A second table has one row per family and start with predictions from the last head of the path: `rate`, the
      exponential rate, which is the least positive eigenvalue of the Hessian; `growth`, the limit of d(1/distance²)/dt,
      0 where none is predicted, and `free_growth`, this limit if no direction were fast.
    """
    law = published_classes()
    best = bayes_score(law)
    frames, predictions = [], []
    for number, (family, head) in enumerate(FAMILIES.items()):
        family_key = jr.fold_in(key, number)
        for start in range(starts + 1):
            size = PUBLISHED_SIZE if start == starts else LARGE_SIZE
            first = perturbed(head(), size, jr.fold_in(family_key, start))
            path = solve_flow(first, TIMES)
            names = {"family": family, "size": size, "start": start}
            columns = {"time": TIMES, "distance": _distances(path, best, family)}
            frames.append(pd.DataFrame({**names, **columns, "balance": _balance(path) - _balance(first)}))
            last = jax.tree.map(lambda leaf: leaf[-1], path)
            eigenvalues = np.linalg.eigvalsh(hessian(flat(last)))
            rate = eigenvalues[eigenvalues > ROUNDING * eigenvalues[-1]][0]
            growth, free_growth = growth_of_inverse_square(last) if family == CONSTANT else (0.0, 0.0)
            predictions.append({**names, "rate": rate, "growth": growth, "free_growth": free_growth})
    return pd.concat(frames, ignore_index=True), pd.DataFrame(predictions)


def _balance(blocks: Blocks) -> Float[np.ndarray, "*n"]:
    upper, column, row, corner = map(np.asarray, blocks)
    return np.sum(upper**2, axis=(-2, -1)) + np.sum(column**2, axis=-1) - np.sum(row**2, axis=-1) - corner**2


def growth_of_inverse_square(blocks: Blocks) -> tuple[float, float]:
    r"""Return the limit of d(1/distance²)/dt that the quartic normal form predicts near s = 0.

    The second value is the limit if all directions were as slow as those of the kernel.

    To second order in s the score differs from the log-odds by `r σ''(s_0) ⟨s, x⟩²/2` plus an affine function, which
    follows fast so that the excess is least. What remains is a quartic form E(s), and s' = -M ∇E(s), where M = A Aᵀ and
    A maps a direction in the kernel of the Hessian to the change of s.
    """
    law = published_classes()
    score, best = parameters_of(blocks, Classes.of(law)), jax.tree.map(np.asarray, bayes_score(law))
    chance = expit(best.gate_offset)
    height, tilt = score.height, score.gate_slope
    # tokens of a product rule, exact for the polynomials of low degree times a smooth function
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    normals = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    weights = np.outer(weights, weights).ravel() / (2 * np.pi)
    tokens = np.concatenate([mean + normals for mean in np.asarray(law.components.mean)])
    chances = np.exp(np.asarray(law.log_weights))
    eta = expit(tokens @ best.slope + best.intercept)
    masses = np.concatenate([share * weights for share in chances]) * eta * (1 - eta)
    affine = np.column_stack([np.ones(len(tokens)), tokens])
    bend = 0.5 * height * chance * (1 - chance) * (1 - 2 * chance)

    def residual(values):
        fit = np.linalg.solve((affine * masses[:, None]).T @ affine, affine.T @ (masses * values))
        return values - affine @ fit

    unit = tilt / np.linalg.norm(tilt)
    along = tokens @ unit
    # the gradient of E(s) = E[η(1-η) q(s)²]/2, q the residual of bend ⟨s, x⟩², at the unit vector
    force = 2 * bend * (masses * residual(bend * along**2) * along) @ tokens
    # the distance to the family is √(1 + r² σ'(s_0)²) ‖s‖
    moved = 1 + (height * chance * (1 - chance)) ** 2
    slow, free = (float(2 * unit @ matrix @ force / moved) for matrix in _mobilities(blocks))
    return slow, free


def _mobilities(blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return A Aᵀ at the head with s = 0 next to `blocks`, with A on the kernel and on all directions."""
    law = published_classes()
    first, second = np.asarray(law.components.mean)
    tokens = 2 * np.asarray(normal(jr.key(0), (TOKENS, 2)))
    level = blocks._replace(column=-0.5 * blocks.upper @ (first - second))
    _, strengths, directions = np.linalg.svd(scores_and_slopes(level, law, tokens)[1])
    fast = directions[: int((strengths > ROUNDING * strengths[0]).sum())]
    # the change of s = 2 u_12 + U_11 (m_0 - m_1)
    change = np.hstack([np.kron(np.eye(2), first - second), 2 * np.eye(2), np.zeros((2, 3))])
    return change @ (np.eye(change.shape[1]) - fast.T @ fast) @ change.T, change @ change.T


# --- the start of Theorem 3.6 -----------------------------------------------------------------------------------------


def invariant_classes() -> GaussianMixture:
    """Return opposite means with equal weights, whose Krylov space span{m, Γm, Γ²m} has two of three dimensions."""
    return classes([INVARIANT_MEAN, -INVARIANT_MEAN], INVARIANT_COV, 0.5)


def invariant_start() -> Blocks:
    """Return the start U_11 = 0, u_12 = 0, v_22 = 0, and v_21 a unit vector orthogonal to the Krylov space."""
    return Blocks(np.zeros((3, 3)), np.zeros(3), np.array([0.0, 1.0, 0.0]), np.zeros(()))


@jax.jit
@jax.value_and_grad
def _invariant_excess(entries: Float[Array, " entries"]) -> Float[Array, ""]:
    unravel = ravel_pytree(invariant_start())[1]
    return excess(unravel(entries), invariant_classes(), 40)


class InvariantFlow(NamedTuple):
    """The gradient flow from `invariant_start`.

    Args:
      path: one row per time: `time`, `distance`, ‖w - w*‖; `balance`, the change of ‖U_11‖² - ‖v_21‖²; `leak`, the
        largest of |b|, |r| and |s_i|.
      rate: the predicted exponential rate.
      bound: the rate that the lower bound of the matrix G at the start gives.
    """

    path: pd.DataFrame
    rate: float
    bound: float


def solve_invariant_flow() -> InvariantFlow:
    """Return the flow from the start of Theorem 3.6, with the rate that the end of the path predicts.

    On the invariant set `w' = -G ∇L(w)`, `G = ‖Γ v_21‖² I + U_11 Γ² U_11ᵀ`; the rate is the least eigenvalue of G
    times the Hessian of L at w*, on the Krylov space, which w does not leave.
    """
    law, cov = invariant_classes(), INVARIANT_COV
    start = invariant_start()
    accuracy = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}
    path = blocks_of(follow_flow(_invariant_excess, flat(start), INVARIANT_TIMES, **accuracy)[0])
    scores, best = _scores(path, law), np.asarray(bayes_score(law).slope)
    balance = np.sum(path.upper**2, axis=(1, 2)) - np.sum(path.row**2, axis=1)
    leaks = [[score.intercept, score.height, *score.gate_slope] for score in scores]
    frame = pd.DataFrame(
        {
            "time": INVARIANT_TIMES,
            "distance": np.linalg.norm([score.slope - best for score in scores], axis=1),
            "balance": balance - (np.sum(start.upper**2) - np.sum(start.row**2)),
            "leak": np.max(np.abs(leaks), axis=1),
        }
    )
    basis = np.eye(3)[:, [0, 2]]
    curvature = basis.T @ _curvature(law) @ basis
    upper, row = path.upper[-1], path.row[-1]
    matrix = np.sum((cov @ row) ** 2) * np.eye(3) + upper @ cov @ cov @ upper.T
    bound = np.linalg.eigvalsh(cov)[0] ** 2 * np.sum(start.row**2)
    return InvariantFlow(
        frame,
        rate=float(np.min(np.linalg.eigvals(basis.T @ matrix @ basis @ curvature).real)),
        bound=float(bound * np.linalg.eigvalsh(curvature)[0]),
    )


def _curvature(law: GaussianMixture) -> np.ndarray:
    """Return E[η(1 - η) X Xᵀ], the Hessian of the risk in w at w*, by integrals along w* and Stein's formula."""
    cov, steepest = np.asarray(law.components.cov[0]), np.asarray(bayes_score(law).slope)
    spread = np.sqrt(steepest @ cov @ steepest)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / np.sqrt(2 * np.pi)
    total = np.zeros_like(cov)
    for mean in np.asarray(law.components.mean):
        chance = expit(steepest @ mean + spread * nodes)
        mass = weights * chance * (1 - chance)
        # X = mean + Γ w* z/spread + a part that is independent of z
        along = cov @ steepest / spread
        shifts = mean + np.outer(nodes, along)
        total += 0.5 * ((shifts * mass[:, None]).T @ shifts + mass.sum() * (cov - np.outer(along, along)))
    return total
