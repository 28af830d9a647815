r"""Gaussian queries have Gaussian outputs if the tokens are Gaussian and the prompt is infinite.

The figure shows the distribution of the first coordinate of the output over Gaussian queries, standardised with the
mean and standard deviation of Lemma 2.1. The dashed curve is the standard normal. Points are infinite Gaussian prompts.
The orange steps use a fresh finite Gaussian prompt for every query; their outputs for large queries are too small.
Green steps are infinite prompts of a mixture of two Gaussians with the same mean and covariance. Bars are two standard
errors.

Alt: Three histograms against a dashed bell curve. Points, for Gaussian tokens and infinite prompts, are on the bell.
Orange steps, for finite prompts, are higher in the middle and lower in the tails. Green steps, for the mixture, have
two peaks and end early on both sides.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.gaussian_limit.query_outputs import INFINITE, MIXTURE, Outputs
from chapters.gaussian_limit.transport import MATCHED, Matching
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_line, legend_with

WIDTH = 0.25


def numbers(outputs: Outputs, matching: Matching) -> Numbers:
    """Return histograms of the first coordinate, a test against the lemma's distribution, and the optimal transport."""
    edges = np.arange(-4.0, 4.0 + WIDTH / 2, WIDTH)
    groups = []
    for kind, sample in outputs.items():
        share = np.histogram(sample[:, 0], edges)[0] / len(sample)
        error = np.sqrt(share * (1 - share) / len(sample))
        rows = {"kind": kind, "output": (edges[1:] + edges[:-1]) / 2, "density": share / WIDTH}
        groups.append({**rows, "std_error": error / WIDTH})
    columns = {
        "kind": Column("Kind of prompt; the tokens are Gaussian unless a mixture is named", "name"),
        "output": Column("Middle of a bin of the first output coordinate, standardised with Lemma 2.1"),
        "density": Estimate("Fraction of the outputs in the bin, divided by its width", std_error="std_error"),
    }
    from scipy.stats import kstest  # a second to import, and only this function needs it

    angles = np.linspace(0, np.pi, 5)[:-1]
    directions = np.stack([np.cos(angles), np.sin(angles)])
    claim = Claims("gaussian-limit", source="[BB26, Lemma 2.1]")
    claim.at_least(
        "output-law",
        "Gaussian queries have outputs $N(Vm + VΓUm_q, VΓUΓ_qUᵀΓVᵀ)$ (measured: the smallest p-value "
        f"of Kolmogorov-Smirnov tests on {len(angles)} projections of {len(outputs[INFINITE]):,} outputs).",
        kstest(outputs[INFINITE] @ directions, "norm").pvalue.min(),
        1e-3 / len(angles),
        because=f"{len(angles)} tests at this level together reject a true statement at most once in a thousand times",
        rejects=(
            "tokens of a mixture with the same mean and covariance have these outputs too",
            kstest(outputs[MIXTURE] @ directions, "norm").pvalue.min(),
        ),
        box="bb26-lemma-2-1-outputs",
    )
    claim.equal(
        "transport",
        "A matching at the least mean square distance pairs every tilt $Uz$ with its own tilted mean $∇Λ(Uz)$, for a "
        f"mixture of two Gaussians (measured: the fraction of {MATCHED} pairs that stay together).",
        matching.tilts,
        1,
        within=0,
        because="the matching is exact: all pairs stay together",
        rejects=("the queries $z$, and not the tilts, are mapped at the least cost", matching.queries),
        count=(round(matching.tilts * MATCHED), MATCHED),
        source="derived here",
        box="optimal-transport",
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the standard normal density with points on it, and two other histograms as steps."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    output = np.linspace(-4.0, 4.0, 201)
    axes.plot(output, np.exp(-(output**2) / 2) / np.sqrt(2 * np.pi), color=ink(), linestyle="--", linewidth=1.5)
    infinite, finite, mixture = (bins for _, bins in table.groupby("kind", sort=False))
    for bins, colour, alpha in ((mixture, "C2", 0.18), (finite, "C1", 0.0)):
        axes.fill_between(bins["output"], bins["density"], step="mid", color=colour, alpha=alpha, linewidth=0)
        axes.step(bins["output"], bins["density"], where="mid", color=colour, linewidth=1.8)
        error_bars(axes, bins["output"], bins["density"], bins["std_error"], color=colour, elinewidth=1.2)
    error_bars(axes, infinite["output"], infinite["density"], infinite["std_error"], color="C0", marker="o")
    for bins, place, name, colour in (
        (infinite, 1.4, "Gaussian tokens, infinite prompts", "C0"),
        (mixture, -0.35, "mixture, infinite prompts", "C2"),
        (finite, -1.1, f"Gaussian tokens,\n{finite['kind'].iloc[0]}", "C1"),
    ):
        row = bins.iloc[(bins["output"] - place).abs().argmin()]
        shift = {"ha": "right", "xytext": (-16, 10)} if colour == "C1" else {"xytext": (16, 4)}
        label(axes, row["output"], row["density"], name, colour, **shift)
    axes.set(xlim=(-4, 4), ylim=(0, None))
    axes.set(xlabel="output, standardised with Lemma 2.1", ylabel="density over queries")
    legend_with(axes, {"Lemma 2.1: normal": legend_line("--", 1.5)}, loc="upper left")
    return figure
