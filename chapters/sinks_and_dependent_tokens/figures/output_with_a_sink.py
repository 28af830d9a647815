r"""A sink shrinks the output for small queries and hardly changes it for large ones.

Left: the mean output along the line of the infinite prompt (dotted), $\tau(1-\mathbb{E}p_0-P)$ with the weight $p_0$ of
the sink and the participation $P$ of the tokens. Right: mean square error of the output. Curves are exact; points are
simulated, with bars of two standard errors. A query whose weights sum to more than $e^b$ leaves the sink hardly any
weight.

Details:
The tokens of the simulated prompts are three-dimensional vectors. The sink has the value 0 in the figure; the
claim on mean outputs is tested with a value that is not 0 and tokens that are not centred.

Alt: Two line charts against the size of the query. Left: without a sink the mean output follows a dotted diagonal and
then bends; curves for larger sinks stay near zero for small queries and join the first curve at larger ones. Right: the
errors of the same heads; with a sink they are larger, and the curves meet for large queries.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sinks_and_dependent_tokens.sinks import (
    SINK_VALUE,
    ExactOutputs,
    SimulatedOutputs,
    average_sink_weight,
    moments_at_constant_weight,
)
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, sequence
from lib.finite_prompt import QueryRay
from lib.statistics import standard_error

# Place of the name of each head in the right panel, from the smallest sink: the size of the query, and the offset.
PLACES = ((1.75, (32, -10)), (1.25, (-4, 18)), (1.75, (0, -14)), (2.75, (0, 14)))


def numbers(
    ray: QueryRay, curves: ExactOutputs, exact: ExactOutputs, simulated: SimulatedOutputs, length: int
) -> Numbers:
    """Return curves and simulated points, and the claims that they agree."""
    groups = []
    for row, sink in enumerate(curves.sinks):
        exact_moments = {"mean": curves.mean[row], "error": curves.error[row]}
        groups.append({"kind": "exact", "sink": sink if row else -1.0, **_weights(curves, row), **exact_moments})
    line, offset = np.asarray(ray.line), np.asarray(ray.params.value @ ray.gaussian.mean)
    for row, sink in enumerate(exact.sinks[1:], start=1):
        # the output less the parts of the mean token and of the sink's value, which exact weights give
        weight = exact.sink_weight[row][:, None]
        plain = simulated.outputs[:, row - 1] - (1 - weight) * offset - weight * SINK_VALUE
        along, errors = plain @ (line / (line @ line)), simulated.errors[:, row - 1]
        drawn = {
            "mean": along.mean(axis=0),
            "mean_std_error": standard_error(along),
            "error": errors.mean(axis=0),
            "error_std_error": standard_error(errors),
        }
        groups.append({"kind": "simulated", "sink": sink, **_weights(exact, row), **drawn})
    columns = {
        "kind": Column("`exact` or `simulated`, of the mean output and the error", "name"),
        "sink": Column("Score $b$ of the sink above the mean score; -1 is no sink"),
        "tau": Column("Size of the query, $τ$"),
        "sink_weight": Column("Exact mean weight of the sink, $𝔼p_0$", absolute=1e-11),
        "participation": Column("Exact $P = 𝔼 Σp²$ over tokens"),
        "mean": Column("Mean output along the line, $τ (1 - 𝔼p_0 - P)$", std_error="mean_std_error", absolute=1e-11),
        "mean_std_error": Column("Standard error of mean", moves_with="mean"),
        "error": Estimate("Mean square error of the output"),
    }
    claim = Claims("sinks", source="derived here", box="sink-output")
    weight, average = exact.sink_weight[1:, :, None], average_sink_weight(exact, length)[..., None]
    without, p = exact.participation[0][:, None], exact.participation[1:, :, None]

    def deviations(sink_weight, factor):
        expected = (1 - sink_weight) * offset + sink_weight * SINK_VALUE + factor * exact.taus[:, None] * line
        return (simulated.outputs.mean(axis=0) - expected) / standard_error(simulated.outputs)

    claim.agree(
        "mean-output",
        "The mean output of simulated prompts with a sink and $(1 - 𝔼p_0)Vm + (1 - 𝔼p_0 - P)VΓUz + 𝔼p_0·v_0$ agree",
        deviations(weight, 1 - weight - p),
        rejects=(
            "the output of a prompt without a sink, times the weight that an average sum leaves to the tokens",
            deviations(average, (1 - average) * (1 - without)),
        ),
    )

    def pairs(error, participation):
        drawn = (simulated.errors, error), (simulated.participation, participation)
        return np.asarray([(part.mean(axis=0) - truth) / standard_error(part) for part, truth in drawn])

    claim.agree(
        "error",
        "Errors and participations of simulated prompts with a sink and the exact ones agree",
        pairs(exact.error[1:], exact.participation[1:]),
        rejects=(
            "the weight of the sink is that for an average sum, in every prompt",
            pairs(*moments_at_constant_weight(ray, exact, average[..., 0])),
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw mean output and error, one curve for each sink."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True)
    largest, colours = table["sink"].max(), (ink(), *sequence(len(PLACES) - 1))
    for (sink, own), colour, (at, offset) in zip(table.groupby("sink"), colours, PLACES, strict=True):
        curve, drawn = own[own["kind"] == "exact"], own[own["kind"] == "simulated"]
        name = "no sink" if sink == -1 else f"$b={sink:g}$"
        if sink == largest:
            name = f"sink of score {name}"
        for panel, column in zip(panels, ("mean", "error"), strict=True):
            panel.plot(curve["tau"], curve[column], color=colour, linewidth=2)
            error_bars(panel, drawn["tau"], drawn[column], drawn[f"{column}_std_error"], color=colour, marker="o")
        if sink in (-1, largest):
            place = curve.iloc[(curve["mean"] - 0.55 * curve["mean"].max()).abs().argmin()]
            look = {"xytext": (-8, 2), "ha": "right"} if sink == -1 else {"xytext": (8, -4)}
            label(panels[0], place["tau"], place["mean"], name, colour, **look)
        label(panels[1], at, np.interp(at, curve["tau"], curve["error"]), name, colour, xytext=offset, ha="center")
    panels[0].axline((0, 0), slope=1, color=ink(), linestyle=":", linewidth=1.5)
    label(panels[0], 3.35, 3.35, r"limit $L\,\to\,\infty$, no sink", ink(), xytext=(8, 2))
    top = 1.1 * table.loc[table["kind"] == "exact", "mean"].max()
    panels[0].set(xlim=(0, table["tau"].max()), ylim=(0, top), ylabel="mean output along the line")
    panels[1].set(yscale="log", ylabel="mean square error")
    panels[1].minorticks_off()
    plt.setp(panels, xlabel=r"size of the query, $\tau$")
    return figure


def _weights(at: ExactOutputs, row: int) -> dict:
    return {"tau": at.taus, "sink_weight": at.sink_weight[row], "participation": at.participation[row]}
