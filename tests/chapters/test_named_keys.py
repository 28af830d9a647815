"""Simulations have random keys by name, so that a new simulation changes the randomness of no other."""

import ast
import itertools
import json
from pathlib import Path

import jax.random as jr
import numpy as np
import pytest

from lib.random import named_keys

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "chapters").rglob("*.py"))


def names_of_keys(notebook):
    """Return the names of the random keys in a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    calls = [node for node in itertools.chain(*map(ast.walk, map(ast.parse, code))) if isinstance(node, ast.Call)]
    lists = [call.args[1:] for call in calls if ast.unparse(call.func) == "named_keys"]
    return [ast.literal_eval(name) for names in lists for name in names]


NAMES = {path.stem: names for path in sorted((ROOT / "book").glob("*.ipynb")) if (names := names_of_keys(path))}


def words(keys):
    return {name: tuple(np.asarray(jr.key_data(key)).tolist()) for name, key in keys.items()}


@pytest.mark.parametrize("notebook", NAMES)
def test_a_name_added_in_the_middle_changes_no_other_key_of_a_notebook(notebook):
    names = NAMES[notebook]
    middle = len(names) // 2
    before, after = words(named_keys(0, *names)), words(named_keys(0, *names[:middle], "another", *names[middle:]))
    assert {name: after[name] for name in names} == before
    assert len(set(after.values())) == len(names) + 1


def test_no_class_of_a_chapter_is_a_list_of_random_keys():
    """Keys that are split from one seed depend on their position: a new field changes all keys."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                types = {ast.unparse(field.annotation) for field in node.body if isinstance(field, ast.AnnAssign)}
                assert types != {"PRNGKeyArray"}, f"{node.name} in {path}"


def test_only_tracked_runs_split_the_key_of_a_seed():
    splits = [path for path in MODULES if "jr.split(jr.key(" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(ROOT).as_posix() for path in splits] == ["chapters/published_experiment/protocol.py"]
