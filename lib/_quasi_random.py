"""Fixed quasi-random points for averages over a few normals: no key, the same result every time, and an error
estimate.
"""

import functools

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri


@functools.lru_cache(maxsize=8)
def quasi_normals(dimension: int, points: int, replicates: int) -> Float[np.ndarray, "replicates points dimension"]:
    """Return standard normals from Sobol sequences, each replicate scrambled independently (Owen)."""
    from scipy.stats import qmc  # takes a second to import

    uniforms = np.stack([qmc.Sobol(dimension, rng=seed).random(points) for seed in range(replicates)])
    normals = ndtri(np.clip(uniforms, 2.0**-53, 1.0 - 2.0**-53))
    normals.setflags(write=False)
    return normals
