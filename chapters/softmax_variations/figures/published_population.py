r"""In the paper's settings the best softmax head attains the Bayes risk; with a signal the other three heads do not.

The vertical axis shows the excess risk of the best head of each kind (logarithmic), the horizontal axis the signal
strength $\nu$. The settings are two tokens in the spiked model, two in the max model, and one, two or three tokens with
equal chances in the max model. Each head has its best slope and scale; erf has its best bias, softplus has none. Dots:
the Bayes risk, from another quadrature. The slope of softmax is searched like that of the other heads.

Alt: Three panels of risk, logarithmic, against signal strength from 0 to 12. In each the softmax curve is lowest and
passes through the dots of the Bayes risk; softplus is above it, then erf, then linear. In the second and third panel
erf and linear level off far above; in the third they start above the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.softmax_variations.fixed_heads import compiled_lowest_risk, pooled, score_marginals
from chapters.softmax_variations.log_ratios import max_log_ratio, spiked_log_ratio
from chapters.softmax_variations.models import MODELS, bayes_risk
from chapters.softmax_variations.other_signals import OtherSignals
from chapters.softmax_variations.style import BECAUSE_DISTINCT, DISTINCT
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.single_location import Prompts, best_key_risk, erf, linear, softmax, softplus

# Steps of the lattices of scores on which slopes are searched and risks are evaluated, by length.
SEARCH_STEPS, RISK_STEPS = {1: 0.1, 2: 0.1, 3: 0.15}, {1: 0.05, 2: 0.05, 3: 0.09}
# The largest signal strength of the published figure.
STRONGEST = 12.0
NORMALISED = {"softmax": softmax, "softplus": softplus}
ELEMENTWISE = {"erf": erf, "linear": linear}
# The order of colours.
HEADS = ("softmax", "softplus", "erf", "linear")
# The claim about the other heads is made from this signal strength on.
WEAK = 0.5


class Setting(NamedTuple):
    """A model, and the equally likely lengths of its prompts."""

    model: str
    lengths: tuple[int, ...]


SETTINGS = {
    "spiked, $L=2$": Setting("spiked", (2,)),
    "max, $L=2$": Setting("max", (2,)),
    "max, $L$ = 1, 2 or 3": Setting("max", (1, 2, 3)),
}


@dataclass(frozen=True)
class Curves:
    """The Bayes risk and the lowest risk of each kind of head along ν, in one setting."""

    snrs: Float[np.ndarray, " snrs"]
    bayes: Float[np.ndarray, " snrs"]
    by_head: Mapping[str, Float[np.ndarray, " snrs"]]


def solve_best_risks(points: int) -> dict[str, Curves]:
    """Return the curves of every setting at `points` signal strengths from 0 to `STRONGEST`."""
    snrs = np.linspace(0.0, STRONGEST, points)
    return {name: _best_risks(setting, snrs) for name, setting in SETTINGS.items()}


def _best_risks(setting: Setting, snrs: Float[np.ndarray, " snrs"]) -> Curves:
    make, log_ratio, shift = MODELS[setting.model], spiked_log_ratio, np.sqrt(STRONGEST)
    if setting.model == "max":
        log_ratio, shift = max_log_ratio, 0.0
    by_head: dict[str, list[float]] = {name: [] for name in (*NORMALISED, *ELEMENTWISE)}
    for snr in snrs:
        search_prompts, risk_prompts = (
            [
                Prompts.of(lambda scores, snr=snr: log_ratio(scores, snr), length, step=steps[length], shift=shift)
                for length in setting.lengths
            ]
            for steps in (SEARCH_STEPS, RISK_STEPS)
        )
        for name, activation in NORMALISED.items():
            by_head[name].append(best_key_risk(activation, search_prompts, risk_prompts)[1])
        marginals = pooled([score_marginals(make(length, snr)) for length in setting.lengths])
        for name, activation in ELEMENTWISE.items():
            by_head[name].append(float(compiled_lowest_risk(activation, marginals)))
    bayes = np.mean([bayes_risk(make(length, snrs)) for length in setting.lengths], axis=0)
    return Curves(snrs, bayes, {name: np.asarray(risks) for name, risks in by_head.items()})


def numbers(curves: Mapping[str, Curves], signals: OtherSignals) -> Numbers:
    """Return risks by setting and ν; claim that softmax attains the Bayes risk, also for other signals."""
    frame = _frame(curves)
    return Numbers(_table(frame), (*_claims(frame), _length_claim(frame), _signals_claim(signals)))


def _frame(curves: Mapping[str, Curves]) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"setting": name, "snr": setting.snrs, "bayes": setting.bayes, **setting.by_head})
        for name, setting in curves.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _table(frame: pd.DataFrame) -> Table:
    """Return one row per setting and ν."""
    columns = {
        "setting": Column("Model and number of tokens in a prompt", "name"),
        "snr": Column("Signal strength $ν$"),
        "bayes": Column("Bayes risk, by Laplace's identity; its mean where the length is random"),
        "softmax": Column("Excess risk of the best softmax head, found by a search over slopes"),
        "softplus": Column("Excess risk of the best head with normalised softplus weights, without bias"),
        "erf": Column("Excess risk of the best head with weights 1 + erf, with bias"),
        "linear": Column("Excess risk of the best head with linear weights"),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """Claim the paper's conclusions from its figure."""
    with_signal = frame[frame["snr"] >= WEAK]
    others = ["softplus", *ELEMENTWISE]
    return [
        Claim(
            id="softmax-advantage-published-softmax",
            statement=(
                "In the three settings of the published figure, the best softmax head found by a search over slopes "
                "attains the Bayes risk at every signal strength (largest relative excess)."
            ),
            source="[D26, Prop. 4.2]",
            box="d26-bayes",
            measured=float((frame["softmax"] / frame["bayes"] - 1.0).abs().max()),
            expected=0.0,
            tolerance=1e-6,
            reason="the risk is quadratic near its minimum, and slopes are accurate to a few thousandths",
            relation="≤",
            alternative=Alternative(
                "softplus, which is normalised too", float((frame["softplus"] / frame["bayes"] - 1.0).abs().max())
            ),
        ),
        Claim(
            id="softmax-advantage-published-others",
            statement=(
                "In the three settings of the published figure, softplus without bias, erf and linear heads do not "
                f"attain the Bayes risk at signal strengths from {WEAK} to {STRONGEST:g} (smallest excess)."
            ),
            source="[D26, abstract]",
            box="risk-is-an-angle",
            measured=float(with_signal[others].sub(with_signal["bayes"], axis=0).min(axis=None)),
            expected=DISTINCT,
            tolerance=0.0,
            reason=BECAUSE_DISTINCT,
            relation="≥",
            alternative=Alternative(
                "the same for softmax", float((with_signal["softmax"] - with_signal["bayes"]).min())
            ),
        ),
    ]


def _length_claim(frame: pd.DataFrame) -> Claim:
    """Claim the cost of a random length without a signal, where all weights of an element-wise head are equal."""
    start = frame[frame["snr"] == 0].set_index("setting").iloc[-1]
    lengths = np.asarray(list(SETTINGS.values())[-1].lengths, float)
    return Claim(
        id="softmax-advantage-published-length",
        statement=(
            "Without a signal, the risk of weights that are not normalised exceeds the Bayes risk by "
            r"$\mathbb{E}[1/L] - 1/\mathbb{E}[L]$, because they can only be $1/\mathbb{E}[L]$ (erf head, prompts of "
            "one, two or three tokens)."
        ),
        source="[D26, Cor. 4.4]",
        box="one-head-many-lengths",
        measured=float(start["erf"] - start["bayes"]),
        expected=float(np.mean(1 / lengths) - 1 / np.mean(lengths)),
        tolerance=1e-6,
        alternative=Alternative("softplus, which is normalised", float(start["softplus"] - start["bayes"])),
    )


def _signals_claim(signals: OtherSignals) -> Claim:
    """Claim the general condition for a signal that satisfies it; the alternative is a signal that does not."""
    return Claim(
        id="softmax-advantage-other-hints",
        statement=(
            "The best softmax head attains the Bayes risk for spiked scores that have a common part, because this "
            "signal, too, distinguishes tokens by differences of scores (largest relative excess, ten cases)."
        ),
        source="[D26, Prop. 4.2]",
        box="other-hints",
        measured=float(np.max(np.abs(signals.shared / signals.shared_bayes - 1.0))),
        expected=0.0,
        tolerance=1e-6,
        reason="the documented error of the search for the slope, with a reserve",
        relation="≤",
        alternative=Alternative(
            "the same where the relevant token is the one whose score is near zero",
            float(np.min(signals.narrow / signals.narrow_bayes - 1.0)),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per setting, with one curve per head and dots for the Bayes risk."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDE, 4.2), sharey=True)
    colours = {"softmax": "C0", "linear": "C1", "erf": "C2", "softplus": "C3"}
    for panel, (setting, curves) in zip(panels, table.groupby("setting", sort=False), strict=True):
        for name in HEADS:
            panel.plot(curves["snr"], curves[name], color=colours[name], linewidth=2)
        panel.plot(curves["snr"], curves["bayes"], "o", color=ink(), markersize=3.5, zorder=3)
        panel.set(
            yscale="log", ylim=(7e-3, 0.8), xlim=(0, 1.02 * STRONGEST), title=setting, xlabel=r"signal strength $\nu$"
        )
    first = table[table["setting"] == table["setting"].iloc[0]]
    # labels at the strongest signal, where the four curves are apart; below a curve if the next one is close above it
    last, offsets = first[first["snr"] <= STRONGEST].iloc[-1], {"softplus": (0, -12), "softmax": (-24, -4)}
    for name in HEADS:
        position = {"xytext": offsets.get(name, (0, 16)), "ha": "right"}
        label(panels[0], last["snr"], last[name], name, colours[name], **position)
    panels[0].set_ylabel("excess risk")
    panels[0].annotate("dots: Bayes", (0.03, 0.05), xycoords="axes fraction")
    return figure
