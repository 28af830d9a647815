r"""With a decreasing sharpness the key comes close to its direction, and few runs exchange the roles of key and value.

One panel per experiment of the authors' code, and one for softmax. Curves are thirty runs from starts near the middle,
and dots are their ends. Both directions are found in the upper right corner and, with changed signs, in the lower left.
Exchanged roles end near the middle. Angles are medians of the most frequent end. SGD is descent on drawn prompts.

Alt: Six square panels. In four of them curves run from the middle to the upper right and the lower left corner; in two
of these some curves bend back to the middle, many at a small fixed sharpness and few at a decreasing one. At a fixed
large sharpness all stop at a small horizontal coordinate. With softmax all go to the upper right and stop on the way.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.single_location_training.descents import LEARNED
from chapters.single_location_training.names import in_sentence
from chapters.single_location_training.published_settings import FALLING, FLAT, ON, PROMPTS, SHARP
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink

FOUND, EXCHANGED, NEITHER = "found", "exchanged", "neither"
# Smallest distance of two consecutive points of a drawn path.
APART = 0.01


def numbers(runs: pd.DataFrame) -> Numbers:
    """Return the paths in the plane and their ends, with the claims on final angles and exchanged roles."""
    ends = ends_of(runs)
    kept = [path.iloc[_apart(path[["m_k", "m_v"]].to_numpy())] for _, path in runs.groupby(["experiment", "repeat"])]
    paths = pd.concat(kept).sort_index()[["experiment", "repeat", "step", "m_k", "m_v"]].round(4)
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
    table = Table(paths.merge(angles, on=["experiment", "repeat"], how="left"), columns)
    return Numbers(table, _claims(ends))


def _claims(ends: pd.DataFrame) -> Claims:
    claim = Claims("single-location-training-published", source="measured here")
    by_experiment = ends.groupby("experiment")
    largest = by_experiment[["key_angle", "value_angle"]].max().max(axis=1)
    key = by_experiment["key_angle"].median()
    runs = by_experiment.size()
    exchanged = (ends["outcome"] == EXCHANGED).groupby(ends["experiment"]).sum()
    risk = ends.groupby(["outcome", "experiment"])["risk"].median()
    of_found = risk[EXCHANGED] / risk[FOUND]
    claim.at_most(
        "on-manifold",
        f"At the published settings ({in_sentence(ON)}) all {runs[ON]} runs find both directions up to 15° (measured: "
        "the largest final angle of a key or value, in degrees).",
        largest[ON],
        15.0,
        because="15°, as stated",
        source="[M24]",
        rejects=("the starts are anywhere on the spheres", largest[FLAT]),
    )
    claim.at_most(
        "prompts",
        f"By stochastic gradient descent with the published schedule ({in_sentence(PROMPTS)}) all {runs[PROMPTS]} runs "
        "find both directions up to 10° (measured: the largest final angle of a key or value, in degrees).",
        largest[PROMPTS],
        10.0,
        because="10°, as stated",
        rejects=("$λ$ is 0.1, in descent on the risk", largest[FLAT]),
    )
    claim.at_most(
        "falling",
        f"With the published schedule the key ends within 2° of its direction ({in_sentence(FALLING)}; measured: its "
        "median angle, in degrees).",
        key[FALLING],
        2.0,
        because="2°, as stated",
        rejects=("$λ$ is always 0.1, with fewer steps", key[FLAT]),
    )
    claim.at_least(
        "sharp",
        "At a fixed large sharpness the key is more than 60° from its direction when the published training ends "
        f"({in_sentence(SHARP)}; measured: its median angle, in degrees).",
        key[SHARP],
        60.0,
        because="60°, as stated",
        box="price-of-sharpness",
        rejects=("$λ$ decreases", key[FALLING]),
    )
    claim.at_most(
        "exchange",
        "From starts anywhere on the spheres, at most a fifth of the runs end with exchanged roles if $λ$ decreases "
        "from 1 (measured: the fraction of runs).",
        exchanged[FALLING] / runs[FALLING],
        0.2,
        because="a fifth, as stated",
        box="where-and-what",
        count=(exchanged[FALLING], runs[FALLING]),
        rejects=("$λ$ is always 0.1, with fewer steps", exchanged[FLAT] / runs[FLAT]),
    )
    claim.at_most(
        "exchanged-risk",
        "At the last $λ$ of the published schedule, the end with exchanged roles has no larger risk than the end with "
        "both directions found (measured: the quotient of the two).",
        of_found[FALLING],
        1.0,
        because="at 1 the two risks are equal",
        box="where-and-what",
        rejects=("$λ$ is always 0.1, with fewer steps", of_found[FLAT]),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per experiment: paths, ends, and the number of each kind of end."""
    colours = {FOUND: "C2", EXCHANGED: "C4", NEITHER: ink()}
    figure, panels = plt.subplots(2, 3, figsize=(WIDE, 6.6), sharex=True, sharey=True)
    for panel, (name, paths) in zip(panels.flat, table.groupby("experiment", sort=False), strict=True):
        for (_, outcome), path in paths.groupby(["repeat", "outcome"]):
            panel.plot(path["m_k"], path["m_v"], color=colours[outcome], linewidth=0.8, alpha=0.5)
        last = paths.groupby("repeat").last()
        for line, (outcome, these) in enumerate(last.groupby("outcome", sort=False)):
            panel.plot(these["m_k"], these["m_v"], "o", color=colours[outcome], markersize=5)
            words = f"{len(these)} {outcome}" if outcome != NEITHER else f"{len(these)} find neither"
            panel.text(-1.05, 1.0 - 0.2 * line, words, color=colours[outcome], va="top")
        most = last[last["outcome"] == last["outcome"].mode()[0]]
        words = f"key {most['key_angle'].median():.1f}° off\nvalue {most['value_angle'].median():.1f}° off"
        panel.text(1.1, -1.05, words, color=ink(), ha="right", va="bottom")
        panel.set_title(name.replace(", λ", "\nsharpness $\\lambda$"))
        panel.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    plt.setp(panels[1], xlabel=r"key found, $\langle k,k^{\star}\rangle$")
    plt.setp(panels[:, 0], ylabel=r"value found, $\langle v,v^{\star}\rangle$")
    return figure


def ends_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the last record of every run, with the angles of its vectors in degrees and the kind of its end."""
    last = runs.groupby(["experiment", "repeat"], sort=False).last().reset_index()
    for name, overlap in (("key", "m_k"), ("value", "m_v")):
        last[f"{name}_angle"] = np.degrees(np.arccos(np.minimum(np.abs(last[overlap]), 1.0)))
    own, other = (np.minimum(*np.abs(last[pair].to_numpy().T)) for pair in (["m_k", "m_v"], ["m_kv", "m_vk"]))
    last["outcome"] = np.where(own >= LEARNED, FOUND, np.where(other >= LEARNED, EXCHANGED, NEITHER))
    return last


def _apart(path: np.ndarray) -> list[int]:
    """Return the indices of points that are far enough from the one before, with the first and the last point."""
    kept = [0]
    for i, point in enumerate(path):
        if np.linalg.norm(point - path[kept[-1]]) > APART or i == len(path) - 1:
            kept.append(i)
    return kept
