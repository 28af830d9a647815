r"""From starts on the manifold, training finds the value before the key, and softmax ends with the smallest risk.

Overlaps of the value and of the key with their directions; 1 is exact. Curves: medians over random starts with zero
cross overlaps; bands: the central 80 %; circles: the median reaches the dotted line. Left, the erf with $\lambda=0.9$
is below that with falling $\lambda$. Excess risks are in units of $\gamma^2$; the output 0 has risk 1.

Alt: Two panels of overlaps with one curve per head. Left, the value's overlaps rise from zero to one for all heads.
Circles on a dotted line, named "found", are at small times. Right, the circles are at later times, and the sharp erf
has none: the key's overlaps rise close to one with the flat erf, a small part of the way with the sharp erf, and
further with the decreasing schedule and with softmax. Softmax has the smallest risk at the end, the sharp erf a risk
above one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.single_location_training.descents import BAND, FAR_TIME, FLAT, LEARNED, SOFT, STEEP, Runs, band, described
from chapters.single_location_training.names import in_sentence
from chapters.single_location_training.simulated_risks import AngleRisks, SimulatedRisks
from chapters.single_location_training.style import COLOURS, draw_band
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label


def numbers(runs: Runs, test: SimulatedRisks, angle_risks: AngleRisks) -> Numbers:
    """Return overlaps and risks along training from the manifold, with the claims on the closed form and the ends."""
    groups = [
        {"head": name, "quantity": quantity, "step": run.steps, **band(values), "found": LEARNED}
        for (name, start), run in runs.items()
        if start == "on the manifold"
        for quantity, values in (
            ("key", np.abs(run.overlaps.m_k)),
            ("value", np.abs(run.overlaps.m_v)),
            ("risk", run.risk),
        )
    ]
    columns = {
        "head": Column("Activation and sharpness $λ$", "name"),
        "quantity": Column("`key`: $|⟨k, k*⟩|$; `value`: $|⟨v, v*⟩|$; `risk`: excess risk over $γ²$", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
        "found": Column("Smallest overlap with which a direction counts as found"),
    }
    return Numbers(Table.of(groups, columns), _claims(runs, test, angle_risks))


def _claims(runs: Runs, test: SimulatedRisks, angle_risks: AngleRisks) -> Claims:
    claim = Claims("single-location-training")
    claim.agree(
        "risk",
        "Random heads with nonzero cross overlaps have on simulated prompts the risks that their overlaps "
        f"predict, each on {test.errors.shape[1]:,} prompts",
        test.deviations(test.predicted),
        source="derived here",
        box="overlaps-decide-the-risk",
        rejects=("the overlaps of the value vector with $k*$ and $v*$ are exchanged", test.deviations(test.flipped)),
    )
    elsewhere = runs[FLAT, "anywhere"].learned.mean()
    for name, start, source, box in (
        (FLAT, "on the manifold", "[M24]", None),
        (SOFT, "anywhere", "heuristic", "where-and-what"),
    ):
        angle, learned = np.degrees(np.arccos(LEARNED)), runs[name, start].learned
        claim.at_least(
            name.split(",", maxsplit=1)[0],
            f"From random starts {start}, training turns $k$ towards $k*$ and $v$ towards $v*$ ({in_sentence(name)}), "
            f"both to overlaps of at least {LEARNED:g}, which are angles below {angle:.0f}° (measured: the fraction of "
            "runs).",
            learned.mean(),
            1,
            within=0.05,
            because="one start in twenty has an overlap below a sixteenth of its spread, and may need longer",
            count=(learned.sum(), learned.size),
            source=source,
            box=box,
            rejects=("as many runs find both as with erf attention from anywhere", elsewhere),
            requires=described(runs, name, FLAT),
        )
    flat, steep, soft = (np.median(runs[name, "on the manifold"].risk[:, -1]) for name in (FLAT, STEEP, SOFT))
    claim.at_least(
        "floor",
        f"The risk of sharp erf attention ({in_sentence(STEEP)}) stays large, because it gives weight to all other "
        f"tokens (measured: its median final risk divided by that of {in_sentence(FLAT)}).",
        steep / flat,
        10,
        because="ten times the other risk is what the statement calls large",
        source="heuristic",
        box="price-of-sharpness",
        rejects=("sharp erf attention ends with the risk of softmax", soft / flat),
        requires=described(runs, FLAT, STEEP, SOFT),
    )
    for short, name, start in (
        ("erf", FLAT, "on the manifold"),
        ("sharp", STEEP, "on the manifold"),
        ("softmax", SOFT, "anywhere"),
    ):
        key, value = runs[name, start].angles
        claim.at_least(
            f"angle-{short}",
            f"From random starts {start}, training ends with the key more than 10° from $k*$ ({in_sentence(name)}; "
            "measured: the median angle at the end, in degrees).",
            key,
            10,
            because="10°, as stated",
            source="measured here",
            rejects=("the key ends as near to $k*$ as the value to $v*$", value),
            requires=described(runs, name, per_dimension=FAR_TIME if name == FLAT else np.inf),
        )
    claim.at_most(
        "angle-price",
        f"The angle of the key at the end of training, {angle_risks.angle:.0f}° ({in_sentence(FLAT)}), raises the "
        "risk by less than a tenth of the least risk (measured: the risk with this key and the exact value, "
        "divided by the least risk).",
        angle_risks.key / angle_risks.none,
        1.1,
        because="a tenth, as stated",
        source="derived here",
        box="overlaps-decide-the-risk",
        rejects=("the value has this angle instead of the key", angle_risks.value / angle_risks.none),
        # with a key near k* the same angle of the value would cost little, too
        requires=described(runs, FLAT, per_dimension=FAR_TIME),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the overlap of the value and of the key, one curve per head, with the step at which each is found."""
    heads = list(dict.fromkeys(table["head"]))
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.6), sharex=True, sharey=True)
    titles = {"value": r"value, $|\langle v,v^{\star}\rangle|$", "key": r"key, $|\langle k,k^{\star}\rangle|$"}
    found, least = table["found"].iloc[0], table.loc[table["quantity"] == "risk", "median"].min()
    times = {quantity: [] for quantity in titles}
    for panel, (quantity, title) in zip(panels, titles.items(), strict=True):
        # the curves of the last two heads end close together
        for head, colour, shift in zip(heads, COLOURS, (0, 0, 14, -8), strict=True):
            rows = table[table["head"] == head]
            curve, risk = (rows[rows["quantity"] == name] for name in (quantity, "risk"))
            draw_band(panel, curve, colour)
            reached = curve["median"].cummax()
            if reached.iloc[-1] >= found:
                time = np.interp(found, reached, curve["step"] / curve["step"].max())
                panel.plot(time, found, "o", color=colour, markersize=9, markeredgecolor=ink(), zorder=4)
                times[quantity].append(time)
            if quantity == "key":
                last = risk["median"].iloc[-1]
                text = head.replace("λ", "$\\lambda$") + f":\nfinal risk {last:.2g}"
                text += "\n(smallest)" if last == least else ""
                label(panel, 1, curve["median"].iloc[-1], text, colour, xytext=(6, shift))
        panel.axhline(found, color=ink(), linestyle=":", linewidth=1.5)
        panel.set(title=title, xlabel="training time, part of the whole", xlim=(0, 1), ylim=(0, 1.05))
    label(panels[0], 1, found, "found from here on", ink(), xytext=(-4, 2), ha="right", va="bottom")
    text = f"value: found before {np.ceil(100 * max(times['value'])) / 100:.2f}\nby all heads"
    label(panels[0], 1, 0.2, text, ink(), xytext=(-4, 0), ha="right")
    text = f"key: found after {np.floor(100 * min(times['key'])) / 100:.2f},\nor not at all"
    label(panels[1], 1, 0.08, text, ink(), xytext=(-4, 0), ha="right")
    label(panels[1], 1, 1.05, "$\\lambda$: sharpness\nof the scores", ink())
    panels[0].set_ylabel("overlap")
    return figure
