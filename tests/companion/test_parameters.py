"""Parameters are checked by name, type and range before any kernel starts, wherever they come from."""

import importlib.util
import json
import sys
from typing import Annotated

import pytest
from pydantic import Field
from typer.testing import CliRunner

from companion import cli, runner
from companion.mistakes import Mistake
from companion.notebooks import Notebook
from companion.parameters import check, check_profiles, parse_assignment, resolve
from lib.experiments.registry import experiment
from lib.experiments.result import Result

SEED_MEANS = "Every random number follows from it."

# what is wrong, as it is typed; what the answer must say
WRONG = {
    "misspelt": ("sede: 1", ["'sede'", "Did you mean 'seed'?", "Known: lengths, prompts, seed."]),
    "True for an integer": ("seed: True", ["`seed`", "integer", "Got True", SEED_MEANS]),
    "quoted integer": ('seed: "1"', ["`seed`", "integer", "Got '1'", SEED_MEANS]),
    "fraction for an integer": ("prompts: 1.5", ["`prompts`", "integer", "Got 1.5", "prompts a length"]),
    "string for a list": ("lengths: ten", ["`lengths`", "list", "Got 'ten'", "Prompt lengths L"]),
    "wrong entry of a list": ("lengths: [10, ten]", ["`lengths[1]`", "integer", "Prompt lengths L"]),
    "below the range": ("seed: -1", ["`seed`", "greater than or equal to 0", "Got -1", SEED_MEANS]),
    "empty list": ("lengths: []", ["`lengths`", "at least 1 item", "Prompt lengths L"]),
    "infinite": ("prompts: .inf", ["`prompts`", "Got inf"]),
}


@pytest.fixture
def toy(clone, monkeypatch):
    """The clone as the working folder, its experiment importable, and a runner that would be noticed."""
    spec = importlib.util.spec_from_file_location("lib.experiments.toy", clone.root / "lib/experiments/toy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lib.experiments.toy", module)
    spec.loader.exec_module(module)
    monkeypatch.chdir(clone.root)
    monkeypatch.setattr(runner, "_execute", lambda *_, **__: pytest.fail("a kernel would have been started"))
    return clone


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(cli.app, list(arguments))


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameter_on_the_command_line_is_refused(toy, case):
    """Exit code 2, the rule and the meaning said, nothing written."""
    (assignment, words), before = WRONG[case], toy.tree()
    result = invoke("run", "toy", "-p", assignment.replace(": ", "=", 1))
    assert result.exit_code == 2, result.output
    assert [word for word in words if word not in result.output] == []
    assert toy.tree() == before


@pytest.mark.parametrize("command", [("run", "toy"), ("build",)], ids=lambda command: command[0])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameter_in_a_profile_is_refused(toy, case, command):
    """The same for a profile file, by `run` and by `build`."""
    assignment, words = WRONG[case]
    (toy.root / "profiles/smoke.yml").write_text(f"toy:\n  {assignment}\n", encoding="utf-8")
    before = toy.tree()
    result = invoke(*command, "--profile", "smoke")
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
    """Exit code 2, the right names suggested, nothing written."""
    before = toy.tree()
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert [word for word in words if word not in result.output] == []
    assert toy.tree() == before


def test_refusal_ends_the_process_with_2(clone):
    """The real command, in a process of its own: exit code 2 and a sentence, no traceback, no `_build`."""
    before = clone.tree()
    finished = clone.companion("run", "toy", "-p", "seed=True")
    assert finished.returncode == 2
    assert SEED_MEANS in finished.stderr
    assert "Traceback" not in finished.stderr
    assert clone.tree() == before


@pytest.mark.parametrize("content", ["tooy:\n  seed: 1\n", "tooy:\n"])
def test_profile_of_an_unknown_notebook_is_refused(toy, content):
    """A profile that overrides a notebook that is not there stops every build."""
    (toy.root / "profiles/full.yml").write_text(content, encoding="utf-8")
    with pytest.raises(Mistake, match=r"profiles/full.yml.*'tooy'.*Did you mean 'toy'"):
        check_profiles(toy.house)


@pytest.mark.parametrize("content", ["- toy\n", "toy: 1\n", "toy: [seed\n", "3\n"])
def test_profile_that_is_not_a_mapping_is_refused(toy, content):
    """Every other shape of a profile is a mistake, not a traceback."""
    (toy.root / "profiles/smoke.yml").write_text(content, encoding="utf-8")
    with pytest.raises(Mistake, match=r"profiles/smoke.yml"):
        check_profiles(toy.house)


@pytest.fixture
def rate(toy, monkeypatch):
    """toy with one parameter, a float."""

    @experiment
    def toy_with_rate(*, rate: Annotated[float, Field(gt=0, description="A rate.")]) -> Result:
        return Result({}, ())

    monkeypatch.setattr(sys.modules["lib.experiments.toy"], "toy", toy_with_rate)
    toy.rewrite_cell("# parameters", "# parameters\nrate = 0.5\n")
    return toy


def test_scientific_notation_is_a_float_in_a_profile(rate):
    """YAML 1.1 would read `1e-3` as a string."""
    (rate.root / "profiles/smoke.yml").write_text("toy: {rate: 1e-3}\n", encoding="utf-8")
    notebook = Notebook.named(rate.house, "toy")
    assert check(notebook, resolve(rate.house, notebook, "smoke")) == {"rate": 0.001}


def test_scientific_notation_is_a_float_on_the_command_line(rate):
    """`-p rate=1e-3` is the number."""
    notebook = Notebook.named(rate.house, "toy")
    overrides = dict([parse_assignment("rate=1e-3")])
    assert check(notebook, resolve(rate.house, notebook, "laptop", overrides)) == {"rate": 0.001}


def test_whole_number_is_a_float(rate):
    """`rate=2` needs no decimal point."""
    notebook = Notebook.named(rate.house, "toy")
    assert check(notebook, {"rate": 2}) == {"rate": 2.0}


def test_command_line_wins_over_profile_over_cell(toy):
    """The order of the three origins."""
    (toy.root / "profiles/smoke.yml").write_text("toy: {seed: 1, prompts: 50}\n", encoding="utf-8")
    values = resolve(toy.house, Notebook.named(toy.house, "toy"), "smoke", {"seed": 2})
    assert values == {"seed": 2, "lengths": [10, 100, 1000], "prompts": 50}


@pytest.mark.parametrize(
    "source",
    [
        "seed = 0; prompts = 500\nlengths = [10]\n",
        "seed = prompts = 500\nlengths = [10]\n",
        "seed, prompts = 0, 500\nlengths = [10]\n",
        "seed: int = 0\nprompts = 500\nlengths = [10]\n",
        "seed = 0\nseed += 1\nprompts = 500\nlengths = [10]\n",
        "seed = 0\nprompts = int(500)\nlengths = [10]\n",
        "seed = 0\nprompts = 5 * 100\nlengths = [10]\n",
        "seed = 0\nprompts = seed\nlengths = [10]\n",
        "import os\nseed = 0\nprompts = 500\nlengths = [10]\n",
        "seed =\n",
    ],
)
def test_parameters_cell_is_one_plain_value_a_line(clone, source):
    """What papermill would read wrongly, or a profile could not write, is refused."""
    clone.rewrite_cell("# parameters", source)
    with pytest.raises(Mistake, match=r"toy\.ipynb"):
        _ = Notebook.named(clone.house, "toy").defaults


def test_value_over_several_lines_is_read(clone):
    """A long list may be broken."""
    clone.rewrite_cell("# parameters", "seed = -1\nlengths = [\n    10,\n    100,\n]\nprompts = 500\n")
    assert Notebook.named(clone.house, "toy").defaults == {"seed": -1, "lengths": [10, 100], "prompts": 500}


@pytest.mark.parametrize(("other", "count"), [([], 0), (["parameters"], 2)])
def test_parameters_tag_stands_once(clone, other, count):
    """Without the tag papermill silently keeps the notebook's own values."""
    clone.rewrite_cell("# parameters", "# parameters\nseed = 0\n", tags=other)
    clone.rewrite_cell("# setup", "x = 1\n", tags=other)
    with pytest.raises(Mistake, match=rf"exactly one cell tagged `parameters`.*It has {count}"):
        _ = Notebook.named(clone.house, "toy").defaults


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("seed = 0\nlengths = [10]\n", r"Missing in the cell: \['prompts'\]"),
        ("seed = 0\nlengths = [10]\nprompts = 5\ntau = 1\n", r"unknown to the experiment: \['tau'\]"),
    ],
)
def test_cell_and_signature_name_the_same_parameters(toy, source, words):
    """A parameter in one place only is refused, and named."""
    toy.rewrite_cell("# parameters", source)
    notebook = Notebook.named(toy.house, "toy")
    with pytest.raises(Mistake, match=words):
        check(notebook, notebook.defaults)


def test_notebook_without_experiment_is_refused(toy, monkeypatch):
    """The answer says which function is missing, and where."""
    monkeypatch.delattr(sys.modules["lib.experiments.toy"], "toy")
    notebook = Notebook.named(toy.house, "toy")
    with pytest.raises(Mistake, match=r"`toy` decorated with `@experiment` in lib/experiments/toy\.py"):
        check(notebook, notebook.defaults)


def test_file_that_is_no_notebook_is_refused(clone):
    """A broken file is named."""
    clone.house.notebook("toy").write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(Mistake, match=r"toy\.ipynb is not a notebook"):
        _ = Notebook.named(clone.house, "toy").cells
