"""Parameters are checked by name, type and range before a kernel starts, whether from cell, profile or option."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

import companion
from companion.build import execution
from companion.build.run_spec import RunSpec
from companion.io.errors import UserError
from companion.project.notebooks import Notebook
from companion.project.parameters import check_profiles, parameters_of, parse_assignment, resolve, rule
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
SEED_MEANS = "Seed of all random numbers."
LONG = 12345678901234567890

# wrong assignments; the words that the error must contain
WRONG = {
    "misspelt": ("sede: 1", ["'sede'", "Did you mean 'seed'?", "Known: lengths, repeats, seed."]),
    "True for an integer": ("seed: True", ["`seed`", "integer", "Got True", SEED_MEANS]),
    "quoted integer": ('seed: "1"', ["`seed`", "integer", "Got '1'", SEED_MEANS]),
    "fraction for an integer": ("repeats: 1.5", ["`repeats`", "integer", "Got 1.5", "Number of independent means"]),
    "string for a list": ("lengths: ten", ["`lengths`", "list", "Got 'ten'", "Numbers of terms in a mean, L."]),
    "wrong entry of a list": ("lengths: [10, ten]", ["`lengths[1]`", "integer", "Numbers of terms in a mean, L."]),
    "seed of twenty digits": (f"seed: {LONG}", ["`seed`", "less than 4294967296", f"Got {LONG}", SEED_MEANS]),
    "below the range": ("seed: -1", ["`seed`", "greater than or equal to 0", "Got -1", SEED_MEANS]),
    "empty list": ("lengths: []", ["`lengths`", "at least 1 item", "Numbers of terms in a mean, L."]),
    "infinite": ("repeats: .inf", ["`repeats`", "Got inf"]),
}


@pytest.mark.parametrize("name", Project(ROOT).notebooks())
def test_parameters_of_this_book_are_valid_in_every_profile_and_bounded(name):
    """A run refuses a seed of twenty digits before the kernel starts. Profiles name existing notebooks."""
    project = Project(ROOT)
    check_profiles(project)
    assert {"laptop", "smoke", "full"} <= set(project.profile_names())
    for profile in project.profile_names():
        RunSpec(name, profile).check(project)
    fields = parameters_of(project, name).model_fields
    rules = {parameter: rule(field) for parameter, field in fields.items() if "whole number" in rule(field)}
    assert [parameter for parameter, words in rules.items() if "≤" not in words and "<" not in words] == []


@pytest.fixture
def toy(clone, monkeypatch):
    """Return the clone, as the current folder; a test fails if it starts a kernel."""
    monkeypatch.chdir(clone.root)
    monkeypatch.setattr(execution, "_execute", lambda *_, **__: pytest.fail("a kernel would have been started"))
    return clone


def assert_refused(toy, arguments, words):
    """Check that a command has exit code 2 and a message with these words, and writes nothing."""
    before, finished = toy.tree(), toy.companion(*arguments)
    assert finished.returncode == 2, finished.stdout
    assert [word for word in words if word not in " ".join(finished.stderr.split())] == []
    assert toy.tree() == before


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameter_is_refused(toy, case):
    """On the command line and in a profile; the message has the rule and the meaning."""
    assignment, words = WRONG[case]
    assert_refused(toy, ["run", "toy", "-p", assignment.replace(": ", "=", 1)], words)
    toy.write("profiles/smoke.yml", f"toy:\n  {assignment}\n")
    assert_refused(toy, ["build", "--profile", "smoke"], words)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("run tooy", ["notebook 'tooy'", "Did you mean 'toy'?"]),
        ("run toy --profile smok", ["profile 'smok'", "Did you mean 'smoke'?", "full, laptop, smoke"]),
        ("build --profile smok", ["profile 'smok'", "Did you mean 'smoke'?"]),
        ("list --profile smok", ["profile 'smok'", "Did you mean 'smoke'?"]),
        ("build --target sight", ["--target", "'sight'"]),
        ("run toy -p seed", ["name=value", "'seed'"]),
        ("run toy -p seed=[1", ["'seed'", "not YAML"]),
        ("run -p seed 1 toy", ["one word, name=value, for example -p seed=1. Got 'seed'."]),
        ("sweep toy -p seed 1:3", ["one word, name=value, for example -p seed=1. Got 'seed'."]),
        ("run toy measures", ["`companion run` takes one notebook. Got toy measures."]),
    ],
)
def test_wrong_command_is_refused(toy, typed, words):
    """The message suggests the right name or form."""
    assert_refused(toy, typed.split(), words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        *((f"tooy:{values}\n", "there is no notebook 'tooy'.*Did you mean 'toy'") for values in (" {seed: 1}", "")),
        *((content, "profiles/smoke.yml") for content in ("- toy\n", "toy: 1\n", "toy: [seed\n", "3\n")),
    ],
)
def test_profile_that_does_not_map_notebooks_to_parameters_is_refused(toy, content, words):
    toy.write("profiles/smoke.yml", content)
    with pytest.raises(UserError, match=words):
        check_profiles(toy.project)


def test_seed_is_a_non_negative_integer():
    """A chapter may give it another meaning, which keeps its type and range."""

    class Drawn(companion.Parameters):
        seed: companion.Seed
        starts: Annotated[companion.Seed, Field(description="Starts are drawn from it.")]

    assert [rule(field) for field in Drawn.model_fields.values()] == ["a whole number, ≥ 0, < 4294967296"] * 2
    meanings = [field.description for field in Drawn.model_fields.values()]
    assert meanings == ["Seed of all random numbers.", "Starts are drawn from it."]
    assert Drawn(seed=1, starts=0).seed == 1
    for wrong in (-1, 0.5, "1"):
        with pytest.raises(ValidationError):
            Drawn(seed=1, starts=wrong)


def test_scientific_notation_is_a_float_in_a_profile(toy):
    """YAML 1.1 would read `1e-3` as a string."""
    toy.replace(
        "clone/toy/parameters.py", "repeats: Annotated[int, Field(ge=2,", "repeats: Annotated[float, Field(gt=0,"
    )
    toy.write("profiles/smoke.yml", "toy: {repeats: 1e-3}\n")
    assert RunSpec("toy", "smoke").check(toy.project).values["repeats"] == 0.001


@pytest.mark.parametrize(("text", "value"), [("rate=1e-3", 0.001), ("lengths=[10, 100]", [10, 100])])
def test_a_value_on_the_command_line_is_yaml(text, value):
    assert parse_assignment(text)[1] == value


def test_command_line_overrides_profile_and_profile_overrides_cell(toy):
    toy.write("profiles/smoke.yml", "toy: {seed: 1, repeats: 50}\n")
    values = resolve(toy.project, Notebook.named(toy.project, "toy"), "smoke", {"seed": 2})
    assert values == {"seed": 2, "lengths": [10, 100, 1000], "repeats": 50}


def assert_check_fails(toy, words):
    """Check that the parameters of toy are refused with a message that matches `words`."""
    with pytest.raises(UserError, match=words):
        RunSpec("toy").check(toy.project)


# Statements that a profile could not override.
NOT_PLAIN = [
    "seed = repeats = 500\nlengths = [10]\n",
    "seed, repeats = 0, 500\nlengths = [10]\n",
    "seed: int = 0\nrepeats = 500\nlengths = [10]\n",
    "seed = 0\nseed += 1\nrepeats = 500\nlengths = [10]\n",
    "seed = 0\nrepeats = int(500)\nlengths = [10]\n",
    "seed = 0\nrepeats = 5 * 100\nlengths = [10]\n",
    "seed = 0\nrepeats = seed\nlengths = [10]\n",
    "import os\nseed = 0\nrepeats = 500\nlengths = [10]\n",
]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        *((source, r"toy\.ipynb") for source in NOT_PLAIN),
        ("seed = 0\nlengths = [10]\n", r"Missing in the cell: \['repeats'\]"),
        ("seed = 0\nlengths = [10]\nrepeats = 5\ntau = 1\n", r"unknown to the chapter: \['tau'\]"),
    ],
)
def test_parameters_cell_assigns_plain_values_to_the_parameters_of_the_class(toy, source, words):
    toy.rewrite_cell("# parameters", source)
    assert_check_fails(toy, words)


@pytest.mark.parametrize(
    ("tags", "words"),
    [([], r"tagged `parameters`.*Missing in the cell: \['lengths"), (["parameters"], "exactly one cell.*Got 2")],
)
def test_exactly_one_cell_has_the_parameters_tag(toy, tags, words):
    """Without the tag, papermill silently keeps the notebook's values."""
    toy.rewrite_cell("# parameters", "# parameters\nseed = 0\n", tags=tags)
    toy.rewrite_cell("# setup", "x = 1\n", tags=tags)
    assert_check_fails(toy, words)


@pytest.mark.parametrize(
    "text",
    [None, "", "Parameters = 1\n", "class Parameters: ...\n", "from pydantic import BaseModel as Parameters\n"],
    ids=["no file", "empty", "no class", "another base class", "pydantic"],
)
def test_chapter_without_parameters_is_refused(toy, text):
    """The error names the missing class and its module."""
    (toy.root / "clone/toy/parameters.py").unlink()
    if text is not None:
        toy.write("clone/toy/parameters.py", text)
    assert_check_fails(toy, r"class `Parameters\(companion\.Parameters\)` in clone/toy/parameters\.py")


def test_message_of_a_rule_about_several_parameters_is_shown(toy):
    """It belongs to no single parameter, so no meaning is shown."""
    text = (toy.root / "clone/toy/parameters.py").read_text(encoding="utf-8")
    text += "\n    @model_validator(mode='after')\n    def _both(self):\n        raise ValueError('too much of both')\n"
    toy.write("clone/toy/parameters.py", text.replace("import Field", "import Field, model_validator"))
    assert_check_fails(toy, r"Invalid parameters of 'toy'\.\n  Value error, too much of both\.")


def test_parameters_of_a_notebook_are_listed(toy):
    """Each with its default, meaning, range and values in profiles; nothing runs, and the list says so."""
    toy.write("profiles/smoke.yml", "{}\n")
    toy.write("profiles/full.yml", "toy: {repeats: 321}\n")
    output = toy.succeed("run", "toy", "--parameters")
    defaults = Notebook.named(toy.project, "toy").defaults
    lines = output.splitlines()
    assert [name for name, value in defaults.items() if f"{name} = {json.dumps(value)}" not in lines] == []
    assert f"  {SEED_MEANS} (a whole number, ≥ 0, < 4294967296)" in lines
    assert [line for line in lines if line.startswith(("  smoke:", "  full:"))] == ["  full: 321"]
    assert not toy.project.generated.exists()


RUN_AND_PRINT_MODULES = """
import json, sys
from companion.__main__ import main
sys.argv = ["companion", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code or 0, *sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "gaussian_limit", "--parameters"], 0, "seed = 0"),
        (["run", "gaussian_limit", "-p", "typo=1"], 2, "'typo'"),
        (["run", "gaussian_limit", "-p", "seed=-1"], 2, "seed"),
        (["run", "gausian_limit"], 2, "'gaussian_limit'"),
    ],
    ids=["listed", "unknown", "out of range", "no such notebook"],
)
def test_parameters_are_checked_without_slow_imports(arguments, code, words):
    """In the real book, neither its library nor the packages that draw and run are imported."""
    command = [sys.executable, "-c", RUN_AND_PRINT_MODULES, *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    exit_code, *modules = json.loads(run.stdout.splitlines()[-1])
    assert exit_code == code, run.stderr
    assert words in run.stdout + run.stderr
    assert "chapters.gaussian_limit.parameters" in modules or "seed" not in words
    assert {"jax", "numpy", "pandas", "matplotlib", "papermill", "lib", "sphinx"}.isdisjoint(modules)
