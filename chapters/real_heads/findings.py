"""What the heads come to, with errors from drawing prompts again: regimes, ranks, growth, what each step costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray
from scipy.stats import spearmanr

from chapters.real_heads.controls import Control
from chapters.real_heads.encoder import HEAD_WIDTH, LAYERS
from chapters.real_heads.nearness import NEAR
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import ByLength, Heads, HeadStatistics, bootstrap, freezing
from lib.finite_prompt import participation


@dataclass(frozen=True)
class Measured:
    """A number, its standard error over prompts drawn again, and what the same measurement gives for something else."""

    value: float
    std_error: float
    other: float


@dataclass(frozen=True)
class Plane:
    """Heads at every length with the errors of their means, and the exact `curves` of Gaussian scores at `taus`.

    `deviations` are those of drawn Gaussian prompts from the exact participation, in standard errors, `drawn` such
    prompts at least a head; `common` the same where all queries of a head are taken to have their mean spread. `near`
    counts the heads within a factor `NEAR` of the curve, by length; `other` counts drawn Gaussian prompts.
    """

    heads: ByLength
    errors: Mapping[int, Mapping[str, Heads]]
    taus: Float[np.ndarray, " taus"]
    curves: Mapping[int, Float[np.ndarray, " taus"]]
    deviations: Mapping[int, Heads]
    common: Mapping[int, Heads]
    drawn: int
    near: Mapping[int, Measured]


@dataclass(frozen=True)
class Regimes:
    """How many heads are in the linear regime and frozen; `other` is for scores without the network's own 1/√32."""

    linear: Measured
    frozen: Measured
    between: int


@dataclass(frozen=True)
class Shares:
    """R² of every head at every length with its error, and what it does with spread and length.

    `ranks` is the rank correlation with τ̂/√(2 ln L), `other` with the number of the layer. `growth` is the mean change
    of heads in the linear regime from the shortest to the longest prompts, `other` that of frozen heads.
    """

    errors: dict[int, Heads]
    ranks: Measured
    growth: Measured
    growing: int


@dataclass(frozen=True)
class Slopes:
    """By how much slopes fall short of 1 - P in the mean over heads; `other` is what Gaussian tokens' do.

    `deviations` are those of drawn Gaussian prompts from the exact slope, in standard errors; `unshrunk` those from 1.
    """

    errors: Heads
    shortfall: Measured
    deviations: Heads
    unshrunk: Heads


@dataclass(frozen=True)
class Steps:
    """Where the explained share of heads in the linear regime is lost.

    `kept` is the part of the way from Gaussian tokens to prompts that independent tokens of the text go too, `other`
    where Gaussian tokens drawn once more take their place. `gain` is what R² gains when the first place is left out,
    `other` the place in the middle. `place` is the weight on the first place without special tokens over that with
    them, `other` the same if it went to all places alike. `arrays` is what there is of every head, by name.
    """

    arrays: Mapping[str, Heads]
    kept: Measured
    gain: Measured
    place: Measured


def count_regimes(heads: HeadStatistics, *, key: PRNGKeyArray) -> Regimes:
    """Heads below half of freezing, and beyond it."""
    unscaled = heads.ratio * np.sqrt(HEAD_WIDTH)

    def count(inside: Callable) -> Measured:
        error = bootstrap(lambda these: np.sum(inside(these.ratio)), heads, key=key)
        return Measured(float(np.sum(inside(heads.ratio))), float(error), float(np.sum(inside(unscaled))))

    between = int(np.sum((heads.ratio >= LINEAR) & (heads.ratio < FROZEN)))
    return Regimes(count(lambda ratio: ratio < LINEAR), count(lambda ratio: ratio >= FROZEN), between)


def compare_shares(heads: ByLength, *, key: PRNGKeyArray) -> Shares:
    """The explained shares at every length."""
    shortest, longest = heads[min(heads)], heads[max(heads)]
    linear, frozen = longest.ratio < LINEAR, longest.ratio >= FROZEN
    layers = np.repeat(np.arange(LAYERS), linear.shape[1])

    def ranks(these: HeadStatistics) -> float:
        return float(spearmanr(these.ratio.ravel(), these.share.ravel()).statistic)

    def growth(chosen: Bool[np.ndarray, "layers heads"]):
        return lambda short, long: float(np.mean((long.share - short.share)[chosen]))

    return Shares(
        errors={length: bootstrap(lambda these: these.share, found, key=key) for length, found in heads.items()},
        ranks=Measured(
            ranks(longest),
            float(bootstrap(ranks, longest, key=key)),
            float(spearmanr(layers, longest.share.ravel()).statistic),
        ),
        growth=Measured(
            growth(linear)(shortest, longest),
            float(bootstrap(growth(linear), shortest, longest, key=key)),
            growth(frozen)(shortest, longest),
        ),
        growing=int(np.sum((longest.share > shortest.share)[linear])),
    )


def compare_slopes(heads: HeadStatistics, control: Control, *, key: PRNGKeyArray) -> Slopes:
    """The best slopes against those of Gaussian tokens."""

    def shortfall(these) -> float:
        return float(np.mean(these.expected_slope - these.slope))

    errors = bootstrap(lambda these: these.slope, heads, key=key)
    error = float(bootstrap(shortfall, heads, key=key))
    deviations, unshrunk = ((control.slope - expected) / control.slope_se for expected in (control.expected_slope, 1.0))
    return Slopes(errors, Measured(shortfall(heads), error, shortfall(control)), deviations, unshrunk)


def follow_steps(
    heads: HeadStatistics,
    shuffled: HeadStatistics,
    bare: HeadStatistics,
    *,
    gaussian: Control,
    again: Control,
    independent: Control,
    key: PRNGKeyArray,
) -> Steps:
    """From Gaussian tokens to prompts of the text, and what the first place has to do with it."""
    linear = heads.ratio < LINEAR

    def mean(share: Heads) -> float:
        return float(np.mean(share[linear]))

    def kept(step: Heads):
        top = mean(gaussian.share)
        return lambda these: (top - mean(step)) / (top - mean(these.share))

    def gain(these: HeadStatistics) -> float:
        return mean(these.share_without_first - these.share)

    def place(these: HeadStatistics, without: HeadStatistics) -> float:
        return float(without.mean("first").mean() / these.mean("first").mean())

    arrays = {
        "ratio": heads.ratio,
        "gaussian": gaussian.share,
        "independent": independent.share,
        "text": heads.share,
        "text_se": bootstrap(lambda these: these.share, heads, key=key),
        "without_first": heads.share_without_first,
        "shuffled": shuffled.share,
        "bare": bare.share,
        "first": heads.mean("first"),
        "first_bare": bare.mean("first"),
        "skewness": heads.mean("skewness"),
        "tails": heads.mean("tails"),
    }
    return Steps(
        arrays=arrays,
        kept=Measured(
            kept(independent.share)(heads),
            float(bootstrap(kept(independent.share), heads, key=key)),
            kept(again.share)(heads),
        ),
        gain=Measured(
            gain(heads), float(bootstrap(gain, heads, key=key)), mean(heads.share_without_another - heads.share)
        ),
        place=Measured(
            place(heads, bare),
            float(bootstrap(place, heads, bare, key=key)),
            float(1 / (heads.length * heads.mean("first").mean())),
        ),
    )


def place_in_plane(heads: ByLength, controls: Mapping[int, Control], *, key: PRNGKeyArray) -> Plane:
    """Heads on the text, and Gaussian tokens, against the exact curves."""
    taus = np.geomspace(0.4, 25.0, 60)
    return Plane(
        heads=heads,
        errors={
            length: {
                name: bootstrap(lambda these, name=name: these.mean(name), found, key=key)
                for name in ("tau", "participation")
            }
            for length, found in heads.items()
        },
        taus=taus,
        curves={length: np.asarray(participation(taus, np.log(length))) for length in heads},
        deviations={length: _deviation(these, these.expected_participation) for length, these in controls.items()},
        common={length: _deviation(these, _at_mean_spread(these)) for length, these in controls.items()},
        drawn=min(these.prompts for these in controls.values()),
        near={length: _count_near(heads[length], these, key=key) for length, these in controls.items()},
    )


def _count_near(heads: HeadStatistics, control: Control, *, key: PRNGKeyArray) -> Measured:
    """Count the heads whose participation is within a factor `NEAR` of Gaussian scores of the same mean spread.

    The Gaussian prompts of the control are held to the exact participation at each query's own spread.
    """

    def count(participations: Heads, expected: Heads) -> int:
        return int(np.sum(np.abs(np.log(participations / expected)) <= np.log(NEAR)))

    def on_text(these: HeadStatistics) -> int:
        curve = np.asarray(participation(these.mean("tau"), np.log(heads.length)))
        return count(these.mean("participation"), curve)

    error = float(bootstrap(on_text, heads, key=key))
    return Measured(on_text(heads), error, count(control.participation, control.expected_participation))


def _deviation(control: Control, expected: Heads) -> Heads:
    return (control.participation - expected) / control.participation_se


def _at_mean_spread(control: Control) -> Heads:
    return np.asarray(participation(control.ratio * freezing(control.length), np.log(control.length)))
