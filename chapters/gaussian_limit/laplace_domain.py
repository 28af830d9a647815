r"""Laplace tokens of scale $b$ before, near and beyond the pole.

Outputs of independent prompts against their length: the mean with its standard error (points), the central half
and nine tenths of the prompts (thick and thin bars). Dashed: the limit $2b^2\xi/(1-b^2\xi^2)$ where there is one,
and $b\ln L$ up to a fitted constant beyond the pole. Left: the fluctuation is finite and the outputs close in on
the limit like $1/\sqrt L$. Middle: a limit without a finite fluctuation, approached slowly. Right: the output
grows forever, and its random part keeps its size.

Alt: Three panels of attention output against prompt length. Left: bars shrink onto a horizontal dashed line.
Middle: bars drift up to a dashed line and are still wide at a million tokens. Right: the outputs climb along a
straight line in the logarithm of the length, and the bars keep their width.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from chapters.gaussian_limit.batches import map_indices, unit_head
from chapters.gaussian_limit.marks import SIZE, cycle, decades
from chapters.gaussian_limit.parameters import LONG
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.attention import attend
from lib.measures import Laplace, empirical
from lib.statistics import comparison_quantile, standard_error

# Where the three panels are taken, in units of the pole 1/b.
INSIDE, BETWEEN, BEYOND = 0.4, 0.8, 2.5

# Outputs of all prompts of one length, by tilt.
ByTilt = Mapping[float, Float[np.ndarray, " prompts"]]


def simulate(counts: Mapping[int, int], *, key: PRNGKeyArray) -> dict[int, ByTilt]:
    """By length: outputs for Laplace tokens of scale 1, of that many prompts as `counts` says."""
    return {length: _outputs(length, count, key=jr.fold_in(key, length)) for length, count in counts.items()}


def _outputs(length: int, prompts: int, *, key: PRNGKeyArray) -> ByTilt:
    """Outputs for Laplace tokens of scale 1, by tilt; the three tilts are asked of the same prompts."""
    law = Laplace([1.0])
    tilts = (INSIDE, BETWEEN, BEYOND)

    def one(index):
        prompt = empirical(law, length, key=jr.fold_in(key, index))
        return jax.vmap(lambda tilt: attend(unit_head(), prompt, tilt[None])[0])(jnp.asarray(tilts))

    outputs = map_indices(one, prompts, length)
    return dict(zip(tilts, outputs.T, strict=True))


def numbers(outputs: Mapping[int, ByTilt]) -> Numbers:
    """Mean and quantiles by tilt and length; beyond the pole, growth without end and a spread that stays."""
    return Numbers(_table(outputs), _claims(outputs))


def _table(outputs: Mapping[int, ByTilt]) -> Table:
    """Mean and quantiles over prompts, by tilt and length, beside the limit or, beyond the pole, ln L."""
    offset = _growth(outputs, BEYOND)[2]
    rows = [
        {
            "tilt": tilt,
            "length": length,
            "prompts": values.size,
            "mean": values.mean(),
            "std_error": standard_error(values),
            **dict(zip(("q05", "q25", "q75", "q95"), np.quantile(values, (0.05, 0.25, 0.75, 0.95)), strict=True)),
            "law": offset + np.log(length) if tilt > 1 else 2 * tilt / (1 - tilt**2),
        }
        for tilt in (INSIDE, BETWEEN, BEYOND)
        for length, by_tilt in outputs.items()
        for values in (by_tilt[tilt],)
    ]
    columns = {
        "tilt": Column("Score per unit of token ξ, in units of the pole 1/b", "1/b"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "prompts": Column("Independent prompts", "prompts"),
        "mean": Column("Mean output over prompts", "b", std_error="std_error"),
        "std_error": Column("Standard error of the mean output", "b", std_error="std_error"),
        "q05": Column("5 % quantile of the output over prompts", "b", std_error="std_error"),
        "q25": Column("25 % quantile", "b", std_error="std_error"),
        "q75": Column("75 % quantile", "b", std_error="std_error"),
        "q95": Column("95 % quantile", "b", std_error="std_error"),
        "law": Column(
            "2b²ξ/(1 - b²ξ²) before the pole; beyond it b ln L + const, const fitted",
            "b",
            std_error="std_error",
        ),
    }
    return Table(pd.DataFrame(rows), columns)


def _claims(outputs: Mapping[int, ByTilt]) -> list[Claim]:
    """Beyond the pole the mean grows like ln L and the spread does not shrink."""
    growth, growth_error, _ = _growth(outputs, BEYOND)
    settled, *_ = _growth(outputs, INSIDE)
    spread, spread_error = _spread_exponent(outputs, BEYOND)
    shrinking, _ = _spread_exponent(outputs, INSIDE)
    inside = f"the outputs settle, as they do on the same prompts at {INSIDE}/b"
    return [
        Claim(
            id="gaussian-limit-laplace-growth",
            statement=(
                f"At ξ = {BEYOND}/b, beyond the pole, the mean output of Laplace tokens grows by b for each unit "
                "of ln L."
            ),
            source="derived here",
            measured=growth,
            expected=1.0,
            tolerance=comparison_quantile(2) * growth_error,
            std_error=growth_error,
            alternative=Alternative(inside, settled),
        ),
        Claim(
            id="gaussian-limit-laplace-spread",
            statement=(
                f"At ξ = {BEYOND}/b the output stays random: its mean absolute deviation over prompts follows a power "
                "of L of exponent 0."
            ),
            source="derived here",
            measured=spread,
            expected=0.0,
            tolerance=comparison_quantile(2) * spread_error,
            std_error=spread_error,
            alternative=Alternative(inside, shrinking),
        ),
    ]


def _growth(outputs: Mapping[int, ByTilt], tilt: float) -> tuple[float, float, float]:
    """Slope of the mean output in ln L, its standard error, and the offset of a slope of one."""
    kept = {length: by_tilt[tilt] for length, by_tilt in outputs.items() if length >= LONG}
    x = np.log(list(kept))
    means = np.asarray([values.mean() for values in kept.values()])
    errors = np.asarray([standard_error(values) for values in kept.values()])
    slope, error = _weighted_slope(x, means, errors)
    return slope, error, float(np.average(means - x, weights=errors**-2))


def _spread_exponent(outputs: Mapping[int, ByTilt], tilt: float) -> tuple[float, float]:
    """Slope in ln L of the log of the mean absolute deviation, and its standard error by the delta method."""
    kept = {length: by_tilt[tilt] for length, by_tilt in outputs.items() if length >= LONG}
    deviations = [np.abs(values - values.mean()) for values in kept.values()]
    spreads = np.asarray([these.mean() for these in deviations])
    errors = np.asarray([standard_error(these) for these in deviations]) / spreads
    return _weighted_slope(np.log(list(kept)), np.log(spreads), errors)


def _weighted_slope(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    weights = errors**-2
    centred = x - np.average(x, weights=weights)
    precision = float(np.sum(weights * centred**2))
    return float(np.sum(weights * centred * y)) / precision, precision**-0.5


def draw(table: pd.DataFrame) -> Figure:
    """A panel a tilt: mean and quantiles of the output against the length."""
    frame = table
    tilts = sorted(frame["tilt"].unique().tolist())
    figure, panels = plt.subplots(1, len(tilts), figsize=SIZE, sharex=True)
    titles = ("it settles", "it settles slowly", "it never settles")
    for panel, tilt, title, colour in zip(panels, tilts, titles, cycle(len(tilts)), strict=True):
        curve = frame[frame["tilt"] == tilt]
        panel.vlines(curve["length"], curve["q05"], curve["q95"], color=colour, linewidth=1.5)
        panel.vlines(curve["length"], curve["q25"], curve["q75"], color=colour, linewidth=6, alpha=0.5)
        panel.errorbar(
            curve["length"], curve["mean"], curve["std_error"], color=colour, marker="o", markersize=5, linestyle=""
        )
        panel.plot(curve["length"], curve["law"], color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xscale="log", xlabel="prompt length $L$", title=f"{title}\n$\\xi={tilt:g}/b$")
        decades(panel)
    panels[0].set_ylabel("output, in units of $b$")
    panels[-1].yaxis.set_major_locator(MultipleLocator(4))
    return figure
