r"""Five token laws of the same mean and the same variance, one coordinate.

Left: the logarithm of the moment-generating function, $\Lambda(\xi)$, at score scale $\xi = Uz$. Right: its slope
$\Lambda'(\xi)$, the exact output of the infinite prompt ($V=1$), and as points the mean output of independent finite
prompts, with two standard errors. At $\xi=0$ all curves on the left have the same height, slope and curvature, so that
all on the right are tangent: there attention sees only the mean and the variance. Only the Gaussian's is a parabola,
and stays on its tangent. Signs and the uniform law saturate at their largest value, the mixture goes from one affine
expert to another, the Laplace law has a pole (dotted), which finite prompts cannot follow. At large $\xi$ the Gaussian
prompts leave their line too, being finite.

Alt: Two line charts against the tilt xi from minus four to four. Left, five bowls that touch at the origin: the
Gaussian is a parabola, signs and uniform open to straight sides, the Laplace bowl has vertical walls. Right, their
slopes: the Gaussian is a straight line, signs and uniform saturate, the mixture is an asymmetric S, and the Laplace
curve blows up at two vertical dotted lines. Points of finite prompts lie on the curves except near the Laplace poles
and at the far ends of the Gaussian line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.gaussian_limit.one_coordinate import Sweep
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label, markers
from lib.statistics import comparison_quantile, standard_error, worst_deviation

# How far the Laplace law is tested, in units of the pole 1/b: below a half, prompts have a finite fluctuation.
INSIDE = 0.4

# Of the picture, in units of the output.
HEIGHT = 4.4


def numbers(sweeps: Mapping[str, Sweep]) -> Numbers:
    """Exact and simulated outputs along the tilts; each law that is not Gaussian against its formula."""
    return Numbers(_table(sweeps), _claims(sweeps))


def _table(sweeps: Mapping[str, Sweep]) -> Table:
    """Exact output and mean output of finite prompts, by measure and tilt."""
    frames = [
        pd.DataFrame(
            {
                "measure": name,
                "tilt": these.tilts,
                "log_mgf": these.log_mgf,
                "exact": these.exact,
                "prompts_mean": these.outputs.mean(axis=0),
                "prompts_std_error": standard_error(these.outputs),
                "pole": these.pole if np.isfinite(these.pole) else np.nan,
            }
        )
        for name, these in sweeps.items()
    ]
    columns = {
        "measure": Column("Law of one token coordinate, of mean 0 and variance 1", "name"),
        "tilt": Column("Score per unit of token, ξ = Uz"),
        "log_mgf": Column("Λ(ξ), the logarithm of the moment-generating function", absolute=1e-12),
        "exact": Column("Output Λ'(ξ) of the infinite prompt", absolute=1e-12),
        "prompts_mean": Column("Mean output of finite prompts", std_error="prompts_std_error"),
        "prompts_std_error": Column("Standard error of that mean", moves_with="prompts_mean"),
        "pole": Column("Where Λ becomes infinite, 1/b for the Laplace law of scale b; empty for the others"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _claims(sweeps: Mapping[str, Sweep]) -> list[Claim]:
    """Each exact curve that is not a line against its finite prompts, where these have a second moment."""
    words = {
        "Rademacher": "s·tanh(sξ) for signs ±s",
        "uniform": "Langevin's function a·coth(aξ) - 1/ξ for the uniform law on [-a, a]",
        "Laplace": f"2b²ξ/(1 - b²ξ²) for the Laplace law of scale b, at |ξ| ≤ {INSIDE}/b",
        "mixture": "two affine experts gated by a softmax for a mixture of two Gaussians",
    }
    chosen = {name: np.abs(sweeps[name].tilts) <= INSIDE * sweeps[name].pole for name in words}
    bound = comparison_quantile(sum(int(tilts.sum()) for tilts in chosen.values()))
    claims = []
    for name, formula in words.items():
        outputs, tilts = sweeps[name].outputs[:, chosen[name]], sweeps[name].tilts[chosen[name]]
        claims.append(
            Claim(
                id=f"gaussian-limit-{name.lower()}",
                statement=(
                    f"In the limit attention answers {formula}: the worst deviation of the mean over finite "
                    f"prompts, over {len(tilts)} tilts, in standard errors."
                ),
                source="derived here",
                box="other-tokens",
                measured=worst_deviation(outputs - sweeps[name].exact[chosen[name]]),
                expected=0.0,
                tolerance=bound,
                alternative=Alternative(
                    "the line of the Gaussian of the same covariance", worst_deviation(outputs - tilts)
                ),
            )
        )
    return claims


def draw(table: pd.DataFrame) -> Figure:
    """`Λ`, and its slope with points of finite prompts; Laplace's poles in both."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.6), sharex=True)
    measures = list(dict.fromkeys(table["measure"]))
    for measure, marker in zip(measures, markers(len(measures)), strict=True):
        curve = table[table["measure"] == measure]
        (line,) = left.plot(curve["tilt"], curve["log_mgf"], linewidth=2)
        right.plot(curve["tilt"], curve["exact"], linewidth=2)
        shown = curve.iloc[::4]
        look = {"color": line.get_color(), "marker": marker}
        error_bars(right, shown["tilt"], shown["prompts_mean"], shown["prompts_std_error"], **look)
        last = curve.iloc[-1]
        there = {"ha": "right", "xytext": (-6, 6)} if last["tilt"] < table["tilt"].max() else {}
        label(left, last["tilt"], last["log_mgf"], measure, line.get_color(), **there)
        inside = curve[curve["exact"].abs() <= HEIGHT].iloc[-1]
        there = {"ha": "right", "xytext": (-8, 0)} if inside["tilt"] < curve["tilt"].max() / 2 else {}
        label(right, inside["tilt"], inside["exact"], measure, line.get_color(), **there)
    pole, edge = table["pole"].max(), table["tilt"].max()
    for axes in (left, right):
        for place in (-pole, pole):
            axes.axvline(place, color=ink(), linestyle=":", linewidth=1.5)
        axes.set(xlim=(-edge, edge), xlabel=r"score per unit of token, $\xi=Uz$")
    left.set(ylim=(0, None), ylabel=r"$\Lambda(\xi)$")
    right.set(ylim=(-HEIGHT, HEIGHT), ylabel=r"output, $\Lambda'(\xi)$")
    label(right, pole, -HEIGHT, r"Laplace pole $1/b$", ink(), xytext=(5, 8), va="bottom")
    headline(figure, "Only Gaussian tokens make attention linear in the query")
    return figure
