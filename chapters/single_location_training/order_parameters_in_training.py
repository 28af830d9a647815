r"""What descent learns from random starts on the manifold of zero cross overlaps.

Across: steps of projected gradient descent. Upper row: $|\langle k,k^\star\rangle|$ (solid) and
$|\langle v,v^\star\rangle|$ (dashed), 1 where the direction is found. Lower row: excess risk in units of
$\gamma^2$, on a logarithmic axis; answering 0 costs 1. Lines are medians over the starts, bands their central four
fifths. The flat erf finds both directions; the sharp one never gets below the price of the weight that it gives
to the other tokens; lowering $\lambda$ on the way repairs that; softmax ends near zero.

Alt: Two rows of four panels, one column a head. Above, overlaps rise from zero: towards one with the flat erf, the
key only to a quarter with the sharp erf, and to a half or more with the falling schedule and with softmax. Below,
the risk falls from about one to a quarter for the flat erf, stays near eight for the sharp one, falls from nine to
about a quarter under the schedule, and to a thousandth with softmax.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.single_location_training.descents import BAND, FLAT, LEARNED, SOFT, STEEP, Run, Runs, band
from chapters.single_location_training.marks import colours, draw_band
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.single_location.training import Head, Sphere, erf_risk, overlaps_on_sphere, random_head
from lib.statistics import comparison_quantile, standard_error

LINES = {"key": "-", "value": "--"}


@dataclass(frozen=True)
class RealPrompts:
    """A head with large overlaps on real prompts, and the risk that its overlaps predict.

    `flipped` is the prediction for a value vector whose overlaps with k* and v* were exchanged.
    """

    errors: Float[np.ndarray, " prompts"]
    predicted: float
    flipped: float


def try_closed_form(task: Sphere, prompts: int, *, key: PRNGKeyArray) -> RealPrompts:
    """The risk of a random head with large overlaps, on real prompts and from its overlaps."""
    head_key, token_key = jr.split(key)
    head = random_head(4, key=head_key)
    k, v = (np.zeros(task.dimension) for _ in range(2))
    k[:4], v[:4] = head.key, head.value
    sharpness = 0.5
    errors = np.asarray(_real_errors(task, Head(jnp.asarray(k), jnp.asarray(v)), sharpness, prompts, key=token_key))
    predicted = float(erf_risk(task, overlaps_on_sphere(head), jnp.asarray(sharpness)))
    flipped = Head(head.key, head.value[jnp.asarray([1, 0, 2, 3])])
    return RealPrompts(errors, predicted, float(erf_risk(task, overlaps_on_sphere(flipped), jnp.asarray(sharpness))))


def _real_errors(
    task: Sphere, head: Head, sharpness: float, prompts: int, *, key: PRNGKeyArray
) -> Float[Array, " prompts"]:
    """Squared errors over γ² of erf-attention on prompts of real tokens, k* and v* being the first two axes."""
    spreads = jnp.ones(task.length).at[0].set(np.sqrt(task.variance))

    def one(index):
        tokens = spreads[:, None] * jr.normal(jr.fold_in(key, index), (task.length, task.dimension))
        tokens = tokens.at[0, 0].add(task.signal)
        weights = erf(sharpness * tokens @ head.key)
        return (tokens[0, 1] - weights @ (tokens @ head.value)) ** 2 / task.variance

    return jax.lax.map(one, jnp.arange(prompts), batch_size=256)


def numbers(runs: Runs, test: RealPrompts) -> Numbers:
    """Overlaps and risks along training from the manifold; the closed form behind them, and what is learned."""
    claims = (
        _closed_form_claim(test),
        _learned_claim(runs, FLAT),
        _learned_claim(runs, SOFT, start="anywhere"),
        _floor_claim(runs),
    )
    return Numbers(_table(runs), claims)


def _table(runs: Runs) -> Table:
    """Bands of |⟨k, k*⟩|, |⟨v, v*⟩| and the risk, from starts on the manifold."""
    frames = []
    for (name, start), run in runs.items():
        if start != "on the manifold":
            continue
        for quantity, values in {
            "key": np.abs(run.overlaps.m_k),
            "value": np.abs(run.overlaps.m_v),
            "risk": run.risk,
        }.items():
            frames.append(pd.DataFrame({"head": name, "quantity": quantity, "step": run.steps, **band(values)}))
    columns = {
        "head": Column("Activation and sharpness λ", "name"),
        "quantity": Column("`key`: |⟨k, k*⟩|; `value`: |⟨v, v*⟩|; `risk`: excess risk over γ²", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _closed_form_claim(test: RealPrompts) -> Claim:
    """Squared errors on real prompts against the risk from the overlaps."""
    error = float(standard_error(test.errors))
    return Claim(
        id="single-location-training-risk",
        statement=(
            f"On {len(test.errors)} real prompts a head with all cross overlaps has the risk that its overlaps predict."
        ),
        source="derived here",
        measured=float(test.errors.mean()),
        expected=test.predicted,
        tolerance=comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative("the value vector's overlaps with k* and v* were exchanged", test.flipped),
    )


def learned(run: Run) -> np.ndarray:
    """Which starts end with k along k* and v along v*, up to a common sign."""
    return np.minimum(np.abs(run.overlaps.m_k[:, -1]), np.abs(run.overlaps.m_v[:, -1])) >= LEARNED


def _learned_claim(runs: Runs, name: str, start: str = "on the manifold") -> Claim:
    """The share of starts that find both directions."""
    run = runs[name, start]
    slug = name.split(",", maxsplit=1)[0]
    return Claim(
        id=f"single-location-training-{slug}",
        statement=f"From random starts {start}, training finds both hidden directions ({name}): the share that does.",
        source="[M24]" if name == FLAT else "derived here",
        measured=float(learned(run).mean()),
        expected=1.0,
        tolerance=0.05,
        relation="≥",
        alternative=Alternative(
            "training went no further than from anywhere with erf", float(learned(runs[FLAT, "anywhere"]).mean())
        ),
    )


def _floor_claim(runs: Runs) -> Claim:
    """Median final risks: sharp erf over flat erf."""
    flat, steep, soft = (np.median(runs[name, "on the manifold"].risk[:, -1]) for name in (FLAT, STEEP, SOFT))
    return Claim(
        id="single-location-training-floor",
        statement=(
            f"Sharp erf-attention ({STEEP}) pays for the weight that it gives to all other tokens: its median final "
            f"risk over that of {FLAT}."
        ),
        source="derived here",
        measured=float(steep / flat),
        expected=10.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it ended like softmax", float(soft / flat)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A column a head: its two overlaps above, its risk below."""
    frame = table
    heads = list(dict.fromkeys(frame["head"]))
    figure, panels = plt.subplots(2, len(heads), figsize=(9.0, 5.0), sharex="col", sharey="row")
    for column, (head, colour) in enumerate(zip(heads, colours(heads), strict=True)):
        mine = frame[frame["head"] == head]
        for quantity, line in LINES.items():
            draw_band(panels[0, column], mine[mine["quantity"] == quantity], colour, line)
        draw_band(panels[1, column], mine[mine["quantity"] == "risk"], colour, "-")
        panels[0, column].set_title(head.replace("λ", "$\\lambda$"), fontsize="small")
        panels[1, column].set(xlabel="steps", yscale="log")
        panels[1, column].axhline(1, color=ink(), linestyle=":", linewidth=1)
        panels[1, column].tick_params(axis="x", labelrotation=30)
    panels[0, 0].set(ylabel="overlap", ylim=(0, 1.05))
    panels[1, 0].set(ylabel=r"risk$\,/\,\gamma^2$")
    handles = [Line2D([], [], color=ink(), linestyle=line) for line in LINES.values()]
    labels = [r"$|\langle k,k^\star\rangle|$", r"$|\langle v,v^\star\rangle|$"]
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure
