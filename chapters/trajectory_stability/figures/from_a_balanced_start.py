r"""Finite and infinite training separate by a decade or more while the squared tilt is above ½; the risk forgets it.

The curves are exact gradient flows from one balanced start, for normal tasks and Gaussian covariates with three
different variances. The shaded band is the time in which the squared tilt $H^2$ of the infinite flow (left) is above
$\frac12$. Middle: the distance of the parameters of the flow on prompts of $L$ tokens from those of the infinite flow.
It grows in the band, by a larger factor on longer prompts, and little after it. Right: the risks of the finite flows
and of the infinite flow (dashed). At the end the risk is small in spite of the distance.

Alt: Three panels over a logarithmic time axis, with the same band of time shaded in each. A single hump crosses a
horizontal line at the beginning of the band and comes back below it at the end. Curves of distance, lower for longer
prompts, rise by one to more than three decades in the band and then stay level or rise slowly. Curves of risk fall
together and then level off, each at a different height, while a dashed curve continues to fall.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.balanced_flows import LONG, BalancedFlows
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import WIDE, ink, label, sequence
from lib.finite_prompt import rate_exponent

# The largest H² at which the mean over queries falls like the error at one query.
CRITICAL = 0.5
# Logarithm to base ten of the shortest prompts whose distance is known to grow by two decades while the tilt is large.
LONG_ENOUGH = 5


def numbers(flows: BalancedFlows) -> Numbers:
    """Return tilt, distance and risk by time; claim what happens where the tilt is large, and at the end."""
    claims = (_tilt_claim(flows), _rate_claim(flows), _passage_claim(flows), _opening_claim(flows), _risk_claim(flows))
    return Numbers(_table(flows), claims)


def _table(flows: BalancedFlows) -> Table:
    """Return one row per length and time, without time zero."""
    frames = [
        pd.DataFrame(
            {
                "log10_length": decade,
                "time": flows.times,
                "tilt": flows.tilts,
                "distance": distances,
                "risk": risks,
                "infinite_risk": flows.infinite_risks,
            }
        ).iloc[1:]
        for decade, distances, risks in zip(flows.decades, flows.distances, flows.risks, strict=True)
    ]
    # tolerances for the error of the integrator are absolute, because distances start near 0 and risks end near 0
    columns = {
        "log10_length": Column("$log₁₀ L$, for prompts of $L$ tokens"),
        "time": Column("Time of the gradient flow"),
        "tilt": Column("Squared tilt $H² = ‖Σ^{1/2} A Σ^{1/2}‖²$ along the infinite flow", absolute=1e-6),
        "distance": Column("Distance of the parameters, $‖θ_L(t) - θ_∞(t)‖$", absolute=1e-6),
        "risk": Column("Risk of the finite flow, $R_L(θ_L(t))$", absolute=1e-8),
        "infinite_risk": Column("Risk of the infinite flow, $R_∞(θ_∞(t))$", absolute=1e-8),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _tilt_claim(flows: BalancedFlows) -> Claim:
    """Claim that H² exceeds ½ along the flow, although it is smaller at the end."""
    return Claim(
        id="trajectory-stability-balanced-tilt",
        statement=(
            "From a balanced start the infinite flow passes heads with $H²$ above ½, where the mean error of long "
            "prompts falls more slowly than $1/L$, although it ends at a head with $H²$ below ½ (measured: the largest "
            "$H²$)."
        ),
        source="derived here",
        box="tilts-on-the-way",
        measured=float(flows.tilts.max()),
        expected=CRITICAL,
        tolerance=0.0,
        reason="the critical value of the theory",
        relation="≥",
        alternative=Alternative("$H²$ is largest at the end, at $(A*, b*)$", flows.limit_tilt),
    )


def _heuristic_rate(squared_tilt: float) -> float:
    """Return the exponent β(H) of `sharp_rates`."""
    return float(rate_exponent(np.sqrt(squared_tilt)))


def _rate_claim(flows: BalancedFlows) -> Claim:
    """Claim that the heuristic exponent where the tilt is largest differs from the exponent at the end."""
    return Claim(
        id="trajectory-stability-passage-rate",
        statement=(
            "Where $H²$ is largest, the heuristic exponent $β(H)$ of the gradient's gap differs from 1, the exponent "
            f"at the end, by more than two powers of $ln L$ would change a slope near $ln L = {np.mean(LONG):g}$ "
            "(measured: $β(H)$)."
        ),
        source="heuristic",
        box="tilts-on-the-way",
        measured=_heuristic_rate(float(flows.tilts.max())),
        expected=1 - 2 / float(np.mean(LONG)),
        tolerance=0.0,
        reason="two powers of $ln L$, as in the bound of Proposition 3.4",
        relation="≤",
        alternative=Alternative(
            "it is $β(H)$ at $(A*, b*)$, where the infinite flow ends", _heuristic_rate(flows.limit_tilt)
        ),
    )


def _passage_claim(flows: BalancedFlows) -> Claim:
    """Claim that the gradient's gap at the head of largest tilt has the heuristic exponent β(H)."""
    middle = float(np.mean(LONG))
    return Claim(
        id="trajectory-stability-passage",
        statement=(
            "Where $H²$ is largest, the gap of the exact gradients falls like $L^{-β(H)}$, up to logarithms (measured: "
            f"its exponent near $ln L = {middle:g}$)."
        ),
        source="derived here",
        box="tilts-on-the-way",
        measured=flows.peak_exponent,
        expected=_heuristic_rate(float(flows.tilts.max())),
        tolerance=2 / middle,
        reason="two powers of $ln L$, as in the bound of Proposition 3.4, change the exponent by this much",
        alternative=Alternative("it is the exponent at $(A*, b*)$, where the infinite flow ends", flows.limit_exponent),
    )


def _opening_claim(flows: BalancedFlows) -> Claim | WithheldClaim:
    """Claim that the distance grows by decades while the tilt is large, and little after that."""
    large = np.flatnonzero(flows.tilts > CRITICAL)
    first, last = large[0], large[-1]
    claim = Claim(
        id="trajectory-stability-opening",
        statement=(
            f"While $H²$ is above ½, the distance of the flow on prompts of $L = 10^{{{flows.decades[-1]}}}$ tokens "
            "from the infinite flow grows by at least two decades (measured: the factor, between recorded times with "
            "$H²$ above ½, which underestimates it)."
        ),
        source="measured here",
        box="tilts-on-the-way",
        measured=float(flows.distances[-1, last] / flows.distances[-1, first]),
        expected=100.0,
        tolerance=0.0,
        reason="two decades",
        relation="≥",
        alternative=Alternative(
            "it grows as it does after $H²$ has fallen below ½",
            float(np.max(flows.distances[:, -1] / flows.distances[:, last])),
        ),
    )
    if flows.decades[-1] >= LONG_ENOUGH:
        return claim
    return claim.withheld(
        f"the factor grows with the length of the prompt, and two decades are known from $L = 10^{{{LONG_ENOUGH}}}$ on"
    )


def _risk_claim(flows: BalancedFlows) -> Claim | WithheldClaim:
    """Claim that the risk at the end, whose limit is lim R_∞ = 0, falls at least like L^{-1/2}."""
    unit = 10 ** ((flows.decades[-1] - flows.decades[0]) / 2)
    ends, apart = flows.risks[:, -1], flows.distances[:, -1]
    distance = float(unit * apart[-1] / apart[0])
    claim = Claim(
        id="trajectory-stability-balanced-risk",
        statement=(
            "For normal tasks and a balanced start, the risk at the end of training on prompts of $L$ tokens falls to "
            f"that of the infinite flow, from $L = 10^{{{flows.decades[0]}}}$ to $10^{{{flows.decades[-1]}}}$ at least "
            "like $L^{-1/2}$ (measured: the ratio of the risk at the longest prompts to such a decay)."
        ),
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        measured=float(unit * ends[-1] / ends[0]),
        expected=1.0,
        tolerance=0.0,
        reason="the ratio of an exact decay like $L^{-1/2}$",
        relation="≤",
        alternative=Alternative("the risk falls like the distance of the parameters", distance),
    )
    if distance > 1:
        return claim
    return claim.withheld(
        "between these lengths the distance of the parameters falls like $L^{-1/2}$, too, so that a fall of the risk "
        "does not tell it from the distance"
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw tilt, distance and risk against time, with the time of large tilts shaded in each panel."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(WIDE, 4.0), sharex=True)
    decades = sorted(table["log10_length"].unique().tolist())
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        path = table[table["log10_length"] == decade]
        middle.plot(path["time"], path["distance"], color=colour, linewidth=2)
        right.plot(path["time"], path["risk"], color=colour, linewidth=2)
        label(right, path["time"].max(), path["risk"].iloc[-1], f"$L=10^{{{decade}}}$", colour)
    band = table["time"][table["tilt"] > CRITICAL]
    for panel in (left, middle, right):
        panel.axvspan(band.min(), band.max(), color=ink(), alpha=0.08, linewidth=0)
    left.plot(path["time"], path["tilt"], color=ink(), linewidth=2)
    left.axhline(CRITICAL, color="C1", linewidth=1.3, linestyle="--")
    label(left, path["time"].min(), CRITICAL, "½", ink(), xytext=(2, 8))
    right.plot(path["time"], path["infinite_risk"], color=ink(), linestyle="--", linewidth=1.6)
    left.set(xscale="log", xlabel="time", title="squared tilt $H^2$, $L=\\infty$", ylim=(0, None))
    middle.set(yscale="log", xlabel="time", title=r"distance $\|\theta_L-\theta_\infty\|$")
    middle.set_ylim(bottom=max(1e-7, table["distance"].min()))
    lowest = table["risk"].min() / 10
    right.set(yscale="log", xlabel="time", title="risk", ylim=(lowest, None))
    below = path[path["infinite_risk"] < 2 * lowest]
    if len(below):
        label(right, below["time"].iloc[0], 2 * lowest, r"$\infty$", ink(), xytext=(8, 0))
    return figure
