r"""Both heads have two minima, and the random start chooses.

Plain mean square, exact, on prompts of one length, along training from PyTorch's random starts of the separate query,
key, value and output matrices. Linear attention by exact gradient descent, the same starts under both laws; softmax by
stochastic descent. Dashed: the optimum. Dotted: the other minimum, found by settling one trapped head. Training time is
steps times step size, as long as the published training.

Alt: Three charts of mean square against training time with many thin curves. Linear attention under the corrected law:
some curves end on a dashed line, others at a dotted line about twice as high, or on their way to it. Softmax under the
corrected law: some end on a dashed line, others at a dotted one above it. Linear attention under the published law:
nearly all end on the dashed line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.published_experiment.descents import STEP_SIZE, STEPS, Descents, descents_frame
from chapters.published_experiment.marks import COLOURS, MEAN_SQUARE, SIZE
from chapters.published_experiment.minima import FLAT
from chapters.published_experiment.optima import Optima
from chapters.published_experiment.parameters import SECOND_LENGTH
from chapters.published_experiment.protocol import LAWS, WIDTH
from chapters.published_experiment.trapped import SecondMinima, SecondMinimum, found_up_to, trapped_share
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink

TRAINED = f"From the starts PyTorch draws, training time {STEPS * STEP_SIZE:g} leaves"


def numbers(descents: Descents, seconds: SecondMinima, optima: Optima) -> Numbers:
    """Paths of the descents beside optimum and second minimum; what that is, and how many starts it traps."""
    claims = [_second_minimum_claim(activation, second, optima) for activation, second in seconds.items()]
    claims += [_wrong_way_claim(seconds), _trapped_claim(descents, optima), _trapped_softmax_claim(descents, optima)]
    return Numbers(_table(descents_frame(descents), seconds, optima), claims)


def _table(paths: pd.DataFrame, seconds: SecondMinima, optima: Optima) -> Table:
    """Paths of the descents, and the minima that trap them."""
    heads = list(zip(paths["law"], paths["activation"], strict=True))
    frame = paths.assign(
        optimum=[optima[law, activation, SECOND_LENGTH] for law, activation in heads],
        second=[seconds[activation].square if law == "corrected" else np.nan for law, activation in heads],
    )
    columns = {
        "activation": Column("Head that is trained", "name"),
        "law": Column("Data law: corrected, or as the published code draws", "name"),
        "start": Column("Number of the random start"),
        "time": Column("Training time: steps times step size"),
        "risk": Column(f"Mean square of the head there, exact, on prompts of {SECOND_LENGTH} tokens", absolute=1e-3),
        "optimum": Column("Least mean square"),
        "second": Column("Mean square at the other minimum"),
    }
    return Table(frame, columns)


def _second_minimum_claim(activation: str, second: SecondMinimum, optima: Optima) -> Claim:
    """The least curvature at the worse minimum; 0 where the head that was to be trapped found the optimum."""
    but = " but for the rescaling of U against v" if FLAT[activation] else ""
    worse = second.square > found_up_to(optima, "corrected", activation)
    return Claim(
        id=f"published-experiment-second-minimum-{activation}",
        statement=(
            f"{activation.capitalize()} attention on {SECOND_LENGTH} tokens has a second, worse minimum, strict{but}: "
            "the least curvature there."
        ),
        source="measured here",
        measured=second.curvature if worse else 0.0,
        expected=1e-3,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it is a saddle, like the head that answers 0", second.at_zero),
    )


def _wrong_way_claim(seconds: SecondMinima) -> Claim:
    """Which direction is served the wrong way round at the second minima."""
    return Claim(
        id="published-experiment-wrong-way-round",
        statement=(
            "At the second minimum of softmax and of linear attention, scores that see labels and values that see "
            "covariates serve one direction, the first principal axis of the covariates: the lesser cosine."
        ),
        source="heuristic",
        box="served-two-ways",
        measured=min(second.aligned for second in seconds.values()),
        expected=0.99,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the direction is random", (WIDTH - 1) ** -0.5),
    )


def _trapped_claim(descents: Descents, optima: Optima) -> Claim:
    """Shares of linear starts that end above the optimum, under both laws."""
    shares = {law: trapped_share(descents, optima, "linear", law) for law in LAWS}
    return Claim(
        id="published-experiment-trapped",
        statement=(
            f"{TRAINED} a larger share of linear heads above the optimum under the corrected law than under the "
            "published code's: the difference of the shares."
        ),
        source="measured here",
        measured=shares["corrected"] - shares["as published"],
        expected=0.15,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the data law plays no role", 0.0),
    )


def _trapped_softmax_claim(descents: Descents, optima: Optima) -> Claim:
    """Share of softmax starts that end above the optimum."""
    return Claim(
        id="published-experiment-trapped-softmax",
        statement=f"{TRAINED} softmax heads above the optimum: their share.",
        source="measured here",
        measured=trapped_share(descents, optima, "softmax", "corrected"),
        expected=0.1,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("every start leads to the optimum", 0.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a head and law: its paths, the optimum and the other minimum."""
    figure, panels = plt.subplots(1, 3, figsize=SIZE, sharey=True, sharex=True)
    shown = (("linear", "corrected"), ("softmax", "corrected"), ("linear", "as published"))
    for panel, (activation, law) in zip(panels, shown, strict=True):
        mine = table[(table["activation"] == activation) & (table["law"] == law)]
        for _, path in mine.groupby("start"):
            panel.plot(path["time"], path["risk"], color=COLOURS[activation], linewidth=0.8, alpha=0.7)
        panel.axhline(mine["optimum"].iloc[0], color=ink(), linestyle="--", linewidth=1.5, label="optimum")
        if mine["second"].notna().all():
            panel.axhline(mine["second"].iloc[0], color=ink(), linestyle=":", linewidth=2, label="other minimum")
        panel.set(xlabel="training time", title=f"{activation}, {law}")
    panels[0].set(ylabel=MEAN_SQUARE, ylim=(0, None))
    panels[0].legend(loc="lower left", title=f"$L={SECOND_LENGTH}$")
    return figure
