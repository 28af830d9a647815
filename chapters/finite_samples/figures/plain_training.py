r"""Plain training beside L-BFGS: from the same random starts, on the same prompts.

The paper's spiked task of the stronger hint, at the ridges of {numref}`fig-published-samples`. Across, logarithmic:
prompts per dimension, $\alpha=n/D$. Left: excess risk, mean over sets of prompts; lines are L-BFGS, circles gradient
descent on all prompts, squares stochastic gradient descent whose steps shrink to nothing. Right: how much higher the
risk of plain training is than that of L-BFGS on the same prompts, from the same start, in thousandths, with bars of two
standard errors.

Alt: Two panels. Left, two falling lines, softmax and linear attention, with circles and squares on them. Right, circles
lie on a line at zero; squares lie above it, for linear attention by several thousandths of the risk of answering zero,
for softmax by about one.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.gradient_training import SGD_STEPS
from chapters.finite_samples.style import COLOURS, DIFFERENT, plain_ticks
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label
from lib.statistics import standard_error, student_quantile

DESCENT, SGD = "gradient descent", "SGD"
MARKERS = {DESCENT: "o", SGD: "s"}
# Where a risk of SGD is said to be near that of L-BFGS, and how far marks of a sample ratio stand apart, as a factor.
NEAR, ASIDE = 0.005, 1.06


def numbers(plain: pd.DataFrame, quasi_newton: pd.DataFrame) -> Numbers:
    """Risks of three ways to train on the same prompts, and their differences run by run."""
    same = quasi_newton[quasi_newton["start"] == "uninformed"]
    pairs = plain.merge(same, on=["head", "alpha", "dimension", "seed"], suffixes=("", "_newton"))
    pairs["above"] = pairs["risk"] - pairs["risk_newton"]
    pairs["apart"] = (pairs["objective"] / pairs["objective_newton"] - 1.0).abs() > DIFFERENT
    settings = pairs.groupby(["method", "head", "alpha"], sort=False)
    frame = settings.agg(
        risk=("risk", "mean"),
        risk_error=("risk", standard_error),
        newton=("risk_newton", "mean"),
        above=("above", "mean"),
        above_error=("above", standard_error),
        apart=("apart", "mean"),
    ).reset_index()
    columns = {
        "method": Column("`gradient descent` on all prompts, or `SGD` on batches of them", "name"),
        "head": Column("`softmax` or `linear`", "name"),
        "alpha": Column("Sample ratio α = n/D"),
        "risk": Column("Excess risk, mean over sets of prompts; answering 0 costs 1", std_error="risk_error"),
        "risk_error": Column("Its standard error, over sets of prompts", moves_with="risk"),
        "newton": Column("That of L-BFGS on the same prompts", moves_with="risk"),
        "above": Column("How much higher the former is, mean of differences run by run", std_error="above_error"),
        "above_error": Column("Its standard error", moves_with="above"),
        "apart": Column("Share of runs whose objective differs from that of L-BFGS by more than a ten-thousandth"),
    }
    claims = (_descent_claim(frame, len(pairs) // len(frame)), _valley_claim(pairs, quasi_newton), *_sgd_claims(frame))
    return Numbers(Table(frame[list(columns)], columns), claims)


def _descent_claim(frame: pd.DataFrame, seeds: int) -> Claim:
    def worst(method):
        mine = frame[frame["method"] == method]
        return float((mine["above"].abs() / mine["above_error"]).max())

    count = int((frame["method"] == DESCENT).sum())
    return Claim(
        id="finite-samples-plain-descent",
        statement=(
            "Gradient descent on all prompts ends at the risk that L-BFGS finds on them from the same random start, "
            f"both heads: the worst of {count} mean differences, in standard errors over {seeds} sets of prompts."
        ),
        source="measured here",
        measured=worst(DESCENT),
        expected=0.0,
        tolerance=student_quantile(count, seeds),
        relation="≤",
        alternative=Alternative(f"it were SGD of {SGD_STEPS} steps", worst(SGD)),
    )


def _valley_claim(pairs: pd.DataFrame, quasi_newton: pd.DataFrame) -> Claim:
    both = quasi_newton.pivot_table(index=["head", "alpha", "seed"], columns="start", values="objective")
    other = (both["uninformed"] / both["informed"] - 1.0).abs() > DIFFERENT
    mine = pairs[(pairs["method"] == DESCENT) & (pairs["head"] == "softmax")]
    return Claim(
        id="finite-samples-plain-valley",
        statement=(
            "Softmax has several minima here, but from one start gradient descent and L-BFGS seldom part: the share of "
            f"{len(mine)} runs whose objectives at the end differ."
        ),
        source="measured here",
        measured=float(mine["apart"].mean()),
        expected=0.0,
        tolerance=0.15,
        relation="≤",
        alternative=Alternative("L-BFGS had begun at the hidden directions", float(other["softmax"].mean())),
    )


def _sgd_claims(frame: pd.DataFrame) -> tuple[Claim, Claim]:
    mine = frame[frame["method"] == SGD].set_index(["head", "alpha"])
    most = mine["above"].groupby(level="head").max()
    ratio = mine["risk"]["softmax"] / mine["risk"]["linear"]
    return (
        Claim(
            id="finite-samples-plain-sgd",
            statement=(
                f"SGD with {SGD_STEPS} steps that shrink to nothing trains softmax nearly as far as L-BFGS: the "
                "largest mean difference of the risks on the same prompts."
            ),
            source="measured here",
            measured=float(most["softmax"]),
            expected=0.0,
            tolerance=NEAR,
            relation="≤",
            alternative=Alternative("linear attention", float(most["linear"])),
        ),
        Claim(
            id="finite-samples-plain-advantage",
            statement=(
                "Trained by SGD, too, softmax is ahead of linear attention from two prompts a dimension on: the "
                "largest ratio of the mean risks."
            ),
            source="measured here",
            measured=float(ratio[ratio.index >= 2].max()),
            expected=1.0,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative("the same with fewer prompts", float(ratio[ratio.index < 2].max())),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Left the risks of all three; right the differences, thousandfold."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2))
    for (head, method), mine in table.groupby(["head", "method"], sort=False):
        colour, marker = COLOURS[head], MARKERS[method]
        if method == DESCENT:
            left.plot(mine["alpha"], mine["newton"], color=colour, linewidth=2)
            last = mine.iloc[-1]
            place = {"xytext": (-2, 14) if head == "linear" else (-2, -16), "ha": "right"}
            label(left, last["alpha"], last["newton"], head, colour, **place)
        size = {"markersize": 9.0 if method == SGD else 5.0}
        left.plot(mine["alpha"], mine["risk"], marker, color=colour, fillstyle="none", **size)
        aside = ASIDE if head == "linear" else 1 / ASIDE
        look = {"color": colour, "marker": marker, "fillstyle": "none"}
        error_bars(right, mine["alpha"] * aside, 1e3 * mine["above"], 1e3 * mine["above_error"], **look)
    right.axhline(0, color=ink(), linewidth=1)
    for head in COLOURS:
        mine = table[(table["method"] == SGD) & (table["head"] == head)]
        if len(mine):
            last = mine.iloc[-1]
            label(right, last["alpha"], 1e3 * last["above"], f"SGD,\n{head}", COLOURS[head], xytext=(14, 8))
    last = table["alpha"].max()
    label(right, last, 0.0, "gradient\ndescent", ink(), xytext=(14, -20))
    looks = {"L-BFGS": {"linestyle": "-"}, DESCENT: {"marker": "o"}, SGD: {"marker": "s", "markersize": 9.0}}
    handles = [Line2D([], [], color=ink(), **{"linestyle": "", "fillstyle": "none", **look}) for look in looks.values()]
    left.legend(handles, list(looks), loc="lower left")
    for panel in (left, right):
        panel.set(xscale="log", xlabel=r"$\alpha=n/D$")
        plain_ticks(panel, table["alpha"])
    left.set(ylabel="excess risk", ylim=(0, 1.02))
    right.set_ylabel("thousandths above L-BFGS")
    headline(figure, "Gradient descent ends where L-BFGS does, SGD a little above")
    return figure
