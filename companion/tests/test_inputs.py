"""A run that reads a file of the book which is in no cache key is an error, unless the book lists the file."""

import pytest

from companion.build import cache_keys
from companion.build.run_spec import Target

CODE = "clone/toy/figures/toy_error.py"
SIMULATION = "    return {\n        length: np.random"
# What is read, the statement that reads it, and the content of the file.
INPUTS = {
    "data in the root": ("data/obs.csv", "open('data/obs.csv').read()", "1\n"),
    "data next to the code": ("clone/toy/obs.csv", "open('clone/toy/obs.csv').read()", "1\n"),
    "a module in the root": ("observed.py", "import observed", "VALUE = 1\n"),
}


@pytest.fixture(params=INPUTS.values(), ids=INPUTS)
def reading(request, clone):
    """A clone whose simulation reads a file, and the path of the file."""
    file, statement, content = request.param
    clone.write(file, content)
    clone.replace(CODE, SIMULATION, f"    {statement}\n{SIMULATION}")
    return clone, file


def test_an_input_must_be_listed_and_is_then_part_of_the_key(reading):
    clone, file = reading
    refused = clone.companion("run", "toy")
    assert refused.returncode == 2
    assert f"toy reads {file}, and no cache key contains it" in refused.stderr
    assert f'inputs = ["{file}"]' in refused.stderr
    clone.replace("pyproject.toml", "[tool.companion]\n", f'[tool.companion]\ninputs = ["{file}"]\n')
    accepted = clone.companion("run", "toy")
    assert accepted.returncode == 0, accepted.stderr
    assert cache_keys.is_fresh(clone.project, Target("toy"), "laptop")
    clone.replace(file, "1", "2")
    assert not cache_keys.is_fresh(clone.project, Target("toy"), "laptop")


def test_a_listed_file_that_is_missing_is_an_error(clone):
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\ninputs = ["data/obs.csv"]\n')
    finished = clone.companion("list")
    assert finished.returncode == 2
    assert "data/obs.csv, which `inputs` of [tool.companion]" in finished.stderr


def test_verify_copies_the_inputs(clone):
    clone.write("data/obs.csv", "1\n")
    clone.replace(CODE, SIMULATION, f"    open('data/obs.csv').read()\n{SIMULATION}")
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\ninputs = ["data/obs.csv"]\n')
    assert clone.companion("run", "toy").returncode == 0
    verified = clone.companion("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
