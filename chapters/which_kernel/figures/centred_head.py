r"""A softmax head minus the plain average has most of what an opposite pair gains.

The vertical axis is the mean square error at one prompt length, with the best value at each key $\omega$: of one
softmax head (top), of the head from whose weights $1/L$ is subtracted (middle), and of the pair with keys $\pm\omega$
(bottom). Curves are exact; points are simulated prompts with the centred head, with two standard errors. The dashed
line is debiased gradient descent, the limit of zero keys of both repaired heads.

Alt: Line chart. The curve of one head is highest and has a shallow minimum. The curve of the centred head starts at a
dashed line and rises slowly, with points on it. The curve of the pair stays closer to the dashed line.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.which_kernel.centred import CentredCurvature, CentredHead
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point, legend_with


def numbers(head: CentredHead, curvature: CentredCurvature) -> Numbers:
    """Return exact and simulated errors by key, and the claims on the simulation and on small keys."""
    shared = {"length": head.length, "debiased": head.debiased}
    there = {"head": "centred", "key": head.simulated_keys}
    groups = [
        {"head": "plain", "kind": "exact", "key": head.keys, "error": head.plain},
        {"head": "centred", "kind": "exact", "key": head.keys, "error": head.centred},
        {"head": "pair", "kind": "exact", "key": head.keys, "error": head.pair},
        there | {"kind": "exact", "error": head.centred_there},
        there | {"kind": "simulated", "error": head.simulated, "std_error": head.std_error},
    ]
    columns = {
        "head": Column("`plain`: one softmax head; `centred`: one centred head; `pair`: the keys $±ω$", "name"),
        "kind": Column("`exact` or `simulated`", "name"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "key": Column("Key $ω$"),
        "error": Estimate("Mean square error", std_error="std_error"),
        "debiased": Column("Mean square error of debiased gradient descent"),
    }
    table = Table.of([shared | group for group in groups], columns)
    claim = Claims("which-kernel-centred", source="derived here", box="centred-heads")
    claim.agree(
        "simulated",
        f"At {head.simulated.size} keys, theory and simulation of the centred head agree",
        (head.simulated - head.centred_there) / head.std_error,
        rejects=(
            "the subtraction does not change the error at the same value",
            (head.simulated - head.plain_there) / head.std_error,
        ),
    )
    claim.equal(
        "curvature",
        f"At $L = {curvature.length:,}$ the coefficient of $ω²$ in the error of a centred head is that of the formula, "
        "and positive.",
        curvature.measured,
        curvature.predicted,
        within=curvature.uncertainty,
        because="the amount by which the extrapolation to zero keys changed the value at the smaller key",
        rejects=("a centred head behaves like an opposite pair", curvature.pair),
    )
    single, centred, pair = (errors.min() for errors in (head.plain, head.centred, head.pair))
    claim.at_least(
        "share",
        f"At $L = {head.length:,}$ the best centred head has at least nine tenths of the pair's gain over one softmax "
        "head, with the best key on the grid.",
        (single - centred) / (single - pair),
        0.9,
        because="nine tenths is what the text calls most of the gain",
        source="measured here",
        box=None,
        rejects=("subtracting the average does not help", 0),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the three curves, the simulated points and debiased gradient descent."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    exact = {head: rows.sort_values("key") for head, rows in table[table["kind"] == "exact"].groupby("head")}
    points, debiased = table[table["kind"] == "simulated"], table["debiased"].iloc[0]
    for head, colour, name, shift in (
        ("plain", "C0", "one head", (6, 4)),
        ("centred", "C2", "centred head", (6, 0)),
        ("pair", "C3", "opposite pair", (6, 0)),
    ):
        curve = exact[head]
        axes.plot(curve["key"], curve["error"], color=colour, linewidth=2)
        label(axes, curve["key"].iloc[-1], curve["error"].iloc[-1], name, colour, xytext=shift)
    error_bars(axes, points["key"], points["error"], points["std_error"], color="C2", marker="o")
    axes.axhline(debiased, color=ink(), linestyle="--", linewidth=1.3)
    axes.set(xlabel=r"key $\omega$", ylabel="mean square error", xlim=(0, 1.25 * table["key"].max()))
    axes.set_ylim(0.8 * debiased, 1.1 * exact["plain"]["error"].max())
    lines = {"exact": legend_line("-"), "debiased gradient descent": legend_line("--", 1.3)}
    legend_with(axes, lines | {"simulated": legend_point()}, loc="upper right")
    return figure
