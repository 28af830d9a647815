r"""At finite size, weight and risk change much more gradually than in the mean-field limit.

The horizontal axis is the overlap of the key with the hidden direction; the value is $v=v^\star$. Left: the mean weight
of the relevant token. Right: the excess risk. Solid: exact. Points: simulated prompts, with two standard errors, mostly
smaller than the points. Dashed: the mean-field limit of {cite:t}`Do25` at the same parameters.

Alt: Two panels. Left, a solid curve rises gradually from zero to one, with points on it; a dashed curve rises steeply
to the right of its middle. Right, a solid curve falls gradually from far above one to near zero, with points on it; a
dashed curve stays at one and then falls steeply.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.threshold_in_temperature.published_size import Curves, Simulation, Size
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label


def numbers(size: Size, curves: Curves, simulation: Simulation) -> Numbers:
    """Return weights and risks by overlap; claim that exact and simulated ones agree."""
    at = simulation.curves
    groups = [
        {"kind": "exact", "overlap": curves.overlaps, "weight": curves.weight, "risk": curves.risk},
        {"kind": "limit", "overlap": curves.overlaps, "weight": curves.limit_weight, "risk": curves.limit_risk},
        {
            "kind": "simulated",
            "overlap": at.overlaps,
            "weight": simulation.weight,
            "weight_std_error": simulation.weight_std_error,
            "risk": simulation.risk,
            "risk_std_error": simulation.risk_std_error,
        },
    ]
    columns = {
        "kind": Column("`exact`; `limit`, the mean-field limit; or `simulated` prompts", "name"),
        "dimension": Column("Dimension $d$ of the tokens"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "overlap": Column("Overlap $m_k$ of the key with the hidden direction"),
        "weight": Estimate("Mean weight of the relevant token"),
        "risk": Column("Excess risk over $γ²$", std_error="risk_std_error", absolute=1e-9),
        "risk_std_error": Column("Standard error of risk", moves_with="risk"),
    }
    claim = Claims("threshold-in-temperature")
    means = np.array([simulation.weight, simulation.risk])
    errors = np.array([simulation.weight_std_error, simulation.risk_std_error])
    limits = np.array([at.limit_weight, at.limit_risk])
    claim.agree(
        "simulated",
        f"Exact and simulated weights and risks agree at {at.overlaps.size} overlaps",
        (means - [at.weight, at.risk]) / errors,
        source="derived here",
        box="weights-in-temperature",
        rejects=("the mean-field limit, at the same dimension and length", (means - limits) / errors),
    )
    claim.at_least(
        "gap",
        f"At $d = {size.dimension:,}$ and $L = {size.length:,}$ the exact mean weight of the relevant token differs "
        "from the mean-field limit by more than a quarter at some overlap (measured: the largest difference).",
        np.abs(curves.weight - curves.limit_weight).max(),
        0.25,
        because="a quarter of the whole range is what the text calls far",
        source="measured here",
        comparisons=curves.overlaps.size,
        rejects=("the mean-field limit holds at this size", 0.0),
    )
    shared = {"dimension": size.dimension, "length": size.length}
    return Numbers(Table.of([shared | group for group in groups], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw weight and risk in two panels: exact, simulated, and in the limit."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True)
    exact, limit, points = (table[table["kind"] == kind] for kind in ("exact", "limit", "simulated"))
    for axes, name in zip(panels, ("weight", "risk"), strict=True):
        axes.plot(exact["overlap"], exact[name], color="C0", linewidth=2)
        axes.plot(limit["overlap"], limit[name], color=ink(), linestyle="--", linewidth=1.5)
        error_bars(axes, points["overlap"], points[name], points[f"{name}_std_error"], color="C0", marker="o")
        axes.set(xlabel="overlap of the key, $m_k$", xlim=(0, table["overlap"].max()))
        axes.set_ylim(0, 1.05 * max(exact[name].max(), 1.0))
    panels[0].set_ylabel("mean weight of the relevant token")
    panels[1].set_ylabel("excess risk (output 0: 1)")
    size = table.iloc[0]
    text = f"finite size:\n$d={size['dimension']:.0f}$, $L={size['length']:.0f}$,\nexact and simulated"
    label(panels[1], 0.25, np.interp(0.25, exact["overlap"], exact["risk"]), text, "C0", va="bottom", xytext=(12, 6))
    label(panels[1], 0.0, 0.9, "mean-field limit", ink(), xytext=(6, -6))
    return figure
