"""The least error of one head with each kernel on single-location regression."""

from dataclasses import dataclass

from chapters.which_kernel.kernels import KERNELS
from lib.single_location import Activation, Spiked, bayes_risk, best_risk


@dataclass(frozen=True)
class Retrieval:
    """Excess errors of the best head by kernel, and of the best predictor, at one length and signal strength."""

    length: int
    snr: float
    errors: dict[str, float]
    bayes: float


def solve_retrieval(length: int, snr: float) -> Retrieval:
    """Return the least error of a head with each kernel, over its key and its value.

    That of a softmax head is the Bayes risk [D26, Prop. 4.2].
    """
    task = Spiked(float(length), snr)
    bayes = float(bayes_risk(task))
    errors = {"exp": bayes}
    for kernel, log_kernel in KERNELS.items():
        if kernel != "exp":
            errors[kernel] = float(best_risk(task, Activation.of_kernel(log_kernel)))
    return Retrieval(length, snr, errors, bayes)
