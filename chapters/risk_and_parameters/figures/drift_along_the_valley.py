r"""Training with a long prompt: fast to the valley, then slowly along it.

Gradient flow of the exact risk from a balanced start ($\Sigma=I$, $d=5$, no noise), against training time. Top:
mean square error $2R_L$. Middle: $bu$, which an infinite prompt wants to be 1. Bottom: $u$ of $A=uI$. Dashed:
the infinite prompt. Short ticks at the right: the head of least risk at each length. The risk of a long
prompt vanishes with its length; the time of the drift grows with it, and its end does not approach the infinite
flow's limit.

Alt: Three charts above each other against logarithmic time. The mean square error falls together for all lengths,
then stops at levels proportional to one over the length. The product rises to one and stays. The parameter u
rises with the dashed infinite curve to its limit, then falls to about half of it, later for longer prompts.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.style import power, tokens
from chapters.risk_and_parameters.valley_drift import FOLLOWED, LATE, Drift, valley_duration
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, sequence
from lib.icl import best_in_the_valley


def numbers(flows: list[Drift]) -> Numbers:
    """Each flow beside the infinite one: early it follows, then it drifts, and ends where its own risk is least."""
    shortest, *_, longest = flows
    claims = (_follow_claim(shortest, longest), _end_claim(flows), _duration_claim(longest), _risk_claim(longest))
    return Numbers(_table(flows), claims)


def _table(flows: list[Drift]) -> Table:
    """Risk, tilt and product along each flow, beside the infinite one."""
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "time": Column("Time of the gradient flow of R"),
        "risk": Column("Mean square error 2R_L along the flow, exact"),
        "tilt": Column("u of A = uI, exact"),
        "product": Column("b u, which the infinite prompt wants to be 1"),
        "infinite_risk": Column("2R of the infinite prompt along its own flow", absolute=1e-12),
        "infinite_tilt": Column("u along the infinite flow"),
        "infinite_product": Column("b u along the infinite flow"),
        "best_tilt": Column("u of the head of least risk at this length"),
    }
    frames = [pd.DataFrame({name: getattr(flow, name) for name in columns}) for flow in flows]
    return Table(pd.concat(frames, ignore_index=True), columns)


def _follow_claim(shortest: Drift, longest: Drift) -> Claim:
    """The longest prompt's parameters beside the infinite flow's, early."""
    return Claim(
        id="risk-and-parameters-follows",
        statement=(
            f"Up to time {FOLLOWED:g}, when the infinite flow has arrived, the flow at L = {power(longest.length)} "
            "follows it: the largest distance in u and in bu."
        ),
        source="measured here",
        measured=longest.early_distance,
        expected=0.0,
        tolerance=0.02,
        relation="≤",
        alternative=Alternative(f"prompts of {power(shortest.length)} tokens", shortest.early_distance),
    )


def _end_claim(flows: list[Drift]) -> Claim:
    """Where the flows end, against the best head of their length."""
    elsewhere = max(abs(DIMENSION**-0.25 / flow.best_tilt - 1) for flow in flows)
    return Claim(
        id="risk-and-parameters-end",
        statement=(
            "Every flow ends at the head of least risk for its length, not at the limit of the infinite flow: the "
            f"largest relative distance in u, for {len(flows)} lengths."
        ),
        source="measured here",
        measured=max(abs(flow.tilt[-1] / flow.best_tilt - 1) for flow in flows),
        expected=0.0,
        tolerance=1e-4,
        relation="≤",
        alternative=Alternative("they stay at the infinite flow's limit, d^{-1/4}", elsewhere),
    )


def _duration_claim(flow: Drift) -> Claim:
    """How long the late drift takes, against the flow that the law of the valley drives along it."""
    expected = valley_duration(*(factor * best_in_the_valley(DIMENSION)[0] ** 0.5 for factor in LATE))
    return Claim(
        id="risk-and-parameters-duration",
        statement=(
            f"At L = {power(flow.length)} the drift from {LATE[0]:g} to {LATE[1]:g} times the final u takes the time, "
            "divided by L, that the flow along the curve bu = 1 takes under the limit law."
        ),
        source="derived here",
        box="time-of-the-drift",
        measured=flow.late / flow.length,
        expected=expected,
        tolerance=0.02 * expected,
        alternative=Alternative("a time proportional to √L", expected / flow.length**0.5),
    )


def _risk_claim(flow: Drift) -> Claim:
    """The final risk times L against the minimum of the law."""
    expected = best_in_the_valley(DIMENSION)[1]
    return Claim(
        id="risk-and-parameters-risk",
        statement=(
            f"The risk vanishes like 1/L though the parameters do not converge to the infinite flow's limit: at L = "
            f"{power(flow.length)} the flow ends at a mean square error "
            "times L equal to the least value of the limit law."
        ),
        source="derived here",
        box="floor-of-the-valley",
        measured=flow.risk[-1] * flow.length,
        expected=expected,
        tolerance=0.002 * expected,
        alternative=Alternative("the same prompts at the limit of the infinite flow", flow.risk_at_limit * flow.length),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Risk, product and tilt above each other, a curve a length, on the infinite flow's."""
    frame = table[table["time"] > 0]
    figure, panels = plt.subplots(3, 1, figsize=(8.0, 8.0), sharex=True, height_ratios=(3, 2, 3))
    lengths, end = sorted(frame["length"].unique().tolist()), frame["time"].max()
    longest = frame[frame["length"] == lengths[-1]]
    for panel, column in zip(panels, ("risk", "product", "tilt"), strict=True):
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = frame[frame["length"] == length]
            # a flow that has arrived stays where it is
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
    headline(figure, "Training runs fast into the valley, then slowly along it")
    return figure
