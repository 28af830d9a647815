r"""A query tilts the distribution of the tokens, and the output of attention is $V$ times the tilted mean.

The tilted density is proportional to $e^{\langle\xi,z\rangle}\mu(z)$, with the tilt $\xi=Uz$. Circles are the tokens of
one prompt, with areas proportional to their softmax weights. The shift $\Gamma\xi$ of the Gaussian is not in the
direction of $\xi$. In the mixture each component moves by its own $\Gamma_k\xi$; the two on the right have two fifths
of the weight before the tilt and nine tenths after it.

Alt: Two panels of contour lines in the plane. Left: an elliptical density and the same ellipse shifted up and right,
with large circles for tokens on the upper right and tiny ones on the lower left. Right: three clusters; the lower left
one has most of the density and little of the tilted density, and the large circles sit in the two others. In both
panels an arrow points from the mean to the right and slightly up, a star marks the tilted mean, and a cross is close to
it.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from chapters.measures.example_head import ROUNDING, ROUNDING_REASON
from chapters.measures.tilted_distributions import Average, Tilted, Weighted
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, background, ink, label

TITLES = {"Gaussian": r"Gaussian: shifted by $\Gamma\xi$", "mixture": "mixture: the two on the right gain weight"}


def numbers(tilted: Mapping[str, Tilted], shown: Mapping[str, Weighted], averages: Mapping[str, Average]) -> Numbers:
    """Return densities, tokens and means, and the claims on the tilted distribution and its mean."""
    groups = []
    for name, theory in tilted.items():
        densities = {"before": np.exp(theory.log_density), "after": np.exp(theory.log_tilted)}
        prompt = shown[name]
        single = {"mean": theory.mean, "tilted mean": theory.tilted_mean}
        single |= {"prompt's output": prompt.output, "tilt": theory.tilt}
        groups += [
            _points("density", name, theory.points).assign(**densities),
            _points("token", name, prompt.tokens).assign(before=1.0, after=prompt.weights),
            *(_points(kind, name, point[None]) for kind, point in single.items()),
        ]
    columns = {
        "kind": Column(
            "Kind of the point $(x, y)$: a grid point, a token, the mean, the tilted mean or the weighted mean "
            "of the prompt; for `tilt`, $(x, y)$ is $ξ$ itself",
            "name",
        ),
        "law": Column("Distribution of the tokens", "name"),
        "x": Column("First coordinate"),
        "y": Column("Second coordinate"),
        "before": Column("Density at a grid point; for a token its weight under equal scores, 1", absolute=ROUNDING),
        "after": Column("Tilted density; for a token its softmax weight times the number of tokens", absolute=ROUNDING),
    }
    claim = Claims("measures", source="derived here")
    claim.at_most(
        "tilted-law",
        "The tilted Gaussian is $N(m + Γξ, Γ)$, and the tilted mixture is the mixture of the tilted "
        "components with weights proportional to $π_k e^{Λ_k(ξ)}$ (measured: the largest error of a "
        "log-density on the grid of the figure).",
        max(np.abs(theory.log_tilted - theory.log_closed_form).max() for theory in tilted.values()),
        0,
        within=ROUNDING,
        because=ROUNDING_REASON,
        rejects=(
            "the components of the mixture keep their weights",
            max(np.abs(theory.log_tilted - theory.log_unmoved_weights).max() for theory in tilted.values()),
        ),
        box="tilted-gaussians",
    )
    claim.agree(
        "tilted-mean",
        f"The mean of {averages['mixture'].tokens:,} tokens weighted by $e^{{⟨ξ,z⟩}}$ is $∇Λ(ξ)$, for the Gaussian "
        "and for the mixture: the coordinates agree",
        [averages[name].deviations(theory.tilted_mean) for name, theory in tilted.items()],
        rejects=(
            "the weighted mean is the mean before the tilt",
            [averages[name].deviations(theory.mean) for name, theory in tilted.items()],
        ),
        box="tilted-moments",
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per distribution: both densities, tokens by weight, and the means."""
    figure, panels = plt.subplots(1, len(TITLES), figsize=(WIDE, 5.2), sharey=True)
    for panel, (name, rows) in zip(panels, table.groupby("law", sort=False), strict=True):
        grid, tokens = (rows[rows["kind"] == kind] for kind in ("density", "token"))
        _densities(panel, grid)
        look = {"color": "C1", "alpha": 0.55, "edgecolor": ink(), "linewidth": 0.5, "rasterized": True}
        panel.scatter(tokens["x"], tokens["y"], s=14 * tokens["after"], **look)
        mean, tilted, output, tilt = (
            rows[rows["kind"] == kind][["x", "y"]].to_numpy()[0]
            for kind in ("mean", "tilted mean", "prompt's output", "tilt")
        )
        arrow = {"arrowstyle": "-|>", "color": ink(), "linewidth": 1.8, "mutation_scale": 14}
        panel.annotate("", mean + tilt, mean, arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0}, zorder=6)
        label(panel, *(mean + 0.5 * tilt), r"tilt $\xi$", ink(), xytext=(4, -4), va="top", zorder=7, bbox=background())
        marks = {"markeredgecolor": ink(), "markerfacecolor": panel.get_facecolor(), "linestyle": "", "zorder": 6}
        panel.plot(*mean, marker="s", markersize=8, markeredgewidth=1.6, **marks)
        panel.plot(*tilted, marker="*", markersize=17, markeredgewidth=1.4, **marks)
        panel.plot(*output, marker="x", markersize=8, markeredgewidth=2.2, color=ink(), zorder=7)
        panel.set(aspect="equal", title=TITLES[name], xlabel="first coordinate")
        panel.set(xlim=(grid["x"].min(), grid["x"].max()), ylim=(grid["y"].min(), grid["y"].max()))
        panel.grid(visible=False)
    panels[0].set_ylabel("second coordinate")
    hollow = {"color": ink(), "markerfacecolor": "none", "linestyle": ""}
    figure.legend(
        handles=[
            Patch(color="C0", alpha=0.35, label=r"density of $\mu$"),
            Line2D([], [], color="C2", linewidth=2, label="tilted density"),
            Line2D([], [], color="C1", marker="o", markersize=7, linestyle="", label="token, by weight"),
            Line2D([], [], marker="s", markersize=7, label=r"mean of $\mu$", **hollow),
            Line2D([], [], marker="*", markersize=12, label=r"tilted mean $\nabla\Lambda(\xi)$", **hollow),
            Line2D([], [], marker="x", markersize=7, markeredgewidth=2, label="weighted mean of the tokens", **hollow),
        ],
        loc="outside lower center",
        ncols=3,
    )
    return figure


def _densities(axes: Axes, table: pd.DataFrame) -> None:
    side = table["x"].nunique()
    x, y, density, tilted = (table[name].to_numpy().reshape(side, side) for name in ("x", "y", "before", "after"))
    levels, peak = np.asarray([0.03, 0.1, 0.25, 0.45, 0.7]), density.max()
    for low, high in zip(levels, [*levels[1:], 1.01], strict=True):
        axes.contourf(x, y, density, [low * peak, high * peak], colors=["C0"], alpha=0.16 + 0.6 * low)
    axes.contour(x, y, tilted, levels * tilted.max(), colors=["C2"], linewidths=1.6)


def _points(kind: str, law: str, points: Float[np.ndarray, "n d"]) -> pd.DataFrame:
    return pd.DataFrame({"kind": kind, "law": law, "x": points[:, 0], "y": points[:, 1]})
