r"""With the best affine part, the logistic risk is least exactly where the gate is off, by its height or by its slope.

Left: the excess risk over the Bayes risk at a given height $r$ and slope of the gate, with the best affine part; it is
zero on both axes only. The slope of the gate is a multiple of $w^\star/\|w^\star\|$. Right: absolute values of the nine
eigenvalues of the Hessian at heads with $s\ne0=r$, with $r\ne0=s$, and at a saddle with
$v_{21}=0$; crosses are negative eigenvalues. Those at the lower edge are zero up to rounding: five where $r=0$, as many
as the minimisers have dimensions, and six where $s=0$, two more than dimensions.

Alt: Left, a map with a dark cross along both axes and lighter corners. Right, three columns of points on a logarithmic
axis: five points at the lower edge in the first column, six in the second, two in the third, where two crosses mark
negative eigenvalues.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.mixtures.landscape import CriticalPoint
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink

# Sums of a few hundred terms of size one, squared differences included.
ROUNDING = 1e-12
# BFGS ends where changes of the risk are its rounding, 1e-16: at gradients of about the square root.
SEARCH = 1e-7
# Lowest excess and lowest eigenvalue in the picture.
EXCESS_FLOOR, EIGENVALUE_FLOOR = 1e-6, 1e-5
# The relative correction at R = 100 is of order 1/R; times ten for its constant, over one decade of R.
SEQUENCE = 10 / 100 / np.log(10)
NAMES = ("without gate", "constant gate", "saddle")


def numbers(
    cross: pd.DataFrame,
    points: list[CriticalPoint],
    flat: pd.DataFrame,
    second: dict[str, float],
    sequence: dict[str, float],
) -> Numbers:
    """Return the excess at each gate and the eigenvalues at critical points, and the claims."""
    by_name = {point.name: point for point in points}
    spectra = [
        {"point": name, "number": np.arange(len(by_name[name].eigenvalues)), "eigenvalue": by_name[name].eigenvalues}
        for name in NAMES
    ]
    columns = {
        "height": Column("Height $r$ of the gate"),
        "gate_slope": Column("Slope of the gate along $w*$"),
        "excess": Column("Least excess risk over $w$ and $b$", "nat", absolute=1e-14),
        "point": Column("Kind of critical point", "name"),
        "number": Column("Number of the eigenvalue"),
        "eigenvalue": Column("Eigenvalue of the Hessian of the risk", absolute=1e-9),
    }
    claims = _claims(cross, by_name, flat, second, sequence)
    return Numbers(Table.of([cross, *spectra], columns), claims)


def _claims(
    cross: pd.DataFrame,
    points: dict[str, CriticalPoint],
    flat: pd.DataFrame,
    second: dict[str, float],
    sequence: dict[str, float],
) -> Claims:
    claim = Claims("mixture-discrimination", source="derived here")
    on_axes = (cross["height"] == 0) | (cross["gate_slope"] == 0)
    claim.at_least(
        "cross",
        "A gate with $r ≠ 0$ and $s ≠ 0$ has more than the Bayes risk, whatever the affine part (least excess in "
        "nats over a square of $r$ and $s$).",
        cross.loc[~on_axes, "excess"].min(),
        ROUNDING,
        because="rounding of sums in double precision",
        source="[GBB26, Thm 3.1]",
        box="gbb26-thm-3-1",
        rejects=("an affine part makes up for every gate", cross.loc[on_axes, "excess"].max()),
    )
    extra = flat["flat"] - flat["tangent"]
    as_predicted = extra == np.where(flat["family"] == "constant gate", flat["dimension"], 0)
    dimensions = listing(str(dimension) for dimension in sorted(set(flat["dimension"])))
    claim.equal(
        "flat-directions",
        "Flat directions of the risk at random minimisers are the directions along the set of minimisers if $r = 0$, "
        f"and $d$ more if $s = 0$, in dimensions {dimensions}.",
        as_predicted.mean(),
        1.0,
        within=0.0,
        because="counts are exact",
        source="[GBB26, Lemma B.13]",
        count=(as_predicted.sum(), len(flat)),
        rejects=("all flat directions are along the set of minimisers", (extra == 0).mean()),
    )
    saddle = points["saddle"]
    at_minimisers = [points[name].eigenvalues[0] for name in ("without gate", "constant gate")]
    claim.at_most(
        "saddle",
        "A head with $v₂₁ = 0$, the best gate of this kind and a suitable $U₁₁$ is a critical point of the risk "
        "(norm of the gradient).",
        saddle.gradient,
        SEARCH,
        because="the search ends where changes of the risk are rounding errors, at gradients of about 10⁻⁸",
        box="explicit-saddle",
        rejects=("$U₁₁ = 0$ would do as well", points["no critical point"].gradient),
    )
    claim.at_most(
        "saddle-direction",
        "At this critical point the risk has a direction of descent (least eigenvalue of the Hessian).",
        saddle.eigenvalues[0],
        -ROUNDING,
        because="rounding of the eigenvalues in double precision",
        source="[GBB26, Thm 3.3]",
        box="gbb26-thm-3-3",
        rejects=("it is a minimum, as at the minimisers", max(at_minimisers)),
    )
    claim.at_most(
        "second-variation",
        "The second derivative of the score along a direction has the cross term $2 δr σ'(s₀ + ⟨s, x⟩) ⟨δs, x⟩$ "
        "(largest relative difference from automatic differentiation).",
        second["two"],
        ROUNDING,
        because="rounding in double precision",
        box="score-second-derivative",
        rejects=("the cross term has the factor 1, as printed in Lemma B.8", second["one"]),
    )
    claim.equal(
        "diverging",
        "Along heads with $r = R$, $s = w*/R$ and matching $w$ and $b$, the excess risk falls like $R⁻²$ for "
        "unequal weights (exponent between $R = 100$ and 1,000).",
        sequence["unequal"],
        -2.0,
        within=SEQUENCE,
        because="corrections are of relative order $1/R$, with a constant of at most ten, over one decade",
        source="[GBB26, Prop. 3.4]",
        box="gbb26-prop-3-4",
        rejects=("it falls like $R⁻⁴$, as for equal weights", sequence["equal"]),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the map of the excess, and the eigenvalues at three critical points."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    cross, spectra = table[table["excess"].notna()], table[table["eigenvalue"].notna()]
    grid = cross.pivot_table(index="gate_slope", columns="height", values="excess")
    values = np.maximum(grid.to_numpy(), EXCESS_FLOOR)
    look = {"cmap": "cividis", "norm": LogNorm(EXCESS_FLOOR, values.max()), "shading": "nearest", "rasterized": True}
    image = left.pcolormesh(grid.columns, grid.index, values, **look)
    left.grid(visible=False)
    left.set(xlabel="height of the gate, $r$", ylabel=r"slope of the gate, $\langle s, w^{\star}\rangle/\|w^{\star}\|$")
    left.set_title("least excess risk")
    figure.colorbar(image, ax=left)
    for place, name in enumerate(NAMES):
        found = spectra.loc[spectra["point"] == name, "eigenvalue"].to_numpy()
        offsets = place + 0.09 * (np.arange(len(found)) - (len(found) - 1) / 2)
        negative = found < -EIGENVALUE_FLOOR
        heights = np.maximum(np.abs(found), EIGENVALUE_FLOOR)
        right.plot(offsets[~negative], heights[~negative], "o", color=f"C{place}", clip_on=False, markersize=6)
        if negative.any():
            right.plot(offsets[negative], heights[negative], "X", color=f"C{place}", clip_on=False, markersize=9)
    right.set(yscale="log", ylim=(EIGENVALUE_FLOOR, 100), xlim=(-0.6, len(NAMES) - 0.4), ylabel="|eigenvalue|")
    right.set_xticks(range(len(NAMES)), ["$r=0$", "$s=0$", "saddle"])
    right.axhline(EIGENVALUE_FLOOR, color=ink(), linewidth=1)
    right.legend(
        [Line2D([], [], color=ink(), marker=marker, linestyle="", markersize=7) for marker in "oX"],
        ["positive or zero", "negative"],
        loc="upper left",
    )
    right.set_title("eigenvalues of the Hessian")
    right.grid(axis="x", visible=False)
    return figure
