"""Heads as points: the entries of a head (U, v) that matter, and those that aligned and swapped heads use.

The query's last coordinate is 0, so the last column of U is left out.
"""

import numpy as np
from jaxtyping import Float

from chapters.published_experiment.protocol import WIDTH
from lib.attention import Attention

ENTRIES = np.arange(WIDTH * WIDTH)
# Entries of aligned heads (scores depend on covariates, the value is the label), and of swapped heads (scores depend on
# labels, the values are covariates). Gradient descent leaves neither family, see the box `two-families`.
ALIGNED_ENTRIES = np.append(ENTRIES[: (WIDTH - 1) ** 2], ENTRIES[-1])
SWAPPED_ENTRIES = ENTRIES[(WIDTH - 1) ** 2 : -1]


def points_of(heads: Attention) -> Float[np.ndarray, "*heads n"]:
    """Return the points of any number of heads."""
    bilinear, value = np.asarray(heads.bilinear)[..., : WIDTH - 1], np.asarray(heads.value)[..., -1, :]
    return np.concatenate([bilinear.reshape(*value.shape[:-1], -1), value], axis=-1)
