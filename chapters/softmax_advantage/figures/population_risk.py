r"""Excess risk of the best head of each kind against the strength $\nu$ of the hint.

A column a prompt length. Solid: softmax, which is the Bayes risk; dashed: sigmoid weights with the best slope and
bias; dotted: linear weights. Above, one token is shifted along $k^\star$; below, the answer sits, more or less
surely, at the token with the largest score. Exact; logarithmic axes.

Alt: Two rows of log-log panels of risk against hint strength, one column a prompt length. In each the solid softmax
curve lies lowest, the dashed sigmoid curve above it and the dotted linear curve highest. In the upper row the solid
curves plunge; in the lower they fall like a power, and the sigmoid and linear curves level off.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.softmax_advantage.models import MODELS, Risks, bayes_risk, best_sigmoid
from chapters.softmax_advantage.style import DASHES, TITLES
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import few_decades, headline, label
from lib.single_location import LocationTask, Spiked, bayes_integrals, best_elementwise_risk, best_risk, linear


@dataclass(frozen=True)
class TwoIntegrals:
    """The Bayes risk by each of its two integrals, and by the second also for prompts of one token more."""

    first: Float[np.ndarray, "models lengths snrs"]
    second: Float[np.ndarray, "models lengths snrs"]
    second_longer: Float[np.ndarray, "models lengths snrs"]


@dataclass(frozen=True)
class HalfStrength:
    """Two tokens, spiked: the least element-wise risk, and the Bayes risks at half the strength and at all of it."""

    elementwise: Float[np.ndarray, " snrs"]
    bayes_of_half: Float[np.ndarray, " snrs"]
    bayes: Float[np.ndarray, " snrs"]


def strengths(n: int) -> Float[np.ndarray, " n"]:
    """`n` strengths ν of the hint, from hardly any to nearly certain."""
    return np.geomspace(0.1, 60.0, n)


def best_risks(lengths: Iterable[int], snrs: Float[np.ndarray, " snrs"]) -> dict[tuple[str, int], Risks]:
    """By model and length: Bayes, best element-wise and linear risk along ν."""
    return {
        (model, length): _best_risks(model, make(length, snrs), snrs)
        for model, make in MODELS.items()
        for length in sorted(lengths)
    }


def _best_risks(model: str, tasks: LocationTask, snrs: Float[np.ndarray, " snrs"]) -> Risks:
    by_head = {
        "softmax": bayes_risk(tasks),
        "sigmoid": best_sigmoid(model, tasks),
        "linear": np.asarray(best_risk(tasks, linear)),
    }
    return Risks(snrs, by_head)


def integrate_twice(lengths: Iterable[int]) -> TwoIntegrals:
    """Bayes risks of both models twice, from two tokens to a hundred million, at hints weak and strong."""
    snrs = np.asarray([0.01, 1.0, 10.0, 60.0])
    tested = sorted({2, *lengths, 10**8})
    found = [
        [(*bayes_integrals(make(length, snrs)), bayes_integrals(make(length + 1, snrs))[1]) for length in tested]
        for make in MODELS.values()
    ]
    return TwoIntegrals(*np.moveaxis(np.asarray(found), 2, 0))


def compare_half_strength() -> HalfStrength:
    """At hints weak and strong: what one of two scores tells, and what both tell of a hint of half the strength."""
    snrs = np.asarray([0.1, 1.0, 4.0, 10.0, 40.0])
    elementwise = np.asarray(best_elementwise_risk(Spiked(2, snrs)))
    return HalfStrength(elementwise, bayes_risk(Spiked(2, snrs / 2)), bayes_risk(Spiked(2, snrs)))


def numbers(risks: Mapping[tuple[str, int], Risks], integrals: TwoIntegrals, half: HalfStrength) -> Numbers:
    """Risks by model, length and ν; the Bayes risk is the same by either integral, and what half of two scores tell."""
    return Numbers(_table(risks), (_integrals_claim(integrals), _half_claim(half)))


def _table(risks: Mapping[tuple[str, int], Risks]) -> Table:
    """Bayes, best element-wise and linear risk, by model, length and ν."""
    frames = [
        pd.DataFrame({"model": model, "length": length, "snr": these.snrs, **these.by_head})
        for (model, length), these in risks.items()
    ]
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "snr": Column("Strength of the hint, ν"),
        "softmax": Column("Excess risk of the best softmax head, the Bayes risk"),
        "sigmoid": Column("Excess risk of the best head with element-wise sigmoid weights"),
        "linear": Column("Excess risk of the best head with linear weights"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _integrals_claim(integrals: TwoIntegrals) -> Claim:
    """`1 - E p_ε` against `1 - E Σp²`, in both models."""
    return Claim(
        id="softmax-advantage-two-integrals",
        statement=(
            "What the posterior leaves to the wrong tokens, 1 - E p_ε, and its spread, 1 - E Σp², are the same number: "
            "two integrals without a common term differ at most by rounding, from two tokens to a hundred million."
        ),
        source="[D26, Prop. 4.2]",
        box="d26-bayes",
        measured=float(np.max(np.abs(integrals.first - integrals.second))),
        expected=0.0,
        tolerance=1e-9,
        relation="≤",
        alternative=Alternative(
            "one of the two counts one token too many",
            float(np.max(np.abs(integrals.first - integrals.second_longer))),
        ),
    )


def _half_claim(half: HalfStrength) -> Claim:
    """Relative, since the risks fall by orders of magnitude."""
    return Claim(
        id="softmax-advantage-half-strength",
        statement=(
            "With two tokens in the spiked model the best element-wise weights, which see one score, have the Bayes "
            "risk of a hint of half the strength: the relative difference, worst of five strengths."
        ),
        source="derived here",
        box="one-of-two-scores",
        measured=float(np.max(np.abs(half.elementwise / half.bayes_of_half - 1.0))),
        expected=0.0,
        tolerance=1e-8,
        relation="≤",
        alternative=Alternative(
            "they have that of a hint of the whole strength",
            float(np.max(np.abs(half.elementwise / half.bayes - 1.0))),
        ),
    )


COLOURS = {"softmax": "C0", "linear": "C1", "sigmoid": "C2"}


def draw(table: pd.DataFrame) -> Figure:
    """A row a model, a column a length, a curve a head."""
    lengths = sorted(table["length"].unique().tolist())
    figure, panels = plt.subplots(2, len(lengths), figsize=(9.5, 6.2), sharex=True, sharey="row", squeeze=False)
    for row, (model, title) in zip(panels, TITLES.items(), strict=True):
        for panel, length in zip(row, lengths, strict=True):
            curve = table[(table["model"] == model) & (table["length"] == length)]
            for name, dashes in DASHES.items():
                panel.plot(curve["snr"], curve[name], dashes, color=COLOURS[name], linewidth=2)
            panel.set(xscale="log", yscale="log", title=f"{title}, $L={length}$")
            panel.set_ylim(max(1e-4, 0.7 * table[table["model"] == model]["softmax"].min()), 1.6)
            few_decades(panel)
        row[0].set_ylabel("excess risk")
    for panel in panels[-1]:
        panel.set_xlabel(r"strength of the hint, $\nu$")
    last = curve.iloc[-1]
    for name, words in {"linear": "linear", "sigmoid": "sigmoid", "softmax": "softmax\n(Bayes)"}.items():
        label(panels[1, -1], last["snr"], last[name], words, COLOURS[name])
    headline(figure, "Softmax is Bayes; its lead grows with the hint")
    return figure
