r"""At every length fewer than half of the 72 heads lie within a factor of 1.5 of the curve of Gaussian scores.

Across: the standard deviation $\hat\tau$ of a head's scores over the tokens of a prompt, mean over queries and
prompts. Up: the participation $\sum p^2$ of its weights, one over the number of tokens that share them. A point is
one of the 72 heads; the curve is exact for Gaussian scores all of that spread, and the band around it is a factor of
1.5 wide on either side. One panel per length; the dashed line is $\sqrt{2\ln L}$, where Gaussian scores freeze.

Alt: Three panels of points around a rising curve with a band, for short, middle and long prompts. Most points lie above
the curve, many outside the band, and to the left of a dashed line; a few lie to the right of it, one far out. On longer
prompts the points are lower, and spread more widely around the curve.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.real_heads.encoder import HEAD_WIDTH
from chapters.real_heads.regimes import FROZEN, LINEAR, NEAR
from chapters.real_heads.statistics import ByLength, Control, Heads, HeadStatistics, Measured, bootstrap, freezing
from chapters.real_heads.style import GAUSSIAN, SIZE, TEXT
from chapters.real_heads.tracked_tables import names_of_heads
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.finite_prompt import participation
from lib.statistics import comparison_quantile, student_quantile


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


def count_regimes(heads: HeadStatistics, *, key: PRNGKeyArray) -> Regimes:
    """Heads below half of freezing, and beyond it."""
    unscaled = heads.ratio * np.sqrt(HEAD_WIDTH)

    def count(inside: Callable) -> Measured:
        error = bootstrap(lambda these: np.sum(inside(these.ratio)), heads, key=key)
        return Measured(float(np.sum(inside(heads.ratio))), float(error), float(np.sum(inside(unscaled))))

    between = int(np.sum((heads.ratio >= LINEAR) & (heads.ratio < FROZEN)))
    return Regimes(count(lambda ratio: ratio < LINEAR), count(lambda ratio: ratio >= FROZEN), between)


def numbers(plane: Plane, regimes: Regimes) -> Numbers:
    """Return heads and curves; how many heads are in which regime and near the curve; the control."""
    claims = (_linear_claim(regimes), _frozen_claim(regimes), *_near_claims(plane), _control_claim(plane))
    return Numbers(_table(plane), claims)


def _table(plane: Plane) -> Table:
    """By length, the heads, then the curve."""
    parts = []
    for length, these in plane.heads.items():
        points = {**names_of_heads(), "tau": these.mean("tau").ravel()}
        points |= {"participation": these.mean("participation").ravel(), "expected": these.mean("gaussian").ravel()}
        errors = {f"{name}_se": plane.errors[length][name].ravel() for name in ("tau", "participation")}
        parts.append(pd.DataFrame({"kind": "head", "length": length, **points, **errors}))
        curve = {"layer": -1, "head": -1, "tau": plane.taus, "participation": plane.curves[length]}
        parts.append(
            pd.DataFrame({"kind": "curve", "length": length, **curve, "expected": plane.curves[length]}).assign(
                tau_se=0.0, participation_se=0.0
            )
        )
    columns = {
        "kind": Column("A `head` of the network on the text, or the exact `curve` of Gaussian scores", "name"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "layer": Column("Layer, from 0; -1 on the curve"),
        "head": Column("Head of the layer, from 0; -1 on the curve"),
        "tau": Column("Standard deviation of the scores over a prompt's tokens, mean", std_error="tau_se"),
        "participation": Column("Σp², mean over queries and prompts", std_error="participation_se"),
        "expected": Column("The same of Gaussian scores with each query's own spread", moves_with="tau"),
        "tau_se": Column("Standard error over prompts", moves_with="tau"),
        "participation_se": Column("Standard error over prompts", moves_with="participation"),
    }
    return Table(pd.concat(parts, ignore_index=True)[list(columns)], columns)


def _linear_claim(regimes: Regimes) -> Claim:
    found = regimes.linear
    return Claim(
        id="real-heads-linear",
        statement=(
            "At L = 512 at least a third of the 72 heads are in the linear regime, with scores that spread by less "
            "than half of √(2 ln L): their number."
        ),
        source="measured here",
        measured=found.value,
        expected=24.0,
        tolerance=0.0,
        std_error=found.std_error,
        relation="≥",
        alternative=Alternative("the same heads without the 1/√32 of the network's scores", found.other),
    )


def _frozen_claim(regimes: Regimes) -> Claim:
    found = regimes.frozen
    return Claim(
        id="real-heads-frozen",
        statement="At L = 512 at most a third of the 72 heads have scores that spread by √(2 ln L) or more: how many.",
        source="measured here",
        measured=found.value,
        expected=24.0,
        tolerance=0.0,
        std_error=found.std_error,
        relation="≤",
        alternative=Alternative("the same heads without the 1/√32 of the network's scores", found.other),
    )


def _near_claims(plane: Plane) -> list[Claim]:
    """Count the heads near the curve at the lengths at which they are fewest and most."""
    ranked = sorted(plane.near.items(), key=lambda item: item[1].value)
    heads = next(iter(plane.heads.values())).ratio.size
    return [
        Claim(
            id=f"real-heads-near-{name}",
            statement=(
                f"At L = {length}, where they are {name}, not more than half of the {heads} heads have a participation "
                f"within a factor {NEAR:g} of Gaussian scores of their mean spread: their number."
            ),
            source="measured here",
            measured=found.value,
            expected=heads / 2,
            tolerance=comparison_quantile(len(ranked)) * found.std_error,
            std_error=found.std_error,
            relation="≤",
            alternative=Alternative(
                "the same heads on Gaussian tokens, at the spread of each query", float(found.other)
            ),
        )
        for name, (length, found) in (("fewest", ranked[0]), ("most", ranked[-1]))
    ]


def _control_claim(plane: Plane) -> Claim:
    comparisons = sum(these.size for these in plane.deviations.values())
    return Claim(
        id="real-heads-control-participation",
        statement=(
            "On prompts of Gaussian tokens with the mean and covariance of its own keys, every head's participation "
            f"is the exact one, at each query's own spread: the worst of {comparisons} deviations, in standard errors."
        ),
        source="derived here",
        box="two-integrals",
        measured=max(float(np.max(np.abs(these))) for these in plane.deviations.values()),
        expected=0.0,
        tolerance=student_quantile(comparisons, plane.drawn),
        alternative=Alternative(
            "the same formula at the mean spread of a head's queries",
            max(float(np.max(np.abs(these))) for these in plane.common.values()),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per length, with a band of a factor `NEAR` around the curve."""
    lengths = sorted(table["length"].unique().tolist())
    figure, panels = plt.subplots(1, len(lengths), figsize=SIZE, sharex=True, sharey=True, squeeze=False)
    heads, curves = table[table["kind"] == "head"], table[table["kind"] == "curve"]
    for axes, length in zip(panels[0], lengths, strict=True):
        curve, points = curves[curves["length"] == length], heads[heads["length"] == length]
        low, high = curve["participation"] / NEAR, curve["participation"] * NEAR
        axes.fill_between(curve["tau"], low, high, color=GAUSSIAN, alpha=0.2, linewidth=0)
        axes.plot(curve["tau"], curve["participation"], color=GAUSSIAN, linewidth=2)
        axes.plot(points["tau"], points["participation"], "o", color=TEXT, markersize=4.5, alpha=0.75)
        freezing = np.sqrt(2 * np.log(length))
        axes.axvline(freezing, color=ink(), linestyle="--", linewidth=1.2, alpha=0.7)
        axes.set(xscale="log", yscale="log", title=f"$L={length}$", xlabel=r"spread of scores, $\hat\tau$")
        axes.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
        axes.minorticks_off()
    panels[0][0].set(xlim=(0.4, 25), ylim=(1e-3, 1.3), ylabel=r"participation, $\sum p^2$")
    label(panels[0][1], np.sqrt(2 * np.log(lengths[1])), 2e-3, r"$\sqrt{2\,\ln L}$", ink(), xytext=(5, 0))
    label(panels[0][0], 0.45, 0.02, "Gaussian\nscores", GAUSSIAN, xytext=(0, 0))
    label(panels[0][0], 0.45, 0.5, "a head", TEXT, xytext=(0, 0))
    headline(figure, "Fewer than half of the heads lie within a factor of 1.5 of the Gaussian curve")
    return figure
