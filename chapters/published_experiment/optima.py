"""The least mean squares of one softmax head and of linear attention, exact, under both data laws."""

from collections.abc import Mapping

import jax
import numpy as np
import pandas as pd

from chapters.published_experiment.protocol import LAWS, POOLS, published_task
from companion import Column
from lib.icl import best_blocks, block_risk, query_average, score_table

# Least mean squares by (law, activation, length).
Optima = Mapping[tuple[str, str, int], float]
CURVE_COLUMNS = {
    "length": Column("Tokens in a prompt, L", "tokens"),
    "softmax": Column("Least mean square of one softmax head, exact"),
    "linear": Column("Least mean square of linear attention, exact"),
}


def best_mean_squares(lengths: list[int]) -> Optima:
    """Of one softmax head and of linear attention, under both laws, at each length."""
    queries = query_average(5)
    risk = jax.jit(block_risk)
    optima = {}
    for law, bug in LAWS.items():
        task, blocks = published_task(bug), None
        for length in sorted(set(lengths)):
            # from the shorter prompt's optimum, which is near
            blocks = best_blocks(task, float(np.log(length)), start=blocks)
            # searched on few nodes, judged on many
            found = risk(task, blocks, score_table(float(np.log(length))), queries)
            optima[law, "softmax", length] = 2 * float(found)
            optima[law, "linear", length] = 2 * float(task.linear_attention_risk(length))
    return optima


def curves_frame(optima: Optima, lengths: list[int]) -> pd.DataFrame:
    """The optima at the lengths asked for, a row each law and length."""
    rows = [
        {"law": law, "length": length} | {activation: optima[law, activation, length] for activation in POOLS}
        for law in LAWS
        for length in sorted(set(lengths))
    ]
    return pd.DataFrame(rows)
