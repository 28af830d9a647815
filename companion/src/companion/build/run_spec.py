"""What to run and what a cache key belongs to: `RunSpec`, `CheckedRun`, `Target`.

A command turns its arguments into one `RunSpec`. The run resolves and checks its parameters once, which gives a
`CheckedRun`; everything after that takes the checked run.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from companion.analysis import dependencies
from companion.io import atomic
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Build, Project


@dataclass(frozen=True)
class Target:
    """What a build makes: the numbers of a notebook, or, with `figure`, the picture of one of its figures."""

    notebook: str
    figure: str | None = None

    def __str__(self) -> str:
        return self.notebook if self.figure is None else f"{self.notebook}/{self.figure}"

    @property
    def stem(self) -> str:
        """The path of the target's files without suffix, different for every target.

        Numbers and pictures have separate folders, so no choice of names can make two targets share a file.
        """
        return f"numbers/{self.notebook}" if self.figure is None else f"pictures/{self.notebook}/{self.figure}"


def pictures_of(project: Project, name: str) -> list[Target]:
    """Return the pictures of a notebook, in its order."""
    return [Target(name, figure) for figure in Notebook.named(project, name).figures]


@dataclass(frozen=True)
class RunSpec:
    """The specification of a run, as the user gave it: nothing is checked yet.

    `parameters` override those of the profile. With `figure`, only the cells that this figure needs are run. A run with
    parameters or a figure is a custom run, and `isolated` makes any run one: its results go to a separate folder and
    are never published.
    """

    notebook: str
    profile: str = DEFAULT_PROFILE
    parameters: Mapping[str, Any] = field(default_factory=dict)
    figure: str | None = None
    isolated: bool = False

    def __str__(self) -> str:
        return f"{Target(self.notebook, self.figure)} ({self.profile})"

    @property
    def is_custom(self) -> bool:
        """Whether this is a custom run."""
        return bool(self.parameters) or self.figure is not None or self.isolated

    def check(self, project: Project) -> "CheckedRun":
        """Resolve and check the parameters. Raise a `UserError` if a name or a value is not allowed."""
        notebook = Notebook.named(project, self.notebook)
        if self.figure is not None:
            notebook.require_figure(self.figure)
        resolved = parameters.resolve(project, notebook, self.profile, self.parameters)
        values = parameters.check(project, notebook, resolved).model_dump()
        return CheckedRun(self, resolved, values)

    def write(self, build: Build) -> None:
        """Write the specification into the folder of its results."""
        atomic.write_text(build.run_spec, atomic.dump_json(asdict(self)))

    @classmethod
    def read(cls, build: Build) -> "RunSpec | None":
        """Return the specification in the folder of a custom run; None if there is no valid one."""
        try:
            return cls(**json.loads(build.run_spec.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None


@dataclass(frozen=True)
class CheckedRun:
    """A run specification with its parameters, resolved and checked.

    `resolved` has the defaults, the profile and the overrides as they were written; cache keys contain it. `values` is
    what the class `Parameters` of the chapter made of it, for example with sorted lists; the kernel gets it.
    """

    spec: RunSpec
    resolved: Mapping[str, Any]
    values: Mapping[str, Any]

    def build(self, project: Project) -> Build:
        """Return where the results go: the folder of the profile, or for a custom run one that its values decide."""
        spec = self.spec
        if not spec.is_custom:
            return project.build(spec.profile)
        # the digest contains the names too, because their joined text may be that of another notebook and figure
        content = {"notebook": spec.notebook, "figure": spec.figure, "parameters": self.values}
        digest = dependencies.digest(atomic.dump_json(content).encode())[:8]
        return project.custom_build("-".join([spec.notebook, *([spec.figure] if spec.figure else []), digest]))
