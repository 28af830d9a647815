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

from chapters.message_passing.theory import is_hard, widths
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, sequence, ticks_at


def numbers(phases: pd.DataFrame) -> Numbers:
    """Return the edges of the hard phase on the grid and the claims about its extent."""
    frame = widths(phases)
    frame["found"] = frame["lowest"].notna()
    frame["reaches"] = frame["highest"] >= phases["alpha"].max()
    first, second = phases["alpha"].unique()[:2]
    half_step = (second / first) ** 0.5
    frame["lowest"] = frame["lowest"].fillna(0.0) / half_step
    frame["highest"] = frame["highest"].fillna(0.0) * half_step
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
    return Numbers(Table(frame.reindex(columns=list(columns)), columns), _claims(frame, phases))


def _claims(frame: pd.DataFrame, phases: pd.DataFrame) -> Claims:
    claim = Claims("message-passing", source="measured here", box="hard-phase")
    two = frame.groupby("noise_std")["two"].sum()
    largest, smallest = two.index.max(), two.index.min()
    claim.equal(
        "not-hard",
        f"At noise $Δ = {largest:g}$ no hard phase is found: the number of points, out of "
        f"{(phases['noise_std'] == largest).sum():,} of the grid, at which the state evolution has two ends.",
        two[largest],
        0,
        within=0,
        because="counts are exact",
        rejects=(f"the noise were $Δ = {smallest:g}$", two[smallest]),
    )
    hard = phases[is_hard(phases)]
    most = hard["noise_std"].max()
    none = phases.loc[phases["noise_std"] > most, "noise_std"].min()
    lengths = listing(f"{length:g}" for length in sorted(hard.loc[hard["noise_std"] == most, "length"].unique()))
    claim.at_least(
        "hard-noise",
        f"A hard phase exists at noise $Δ = {most:g}$ too, in prompts of {lengths} tokens: the number of "
        "points of the grid with this noise at which the phase is hard.",
        (hard["noise_std"] == most).sum(),
        1,
        because="one hard point is enough",
        rejects=(f"the noise were $Δ = {none:g}$", (hard["noise_std"] == none).sum()),
    )
    # the largest ν with a hard phase, 0 if there is none
    reach = frame.assign(reach=frame["snr"].where(frame["found"], 0.0)).groupby(["noise_std", "length"])["reach"].max()
    claim.at_least(
        "hard-hints",
        f"In longer prompts stronger signals still have a hard phase ($Δ = {smallest:g}$): the smallest "
        "growth of the largest such $ν$ from one length to the next is more than a step of the grid.",
        reach[smallest].diff().min(),
        1,
        because="a step of the grid",
        rejects=(f"the noise were $Δ = {largest:g}$", reach[largest].diff().min()),
    )
    found = frame[(frame["noise_std"] == smallest) & frame["found"]]
    widest = (found["highest"] / found["lowest"]).groupby(found["length"]).max()
    claim.at_least(
        "hard-width",
        "In the longest prompts the hard phase ends at more than twice the sample ratio at which it "
        f"begins ($Δ = {smallest:g}$, at the signal strength where it is widest): the ratio, or less than it if the "
        "grid ends first.",
        widest[widest.index.max()],
        2,
        because="the statement says more than twice",
        rejects=("the same in the shortest prompts", widest[widest.index.min()]),
    )
    return claim


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
        panel.set(xlim=(0.0, table["snr"].max()), ylim=(1.0, 1.05 * table["highest"].max()))
        ticks_at(panel.yaxis, [1, 2, 4, 8])
    panels[0].set_ylabel(r"prompts per dimension, $\alpha$")
    handles = [Patch(facecolor=(colour, 0.25), edgecolor=colour, linewidth=2) for colour in colours]
    names = [rf"hard at noise $\Delta={noise:g}$" for noise in noises]
    panels[0].legend(handles, names, loc="upper left", fontsize=10)
    return figure
