r"""Excess risk of the best head of each kind against the strength $\nu$ of the hint, in the paper's own three settings.

Two tokens in the spiked model; two in the max model; one, two or three with equal chances in the max model. Each
head has its best slope and length, erf its best bias, softplus none. Dots: the Bayes risk, by another quadrature.
The curve of softmax, its slope searched like any other, runs through them.

Alt: Three panels of risk, logarithmic, against hint strength from 0 to 12. In each the softmax curve is lowest and runs
through the dots of the Bayes risk; softplus is above it, then erf, then linear. In the second and third panel erf
and linear level off far above; in the third they start above the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.softmax_advantage.fixed_heads import pooled, score_marginals
from chapters.softmax_advantage.models import MODELS, bayes_risk
from chapters.softmax_advantage.other_signals import OtherSignals
from chapters.softmax_advantage.style import DISTINCT
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.single_location import Prompts, compiled_lowest_risk, erf, few_tokens, linear, softmax, softplus

# Steps of the lattices of scores: of that on which slopes are searched, and of that on which risks are taken.
SEARCH_STEPS, RISK_STEPS = {1: 0.1, 2: 0.1, 3: 0.15}, {1: 0.05, 2: 0.05, 3: 0.09}
# The strongest hint of the published figure.
STRONGEST = 12.0
NORMALISED = {"softmax": softmax, "softplus": softplus}
ELEMENTWISE = {"erf": erf, "linear": linear}
# The order of colours.
HEADS = ("softmax", "softplus", "erf", "linear")
# From here on a hint tells heads apart.
WEAK = 0.5


class Setting(NamedTuple):
    """A model, and the lengths that its prompts have with equal chances."""

    model: str
    lengths: tuple[int, ...]


SETTINGS = {
    "spiked, $L=2$": Setting("spiked", (2,)),
    "max, $L=2$": Setting("max", (2,)),
    "max, $L$ = 1, 2 or 3": Setting("max", (1, 2, 3)),
}


@dataclass(frozen=True)
class Curves:
    """Of one setting, along strengths ν: the Bayes risk, and the lowest risk of each kind of head."""

    snrs: Float[np.ndarray, " snrs"]
    bayes: Float[np.ndarray, " snrs"]
    by_head: Mapping[str, Float[np.ndarray, " snrs"]]


def best_risks(points: int) -> dict[str, Curves]:
    """Every setting at that many strengths from 0 to `STRONGEST`."""
    snrs = np.linspace(0.0, STRONGEST, points)
    return {name: _best_risks(setting, snrs) for name, setting in SETTINGS.items()}


def _best_risks(setting: Setting, snrs: Float[np.ndarray, " snrs"]) -> Curves:
    make, hint, shift = MODELS[setting.model], few_tokens.spiked_log_ratio, np.sqrt(STRONGEST)
    if setting.model == "max":
        hint, shift = few_tokens.max_log_ratio, 0.0
    ends = few_tokens.LARGEST_SCORE + shift
    coarse = [few_tokens.ScoreLattice(length, step=SEARCH_STEPS[length], highest=ends) for length in setting.lengths]
    fine = [few_tokens.ScoreLattice(length, step=RISK_STEPS[length], highest=ends) for length in setting.lengths]
    by_head: dict[str, list[float]] = {name: [] for name in (*NORMALISED, *ELEMENTWISE)}
    for snr in snrs:
        searched, taken = (
            [Prompts.from_log_ratio(one, hint(one.scores, snr)) for one in these] for these in (coarse, fine)
        )
        for name, activation in NORMALISED.items():
            slope = few_tokens.best_key_slope(activation, searched)
            by_head[name].append(float(few_tokens.mixed_risk(activation, slope, taken)))
        marginals = pooled([score_marginals(make(length, snr)) for length in setting.lengths])
        for name, activation in ELEMENTWISE.items():
            by_head[name].append(float(compiled_lowest_risk(activation, marginals)))
    bayes = np.mean([bayes_risk(make(length, snrs)) for length in setting.lengths], axis=0)
    return Curves(snrs, bayes, {name: np.asarray(risks) for name, risks in by_head.items()})


def numbers(curves: Mapping[str, Curves], hints: OtherSignals) -> Numbers:
    """Risks by setting and ν; softmax is Bayes, also where hints are of another kind, and no other head is."""
    frame = _frame(curves)
    return Numbers(_table(frame), (*_claims(frame), _length_claim(frame), _hints_claim(hints)))


def _frame(curves: Mapping[str, Curves]) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"setting": name, "snr": these.snrs, "bayes": these.bayes, **these.by_head})
        for name, these in curves.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _table(frame: pd.DataFrame) -> Table:
    """By setting and ν."""
    columns = {
        "setting": Column("The model, and the tokens of its prompts", "name"),
        "snr": Column("Strength of the hint, ν"),
        "bayes": Column("Bayes risk, by Laplace's identity; the mean where lengths are random"),
        "softmax": Column("Excess risk of the best softmax head, found by a search over slopes"),
        "softplus": Column("Excess risk of the best head with normalised softplus weights, without bias"),
        "erf": Column("Excess risk of the best head with weights 1 + erf, with bias"),
        "linear": Column("Excess risk of the best head with linear weights"),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """The paper's conclusions from its figure."""
    hinted = frame[frame["snr"] >= WEAK]
    others = ["softplus", *ELEMENTWISE]
    return [
        Claim(
            id="softmax-advantage-published-softmax",
            statement=(
                "In the three settings of the published figure the best softmax head, its slope found by a search, has "
                "the Bayes risk at every strength of the hint: the largest relative excess."
            ),
            source="[D26, Prop. 4.2]",
            box="d26-bayes",
            measured=float((frame["softmax"] / frame["bayes"] - 1.0).abs().max()),
            expected=0.0,
            tolerance=1e-6,  # what slopes known to a few thousandths cost, to second order
            relation="≤",
            alternative=Alternative(
                "softplus, normalised as well", float((frame["softplus"] / frame["bayes"] - 1.0).abs().max())
            ),
        ),
        Claim(
            id="softmax-advantage-published-others",
            statement=(
                f"There no other head has it: the least excess over the Bayes risk of softplus without bias, erf and "
                f"linear, at strengths from {WEAK} to {STRONGEST:g}."
            ),
            source="[D26, abstract]",
            box="risk-is-an-angle",
            measured=float(hinted[others].sub(hinted["bayes"], axis=0).min(axis=None)),
            expected=DISTINCT,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the same for softmax", float((hinted["softmax"] - hinted["bayes"]).min())),
        ),
    ]


def _length_claim(frame: pd.DataFrame) -> Claim:
    """What a random length costs before there is a hint: all weights of an element-wise head are alike."""
    start = frame[frame["snr"] == 0].set_index("setting").iloc[-1]
    lengths = np.asarray(list(SETTINGS.values())[-1].lengths, float)
    return Claim(
        id="softmax-advantage-published-length",
        statement=(
            "Without any hint, weights that are not normalised lose E[1/L] - 1/E[L] against Bayes, since they can only "
            "be 1/E[L]: the erf head on prompts of one, two or three tokens."
        ),
        source="[D26, Cor. 4.4]",
        box="one-head-many-lengths",
        measured=float(start["erf"] - start["bayes"]),
        expected=float(np.mean(1 / lengths) - 1 / np.mean(lengths)),
        tolerance=1e-6,
        alternative=Alternative("softplus, which is normalised", float(start["softplus"] - start["bayes"])),
    )


def _hints_claim(hints: OtherSignals) -> Claim:
    """The general condition, on a hint that satisfies it and is neither of the two models, and on one that does not."""
    return Claim(
        id="softmax-advantage-other-hints",
        statement=(
            "Softmax is Bayes for other hints that tell tokens apart by a difference of scores: spiked scores with a "
            "part in common, two or three tokens, five cases each; the largest relative excess of the best head."
        ),
        source="[D26, Prop. 4.2]",
        box="other-hints",
        measured=float(np.max(np.abs(hints.shared / hints.shared_bayes - 1.0))),
        expected=0.0,
        tolerance=1e-6,
        relation="≤",
        alternative=Alternative(
            "the same where the hidden score is the one near zero",
            float(np.min(hints.narrow / hints.narrow_bayes - 1.0)),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a setting: a curve a head, named where they are apart, and dots for Bayes."""
    figure, panels = plt.subplots(1, 3, figsize=(9.0, 4.2), sharey=True)
    colours = {"softmax": "C0", "linear": "C1", "erf": "C2", "softplus": "C3"}
    for panel, (setting, curves) in zip(panels, table.groupby("setting", sort=False), strict=True):
        for name in HEADS:
            panel.plot(curves["snr"], curves[name], color=colours[name], linewidth=2)
        panel.plot(curves["snr"], curves["bayes"], "o", color=ink(), markersize=3.5, zorder=3)
        panel.set(yscale="log", ylim=(7e-3, 0.8), xlim=(0, STRONGEST), title=setting, xlabel=r"hint, $\nu$")
    first = table[table["setting"] == table["setting"].iloc[0]]
    # at the strongest hint, where all four are apart; below a curve if the next one is not far above it
    last, offsets = first[first["snr"] <= STRONGEST].iloc[-1], {"softplus": (0, -12), "softmax": (-24, -4)}
    for name in HEADS:
        place = {"xytext": offsets.get(name, (0, 16)), "ha": "right"}
        label(panels[0], last["snr"], last[name], name, colours[name], **place)
    panels[0].set_ylabel("excess risk")
    panels[0].annotate("dots: Bayes", (0.03, 0.05), xycoords="axes fraction")
    headline(figure, "Softmax runs through the Bayes risk, no other head does")
    return figure
