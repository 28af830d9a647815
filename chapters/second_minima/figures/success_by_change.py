r"""Training with a balanced start, a large label entry or four heads reaches the optimum of one head, with smaller
batches not always.

Each row is the published training with one change, from the same random starts, on prompts of one length with the
corrected covariances. Left: the fraction of starts that end at most a fifth above the least mean square of one head,
with binomial intervals (Clopper and Pearson). The outputs of several heads are summed; their mean squares are averages
over fresh prompts, the others are exact.

Alt: Two charts with one row for each change of training and two symbols in each row, linear and softmax. Without a
change about half of the starts find the optimum. All starts find it in the rows of balanced starts, of the two larger
label entries and of four heads, nearly all in the rows of label entry one half and of two heads, and about half in the
rows of smaller batches. On the right there is a small symbol for each start: most are at 1, the others well above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.protocol import PUBLISHED_STEPS, WIDTH, published_task
from chapters.published_experiment.style import COLOURS, SYMBOLS
from chapters.second_minima.changed_trainings import CONTROL, STARTS, STEPS
from chapters.second_minima.landscape import curvatures_at
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.published_runs import CORRECTED
from chapters.second_minima.stationary_heads import Landscapes
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

CERTAINTY = 0.95
# A start has found the optimum if its mean square is at most this fraction above it. Noise adds less at the end, and
# every other stationary head is farther above.
NEAR = 0.2
# Changes with which every start of both heads finds the optimum, and changes with which some starts of each do not.
ALWAYS_FOUND = ("balanced start", "label entry 1", "label entry 2", "4 heads")
NOT_ALWAYS_FOUND = ("label entry 0.5", "2 heads", "batch 16", "batch 4")


def solve_curvatures_at_zero() -> Float[np.ndarray, " m"]:
    """Return the curvatures of the mean square of linear attention at the head 0, in increasing order."""
    return curvatures_at("linear", np.zeros(WIDTH * WIDTH))


def numbers(
    ends: pd.DataFrame, at_zero: Float[np.ndarray, " m"], landscapes: Landscapes, tracked: pd.DataFrame
) -> Numbers:
    """Return the ends relative to the optimum; claim which changes find it from every start."""
    places = {its: landscapes[its, CORRECTED] for its in dict.fromkeys(ends["activation"])}
    best = ends["activation"].map({its: place.optimum.square for its, place in places.items()})
    second = ends["activation"].map({its: place.minimum_beyond.square for its, place in places.items()})
    ends = ends.assign(
        ratio=ends["risk"] / best,
        ratio_std_error=ends["risk_std_error"] / best,
        second=second / best,
        found=ends["risk"] <= (1 + NEAR) * best,
    )
    shares = ends.groupby(["change", "activation"], sort=False)["found"].agg(["size", "sum"]).reset_index()
    count, found = shares["size"], shares["sum"]
    low, high = (1 - CERTAINTY) / 2, (1 + CERTAINTY) / 2
    intervals = shares[["change", "activation"]].assign(
        starts=count,
        share=found / count,
        share_low=np.where(found > 0, scipy.stats.beta.ppf(low, np.maximum(found, 1), count - found + 1), 0.0),
        share_high=np.where(found < count, scipy.stats.beta.ppf(high, found + 1, np.maximum(count - found, 1)), 1.0),
    )
    columns = {
        "change": Column("Change of the published training", "name"),
        "activation": Column("Activation of the head or heads: softmax or linear attention", "name"),
        "start": Column("Number of the random start"),
        "ratio": Column(f"Mean square at the end over the least one of one head, on {SECOND_LENGTH} tokens"),
        "ratio_std_error": Column(
            "Standard error of this ratio for several heads, which are measured on fresh prompts"
        ),
        "second": Column("Mean square of the second minimum of one head over that of its optimum"),
        "starts": Column("Number of starts with this change"),
        "share": Column(f"Fraction of starts that end at most {NEAR:.0%} above the least mean square of one head"),
        "share_low": Column(f"Lower end of the {CERTAINTY:.0%} interval of this fraction"),
        "share_high": Column(f"Upper end of the {CERTAINTY:.0%} interval of this fraction"),
    }
    frame = ends.merge(intervals, how="left", on=["change", "activation"])[list(columns)]
    tracked = tracked.assign(best=tracked["activation"].map({its: at.optimum.square for its, at in places.items()}))
    return Numbers(Table(frame, columns), _claims(ends, at_zero, tracked))


def _claims(ends: pd.DataFrame, at_zero: Float[np.ndarray, " m"], tracked: pd.DataFrame) -> Claims:
    claim = Claims("published-experiment", source="measured here")
    squared = np.linalg.matrix_power(np.asarray(published_task().cov), 2)
    claim.equal(
        "close-race",
        "Near the head 0, under the corrected covariances, the aligned part of a linear head grows hardly faster than "
        "its swapped part: the ratio of their rates is the Frobenius norm of the product of both covariances over its "
        "operator norm (measured: the ratio of the two least curvatures).",
        at_zero[0] / at_zero[1],
        np.linalg.norm(squared) / np.linalg.norm(squared, 2),
        within=1e-6,
        because="error of central differences of a gradient with a cubic term",
        source="derived here",
        box="close-race",
        rejects=("all covariates are alike, and the ratio is $√d$", (WIDTH - 1) ** 0.5),
    )
    # the tracked runs are from the same starts, with smaller steps
    reference = tracked.assign(expected=tracked["risk"] <= (1 + NEAR) * tracked["best"])
    shared = ends[ends["change"] == CONTROL].merge(reference, on=["activation", "start"])
    swapped = shared.assign(activation=shared["activation"].map({"linear": "softmax", "softmax": "linear"}))
    crossed = swapped[["activation", "start", "found"]].merge(reference, on=["activation", "start"])
    claim.count(
        "cures-control",
        f"Without a change, the {len(shared)} runs of both heads find the optimum in {STEPS:,} steps exactly where the "
        f"tracked runs of {PUBLISHED_STEPS:,} smaller steps do (measured: the number of runs that agree).",
        (shared["found"] == shared["expected"]).sum(),
        len(shared),
        rejects=("the starts that find it do not depend on the head", (crossed["found"] == crossed["expected"]).sum()),
    )
    found = ends.groupby(["change", "activation"])["found"].sum()
    for change in ALWAYS_FOUND:
        claim.count(
            f"cure-{change.replace(' ', '-')}",
            f"With the change `{change}`, each of {STARTS} starts ends at most {NEAR:.0%} above the least mean square "
            "of one head, for softmax and for linear attention (measured: the smaller number of starts that do).",
            found[change].min(),
            STARTS,
            rejects=("as many starts as without a change, for the better head", found[CONTROL].max()),
        )
    for change in NOT_ALWAYS_FOUND:
        claim.count(
            f"no-cure-{change.replace(' ', '-').replace('.', '-')}",
            f"With the change `{change}`, some of {STARTS} starts end more than {NEAR:.0%} above the least mean square "
            "of one head, for softmax and for linear attention (measured: the larger number of starts that end lower).",
            found[change].max(),
            STARTS,
            at_most=STARTS - 1,
            because="at least one start ends higher",
            rejects=("all starts, as from balanced starts", found["balanced start"].min()),
        )
    worst = ends[ends["change"] == "4 heads"].groupby("activation")["ratio"].max()
    claim.at_most(
        "cure-heads-below",
        "Four softmax heads end far below the least mean square of one, from every start (measured: the largest ratio, "
        "on fresh prompts).",
        worst["softmax"],
        1 - NEAR,
        because="farther below than a start that has found the optimum may be above",
        rejects=("more heads gain nothing, as in linear attention", worst["linear"]),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one row for each change."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 5.2), sharey=True)
    names = list(dict.fromkeys(table["change"]))
    for offset, activation in ((-0.17, "linear"), (0.17, "softmax")):
        part = table[table["activation"] == activation]
        look = {"color": COLOURS[activation], "linestyle": "", "marker": SYMBOLS[activation]}
        rows = part["change"].map(names.index) + offset
        shares = part.drop_duplicates("change")
        bars = [shares["share"] - shares["share_low"], shares["share_high"] - shares["share"]]
        left.errorbar(shares["share"], rows[shares.index], xerr=bars, elinewidth=1.5, markersize=6, **look)
        spread = 0.012 * (part["start"] - part["start"].mean())
        right.plot(part["ratio"], rows + spread, markersize=3.5, alpha=0.8, **look)
        second = part["second"].iloc[0]
        right.axvline(second, color=COLOURS[activation], linestyle=":", linewidth=1.5)
        look = {"rotation": 90, "ha": "right", "xytext": (-1, 0), "fontsize": 10}
        label(right, second, 4, "second minimum", COLOURS[activation], **look)
    right.axvline(1.0, color=ink(), linestyle="--", linewidth=1)
    left.set(title="starts that find the optimum", xlabel="fraction of starts", xlim=(0, 1.03))
    left.set_yticks(range(len(names)), ["no change", *names[1:]])
    left.invert_yaxis()
    right.set(title="end of each start", xlabel="mean square over the least of one head", xlim=(0.5, None))
    handles = {name: Line2D([], [], color=COLOURS[name], marker=SYMBOLS[name]) for name in ("linear", "softmax")}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2)
    return figure
