"""Pieces of heavy simulations: computed beforehand, found by the notebook, forgotten when they no longer apply."""

import pandas as pd
import pytest

from companion import figure_set

# What turns `squared_error` of the scaffolded experiment into shards, a length each. A kernel may not compute them.
SHARDS = '''

def shards(*, seed: int, lengths: list[int], prompts: int):
    """A length each."""
    return {f"length-{length}": partial(one, seed, length, prompts) for length in lengths}


def one(seed: int, length: int, prompts: int):
    """What a length comes to."""
    if FOLDER in os.environ:
        raise RuntimeError(f"nobody left length {length}")
    row = whole(seed, [length], prompts).iloc[0]
    return {name: np.asarray(value) for name, value in row.items()}


def squared_error(seed: int, lengths: list[int], prompts: int) -> pd.DataFrame:
    """From shards."""
    return pd.DataFrame(gather(shards(seed=seed, lengths=lengths, prompts=prompts))).astype(float)
'''
IMPORTS = "import os\nfrom functools import partial\n\nfrom lib.experiments.shards import FOLDER, gather\n"


@pytest.fixture
def sharded(ran_clone):
    """A clone whose toy has shards, after a run of the toy that had none."""
    path = ran_clone.root / "lib/experiments/toy.py"
    ran_clone.replace("lib/experiments/toy.py", "def squared_error(", "def whole(")
    ran_clone.replace("lib/experiments/toy.py", "import jax\n", f"{IMPORTS}import jax\n")
    path.write_text(path.read_text() + SHARDS)
    return ran_clone


def listed(clone):
    """Of each shard, whether it is there, as the command says."""
    said = clone.companion("shard", "toy")
    assert said.returncode == 0, said.stderr
    *lines, total = said.stdout.splitlines()
    there = {line.split()[-1]: "✓" in line for line in lines}
    assert total == f"{sum(there.values())} of {len(there)} shards are there."
    return there


def files(clone):
    return sorted(clone.house.build("laptop").shards.rglob("*.npz"))


def test_build_computes_shards_first_and_the_notebook_takes_them(sharded):
    """The numbers are those of the experiment in one piece, which is published already."""
    before = pd.read_csv(sharded.root / "figures/toy/toy_error.csv")
    built = sharded.companion("build", "--target", "figures", "--shards")
    assert built.returncode == 0, built.stdout + built.stderr
    there = listed(sharded)
    assert len(there) == len(before)
    assert all(there.values())
    assert all(f"✓ toy/{name}" in built.stdout for name in there)
    build = sharded.house.build("laptop")
    assert figure_set.faults(build.figures / "toy", "toy_error") == []
    pd.testing.assert_frame_equal(pd.read_csv(build.figures / "toy/toy_error.csv"), before, rtol=1e-5)


def test_a_missing_shard_is_computed_by_the_notebook(sharded):
    """Here it may not: the run stops, and says which was wanted."""
    ran = sharded.companion("run", "toy")
    assert ran.returncode == 2
    assert "nobody left length" in ran.stderr


def test_shards_of_other_sources_are_not_taken_and_forgotten(sharded):
    """One is computed; after an edit it does not count, and goes when the next is computed."""
    name, *_ = listed(sharded)
    assert sharded.companion("shard", "toy", name).returncode == 0
    assert [name for name, there in listed(sharded).items() if there] == [name]
    (first,) = files(sharded)
    sharded.replace("lib/experiments/toy.py", "From shards.", "From pieces.")
    assert not any(listed(sharded).values())
    assert sharded.companion("shard", "toy", name).returncode == 0
    (second,) = files(sharded)
    assert first.name == second.name
    assert first.parent != second.parent


def test_unknown_shard_names_those_there_are(sharded):
    """As everywhere: what was meant, perhaps."""
    said = sharded.companion("shard", "toy", "length-")
    assert said.returncode == 2
    assert "has no shard 'length-'" in said.stderr
    assert "Did you mean" in said.stderr


def test_most_notebooks_have_none(ran):
    """The scaffolded one, as it is laid out."""
    assert ran.companion("shard", "toy").stdout == "0 of 0 shards are there.\n"
