r"""Training on a long prompt runs fast into the valley of zero infinite risk, then drifts slowly along it.

Exact gradient flow of the risk from a balanced start ($\Sigma=I$, $d=5$, no noise), for $A=uI$ and gain $b$.
Dashed: the flow on infinite prompts. Thick ticks: the least risk at each length. Longer prompts end at a
smaller risk and drift for a longer time; the end of the drift does not approach that of the infinite flow.

Alt: Three charts above each other against logarithmic time. The mean square error falls together for all lengths, then
stops at levels about proportional to one over the length. The product rises to about one and stays. The parameter u
rises with the dashed infinite curve to its limit, then falls to about half of it, later for longer prompts.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.style import tokens
from chapters.risk_and_parameters.valley_drift import INFINITE_FLOW_TIME, LATE_DRIFT, Drift, late_tilts, valley_duration
from chapters.wording import power
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence
from lib.icl import best_in_the_valley

# Smallest length whose drift is compared with the limits for long prompts: at 30,000 tokens the time of the drift is
# still a tenth above its limit.
LONG = 10**6


def numbers(flows: list[Drift]) -> Numbers:
    """Return risk, u and bu along each flow and along the infinite flow at the same times; claim the three stages."""
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "time": Column("Time of the gradient flow of $R$"),
        "risk": Column("Mean square error $2R_L$ along the flow, exact"),
        "tilt": Column("$u$ of $A = uI$, exact"),
        "product": Column("Product $b u$, exact"),
        "infinite_risk": Column(
            "Mean square error $2R$ of the infinite prompt along the infinite flow", absolute=1e-12
        ),
        "infinite_tilt": Column("$u$ along the infinite flow"),
        "infinite_product": Column("Product $b u$ along the infinite flow"),
        "best_tilt": Column("$u$ of the head of least risk at this length"),
    }
    groups = [{name: getattr(flow, name) for name in columns} for flow in flows]
    return Numbers(Table.of(groups, columns), _claims(flows))


def _claims(flows: list[Drift]) -> Claims:
    claim = Claims("risk-and-parameters", source="measured here")
    shortest, *_, longest = flows
    length = power(longest.length)
    claim.at_most(
        "follows",
        f"Up to time {INFINITE_FLOW_TIME:g}, when the infinite flow is almost at its limit, the flow at $L = {length}$ "
        "stays close to it (largest distance in $u$ and in $bu$).",
        longest.early_distance,
        0,
        within=0.02,
        because="small against the values of $u$ and $bu$, which are of order 1; the distance is of order $1/L$",
        rejects=(f"the flow of the shortest prompts, of {power(shortest.length)} tokens", shortest.early_distance),
    )
    claim.at_most(
        "end",
        "Every flow ends at the head $A = uI$ of least risk for its length, not at the limit of the infinite flow "
        f"(largest relative distance in $u$ over {len(flows)} lengths).",
        max(abs(flow.tilt[-1] / flow.best_tilt - 1) for flow in flows),
        0,
        within=1e-4,
        because="accuracy of the integrator and of the search, far below the distance to the infinite flow's limit",
        rejects=(
            "the flows stay at the limit of the infinite flow, $u = d^{-1/4}$",
            max(abs(DIMENSION**-0.25 / flow.best_tilt - 1) for flow in flows),
        ),
    )
    on_long_prompts = (longest.length >= LONG, f"it is about long prompts, of {power(LONG)} tokens at least")
    duration, least = valley_duration(*late_tilts()), best_in_the_valley(DIMENSION).limit
    claim.equal(
        "duration",
        f"At $L = {length}$ the drift from {LATE_DRIFT[0]:g} to {LATE_DRIFT[1]:g} times the final $u$ takes as long as "
        "the flow of the limiting risk along the curve $bu = 1$ (time divided by $L$).",
        longest.late / longest.length,
        duration,
        within=0.02 * duration,
        because="2 %: corrections of order $1/L$ and the distance of the flow from the curve are smaller",
        source="derived here",
        box="time-of-the-drift",
        rejects=("the time grows like $√L$", duration / longest.length**0.5),
        requires=on_long_prompts,
    )
    claim.equal(
        "risk",
        "The risk vanishes like $1/L$ although the parameters do not converge to the limit of the infinite flow: at "
        f"$L = {length}$ the final mean square error times $L$ is the least value of its limit over the valley.",
        longest.risk[-1] * longest.length,
        least,
        within=0.002 * least,
        because="0.2 %: the next term of the risk is smaller by a factor of order $1/L$",
        source="derived here",
        box="floor-of-the-valley",
        rejects=(
            "the risk of the same prompts at the limit of the infinite flow",
            longest.risk_at_limit * longest.length,
        ),
        requires=on_long_prompts,
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw risk, bu and u above each other, with one curve per length and the infinite flow."""
    frame = table[table["time"] > 0]
    figure, panels = plt.subplots(3, 1, figsize=(WIDE, 8.0), sharex=True, height_ratios=(3, 2, 3))
    lengths, end = sorted(frame["length"].unique().tolist()), frame["time"].max()
    longest = frame[frame["length"] == lengths[-1]]
    for panel, column in zip(panels, ("risk", "product", "tilt"), strict=True):
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = frame[frame["length"] == length]
            # the flow stays at its end
            times, values = [*curve["time"], end], [*curve[column], curve[column].iloc[-1]]
            panel.plot(times, values, color=colour, linewidth=2)
            if column == "risk":
                label(panel, end, values[-1], tokens(length), colour)
            if column == "tilt":
                best = curve["best_tilt"].iloc[0]
                panel.plot([0.6 * end, end], [best, best], color=colour, linewidth=5, solid_capstyle="butt")
                half = (curve["tilt"].max() + curve["tilt"].iloc[-1]) / 2
                falling = curve[(curve["tilt"] > half) & (curve["time"] > 1)].iloc[-1]
                label(panel, falling["time"], falling["tilt"], tokens(length), colour)
        panel.plot(longest["time"], longest[f"infinite_{column}"], color=ink(), linestyle="--", linewidth=1.4)
    first = longest["time"].iloc[0]
    label(panels[1], end, 1, "valley $bu=1$", ink(), xytext=(0, 9), ha="right")
    label(panels[1], first, 1, "fast: into the valley", ink(), xytext=(4, 9))
    label(panels[2], end, longest["infinite_tilt"].max(), r"$L=\infty$", ink())
    label(panels[2], end, frame["best_tilt"].max(), "best $u$", ink())
    label(panels[2], 1e3 * first, longest["tilt"].max(), "slow: drift along the valley", ink(), xytext=(0, 12))
    panels[0].set(yscale="log", ylabel="mean square error $2R$")
    panels[0].set_ylim(0.3 * frame["risk"].min(), 2 * frame["risk"].max())
    panels[1].set(ylabel="product $bu$", ylim=(0, 1.25))
    panels[2].set(ylabel="key $u$", xlabel="training time", xscale="log", xlim=(frame["time"].min(), end))
    panels[2].set_ylim(top=1.12 * longest["infinite_tilt"].max())
    return figure
