"""The lowest risk of each kind of head, the Bayes risk by two integrals, and the Bayes risk at half strength."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.softmax_advantage.models import MODELS, Risks, bayes_integrals, bayes_risk, best_sigmoid
from lib.single_location import LocationTask, Spiked, best_elementwise_risk, best_risk, linear


@dataclass(frozen=True)
class TwoIntegrals:
    """The Bayes risk by each of its two integrals, and by the second also for prompts with one more token."""

    first: Float[np.ndarray, "models lengths snrs"]
    second: Float[np.ndarray, "models lengths snrs"]
    second_longer: Float[np.ndarray, "models lengths snrs"]


@dataclass(frozen=True)
class HalfStrength:
    """Two tokens, spiked model: the least element-wise risk, and Bayes risks at half and at full signal strength."""

    elementwise: Float[np.ndarray, " snrs"]
    bayes_of_half: Float[np.ndarray, " snrs"]
    bayes: Float[np.ndarray, " snrs"]


def strengths(n: int) -> Float[np.ndarray, " n"]:
    """Return `n` signal strengths ν, from hardly any signal to one that is nearly certain."""
    return np.geomspace(0.1, 60.0, n)


def solve_best_risks(lengths: Iterable[int], snrs: Float[np.ndarray, " snrs"]) -> dict[tuple[str, int], Risks]:
    """Return the Bayes risk and the best sigmoid and linear risks along ν, by model and length."""
    return {
        (model, length): _best_risks(model, make(length, snrs), snrs)
        for model, make in MODELS.items()
        for length in sorted(lengths)
    }


def _best_risks(model: str, tasks: LocationTask, snrs: Float[np.ndarray, " snrs"]) -> Risks:
    linear_risks = np.asarray(best_risk(tasks, linear))
    return Risks(snrs, {"softmax": bayes_risk(tasks), "sigmoid": best_sigmoid(model, tasks), "linear": linear_risks})


def solve_both_integrals(lengths: Iterable[int]) -> TwoIntegrals:
    """Return Bayes risks by both integrals, from two tokens to a hundred million, at weak and strong signals."""
    snrs = np.asarray([0.01, 1.0, 10.0, 60.0])
    tested_lengths = sorted({2, *lengths, 10**8})
    integrals = [
        [
            (*bayes_integrals(make(length, snrs)), bayes_integrals(make(length + 1, snrs))[1])
            for length in tested_lengths
        ]
        for make in MODELS.values()
    ]
    return TwoIntegrals(*np.moveaxis(np.asarray(integrals), 2, 0))


def solve_half_strength() -> HalfStrength:
    """Return least element-wise risks, and Bayes risks at half and full signal strength, for two tokens."""
    snrs = np.asarray([0.1, 1.0, 4.0, 10.0, 40.0])
    elementwise = np.asarray(best_elementwise_risk(Spiked(2, snrs)))
    return HalfStrength(elementwise, bayes_risk(Spiked(2, snrs / 2)), bayes_risk(Spiked(2, snrs)))
