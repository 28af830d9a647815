"""Sweeps: run notebooks at every combination of several values of their parameters, and collect the claims.

Each point is a custom run in a separate process, stored in `_build/runs/`: a stopped sweep resumes, and a wider sweep
computes only its new points.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from companion.build import cache_keys
from companion.build.run_spec import CheckedRun, RunSpec
from companion.figures import store, table_io
from companion.figures.record import Claim, FigureRecord
from companion.figures.style import INK, PALETTE, WIDE, style
from companion.io import atomic
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project
from companion.runs.run_custom import run_in_processes

# Larger deviations of a claim, in tolerances, are drawn at this one.
FARTHEST = 3.0


@dataclass(frozen=True)
class Sweep:
    """One notebook and its runs, one per point; the parameters of their specifications are the point."""

    project: Project
    name: str
    profile: str
    runs: Sequence[CheckedRun]

    @property
    def swept(self) -> list[str]:
        """The names of the parameters that vary."""
        return list(self.runs[0].spec.parameters)

    @property
    def folder(self) -> Path:
        """The folder of the tables and the picture: `_build/sweeps/<notebook>-<parameters>`."""
        profile = [] if self.profile == DEFAULT_PROFILE else [self.profile]
        return self.project.sweeps / "-".join([self.name, *self.swept, *profile])

    def is_cached(self, run: CheckedRun) -> bool:
        """Return whether the result of a run is fresh."""
        return cache_keys.intact(self.project, cache_keys.custom_stamp(self.project, run))


def plan(project: Project, names: Sequence[str], assignments: Sequence[str], profile: str) -> list[Sweep]:
    """Return the sweeps of `names`, or of every notebook that has these parameters. All values are checked."""
    values = dict(map(parse_values, assignments))
    if not values:
        raise UserError("A sweep needs values of a parameter, for example -p seed=1:10.")
    for name in names:
        project.require_notebook(name)
    chosen = names or [
        name for name in project.notebooks() if set(values) <= set(Notebook.named(project, name).defaults)
    ]
    if not chosen:
        raise UserError(f"No notebook has the parameters {', '.join(values)}.")
    points = [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
    return [
        Sweep(project, name, profile, [RunSpec(name, profile, point).check(project) for point in points])
        for name in chosen
    ]


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Return name and values of `seed=1:10`, both ends included, or `length=10,100,1000`, which is read as YAML."""
    name, _, value = text.partition("=")
    start, colon, stop = value.partition(":")
    if colon and all(end.strip().lstrip("-").isdigit() for end in (start, stop)):
        values = list(range(int(start), int(stop) + 1))
    else:
        name, values = parameters.parse_assignment(f"{name}=[{value}]" if "=" in text else text)
    if not values:
        raise UserError(f"A sweep needs at least one value, as in -p seed=1:10 or -p length=10,100. Got {text!r}.")
    return name.strip(), values


def run(project: Project, specs: Sequence[RunSpec], cores: int) -> Iterator[tuple[RunSpec, str | None]]:
    """Make these runs, `cores` at a time; yield each as it ends, with the error message if it has no results."""
    runs = {str(index): arguments(spec) for index, spec in enumerate(specs)}
    for index, error in run_in_processes(runs, cores, project.root):
        yield specs[int(index)], error


def arguments(spec: RunSpec) -> list[str]:
    """Return the arguments of `companion run` for a custom run."""
    options = [word for name, value in spec.parameters.items() for word in ("-p", f"{name}={json.dumps(value)}")]
    return [spec.notebook, *options, "--profile", spec.profile]


def write(sweep: Sweep) -> pd.DataFrame:
    """Write `claims.csv`, `claims.svg`, `claims.png` and `<figure>.csv` with all points; return the claims.

    The claims have one row per point and claim. `figure` is empty for a claim of the notebook that belongs to no
    figure. `deviation` is in tolerances: 0 if the measured value is the expected one, at most 1 if the claim holds, and
    negative on the safe side of a bound.
    """
    rows: list[dict[str, Any]] = []
    tables: dict[str, list[pd.DataFrame]] = {}
    for run in filter(sweep.is_cached, sweep.runs):
        build, point = run.build(sweep.project), _shown(run.spec.parameters)
        for record in store.records_in(build.figures / sweep.name):
            rows += [
                {**point, "figure": record.figure, "claim": claim.id, **_outcome(claim)} for claim in record.claims
            ]
            table = build.tables / sweep.name / f"{record.figure}{store.DATA}"
            if isinstance(record, FigureRecord) and not record.is_schematic:
                tables.setdefault(record.figure, []).append(_at(point, table_io.read_csv(table, record.columns)))
    outcomes = pd.DataFrame(rows)
    if outcomes.empty:
        return outcomes
    sweep.folder.mkdir(parents=True, exist_ok=True)
    outcomes.to_csv(sweep.folder / "claims.csv", index=False)
    with style():
        picture = draw(sweep, outcomes)
        for kind in ("svg", "png"):
            with atomic.replacing(sweep.folder / f"claims.{kind}") as file:
                picture.savefig(file, format=kind, dpi=144)
        plt.close(picture)
    for figure, frames in tables.items():
        table_io.write_csv(pd.concat(frames), sweep.folder / f"{figure}{store.DATA}", table_io.EXACT_DIGITS)
    return outcomes


def _shown(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point with its lists as text, which a table can contain."""
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in point.items()}


def _outcome(claim: Claim) -> dict[str, Any]:
    return {
        "measured": claim.measured,
        "relation": claim.relation,
        "expected": claim.expected,
        "tolerance": claim.tolerance,
        "deviation": claim.in_tolerances(claim.measured),
        "holds": not claim.is_broken,
    }


def _at(point: Mapping[str, Any], frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the point in the first columns; the name of another column with this name gets a `*`."""
    for position, (name, value) in enumerate(point.items()):
        frame.insert(position, f"{name}*" if name in frame else name, value)
    return frame


def draw(sweep: Sweep, outcomes: pd.DataFrame) -> Figure:
    """Draw the deviation of claims in tolerances: one row per claim, one dot per point.

    Claims that fail have a different colour.
    """
    figure, axes = plt.subplots(figsize=(WIDE, 1.2 + 0.32 * outcomes["claim"].nunique()))
    colours = [PALETTE[0 if holds else 1] for holds in outcomes["holds"]]
    axes.scatter(outcomes["deviation"].clip(-1, FARTHEST), outcomes["claim"], c=colours, alpha=0.6)
    axes.invert_yaxis()
    axes.axvline(1, color=INK, linewidth=1)
    axes.annotate(
        "a claim holds up to here", (1, 1), (4, 3), xycoords=("data", "axes fraction"), textcoords="offset points"
    )
    axes.set(xlim=(-1.1, FARTHEST + 0.1), xlabel="deviation, in tolerances of the claim")
    holding = f"{outcomes['holds'].sum()} of {len(outcomes)} claims hold"
    axes.set_title(f"{sweep.name}: {holding}, over {', '.join(sweep.swept)}", pad=24)
    return figure
