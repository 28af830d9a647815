"""Run specifications: what identifies a run, and that its parameters are checked exactly once."""

import pytest

from companion.build.run_spec import RunSpec
from companion.runs.custom_runs import all_runs


def test_parameters_a_figure_or_isolation_make_a_custom_run():
    assert not RunSpec("toy", "smoke").is_custom
    assert RunSpec("toy", parameters={"seed": 1}).is_custom
    assert RunSpec("toy", figure="toy_error").is_custom
    assert RunSpec("toy", isolated=True).is_custom


def test_a_spec_is_read_as_it_was_written(clone):
    build = clone.project.custom_build("toy-12345678")
    spec = RunSpec("toy", "smoke", {"seed": 1, "lengths": [5, 50]}, "toy_error", isolated=True)
    spec.write(build)
    assert RunSpec.read(build) == spec


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"[]", b"{}", b'{"notebook": "toy", "x": 1}'])
def test_a_folder_without_a_valid_spec_is_no_run(clone, content):
    build = clone.project.custom_build("toy-12345678")
    build.folder.mkdir(parents=True)
    if content is not None:
        build.run_spec.write_bytes(content)
    assert RunSpec.read(build) is None
    assert all_runs(clone.project) == []
