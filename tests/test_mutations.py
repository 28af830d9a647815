"""Every line that `tests/mutations.py` changes exists exactly once, and every test that must detect it exists."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The script as a module.
spec = importlib.util.spec_from_file_location("mutations", ROOT / "tests/mutations.py")
mutations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutations)
Mutation = mutations.Mutation


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_changed_line_and_every_test_exists(mutation):
    assert mutation.faults(ROOT) == []
    assert mutation.old != mutation.new
    assert mutation.tests


def test_names_of_mutations_are_unique():
    names = [mutation.name for mutation in mutations.MUTATIONS]
    assert len(set(names)) == len(names)


def test_a_missing_or_repeated_line_is_reported(tmp_path):
    (tmp_path / "one.py").write_text("a = 1\nb = 1\n", encoding="utf-8")
    (tmp_path / "test_one.py").write_text('"""Tests."""\n\ndef test_one():\n    pass\n', encoding="utf-8")
    existing, missing = "test_one.py::test_one[1]", "test_one.py::test_two"
    assert Mutation("fine", "one.py", "a = 1", "a = 2", (existing,)).faults(tmp_path) == []
    (twice,) = Mutation("twice", "one.py", "= 1", "= 2", (existing,)).faults(tmp_path)
    assert twice == "twice: '= 1' occurs 2 times in one.py, and must occur once."
    gone, untested = Mutation("gone", "two.py", "a", "b", (missing,)).faults(tmp_path)
    assert gone == "gone: 'a' occurs 0 times in two.py, and must occur once."
    assert untested == "gone: there is no test_one.py::test_two."


def test_apply_returns_the_previous_content(tmp_path):
    mutation = Mutation("fine", "one.py", "a = 1", "a = 2", ())
    (tmp_path / "one.py").write_text("a = 1\nb = 1\n", encoding="utf-8")
    before = mutation.apply(tmp_path)
    assert (tmp_path / "one.py").read_text(encoding="utf-8") == "a = 2\nb = 1\n"
    assert before == "a = 1\nb = 1\n"


def test_unknown_names_are_refused(capsys):
    assert mutations.arguments().parse_args(["quadrature-factor"]).names == ["quadrature-factor"]
    with pytest.raises(SystemExit):
        mutations.arguments().parse_args(["quadrature"])
    assert "there is no 'quadrature'" in capsys.readouterr().err
