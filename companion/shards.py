"""Pieces of heavy simulations, computed beforehand by processes of their own, for the notebook to find.

They lie in a folder that bears the notebook's content key in its name: what was computed from other parameters or
other sources is not found.
"""

import importlib
import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from companion import atomic, freshness
from companion.house import House
from companion.mistakes import Mistake, did_you_mean
from companion.notebooks import Notebook
from companion.parameters import check, resolve

if TYPE_CHECKING:  # importing an experiment imports them all
    from lib.experiments.shards import Shards


def folder(house: House, name: str, profile: str) -> Path:
    """Where the shards of notebook `name` belong, as it is now."""
    return house.build(profile).shards / f"{name}.{freshness.notebook_key(house, name, profile)}"


def files(house: House, name: str, profile: str) -> dict[str, Path]:
    """Every shard of notebook `name`, and its file, whether or not it is there; most notebooks have none."""
    target = folder(house, name, profile)
    return {shard: target / f"{shard}.npz" for shard in _shards(house, name, profile)}


def compute(house: House, name: str, shard: str, profile: str) -> Path:
    """Compute one shard and leave its file, whole or not at all."""
    import jax

    target = folder(house, name, profile)
    with jax.enable_x64(True):
        shards = _shards(house, name, profile)
        if shard not in shards:
            raise Mistake(f"Notebook {name!r} has no shard {shard!r} in this profile. {did_you_mean(shard, shards)}")
        arrays = shards[shard]()
    content = io.BytesIO()
    np.savez(content, **arrays)  # pyright: ignore
    _forget_others(target)
    atomic.write_bytes(target / f"{shard}.npz", content.getvalue())
    return target / f"{shard}.npz"


def _shards(house: House, name: str, profile: str) -> "Shards":
    notebook = Notebook.named(house, name)
    values = check(notebook, resolve(house, notebook, profile))
    listed = getattr(importlib.import_module(f"lib.experiments.{name}"), "shards", None)
    return listed(**values) if listed else {}


def _forget_others(target: Path) -> None:
    """Remove the shards of what this notebook was before."""
    for old in target.parent.glob(f"{target.name.split('.')[0]}.*"):
        if old != target:
            shutil.rmtree(old, ignore_errors=True)
