r"""Training on a long prompt runs fast into the valley of zero infinite risk, then drifts slowly along it.

Exact gradient flow of the risk from a balanced start ($\Sigma=I$, $d=5$, no noise), against training time, at the
prompt lengths of the legend. Top: the mean square error $2R_L$. Middle: the product $bu$, which is 1 at every minimum
of the infinite risk. Bottom: the parameter $u$ of $A=uI$. Dashed: the flow on infinite prompts. Thick ticks at the
right of the bottom panel: the head $A=uI$ of least risk at each length. Longer prompts end at a smaller risk and drift
for a longer time; the end of the drift does not approach the limit of the infinite flow.

Alt: Three charts above each other against logarithmic time. The mean square error falls together for all lengths, then
stops at levels about proportional to one over the length. The product rises to about one and stays. The parameter u
rises with the dashed infinite curve to its limit, then falls to about half of it, later for longer prompts.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.style import power, tokens
from chapters.risk_and_parameters.valley_drift import INFINITE_FLOW_TIME, LATE_DRIFT, Drift, valley_duration
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import WIDE, ink, sequence
from lib.icl import best_in_the_valley

# Smallest length whose drift is compared with the limits for long prompts: at 30,000 tokens the time of the drift is
# still a tenth above its limit.
LONG = 10**6


def numbers(flows: list[Drift]) -> Numbers:
    """Return the table of the flows and the claims on their three stages."""
    shortest, *_, longest = flows
    claims = (_follow_claim(shortest, longest), _end_claim(flows), _duration_claim(longest), _risk_claim(longest))
    return Numbers(_table(flows), claims)


def _table(flows: list[Drift]) -> Table:
    """Return risk, u and bu along each flow and along the infinite flow at the same times."""
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
    frames = [pd.DataFrame({name: getattr(flow, name) for name in columns}) for flow in flows]
    return Table(pd.concat(frames, ignore_index=True), columns)


def _follow_claim(shortest: Drift, longest: Drift) -> Claim:
    """Compare the flow of the longest prompt with the infinite flow at early times."""
    return Claim(
        id="risk-and-parameters-follows",
        statement=(
            f"Up to time {INFINITE_FLOW_TIME:g}, when the infinite flow is almost at its limit, the flow at "
            f"$L = {power(longest.length)}$ stays close to it (largest distance in $u$ and in $bu$)."
        ),
        source="measured here",
        measured=longest.early_distance,
        expected=0.0,
        tolerance=0.02,
        relation="≤",
        reason="small against the values of $u$ and $bu$, which are of order 1; the distance is of order $1/L$",
        alternative=Alternative(
            f"the flow of the shortest prompts, of {power(shortest.length)} tokens", shortest.early_distance
        ),
    )


def _end_claim(flows: list[Drift]) -> Claim:
    """Compare the ends of the flows with the heads of least risk."""
    at_infinite_limit = max(abs(DIMENSION**-0.25 / flow.best_tilt - 1) for flow in flows)
    return Claim(
        id="risk-and-parameters-end",
        statement=(
            "Every flow ends at the head $A = uI$ of least risk for its length, not at the limit of the infinite flow "
            f"(largest relative distance in $u$ over {len(flows)} lengths)."
        ),
        source="measured here",
        measured=max(abs(flow.tilt[-1] / flow.best_tilt - 1) for flow in flows),
        expected=0.0,
        tolerance=1e-4,
        relation="≤",
        reason="accuracy of the integrator and of the search, far below the distance to the infinite flow's limit",
        alternative=Alternative("the flows stay at the limit of the infinite flow, $u = d^{-1/4}$", at_infinite_limit),
    )


def _if_long(claim: Claim, flow: Drift) -> Claim | WithheldClaim:
    """Return a claim on a limit for long prompts, withheld if the prompts are not long."""
    if flow.length >= LONG:
        return claim
    return claim.withheld(f"it is about long prompts, of {power(LONG)} tokens at least")


def _duration_claim(flow: Drift) -> Claim | WithheldClaim:
    """Compare the duration of the late drift with that of the flow of the limit along the valley."""
    expected = valley_duration(*(factor * best_in_the_valley(DIMENSION)[0] ** 0.5 for factor in LATE_DRIFT))
    claim = Claim(
        id="risk-and-parameters-duration",
        statement=(
            f"At $L = {power(flow.length)}$ the drift from {LATE_DRIFT[0]:g} to {LATE_DRIFT[1]:g} times the final $u$ "
            "takes as long as the flow of the limiting risk along the curve $bu = 1$ (time divided by $L$)."
        ),
        source="derived here",
        box="time-of-the-drift",
        measured=flow.late / flow.length,
        expected=expected,
        tolerance=0.02 * expected,
        reason="2 %: corrections of order $1/L$ and the distance of the flow from the curve are smaller",
        alternative=Alternative("the time grows like $√L$", expected / flow.length**0.5),
    )
    return _if_long(claim, flow)


def _risk_claim(flow: Drift) -> Claim | WithheldClaim:
    """Compare the final risk times L with the minimum of its limit over the valley."""
    expected = best_in_the_valley(DIMENSION)[1]
    claim = Claim(
        id="risk-and-parameters-risk",
        statement=(
            "The risk vanishes like $1/L$ although the parameters do not converge to the limit of the infinite flow: "
            f"at $L = {power(flow.length)}$ the final mean square error times $L$ is the least value of its limit over "
            "the valley."
        ),
        source="derived here",
        box="floor-of-the-valley",
        measured=flow.risk[-1] * flow.length,
        expected=expected,
        tolerance=0.002 * expected,
        reason="0.2 %: the next term of the risk is smaller by a factor of order $1/L$",
        alternative=Alternative(
            "the risk of the same prompts at the limit of the infinite flow", flow.risk_at_limit * flow.length
        ),
    )
    return _if_long(claim, flow)


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
            panel.plot(times, values, color=colour, linewidth=2, label=tokens(length))
            if column == "tilt":
                best = [curve["best_tilt"].iloc[0]] * 2
                panel.plot([0.6 * end, end], best, color=colour, linewidth=5, solid_capstyle="butt")
        infinite = {"color": ink(), "linestyle": "--", "linewidth": 1.4, "label": r"$L=\infty$"}
        panel.plot(longest["time"], longest[f"infinite_{column}"], **infinite)
    levels = (0.3 * frame["risk"].min(), 2 * frame["risk"].max())
    panels[0].set(yscale="log", ylabel="mean square error $2R$", ylim=levels)
    panels[1].set(ylabel="$bu$", ylim=(0, 1.1))
    panels[2].set(ylabel="$u$", xlabel="training time", xscale="log", xlim=(frame["time"].min(), end))
    panels[1].legend(loc="lower right", ncols=2)
    return figure
