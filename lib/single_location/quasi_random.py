"""Fixed points for averages over a few normals: no key, the same answer every time, and still an error bar."""

import functools

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri


@functools.lru_cache(maxsize=8)
def quasi_normals(dimension: int, points: int, replicates: int) -> Float[np.ndarray, "replicates points dimension"]:
    """Standard normals from Sobol sequences, each replicate scrambled by itself (Owen), of `points` = 2^k points.

    A mean over the points of one replicate is unbiased; the scatter between replicates is its error. Every prefix of
    2^j points is a Sobol set too. The scrambles are those of seeds 0, 1, …, so nothing here is random to the caller.
    """
    from scipy.stats import qmc  # takes a second to import

    uniforms = np.stack([qmc.Sobol(dimension, rng=seed).random(points) for seed in range(replicates)])
    normals = ndtri(np.clip(uniforms, 2.0**-53, 1.0 - 2.0**-53))
    normals.setflags(write=False)
    return normals
