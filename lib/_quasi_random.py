"""Standard normals from scrambled Sobol sequences, for averages over a few normals. Equal seeds give equal points."""

import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri


@functools.lru_cache(maxsize=8)
def quasi_normals(dimension: int, points: int, seeds: Sequence[int]) -> Float[np.ndarray, "seeds points dimension"]:
    """Return one set per seed. Sets are scrambled independently (Owen): their scatter estimates the error."""
    from scipy.stats import qmc  # takes a second to import

    uniforms = np.stack([qmc.Sobol(dimension, rng=seed).random(points) for seed in seeds])
    normals = ndtri(np.clip(uniforms, 2.0**-53, 1.0 - 2.0**-53))
    normals.setflags(write=False)
    return normals
