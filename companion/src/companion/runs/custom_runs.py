"""Custom runs, with changed parameters or of one figure: their parameters, claims and provenance."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from companion.build.run_spec import RunSpec
from companion.figures import store
from companion.figures.record import Claim, FigureRecord, NotebookClaims
from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.paths import Build, Project


@dataclass(frozen=True)
class Run:
    """A custom run: the name of its folder in `_build/runs/`, and its specification, which the folder contains."""

    project: Project
    name: str
    spec: RunSpec

    @property
    def notebook(self) -> str:
        """The name of the notebook that was run."""
        return self.spec.notebook

    @property
    def build(self) -> Build:
        """The files of the run."""
        return self.project.custom_build(self.name)

    @cached_property
    def records(self) -> dict[str, FigureRecord]:
        """The records of its figures whose files are intact, in the order of the notebook."""
        folder = self.build.figures / self.notebook
        names = [name for name in store.names_in(folder) if not store.faults(folder, name)]
        if self.notebook in self.project.notebooks():
            order = Notebook.named(self.project, self.notebook).figures
            names.sort(key=lambda name: order.index(name) if name in order else len(order))
        return {name: store.read_record(folder, name) for name in names}

    @cached_property
    def own_claims(self) -> NotebookClaims | None:
        """The claims of the notebook that belong to no figure; None if it has none."""
        return store.read_claims(self.build.figures / self.notebook)

    @property
    def claims(self) -> list[Claim]:
        """The claims of all its figures, and those of the notebook."""
        own = [self.own_claims] if self.own_claims else []
        return [claim for record in (*self.records.values(), *own) for claim in record.claims]

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """The parameters that differ from those of the published figures, as pairs (published, this run)."""
        published = published_parameters(self.project, self.notebook)
        values = next((record.parameters for record in self.records.values()), dict(self.spec.parameters))
        return {
            name: (published.get(name), value) for name, value in values.items() if published.get(name, ...) != value
        }

    @property
    def origin(self) -> dict[str, Any] | None:
        """The provenance of the run: start, duration, device and versions."""
        return provenance.read(self.build.provenance / f"{self.notebook}.json")

    def summary(self) -> dict[str, Any]:
        """Return what `companion list --runs` shows; a changed parameter is a pair (published, this run)."""
        origin = self.origin or {}
        return {
            "name": self.name,
            "notebook": self.notebook,
            "changed": self.changed,
            "started": origin.get("started"),
            "seconds": origin.get("seconds"),
            "claims": len(self.claims),
            "hold": sum(claim.holds for claim in self.claims),
            "page": str(self.build.page),
        }


def all_runs(project: Project) -> list[Run]:
    """Return the custom runs that have results, the newest last."""
    runs = []
    for name in sorted(path.name for path in project.runs.iterdir()) if project.runs.is_dir() else []:
        spec = RunSpec.read(project.custom_build(name))
        if spec is None:
            continue
        run = Run(project, name, spec)
        if run.records or (run.build.executed / f"{run.notebook}.ipynb").is_file():  # a page has no figures
            runs.append(run)
    return sorted(runs, key=lambda run: (run.origin or {}).get("started", ""))


def published_parameters(project: Project, notebook: str) -> Mapping[str, Any]:
    """Return the parameters of a notebook's published figures; its defaults if none is published."""
    folder = project.published / notebook
    for figure in store.names_in(folder):
        if not store.faults(folder, figure):
            return store.read_record(folder, figure).parameters
    return Notebook.named(project, notebook).defaults if notebook in project.notebooks() else {}
