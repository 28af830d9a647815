"""The tracked correlations of tokens along a real text; `data/make.py` makes them with the network of `real_heads`."""

from pathlib import Path

import numpy as np
import pandas as pd

TABLE = Path(__file__).parent / "data" / "text.csv"


def read_correlations() -> dict[str, pd.DataFrame]:
    """Return correlations and their standard errors by lag, for each kind of tokens."""
    return {str(name): rows.reset_index(drop=True) for name, rows in pd.read_csv(TABLE).groupby("tokens", sort=False)}


def lag_sum(rows: pd.DataFrame) -> tuple[float, float]:
    """Return `Σ_k r_k` over lags of both signs, r_0 = 1, and a bound on its standard error."""
    return 1 + 2 * float(rows["correlation"].sum()), 2 * float(np.sum(rows["std_error"]))
