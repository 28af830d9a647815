r"""The risks converge uniformly over every ball of heads, and more slowly over all heads than over block heads.

The vertical axis is the largest $|R_L-R_\infty|$ over all heads of norm at most $\rho$, found by search. Left: block
heads in the plane; dashed lines have the slope $-\beta(\rho)$ of the largest head in the ball. Right: all heads on the
line, whose scores may depend on labels; the curves bend even at lengths far beyond real prompts, as a decay does
that is slower than any power of $L$. Crosses: a ball whose radius grows like $\sqrt{2\ln L}$, over which the risks do
not converge. The grey tick on the axis is the longest prompt of {doc}`real_heads`.

Alt: Two charts of a gap on a logarithmic axis against the logarithm of the length, with one curve per radius. Left,
nearly straight lines fall, steeper for smaller balls, and eventually parallel to dashed lines. Right, convex curves
fall ever more slowly. In both charts the later of two crosses, for a growing ball, is high above all curves.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_finite.ball_search import GROWING, Farthest
from chapters.style import mark_real_prompt
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence
from lib.finite_prompt import rate_exponent

# Largest ratio of the gap at the longest prompts to the gap at the shortest, if the gap vanishes.
LARGEST_RATIO = 0.05


def numbers(suprema: list[Farthest]) -> Numbers:
    """Return the suprema by family, ball and length, and the claims on their limit and on the rate over all heads."""
    table = _table(suprema)
    return Numbers(table, (_corollary_claim(table.frame), _slow_claim(table.frame)))


def _table(suprema: list[Farthest]) -> Table:
    """Return the table of suprema."""
    columns = {
        "family": Column("Family of heads, and the dimension of the covariates", "name"),
        "ball": Column("Radius of the ball, or the formula of a radius that grows with the length", "name"),
        "radius": Column("Radius at this length: the norm of $(U, v)$"),
        "log_length": Column("$ln L$"),
        "gap": Column("Largest $|R_L - R_∞|$ that the search finds in the ball"),
        "exponent": Column("$β(H)$ of the largest head in the ball", absolute=1e-9),
    }
    frame = pd.DataFrame([(*row, float(rate_exponent(row.radius))) for row in suprema], columns=list(columns))
    return Table(frame, columns)


def _ratios(frame: pd.DataFrame) -> pd.Series:
    """Return, for each family and ball, the ratio of the gap at the longest prompts to the gap at the shortest."""
    by_ball = frame.sort_values("log_length").groupby(["family", "ball"])["gap"]
    return by_ball.last() / by_ball.first()


def _corollary_claim(frame: pd.DataFrame) -> Claim:
    """Claim that the gap vanishes in fixed balls; in the growing ball it does not."""
    fixed = frame[frame["ball"] != GROWING]
    return Claim(
        id="icl-finite-ball",
        statement=(
            "The largest distance of finite and infinite risk in a ball of heads tends to zero (measured: its ratio "
            f"at the longest and the shortest prompts, the largest over {fixed['ball'].nunique()} radii and two "
            "families of heads)."
        ),
        source="[BB26, Corollary D.3]",
        box="bb26-cor-d-3",
        measured=float(_ratios(fixed).max()),
        expected=0.0,
        tolerance=LARGEST_RATIO,
        reason="a gap below a twentieth of its value at the shortest prompts counts as vanishing",
        relation="≤",
        alternative=Alternative(
            "the ratio is the one of a ball that grows like $√(2 ln L)$",
            float(_ratios(frame[frame["ball"] == GROWING]).min()),
        ),
    )


def _slow_claim(frame: pd.DataFrame) -> Claim:
    """Claim on the local exponents of the last two intervals over all heads; for a power their ratio would be 1."""
    ratios, powers = [], []
    all_heads = frame[(frame["ball"] != GROWING) & frame["family"].str.startswith("all")]
    for _, curve in all_heads.groupby("ball"):
        ells = curve["log_length"].to_numpy()[-3:]
        slopes = np.diff(np.log(curve["gap"].to_numpy()[-3:])) / np.diff(ells)
        root = np.diff(np.sqrt(ells)) / np.diff(ells)
        ratios.append((slopes[1] / slopes[0]) / (root[1] / root[0]))
        powers.append(root[0] / root[1])
    ratio, power = max(ratios, key=lambda value: abs(value - 1)), float(np.mean(powers))
    return Claim(
        id="icl-finite-slow-ball",
        statement=(
            "Over all heads the supremum falls like $e^{-c √(ln L)}$: between the last two intervals of lengths "
            "its local exponent shrinks by the same ratio (measured: the quotient of the two ratios, at the "
            "radius where it is farthest from 1)."
        ),
        source="heuristic",
        box="scores-that-see-labels",
        measured=ratio,
        expected=1.0,
        tolerance=0.2,
        reason="a factor $(ln L)^p$ changes each local exponent by $p/ln L$, about a tenth of it at these lengths",
        alternative=Alternative("it falls like a power of $L$, whose exponent is constant", power),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per family and one colour per ball."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    for panel, (family, shown) in zip(panels, table.groupby("family", sort=False), strict=True):
        grows = shown["ball"].str.contains("ln L", regex=False)
        fixed, grown = shown[~grows], shown[grows]
        balls = sorted(fixed["ball"].unique(), key=float)
        for ball, colour in zip(balls, sequence(len(balls)), strict=True):
            curve = fixed[fixed["ball"] == ball]
            ells, gaps = curve["log_length"], curve["gap"]
            panel.plot(ells, gaps, "o-", color=colour, markersize=5, linewidth=2)
            label(panel, ells.iloc[-1], gaps.iloc[-1], rf"$\rho={ball}$", colour, xytext=(7, 0))
            if family.startswith("block"):
                slope = np.exp(-curve["exponent"] * (ells - ells.max())) * gaps.iloc[-1] / 2
                panel.plot(ells, slope, "--", color=colour, linewidth=1.2)
        panel.plot(grown["log_length"], grown["gap"], "X--", color=ink(), markersize=8, linewidth=1.4)
        last, name = grown.iloc[-1], "ball grows, $\\rho=\\sqrt{2\\,\\ln L}$:\nno convergence"
        label(panel, last["log_length"], last["gap"], name, ink(), xytext=(0, 6), ha="right", va="bottom")
        panel.set(yscale="log", xlabel=r"$\ln L$", title=family.replace("d =", "$d$ ="))
        mark_real_prompt(panel, log_length=True)
        panel.set_ylim(top=1e3 * shown["gap"].max())
    panels[0].set_ylabel(r"largest $|R_L-R_\infty|$ in the ball")
    return figure
