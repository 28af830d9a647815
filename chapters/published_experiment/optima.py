"""The exact least mean squares of one softmax head and of linear attention, for both covariances of the data."""

from collections.abc import Mapping

import jax
import numpy as np
import pandas as pd

from chapters.published_experiment.protocol import LAWS, published_task
from companion import Column, Estimate
from lib.icl import Blocks, QueryAverage, ScoreTable, block_risk

# Least mean squares by (law, activation, length).
Optima = Mapping[tuple[str, str, int], float]
# Columns that the tables of this chapter share.
MEAN_SQUARE_COLUMNS = {
    "law": Column("Covariances of the data: corrected, or as the published code draws them", "name"),
    "predictor": Column("Softmax or linear attention, or ridge regression, the Bayes predictor", "name"),
    "length": Column("Tokens in a prompt, $L$", "tokens"),
    "mean_square": Estimate("Mean square: exact, or on fresh prompts, with a standard error", std_error="std_error"),
}


def solve_best_mean_squares(lengths: list[int]) -> Optima:
    """Return the least mean squares of one softmax head and of linear attention, for both covariances."""
    queries, risk = QueryAverage.of_frames(5), jax.jit(block_risk)
    lengths = sorted(set(lengths))
    log_lengths = np.log(lengths)
    tables = ScoreTable.at_each(log_lengths)
    optima = {}
    for law, bug in LAWS.items():
        task, blocks = published_task(bug), None
        for length, log_length, scores in zip(lengths, log_lengths, tables, strict=True):
            # the optimum of the next shorter prompt is a good start
            blocks = Blocks.best(task, log_length, start=blocks)
            # the search uses few nodes, the result many
            found = risk(task, blocks, scores, queries)
            optima[law, "softmax", length] = 2 * float(found)
            optima[law, "linear", length] = 2 * float(task.linear_attention_risk(length))
    return optima


def curves_frame(optima: Optima, lengths: list[int]) -> pd.DataFrame:
    """Return the optima at the given lengths, one row per pair of covariances, head and length."""
    rows = [(*head, square) for head, square in optima.items() if head[-1] in lengths]
    return pd.DataFrame(rows, columns=["law", "predictor", "length", "mean_square"])
