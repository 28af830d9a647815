"""The commands of the exercises name existing parameters with allowed values, and run at smoke size.

Commands that change only the seed or a number of samples are not run: the smoke build of the book, which the tests of
the site read, runs the same statements.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from companion.build.run_spec import RunSpec
from companion.project.notebooks import Notebook
from companion.project.parameters import parse_assignment
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
# Parameters that are a seed or a number of samples, by notebook.
SAMPLES = {
    "mixture_discrimination": {"flow_starts"},
    "real_heads": {"prompts"},
    "second_minima": {"starts"},
    "single_location_training": {"seed"},
}
COMMAND = re.compile(r"^companion run .*$", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """A command of the section "Try it": the page that shows it, and the run that it starts."""

    page: str
    notebook: str
    figure: str | None
    assignments: tuple[str, ...]

    @property
    def overrides(self):
        return dict(map(parse_assignment, self.assignments))

    @property
    def changes_only_samples(self):
        return self.overrides.keys() <= SAMPLES.get(self.notebook, set())


def read(page, command):
    """Parse `companion run NOTEBOOK [--figure FIGURE] [-p NAME=VALUE]...`."""
    words = shlex.split(command)[2:]
    notebook, figure, assignments = words.pop(0), None, []
    while words:
        option, value = words.pop(0), words.pop(0)
        if option == "--figure":
            figure = value
        else:
            assert option == "-p", f"{page}: an exercise takes --figure and -p. Got {option!r} in {command!r}."
            assignments.append(value)
    return Exercise(page, notebook, figure, tuple(assignments))


def exercises():
    for page in PROJECT.notebooks():
        cells = (cell["source"] for cell in Notebook.named(PROJECT, page).cells if cell["cell_type"] == "markdown")
        section = "\n".join(cells).partition("\n## Try it\n")[2]
        yield from (read(page, command) for command in COMMAND.findall(section.replace("\\\n", " ")))


EXERCISES = list(exercises())


def test_chapters_have_exercises_with_commands():
    assert {exercise.page for exercise in EXERCISES} >= {"measures", "gaussian_limit"}


def named(exercises):
    return pytest.mark.parametrize(
        "exercise", exercises, ids=lambda exercise: f"{exercise.page}-{'-'.join(exercise.assignments)}"
    )


@named(EXERCISES)
def test_a_command_is_allowed(exercise):
    RunSpec(exercise.notebook, parameters=exercise.overrides, figure=exercise.figure).check(PROJECT)


@named([exercise for exercise in EXERCISES if not exercise.changes_only_samples])
def test_a_command_runs_at_smoke_size(run_cells, exercise):
    run = run_cells(exercise.notebook, only=exercise.figure, **exercise.overrides)
    assert run.tables if exercise.figure is None else exercise.figure in run.tables
