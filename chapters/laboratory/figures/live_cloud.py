r"""A query moves the output towards the tokens in its direction, for a prompt and for the distribution of its tokens.

Left: the tokens of one prompt. The area of a circle grows with the softmax weight of the token at the query $z$
(arrow). Square: the mean of the distribution, which is its output at the query 0. Star: the output of the distribution
at $z$. Cross: the output of the prompt at $z$. Right: both outputs minus the mean, in the direction of the query,
against the size of the query. The output of a prompt cannot move further than its outermost token in this direction, so
its curve levels off. Dashed: the Gaussian distribution with the same mean and covariance. Its output minus the mean is
proportional to the size of the query.

Alt: Two panels. Left, clusters of points in the plane, with larger circles towards the tip of an arrow named "query". A
square is at the foot of the arrow, a star and a cross are near its tip. Right, two curves of the output against the
size of the query that level off, below a dashed straight line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.laboratory.clouds import Cloud, Points, outputs, prompt_outputs
from chapters.laboratory.grids import Grid, rounded
from chapters.laboratory.ranges import LARGEST_QUERY
from chapters.laboratory.table_interpolation import between
from chapters.laboratory.trials import Trial
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# The setting of the static picture: a distribution, a prompt, and a query along the first coordinate.
SHOWN = {"law": "mixture", "tokens": 100, "size": 2.0}


def numbers(clouds: Mapping[str, tuple[Cloud, Trial]]) -> Numbers:
    """Return the outputs and tokens of both distributions, and the claim on the interpolation error of the outputs."""
    columns = {
        "law": Column("Distribution of a token", "name"),
        "kind": Column(
            "`law`: the output $(u, v)$ of the distribution at the query $(x, y)$. `Gaussian`: the output of the "
            "Gaussian distribution with the same mean and covariance. `prompt`: the output of the first tokens "
            "of the prompt. `token`: a token $(x, y)$, with the mean $(u, v)$ of the tokens up to this one",
            "name",
        ),
        "x": Column("First coordinate of a query or token"),
        "y": Column("Second coordinate of a query or token"),
        "u": Column("First coordinate of the output", absolute=1e-6),
        "v": Column("Second coordinate of the output", absolute=1e-6),
        "weight": Column(
            f"Weight of each of the first {SHOWN['tokens']} tokens at the query of the picture, times their number",
            absolute=1e-6,
        ),
    }
    frame = pd.concat([part for name, (cloud, trial) in clouds.items() for part in _rows(name, cloud, trial.grid)])
    trials = [trial for _, trial in clouds.values()]
    claim = Claims("live", source="measured here")
    claim.at_most(
        "cloud-read",
        "The laboratory interpolates the outputs of both distributions in its table with small errors (largest "
        f"error of a coordinate at {trials[0].settings} random queries with coordinates up to {LARGEST_QUERY:g}).",
        max(trial.error("u", "v") for trial in trials),
        0,
        within=1e-3,
        because="a tenth of the smallest visible difference",
        rejects=("straight lines between the same nodes", max(trial.error_of_lines("u", "v") for trial in trials)),
    )
    return Numbers(Table(frame[[*columns]].reset_index(drop=True), columns), claim)


def _rows(law: str, cloud: Cloud, grid: Grid) -> list[pd.DataFrame]:
    ray = np.stack([grid.axes[0].nodes, 0 * grid.axes[0].nodes], axis=-1)
    ray = ray[ray[:, 0] >= 0]
    prompt = cloud.tokens[: SHOWN["tokens"]]
    scores = SHOWN["size"] * prompt[:, 0]
    weights = np.exp(scores - np.logaddexp.reduce(scores)) * len(prompt)
    running = np.cumsum(cloud.tokens, axis=0) / np.arange(1, len(cloud.tokens) + 1)[:, None]
    common = {"law": law, "weight": 0.0}
    tokens = _points(cloud.tokens, running).assign(kind="token", **common)
    tokens.loc[: len(prompt) - 1, "weight"] = weights
    return [
        grid.frame.assign(kind="law", **common),
        _points(ray, outputs(cloud.gaussian, ray)).assign(kind="Gaussian", **common),
        _points(ray, prompt_outputs(prompt, ray)).assign(kind="prompt", **common),
        tokens,
    ]


def _points(places: Points, output: Points) -> pd.DataFrame:
    return pd.DataFrame(rounded(np.concatenate([places, output], axis=1)), columns=["x", "y", "u", "v"])


def draw(table: pd.DataFrame) -> Figure:
    """Draw one prompt at one query, and its outputs as the query grows."""
    by_kind = dict(iter(table[table["law"] == SHOWN["law"]].groupby("kind")))
    sizes = np.linspace(0.0, LARGEST_QUERY, 100)
    ray, prompt_ray = (
        pd.DataFrame({"x": sizes, **{part: between(by_kind[kind], part, x=sizes, **along) for part in ("u", "v")}})
        for kind, along in (("law", {"y": 0.0}), ("prompt", {}))
    )
    tokens = by_kind["token"].iloc[: SHOWN["tokens"]]
    figure, (cloud, growth) = plt.subplots(1, 2, figsize=(WIDE, 4.4))
    look = {"color": "C0", "alpha": 0.45, "edgecolor": ink(), "linewidth": 0.4, "rasterized": True}
    cloud.scatter(tokens["x"], tokens["y"], s=4 + 10 * tokens["weight"], **look)
    mean = ray.iloc[0]
    law, prompt = (rows.iloc[(rows["x"] - SHOWN["size"]).abs().argmin()] for rows in (ray, prompt_ray))
    label(cloud, SHOWN["size"] / 4, 0, "query", "C4", xytext=(0, 3), ha="center", va="bottom", fontsize=12)
    cloud.annotate("", (SHOWN["size"], 0), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "C4", "linewidth": 2})
    marks = {"markeredgecolor": ink(), "markerfacecolor": cloud.get_facecolor(), "linestyle": ""}
    cloud.plot(mean["u"], mean["v"], "s", markersize=8, label="output at the query 0, the mean", **marks)
    cloud.plot(law["u"], law["v"], "*", markersize=16, label="output, infinite prompt", **marks)
    name = f"output, these {SHOWN['tokens']} tokens"
    cloud.plot(prompt["u"], prompt["v"], "x", markersize=9, markeredgewidth=2.5, color="C1", label=name)
    cloud.set(xlim=(-3.2, 3.2), ylim=(-4.1, 2.9), aspect="equal", xlabel="first coordinate", ylabel="second coordinate")
    cloud.grid(visible=False)
    cloud.set_title(f"The output at a query of size {SHOWN['size']:g}")
    growth.set_title("The output at every size of the query")
    cloud.legend(loc="lower left", fontsize=10)
    for name, colour, dashes, rows in (
        ("infinite prompt", "C0", "-", ray),
        (f"these {SHOWN['tokens']} tokens", "C1", "-", prompt_ray),
        ("a Gaussian instead", ink(), "--", by_kind["Gaussian"]),
    ):
        growth.plot(rows["x"], rows["u"] - mean["u"], dashes, color=colour, linewidth=2.2, label=name)
    growth.set(xlim=(0, LARGEST_QUERY), xlabel="size of the query", ylabel="move of the output along the query")
    growth.legend(loc="upper left")
    return figure
