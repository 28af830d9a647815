"""The spread at which a head freezes, bounds between its regimes, and the distance that counts as near."""

import numpy as np

# In units of freezing, τ̂/√(2 ln L), the spread of a head is small below the first bound, and a head is frozen from the
# second on.
LINEAR, FROZEN = 0.5, 1.0
# A participation is near the curve of Gaussian scores if it is within this factor of it.
NEAR = 1.5


def freezing(length: int) -> float:
    """Return √(2 ln L), the spread of scores at which softmax freezes."""
    return float(np.sqrt(2.0 * np.log(length)))
