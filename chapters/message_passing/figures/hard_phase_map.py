r"""The phase is hard in long prompts with weak signals and little noise.

One panel per prompt length. Horizontal axis: signal strength $\nu$. Vertical axis, logarithmic: prompts per dimension,
$\alpha=n/D$. Inside an outline, one colour per noise level $\Delta$, the phase is hard: the state evolution has two
ends, and the end that the uninformed start misses has the larger free entropy. With less noise a region begins at
fewer prompts; its upper edge stays the same or is one step of the grid lower. All quantities are on a grid; the largest
noise of the grid has no hard region. Regions that reach the upper edge of a panel may continue beyond the grid.

Alt: Three panels with overlapping outlined regions that are wide at weak signals and close in a tip at stronger ones.
They are larger in longer prompts, and with less noise they reach further down.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from chapters.message_passing.theory import is_hard, widths
from chapters.wording import listing
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, sequence

TICKS = (1, 2, 4, 8)


def numbers(phases: pd.DataFrame) -> Numbers:
    """Return the edges of the hard phase on the grid and the claims about its extent."""
    frame = widths(phases)
    frame["found"] = frame["lowest"].notna()
    step = (phases["alpha"].unique()[1] / phases["alpha"].unique()[0]) ** 0.5
    frame[["lowest", "highest"]] = frame[["lowest", "highest"]].fillna(0.0)
    frame["reaches"] = frame["highest"] >= phases["alpha"].max()
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "noise_std": Column("Standard deviation $Δ$ of the label noise"),
        "snr": Column("Signal strength $ν$"),
        "lowest": Column("Lowest sample ratio of the grid at which the phase is hard, half a step less; 0: none"),
        "highest": Column("Highest such sample ratio, half a step more; 0: none"),
        "two": Column("Sample ratios of the grid at which the evolution has two ends", "ratios"),
        "found": Column("Whether there is a hard phase on the grid", "yes or no"),
        "reaches": Column("Whether it reaches the last sample ratio of the grid", "yes or no"),
    }
    frame["lowest"] /= step
    frame["highest"] *= step
    claims = (_noise_claim(frame, phases), _some_noise_claim(phases), *_extent_claims(frame))
    return Numbers(Table(frame.reindex(columns=list(columns)), columns), claims)


def _noise_claim(frame: pd.DataFrame, phases: pd.DataFrame) -> Claim:
    by_noise = frame.groupby("noise_std")["two"].sum()
    largest, smallest = by_noise.index.max(), by_noise.index.min()
    count = int((phases["noise_std"] == largest).sum())
    return Claim(
        id="message-passing-not-hard",
        statement=(
            f"At noise $Δ = {largest:g}$ no hard phase is found: the number of points, out of {count:,} of the "
            "grid, at which the state evolution has two ends."
        ),
        source="measured here",
        box="hard-phase",
        measured=by_noise[largest],
        expected=0.0,
        tolerance=0.0,
        alternative=Alternative(f"the noise were $Δ = {smallest:g}$", by_noise[smallest]),
    )


def _some_noise_claim(phases: pd.DataFrame) -> Claim:
    hard = phases[is_hard(phases)]
    most = hard["noise_std"].max()
    lengths = listing(f"{length:g}" for length in sorted(hard.loc[hard["noise_std"] == most, "length"].unique()))
    none = phases.loc[phases["noise_std"] > most, "noise_std"].min()
    return Claim(
        id="message-passing-hard-noise",
        statement=(
            f"A hard phase exists at noise $Δ = {most:g}$ too, in prompts of {lengths} tokens: the number of "
            "points of the grid with this noise at which the phase is hard."
        ),
        source="measured here",
        box="hard-phase",
        measured=(hard["noise_std"] == most).sum(),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(f"the noise were $Δ = {none:g}$", (hard["noise_std"] == none).sum()),
    )


def _extent_claims(frame: pd.DataFrame) -> tuple[Claim, Claim]:
    noise, none = frame["noise_std"].min(), frame["noise_std"].max()
    found = frame[(frame["noise_std"] == noise) & frame["found"]]
    widest = found.assign(width=found["highest"] / found["lowest"]).groupby("length")["width"].max()

    def growth(noise):
        """Return the smallest growth, between lengths, of the largest ν with a hard phase (0 if none)."""
        mine = frame[frame["noise_std"] == noise]
        return mine["snr"].where(mine["found"], 0.0).groupby(mine["length"]).max().diff().min()

    return (
        Claim(
            id="message-passing-hard-hints",
            statement=(
                f"In longer prompts stronger signals still have a hard phase ($Δ = {noise:g}$): the smallest "
                "growth of the largest such $ν$ from one length to the next is more than a step of the grid."
            ),
            source="measured here",
            box="hard-phase",
            measured=growth(noise),
            expected=1.0,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative(f"the noise were $Δ = {none:g}$", growth(none)),
        ),
        Claim(
            id="message-passing-hard-width",
            statement=(
                "In the longest prompts the hard phase ends at more than twice the sample ratio at which it "
                f"begins ($Δ = {noise:g}$, at the hint where it is widest): the ratio, or less than it if the grid "
                "ends first."
            ),
            source="measured here",
            box="hard-phase",
            measured=widest[widest.index.max()],
            expected=2.0,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the same in the shortest prompts", widest[widest.index.min()]),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per length and one outlined region per noise level, the smallest noise at the back."""
    lengths = sorted(table["length"].unique())
    noises = sorted(table.loc[table["found"], "noise_std"].unique())
    figure, panels = plt.subplots(1, len(lengths), figsize=(WIDE, 4.2), sharex=True, sharey=True)
    colours = sequence(len(noises))
    for panel, length in zip(panels, lengths, strict=True):
        for noise, colour in zip(noises, colours, strict=True):
            region = table[(table["length"] == length) & (table["noise_std"] == noise) & table["found"]]
            snr, low, high = region["snr"], region["lowest"], region["highest"]
            panel.fill_between(snr, low, high, color=colour, alpha=0.25, linewidth=0)
            panel.plot([*snr, *snr[::-1], *snr[:1]], [*low, *high[::-1], *low[:1]], color=colour, linewidth=2)
        panel.set(yscale="log", title=f"prompts of {length:g} tokens", xlabel=r"signal strength, $\nu$")
        panel.set_ylim(1.0, 1.05 * table["highest"].max())
        panel.set_xlim(0.0, table["snr"].max())
        panel.yaxis.set_major_locator(FixedLocator(TICKS))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.set_yticklabels([f"{tick:g}" for tick in TICKS])
    panels[0].set_ylabel(r"prompts per dimension, $\alpha$")
    handles = [Patch(facecolor=(colour, 0.25), edgecolor=colour, linewidth=2) for colour in colours]
    names = [rf"hard at noise $\Delta={noise:g}$" for noise in noises]
    panels[0].legend(handles, names, loc="upper left", fontsize=10)
    return figure
