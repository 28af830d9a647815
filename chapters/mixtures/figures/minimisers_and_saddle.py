r"""Where the gate has slope zero, flat directions of the risk lead away from the minimisers; a third critical point is
a saddle.

Absolute values of the nine eigenvalues of the Hessian at heads with $s\ne0=r$, with $r\ne0=s$, and at a saddle with
$v_{21}=0$; crosses are negative eigenvalues. Those at the lower edge are zero up to rounding: five where $r=0$, the
dimension of the set of minimisers there, and six where $s=0$, two more than the dimension of the set there.

Alt: Three columns of points on a logarithmic axis: five points at the lower edge in the first column, six in the
second, two in the third, where two crosses mark negative eigenvalues.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.mixtures.landscape import CriticalPoint
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink

# Sums of a few hundred terms of size one, squared differences included.
ROUNDING = 1e-12
# BFGS ends where changes of the risk are its rounding, 1e-16: at gradients of about the square root.
SEARCH = 1e-7
# Lowest eigenvalue in the picture.
FLOOR = 1e-5
NAMES = ("without gate", "constant gate", "saddle")


def numbers(points: list[CriticalPoint], flat: pd.DataFrame, second: dict[str, float]) -> Numbers:
    """Return the eigenvalues at critical points, and the claims."""
    by_name = {point.name: point for point in points}
    spectra = [
        {"point": name, "number": np.arange(len(by_name[name].eigenvalues)), "eigenvalue": by_name[name].eigenvalues}
        for name in NAMES
    ]
    columns = {
        "point": Column("Kind of critical point", "name"),
        "number": Column("Number of the eigenvalue"),
        "eigenvalue": Column("Eigenvalue of the Hessian of the risk", absolute=1e-9),
    }
    claim = Claims("mixture-discrimination", source="derived here")
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
    saddle = by_name["saddle"]
    at_minimisers = [by_name[name].eigenvalues[0] for name in ("without gate", "constant gate")]
    claim.at_most(
        "saddle",
        "A head with $v₂₁ = 0$, the best gate of this kind and a suitable $U₁₁$ is a critical point of the risk "
        "(norm of the gradient).",
        saddle.gradient,
        SEARCH,
        because="the search ends where changes of the risk are rounding errors, at gradients of about 10⁻⁸",
        box="explicit-saddle",
        rejects=("$U₁₁ = 0$ would do as well", by_name["no critical point"].gradient),
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
    return Numbers(Table.of(spectra, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the eigenvalues at three critical points."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    for place, name in enumerate(NAMES):
        found = table.loc[table["point"] == name, "eigenvalue"].to_numpy()
        offsets = place + 0.09 * (np.arange(len(found)) - (len(found) - 1) / 2)
        negative = found < -FLOOR
        heights = np.maximum(np.abs(found), FLOOR)
        axes.plot(offsets[~negative], heights[~negative], "o", color=f"C{place}", clip_on=False, markersize=6)
        if negative.any():
            axes.plot(offsets[negative], heights[negative], "X", color=f"C{place}", clip_on=False, markersize=9)
    axes.set(yscale="log", ylim=(FLOOR, 100), xlim=(-0.6, len(NAMES) - 0.4), ylabel="|eigenvalue of the Hessian|")
    axes.set_xticks(range(len(NAMES)), ["gate of height\n$r=0$", "gate of slope\n$s=0$", "saddle"])
    axes.axhline(FLOOR, color=ink(), linewidth=1)
    powers = [FLOOR, *10.0 ** np.arange(-4, 3)]
    axes.set_yticks(powers, ["0", *(f"$10^{{{round(np.log10(power))}}}$" for power in powers[1:])])
    marks = [Line2D([], [], color=ink(), marker=marker, linestyle="", markersize=7) for marker in "oX"]
    axes.legend(marks, ["positive or zero", "negative"], loc="upper left")
    axes.grid(axis="x", visible=False)
    return figure
