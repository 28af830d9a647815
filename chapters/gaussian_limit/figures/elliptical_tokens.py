r"""For elliptical tokens the direction of the answer is linear attention's, and its length is not.

Length of the answer along $V\Gamma Uz$ against the size $\tau$ of the query, for three elliptical laws of the same
mean and the same covariance $\Gamma$. Curves: the infinite prompt, exact. Points: finite prompts, with two standard
errors of their mean. Dashed, under the Gaussian curve: linear attention, which reads the covariance and nothing else.
All curves are tangent to it at $\tau=0$; tokens that are Gaussians of one of two scales bend upwards, as large queries
hear the larger scale, and tokens on an ellipsoid bend downwards, as they cannot answer beyond it.

Alt: Line chart of answer length against query size. A straight diagonal for Gaussian tokens; a curve above it for a
mixture of two scales, a curve below it for tokens on an ellipsoid. All three touch at the origin.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.gaussian_limit.elliptical_prompts import CLUSTERS, COMPARED, EllipticalAnswers, factors
from chapters.gaussian_limit.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label, legend_line, legend_point, legend_with
from lib.statistics import standard_error, student_quantile, worst_deviation


def numbers(taus: Float[np.ndarray, " taus"], answers: Mapping[str, EllipticalAnswers]) -> Numbers:
    """Lengths of answers by law; the direction is linear attention's, the length is ψ(τ²) times longer."""
    elliptical = {name: these for name, these in answers.items() if name != CLUSTERS}
    direction = _direction_claim(elliptical, answers[CLUSTERS])
    return Numbers(_table(taus, elliptical), (direction, _length_claim(taus, elliptical)))


def _table(taus: Float[np.ndarray, " taus"], answers: Mapping[str, EllipticalAnswers]) -> Table:
    """Exact length and the mean length of finite prompts, by law and query size."""
    frames = [
        pd.DataFrame(
            {
                "law": name,
                "tau": taus,
                "exact": these.exact @ these.line / (these.line @ these.line),
                "prompts_mean": these.along.mean(axis=0),
                "prompts_std_error": standard_error(these.along),
            }
        )
        for name, these in answers.items()
    ]
    columns = {
        "law": Column("Elliptical law of the tokens, all of one mean and one covariance Γ", "name"),
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖; also the answer of linear attention"),
        "exact": Column("Answer of the infinite prompt along VΓUz, in units in which Lemma 2.1 says τ"),
        "prompts_mean": Column("Mean answer of finite prompts", std_error="prompts_std_error"),
        "prompts_std_error": Column("Standard error of that mean", moves_with="prompts_mean"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _direction_claim(elliptical: Mapping[str, EllipticalAnswers], clusters: EllipticalAnswers) -> Claim:
    return Claim(
        id="gaussian-limit-elliptical-direction",
        statement=(
            "Elliptical tokens of mean m answer Vm plus a multiple of VΓUz: the largest part across that direction, "
            "relative to the answer, over all laws and query sizes."
        ),
        source="derived here",
        box="elliptical",
        measured=max(these.off_the_line for these in elliptical.values()),
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative(
            "tokens in two clusters, of the same mean and covariance, not elliptical", clusters.off_the_line
        ),
    )


def _length_claim(taus: Float[np.ndarray, " taus"], answers: Mapping[str, EllipticalAnswers]) -> Claim:
    """Finite prompts against ψ(τ²)τ, where enough of their tokens matter."""
    compared = taus <= COMPARED
    tau, closed = taus[compared], factors(taus[compared])
    samples = {name: these.along[:, compared] for name, these in answers.items()}
    prompts = len(next(iter(samples.values())))

    def worst(lengths: Mapping[str, np.ndarray]) -> float:
        return max(worst_deviation(these - lengths[name]) for name, these in samples.items())

    return Claim(
        id="gaussian-limit-elliptical-length",
        statement=(
            f"Elliptical tokens answer with length ψ(τ²)τ, not τ: the worst deviation of the mean over {prompts} "
            f"finite prompts, over {len(samples)} laws and {tau.size} query sizes up to {COMPARED:g}, in standard "
            "errors."
        ),
        source="derived here",
        box="elliptical",
        measured=worst({name: tau * factor for name, factor in closed.items()}),
        expected=0.0,
        # each standard error is measured on that many prompts
        tolerance=student_quantile(len(samples) * tau.size, prompts),
        relation="≤",
        alternative=Alternative(
            "a readout of the covariance alone, VΓUz, for every elliptical law", worst(dict.fromkeys(samples, tau))
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a law under its name, over linear attention's line."""
    figure, axes = plt.subplots(figsize=SIZE)
    colours = {"two scales": "C1", "Gaussian": "C0", "ellipsoid": "C2"}
    for (law, curve), marker in zip(table.groupby("law", sort=False), ("^", "o", "s"), strict=True):
        colour, last = colours[str(law)], curve.iloc[-1]
        axes.plot(curve["tau"], curve["exact"], color=colour, linewidth=2)
        shown = curve.iloc[1::3]
        error_bars(axes, shown["tau"], shown["prompts_mean"], shown["prompts_std_error"], color=colour, marker=marker)
        says = f"{law},\nlinear attention" if law == "Gaussian" else str(law)
        label(axes, last["tau"], last["exact"], says, colour)
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    axes.set(xlim=(0, table["tau"].max()), ylim=(0, 1.05 * table["exact"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"length of the answer along $V\Gamma Uz$")
    lines = {"infinite prompt": legend_line("-"), "finite prompts": legend_point()}
    legend_with(axes, lines | {"linear attention": legend_line("--", 1.5)}, loc="upper left")
    headline(figure, "Same covariance, same direction, three lengths")
    return figure
