"""The fuzz script draws allowed values, repeats its settings, and reports how a run ended."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from companion.build.run_spec import RunSpec
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import Project

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import fuzz_parameters as fuzz  # noqa: E402

PROJECT = Project(ROOT)


def test_settings_are_allowed_and_change_one_parameter():
    for spec in fuzz.settings(PROJECT, seed=3, number=60):
        notebook = Notebook.named(PROJECT, spec.notebook)
        usual = parameters.resolve(PROJECT, notebook, fuzz.PROFILE)
        ((name, value),) = spec.parameters.items()
        assert value != usual[name]
        parameters.check(PROJECT, notebook, {**usual, name: value})


def test_settings_repeat_and_depend_on_the_seed():
    first, again, other = ([dict(spec.parameters) for spec in fuzz.settings(PROJECT, seed, 20)] for seed in (5, 5, 6))
    assert first == again != other


@pytest.mark.parametrize(
    ("schema", "usual", "inside"),
    [
        ({"type": "integer", "minimum": 3, "maximum": 7}, 4, lambda value: value in range(3, 8)),
        ({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}, 4, lambda value: value == 4),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1000.0}, 1.0, lambda value: 0 < value <= 1000),
        ({"type": "boolean"}, True, lambda value: value in (True, False)),
        ({"enum": ["a", "b"]}, "a", lambda value: value in "ab"),
        (
            {"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "integer", "minimum": 1, "maximum": 9}},
            [1, 2],
            lambda value: len(value) in (2, 3) and all(1 <= item <= 9 for item in value),
        ),
    ],
)
def test_values_are_in_their_range(schema, usual, inside):
    rng = np.random.default_rng(0)
    assert all(inside(fuzz.draw(rng, schema, usual)) for _ in range(200))


def test_an_unknown_type_is_an_error():
    with pytest.raises(UserError, match="Add its type"):
        fuzz.draw(np.random.default_rng(0), {"type": "object"}, {})


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("raise SystemExit(0)", "ok"),
        ("import sys; sys.exit(2)", "refused"),
        ("raise SystemExit('no sentence')", "crash"),
        ("1 / 0", "crash"),
        ("import os; os.abort()", "crash"),
        ("import time; time.sleep(60)", "large"),
        ("b = bytes(3 << 30)", "large"),
    ],
)
def test_ends_of_runs_are_told_apart(monkeypatch, code, kind):
    """A short program takes the place of `companion run`."""
    started = subprocess.Popen

    def replaced(command, **options):
        return started([*command[: len(fuzz.LIMITED) + 1], sys.executable, "-c", code], **options)

    monkeypatch.setattr(fuzz.subprocess, "Popen", replaced)
    result = fuzz.run(PROJECT, RunSpec("measures", "smoke", {"seed": 1}), limit=5, gibibytes=2)
    assert result.kind == kind
    assert result.is_failure == (kind == "crash")
