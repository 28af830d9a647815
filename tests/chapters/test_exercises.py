"""The commands of the exercises name existing parameters with allowed values, and (daily) run at smoke size.

Numbers of samples are those of the smoke profile. Commands that change nothing else than them and the seed are not
run: `test_notebooks.py` runs the same statements.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from chapters.softmax_advantage import crossings
from companion.build.run_spec import RunSpec
from companion.project.notebooks import Notebook
from companion.project.parameters import parse_assignment
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
# Parameters that are a seed or a number of samples, nodes or points of a curve, by notebook.
SAMPLES = {
    "exact_finite_prompt": {"tokens", "prompts"},
    "finite_samples": {"points"},
    "gaussian_limit": {"prompts"},
    "icl_infinite": {"points"},
    "mixtures": {"flow_starts"},
    "published_experiment": {"sgd_runs"},
    "real_heads": {"prompts"},
    "second_minima": {"starts"},
    "sharp_rates": {"fixed_ratios"},
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
    def overrides_at_smoke_size(self):
        samples = SAMPLES.get(self.notebook, set())
        return {name: value for name, value in self.overrides.items() if name not in samples}


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


@pytest.fixture
def known_crossings(run_chapter, monkeypatch):
    """Take the crossings of `softmax_advantage`, which no parameter changes and which take 15 s, from the build."""
    claims = run_chapter("softmax_advantage").claims
    both = [claims[f"softmax-advantage-half-crossing-{length}"] for length in crossings.LENGTHS]
    longer = claims["softmax-advantage-half-crossing-longer"].measured
    softplus, lattice, posterior = np.array(
        [[claim.measured, claim.expected, claim.alternative.measured] for claim in both]
    ).T
    known = crossings.Crossings(softplus, lattice, relu=softplus, posterior_slope=posterior, longer=longer)
    monkeypatch.setattr(crossings, "solve_crossings", lambda: known)


@pytest.mark.daily
@pytest.mark.usefixtures("known_crossings")
@named([exercise for exercise in EXERCISES if exercise.overrides_at_smoke_size])
def test_a_command_runs_at_smoke_size(run_cells, exercise):
    run = run_cells(exercise.notebook, only=exercise.figure, **exercise.overrides_at_smoke_size)
    assert run.tables if exercise.figure is None else exercise.figure in run.tables
