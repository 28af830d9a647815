"""The least error of one head with each kernel on single-location regression."""

from dataclasses import dataclass

from chapters.which_kernel.kernels import KERNELS
from lib.single_location import PositiveKernel, Spiked, bayes_risk, best_risk, softmax, softplus

# The library knows these kernels; its search for softplus includes infinitely large keys.
NAMED = {"exp": softmax, "softplus": softplus}


@dataclass(frozen=True)
class Retrieval:
    """Excess errors of the best head by kernel, and of the best predictor, at one length and signal strength."""

    length: int
    snr: float
    errors: dict[str, float]
    bayes: float


def solve_retrieval(length: int, snr: float) -> Retrieval:
    """Return the least error of a head with each kernel, over its key and its value."""
    task = Spiked(float(length), snr)
    heads = {kernel: NAMED.get(kernel) or PositiveKernel(log_kernel) for kernel, log_kernel in KERNELS.items()}
    errors = {kernel: float(best_risk(task, head)) for kernel, head in heads.items()}
    return Retrieval(length, snr, errors, float(bayes_risk(task)))
