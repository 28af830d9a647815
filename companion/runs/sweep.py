"""Sweeps: a notebook run at every combination of several values of its parameters, and what became of its claims.

Each point is a custom run in a separate process, kept under `_build/runs/`: a stopped sweep resumes, and a wider sweep
computes only its new points.
"""

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from companion.build import cache_keys, execution
from companion.figures import store, table_io
from companion.figures.record import ClaimRecord, FigureRecord
from companion.figures.style import INK, PALETTES, style
from companion.io import atomic, processes
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

# How far outside its tolerance a claim is drawn: what is further away is drawn there.
FARTHEST = 3.0
# What `companion run` ends with when its results are there: every claim holds, or some do not.
RAN = (0, 3)


@dataclass(frozen=True)
class Sweep:
    """One notebook and the points at which it is run: values of some of its parameters."""

    project: Project
    name: str
    profile: str
    points: Sequence[Mapping[str, Any]]

    @property
    def folder(self) -> Path:
        """`_build/sweeps/<notebook>-<parameters>`: what the runs came to."""
        profile = [] if self.profile == DEFAULT_PROFILE else [self.profile]
        return self.project.sweeps / "-".join([self.name, *self.points[0], *profile])

    def is_there(self, point: Mapping[str, Any]) -> bool:
        """Return whether the run at `point` is up to date."""
        build = execution.own_build(self.project, self.name, self.profile, point)
        stamp = cache_keys.run_stamp(self.project, build, self.name, self.profile, point)
        return cache_keys.intact(self.project, stamp)

    def records(self, point: Mapping[str, Any]) -> Iterator[tuple[FigureRecord, Path]]:
        """Yield record and unrounded numbers of every figure of the run at `point`."""
        build = execution.own_build(self.project, self.name, self.profile, point)
        for figure in Notebook.named(self.project, self.name).figures:
            table = build.tables / self.name / f"{figure}{store.DATA}"
            yield store.read_record(build.figures / self.name, figure), table


def plan(project: Project, names: Sequence[str], assignments: Sequence[str], profile: str) -> list[Sweep]:
    """The sweeps of `names`, or of every notebook that has these parameters; all values are checked, nothing runs."""
    parameters.require_one_word(assignments, [name for name in names if name not in project.notebooks()])
    values = parameters.given_once(map(parse_values, assignments))
    if not values:
        raise UserError("A sweep needs values to go through, for example -p seed=1:10.")
    for name in names:
        project.require_notebook(name)
    chosen = names or [
        name for name in project.notebooks() if set(values) <= set(Notebook.named(project, name).defaults)
    ]
    if not chosen:
        raise UserError(f"No notebook has the parameters {', '.join(values)}.")
    points = [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
    for name, point in itertools.product(chosen, points):
        notebook = Notebook.named(project, name)
        parameters.check(project, notebook, parameters.resolve(project, notebook, profile, point))
    return [Sweep(project, name, profile, points) for name in chosen]


def parse_values(text: str) -> tuple[str, list[Any]]:
    """`seed=1:10`, both ends included, or `length=10,100,1000`; values are read as YAML."""
    name, _, value = text.partition("=")
    start, colon, stop = value.partition(":")
    if colon and all(end.strip().lstrip("-").isdigit() for end in (start, stop)):
        found = list(range(int(start), int(stop) + 1))
    else:
        name, found = parameters.parse_assignment(f"{name}=[{value}]" if "=" in text else text)
    if not found:
        raise UserError(f"A sweep goes through values, as in -p seed=1:10 or -p length=10,100. Got {text!r}.")
    return name.strip(), found


def run(
    runs: Sequence[tuple[Sweep, Mapping[str, Any]]], cores: int
) -> Iterator[tuple[Sweep, Mapping[str, Any], str | None]]:
    """Make these runs, `cores` at a time; each as it ends, and why it has no results, if it has none."""
    if not runs:
        return
    commands = {str(place): _command(sweep, point) for place, (sweep, point) in enumerate(runs)}
    with closing(processes.run_all(commands, cores, runs[0][0].project.root)) as ended:
        for place, finished in ended:
            yield (*runs[int(place)], None if finished.returncode in RAN else finished.stderr.strip())


def _command(sweep: Sweep, point: Mapping[str, Any]) -> list[str]:
    given = [word for name, value in point.items() for word in ("-p", f"{name}={json.dumps(value)}")]
    return [sys.executable, "-m", "companion", "run", sweep.name, *given, "--profile", sweep.profile]


def claims(sweep: Sweep) -> pd.DataFrame:
    """Return one row per point and claim: the measured value, whether it holds, and its deviation in tolerances.

    `deviation` is 0 where exactly what is expected was measured, at most 1 where the claim holds, below 0 on the safe
    side of a bound.
    """
    rows = [
        {**_shown(point), "figure": record.figure, "claim": claim.id, **_outcome(claim)}
        for point in sweep.points
        if sweep.is_there(point)
        for record, _ in sweep.records(point)
        for claim in record.claims
    ]
    return pd.DataFrame(rows)


def _shown(point: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as text, so that a table can hold them."""
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in point.items()}


def _outcome(claim: ClaimRecord) -> dict[str, Any]:
    return {
        "measured": claim.measured,
        "relation": claim.relation,
        "expected": claim.expected,
        "tolerance": claim.tolerance,
        "deviation": claim.in_tolerances(claim.measured),
        "holds": not claim.is_broken,
    }


def write(sweep: Sweep) -> pd.DataFrame:
    """Leave `claims.csv`, `claims.svg`, `claims.png` and `<figure>.csv`, the tables of all points; the claims."""
    found = claims(sweep)
    if found.empty:
        return found
    sweep.folder.mkdir(parents=True, exist_ok=True)
    found.to_csv(sweep.folder / "claims.csv", index=False)
    with style("light"):
        picture = draw(sweep, found)
        for kind in ("svg", "png"):
            with atomic.replacing(sweep.folder / f"claims.{kind}") as file:
                picture.savefig(file, format=kind, dpi=144)
        plt.close(picture)
    for figure, tables in _tables(sweep).items():
        table_io.write_csv(pd.concat(tables), sweep.folder / f"{figure}{store.DATA}", table_io.EXACT_DIGITS)
    return found


def _tables(sweep: Sweep) -> dict[str, list[pd.DataFrame]]:
    """Return the tables of all points by figure, the point in the first columns; a name that is taken gets a `*`."""
    found: dict[str, list[pd.DataFrame]] = {}
    for point in filter(sweep.is_there, sweep.points):
        for record, table in sweep.records(point):
            frame = table_io.read_csv(table, record.columns)
            for place, (name, value) in enumerate(_shown(point).items()):
                frame.insert(place, f"{name}*" if name in frame else name, value)
            found.setdefault(record.figure, []).append(frame)
    return found


def draw(sweep: Sweep, found: pd.DataFrame) -> Figure:
    """Draw one row per claim and one dot per point.

    The deviation in tolerances; claims that fail have another colour.
    """
    names = list(dict.fromkeys(found["claim"]))
    colours = {True: PALETTES["light"][0], False: PALETTES["light"][1]}
    figure, axes = plt.subplots(figsize=(8, 1.2 + 0.32 * len(names)))
    shown = found.assign(deviation=found["deviation"].clip(-1, FARTHEST))
    sns.stripplot(
        data=shown,
        x="deviation",
        y="claim",
        hue="holds",
        order=names,
        palette=colours,
        jitter=0.25,
        alpha=0.8,
        legend=False,
        ax=axes,
    )
    axes.axvline(1, color=INK["light"], linewidth=1)
    axes.annotate("holds up to here", (1, 1), (4, 3), xycoords=("data", "axes fraction"), textcoords="offset points")
    axes.set(xlim=(-1.1, FARTHEST + 0.1), ylabel="", xlabel="how far off, in units of the claim's tolerance")
    outcomes = f"{found['holds'].sum()} of {len(found)} outcomes hold"
    axes.set_title(f"{sweep.name}: {outcomes}, over {', '.join(sweep.points[0])}", pad=24)
    return figure
