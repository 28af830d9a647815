"""The spiked model at strong hints: exact risks, and the laws that they tend to."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from chapters.softmax_advantage.models import Risks, bayes_risk, best_sigmoid
from lib import single_location as sl

# Where the laws at strong hints are read off, and up to where their corrections, of order 1/ν, are looked at.
STRONG, STRONGEST = 45.0, 90.0
LAWS = {
    "softmax": lambda length, snr: (length - 1) * 0.5 * np.sqrt(np.pi / snr) * np.exp(-snr / 4),
    "hardmax": lambda length, snr: (length - 1) * (2 / np.sqrt(np.pi * snr)) * np.exp(-snr / 4),
    "sigmoid": lambda length, snr: np.sqrt((length - 1) * np.pi / (2 * snr)) * np.exp(-snr / 8),
    "linear": lambda length, snr: length / snr,
}


def best_risks(lengths: Iterable[int]) -> dict[int, Risks]:
    """By length: exact risks in the spiked model along strong hints, always for two tokens too."""
    snrs = np.sort(np.append(np.geomspace(4.0, STRONGEST, 18), STRONG))
    return {length: _best_risks(sl.Spiked(length, snrs), snrs) for length in sorted({2, *lengths})}


def _best_risks(tasks: sl.Spiked, snrs: Float[np.ndarray, " snrs"]) -> Risks:
    exact = {
        "softmax": bayes_risk(tasks),
        "hardmax": np.asarray(sl.best_risk(tasks, sl.hardmax)),
        "sigmoid": best_sigmoid("spiked", tasks),
        "linear": np.asarray(sl.best_risk(tasks, sl.linear)),
    }
    return Risks(snrs, exact)
