"""Participation of the heads on the text and on Gaussian tokens, compared with the exact curves of Gaussian scores."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.real_heads.head_measurements import GRID, tabulate_participation
from chapters.real_heads.regimes import NEAR, freezing
from chapters.real_heads.statistics import ByLength, Control, Heads, HeadStatistics, Measured, bootstrap, measure
from lib.finite_prompt import participation

# Distance from the factor `NEAR`, in logarithms, up to which a head is compared with the quadrature; tabulated curves
# are more accurate.
EDGE = 1e-3


@dataclass(frozen=True)
class Participations:
    """Participation of all heads at every length, with errors, and the exact `curves` of Gaussian scores at `taus`.

    `deviations` are those of simulated Gaussian prompts from the exact participation, in standard errors; `common` are
    the deviations if all queries of a head had its mean spread. At least `drawn` prompts are simulated per head. `near`
    counts by length the heads within a factor `NEAR` of the curve; its alternative counts simulated Gaussian prompts.
    """

    heads: ByLength
    errors: Mapping[int, Mapping[str, Heads]]
    taus: Float[np.ndarray, " taus"]
    curves: Mapping[int, Float[np.ndarray, " taus"]]
    deviations: Mapping[int, Heads]
    common: Mapping[int, Heads]
    drawn: int
    near: Mapping[int, Measured]


def solve_participations(heads: ByLength, controls: Mapping[int, Control], *, key: PRNGKeyArray) -> Participations:
    """Compare heads on the text, and heads on Gaussian tokens, with the exact curves."""
    taus = np.geomspace(0.4, 25.0, 60)
    return Participations(
        heads=heads,
        errors={
            length: {
                name: bootstrap(lambda sample, name=name: sample.mean(name), statistics, key=key)
                for name in ("tau", "participation")
            }
            for length, statistics in heads.items()
        },
        taus=taus,
        curves={length: np.asarray(participation(taus, np.log(length))) for length in heads},
        deviations={length: control.deviations(control.expected_participation) for length, control in controls.items()},
        common={length: control.deviations(_at_mean_spread(control)) for length, control in controls.items()},
        drawn=min(control.prompts for control in controls.values()),
        near={length: _count_near(heads[length], control, key=key) for length, control in controls.items()},
    )


def _count_near(heads: HeadStatistics, control: Control, *, key: PRNGKeyArray) -> Measured:
    """Count the heads whose participation is within a factor `NEAR` of Gaussian scores of the same mean spread.

    The Gaussian prompts of the control are compared with the exact participation at the spread of each query.
    """

    def on_text(statistics: HeadStatistics) -> int:
        tau, measured = statistics.mean("tau"), statistics.mean("participation")
        curve = np.interp(tau, GRID, tabulate_participation(heads.length))
        # the quadrature, which is slow, decides on heads at the edge
        edge = np.abs(_away(measured, curve)) < EDGE
        if edge.any():
            curve[edge] = participation(tau[edge], np.log(heads.length))
        return np.sum(_away(measured, curve) <= 0)

    on_gaussian = np.sum(_away(control.participation, control.expected_participation) <= 0)
    return measure(on_text, heads, alternative=on_gaussian, key=key)


def _away(participations: Heads, expected: Heads) -> Heads:
    """Return by how much the logarithms of the participation and of the curve differ by more than a factor `NEAR`."""
    return np.abs(np.log(participations / expected)) - np.log(NEAR)


def _at_mean_spread(control: Control) -> Heads:
    """Return the exact participation at the mean spread of the queries of each head."""
    return np.asarray(participation(control.ratio * freezing(control.length), np.log(control.length)))
