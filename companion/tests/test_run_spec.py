"""Run specifications: what identifies a run, and that its parameters are checked exactly once."""

import shutil
from dataclasses import FrozenInstanceError

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.build import execution
from companion.build.run_spec import CheckedRun, RunSpec
from companion.io.errors import UserError
from companion.project import parameters
from companion.runs.custom_runs import all_runs


def test_a_spec_is_frozen_and_hashable():
    """It copies its parameters, so a later change of a list changes neither its value nor its hash."""
    lengths = [10, 20]
    spec = RunSpec("toy", parameters={"seed": 1, "lengths": lengths})
    lengths.append(30)
    equal = RunSpec("toy", parameters={"lengths": [10, 20], "seed": 1})
    assert {spec: "found"}[equal] == "found"
    with pytest.raises(FrozenInstanceError):
        spec.profile = "smoke"  # pyright: ignore
    with pytest.raises(TypeError, match="does not support item assignment"):
        spec.parameters["seed"] = 2  # pyright: ignore


def test_specs_that_differ_in_one_part_are_different():
    """Numbers of different types are different parameters, although Python calls them equal."""
    specs = [
        RunSpec("toy"),
        RunSpec("toy_two"),
        RunSpec("toy", "smoke"),
        RunSpec("toy", figure="toy_error"),
        RunSpec("toy", isolated=True),
        RunSpec("toy", parameters={"seed": 1}),
        RunSpec("toy", parameters={"seed": 1.0}),
        RunSpec("toy", parameters={"seed": True}),
    ]
    assert len(set(specs)) == len(specs)


def test_parameters_a_figure_or_isolation_make_a_custom_run():
    assert not RunSpec("toy", "smoke").is_custom
    assert RunSpec("toy", parameters={"seed": 1}).is_custom
    assert RunSpec("toy", figure="toy_error").is_custom
    assert RunSpec("toy", isolated=True).is_custom


def test_custom_runs_whose_names_join_to_the_same_text_have_different_folders(pristine):
    """Notebook `a` with figure `b-c`, `a-b` with `c`, and all figures of `a-b-c`, at the same values."""
    specs = [RunSpec("a", figure="b-c"), RunSpec("a-b", figure="c"), RunSpec("a-b-c", isolated=True)]
    folders = {CheckedRun(spec, {"seed": 0}, {"seed": 0}).build(pristine.project).folder for spec in specs}
    assert len(folders) == len(specs)


def test_a_spec_is_read_as_it_was_written(clone):
    build = clone.project.custom_build("toy-12345678")
    spec = RunSpec("toy", "smoke", {"seed": 1, "lengths": [5, 50]}, "toy_error", isolated=True)
    spec.write(build)
    assert RunSpec.read(build) == spec


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff", b"[]", b"{}", b'{"notebook": 3}', b'{"notebook": "toy", "x": 1}']
)
def test_a_folder_without_a_valid_spec_is_no_run(clone, content):
    build = clone.project.custom_build("toy-12345678")
    build.folder.mkdir(parents=True)
    if content is not None:
        build.run_spec.write_bytes(content)
    assert RunSpec.read(build) is None
    assert all_runs(clone.project) == []


@pytest.fixture
def calls(ran, ran_clone, monkeypatch):
    """The calls that read parameters in this process, in order, and `execute` where the kernel would run."""
    calls = []

    def counted(name):
        function = getattr(parameters, name)

        def call(*arguments, **keywords):
            calls.append(name)
            return function(*arguments, **keywords)

        return call

    def execute(project, notebook, changed, staging, *, environment, failed):
        calls.append("execute")
        build = ran.project.build("laptop")
        for kind, folder in (("figures", build.figures), ("tables", build.tables)):
            shutil.copytree(folder, staging / kind)
        shutil.copyfile(build.executed / "toy.ipynb", staging / "toy.ipynb")
        (staging / "device.json").write_text("null")

    for name in ("resolve", "check"):
        monkeypatch.setattr(parameters, name, counted(name))
    monkeypatch.setattr(execution, "_execute", execute)
    monkeypatch.chdir(ran_clone.root)
    return calls


@pytest.mark.parametrize(
    "arguments",
    [(), ("--profile", "smoke"), ("-p", "seed=1"), ("--figure", "toy_error"), ("--isolated",)],
    ids=" ".join,
)
def test_the_command_resolves_and_checks_parameters_once(calls, arguments):
    """They are read before the kernel runs. A run of a profile resolves them again to see whether it was edited."""
    finished = CliRunner().invoke(cli.app, ["run", "toy", *arguments])
    assert finished.exit_code == 0, finished.output
    is_custom = bool({"-p", "--figure", "--isolated"}.intersection(arguments))
    assert calls == ["resolve", "check", "execute", *([] if is_custom else ["resolve"])]


def test_a_wrong_parameter_is_refused_before_anything_is_written(calls, ran_clone):
    before = ran_clone.tree()
    finished = CliRunner().invoke(cli.app, ["run", "toy", "-p", "seed=-1"])
    assert finished.exit_code == 2
    assert "seed" in finished.stderr
    assert "execute" not in calls
    assert ran_clone.tree() == before


def test_a_wrong_figure_is_refused_by_the_check(pristine):
    with pytest.raises(UserError, match="has no figure 'toy_eror'"):
        RunSpec("toy", figure="toy_eror").check(pristine.project)
