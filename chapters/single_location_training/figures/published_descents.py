r"""With a decreasing sharpness the key comes close to its direction, and few runs exchange the roles of key and value.

One panel per experiment of the authors' code, and one for softmax. The axes are $\langle k,k^\star\rangle$ and $\langle
v,v^\star\rangle$. Curves are thirty runs from random starts near the middle, and dots are their ends. Both directions
are found in the upper right corner and, by erf attention with the common sign changed, in the lower left. Colours show
how a run ends: with both directions found, with the roles exchanged, which is near the middle, or neither. Each panel
gives the median angles of the most frequent end. The fifth panel is stochastic gradient descent on simulated prompts,
and the other ones are gradient descent on the risk.

Alt: Six square panels. In four of them curves run from the middle to the upper right and the lower left corner; in two
of these some curves bend back to the middle, many at a small fixed sharpness and few at a decreasing one. At a fixed
large sharpness all stop at a small horizontal coordinate. With softmax all go to the upper right and stop on the way.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from chapters.single_location_training.descents import LEARNED
from chapters.single_location_training.names import in_sentence
from chapters.single_location_training.published_settings import FALLING, FLAT, ON, PROMPTS, SHARP, Again
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink

FOUND, EXCHANGED, NEITHER = "found", "exchanged", "neither"
# Smallest distance of two consecutive points of a drawn path.
APART = 0.01


def numbers(runs: pd.DataFrame, again: Again) -> Numbers:
    """Return the paths in the plane and their ends, with the claims on final angles and exchanged roles."""
    ends = ends_of(runs)
    return Numbers(_table(runs, ends), (*_angle_claims(ends), *_exchange_claims(ends), _again_claim(again)))


def ends_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the last record of every run, with the angles of its vectors in degrees and the kind of its end."""
    last = runs.groupby(["experiment", "repeat"], sort=False).last().reset_index()
    for name, overlap in (("key", "m_k"), ("value", "m_v")):
        last[f"{name}_angle"] = np.degrees(np.arccos(np.minimum(np.abs(last[overlap]), 1.0)))
    own, other = (np.minimum(*np.abs(last[pair].to_numpy().T)) for pair in (["m_k", "m_v"], ["m_kv", "m_vk"]))
    last["outcome"] = np.where(own >= LEARNED, FOUND, np.where(other >= LEARNED, EXCHANGED, NEITHER))
    return last


def _table(runs: pd.DataFrame, ends: pd.DataFrame) -> Table:
    """Return thinned paths; every point has the final angles of its run."""
    kept = [mine.iloc[_apart(mine[["m_k", "m_v"]].to_numpy())] for _, mine in runs.groupby(["experiment", "repeat"])]
    frame = pd.concat(kept).sort_index()[["experiment", "repeat", "step", "m_k", "m_v"]]
    angles = ends[["experiment", "repeat", "outcome", "key_angle", "value_angle"]].round(2)
    columns = {
        "experiment": Column("Start, sharpness $λ$, and SGD or softmax", "name"),
        "repeat": Column("Number of the run", "name"),
        "step": Column("Steps taken", "steps"),
        "m_k": Column("$⟨k, k*⟩$"),
        "m_v": Column("$⟨v, v*⟩$"),
        "outcome": Column(
            f"`found`: both overlaps are at least {LEARNED:g}; `exchanged`: both cross overlaps are; `neither`", "name"
        ),
        "key_angle": Column("Angle between $k$ and $k*$ at the end, up to the sign", "degrees"),
        "value_angle": Column("Angle between $v$ and $v*$ at the end, up to the sign", "degrees"),
    }
    return Table(frame.round(4).merge(angles, on=["experiment", "repeat"], how="left")[list(columns)], columns)


def _apart(path: np.ndarray) -> list[int]:
    kept = [0]
    for i, point in enumerate(path):
        if np.linalg.norm(point - path[kept[-1]]) > APART or i == len(path) - 1:
            kept.append(i)
    return kept


def _of(ends: pd.DataFrame, name: str) -> pd.DataFrame:
    return ends[ends["experiment"] == name]


def _claim(short: str, words: str, relation: str, expected: float, **rest: Any) -> Claim:
    name = f"single-location-training-published-{short}"
    how = {"source": "measured here", "tolerance": 0.0, "relation": relation, "expected": expected}
    return Claim(id=name, statement=words, **{**how, **rest})


def _angle_claims(ends: pd.DataFrame) -> tuple[Claim, ...]:
    def largest(name):
        return float(_of(ends, name)[["key_angle", "value_angle"]].max().max())

    def median(name):
        return float(_of(ends, name)["key_angle"].median())

    found = (
        f"all {len(_of(ends, ON))} runs find both directions (measured: the largest final angle of a key or value, in "
        "degrees)."
    )
    return (
        _claim(
            "on-manifold",
            f"At the published settings ({in_sentence(ON)}) {found}",
            "≤",
            15.0,
            source="[M24]",
            measured=largest(ON),
            alternative=Alternative("the starts are anywhere on the spheres", largest(FLAT)),
        ),
        _claim(
            "prompts",
            f"By stochastic gradient descent with the published schedule ({in_sentence(PROMPTS)}) {found}",
            "≤",
            10.0,
            measured=largest(PROMPTS),
            alternative=Alternative("$λ$ is 0.1, in descent on the risk", largest(FLAT)),
        ),
        _claim(
            "falling",
            f"With the published schedule the key ends near its direction ({in_sentence(FALLING)}; measured: its "
            "median angle, in degrees).",
            "≤",
            2.0,
            measured=median(FALLING),
            alternative=Alternative("$λ$ is always 0.1", median(FLAT)),
        ),
        _claim(
            "sharp",
            "At a fixed large sharpness the key is far from its direction when the published training ends "
            f"({in_sentence(SHARP)}; measured: its median angle, in degrees).",
            "≥",
            60.0,
            box="price-of-sharpness",
            measured=median(SHARP),
            alternative=Alternative("$λ$ decreases", median(FALLING)),
        ),
    )


def _exchange_claims(ends: pd.DataFrame) -> tuple[Claim, Claim]:
    def exchanged(name):
        return int((_of(ends, name)["outcome"] == EXCHANGED).sum())

    def fraction(name):
        return exchanged(name) / len(_of(ends, name))

    def ratio(name):
        risks = _of(ends, name).groupby("outcome")["risk"].median()
        return float(risks.get(EXCHANGED, np.nan) / risks.get(FOUND, np.nan))

    return (
        _claim(
            "exchange",
            "From starts anywhere on the spheres, fewer runs end with exchanged roles if $λ$ decreases from 1 than if "
            "it is always 0.1 (measured: the fraction of runs).",
            "≤",
            0.2,
            box="where-and-what",
            measured=fraction(FALLING),
            successes=exchanged(FALLING),
            trials=len(_of(ends, FALLING)),
            alternative=Alternative("$λ$ is always 0.1", fraction(FLAT)),
        ),
        _claim(
            "exchanged-risk",
            "At the last $λ$ of the published schedule, the end with exchanged roles has no larger risk than the end "
            "with both directions found (measured: the quotient of the two).",
            "≤",
            1.0,
            box="where-and-what",
            measured=ratio(FALLING),
            alternative=Alternative("$λ$ is always 0.1", ratio(FLAT)),
        ),
    )


def _again_claim(again: Again) -> Claim:
    return Claim(
        id="single-location-training-published-again",
        statement="A recomputed run follows its tracked path (measured: the largest difference of an overlap).",
        source="measured here",
        measured=again.same,
        expected=0.0,
        tolerance=1e-3,
        reason="the fifth digit of the tracked table, and rounding on another machine",
        relation="≤",
        alternative=Alternative("the run has another start", again.other),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per experiment: paths, ends, and the number of each kind of end."""
    experiments = list(dict.fromkeys(table["experiment"]))
    colours = {FOUND: "C2", EXCHANGED: "C4", NEITHER: ink()}
    figure, panels = plt.subplots(2, 3, figsize=(WIDE, 6.6), sharex=True, sharey=True)
    for panel, name in zip(panels.flat, experiments, strict=True):
        mine = table[table["experiment"] == name]
        for (_, outcome), path in mine.groupby(["repeat", "outcome"]):
            panel.plot(path["m_k"], path["m_v"], color=colours[outcome], linewidth=0.8, alpha=0.5)
        last = mine.groupby("repeat").last()
        for line, (outcome, these) in enumerate(last.groupby("outcome", sort=False)):
            panel.plot(these["m_k"], these["m_v"], "o", color=colours[outcome], markersize=5)
            words = f"{len(these)} {outcome}" if outcome != NEITHER else f"{len(these)} find neither"
            panel.text(-1.05, 1.0 - 0.2 * line, words, color=colours[outcome], va="top")
        most = last[last["outcome"] == last["outcome"].mode()[0]]
        words = f"key {most['key_angle'].median():.1f}°\nvalue {most['value_angle'].median():.1f}°"
        panel.text(1.1, -1.05, words, color=ink(), ha="right", va="bottom")
        panel.set_title(name.replace("λ", "$\\lambda$"))
        panel.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        panel.xaxis.set_major_locator(FixedLocator([-1, 0, 1]))
        panel.yaxis.set_major_locator(FixedLocator([-1, 0, 1]))
    for panel in panels[1]:
        panel.set_xlabel(r"$\langle k,k^{\star}\rangle$")
    for panel in panels[:, 0]:
        panel.set_ylabel(r"$\langle v,v^{\star}\rangle$")
    return figure
