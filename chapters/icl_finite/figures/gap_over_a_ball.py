r"""The risks converge uniformly over balls of heads: of block heads like a power of $L$, of all heads more slowly.

The vertical axis is the largest $|R_L-R_\infty|$ over all heads of norm at most $\rho$, found by search. Left: block
heads in the plane; dashed: powers $L^{-\beta(\rho)}$ with the exponent of {doc}`sharp_rates` at $H=\rho$. Right: all
heads on the line, whose scores may depend on labels; dashed: powers through the first two points. Crosses: a ball whose
radius grows like $\sqrt{2\ln L}$, over which the risks do not converge. Both rates are heuristics.

Alt: Two charts of a gap on a logarithmic axis against the logarithm of the length, with one curve per radius. Left,
nearly straight lines fall, steeper for smaller balls, and eventually parallel to dashed lines. Right, convex curves
fall ever more slowly, above straight dashed lines. In both charts the later of two crosses, for a growing ball, is high
above all curves.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_finite.ball_search import GROWING, Farthest
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence
from lib.finite_prompt import rate_exponent

# Largest ratio of the gap at the longest prompts to the gap at the shortest, if the gap vanishes.
LARGEST_RATIO = 0.05


def numbers(suprema: list[Farthest]) -> Numbers:
    """Return the suprema by family, ball and length, and the claims on their limit and on the rate over all heads."""
    columns = {
        "family": Column("Family of heads, and the dimension of the covariates", "name"),
        "ball": Column("Radius of the ball, or the formula of a radius that grows with the length", "name"),
        "radius": Column("Radius at this length: the norm of $(U, v)$"),
        "log_length": Column("$ln L$"),
        "gap": Column("Largest $|R_L - R_∞|$ that the search finds in the ball"),
        "exponent": Column("$β(H)$ of the largest head in the ball", absolute=1e-9),
    }
    frame = pd.DataFrame([(*row, float(rate_exponent(row.radius))) for row in suprema], columns=list(columns))
    return Numbers(Table(frame, columns), _claims(frame))


def _claims(frame: pd.DataFrame) -> Claims:
    claim = Claims("icl-finite", source="[BB26, Corollary D.3]")
    fixed = frame[frame["ball"] != GROWING]
    gaps = frame.sort_values("log_length").groupby(["family", "ball"])["gap"]
    ratios = (gaps.last() / gaps.first()).unstack()
    claim.at_most(
        "ball",
        "The largest distance of finite and infinite risk in a ball of heads tends to zero (measured: its ratio "
        f"at the longest and the shortest prompts, the largest over {fixed['ball'].nunique()} radii and two "
        "families of heads).",
        ratios.drop(columns=GROWING).max(axis=None),
        0,
        within=LARGEST_RATIO,
        because="a gap below a twentieth of its value at the shortest prompts counts as vanishing",
        rejects=("the ratio is the one of a ball that grows like $√(2 ln L)$", ratios[GROWING].min()),
        box="bb26-cor-d-3",
    )
    # local exponents in the last two intervals of lengths; for a power their ratio would be 1
    quotients, powers = [], []
    for _, curve in fixed[fixed["family"].str.startswith("all")].groupby("ball"):
        ells = curve["log_length"].to_numpy()[-3:]
        slopes = np.diff(np.log(curve["gap"].to_numpy()[-3:])) / np.diff(ells)
        root = np.diff(np.sqrt(ells)) / np.diff(ells)
        quotients.append((slopes[1] / slopes[0]) / (root[1] / root[0]))
        powers.append(root[0] / root[1])
    claim.equal(
        "slow-ball",
        "Over all heads the supremum falls like $e^{-c √(ln L)}$: between the last two intervals of lengths "
        "its local exponent shrinks by the same ratio (measured: the quotient of the two ratios, at the "
        "radius where it is farthest from 1).",
        max(quotients, key=lambda quotient: abs(quotient - 1)),
        1,
        within=0.2,
        because="a factor $(ln L)^p$ changes each local exponent by $p/ln L$, about a tenth of it at these lengths",
        rejects=("it falls like a power of $L$, whose exponent is constant", np.mean(powers)),
        source="heuristic",
        box="scores-that-see-labels",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per family and one colour per ball, with powers of L as dashed lines."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.8))
    for panel, (family, shown) in zip(panels, table.groupby("family", sort=False), strict=True):
        grows = shown["ball"].str.contains("ln L", regex=False)
        fixed, grown = shown[~grows], shown[grows]
        balls = sorted(fixed["ball"].unique(), key=float)
        block = family.startswith("block")
        for ball, colour in zip(balls, sequence(len(balls)), strict=True):
            curve = fixed[fixed["ball"] == ball]
            ells, gaps = curve["log_length"].to_numpy(), curve["gap"].to_numpy()
            panel.plot(ells, gaps, "o-", color=colour, markersize=5, linewidth=2)
            name = rf"radius $\rho={ball}$" if ball == balls[-1] and not block else rf"$\rho={ball}$"
            label(panel, ells[-1], gaps[-1], name, colour, xytext=(7, 0))
            if block:
                power = np.exp(-curve["exponent"] * (ells - ells[-1])) * gaps[-1] / 2
            else:
                power = np.exp(np.log(gaps[1] / gaps[0]) / (ells[1] - ells[0]) * (ells - ells[0])) * gaps[0]
            panel.plot(ells, power, "--", color=colour, linewidth=1.2)
        panel.plot(grown["log_length"], grown["gap"], "X:", color=ink(), markersize=7, linewidth=1.2)
        last, name = grown.iloc[-1], "radius grows,\n$\\rho=\\sqrt{2\\,\\ln L}$"
        label(panel, last["log_length"], last["gap"], name, ink(), xytext=(-6, 8), ha="right", va="bottom", fontsize=10)
        form = "straight, like a power of $L$" if block else "bent, slower than a power of $L$"
        if block:
            panel.text(0.04, 0.08, "dashed: powers of $L$,\nexponent $-\\beta(\\rho)$", transform=panel.transAxes)
        else:
            name = "dashed:\npowers of $L$ through\nthe first two points"
            panel.text(0.03, 0.98, name, va="top", transform=panel.transAxes)
        panel.set(yscale="log", ylim=(fixed["gap"].min() / 5, 1000 * shown["gap"].max()))
        panel.set(xlabel=r"$\ln L$, logarithm of the prompt length", title=f"{family.replace('d =', '$d$ =')}:\n{form}")
    panels[0].set_ylabel("largest distance $|R_L-R_\\infty|$ of the risks\nover heads of norm at most $\\rho$")
    return figure
