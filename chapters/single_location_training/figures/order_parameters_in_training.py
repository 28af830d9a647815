r"""From starts on the manifold, training finds the value before the key, and softmax ends with the smallest risk.

Upper row, against the steps of projected gradient descent: $|\langle k,k^\star\rangle|$ (solid) and $|\langle
v,v^\star\rangle|$ (dashed), which are 1 for the exact directions. From the dotted line on, a direction counts as found.
Lower row, on a logarithmic axis: the excess risk in units of $\gamma^2$; the output 0 has the risk 1. Curves are
medians over random starts with zero cross overlaps, and bands contain the central 80 %. The value reaches its direction
in all panels, the key covers only a part of the way. The sharp erf keeps a large risk, because it gives weight to the
other tokens; a decreasing $\lambda$ removes it.

Alt: Two rows of four panels, one column per head. Above, overlaps rise from zero: the value's to one in all columns,
the key's close to one with the flat erf, a small part of the way with the sharp erf, and further with the decreasing
schedule and with softmax. Below, the risk falls from about one to well below it for the flat erf, stays far above one
for the sharp one, falls from there to the level of the flat one under the schedule, and nearly to zero with softmax.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from chapters.single_location_training.descents import (
    BAND,
    FLAT,
    LEARNED,
    SOFT,
    STEEP,
    STILL_FAR,
    Runs,
    band,
    described,
)
from chapters.single_location_training.simulated_risks import AngleRisks, SimulatedRisks
from chapters.single_location_training.style import colours, draw_band
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import headline, ink, legend_line
from lib.statistics import comparison_quantile

LINES = {"key": "-", "value": "--"}


def numbers(runs: Runs, test: SimulatedRisks, angle_risks: AngleRisks) -> Numbers:
    """Return overlaps and risks along training from the manifold, with the claims on the closed form and the ends."""
    angled = (("erf", FLAT, "on the manifold"), ("sharp", STEEP, "on the manifold"), ("softmax", SOFT, "anywhere"))
    angles = [_angle_claim(runs, *each) for each in angled]
    # with a key near k* the same angle of the value would cost little, too
    price = described(_cheap_angle_claim(angle_risks), runs, FLAT, per_dimension=STILL_FAR)
    return Numbers(_table(runs), (*_claims(runs, test), *angles, price))


def _table(runs: Runs) -> Table:
    """Return the bands of |⟨k, k*⟩|, |⟨v, v*⟩| and the risk, for starts on the manifold."""
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
        "found": Column("Smallest overlap with which a direction counts as found"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _claims(runs: Runs, test: SimulatedRisks) -> tuple[Claim | WithheldClaim, ...]:
    flat, steep, soft = (np.median(runs[name, "on the manifold"].risk[:, -1]) for name in (FLAT, STEEP, SOFT))
    heads, prompts = test.errors.shape
    floor = Claim(
        id="single-location-training-floor",
        statement=(
            f"The risk of sharp erf attention ({STEEP}) stays large, because it gives weight to all other tokens "
            f"(measured: its median final risk divided by that of {FLAT})."
        ),
        source="heuristic",
        box="price-of-sharpness",
        measured=steep / flat,
        expected=10.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("sharp erf attention ends with the risk of softmax", soft / flat),
    )
    return (
        Claim(
            id="single-location-training-risk",
            statement=(
                f"Random heads with nonzero cross overlaps have on simulated prompts the risks that their overlaps "
                f"predict (measured: the largest deviation of {heads} heads, each on {prompts} prompts, in standard "
                "errors)."
            ),
            source="derived here",
            box="overlaps-decide-the-risk",
            measured=float(test.deviations(test.predicted).max()),
            expected=0.0,
            tolerance=comparison_quantile(heads),
            comparisons=heads,
            relation="≤",
            alternative=Alternative(
                "the overlaps of the value vector with k* and v* are exchanged",
                float(test.deviations(test.flipped).max()),
            ),
        ),
        _learned_claim(runs, FLAT, "on the manifold", source="[M24]"),
        _learned_claim(runs, SOFT, "anywhere", source="heuristic", box="where-and-what"),
        described(floor, runs, FLAT, STEEP, SOFT),
    )


def _learned_claim(runs: Runs, name: str, start: str, *, source: str, box: str | None = None) -> Claim | WithheldClaim:
    """Return the claim on the fraction of starts that find both directions, with overlaps beyond chance."""
    activation, _ = name.split(",", maxsplit=1)
    angle, learned = np.degrees(np.arccos(LEARNED)), runs[name, start].learned
    claim = Claim(
        id=f"single-location-training-{activation}",
        statement=(
            f"From random starts {start}, training turns k towards k* and v towards v* ({name}), both to overlaps of "
            f"at least {LEARNED:g}, which are angles below {angle:.0f}° (measured: the fraction of runs)."
        ),
        source=source,
        box=box,
        measured=learned.mean(),
        successes=int(learned.sum()),
        trials=learned.size,
        expected=1.0,
        tolerance=0.05,
        relation="≥",
        alternative=Alternative(
            "as many runs find both as with erf attention from anywhere",
            runs[FLAT, "anywhere"].learned.mean(),
        ),
    )
    return described(claim, runs, name, FLAT)


def _angle_claim(runs: Runs, short: str, name: str, start: str) -> Claim | WithheldClaim:
    """Return the claim on the angle of the key at the end of training."""
    key, value = runs[name, start].angles
    claim = Claim(
        id=f"single-location-training-angle-{short}",
        statement=(
            f"From random starts {start}, training ends with the key more than 10° from k* ({name}; measured: the "
            "median angle at the end, in degrees)."
        ),
        source="measured here",
        measured=key,
        expected=10.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the key ends as near to k* as the value to v*", value),
    )
    return described(claim, runs, name, per_dimension=STILL_FAR if name == FLAT else np.inf)


def _cheap_angle_claim(angle_risks: AngleRisks) -> Claim:
    """Return the claim on the risk that the final angle of the flat erf's key costs."""
    return Claim(
        id="single-location-training-angle-price",
        statement=(
            f"The angle of the key at the end of training, {angle_risks.angle:.0f}° ({FLAT}), raises the risk by less "
            "than a tenth of the least risk (measured: the risk with this key and the exact value, divided by the "
            "least risk)."
        ),
        source="derived here",
        box="overlaps-decide-the-risk",
        measured=angle_risks.key / angle_risks.none,
        expected=1.1,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the value has this angle instead of the key", angle_risks.value / angle_risks.none),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the two overlaps of each head above its risk, one column per head."""
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
    headline(figure, "The value is found before the key; softmax ends with the smallest risk")
    return figure
