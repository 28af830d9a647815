"""Parameters are checked by name, type and range before a kernel starts, whether from cell, profile or option."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, ValidationError
from typer.testing import CliRunner

import companion
from companion import cli
from companion.build import execution
from companion.build.run_spec import RunSpec
from companion.io.errors import UserError
from companion.project.notebooks import Notebook
from companion.project.parameters import check, check_profiles, parameters_of, parse_assignment, resolve, rule
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
SEED_MEANS = "Seed of all random numbers."

# wrong assignments; the words that the error must contain
WRONG = {
    "misspelt": ("sede: 1", ["'sede'", "Did you mean 'seed'?", "Known: lengths, repeats, seed."]),
    "True for an integer": ("seed: True", ["`seed`", "integer", "Got True", SEED_MEANS]),
    "quoted integer": ('seed: "1"', ["`seed`", "integer", "Got '1'", SEED_MEANS]),
    "fraction for an integer": ("repeats: 1.5", ["`repeats`", "integer", "Got 1.5", "Number of independent means"]),
    "string for a list": ("lengths: ten", ["`lengths`", "list", "Got 'ten'", "Numbers of terms in a mean, L."]),
    "wrong entry of a list": ("lengths: [10, ten]", ["`lengths[1]`", "integer", "Numbers of terms in a mean, L."]),
    "seed of twenty digits": (
        "seed: 12345678901234567890",
        ["`seed`", "less than 4294967296", "Got 12345678901234567890", SEED_MEANS],
    ),
    "below the range": ("seed: -1", ["`seed`", "greater than or equal to 0", "Got -1", SEED_MEANS]),
    "empty list": ("lengths: []", ["`lengths`", "at least 1 item", "Numbers of terms in a mean, L."]),
    "infinite": ("repeats: .inf", ["`repeats`", "Got inf"]),
}


# numbers that no array can hold
TOO_LONG = [2**63, -(2**63) - 1, 10**19 + 7, 10**400]


@pytest.mark.parametrize("number", TOO_LONG, ids=lambda number: f"{len(str(abs(number)))} digits")
@pytest.mark.parametrize("in_a_list", [False, True])
def test_a_whole_number_that_no_array_can_hold_is_refused(number, in_a_list):
    """Also where a parameter has no declared bound."""

    class Unbounded(companion.Parameters):
        count: int
        counts: list[int]

    values = {"count": 1, "counts": [1, number]} if in_a_list else {"count": number, "counts": [1]}
    assert Unbounded(count=2**63 - 1, counts=[-(2**63)]).count == 2**63 - 1
    with pytest.raises(ValidationError, match="at most 64 bits"):
        Unbounded(**values)


@pytest.mark.parametrize("name", Project(ROOT).notebooks())
def test_every_whole_number_of_this_book_has_a_largest_value(name):
    """A run refuses a seed of twenty digits before the kernel starts."""
    project = Project(ROOT)
    rules = {parameter: rule(field) for parameter, field in parameters_of(project, name).model_fields.items()}
    unbounded = [
        parameter
        for parameter, words in rules.items()
        if "whole number" in words and "≤" not in words and "<" not in words
    ]
    assert unbounded == []
    if "seed" in rules:
        notebook, seed = Notebook.named(project, name), 12345678901234567890
        with pytest.raises(UserError, match=rf"`seed`: input should be less than 4294967296\. Got {seed}"):
            check(project, notebook, resolve(project, notebook, "laptop", {"seed": seed}))


@pytest.fixture
def toy(clone, monkeypatch):
    """Return the clone, as the current folder; a test fails if it starts a kernel."""
    monkeypatch.chdir(clone.root)
    monkeypatch.setattr(execution, "_execute", lambda *_, **__: pytest.fail("a kernel would have been started"))
    return clone


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(cli.app, list(arguments))


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameter_on_the_command_line_is_refused(toy, case):
    """Exit code 2; the message has the rule and the meaning; nothing is written."""
    (assignment, words), before = WRONG[case], toy.tree()
    result = invoke("run", "toy", "-p", assignment.replace(": ", "=", 1))
    assert result.exit_code == 2, result.output
    assert [word for word in words if word not in result.output] == []
    assert toy.tree() == before


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameter_in_a_profile_is_refused(toy, case):
    """A build refuses it in the same way."""
    assignment, words = WRONG[case]
    (toy.root / "profiles/smoke.yml").write_text(f"toy:\n  {assignment}\n", encoding="utf-8")
    before = toy.tree()
    result = invoke("build", "--profile", "smoke")
    assert result.exit_code == 2, (result.output, result.exception)
    assert [word for word in words if word not in result.output] == []
    assert toy.tree() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "tooy"), ["notebook 'tooy'", "Did you mean 'toy'?"]),
        (("run", "toy", "--profile", "smok"), ["profile 'smok'", "Did you mean 'smoke'?", "full, laptop, smoke"]),
        (("build", "--profile", "smok"), ["profile 'smok'", "Did you mean 'smoke'?"]),
        (("list", "--profile", "smok"), ["profile 'smok'", "Did you mean 'smoke'?"]),
        (("build", "--target", "sight"), ["--target", "'sight'"]),
        (("run", "toy", "-p", "seed"), ["name=value", "'seed'"]),
        (("run", "toy", "-p", "seed=[1"), ["'seed'", "not YAML"]),
    ],
    ids=" ".join,
)
def test_unknown_name_is_refused(toy, arguments, words):
    """Exit code 2; the message suggests the right name; nothing is written."""
    before = toy.tree()
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert [word for word in words if word not in result.output] == []
    assert toy.tree() == before


@pytest.mark.parametrize("content", ["tooy:\n  seed: 1\n", "tooy:\n"])
def test_profile_of_an_unknown_notebook_is_refused(toy, content):
    """The error suggests the name of an existing notebook."""
    (toy.root / "profiles/full.yml").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"profiles/full.yml.*'tooy'.*Did you mean 'toy'"):
        check_profiles(toy.project)


@pytest.mark.parametrize("content", ["- toy\n", "toy: 1\n", "toy: [seed\n", "3\n"])
def test_profile_that_is_not_a_mapping_is_refused(toy, content):
    """Any other content of a profile is a user error."""
    (toy.root / "profiles/smoke.yml").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"profiles/smoke.yml"):
        check_profiles(toy.project)


RATE = """\
from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    rate: Annotated[float, Field(gt=0, description="A rate.")]
"""


@pytest.fixture
def rate(toy):
    """Give toy one parameter, a float; return a function that resolves and checks it."""
    toy.write("clone/toy/parameters.py", RATE)
    toy.rewrite_cell("# parameters", "# parameters\nrate = 0.5\n")
    notebook = Notebook.named(toy.project, "toy")

    def read(profile="laptop", overrides=None):
        return check(toy.project, notebook, resolve(toy.project, notebook, profile, overrides)).model_dump()

    return read


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


def test_scientific_notation_is_a_float_in_a_profile(rate, toy):
    """YAML 1.1 would read `1e-3` as a string."""
    toy.write("profiles/smoke.yml", "toy: {rate: 1e-3}\n")
    assert rate("smoke") == {"rate": 0.001}


@pytest.mark.parametrize(("text", "value"), [("rate=1e-3", 0.001), ("lengths=[10, 100]", [10, 100])])
def test_a_value_on_the_command_line_is_yaml(text, value):
    assert parse_assignment(text)[1] == value


def test_command_line_overrides_profile_and_profile_overrides_cell(toy):
    (toy.root / "profiles/smoke.yml").write_text("toy: {seed: 1, repeats: 50}\n", encoding="utf-8")
    values = resolve(toy.project, Notebook.named(toy.project, "toy"), "smoke", {"seed": 2})
    assert values == {"seed": 2, "lengths": [10, 100, 1000], "repeats": 50}


@pytest.mark.parametrize(
    "source",
    [
        "seed = 0; repeats = 500\nlengths = [10]\n",
        "seed = repeats = 500\nlengths = [10]\n",
        "seed, repeats = 0, 500\nlengths = [10]\n",
        "seed: int = 0\nrepeats = 500\nlengths = [10]\n",
        "seed = 0\nseed += 1\nrepeats = 500\nlengths = [10]\n",
        "seed = 0\nrepeats = int(500)\nlengths = [10]\n",
        "seed = 0\nrepeats = 5 * 100\nlengths = [10]\n",
        "seed = 0\nrepeats = seed\nlengths = [10]\n",
        "import os\nseed = 0\nrepeats = 500\nlengths = [10]\n",
        "seed =\n",
    ],
)
def test_parameters_cell_with_anything_but_plain_assignments_is_refused(clone, source):
    """papermill would misread it, or a profile could not override it."""
    clone.rewrite_cell("# parameters", source)
    with pytest.raises(UserError, match=r"toy\.ipynb"):
        _ = Notebook.named(clone.project, "toy").defaults


@pytest.mark.parametrize(("other", "count"), [([], 0), (["parameters"], 2)])
def test_exactly_one_cell_has_the_parameters_tag(clone, other, count):
    """Without the tag, papermill silently keeps the notebook's values."""
    clone.rewrite_cell("# parameters", "# parameters\nseed = 0\n", tags=other)
    clone.rewrite_cell("# setup", "x = 1\n", tags=other)
    with pytest.raises(UserError, match=rf"exactly one cell tagged `parameters`.*Got {count}"):
        RunSpec("toy").check(clone.project)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("seed = 0\nlengths = [10]\n", r"Missing in the cell: \['repeats'\]"),
        ("seed = 0\nlengths = [10]\nrepeats = 5\ntau = 1\n", r"unknown to the chapter: \['tau'\]"),
    ],
)
def test_cell_and_class_must_have_the_same_parameters(toy, source, words):
    """The error names a parameter that only one of them has."""
    toy.rewrite_cell("# parameters", source)
    notebook = Notebook.named(toy.project, "toy")
    with pytest.raises(UserError, match=words):
        check(toy.project, notebook, notebook.defaults)


@pytest.mark.parametrize(
    "text",
    [None, "", "Parameters = 1\n", "class Parameters: ...\n", "from pydantic import BaseModel as Parameters\n"],
    ids=["no file", "empty", "no class", "another base class", "pydantic"],
)
def test_chapter_without_parameters_is_refused(toy, text):
    """The error names the missing class and its module."""
    toy.write("clone/toy/parameters.py", text) if text is not None else drop(toy, "clone/toy/parameters.py")
    notebook = Notebook.named(toy.project, "toy")
    with pytest.raises(UserError, match=r"class `Parameters\(companion\.Parameters\)` in clone/toy/parameters\.py"):
        check(toy.project, notebook, notebook.defaults)


def drop(clone, path):
    (clone.root / path).unlink()


def test_message_of_a_rule_about_several_parameters_is_shown(toy):
    """It belongs to no single parameter, so no meaning is shown."""
    rule = (
        "\n\n    @model_validator(mode='after')\n    def _both(self):\n        raise ValueError('too much of both')\n"
    )
    text = (toy.root / "clone/toy/parameters.py").read_text(encoding="utf-8")
    toy.write("clone/toy/parameters.py", text.replace("import Field", "import Field, model_validator") + rule)
    notebook = Notebook.named(toy.project, "toy")
    with pytest.raises(UserError, match=r"Invalid parameters of 'toy'\.\n  Value error, too much of both\."):
        check(toy.project, notebook, notebook.defaults)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("run", "toy", "-p", "seed", "1"), "papermill takes two. Write -p seed=1."),
        (("run", "-p", "seed", "1", "toy"), "Write -p seed=1."),
        (("run", "toy", "-p", "seed", "1", "-p", "repeats", "9"), "Write -p seed=1 -p repeats=9."),
        (("sweep", "toy", "-p", "seed", "1:3"), "Write -p seed=1:3."),
        (("run", "toy", "-p", "seed=1", "-p", "repeats=9", "-p", "seed=2"), "'seed' is given twice: 1 and 2."),
        (("sweep", "toy", "-p", "seed=1", "-p", "seed=2:3"), "'seed' is given twice: [1] and [2, 3]."),
        (("run", "toy", "measures"), "`companion run` takes one notebook. Got toy measures."),
    ],
)
def test_misspelt_assignment_is_refused(toy, typed, words):
    """The error shows the right form for papermill's, and both values of a repeated name. Nothing starts."""
    before = toy.tree()
    result = invoke(*typed)
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert toy.tree() == before


def test_parameters_of_a_notebook_are_listed(toy):
    """Each with its default, meaning, range and values in profiles; nothing runs, and the list says so."""
    toy.write("profiles/smoke.yml", "toy: {repeats: 321}\n")
    result = invoke("run", "toy", "--parameters")
    assert result.exit_code == 0, result.output
    defaults = Notebook.named(toy.project, "toy").defaults
    assert [
        name for name, value in defaults.items() if f"\n{name} = {json.dumps(value)}\n" not in f"\n{result.output}"
    ] == []
    assert f"  {SEED_MEANS} (a whole number, ≥ 0, < 4294967296)\n" in result.output
    assert f"\nrepeats = {defaults['repeats']}\n" in result.output
    assert result.output.count("smoke: ") == 1
    assert "  smoke: 321\n" in result.output
    assert "It has not been run here yet." in result.output
    assert not toy.project.generated.exists()


def test_parameters_are_listed_although_a_profile_has_a_stale_entry(toy):
    """The stale entry is named; entries of other profiles are listed."""
    toy.write("profiles/smoke.yml", "toy: {repeat: 321}\n")
    toy.write("profiles/full.yml", "toy: {repeats: 321}\n")
    result = invoke("run", "toy", "--parameters")
    assert result.exit_code == 0, result.output
    assert "  full: 321\n" in result.output
    assert "Warning: profiles/smoke.yml: notebook 'toy' has no parameter 'repeat'. Did you mean" in result.output


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
