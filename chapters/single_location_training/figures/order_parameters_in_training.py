r"""What descent learns from random starts on the manifold of zero cross overlaps.

Across: steps of projected gradient descent. Upper row: $|\langle k,k^\star\rangle|$ (solid) and
$|\langle v,v^\star\rangle|$ (dashed), 1 where the direction is found exactly; dotted, the overlap from which on we
count it as found. Lower row: excess risk in units of $\gamma^2$, on a logarithmic axis; answering 0 costs 1. Lines are
medians over the starts, bands their central four fifths. The value comes to its direction in all panels, the key only
part of the way; the sharp erf never gets below the price of the weight that it gives to the other tokens; lowering
$\lambda$ on the way repairs that; softmax ends near zero.

Alt: Two rows of four panels, one column a head. Above, overlaps rise from zero: the
value's to one in all of them, the key's close to one with the flat erf, only a small part of the way with the sharp
erf, and further than that with the falling schedule and with softmax. Below, the risk falls from about one to well
below it for the flat erf, stays far above one for the sharp one, falls from there to where the flat one ends under the
schedule, and nearly to zero with softmax.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from chapters.single_location_training.closed_form import Least, RealPrompts
from chapters.single_location_training.descents import BAND, FLAT, LEARNED, SOFT, STEEP, Runs, band
from chapters.single_location_training.marks import colours, draw_band
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, legend_line
from lib.statistics import comparison_quantile

LINES = {"key": "-", "value": "--"}


def numbers(runs: Runs, test: RealPrompts, least: Least) -> Numbers:
    """Overlaps and risks along training from the manifold; the closed form behind them, and what is learned."""
    angled = (("erf", FLAT, "on the manifold"), ("sharp", STEEP, "on the manifold"), ("softmax", SOFT, "anywhere"))
    angles = [_angle_claim(runs, *each) for each in angled]
    return Numbers(_table(runs), (*_claims(runs, test), *angles, _cheap_angle_claim(least)))


def _table(runs: Runs) -> Table:
    """Bands of |⟨k, k*⟩|, |⟨v, v*⟩| and the risk, from starts on the manifold."""
    frames = [
        pd.DataFrame({"head": name, "quantity": quantity, "step": run.steps, **band(values), "found": LEARNED})
        for (name, start), run in runs.items()
        if start == "on the manifold"
        for quantity, values in (
            ("key", np.abs(run.overlaps.m_k)),
            ("value", np.abs(run.overlaps.m_v)),
            ("risk", run.risk),
        )
    ]
    columns = {
        "head": Column("Activation and sharpness λ", "name"),
        "quantity": Column("`key`: |⟨k, k*⟩|; `value`: |⟨v, v*⟩|; `risk`: excess risk over γ²", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
        "found": Column("Overlap from which on a direction counts as found"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _claims(runs: Runs, test: RealPrompts) -> tuple[Claim, ...]:
    flat, steep, soft = (np.median(runs[name, "on the manifold"].risk[:, -1]) for name in (FLAT, STEEP, SOFT))
    heads, prompts = test.errors.shape
    return (
        Claim(
            id="single-location-training-risk",
            statement=(
                f"On real prompts heads with all cross overlaps have the risks that their overlaps predict: of {heads} "
                f"random heads, each on {prompts} prompts, the largest deviation in standard errors."
            ),
            source="derived here",
            box="overlaps-decide-the-risk",
            measured=float(test.deviations(test.predicted).max()),
            expected=0.0,
            tolerance=comparison_quantile(heads),
            relation="≤",
            alternative=Alternative(
                "the value vector's overlaps with k* and v* were exchanged",
                float(test.deviations(test.flipped).max()),
            ),
        ),
        _learned_claim(runs, FLAT, "on the manifold", source="[M24]"),
        _learned_claim(runs, SOFT, "anywhere", source="heuristic", box="where-and-what"),
        Claim(
            id="single-location-training-floor",
            statement=(
                f"Sharp erf-attention ({STEEP}) pays for the weight that it gives to all other tokens: its median "
                f"final risk over that of {FLAT}."
            ),
            source="heuristic",
            box="price-of-sharpness",
            measured=steep / flat,
            expected=10.0,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("it ended like softmax", soft / flat),
        ),
    )


def _learned_claim(runs: Runs, name: str, start: str, *, source: str, box: str | None = None) -> Claim:
    """The share of starts that find both directions, in the sense of an overlap that chance does not reach."""
    activation, _ = name.split(",", maxsplit=1)
    angle = np.degrees(np.arccos(LEARNED))
    return Claim(
        id=f"single-location-training-{activation}",
        statement=(
            f"From random starts {start}, training turns k towards k* and v towards v* ({name}), both to overlaps of "
            f"at least {LEARNED:g}, angles below {angle:.0f}°: the share that does."
        ),
        source=source,
        box=box,
        measured=runs[name, start].learned.mean(),
        expected=1.0,
        tolerance=0.05,
        relation="≥",
        alternative=Alternative(
            "training went no further than from anywhere with erf", runs[FLAT, "anywhere"].learned.mean()
        ),
    )


def _angle_claim(runs: Runs, short: str, name: str, start: str) -> Claim:
    """How far from k* the key is left."""
    key, value = runs[name, start].angles
    return Claim(
        id=f"single-location-training-angle-{short}",
        statement=(
            f"From random starts {start}, training leaves the key well short of its direction ({name}), more than 10° "
            "from k*: the median angle at the end, in degrees."
        ),
        source="measured here",
        measured=key,
        expected=10.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the key came as near as the value does to v*", value),
    )


def _cheap_angle_claim(least: Least) -> Claim:
    """The price of the angle at which the flat erf leaves its key."""
    return Claim(
        id="single-location-training-angle-price",
        statement=(
            f"A key at the angle at which training leaves it, {least.angle:.0f}° ({FLAT}), costs less than a tenth of "
            "the least risk: the risk with that key and the value in place, over the least."
        ),
        source="derived here",
        box="overlaps-decide-the-risk",
        measured=least.key / least.none,
        expected=1.1,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("it is the value that is at this angle", least.value / least.none),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A column a head: its two overlaps above, its risk below."""
    heads = list(dict.fromkeys(table["head"]))
    figure, panels = plt.subplots(2, len(heads), figsize=(9.0, 5.4), sharex="col", sharey="row")
    for column, (head, colour) in enumerate(zip(heads, colours(heads), strict=True)):
        above, below = panels[:, column]
        mine = table[table["head"] == head]
        for quantity, line in LINES.items():
            draw_band(above, mine[mine["quantity"] == quantity], colour, line)
        draw_band(below, mine[mine["quantity"] == "risk"], colour, "-")
        above.axhline(mine["found"].iloc[0], color=ink(), linestyle=":", linewidth=1)
        above.set_title(head.replace("λ", "$\\lambda$"))
        below.set(xlabel="steps", yscale="log")
        below.axhline(1, color=ink(), linestyle=":", linewidth=1)
        below.xaxis.set_major_locator(MaxNLocator(2))
    panels[0, 0].set(ylabel="overlap", ylim=(0, 1.05))
    panels[1, 0].set(ylabel=r"risk$\,/\,\gamma^2$")
    handles = [legend_line(line, 1.5) for line in LINES.values()]
    labels = [r"key, $|\langle k,k^\star\rangle|$", r"value, $|\langle v,v^\star\rangle|$"]
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    headline(figure, "The value is found before the key; softmax ends with the least risk")
    return figure
