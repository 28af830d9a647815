r"""In the max model the risk of softmax at a fixed finite signal strength tends to 1 as the prompt gets longer.

The risk is the Bayes risk, that of the best softmax head. At a fixed signal strength $\nu$ it approaches 1 beyond
$\ln L=\nu^2/2$; the dashed curve has the limit $1/1.5$. The table also has the limit $\nu=\infty$: risks of softmax
arbitrarily close to 0 are possible at every length, and the risk of linear attention tends to 1.

Alt: Risk against the logarithm of prompt length. Three solid curves rise one after the other from near zero to one.
A dashed curve levels off below one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_advantage.max_model_risks import DECADES, FIXED, GROWING, LONG, LONGEST, MIDDLE, LongPrompts
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, ticks_at


def numbers(prompts: LongPrompts) -> Numbers:
    """Return the curves; claim their limits for long prompts."""
    at = {"log_length": prompts.log_lengths}
    decades = {"strength": 0.0, "log_length": np.log(10.0) * np.asarray(DECADES)}
    groups = [
        *({"kind": "fixed", "strength": snr, "risk": risks, **at} for snr, risks in prompts.fixed.items()),
        {"kind": "growing", "strength": GROWING, "risk": prompts.growing, **at},
        {"kind": "linear", "risk": list(prompts.linear.values()), **decades},
        {"kind": "certain", "risk": list(prompts.certain.values()), **decades},
    ]
    columns = {
        "kind": Column(
            "Softmax at `fixed` or `growing` strength; at $ν = ∞$ `linear` attention, and softmax as `certain`", "name"
        ),
        "strength": Column("$ν$ where it is fixed, $ν/√(2 ln L)$ where it grows, 0 where it is infinite"),
        "log_length": Column("$ln L$"),
        "risk": Column("Excess risk of the best head", absolute=1e-12),
    }
    claim = Claims("softmax-advantage-max", source="derived here", box="cor-4-3-as-quoted")
    snr, decade = FIXED[1], max(DECADES)
    certain = prompts.certain[decade]
    middle, long = np.searchsorted(prompts.log_lengths, [MIDDLE, LONG])
    claim.equal(
        "linear",
        "Corollary 4.3: in the max model the risk of linear attention tends to 1 on long prompts, even at "
        f"$ν = ∞$ (risk at $L = 10^{{{decade}}}$, at most $(1 + 2 ln L)/L$ below 1).",
        prompts.linear[decade],
        1,
        within=(1 + 2 * decade * np.log(10.0)) / 10.0**decade,
        because="the mean of the largest of $L$ normals is at most $√(2 ln L)$",
        source="[D26, Cor. 4.3]",
        rejects=("the infimum of the risks of softmax at the same length", certain),
    )
    claim.equal(
        "fixed",
        "Unlike Corollary 4.3 as it is quoted, in the max model the risk of softmax at a fixed $ν$ tends to 1 on long "
        f"prompts (Bayes risk at $ν = {snr:g}$, $ln L = {MIDDLE:g}$).",
        prompts.fixed[snr][middle],
        1,
        within=2 * np.exp(snr**2 - MIDDLE),
        because="twice the leading term for $L → ∞$, which is larger than the distance from 1 at this length",
        rejects=("the risk tends to 0, the infimum at $ν = ∞$", certain),
    )
    claim.equal(
        "growing",
        f"At $ν = {GROWING:g}·√(2 ln L)$ the Bayes risk of the max model tends to $√(2 ln L)/ν$, between 0 and 1 "
        f"(risk at $ln L = {LONGEST:g}$).",
        prompts.growing[-1],
        1 / GROWING,
        within=abs(prompts.growing[-1] - prompts.growing[long]) / (2**0.5 - 1),
        because="corrections fall at least like $1/√(ln L)$, so that the error is at most $1/(√2 - 1)$ times the "
        f"change from $ln L = {LONG:g}$ on",
        rejects=("a signal strength that does not grow", prompts.fixed[min(FIXED)][-1]),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw curves of fixed strengths, and one of a growing strength that settles."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    fixed, growing = table[table["kind"] == "fixed"], table[table["kind"] == "growing"]
    for snr, curve, colour in coloured_rows(fixed, "strength"):
        axes.plot(curve["log_length"], curve["risk"], color=colour, linewidth=2.2)
        half = curve.iloc[(curve["risk"] - 0.8).abs().argmin()]
        name = "fixed,\n" + rf"$\nu={snr:g}$"
        label(axes, half["log_length"], half["risk"], name, colour, xytext=(8, -8), fontsize=12)
    (c,) = growing["strength"].unique()
    axes.plot(growing["log_length"], growing["risk"], "--", color=ink(), linewidth=2.2)
    last, name = growing.iloc[-1], "growing strength,\n" + rf"$\nu={c:g}\,\sqrt{{2\,\ln L}}$"
    label(axes, last["log_length"], last["risk"], name, ink(), xytext=(6, -6), fontsize=12)
    axes.set(xscale="log", ylabel="excess risk of softmax, max model", ylim=(0, 1.05))
    axes.set_xlabel(r"logarithm of the prompt length, $\ln L$")
    ticks_at(axes.xaxis, [1, 3, 10, 30, 100])
    return figure
