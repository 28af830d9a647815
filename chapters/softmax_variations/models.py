"""The two models of a relevant token, and their Bayes risk."""

import numpy as np
from jaxtyping import Float

from lib import single_location
from lib.single_location import LocationTask, Max, Spiked

MODELS = {"spiked": Spiked, "max": Max}
# Length and signal strength at which single heads are evaluated; the task is neither trivial nor hopeless.
GENERIC_LENGTH, GENERIC_SNR = 10, 4.0


def bayes_risk(task: LocationTask) -> Float[np.ndarray, "*stack"]:
    """Return the Bayes risk as a NumPy array."""
    return np.asarray(single_location.bayes_risk(task))
