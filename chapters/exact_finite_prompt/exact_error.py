r"""The error of a finite prompt: exact, simulated, and its large-$L$ form.

Mean square distance between the outputs of a prompt of $L$ tokens and of the infinite one, against $L$, at four
query sizes $\tau$. Lines: exact. Points: simulated prompts with their standard error (bars, mostly smaller than
the point). Dotted: the large-$L$ form $e^{\tau^2}(\mathrm{tr}\,V\Gamma V^\top+\|V\Gamma\xi\|^2)/L$ of the delta
method, which sets in only beyond $\ln L\approx\tau^2$, later than any simulation for the largest query.

Alt: Log-log line chart of error against length. For each of four query sizes a solid curve starts flat and bends
into a straight dotted line of slope minus one, later for larger queries. Points of simulated prompts up to ten
thousand tokens lie on the solid curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.exact_finite_prompt.marks import MARKERS, SIZE
from chapters.exact_finite_prompt.plain_prompts import ByLength, Scene
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.attention import attend
from lib.finite_prompt import output_error
from lib.statistics import comparison_quantile, standard_error


@dataclass(frozen=True)
class Errors:
    """Of one query size: exact errors on a grid of lengths; where prompts are simulated, exact and one a prompt.

    `along` is `‖VΓξ‖²/τ²` in the query's direction, `total` is `tr VΓVᵀ`: what the large-L form needs to know.
    """

    tau: float
    log_lengths: Float[np.ndarray, " grid"]
    exact: Float[np.ndarray, " grid"]
    simulated_log_lengths: Float[np.ndarray, " lengths"]
    exact_there: Float[np.ndarray, " lengths"]
    squares: Sequence[Float[np.ndarray, " prompts"]]
    along: float
    total: float


def compare(scene: Scene, taus: list[float], simulated: ByLength) -> list[Errors]:
    """By query size: exact error on a fine grid of lengths, simulated error where there are prompts."""
    log_lengths = np.linspace(np.log(2.0), 12 * np.log(10.0), 40)
    queries = jnp.asarray(taus)[:, None] * scene.direction
    by_query = jax.vmap(partial(output_error, scene.params, scene.gaussian), (0, None))
    exact_at = jax.jit(jax.vmap(by_query, (None, 0)))
    limits = np.asarray(jax.vmap(partial(attend, scene.params, scene.gaussian))(queries))
    at_lengths = np.log(list(simulated))
    grid, points = np.asarray(exact_at(queries, log_lengths)), np.asarray(exact_at(queries, at_lengths))
    energies = _energies(scene)
    errors = []
    for i, tau in enumerate(taus):
        squares = [np.sum((outputs[:, i] - limits[i]) ** 2, axis=1) for outputs in simulated.values()]
        errors.append(Errors(tau, log_lengths, grid[:, i], at_lengths, points[:, i], squares, *energies))
    return errors


def _energies(scene: Scene) -> tuple[float, float]:
    """`‖VΓξ‖²/τ²` along the query's direction, and `tr VΓVᵀ`."""
    value, cov = np.asarray(scene.params.value), np.asarray(scene.gaussian.cov)
    drift = value @ cov @ np.asarray(scene.params.bilinear @ scene.direction)
    return float(drift @ drift), float(np.trace(value @ cov @ value.T))


def numbers(errors: Sequence[Errors]) -> Numbers:
    """Exact, simulated and large-L error; simulation agrees with the exact one."""
    table = _table(errors)
    return Numbers(table, (_error_claim(table.frame),))


def _table(errors: Sequence[Errors]) -> Table:
    """Error against length, by query size."""
    frame = pd.concat([_frame(these) for these in errors], ignore_index=True)
    columns = {
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "log_length": Column("ln L"),
        "exact": Column("Mean square distance between the outputs of finite and infinite prompt, exact"),
        "delta_method": Column("tr(fluctuation)/L = e^{τ²}(tr VΓVᵀ + ‖VΓξ‖²)/L, its form for L → ∞"),
        "prompts": Column("Independent prompts simulated, where there are any", "prompts"),
        "simulated": Column("Their mean square error", std_error="std_error"),
        "std_error": Column("Its standard error", std_error="std_error"),
    }
    return Table(frame.reindex(columns=list(columns)).sort_values(["tau", "log_length"], ignore_index=True), columns)


def _frame(errors: Errors) -> pd.DataFrame:
    """The grid, then the simulated lengths."""
    grid = pd.DataFrame({"tau": errors.tau, "log_length": errors.log_lengths, "exact": errors.exact})
    points = pd.DataFrame(
        {
            "tau": errors.tau,
            "log_length": errors.simulated_log_lengths,
            "exact": errors.exact_there,
            "prompts": [len(these) for these in errors.squares],
            "simulated": [these.mean() for these in errors.squares],
            "std_error": [float(standard_error(these)) for these in errors.squares],
        }
    )
    frame = pd.concat([grid, points], ignore_index=True)
    tau_squared = frame["tau"] ** 2
    frame["delta_method"] = np.exp(tau_squared - frame["log_length"]) * (errors.total + tau_squared * errors.along)
    return frame


def _error_claim(frame: pd.DataFrame) -> Claim:
    """The worst deviation of simulation from the exact error, in standard errors."""
    seen = frame.dropna(subset=["simulated"])

    def worst(column: str) -> float:
        return float(np.max(np.abs(seen["simulated"] - seen[column]) / seen["std_error"]))

    return Claim(
        id="exact-finite-prompt-error",
        statement=(
            f"At {len(seen)} pairs of query size and length, the mean square error of simulated prompts equals the "
            "exact one: the worst deviation in standard errors."
        ),
        source="derived here",
        measured=worst("exact"),
        expected=0.0,
        tolerance=comparison_quantile(len(seen)),
        std_error=1.0,
        alternative=Alternative("the large-L form at every length", worst("delta_method")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Exact and large-L curves of each query size, simulated points on them."""
    frame = table
    figure, axes = plt.subplots(figsize=SIZE)
    taus = sorted(frame["tau"].unique().tolist())
    for tau, colour, marker in zip(taus, sequence(len(taus)), MARKERS, strict=False):
        curve = frame[frame["tau"] == tau]
        length = np.exp(curve["log_length"])
        axes.plot(length, curve["exact"], color=colour, linewidth=2)
        axes.plot(length, curve["delta_method"], color=colour, linewidth=1.2, linestyle=":")
        axes.errorbar(
            length, curve["simulated"], curve["std_error"], color=colour, marker=marker, markersize=5.5, linestyle="",
            capsize=3, label=rf"$\tau={tau:g}$",
        )  # fmt: skip
    top = 3 * frame["exact"].max()
    axes.set(xscale="log", yscale="log", ylim=(frame["exact"].min() / 2, top))
    axes.set(xlabel="prompt length $L$", ylabel="mean square error")
    handles, labels = axes.get_legend_handles_labels()
    handles += [Line2D([], [], color=ink(), linewidth=2), Line2D([], [], color=ink(), linewidth=1.2, linestyle=":")]
    axes.legend(handles, [*labels, "exact", "large $L$"], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
