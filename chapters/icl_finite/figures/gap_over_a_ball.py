r"""The risks converge uniformly over every ball of heads, and the whole ball is slower than its block heads.

The largest $|R_L-R_\infty|$ over all heads of norm at most $\rho$, found by search, against $L$. Left: block heads in
the plane; dashed: slope $-\beta(\rho)$ of the largest head in the ball. Right: all heads on the line, for which
scores may see labels; the axis reaches lengths that no one has, and still the curves bend: they fall more slowly than
any power of $L$. Crosses: a ball that grows with the length like $\sqrt{2\ln L}$, over which nothing converges.

Alt: Two charts of a gap on a logarithmic axis against the logarithm of the length, a curve a radius. Left, nearly
straight lines fall, steeper for smaller balls, parallel to dashed lines in the end. Right, convex curves fall ever
more slowly. In both charts the later of two crosses, of a growing ball, lies high above all curves.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_finite.ball_search import GROWING, Farthest
from chapters.icl_finite.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence
from lib.finite_prompt import rate_exponent

# What is left of a gap at the longest prompts, if it goes to zero.
LEFT = 0.05


def numbers(found: list[Farthest]) -> Numbers:
    """Suprema by family, ball and length; in fixed balls they vanish, over all heads more slowly than a power."""
    table = _table(found)
    return Numbers(table, (_corollary_claim(table.frame), _slow_claim(table.frame)))


def _table(found: list[Farthest]) -> Table:
    columns = {
        "family": Column("Which heads, and the dimension of covariates", "name"),
        "ball": Column("Radius of the ball, or how it grows with the length", "name"),
        "radius": Column("Radius at this length: the norm of (U, v)"),
        "log_length": Column("ln L"),
        "gap": Column("Largest |R_L - R_∞| found in the ball"),
        "exponent": Column("β(H) of the largest head in the ball: the rate that sharp_rates gives it", absolute=1e-9),
    }
    frame = pd.DataFrame([(*row, float(rate_exponent(row.radius))) for row in found], columns=list(columns))
    return Table(frame, columns)


def _left(frame: pd.DataFrame) -> pd.Series:
    """Of each family and ball, the gap at the longest prompts over that at the shortest."""
    by_ball = frame.sort_values("log_length").groupby(["family", "ball"])["gap"]
    return by_ball.last() / by_ball.first()


def _corollary_claim(frame: pd.DataFrame) -> Claim:
    """Fixed balls, and the ball that grows."""
    fixed = frame[frame["ball"] != GROWING]
    return Claim(
        id="icl-finite-ball",
        statement=(
            f"The largest distance of finite and infinite risk in a ball of heads goes to zero: what is left of it at "
            f"the longest prompts, largest over {fixed['ball'].nunique()} radii and two families of heads."
        ),
        source="[BB26, Corollary D.3]",
        box="bb26-cor-d-3",
        measured=float(_left(fixed).max()),
        expected=0.0,
        tolerance=LEFT,
        relation="≤",
        alternative=Alternative(
            "so it does in a ball that grows like √(2 ln L)", float(_left(frame[frame["ball"] == GROWING]).min())
        ),
    )


def _slow_claim(frame: pd.DataFrame) -> Claim:
    """Over all heads: the local exponents of the last two stretches, whose ratio would be 1 for a power law."""
    ratios, powers = [], []
    everything = frame[(frame["ball"] != GROWING) & frame["family"].str.startswith("all")]
    for _, curve in everything.groupby("ball"):
        ells = curve["log_length"].to_numpy()[-3:]
        slopes = np.diff(np.log(curve["gap"].to_numpy()[-3:])) / np.diff(ells)
        root = np.diff(np.sqrt(ells)) / np.diff(ells)
        ratios.append((slopes[1] / slopes[0]) / (root[1] / root[0]))
        powers.append(root[0] / root[1])
    ratio, power = max(ratios, key=lambda value: abs(value - 1)), float(np.mean(powers))
    return Claim(
        id="icl-finite-slow-ball",
        statement=(
            "Over all heads the supremum falls like e^{-c √ln L}: between the last two stretches of lengths the local "
            "exponent shrinks as that of this law does; the ratio of the two ratios, at the radius where it is worst."
        ),
        source="heuristic",
        box="scores-that-see-labels",
        measured=ratio,
        expected=1.0,
        # a factor (ln L)^p in front changes a local exponent by p/ln L: a tenth of it at the lengths compared
        tolerance=0.2,
        alternative=Alternative("a power of L, whose exponent stays", power),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A family a panel, a ball a colour."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
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
        panel.plot(grown["log_length"], grown["gap"], "X", color=ink(), markersize=8)
        last, name = grown.iloc[-1], r"ball grows: $\rho=\sqrt{2\,\ln L}$"
        label(panel, last["log_length"], last["gap"], name, ink(), xytext=(-8, 0), ha="right", fontsize=10)
        panel.set(yscale="log", xlabel=r"$\ln L$", title=family.replace("d =", "$d$ ="))
    panels[0].set_ylabel(r"largest $|R_L-R_\infty|$ in the ball")
    headline(figure, "Over every ball of heads the risks converge, the slower the larger the ball")
    return figure
