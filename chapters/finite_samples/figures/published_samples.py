r"""In the paper's three settings softmax is ahead with enough prompts, in the max task at all computed sample ratios.

Prompts have three tokens, and each head has its best ridges; the output 0 has risk 1. Lines: replica theory, and the
Bayes-optimal risk by state evolution. Circles: training from the hidden directions, extrapolated to $D\to\infty$, with
two standard errors. Crosses: random starts at one dimension; the bar spans the sample ratios at which some end in
another minimum. Dotted: each head's best risk.

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
from matplotlib.lines import Line2D

from chapters.finite_samples.extrapolation import deviations
from chapters.finite_samples.published_settings import MAX, RANDOM_STARTS, RUN_ALPHAS, SPIKED, Panel, Starts
from chapters.finite_samples.style import COLOURS, crossing, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import Measured
from chapters.finite_samples.training import HEADS, NOISE_STD
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legible
from lib.statistics import comparison_quantile

# Linear attention is ahead in the spiked tasks up to the first sample ratio, softmax in all tasks from the second on.
FEW, MORE = 0.63, 1.6
# From this sample ratio on random and informed starts end at the same minimum.
MANY = 10.0
# Reasons of bounds.
BORDER = "a start near the border between two minima may lead to either"
EQUAL = "at 1 the risks are equal"
# The factor by which the bar of several minima extends beyond a sample ratio.
REACH = 1.15
# Markers of training, and their names in the picture.
MARKS = {"trained": {"marker": "o"}, "random start": {"marker": "x"}}
NAMES = ("informed start", "random start")


def numbers(panels: Mapping[str, Panel]) -> Numbers:
    """Return theory, training and best risks of the three tasks; claim that they agree and which head is ahead."""
    rows = []
    for task, panel in panels.items():
        optimal = {("Bayes-optimal", alpha): Measured(risk, 0.0) for alpha, risk in panel.optimal.items()}
        kinds = {
            "theory": {setting: fixed["risk"] for setting, fixed in panel.theory.items()} | optimal,
            "trained": {setting: limit["risk"] for setting, limit in panel.trained.items()},
            "random start": {setting: starts.random for setting, starts in panel.starts.items()},
            "n = ∞": {(head, 0.0): Measured(risk, 0.0) for head, risk in panel.floors.items()},
        }
        for kind, risks in kinds.items():
            for (head, alpha), (risk, std_error, converged) in risks.items():
                apart = panel.starts[head, alpha].apart if kind == "random start" else 0.0
                rows.append((task, kind, head, alpha, risk, std_error, converged, apart))
    columns = {
        "task": Column("Task, with prompts of three tokens", "name"),
        "kind": Column(
            "`theory`: replica or state evolution; `trained`: from the hidden directions, $D → ∞$; `random "
            f"start`: from random ones, $D = {RANDOM_STARTS}$; `n = ∞`: best risk of the head",
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
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), _claims(panels))


def _claims(panels: Mapping[str, Panel]) -> Claims:
    claim = Claims("finite-samples-published", source="measured here")
    spiked = [name for name in panels if name != MAX]
    for kind, tasks, names in (("spiked", "the two spiked tasks", spiked), ("max", "the max task", (MAX,))):
        compared = [
            deviations(panels[name].theory, panels[name].trained, RUN_ALPHAS, head) for name in names for head in HEADS
        ]
        same_ratio, next_ratio = (np.concatenate(values) for values in zip(*compared, strict=True))
        claim.agree(
            kind,
            f"In {tasks} of the published figure, risk, four overlaps and training loss of both trained heads, "
            "extrapolated to $D → ∞$, are those of the replica fixed point",
            same_ratio,
            source="[D26, Result 5.1]",
            box="replica-prediction",
            rejects=("the replica fixed point of the next sample ratio", next_ratio),
        )
    ratios, leads = {}, {}
    for name, panel in panels.items():
        (alphas, softmax, softmax_error), (_, linear, linear_error) = (_risks(panel, head) for head in HEADS)
        ratios[name] = softmax / linear
        leads[name] = (softmax - linear) / np.hypot(softmax_error, linear_error)
    few, more = alphas <= FEW, alphas >= MORE
    compared = 2 * int(few.sum())
    claim.at_least(
        "few",
        "In the two spiked tasks of the published figure linear attention has a lower risk than softmax up to $n = "
        f"{FEW:g} D$ prompts, each head at its best ridges (smallest difference, in combined standard errors).",
        min(leads[name][few].min() for name in spiked),
        comparison_quantile(compared),
        because=f"99.9 % quantile of the largest of {compared} standard normal deviations",
        rejects=("the same in the max task", leads[MAX][few].min()),
    )
    claim.at_most(
        "always",
        f"In the max task softmax has a lower risk than linear attention at all {len(alphas)} sample ratios "
        f"from {alphas.min():g} on (largest ratio of the two risks).",
        ratios[MAX].max(),
        1,
        because=EQUAL,
        source="[D26, abstract]",
        rejects=("the same in the spiked task of $ν = 2$", ratios[SPIKED].max()),
    )
    claim.at_most(
        "advantage",
        f"From $n = {MORE:g} D$ prompts on softmax has a lower risk than linear attention in all three "
        "tasks of the published figure (largest ratio of the two risks).",
        max(ratio[more].max() for ratio in ratios.values()),
        1,
        because=EQUAL,
        source="[D26, abstract]",
        rejects=(f"the same up to $n = {FEW:g} D$", max(ratio[few].max() for ratio in ratios.values())),
    )
    above, errors_above = [], []
    for panel in panels.values():
        for (_, alpha), fixed in panel.theory.items():
            above.append(fixed["risk"].known / panel.optimal[alpha])
            errors_above.append((2 * fixed["train_loss"].known - NOISE_STD**2) / panel.optimal[alpha])
        for (_, alpha), limit in panel.trained.items():
            above.append((limit["risk"].value + 2 * limit["risk"].std_error) / panel.optimal[alpha])
    claim.at_least(
        "optimal",
        "The risk of a trained head is larger than that of the Bayes-optimal estimator in the three tasks of the "
        f"published figure (smallest of {len(above)} ratios, by theory, and by training plus two standard errors).",
        min(above),
        1,
        because=EQUAL,
        source="[D26, abstract]",
        box="bayes-optimal-estimator",
        rejects=("the error on the training prompts instead of the risk", min(errors_above)),
    )
    linear, softmax, many = _most(panels, "linear", 0.0), _most(panels, "softmax", 0.0), _most(panels, "softmax", MANY)
    claim.at_most(
        "one-minimum",
        "At its best ridges, training of linear attention ends at the same objective from random directions and from "
        "the hidden ones, in the three tasks of the published figure (largest fraction of seeds where not).",
        linear.apart,
        0,
        within=0.1,
        because=BORDER,
        count=(linear.differing, linear.seeds),
        rejects=("the same for softmax", softmax.apart),
    )
    claim.at_least(
        "several-minima",
        "At its best ridges, training of softmax ends at different objectives from random directions and from "
        "the hidden ones at some sample ratio of the published figure (largest fraction of seeds).",
        softmax.apart,
        0.5,
        because="half of the seeds, so that neither end is an exception",
        count=(softmax.differing, softmax.seeds),
        rejects=(f"the same from $n = {MANY:g} D$ prompts on", many.apart),
    )
    claim.at_most(
        "one-minimum-again",
        f"From $n = {MANY:g} D$ prompts on, training of softmax ends at the same objective from both "
        "starts in the three tasks of the published figure (largest fraction of seeds where not).",
        many.apart,
        0,
        within=0.1,
        because=BORDER,
        count=(many.differing, many.seeds),
        rejects=("the same over all sample ratios", softmax.apart),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per task: curves of theory, markers of training and dotted best risks."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDE, 4.4), sharey=True)
    for panel, (task, rows) in zip(panels, table.groupby("task", sort=False), strict=True):
        theory = rows[rows["kind"] == "theory"]
        for place, (head, colour) in zip((0.92, 0.99, 0.85), COLOURS.items(), strict=True):
            of_head = rows[rows["head"] == head]
            draw_theory(panel, of_head[of_head["kind"] == "theory"], "risk", colour)
            for kind, look in MARKS.items():
                runs = of_head[of_head["kind"] == kind]
                draw_runs(panel, runs["alpha"], runs["risk"], runs["std_error"], color=colour, **look)
            several = of_head.loc[of_head["apart"] > 0, "alpha"]
            if len(several):
                ends = (several.min() / REACH, several.max() * REACH)
                panel.plot(ends, (0.0, 0.0), color=colour, linewidth=5, solid_capstyle="butt")
                if panel is panels[1]:
                    label(panel, ends[1], 0.04, "some in other\nminima", colour, fontsize=10)
            for floor in of_head[of_head["kind"] == "n = ∞"]["risk"]:
                panel.axhline(floor, color=colour, linestyle=":", linewidth=1.5)
            panel.text(0.99, place, head, color=legible(colour), ha="right", va="top", transform=panel.transAxes)
        ahead = crossing(theory)
        if ahead:
            panel.axvline(ahead, ymax=0.25, color=ink(), linestyle=":", linewidth=1.5)
        where, words = (ahead, "softmax\nahead") if ahead else (theory["alpha"].min(), "softmax\nahead\nthroughout")
        label(panel, where, 0.17, words, COLOURS["softmax"], fontweight="bold")
        panel.set(xscale="log", ylim=(-0.02, 1.02), title=task.replace("ν", r"$\nu$"), xlabel=r"$\alpha=n/D$")
        plain_ticks(panel, theory["alpha"])
    first = table[(table["task"] == table["task"].iloc[0]) & (table["kind"] == "n = ∞")].drop_duplicates("head")
    for floor in first.itertuples():
        above = floor.risk == first["risk"].max()
        where = {"xytext": (0, 3 if above else -4), "va": "bottom" if above else "top", "fontsize": 10}
        label(panels[0], theory["alpha"].min(), floor.risk, rf"{floor.head}, $n=\infty$", COLOURS[floor.head], **where)
    marks = [Line2D([], [], color=ink(), linestyle="", fillstyle="none", **look) for look in MARKS.values()]
    panels[0].legend(marks, list(NAMES), loc="center left", bbox_to_anchor=(0, 0.32), handletextpad=0.1, fontsize=10)
    panels[0].set_ylabel("excess risk")
    return figure


def _risks(panel: Panel, head: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sample ratios, risks and standard errors of a head by theory."""
    risks = {alpha: fixed["risk"] for (name, alpha), fixed in panel.theory.items() if name == head}
    return np.asarray(list(risks)), *np.asarray([(risk.known, risk.std_error) for risk in risks.values()]).T


def _most(panels: Mapping[str, Panel], head: str, smallest: float) -> Starts:
    """Return the runs of the setting, from a sample ratio on, with the most seeds on which the start matters."""
    settings = [item for panel in panels.values() for item in panel.starts.items()]
    chosen = [starts for (name, alpha), starts in settings if name == head and alpha >= smallest]
    return max(chosen, key=lambda starts: starts.apart)
