r"""Only Gaussian tokens give an output that is linear in the query; four other distributions give other curves.

All five distributions of one coordinate have mean 0 and variance 1. Curves are $\Lambda'(\xi)$ at the tilt $\xi = Uz$,
with $V=1$; points are means with two standard errors. Signs and uniform tokens saturate at the largest token, the
mixture passes from one affine expert to another, and finite prompts cannot follow the pole of Laplace tokens.

Alt: A line chart of outputs against the tilt xi from minus four to four. The Gaussian is a straight line, signs and
uniform saturate, the mixture is an asymmetric S, and the Laplace curve blows up at two vertical dotted lines. Points of
finite prompts are on the curves except near the Laplace poles and at the far ends of the Gaussian line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.gaussian_limit.one_coordinate import TiltCurve
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import MARKERS, WIDE, error_bars, ink, label, legend_line, legend_point, legend_with
from lib.statistics import comparison_quantile, standard_error, worst_deviation

# Largest tilt at which Laplace tokens are tested, in units of the pole 1/b: below one half, the fluctuation is finite.
INSIDE = 0.4

# Half the height of the right panel, in units of the output.
HEIGHT = 4.4


def numbers(curves: Mapping[str, TiltCurve]) -> Numbers:
    """Return exact and simulated outputs along the tilts, and one claim per distribution that is not Gaussian."""
    groups = [
        {
            "measure": name,
            "tilt": curve.tilts,
            "log_mgf": curve.log_mgf,
            "exact": curve.exact,
            "prompts_mean": curve.outputs.mean(axis=0),
            "prompts_std_error": standard_error(curve.outputs),
            "pole": curve.pole,
        }
        for name, curve in curves.items()
    ]
    columns = {
        "measure": Column("Distribution of one token coordinate, of mean 0 and variance 1", "name"),
        "tilt": Column("Tilt $ξ = Uz$, the score per unit of token"),
        "log_mgf": Column("$Λ(ξ)$, the logarithm of the moment-generating function", absolute=1e-12),
        "exact": Column("Output $Λ'(ξ)$ of the infinite prompt", absolute=1e-12),
        "prompts_mean": Estimate("Mean output of finite prompts", std_error="prompts_std_error"),
        "pole": Column(
            "Tilt at which $Λ$ becomes infinite: $1/b$ for Laplace tokens of scale $b$, infinite for others"
        ),
    }
    return Numbers(Table.of(groups, columns), _claims(curves))


def _claims(curves: Mapping[str, TiltCurve]) -> Claims:
    """Claim that finite prompts follow each exact curve, where their outputs have a second moment."""
    claim = Claims("gaussian-limit", source="derived here", box="other-tokens")
    formulas = {
        "Rademacher": "$s·tanh(sξ)$ for signs $±s$",
        "uniform": "Langevin's function $a·coth(aξ) - 1/ξ$ for uniform tokens on $[-a, a]$",
        "Laplace": f"$2b²ξ/(1 - b²ξ²)$ for Laplace tokens of scale $b$, at $|ξ| ≤ {INSIDE}/b$",
        "mixture": "a sum of two affine experts, gated by a softmax, for a mixture of two Gaussians",
    }
    chosen = {name: np.abs(curves[name].tilts) <= INSIDE * curves[name].pole for name in formulas}
    compared = sum(int(tilts.sum()) for tilts in chosen.values())
    for name, formula in formulas.items():
        curve, tilts = curves[name], chosen[name]
        outputs = curve.outputs[:, tilts]
        claim.agree(
            name.lower(),
            f"The output of the infinite prompt is {formula}: the means over finite prompts agree with it",
            [worst_deviation(outputs - curve.exact[tilts])],
            within=comparison_quantile(compared),
            because=f"99.9 % quantile of the largest of {compared} normal deviations, those of all four claims",
            rejects=(
                "the output is the line of Gaussian tokens of the same variance",
                worst_deviation(outputs - curve.tilts[tilts]),
            ),
            comparisons=tilts.sum(),
        )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact outputs, with points of finite prompts; mark the poles of Laplace tokens."""
    figure, axes = plt.subplots(figsize=(WIDE, 5.0))
    for index, (measure, curve) in enumerate(table.groupby("measure", sort=False)):
        shown, colour, marker = curve.iloc[::4], f"C{index}", MARKERS[index]
        axes.plot(curve["tilt"], curve["exact"], color=colour, linewidth=2.4)
        error_bars(axes, shown["tilt"], shown["prompts_mean"], shown["prompts_std_error"], color=colour, marker=marker)
        inside = curve[curve["exact"].abs() <= HEIGHT].iloc[-1]
        shift = {"ha": "right", "xytext": (-8, 0)} if inside["tilt"] < table["tilt"].max() / 2 else {}
        label(axes, inside["tilt"], inside["exact"], measure, colour, fontsize=12, **shift)
    pole, edge = table["pole"].min(), table["tilt"].max()
    for position in (-pole, pole):
        axes.axvline(position, color=ink(), linestyle=":", linewidth=1.5)
    axes.set(xlim=(-1.03 * edge, 1.03 * edge), ylim=(-HEIGHT, HEIGHT), xlabel=r"tilt $\xi=Uz$", ylabel="output")
    legend_with(axes, {"infinite prompt": legend_line("-", 2.4), "finite prompts": legend_point()}, loc="upper left")
    label(axes, pole, -HEIGHT, r"Laplace pole $1/b$", ink(), xytext=(5, 8), va="bottom")
    return figure
