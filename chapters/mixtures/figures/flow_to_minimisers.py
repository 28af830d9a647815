r"""Gradient flow reaches gates of height zero exponentially fast, and gates of slope zero by a power of time.

Left: distance of $(w,b,r,s)$ to the two families of minimisers along the gradient flow, from starts at a distance of
0.1 in random directions, and from one start each at $10^{-6}$, the published distance. Near $s=0$ the distance falls
like $t^{-1/2}$ (dashed: the slope from the quartic normal form, for the first start). From $10^{-6}$ it rests on a
plateau. Right: distance of $w$ to $w^\star$ from a start as in Theorem 3.6, and the predicted rate (dashed).

Alt: Left, on logarithmic axes, curves of the family with height zero drop almost vertically after a thousand units of
time; curves of the other family bend into a dashed line of slope minus one half, except for one that stays level at a
millionth. Right, a straight falling line on a logarithmic axis, along a dashed line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.mixtures.flows import InvariantFlow
from chapters.mixtures.style import CONSTANT, GATELESS, LARGE_SIZE, PUBLISHED_SIZE
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, few_decades, ink, label, legend_line

# Distances between which exponential rates are fitted: above the error of the flow, and so small that faster
# exponentials have decayed even where the slowest one has a small amplitude at the start.
RATE_WINDOW = (1e-6, 1e-5)
# A distance of 1e-3 times twenty for the constant of the next order.
NONLINEAR = 0.02
# The time from which the algebraic decay is fitted, and the largest part of 1/distance² there that its initial value
# may be.
ALGEBRAIC_FROM, INITIAL_PART = 1e8, 0.1
# The time at which the plateau of the published distance has begun, and its largest relative change after.
PLATEAU_FROM, ONE_PER_CENT = 1e3, 0.01
# Relative tolerance of the flow, times the square of the norm, over about a hundred steps.
SOLVER = 1e-7
# Smallest distance in the picture.
FLOOR = 1e-9


def numbers(near: tuple[pd.DataFrame, pd.DataFrame], invariant: InvariantFlow) -> Numbers:
    """Return the distances along the flows, and the claims on their rates."""
    paths, predictions = near
    first = predictions[(predictions["family"] == CONSTANT) & (predictions["start"] == 0)]["growth"].iloc[0]
    columns = {
        "kind": Column("`solved` along the gradient flow, or `predicted`", "name"),
        "family": Column("Family of minimisers, or `invariant` for the start of Theorem 3.6", "name"),
        "size": Column("Distance of the start from a minimiser"),
        "start": Column("Number of the start"),
        "time": Column("Time of the gradient flow"),
        "distance": Column("Distance to the minimisers", absolute=1e-7),
    }
    near_paths = paths.drop(columns="balance").assign(kind="solved")
    drawn = near_paths[(paths["family"] == CONSTANT) & (paths["start"] == 0) & (paths["time"] >= 1e5)]
    theorem = invariant.path[["time", "distance"]].assign(kind="solved", family="invariant", start=0)
    middle = theorem.iloc[len(theorem) // 2]
    line = middle["distance"] * np.exp(-invariant.rate * (theorem["time"] - middle["time"]))
    groups = [
        near_paths,
        drawn.assign(kind="predicted", distance=1 / np.sqrt(first * drawn["time"])),
        theorem,
        theorem.assign(kind="predicted", distance=line),
    ]
    return Numbers(Table.of(groups, columns), _claims(paths, predictions, invariant))


def _claims(paths: pd.DataFrame, predictions: pd.DataFrame, invariant: InvariantFlow) -> Claims:
    large, published = (paths[paths["size"] == size] for size in (LARGE_SIZE, PUBLISHED_SIZE))
    rates = large.groupby(["family", "start"])[["time", "distance"]].apply(_rate)
    runs = predictions[predictions["size"] == LARGE_SIZE].set_index(["family", "start"])
    off_rate = (rates / runs["rate"] - 1).abs()
    slow = large[large["family"] == CONSTANT].groupby("start")[["time", "distance"]].apply(_last_decade)
    of_flat, of_all = ((slow["growth"] / runs.loc[CONSTANT, name] - 1).abs() for name in ("growth", "free_growth"))
    rests = published[published["family"] == CONSTANT]
    ends = published[published["time"] >= PLATEAU_FROM].groupby("family")["distance"]
    decrease = 1 - ends.last() / ends.first()
    changes = large[(large["family"] == CONSTANT) & (large["start"] == 0)]["balance"]

    claim = Claims("mixture-discrimination", source="derived here", box="flat-quartic")
    claim.at_most(
        "exponential",
        "Near minimisers with $r = 0$ the distance falls exponentially; the rate is the least positive "
        "eigenvalue of the Hessian at the end (largest relative difference).",
        off_rate[GATELESS].max(),
        NONLINEAR,
        because="nonlinear terms are of the relative order of the distance, below 10⁻³, with a constant of at most 20",
        source="[GBB26, Thm 3.5]",
        box="gbb26-thm-3-5",
        rejects=("the same holds near minimisers with $s = 0$", off_rate[CONSTANT].min()),
    )
    claim.equal(
        "algebraic",
        "With classes of unequal weight, the distance to minimisers with $s = 0$ falls like the power -1/2 of time "
        "(mean exponent in the last decade).",
        slow["exponent"].mean(),
        -0.5,
        within=0.5 * INITIAL_PART,
        because="1/distance² is affine in time, and at most a tenth of it is its initial value",
        rejects=("the distance is constant, as from the published start", _last_decade(rests)["exponent"]),
    )
    claim.at_most(
        "normal-form",
        "There 1/distance² grows at the rate that the quartic normal form predicts (largest relative difference in "
        "the last decade).",
        of_flat.max(),
        NONLINEAR,
        because="corrections are of the relative order of the distance, about 10⁻³, with a constant of at most 20",
        rejects=("all directions are slow, not only flat ones", of_all.min()),
    )
    claim.at_most(
        "plateau",
        "From the published distance 10⁻⁶ to a minimiser with $s = 0$, the distance is constant from time 10³ to "
        "10⁹ (relative decrease).",
        decrease[CONSTANT],
        ONE_PER_CENT,
        because="one per cent, as stated; the normal form predicts a millionth",
        rejects=("it falls, as near a minimiser with $r = 0$", decrease[GATELESS]),
    )
    claim.equal(
        "invariant-rate",
        "From a start as in Theorem 3.6, the distance of $w$ to $w*$ falls with the rate $λ_{min}(G Hess L)$ at "
        "the end.",
        _rate(invariant.path),
        invariant.rate,
        within=NONLINEAR * invariant.rate,
        because="nonlinear terms are of the relative order of the distance, below 10⁻³, with a constant of at most 20",
        source="[GBB26, Thm 3.6]",
        box="invariant-rate",
        rejects=("the rate is that of the bound of $G$ at the start", invariant.bound),
    )
    claim.at_most(
        "balance",
        "From this start the difference of the square norms of $U₁₁$ and $v₂₁$ is conserved (largest change).",
        invariant.path["balance"].abs().max(),
        SOLVER,
        because="the relative tolerance 10⁻⁹ of a step, over about a hundred steps",
        source="[GBB26, Thm 3.6]",
        box="gbb26-thm-3-6",
        rejects=("it is conserved from other starts, too", changes.abs().max()),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the distances near both families, and from the start of Theorem 3.6."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1.5, 1))
    solved, predicted = (table[table["kind"] == kind] for kind in ("solved", "predicted"))
    for (family, size, _), path in solved[solved["family"] != "invariant"].groupby(["family", "size", "start"]):
        visible = path[path["distance"] > FLOOR]
        colour, line = ("C1" if family == GATELESS else "C0"), ("-" if size == LARGE_SIZE else "-.")
        left.plot(visible["time"], visible["distance"], color=colour, linestyle=line, linewidth=1.8)
    normal_form = predicted[predicted["family"] == CONSTANT]
    left.plot(normal_form["time"], normal_form["distance"], color=ink(), linestyle="--", linewidth=1.2)
    left.set(xscale="log", yscale="log", ylim=(FLOOR, 0.5), xlabel="time", ylabel="distance to the minimisers")
    few_decades(left)
    label(left, 1e8, 8e-3, "slope $s=0$", "C0", ha="center", xytext=(0, 0))
    label(left, 3e3, 1e-4, "height $r=0$", "C1", ha="left", xytext=(6, 0))
    label(left, 1e7, 1.5e-6, r"$s=0$, from $10^{-6}$", "C0", ha="center", xytext=(0, 0))
    left.legend([legend_line("--", 1.2)], ["predicted: $t^{-1/2}$"], loc="lower right")
    theorem, line = (rows[rows["family"] == "invariant"] for rows in (solved, predicted))
    right.plot(theorem["time"], theorem["distance"], color="C2", linewidth=2.5)
    right.plot(line["time"], line["distance"], color=ink(), linestyle="--", linewidth=1.2)
    right.set(yscale="log", xlabel="time", ylabel=r"$\|w-w^{\star}\|$", title="start of Theorem 3.6")
    right.legend([legend_line("--", 1.2)], ["predicted rate"], loc="upper right")
    return figure


def _rate(path: pd.DataFrame) -> float:
    """Return the exponential rate at which the distance falls."""
    window = path[path["distance"].between(*RATE_WINDOW)]
    if window.empty:  # the path ends above
        window = path[path["time"] >= ALGEBRAIC_FROM]
    return -float(np.polyfit(window["time"], np.log(window["distance"]), 1)[0])


def _last_decade(path: pd.DataFrame) -> pd.Series:
    """Return the exponent of the distance in the time, and the growth rate of 1/distance², in its last decade."""
    first, last = (path[path["time"] >= ALGEBRAIC_FROM * 0.99].iloc[place] for place in (0, -1))
    exponent = np.log(last["distance"] / first["distance"]) / np.log(last["time"] / first["time"])
    growth = (last["distance"] ** -2.0 - first["distance"] ** -2.0) / (last["time"] - first["time"])
    return pd.Series({"exponent": exponent, "growth": growth})
