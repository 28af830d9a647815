"""Training a single head by projected gradient descent: what its two vectors learn, and from where they cannot.

The setting of [M24], on the unit sphere of R^d, for erf-attention at two sharpnesses and one schedule, and for
softmax. Starts are random, on the manifold of zero cross overlaps or anywhere; risks are closed forms of overlaps.
"""

from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jax.scipy.special import erf
from jaxtyping import Float
from pydantic import Field

from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error
from lib.single_location.training import (
    Descent,
    Head,
    Risk,
    Sphere,
    descend,
    erf_risk,
    manifold_distance,
    manifold_head,
    overlaps_on_sphere,
    random_head,
    softmax_risk,
)

STARTS = {"on the manifold": manifold_head, "anywhere": random_head}
FLAT, STEEP = "erf, λ = 0.1", "erf, λ = 0.9"
SCHEDULED, SOFT = "erf, λ falling", "softmax, λ = 1"
SHARPEST, FLATTEST = 0.9, 0.1
# An overlap beyond this has been learned: four standard deviations of chance in the fewest dimensions, 100.
LEARNED = 0.4
RECORDS = 40


@experiment
def single_location_training(
    *,
    seed: Annotated[int, Field(ge=0, description="Starts and test prompts are drawn from it.")],
    dimension: Annotated[int, Field(ge=100, le=5000, description="Dimension d of a token.")],
    length: Annotated[int, Field(ge=2, le=50, description="Tokens in a prompt, L.")],
    variance: Annotated[float, Field(ge=0.1, le=1.0, description="Variance γ² of the token that carries the answer.")],
    repeats: Annotated[int, Field(ge=8, le=200, description="Random starts of each kind.")],
    erf_steps: Annotated[int, Field(ge=6000, le=10**5, description="Descent steps of erf-attention.")],
    softmax_steps: Annotated[int, Field(ge=1200, le=10**5, description="Descent steps of softmax attention.")],
    erf_step: Annotated[
        float,
        Field(ge=1e-4, le=1.5e-3, description="Size of a step of erf-attention; from about 0.002 on it is unstable."),
    ],
    softmax_step: Annotated[float, Field(ge=1e-4, le=3e-3, description="Size of a step of softmax attention.")],
    test_prompts: Annotated[int, Field(ge=1000, le=10**5, description="Real prompts that check the closed form.")],
) -> Result:
    """Order parameters along training, and how far they are from the manifold, over random starts."""
    start_key, test_key = jr.split(jr.key(seed))
    task = Sphere(dimension, length, variance)
    starts = {kind: jax.vmap(partial(draw, dimension)) for kind, draw in STARTS.items()}
    starts = {kind: draw(key=jr.split(start_key, repeats)) for kind, draw in starts.items()}
    runs = {
        **train(partial(erf_risk, task), erf_sharpness(whole(erf_steps)), starts, erf_step),
        **train(partial(softmax_risk, task), {SOFT: np.ones(whole(softmax_steps))}, starts, softmax_step),
    }
    return Result(
        tables={
            "order_parameters_in_training": order_table(runs, erf_steps, softmax_steps),
            "manifold_distance_in_training": distance_table(runs, erf_steps, softmax_steps),
        },
        claims=(
            closed_form_claim(task, test_prompts, key=test_key),
            learned_claim(runs, FLAT),
            learned_claim(runs, SOFT, start="anywhere"),
            invariance_claim(runs),
            exchange_claim(runs),
            floor_claim(runs),
        ),
    )


def erf_sharpness(steps: int) -> dict[str, Float[np.ndarray, " steps"]]:
    """λ at each step, by head. The schedule, sharp first and flat in the end, is ours."""
    return {
        FLAT: np.full(steps, FLATTEST),
        STEEP: np.full(steps, SHARPEST),
        SCHEDULED: np.linspace(SHARPEST, FLATTEST, steps),
    }


def whole(steps: int) -> int:
    """The largest number of steps, at most `steps`, that records divide evenly."""
    return steps - steps % RECORDS


Runs = dict[tuple[str, str], Descent]


def train(
    risk: Risk, sharpness: dict[str, Float[np.ndarray, " steps"]], starts: dict[str, Head], step_size: float
) -> Runs:
    """Descents of every head from every start, compiled once: leaves of the shape (starts, records)."""
    steps = len(next(iter(sharpness.values())))

    def one(start, lams):
        return descend(risk, start, lams, step_size=step_size, every=steps // RECORDS)

    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts.values())
    over_starts = jax.vmap(jax.vmap(one, in_axes=(0, None)), in_axes=(0, None))
    run = jax.jit(jax.vmap(over_starts, in_axes=(None, 0)))(together, jnp.stack(list(sharpness.values())))
    return {
        (name, kind): jax.tree.map(lambda leaf, i=i, j=j: np.asarray(leaf[i, j]), run)
        for i, name in enumerate(sharpness)
        for j, kind in enumerate(starts)
    }


def recorded_steps(name: str, erf_steps: int, softmax_steps: int) -> np.ndarray:
    """The step of each record."""
    return np.linspace(0, whole(softmax_steps if name == SOFT else erf_steps), RECORDS + 1).astype(int)


# --- tables -----------------------------------------------------------------------------------------------


def band(values: Float[np.ndarray, "repeats times"]) -> dict[str, np.ndarray]:
    """Median and the central four fifths over repeats."""
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    return {"low": low, "median": middle, "high": high}


BAND = {
    "median": Column("Median over starts", absolute=1e-6),
    "low": Column("First decile over starts", absolute=1e-6),
    "high": Column("Last decile over starts", absolute=1e-6),
}


def order_table(runs: Runs, erf_steps: int, softmax_steps: int) -> Table:
    """Bands of |⟨k, k*⟩|, |⟨v, v*⟩| and the risk, from starts on the manifold."""
    frames = []
    for (name, start), run in runs.items():
        if start != "on the manifold":
            continue
        steps = recorded_steps(name, erf_steps, softmax_steps)
        for quantity, values in {
            "key": np.abs(run.overlaps.m_k),
            "value": np.abs(run.overlaps.m_v),
            "risk": run.risk,
        }.items():
            frames.append(pd.DataFrame({"head": name, "quantity": quantity, "step": steps, **band(values)}))
    columns = {
        "head": Column("Activation and sharpness λ", "name"),
        "quantity": Column("`key`: |⟨k, k*⟩|; `value`: |⟨v, v*⟩|; `risk`: excess risk over γ²", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def distance_table(runs: Runs, erf_steps: int, softmax_steps: int) -> Table:
    """Bands of the distance to the manifold, from both kinds of start."""
    frames = [
        pd.DataFrame(
            {
                "head": name,
                "start": start,
                "step": recorded_steps(name, erf_steps, softmax_steps),
                **band(np.maximum(manifold_distance(run.overlaps), np.finfo(float).eps)),
            }
        )
        for (name, start), run in runs.items()
    ]
    columns = {
        "head": Column("Activation and sharpness λ", "name"),
        "start": Column("Where the random starts are: `on the manifold` or `anywhere` on the spheres", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


# --- claims -----------------------------------------------------------------------------------------------


def closed_form_claim(task: Sphere, prompts: int, *, key) -> Claim:
    """The risk of a random head with large overlaps, on real prompts and from its overlaps."""
    head_key, token_key = jr.split(key)
    head = random_head(4, key=head_key)
    k, v = (np.zeros(task.dimension) for _ in range(2))
    k[:4], v[:4] = head.key, head.value
    sharpness = 0.5
    errors = np.asarray(real_errors(task, Head(jnp.asarray(k), jnp.asarray(v)), sharpness, prompts, key=token_key))
    predicted = float(erf_risk(task, overlaps_on_sphere(head), jnp.asarray(sharpness)))
    flipped = Head(head.key, head.value[jnp.asarray([1, 0, 2, 3])])
    alternative = float(erf_risk(task, overlaps_on_sphere(flipped), jnp.asarray(sharpness)))
    error = float(standard_error(errors))
    return Claim(
        id="single-location-training-risk",
        statement=f"On {prompts} real prompts a head with all cross overlaps has the risk that its overlaps predict.",
        source="derived here",
        figure="order_parameters_in_training",
        measured=float(errors.mean()),
        expected=predicted,
        tolerance=comparison_quantile(1) * error,
        std_error=error,
        alternative=Alternative("the value vector's overlaps with k* and v* were exchanged", alternative),
    )


def real_errors(task: Sphere, head: Head, sharpness: float, prompts: int, *, key) -> jax.Array:
    """Squared errors over γ² of erf-attention on prompts of real tokens, k* and v* being the first two axes."""
    spreads = jnp.ones(task.length).at[0].set(np.sqrt(task.variance))

    def one(index):
        tokens = spreads[:, None] * jr.normal(jr.fold_in(key, index), (task.length, task.dimension))
        tokens = tokens.at[0, 0].add(task.signal)
        weights = erf(sharpness * tokens @ head.key)
        return (tokens[0, 1] - weights @ (tokens @ head.value)) ** 2 / task.variance

    return jax.lax.map(one, jnp.arange(prompts), batch_size=256)


def learned(run: Descent) -> np.ndarray:
    """Which starts end with k along k* and v along v*, up to a common sign."""
    return np.minimum(np.abs(run.overlaps.m_k[:, -1]), np.abs(run.overlaps.m_v[:, -1])) >= LEARNED


def exchanged(run: Descent) -> np.ndarray:
    """Which starts end with k along v* and v along k*."""
    return np.minimum(np.abs(run.overlaps.m_kv[:, -1]), np.abs(run.overlaps.m_vk[:, -1])) >= LEARNED


def learned_claim(runs: Runs, name: str, start: str = "on the manifold") -> Claim:
    """The share of starts that find both directions."""
    run = runs[name, start]
    slug = name.split(",", maxsplit=1)[0]
    return Claim(
        id=f"single-location-training-{slug}",
        statement=f"From random starts {start}, training finds both hidden directions ({name}): the share that does.",
        source="[M24]" if name == FLAT else "derived here",
        figure="order_parameters_in_training",
        measured=float(learned(run).mean()),
        expected=1.0,
        tolerance=0.05,
        relation="≥",
        alternative=Alternative(
            "training went no further than from anywhere with erf", float(learned(runs[FLAT, "anywhere"]).mean())
        ),
    )


def invariance_claim(runs: Runs) -> Claim:
    """The largest distance ever reached from a start on the manifold, at λ = 0.1."""
    inside = manifold_distance(runs[FLAT, "on the manifold"].overlaps)
    outside = manifold_distance(runs[FLAT, "anywhere"].overlaps)
    return Claim(
        id="single-location-training-manifold",
        statement=f"Descent that starts with zero cross overlaps keeps them ({FLAT}): the largest distance met.",
        source="[M24]",
        figure="manifold_distance_in_training",
        measured=float(inside.max()),
        expected=0.0,
        tolerance=1e-6,
        alternative=Alternative("the start had been anywhere", float(outside.max())),
    )


def exchange_claim(runs: Runs) -> Claim:
    """The share of erf runs from anywhere that end with the roles of the two vectors exchanged."""
    return Claim(
        id="single-location-training-exchange",
        statement=(
            f"From random starts anywhere, some runs of erf-attention ({FLAT}) end with the roles exchanged, k along "
            "v* and v along k*: the share that does is above a tenth."
        ),
        source="derived here",
        figure="manifold_distance_in_training",
        measured=float(exchanged(runs[FLAT, "anywhere"]).mean()),
        expected=0.1,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("softmax did it as rarely", float(exchanged(runs[SOFT, "anywhere"]).mean())),
    )


def floor_claim(runs: Runs) -> Claim:
    """Median final risks: sharp erf over flat erf."""
    flat, steep, soft = (np.median(runs[name, "on the manifold"].risk[:, -1]) for name in (FLAT, STEEP, SOFT))
    return Claim(
        id="single-location-training-floor",
        statement=(
            f"Sharp erf-attention ({STEEP}) pays for the weight that it gives to all other tokens: its median final "
            f"risk over that of {FLAT}."
        ),
        source="derived here",
        figure="order_parameters_in_training",
        measured=float(steep / flat),
        expected=10.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it ended like softmax", float(soft / flat)),
    )
