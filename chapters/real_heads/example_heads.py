"""Three heads on one prompt: the distribution of their scores, their weights, and their outputs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtri, softmax

from chapters.real_heads import tracked_tables
from chapters.real_heads.encoder import HEADS
from chapters.real_heads.head_comparison import linear_prediction
from chapters.real_heads.head_measurements import GRID, head_inputs, tabulate_participation
from chapters.real_heads.network import Network
from chapters.real_heads.parameters import LONGEST
from chapters.real_heads.statistics import HeadStatistics

# Edges of the bins of standardised scores, number of largest weights, and number of queries.
EDGES, LARGEST, QUERIES = np.linspace(-5.0, 5.0, 61), 64, 128


@dataclass(frozen=True)
class Example:
    """One head on the first prompt, with all its queries.

    `density` is the density of its scores, standardised for each query, at the `middles` of bins. `weights` are in
    decreasing order, averaged over queries; `gaussian_weights` are the weights of Gaussian scores of the same spread,
    at their quantiles. `outputs` and `predictions` of some queries are coordinates along the direction in which
    predictions vary most, minus the mean value, in units of the root mean square of the predictions; `shrinkage` is the
    mean of 1 - P over all queries.
    """

    layer: int
    head: int
    ratio: float
    middles: Float[np.ndarray, " bins"]
    density: Float[np.ndarray, " bins"]
    weights: Float[np.ndarray, " largest"]
    gaussian_weights: Float[np.ndarray, " largest"]
    predictions: Float[np.ndarray, " queries"]
    outputs: Float[np.ndarray, " queries"]
    shrinkage: float


def select_examples(network: Network | None, statistics: HeadStatistics) -> list[Example]:
    """Return the heads of smallest, median and largest spread of scores."""
    order = np.argsort(statistics.ratio.ravel())
    chosen = [int(order[rank]) for rank in (0, len(order) // 2, -1)]
    if network is None:
        return [_tracked(number, statistics) for number in chosen]
    inputs = head_inputs(network, LONGEST, statistics.prompts)
    return [_example(number, statistics, [np.asarray(part[0], np.float64) for part in inputs]) for number in chosen]


def _example(number: int, statistics: HeadStatistics, inputs: list[np.ndarray]) -> Example:
    """Compute the example of one head from the inputs of all heads on the first prompt."""
    layer, head = divmod(number, HEADS)
    queries, keys, values = (part[layer, head] for part in inputs)
    scores = queries @ keys.T
    tau = scores.std(axis=1, keepdims=True)
    density, _ = np.histogram((scores - scores.mean(axis=1, keepdims=True)) / tau, EDGES, density=True)
    weights = softmax(scores, axis=1)
    normal = softmax(tau * ndtri((np.arange(LONGEST) + 0.5) / LONGEST), axis=1)
    mean = values.mean(axis=0)
    predictions = linear_prediction(scores, values) - mean
    along = np.linalg.svd(predictions, full_matrices=False)[2][0]
    outputs, predictions = (weights @ values - mean) @ along, predictions @ along
    size = np.sqrt(np.mean(predictions**2))
    selected = np.arange(0, LONGEST, LONGEST // QUERIES)
    return Example(
        layer=layer,
        head=head,
        ratio=float(statistics.ratio[layer, head]),
        middles=(EDGES[1:] + EDGES[:-1]) / 2,
        density=density,
        weights=np.sort(weights, axis=1)[:, ::-1].mean(axis=0)[:LARGEST],
        gaussian_weights=np.sort(normal, axis=1)[:, ::-1].mean(axis=0)[:LARGEST],
        predictions=predictions[selected] / size,
        outputs=outputs[selected] / size,
        shrinkage=float(1 - np.interp(tau, GRID, tabulate_participation(LONGEST)).mean()),
    )


def rows_of(example: Example) -> pd.DataFrame:
    """Return a table with one row per bin, weight or query; `panel` names the kind of row."""
    ranks = np.arange(1, LARGEST + 1)
    normal = np.exp(-(example.middles**2) / 2) / np.sqrt(2 * np.pi)
    panels = {
        "scores": (example.middles, example.density, normal),
        "weights": (ranks, example.weights, example.gaussian_weights),
        "outputs": (example.predictions, example.outputs, example.shrinkage * example.predictions),
    }
    parts = [pd.DataFrame({"panel": name, "x": x, "found": y, "gaussian": z}) for name, (x, y, z) in panels.items()]
    named = {"layer": example.layer, "head": example.head, "ratio": example.ratio}
    return pd.concat(parts, ignore_index=True).assign(**named)[[*named, "panel", "x", "found", "gaussian"]]


def _tracked(number: int, statistics: HeadStatistics) -> Example:
    """Read the example of one head from the tracked tables."""
    layer, head = divmod(number, HEADS)
    rows = tracked_tables.table("examples")
    rows = rows[(rows["layer"] == layer) & (rows["head"] == head)]
    scores, weights, outputs = (rows[rows["panel"] == name] for name in ("scores", "weights", "outputs"))
    x, expected = outputs["x"].to_numpy(), outputs["gaussian"].to_numpy()
    return Example(
        layer=layer,
        head=head,
        ratio=float(statistics.ratio[layer, head]),
        middles=scores["x"].to_numpy(),
        density=scores["found"].to_numpy(),
        weights=weights["found"].to_numpy(),
        gaussian_weights=weights["gaussian"].to_numpy(),
        predictions=x,
        outputs=outputs["found"].to_numpy(),
        shrinkage=float(x @ expected / (x @ x)),
    )
