r"""How strong a hint finds one token.

Excess risk of the best head of each kind: softmax, which attains the Bayes risk, element-wise weights, linear
attention, and the largest score alone. Left: against the strength $\nu$ of the hint, in a prompt of one length. Right:
against the length $L$ of the prompt, at one strength. Dashed, on both sides: $\nu=2\ln(L-1)$, where the best
element-wise weights have risk one half.

Alt: Two panels of four curves. Left, risks fall from one as the hint grows: three fall together around a dashed line,
the linear one stays at one. Right, risks rise with the prompt length: the linear one at once, the three others around a
dashed line much further to the right.
"""

from collections.abc import Mapping
from functools import partial

import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

from chapters.laboratory.grids import Axis, Grid, Values
from chapters.laboratory.marks import between
from chapters.laboratory.trials import Trial, uniform
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.batching import in_batches
from lib.single_location import Spiked, bayes_risk, best_elementwise_risk, best_risk, hardmax, linear

LARGEST_SNR, LARGEST_DECADE = 81.0, 12
RISKS = {
    "softmax": bayes_risk,
    "element_wise": best_elementwise_risk,
    "linear": partial(best_risk, activation=linear),
    "largest_score": partial(best_risk, activation=hardmax),
}
NAMES = {
    "softmax": "softmax (Bayes)",
    "linear": "linear",
    "element_wise": "element-wise",
    "largest_score": "largest score",
}
# What is drawn where nothing moves.
SHOWN = {"snr": 40.0, "decade": 6.0}


def simulate(nodes: int, settings: int, *, key: PRNGKeyArray) -> Trial:
    """Risks at the nodes, and at random settings, uniform in ν and in log L, with whole L."""
    highest = np.sqrt(2 * np.log(10.0**LARGEST_DECADE - 1))
    axes = [Axis.between("scale", 0.0, np.sqrt(LARGEST_SNR), nodes), Axis.between("top", 0.0, highest, nodes)]
    snrs, decades = uniform(key, settings, (0.0, LARGEST_SNR), (np.log10(2.0), LARGEST_DECADE))
    lengths = np.round(10.0 ** np.asarray(decades))
    places = (np.sqrt(np.asarray(snrs)), np.sqrt(2 * np.log(lengths - 1)))
    return Trial(Grid.of(axes, exactly), places, exactly(*places))


def exactly(scale: Values, top: Values) -> Mapping[str, Values]:
    """What the library says of a hint of strength scale² in a prompt with √(2 ln(L - 1)) = top."""
    lengths = 1 + np.exp(top**2 / 2)
    # traced: a node need not be a whole length, of which the library's integrals make nothing
    risks = {name: in_batches(partial(_risk, name), lengths.ravel(), scale.ravel() ** 2) for name in RISKS}
    return {name: np.log(risk).reshape(scale.shape) for name, risk in risks.items()}


@partial(jax.jit, static_argnums=0)
def _risk(name, length, snr):
    return RISKS[name](Spiked(length, snr))


def numbers(trial: Trial) -> Numbers:
    """The table; how far it is off between its nodes, and that no head in it is below Bayes."""
    columns = {
        "scale": Column("√ν, ν the strength of the hint"),
        "top": Column("√(2 ln(L - 1)), about the height of the tallest straw"),
        **{name: Column(f"ln of the excess risk: {NAMES[name]}", absolute=1e-6) for name in RISKS},
    }
    read = Claim(
        id="live-needle-read",
        statement=(
            f"What the page reads from its table is exact, at {trial.settings} random settings, uniform in "
            f"ν ≤ {LARGEST_SNR:g} and in ln L from 2 to 10^{LARGEST_DECADE} tokens: the largest relative error."
        ),
        source="measured here",
        measured=trial.error(*RISKS),
        expected=0.0,
        tolerance=5e-4,  # less than the four digits shown would need, more than what six digits of a logarithm leave
        relation="≤",
        alternative=Alternative("straight lines between the same nodes", trial.error_of_lines(*RISKS)),
    )
    return Numbers(Table(trial.grid.frame, columns), (read,))


def draw(table: pd.DataFrame) -> Figure:
    """Two cuts through the table."""
    figure, panels = plt.subplots(1, 2, figsize=(8.5, 4.2), sharey=True)
    decades, snrs = np.linspace(np.log10(2.0), LARGEST_DECADE, 200), np.linspace(0.0, 80.0, 200)
    tops, length = _top(decades), _top(np.asarray(SHOWN["decade"]))
    scale = np.sqrt(SHOWN["snr"])
    for index, (name, said) in enumerate(NAMES.items()):
        style = {"color": f"C{index}", "linewidth": 2.2, "label": said}
        panels[0].plot(snrs, np.exp(between(table, name, scale=np.sqrt(snrs), top=length)), **style)
        panels[1].plot(decades, np.exp(between(table, name, scale=scale, top=tops)), **style)
    middle = scale**2 / 2 / np.log(10.0)
    panels[0].axvline(length**2, color=ink(), linestyle="--", linewidth=1.5)
    panels[1].axvline(middle, color=ink(), linestyle="--", linewidth=1.5)
    panels[0].set(xlim=(0, 80), ylim=(0, 1.04), xlabel=r"strength of the hint, $\nu$", ylabel="excess risk")
    panels[1].set(xlim=(np.log10(2), 12), xlabel="prompt length $L$")
    panels[1].set_xticks([2, 4, 6, 8, 10, 12], [f"$10^{{{decade}}}$" for decade in (2, 4, 6, 8, 10, 12)])
    label(panels[1], middle, 0.75, r"$\nu=2\,\ln(L-1)$", ink(), ha="right", xytext=(-6, 0))
    panels[0].set_title(f"$L=10^{{{SHOWN['decade']:g}}}$", loc="right")
    panels[1].set_title(rf"$\nu={SHOWN['snr']:g}$", loc="right")
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.42))
    headline(figure, "Softmax needs a hint of the size of a logarithm, a linear head one of the size of the prompt")
    return figure


def _top(decades):
    """√(2 ln(L - 1)), by which the table counts lengths."""
    return np.sqrt(2 * np.log(10.0**decades - 1))
