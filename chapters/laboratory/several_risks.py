"""Least risks of three kinds of heads with several relevant tokens."""

import numpy as np
import pandas as pd

from chapters.laboratory.ranges import LARGEST_SEVERAL_SNR, SEVERAL_LENGTH
from lib.single_location import Several, best_risk, linear, sigmoid, softmax

RELEVANT = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
HEADS = {"softmax": softmax, "linear": linear, "sigmoid": sigmoid}


def solve_several_risks() -> pd.DataFrame:
    """Return the least risks at all settings of the page: whole signal strengths, and some numbers of tokens."""
    grid = np.meshgrid(RELEVANT, np.arange(LARGEST_SEVERAL_SNR + 1.0), indexing="ij")
    relevant, snr = (np.asarray(axis, dtype=float).ravel() for axis in grid)
    task = Several(np.full(relevant.size, float(SEVERAL_LENGTH)), relevant, snr)
    risks = {name: np.asarray(best_risk(task, head)) for name, head in HEADS.items()}
    return pd.DataFrame({"relevant": relevant.astype(int), "snr": snr, **risks})
