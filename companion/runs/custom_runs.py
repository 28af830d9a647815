"""Custom runs, with other parameters or of one figure: their parameters, claims and provenance."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from companion.figures import store
from companion.figures.record import ClaimRecord, FigureRecord
from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.paths import Build, Project


@dataclass(frozen=True)
class Run:
    """One such run, by the name of its folder in `_build/runs/`: `<notebook>[-<figure>]-<digest>`."""

    project: Project
    name: str

    @property
    def notebook(self) -> str:
        """Which notebook was run."""
        return self.name.partition("-")[0]

    @property
    def build(self) -> Build:
        """Where its results are."""
        return self.project.own_build(self.name)

    @cached_property
    def records(self) -> dict[str, FigureRecord]:
        """The record of each of its figures that is there with all its files, in the order of the notebook."""
        folder = self.build.figures / self.notebook
        names = [name for name in store.names_in(folder) if not store.faults(folder, name)]
        if self.notebook in self.project.notebooks():
            order = Notebook.named(self.project, self.notebook).figures
            names.sort(key=lambda name: order.index(name) if name in order else len(order))
        return {name: store.read_record(folder, name) for name in names}

    @property
    def claims(self) -> list[ClaimRecord]:
        """Those of all its figures."""
        return [claim for record in self.records.values() for claim in record.claims]

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Which parameters are not those of the published figures: what they are there, and here."""
        published = published_parameters(self.project, self.notebook)
        mine = next((record.parameters for record in self.records.values()), {})
        return {name: (published.get(name), value) for name, value in mine.items() if published.get(name, ...) != value}

    @property
    def origin(self) -> dict[str, Any] | None:
        """When it began, how long it took, on what, with which versions."""
        return provenance.read(self.build.provenance / f"{self.notebook}.json")

    def in_short(self) -> dict[str, Any]:
        """What `companion runs` tells of it; of a changed parameter, what is published and what it is here."""
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
    """The runs that left figures, the newest last."""
    folders = sorted(path.name for path in project.runs.iterdir()) if project.runs.is_dir() else []
    found = [run for run in (Run(project, name) for name in folders) if run.records]
    return sorted(found, key=lambda run: (run.origin or {}).get("started", ""))


def published_parameters(project: Project, notebook: str) -> Mapping[str, Any]:
    """Return the parameters of a notebook's published figures; its defaults if none is published."""
    folder = project.published / notebook
    for figure in store.names_in(folder):
        if not store.faults(folder, figure):
            return store.read_record(folder, figure).parameters
    return Notebook.named(project, notebook).defaults if notebook in project.notebooks() else {}
