r"""A prompt and its law answer a query.

Left: the tokens of one prompt, their areas in proportion to their softmax weights at the query $z$ (arrow); square,
mean of the law; star, the law's answer $\nabla\Lambda(z)$; cross, the prompt's. Right: both answers, along the query,
as it grows in this direction. A prompt cannot answer beyond its outermost token. Dashed: a Gaussian law with the same
mean and covariance.

Alt: Two panels. Left, clusters of points in the plane, those towards the tip of an arrow drawn as larger circles, with
a square, a star and a cross. Right, two curves of the answer against the size of the query that level off, below a
dashed straight line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

from chapters.laboratory.clouds import Cloud, Points, answers, draw_clouds, prompt_answers
from chapters.laboratory.grids import Axis, Grid, rounded
from chapters.laboratory.marks import between
from chapters.laboratory.trials import Trial, uniform
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink

LARGEST, TOKENS = 3.0, 300
# Of each coordinate of a query; an odd number, so that zero is one of them.
NODES = 25
# What is drawn where nothing moves: a law, a prompt, and a query along the first coordinate.
SHOWN = {"law": "mixture", "tokens": 100, "size": 2.0}


def simulate(settings: int, *, key: PRNGKeyArray) -> Mapping[str, tuple[Cloud, Trial]]:
    """Of each law: a prompt, answers to all queries of a grid, and to random queries of the same square."""
    axes = [Axis.between(name, -LARGEST, LARGEST, NODES) for name in ("x", "y")]
    places = tuple(map(np.asarray, uniform(key, settings, (-LARGEST, LARGEST), (-LARGEST, LARGEST))))
    made = {}
    for name, cloud in draw_clouds(TOKENS, key=key).items():

        def exactly(x, y, law=cloud.law):
            answer = answers(law, np.stack([x, y], axis=-1))
            return {"u": answer[..., 0], "v": answer[..., 1]}

        made[name] = (cloud, Trial(Grid.of(axes, exactly), places, exactly(*places)))
    return made


def numbers(made: Mapping[str, tuple[Cloud, Trial]]) -> Numbers:
    """Answers and tokens of both laws, and what is drawn of one prompt; how far answers are off between the nodes."""
    columns = {
        "law": Column("Law of a token", "name"),
        "kind": Column(
            "`law`: the law's answer (u, v) to the query (x, y). `Gaussian`: that of the Gaussian law with the same "
            "mean and covariance. `prompt`: that of the first tokens of the prompt. `token`: a token (x, y), the "
            "tokens up to it having the mean (u, v)",
            "name",
        ),
        "x": Column("First coordinate of a query or token"),
        "y": Column("Second coordinate of a query or token"),
        "u": Column("First coordinate of the answer", absolute=1e-6),
        "v": Column("Second coordinate of the answer", absolute=1e-6),
        "weight": Column(
            f"Of the first {SHOWN['tokens']} tokens: their weight at the query that is drawn, times their number",
            absolute=1e-6,
        ),
    }
    frame = pd.concat([part for name, (cloud, trial) in made.items() for part in _rows(name, cloud, trial.grid)])
    trials = {name: trial for name, (_, trial) in made.items()}
    cloud, mixture = made["mixture"]
    affine = answers(cloud.gaussian, np.stack(mixture.places, axis=-1)) - np.stack(
        list(mixture.exact.values()), axis=-1
    )
    read = Claim(
        id="live-cloud-read",
        statement=(
            f"The answers of both laws that the page reads from its table are exact, at {mixture.settings} random "
            f"queries with coordinates up to {LARGEST:g}: the largest error of a coordinate."
        ),
        source="measured here",
        measured=max(trial.error("u", "v") for trial in trials.values()),
        expected=0.0,
        tolerance=1e-3,  # a tenth of what can be seen
        relation="≤",
        alternative=Alternative("a Gaussian law with the mixture's mean and covariance", float(np.abs(affine).max())),
    )
    return Numbers(Table(frame[[*columns]].reset_index(drop=True), columns), (read,))


def _rows(law: str, cloud: Cloud, grid: Grid) -> list[pd.DataFrame]:
    ray = np.stack([grid.axes[0].nodes, 0 * grid.axes[0].nodes], axis=-1)
    ray = ray[ray[:, 0] >= 0]
    prompt = cloud.tokens[: SHOWN["tokens"]]
    scores = SHOWN["size"] * prompt[:, 0]
    weights = np.exp(scores - np.logaddexp.reduce(scores)) * len(prompt)
    running = np.cumsum(cloud.tokens, axis=0) / np.arange(1, len(cloud.tokens) + 1)[:, None]
    told = {"law": law, "weight": 0.0}
    tokens = _points(cloud.tokens, running).assign(kind="token", **told)
    tokens.loc[: len(prompt) - 1, "weight"] = weights
    return [
        grid.frame.assign(kind="law", **told),
        _points(ray, answers(cloud.gaussian, ray)).assign(kind="Gaussian", **told),
        _points(ray, prompt_answers(prompt, ray)).assign(kind="prompt", **told),
        tokens,
    ]


def _points(places: Points, answer: Points) -> pd.DataFrame:
    both = np.concatenate([places, answer], axis=1)
    return pd.DataFrame(rounded(both), columns=["x", "y", "u", "v"])


def draw(table: pd.DataFrame) -> Figure:
    """One prompt at one query, and its answers as the query grows."""
    mine = {kind: rows for kind, rows in table[table["law"] == SHOWN["law"]].groupby("kind")}
    sizes = np.linspace(0.0, LARGEST, 100)
    law_ray = {part: between(mine["law"], part, x=sizes, y=0.0) for part in ("u", "v")}
    prompt_ray = {part: between(mine["prompt"], part, x=sizes) for part in ("u", "v")}
    ray, prompt_ray = (pd.DataFrame({"x": sizes, **answer}) for answer in (law_ray, prompt_ray))
    tokens = mine["token"].iloc[: SHOWN["tokens"]]
    figure, (cloud, growth) = plt.subplots(1, 2, figsize=(8.5, 4.2))
    look = {"color": "C0", "alpha": 0.45, "edgecolor": ink(), "linewidth": 0.4, "rasterized": True}
    cloud.scatter(tokens["x"], tokens["y"], s=4 + 10 * tokens["weight"], **look)
    mean = ray.iloc[0]
    law, prompt = (rows.iloc[(rows["x"] - SHOWN["size"]).abs().argmin()] for rows in (ray, prompt_ray))
    cloud.annotate("", (SHOWN["size"], 0), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "C4", "linewidth": 2})
    marks = {"markeredgecolor": ink(), "markerfacecolor": cloud.get_facecolor(), "linestyle": ""}
    cloud.plot(mean["u"], mean["v"], "s", markersize=8, label="mean of the law", **marks)
    cloud.plot(law["u"], law["v"], "*", markersize=16, label="the law's answer", **marks)
    cloud.plot(prompt["u"], prompt["v"], "x", markersize=9, markeredgewidth=2.5, color="C1", label="the prompt's")
    cloud.set(xlim=(-3.2, 3.2), ylim=(-3.3, 3.3), aspect="equal", xlabel="first coordinate", ylabel="second coordinate")
    cloud.grid(visible=False)
    cloud.legend(loc="upper right", fontsize=9)
    lines = {
        "law": ("C0", "-", ray),
        "prompt": ("C1", "-", prompt_ray),
        "Gaussian": (ink(), "--", mine["Gaussian"]),
    }
    names = {"law": "law", "prompt": f"prompt of {SHOWN['tokens']} tokens", "Gaussian": "Gaussian law"}
    for kind, (colour, dashes, rows) in lines.items():
        growth.plot(rows["x"], rows["u"], dashes, color=colour, linewidth=2.2, label=names[kind])
    growth.set(xlim=(0, LARGEST), xlabel="size of the query", ylabel="answer, along the query")
    growth.legend(loc="upper left")
    headline(figure, "A query pulls the answer towards the tokens that it points to")
    return figure
