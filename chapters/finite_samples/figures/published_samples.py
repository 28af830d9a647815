r"""In the paper's three settings softmax is ahead with enough prompts, in the max task at all computed sample ratios.

The horizontal axes show prompts per dimension, $\alpha=n/D$ (logarithmic), the vertical axis the excess risk; the
output 0 has risk 1. Prompts have three tokens, and each head has its best ridges. Lines: replica theory for softmax and
linear attention, and the Bayes-optimal risk by state evolution. Circles: training runs from the hidden directions in
three dimensions, extrapolated to $D\to\infty$, with two standard errors. Crosses: runs from random directions, at one
dimension; the bar at the bottom spans the sample ratios at which some of them end in another minimum. Dotted: the best
risk of each head with infinitely many prompts; for softmax it is the Bayes risk, which is 0 in the third panel.

Alt: Three panels of falling curves against prompts per dimension, from a quarter to twenty. In each the Bayes-optimal
curve is lowest. In the two spiked panels softmax and linear attention fall together up to about one prompt per
dimension, then softmax falls further. In the max panel softmax is ahead throughout and comes near zero, while linear
attention levels off near one half. Circles are on the curves, crosses of random starts too where prompts are many; bars
for softmax are under the middle of each panel.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.finite_samples.extrapolation import deviations
from chapters.finite_samples.published_settings import (
    MAX,
    RANDOM_STARTS,
    RUN_ALPHAS,
    SPIKED,
    SPIKED_WEAK,
    Panel,
    Recomputed,
)
from chapters.finite_samples.style import COLOURS, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import Measured
from chapters.finite_samples.training import HEADS, NOISE_STD
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, label
from lib.statistics import comparison_quantile

# Linear attention is ahead in the spiked tasks up to the first sample ratio, softmax in all tasks from the second on.
FEW, MORE = 0.63, 1.6
# From this sample ratio on random and informed starts end at the same minimum.
MANY = 10.0
# The factor by which the bar of several minima extends beyond a sample ratio.
REACH = 1.15
# Sample ratio, offset and side of the labels of the curves in the last panel.
NAMED = {"softmax": (3.2, (6, 6), "left"), "linear": (5.0, (6, 8), "left"), "Bayes-optimal": (5.0, (-10, -4), "right")}


def numbers(panels: Mapping[str, Panel], recomputed: Recomputed) -> Numbers:
    """Return theory, training and best risks of the three tasks; claim that they agree and which head is ahead."""
    claims = (
        _theory_claim(panels, [SPIKED_WEAK, SPIKED], "spiked", "the two spiked tasks"),
        _theory_claim(panels, [MAX], "max", "the max task"),
        *_order_claims(panels),
        _optimal_claim(panels),
        *_starts_claims(panels),
        *_recomputed_claims(recomputed),
    )
    return Numbers(_table(panels), claims)


def _table(panels: Mapping[str, Panel]) -> Table:
    def row(kind, setting, risk, apart=0.0):
        head, alpha = setting
        number = {"risk": risk.value, "std_error": risk.std_error, "converged": risk.converged, "apart": apart}
        return {"kind": kind, "head": head, "alpha": alpha, **number}

    frames = []
    for name, panel in panels.items():
        optimal = [(("Bayes-optimal", alpha), risk) for alpha, risk in panel.optimal.items()]
        floors = [((head, 0.0), risk) for head, risk in panel.floors.items()]
        rows = [
            *(row("theory", setting, fixed["risk"]) for setting, fixed in panel.theory.items()),
            *(row("theory", setting, Measured(risk, 0.0)) for setting, risk in optimal),
            *(row("trained", setting, limit["risk"]) for setting, limit in panel.trained.items()),
            *(row("random start", setting, starts.random, starts.apart) for setting, starts in panel.starts.items()),
            *(row("n = ∞", setting, Measured(risk, 0.0)) for setting, risk in floors),
        ]
        frames.append(pd.DataFrame(rows).assign(task=name))
    columns = {
        "task": Column("Task, with prompts of three tokens", "name"),
        "kind": Column(
            (
                "`theory`: replica or state evolution; `trained`: from the hidden directions, $D → ∞$; `random "
                f"start`: from random ones, $D = {RANDOM_STARTS}$; `n = ∞`: best risk of the head"
            ),
            "name",
        ),
        "head": Column(
            "`softmax`, `linear`, at their best ridges; `Bayes-optimal`: the Bayes-optimal estimator", "name"
        ),
        "alpha": Column("Sample ratio $α = n/D$; 0 where it is infinite"),
        "risk": Column("Excess risk; the output 0 has risk 1", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
        "converged": Column("False where the replica iteration found no fixed point", "yes or no"),
        "apart": Column("Fraction of random starts that end in another minimum than informed ones; 0 for other kinds"),
    }
    return Table(pd.concat(frames, ignore_index=True)[list(columns)], columns)


def _theory_claim(panels: Mapping[str, Panel], names: list[str], kind: str, tasks: str) -> Claim:
    chosen = [panels[name] for name in names]
    compared = [deviations(panel.theory, panel.trained, RUN_ALPHAS, head) for panel in chosen for head in HEADS]
    same_ratio, next_ratio = (np.abs(np.concatenate(values)) for values in zip(*compared, strict=True))
    return Claim(
        id=f"finite-samples-published-{kind}",
        statement=(
            f"In {tasks} of the published figure, risk, four overlaps and training loss of both trained heads, "
            f"extrapolated to $D → ∞$, are those of the replica fixed point (largest of {len(same_ratio)} "
            "deviations, in combined standard errors)."
        ),
        source="[D26, Result 5.1]",
        box="replica-prediction",
        measured=float(same_ratio.max()),
        expected=0.0,
        tolerance=comparison_quantile(len(same_ratio)),
        reason=f"99.9 % quantile of the largest of {len(same_ratio)} standard normal deviations",
        relation="≤",
        alternative=Alternative("the replica fixed point of the next sample ratio", float(next_ratio.max())),
        comparisons=len(same_ratio),
    )


def _risks(panel: Panel, head: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sample ratios, risks and standard errors of a head by theory."""
    risks = {alpha: fixed["risk"] for (name, alpha), fixed in panel.theory.items() if name == head}
    return np.asarray(list(risks)), *np.asarray([(risk.known, risk.std_error) for risk in risks.values()]).T


def _order_claims(panels: Mapping[str, Panel]) -> tuple[Claim, Claim, Claim]:
    ratios, leads = {}, {}
    for name, panel in panels.items():
        (alphas, softmax, softmax_error), (_, linear, linear_error) = (_risks(panel, head) for head in HEADS)
        ratios[name] = softmax / linear
        leads[name] = (softmax - linear) / np.hypot(softmax_error, linear_error)
    few, more = alphas <= FEW, alphas >= MORE
    return (
        Claim(
            id="finite-samples-published-few",
            statement=(
                "In the two spiked tasks of the published figure linear attention has a lower risk than softmax "
                f"up to $n = {FEW:g} D$ prompts, each head at its best ridges (smallest difference, in combined "
                "standard errors)."
            ),
            source="measured here",
            measured=min(leads[name][few].min() for name in (SPIKED_WEAK, SPIKED)),
            expected=comparison_quantile(2 * int(few.sum())),
            tolerance=0.0,
            reason=f"99.9 % quantile of the largest of {2 * int(few.sum())} standard normal deviations",
            relation="≥",
            alternative=Alternative("the same in the max task", leads[MAX][few].min()),
        ),
        Claim(
            id="finite-samples-published-always",
            statement=(
                f"In the max task softmax has a lower risk than linear attention at all {len(alphas)} sample ratios "
                f"from {alphas.min():g} on (largest ratio of the two risks)."
            ),
            source="[D26, abstract]",
            measured=ratios[MAX].max(),
            expected=1.0,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative("the same in the spiked task of $ν = 2$", ratios[SPIKED].max()),
        ),
        Claim(
            id="finite-samples-published-advantage",
            statement=(
                f"From $n = {MORE:g} D$ prompts on softmax has a lower risk than linear attention in all three "
                "tasks of the published figure (largest ratio of the two risks)."
            ),
            source="[D26, abstract]",
            measured=max(ratio[more].max() for ratio in ratios.values()),
            expected=1.0,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(
                f"the same up to $n = {FEW:g} D$", max(ratio[few].max() for ratio in ratios.values())
            ),
        ),
    )


def _optimal_claim(panels: Mapping[str, Panel]) -> Claim:
    """Claim that no head, by theory or by training, has a lower risk than the Bayes-optimal estimator."""
    ratios, training_ratios = [], []
    for panel in panels.values():
        optimal = panel.optimal
        ratios += [fixed["risk"].known / optimal[alpha] for (_, alpha), fixed in panel.theory.items()]
        trained = [(limit["risk"], alpha) for (_, alpha), limit in panel.trained.items()]
        ratios += [(risk.value + 2 * risk.std_error) / optimal[alpha] for risk, alpha in trained]
        training_ratios += [
            (2 * fixed["train_loss"].known - NOISE_STD**2) / optimal[alpha]
            for (_, alpha), fixed in panel.theory.items()
        ]
    return Claim(
        id="finite-samples-published-optimal",
        statement=(
            "The risk of a trained head is larger than that of the Bayes-optimal estimator in the three tasks of the "
            f"published figure (smallest of {len(ratios)} ratios, by theory, and by training plus two standard errors)."
        ),
        source="[D26, abstract]",
        box="bayes-optimal-estimator",
        measured=min(ratios),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the error on the training prompts instead of the risk", min(training_ratios)),
    )


def _starts_claims(panels: Mapping[str, Panel]) -> tuple[Claim, Claim, Claim]:
    """Claim that linear attention has one minimum, and softmax several at moderate sample ratios and one at large
    ones."""

    def most(head, smallest):
        """Return the runs of the setting with the largest fraction of seeds on which the start matters."""
        settings = [item for panel in panels.values() for item in panel.starts.items()]
        chosen = [starts for (name, alpha), starts in settings if name == head and alpha >= smallest]
        return max(chosen, key=lambda starts: starts.apart)

    linear, softmax, many = most("linear", 0.0), most("softmax", 0.0), most("softmax", MANY)
    return (
        Claim(
            id="finite-samples-published-one-minimum",
            statement=(
                "At its best ridges, training of linear attention ends at the same objective from random directions "
                "and from the hidden ones, in the three tasks of the published figure (largest fraction of seeds where "
                "not)."
            ),
            source="measured here",
            measured=linear.apart,
            expected=0.0,
            tolerance=0.1,
            relation="≤",
            alternative=Alternative("the same for softmax", softmax.apart),
            successes=linear.differing,
            trials=linear.seeds,
        ),
        Claim(
            id="finite-samples-published-several-minima",
            statement=(
                "At its best ridges, training of softmax ends at different objectives from random directions and from "
                "the hidden ones at some sample ratio of the published figure (largest fraction of seeds)."
            ),
            source="measured here",
            measured=softmax.apart,
            expected=0.5,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative(f"the same from $n = {MANY:g} D$ prompts on", many.apart),
            successes=softmax.differing,
            trials=softmax.seeds,
        ),
        Claim(
            id="finite-samples-published-one-minimum-again",
            statement=(
                f"From $n = {MANY:g} D$ prompts on, training of softmax ends at the same objective from both "
                "starts in the three tasks of the published figure (largest fraction of seeds where not)."
            ),
            source="measured here",
            measured=many.apart,
            expected=0.0,
            tolerance=0.1,
            relation="≤",
            alternative=Alternative("the same over all sample ratios", softmax.apart),
            successes=many.differing,
            trials=many.seeds,
        ),
    )


def _recomputed_claims(recomputed: Recomputed) -> tuple[Claim, Claim]:
    (tracked, now), error = recomputed.fixed, np.hypot(*(fixed.std_error for fixed in recomputed.fixed))
    return (
        Claim(
            id="finite-samples-published-fixed-again",
            statement="A tracked replica fixed point of the max task, recomputed with fewer points, has the same risk.",
            source="measured here",
            measured=now.value,
            expected=tracked.value,
            tolerance=float(comparison_quantile(1) * error),
            reason="99.9 % quantile of one standard normal deviation, times the standard error of the difference",
            std_error=now.std_error,
            alternative=Alternative("the fixed point of the next sample ratio", recomputed.neighbour.value),
        ),
        Claim(
            id="finite-samples-published-run-again",
            statement="A tracked training run of the max task, when repeated, has the same risk.",
            source="measured here",
            measured=recomputed.run.again,
            expected=recomputed.run.tracked,
            tolerance=1e-4,
            reason="the final gradient of L-BFGS, and rounding on another machine",
            alternative=Alternative("a run on other prompts", recomputed.run.other),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per task: curves of theory, markers of training and dotted best risks."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDE, 4.2), sharey=True)
    for panel, (task, rows) in zip(panels, table.groupby("task", sort=False), strict=True):
        for head, colour in COLOURS.items():
            of_head = rows[rows["head"] == head]
            draw_theory(panel, of_head[of_head["kind"] == "theory"], "risk", colour)
            for kind, look in {"trained": {"marker": "o"}, "random start": {"marker": "x"}}.items():
                runs = of_head[of_head["kind"] == kind]
                draw_runs(panel, runs["alpha"], runs["risk"], runs["std_error"], color=colour, **look)
            several = of_head.loc[of_head["apart"] > 0, "alpha"]
            if len(several):
                ends = (several.min() / REACH, several.max() * REACH)
                panel.plot(ends, (0.0, 0.0), color=colour, linewidth=5, solid_capstyle="butt")
            for floor in of_head[of_head["kind"] == "n = ∞"]["risk"]:
                panel.axhline(floor, color=colour, linestyle=":", linewidth=1.5)
        panel.set(xscale="log", ylim=(-0.02, 1.02), title=task.replace("ν", r"$\nu$"), xlabel=r"$\alpha=n/D$")
        plain_ticks(panel, rows.loc[rows["kind"] == "theory", "alpha"])
    last = rows[rows["kind"] == "theory"]
    for head, (alpha, offset, side) in NAMED.items():
        place = last[(last["head"] == head) & (last["alpha"] == alpha)].iloc[0]
        label(panel, alpha, place["risk"], head, COLOURS[head], xytext=offset, ha=side)
    several = rows.loc[rows["apart"] > 0, "alpha"]
    if len(several):
        label(panel, several.median(), 0.0, "several minima", COLOURS["softmax"], xytext=(0, 12), ha="center")
    first = table[(table["task"] == table["task"].iloc[0]) & (table["kind"] == "n = ∞")].drop_duplicates("head")
    for floor in first.itertuples():
        above = floor.risk == first["risk"].max()
        where = {"xytext": (0, 3 if above else -4), "va": "bottom" if above else "top", "fontsize": 10}
        label(panels[0], last["alpha"].min(), floor.risk, rf"{floor.head}, $n=\infty$", COLOURS[floor.head], **where)
    panels[0].set_ylabel("excess risk")
    return figure
