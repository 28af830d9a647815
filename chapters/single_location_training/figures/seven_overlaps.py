r"""Off the manifold, seven overlaps give the risk of a softmax head at every step of its training.

Excess risk of a softmax head along gradient descent in $\mathbb R^D$, without projection, in the setting of
{doc}`softmax_advantage`; the output 0 has the risk 1. The solid curve is the risk as a function of seven overlaps, and
the symbols are mean square errors of the same heads on fresh simulated prompts, with two standard errors. The dashed
curve is the formula without the three cross overlaps, which the table also has.

Alt: Line chart of the excess risk against the steps of training. Symbols are on a falling curve. A dashed curve begins
lower and comes closer to it.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.single_location_training.population_descent import HeadTrajectory, descend_population
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label
from lib.single_location import Head, Overlaps, Spiked, draw_prompts, draw_truth, fresh_risk, softmax
from lib.statistics import comparison_quantile, standard_error

# The task and the descent; the step size is in units of D.
LENGTH, SNR = 3, 4.0
STEP_SIZE, STEPS, EVERY = 0.03, 48, 4
CROSS = {"m_kv": r"$k\cdot v^{\star}/D$", "m_vk": r"$v\cdot k^{\star}/D$", "q_vk": r"$k\cdot v/D$"}


@dataclass(frozen=True)
class Walk:
    """A descent from off the manifold with squared errors on simulated prompts, and one that starts on the manifold."""

    path: HeadTrajectory
    without_cross: Float[np.ndarray, " records"]
    errors: Float[np.ndarray, "records prompts"]
    on_manifold: Overlaps


def train_descents(dimension: int, prompts: int, *, key: PRNGKeyArray) -> Walk:
    """Return two descents in dimension `dimension`; each head of the first has `prompts` fresh prompts."""
    truth_key, start_key, prompt_key = jr.split(key, 3)
    task, truth = Spiked(LENGTH, SNR), draw_truth(dimension, key=truth_key)

    def descend(start):
        return descend_population(task, softmax, start, truth, step_size=STEP_SIZE, steps=STEPS, every=EVERY)

    def test(head, index):
        fresh = draw_prompts(task, truth, prompts, noise_std=0.0, key=jr.fold_in(prompt_key, index))
        return (fresh.labels - fresh.outputs(softmax, head)) ** 2

    path = descend(start_off(truth, key=start_key))
    errors = jax.jit(lambda heads: jax.lax.map(lambda at: test(*at), (heads, jnp.arange(path.risk.size))))(path.head)
    on = path.overlaps
    bare = jax.jit(lambda many: jax.lax.map(lambda one: fresh_risk(task, softmax, one), many))(
        Overlaps(on.m_k, on.q_k, on.m_v, on.q_v, *(jnp.zeros_like(on.m_k) for _ in CROSS))
    )
    kept = descend(start_on(truth, key=start_key)).overlaps
    return Walk(jax.tree.map(np.asarray, path), np.asarray(bare), np.asarray(errors), jax.tree.map(np.asarray, kept))


def start_off(truth: Head, *, key: PRNGKeyArray) -> Head:
    """Return a start near the exchanged solution: small own overlaps, larger cross overlaps, and a common part."""
    own, common = jr.normal(key, (2, truth.key.size))
    return Head(
        0.2 * truth.key + 0.8 * truth.value + 0.6 * common,
        0.2 * truth.value - 0.8 * truth.key + 0.5 * common + 0.3 * own,
    )


def start_on(truth: Head, *, key: PRNGKeyArray) -> Head:
    """Return a start with the same own overlaps whose cross overlaps vanish."""
    rest = jr.normal(key, (2, truth.key.size))
    frame, _ = jnp.linalg.qr(jnp.stack([truth.key, truth.value, *rest], axis=1))
    size = jnp.sqrt(truth.key.size)
    return Head(0.2 * truth.key + 0.6 * size * frame[:, 2], 0.2 * truth.value + 0.6 * size * frame[:, 3])


def numbers(walk: Walk) -> Numbers:
    """Return risks by the formula and on simulated prompts along the descent, and the cross overlaps."""
    frame = pd.DataFrame(
        {
            "step": EVERY * np.arange(walk.path.risk.size),
            "risk": walk.path.risk,
            "without_cross": walk.without_cross,
            "simulated": walk.errors.mean(axis=1),
            "std_error": standard_error(walk.errors, axis=1),
            **{name: getattr(walk.path.overlaps, name) for name in CROSS},
        }
    )
    columns = {
        "step": Column("Steps of gradient descent", "steps"),
        "risk": Column("Excess risk by the formula with seven overlaps", absolute=1e-6),
        "without_cross": Column("The same formula without the three cross overlaps", absolute=1e-6),
        "simulated": Column("Mean square error on fresh prompts", std_error="std_error"),
        "std_error": Column("Its standard error", moves_with="simulated"),
        "m_kv": Column("$k·v*/D$", absolute=1e-6),
        "m_vk": Column("$v·k*/D$", absolute=1e-6),
        "q_vk": Column("$k·v/D$", absolute=1e-6),
    }
    return Numbers(Table(frame.reindex(columns=list(columns)), columns), (_risk_claim(frame), _kept_claim(walk)))


def _risk_claim(frame: pd.DataFrame) -> Claim:
    def worst(formula):
        return float(np.max(np.abs(frame["simulated"] - frame[formula]) / frame["std_error"]))

    return Claim(
        id="single-location-training-seven-overlaps",
        statement=(
            "Along a descent that starts off the manifold, the risk of a softmax head on simulated prompts is the "
            f"function of seven overlaps (measured: the largest of {len(frame)} deviations, in standard errors)."
        ),
        source="[D26]",
        box="seven-overlaps",
        measured=worst("risk"),
        expected=0.0,
        tolerance=comparison_quantile(len(frame)),
        reason=f"99.9 % quantile of the largest of {len(frame)} standard normal deviations",
        comparisons=len(frame),
        relation="≤",
        alternative=Alternative("the risk does not depend on the cross overlaps", worst("without_cross")),
    )


def _kept_claim(walk: Walk) -> Claim:
    def farthest(overlaps):
        return max(float(np.max(np.abs(getattr(overlaps, name)))) for name in CROSS)

    return Claim(
        id="single-location-training-kept-at-zero",
        statement=(
            "Gradient descent of a softmax head that starts with zero cross overlaps keeps them at zero, up to "
            "rounding (measured: the largest one)."
        ),
        source="[D26, Appendix A]",
        box="seven-overlaps",
        measured=farthest(walk.on_manifold),
        expected=0.0,
        tolerance=1e-12,
        reason="rounding errors of the descent",
        alternative=Alternative("the descent starts off the manifold", farthest(walk.path.overlaps)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risk by seven overlaps and by four, with simulated risks."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.4))
    axes.plot(table["step"], table["without_cross"], color=ink(), linewidth=1.5, linestyle="--")
    axes.plot(table["step"], table["risk"], color="C0", linewidth=2.4)
    error_bars(axes, table["step"], table["simulated"], table["std_error"], color="C0", marker="o", fillstyle="none")
    first, early = table.iloc[0], table.iloc[len(table) // 5]
    label(axes, first["step"], first["risk"], "formula with seven overlaps", "C0", xytext=(16, 4), fontsize=12)
    label(axes, early["step"], early["without_cross"], "without the cross overlaps", ink(), xytext=(-40, -30))
    label(axes, early["step"], early["simulated"], "circles: simulated", "C0", xytext=(14, 12))
    axes.set(xlabel="steps", ylabel="excess risk", ylim=(0, None))
    return figure
