r"""Iterated, the Bayes denoiser keeps two components apart only if their means are more than two standard
deviations of the noise apart.

Tokens of two components of variance zero are denoised repeatedly; $u$ is the coordinate of a token. Left: points are
twenty random starts after 10, 100 and 3000 steps. The line is the largest root of $u=\tanh(\lambda^2u)$. Right:
distance to the root, from the mean of a component; at $\lambda=1$ it falls like a power (dashed), otherwise
exponentially.

Alt: Left, points against the distance of the components on a curve that is zero up to one and then rises steeply to
one, in a shaded part named "merged" and a part named "kept apart"; few points after ten steps are above it. Right,
three curves on logarithmic axes: two end abruptly at rounding error after tens of steps, the one at one falls slowly
along a dashed straight line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.mixtures.iterated_denoiser import SLOW, STARTS
from chapters.mixtures.style import SHOWN_STEPS, STEPS
from chapters.style import coloured, coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# After `STEPS` steps away from λ = 1 the iterates have converged up to rounding.
CONVERGED = 1e-10
# The steps between which the exponent at λ = 1 is measured, and the size ln(n)/n of the next term there.
WINDOW = (300, 3000)
NEXT_TERM = float(np.log(WINDOW[0]) / WINDOW[0])


def numbers(ends: pd.DataFrame, convergence: pd.DataFrame, slopes: dict[str, float]) -> Numbers:
    """Return the positions of iterates and the distances to the root, and the claims."""
    columns = {
        "kind": Column("`position` of an iterate, or `distance` of one that starts at a mean", "name"),
        "separation": Column("Half the distance of the means in standard deviations of the noise, $λ$"),
        "start": Column("Number of the random start"),
        "steps": Column("Number of steps", "steps"),
        "value": Column("Coordinate $|u|$ of the iterate, or its distance from the root", absolute=1e-9),
        "root": Column("Largest root of $u = tanh(λ² u)$"),
    }
    claim = Claims("mixture-denoising", source="derived here", box="merging-rates")
    last = ends[(ends["steps"] == STEPS) & ~ends["separation"].between(*SLOW)]
    claim.at_most(
        "threshold",
        f"From {STARTS} random starts at each of {last['separation'].nunique()} distances $λ$, the iterated "
        f"denoiser ends at $c ± u δ$ with the largest root of $u = tanh(λ² u)$ (largest deviation after {STEPS:,} "
        "steps).",
        (last["position"] - last["root"]).abs().max(),
        CONVERGED,
        because="the iterates have converged up to rounding",
        source="[GBB26, Prop. 4.3]",
        box="gbb26-prop-4-3",
        rejects=("the iterates end at the means of the components", (1 - last["root"]).max()),
    )
    claim.equal(
        "critical",
        "At $λ = 1$ the distance to the midpoint falls like the power -1/2 of the number of steps (exponent "
        f"between {WINDOW[0]} and {WINDOW[1]:,} steps).",
        _exponent(convergence, 1.0),
        -0.5,
        within=NEXT_TERM,
        because=f"the next term of the expansion is of relative order $ln(n)/n$, here at $n = {WINDOW[0]}$",
        rejects=("the convergence is exponential, as at $λ = 0.998$", _exponent(convergence, 0.998)),
    )
    claim.equal(
        "variance",
        "If tokens vary within a component, the components merge at the distance $2√(γ² + ξ²)$ of their means "
        "(slope of the denoiser at the midpoint there).",
        slopes["both"],
        1.0,
        within=1e-12,
        because="rounding of a derivative in double precision",
        rejects=("they merge at $2ξ$", slopes["noise only"]),
    )
    groups = [
        ends.assign(kind="position").rename(columns={"position": "value"}),
        convergence.assign(kind="distance").rename(columns={"distance": "value"}),
    ]
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the ends of the iteration against the distance, and the convergence at three distances."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    ends, convergence = (table[table["kind"] == kind] for kind in ("position", "distance"))
    left.axvspan(0, 1, color=ink(), alpha=0.08, linewidth=0)
    label(left, 0.06, 1.07, "merged", ink(), xytext=(0, 0), fontsize=12)
    label(left, 1.1, 1.07, "kept apart", ink(), xytext=(0, 0), fontsize=12)
    for steps, colour, marker in coloured((*SHOWN_STEPS[1:], STEPS)):
        chosen = ends[ends["steps"] == steps]
        look = {"color": colour, "markersize": 4, "alpha": 0.8, "label": f"$n={steps}$"}
        left.plot(chosen["separation"], chosen["value"], marker, **look)
    roots = ends.drop_duplicates("separation").sort_values("separation")
    left.plot(roots["separation"], roots["root"], color=ink(), linewidth=1.5, zorder=0)
    left.set_xlabel("half the distance of the means, $\\lambda$,\nin standard deviations of the noise")
    left.set(ylabel="end $|u|$, from midpoint (0) to mean (1)", xlim=(0, None), ylim=(-0.05, 1.15))
    left.set_title("where it ends, after $n$ steps")
    left.legend(loc="lower right")
    for separation, chosen, colour in coloured_rows(convergence[convergence["value"] > CONVERGED], "separation"):
        right.plot(chosen["steps"], chosen["value"], color=colour, label=rf"$\lambda={separation:g}$")
    steps = np.unique(convergence["steps"])
    right.plot(steps, np.sqrt(1.5 / steps), color=ink(), linestyle="--", linewidth=1, label=r"$\sqrt{3/(2n)}$")
    right.set(xscale="log", yscale="log", xlabel="steps $n$", ylabel="distance to the end", title="how fast")
    right.legend(loc="lower left", bbox_to_anchor=(0.45, 0.0))
    return figure


def _exponent(convergence: pd.DataFrame, separation: float) -> float:
    chosen = convergence[convergence["separation"] == separation]
    window = chosen[chosen["steps"].between(*WINDOW)]
    first, last = window.iloc[0], window.iloc[-1]
    return float(np.log(last["distance"] / first["distance"]) / np.log(last["steps"] / first["steps"]))
