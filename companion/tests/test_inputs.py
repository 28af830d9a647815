"""A run that reads a file of the book which is in no cache key is an error, unless the book lists the file."""

import json

from companion.build import cache_keys
from companion.build.run_spec import Target
from companion.runs.verify import Verification

CODE = "clone/toy/figures/toy_error.py"
SIMULATION = "    return {\n        length: np.random"
# Each file, the statement that reads it, and its content.
INPUTS = {
    "clone/toy/obs.csv": ("open('clone/toy/obs.csv').read()", "1\n"),
    "data/obs.csv": ("open('data/obs.csv').read()", "1\n"),
    "observed.py": ("import observed", "VALUE = 1\n"),
}


def test_inputs_must_be_listed_and_are_then_part_of_the_key(clone):
    """Data in the root and next to the code, and a module in the root, which the simulation imports."""
    for file, (statement, content) in INPUTS.items():
        clone.write(file, content)
        clone.replace(CODE, SIMULATION, f"    {statement}\n{SIMULATION}")
    refused = clone.companion("run", "toy")
    assert refused.returncode == 2
    assert f"toy reads {', '.join(INPUTS)}, and no cache key contains it" in refused.stderr
    listed = f"inputs = {json.dumps(list(INPUTS))}"
    assert listed in refused.stderr
    clone.replace("pyproject.toml", "[tool.companion]\n", f"[tool.companion]\n{listed}\n")
    clone.succeed("run", "toy")
    for file in INPUTS:
        assert cache_keys.is_fresh(clone.project, Target("toy"), "laptop")
        clone.replace(file, "1", "2")
        assert not cache_keys.is_fresh(clone.project, Target("toy"), "laptop")
        clone.replace(file, "2", "1")


def test_a_listed_file_must_exist_and_is_verified_with_the_book(clone):
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\ninputs = ["data/obs.csv"]\n')
    finished = clone.companion("list")
    assert finished.returncode == 2
    assert "data/obs.csv, which `inputs` of [tool.companion]" in finished.stderr
    clone.write("data/obs.csv", "1\n")
    clone.project.published.mkdir()
    with clone.inside():
        copy = Verification.of(None).lay_out()
    assert (copy.root / "data/obs.csv").read_text() == "1\n"
