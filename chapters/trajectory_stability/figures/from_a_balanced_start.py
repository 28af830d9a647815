r"""While the squared tilt exceeds ½, parameters separate by a factor of ten or more, and risks of long prompts do not.

Exact gradient flows from one balanced start, for normal tasks and Gaussian covariates with three different variances.
In the band the squared tilt $H^2$ of the infinite flow is above $\frac12$. Bottom left: the distance of the flow on
prompts of $L$ tokens from the infinite flow; dots are the first and the last recorded time in the band.

Alt: Three panels over a logarithmic time axis, with the same band of time shaded in each. One hump crosses a
horizontal line at the beginning of the band and comes back below it at the end. Curves of distance, lower for longer
prompts, rise by one to more than three decades between two dots in the band and then stay level or rise slowly. Curves
of risk fall together and then level off, each at a different height, while a dashed curve continues to fall.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.balanced_flows import LONG, BalancedFlows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence
from lib.finite_prompt import rate_exponent

# The largest H² at which the mean over queries falls like the error at one query.
CRITICAL = 0.5
# Logarithm to base ten of the shortest prompts whose distance is known to grow by two decades while the tilt is large.
LONG_ENOUGH = 5


def numbers(flows: BalancedFlows) -> Numbers:
    """Return tilt, distance and risk by time; claim what happens where the tilt is large, and at the end."""
    # without the start, at the time 0
    shared = {"time": flows.times[1:], "tilt": flows.tilts[1:], "infinite_risk": flows.infinite_risks[1:]}
    groups = [
        {"log10_length": decade, "distance": distances[1:], "risk": risks[1:], **shared}
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
    return Numbers(Table.of(groups, columns), _claims(flows))


def _claims(flows: BalancedFlows) -> Claims:
    claim = Claims("trajectory-stability", source="derived here", box="tilts-on-the-way")
    largest, middle = flows.tilts.max(), np.mean(LONG)
    # the exponent β(H) of `sharp_rates`
    peak_rate, limit_rate = (float(rate_exponent(np.sqrt(tilt))) for tilt in (largest, flows.limit_tilt))
    claim.at_least(
        "balanced-tilt",
        "From a balanced start the infinite flow passes heads with $H²$ above ½, where the mean error of long prompts "
        "falls more slowly than $1/L$, although it ends at a head with $H²$ below ½ (measured: the largest $H²$).",
        largest,
        CRITICAL,
        because="the critical value of the theory",
        rejects=("$H²$ is largest at the end, at $(A*, b*)$", flows.limit_tilt),
    )
    claim.at_most(
        "passage-rate",
        "Where $H²$ is largest, the heuristic exponent $β(H)$ of the gradient's gap differs from 1, the exponent at "
        f"the end, by more than two powers of $ln L$ would change a slope near $ln L = {middle:g}$ (measured: $β(H)$).",
        peak_rate,
        1 - 2 / middle,
        because="two powers of $ln L$, as in the bound of Proposition 3.4",
        source="heuristic",
        rejects=("it is $β(H)$ at $(A*, b*)$, where the infinite flow ends", limit_rate),
    )
    claim.equal(
        "passage",
        "Where $H²$ is largest, the gap of the exact gradients falls like $L^{-β(H)}$, up to logarithms (measured: its "
        f"exponent near $ln L = {middle:g}$).",
        flows.peak_exponent,
        peak_rate,
        within=2 / middle,
        because="two powers of $ln L$, as in the bound of Proposition 3.4, change the exponent by this much",
        rejects=("it is the exponent at $(A*, b*)$, where the infinite flow ends", flows.limit_exponent),
    )
    first, last = np.flatnonzero(flows.tilts > CRITICAL)[[0, -1]]
    shortest, longest = flows.decades[0], flows.decades[-1]
    claim.at_least(
        "opening",
        f"While $H²$ is above ½, the distance of the flow on prompts of $L = 10^{{{longest}}}$ tokens from the "
        "infinite flow grows by at least two decades (measured: the factor, between recorded times with $H²$ above ½, "
        "which underestimates it).",
        flows.distances[-1, last] / flows.distances[-1, first],
        100,
        because="two decades",
        source="measured here",
        rejects=(
            "it grows as it does after $H²$ has fallen below ½",
            np.max(flows.distances[:, -1] / flows.distances[:, last]),
        ),
        requires=(
            longest >= LONG_ENOUGH,
            "the factor grows with the length of the prompt, and two decades are known from "
            f"$L = 10^{{{LONG_ENOUGH}}}$ on",
        ),
    )
    risk, distance = (
        10 ** ((longest - shortest) / 2) * ends[-1] / ends[0] for ends in (flows.risks[:, -1], flows.distances[:, -1])
    )
    claim.at_most(
        "balanced-risk",
        "For normal tasks and a balanced start, the risk at the end of training on prompts of $L$ tokens falls to that "
        f"of the infinite flow, from $L = 10^{{{shortest}}}$ to $10^{{{longest}}}$ at least like $L^{{-1/2}}$ "
        "(measured: the ratio of the risk at the longest prompts to such a decay).",
        risk,
        1,
        because="the ratio of an exact decay like $L^{-1/2}$",
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        rejects=("the risk falls like the distance of the parameters", distance),
        requires=(
            distance > 1,
            "between these lengths the distance of the parameters falls like $L^{-1/2}$, too, so that a fall of the "
            "risk does not tell it from the distance",
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw tilt, distance and risk against time, with the time of large tilts shaded in each panel."""
    figure = plt.figure(figsize=(WIDE, 5.6))
    panels = figure.subplot_mosaic(
        [["tilt", "risk"], ["distance", "risk"]], sharex=True, height_ratios=(1, 2.4), width_ratios=(1.35, 1)
    )
    tilt, distance, risk = (panels[name] for name in ("tilt", "distance", "risk"))
    decades = sorted(table["log10_length"].unique().tolist())
    infinite = table[table["log10_length"] == decades[-1]]
    band = infinite["time"][infinite["tilt"] > CRITICAL]
    for panel in panels.values():
        panel.axvspan(band.min(), band.max(), color=ink(), alpha=0.08, linewidth=0)
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        path, name = table[table["log10_length"] == decade], f"$L=10^{{{decade}}}$"
        ends = path[path["time"].isin(band.iloc[[0, -1]])]
        grown = ends["distance"].iloc[-1] / ends["distance"].iloc[0]
        distance.plot(path["time"], path["distance"], color=colour, linewidth=2)
        distance.plot(ends["time"], ends["distance"], "o", color=colour, markersize=7)
        shift = (6, 4 if decade == decades[0] else -3)
        label(distance, path["time"].max(), path["distance"].iloc[-1], name, colour, xytext=shift)
        factor, up = rf"$\times\,{float(f'{grown:.2g}'):g}$", 11 if decade == decades[0] else -12
        label(distance, ends["time"].iloc[-1], ends["distance"].iloc[-1], factor, colour, xytext=(-5, up), ha="right")
        risk.plot(path["time"], path["risk"], color=colour, linewidth=2)
        label(risk, path["time"].max(), path["risk"].iloc[-1], name, colour)
    tilt.plot(infinite["time"], infinite["tilt"], color=ink(), linewidth=2)
    tilt.axhline(CRITICAL, color="C1", linewidth=1.3, linestyle="--")
    label(tilt, infinite["time"].max(), CRITICAL, "½", "C1", xytext=(2, 7), ha="right")
    tilt.set(title=r"squared tilt $H^2$ of the infinite flow", xscale="log", ylim=(0, None))
    bottom = max(1e-7, table["distance"].min())
    title = r"distance of parameters, $\|\theta_L-\theta_\infty\|$"
    distance.set(yscale="log", ylim=(bottom, None), xlabel="time", title=title)
    risk.plot(infinite["time"], infinite["infinite_risk"], color=ink(), linestyle="--", linewidth=1.6)
    lowest = table["risk"].min() / 10
    risk.set(yscale="log", title="risk", ylim=(lowest, None), xlabel="time")
    below = infinite[infinite["infinite_risk"] < 2 * lowest]
    if len(below):
        label(risk, below["time"].iloc[0], 2 * lowest, r"$L=\infty$", ink(), xytext=(8, 0))
    centre, words = np.sqrt(band.min() * band.max()), {"ha": "center", "linespacing": 1.3}
    label(tilt, centre, CRITICAL / 2, "$H^2>$ ½", ink(), **words | {"xytext": (0, 0)})
    label(distance, centre, bottom, "$\\times$: growth\nin the band", ink(), **words | {"xytext": (12, 34)})
    label(risk, centre, lowest, "risks of long\nprompts stay\ntogether", ink(), **words | {"xytext": (0, 90)})
    return figure
