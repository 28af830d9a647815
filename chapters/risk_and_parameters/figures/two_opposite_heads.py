r"""Two opposite heads with small keys reach the risk of the best linear head.

Mean square error times $L$ at the best gain, against $u$: one head $A=uI$ (circles), and half of it together with
half of its opposite (squares), over the same simulated prompts; bars are two standard errors. Solid: exact theory
of one head. Dotted: the large-$L$ law of two. Dashed: the best linear head. ($\Sigma=I$, $d=5$, no noise.)

Alt: Log-log chart. Circles on a solid curve fall steeply from small u to a minimum well above the dashed line, and
rise again. Squares lie on the dashed horizontal line at small u, together with a dotted curve, and rise slowly
beyond.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.opposite_heads import Answers, Theory, shrunken
from chapters.risk_and_parameters.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink
from lib.icl import valley_limit
from lib.statistics import comparison_quantile, standard_error

# Up to which u the square errors of one head have a variance that a simulation measures.
MILD_TILT = 0.3
# Up to which u the law of two heads for L → ∞ is compared with prompts of some hundred tokens.
SMALL_TILT = 0.2


def numbers(answers: Answers, theory: Theory) -> Numbers:
    """Both kinds of head against u, simulated and in theory."""
    table = _table(answers, theory)
    seen = table.frame[table.frame["one_simulated"].notna()]
    claims = (_one_head_claim(seen), _two_heads_claim(seen, answers.length), _law_claim(seen, answers.length))
    return Numbers(table, claims)


def _table(answers: Answers, theory: Theory) -> Table:
    """2R·L of one head and of two opposite ones at their best gain, by simulation, with what theory there is."""
    found = pd.DataFrame({"tilt": answers.tilts})
    for name, these in (("one", answers.one), ("two", answers.two)):
        errors = answers.best_gain_errors(these)
        found[f"{name}_simulated"] = answers.length * errors.mean(axis=1)
        found[f"{name}_std_error"] = answers.length * standard_error(errors, axis=1)
    exact = {"tilt": theory.tilts, "one_exact": theory.one_exact, "two_law": theory.two_law, "linear": theory.linear}
    columns = {
        "tilt": Column("u: keys uI, and -uI for the opposite head"),
        "one_exact": Column("2R·L of one head at its best gain, exact"),
        "two_law": Column("2R·L of two opposite heads at their best gain, by the law for L → ∞"),
        "linear": Column("2R·L of the best linear head, exact"),
        "one_simulated": Column("2R·L of one head over simulated prompts, where any", std_error="one_std_error"),
        "one_std_error": Column("Its standard error", moves_with="one_simulated"),
        "two_simulated": Column("2R·L of two opposite heads over the same prompts", std_error="two_std_error"),
        "two_std_error": Column("Its standard error", moves_with="two_simulated"),
    }
    return Table(pd.DataFrame(exact).merge(found, how="left", on="tilt")[list(columns)], columns)


def _one_head_claim(seen: pd.DataFrame) -> Claim:
    """One simulated head against the exact risk."""
    mild = seen[seen["tilt"] <= MILD_TILT]

    def worst(column: str) -> float:
        return float(np.max(np.abs(mild["one_simulated"] - mild[column]) / mild["one_std_error"]))

    return Claim(
        id="risk-and-parameters-one-head",
        statement=(
            f"One simulated head has the exact risk at {len(mild)} values of u up to {MILD_TILT:g}: the worst "
            "deviation in standard errors."
        ),
        source="derived here",
        box="exact-risk-of-block-heads",
        measured=worst("one_exact"),
        expected=0.0,
        tolerance=comparison_quantile(len(mild)),
        alternative=Alternative("two opposite heads' law", worst("two_law")),
    )


def _two_heads_claim(seen: pd.DataFrame, length: int) -> Claim:
    """At the smallest u, two heads against the best linear head."""
    at = seen.loc[seen["tilt"].idxmin()]
    error = at["two_std_error"] / at["linear"]
    return Claim(
        id="risk-and-parameters-two-heads",
        statement=(
            f"At u = {at['tilt']:g} and L = {length} two opposite heads have the risk of the best linear head, to a "
            "twentieth: the ratio of the two."
        ),
        source="derived here",
        box="two-opposite-heads",
        measured=at["two_simulated"] / at["linear"],
        expected=1.0,
        tolerance=0.05 + comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative("one head, the same keys", at["one_simulated"] / at["linear"]),
    )


def _law_claim(seen: pd.DataFrame, length: int) -> Claim:
    """Two simulated heads against the law for L → ∞, at small u."""
    small = seen[seen["tilt"] <= SMALL_TILT]
    uncorrelated = shrunken(np.asarray(valley_limit(np.asarray(small["tilt"]) ** 2, DIMENSION)) / 2, length)

    def worst(simulated) -> float:
        return float(np.max(np.abs(simulated / small["two_law"] - 1)))

    error = float(np.max(small["two_std_error"] / small["two_law"]))
    return Claim(
        id="risk-and-parameters-opposite-law",
        statement=(
            f"Up to u = {small['tilt'].max():g} two simulated heads follow the law of their correlated fluctuations: "
            "the largest relative distance, of which a twentieth is allowed to the finite prompt."
        ),
        source="derived here",
        box="two-opposite-heads",
        measured=worst(small["two_simulated"]),
        expected=0.0,
        tolerance=0.05 + comparison_quantile(len(small)) * error,
        alternative=Alternative("two heads whose fluctuations are independent", worst(uncorrelated)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Simulated points on the curves of theory, both axes logarithmic."""
    figure, axes = plt.subplots(figsize=SIZE)
    axes.set(xscale="log", yscale="log", xlabel="$u$", ylabel="mean square error times $L$")
    seen = table[table["one_simulated"].notna()]
    for name, mark, line, theory, says in (
        ("one", {"marker": "o", "color": "C0"}, "-", "one_exact", "one head, exact"),
        ("two", {"marker": "s", "color": "C1"}, ":", "two_law", r"two heads, $L\to\infty$"),
    ):
        axes.plot(table["tilt"], table[theory], color=mark["color"], linestyle=line, linewidth=2, label=says)
        simulated, error = seen[f"{name}_simulated"], seen[f"{name}_std_error"]
        error_bars(axes, seen["tilt"], simulated, error, **mark, label=f"{says.partition(',')[0]}, simulated")
    axes.axhline(table["linear"].iloc[0], color=ink(), linestyle="--", linewidth=1.3, label="best linear head")
    ticks = seen["tilt"].tolist()
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    levels = [20, 50, 100, 200, 500, 1000]
    axes.set_yticks(levels, labels=[str(level) for level in levels])
    axes.minorticks_off()
    axes.set_ylim(20, 1.4 * seen["one_simulated"].max())
    axes.legend(loc="upper right")
    headline(figure, "Two opposite heads with small keys reach the risk of the best linear head")
    return figure
