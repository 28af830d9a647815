"""Tracked results of long computations: the command that makes them, and their records."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from companion import Column, Table
from companion.authoring.datasets import Result, in_parts, keep, make, origin_of
from companion.project.paths import Project

ORIGIN = {"command": "python -m toy", "made": "2026-01-01", "machine": "any", "versions": {}}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A book with one chapter, whose context records that it was opened."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "toy"\n[tool.companion]\nchapters = "toys"\nscience = []\n'
        'context = "toys_context:opened"\nreport = ["numpy"]\n'
    )
    (tmp_path / "_config.yml").touch()
    (tmp_path / "toys_context.py").write_text("calls = []\ndef opened():\n    calls.append(1)\n")
    (tmp_path / "toys/walks/data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield Project.here()
    sys.modules.pop("toys_context", None)


def example_result():
    frame = pd.DataFrame({"step": [1, 2], "risk": [1.0, 2.0 / 3]})
    return Result(Table(frame, {"step": Column("Steps taken"), "risk": Column("Risk", "nats")}), {"seed": 3})


def run_make(project, monkeypatch, *arguments):
    """Run the command line of a `make.py` with three tables; return the names of the computed tables."""
    computed = []

    def compute(name):
        from toys_context import calls

        assert calls  # the context of the book was opened
        computed.append(name)
        return example_result()

    monkeypatch.setattr(sys, "argv", ["make.py", *arguments])
    tables = {name: lambda name=name: compute(name) for name in ("short", "long", "apart/long")}
    make(str(project.data("walks") / "make.py"), "What is made.", tables)
    return computed


def test_tables_are_made_by_name_or_all_in_order(project, monkeypatch):
    assert run_make(project, monkeypatch, "apart/long") == ["apart/long"]
    assert run_make(project, monkeypatch) == ["short", "long", "apart/long"]
    files = sorted(path.relative_to(project.data("walks")).as_posix() for path in project.data("walks").rglob("*.*"))
    assert files == ["apart/long.csv", "apart/long.json", "long.csv", "long.json", "short.csv", "short.json"]


def test_an_unknown_table_is_refused_before_anything_is_computed(project, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run_make(project, monkeypatch, "short", "lnog")
    assert "there is no table 'lnog'. Did you mean 'long'?" in capsys.readouterr().err
    assert list(project.data("walks").iterdir()) == []


def test_a_record_contains_the_origin_of_its_table(project, monkeypatch):
    run_make(project, monkeypatch, "long")
    record = json.loads((project.data("walks") / "long.json").read_text())
    assert (record["table"], record["command"]) == ("long", "python -m toys.walks.data.make long")
    step, risk = {"meaning": "Steps taken", "unit": "1"}, {"meaning": "Risk", "unit": "nats"}
    assert record["columns"] == {"step": step, "risk": risk}
    assert (record["rows"], record["parameters"], list(record["versions"])) == (2, {"seed": 3}, ["numpy"])


def test_a_record_names_no_host_no_user_and_no_folder(project, monkeypatch):
    """Git, the environment and the platform know these names; the record contains none of them."""
    monkeypatch.setenv("USER", "somebody-here")
    monkeypatch.setattr("platform.node", lambda: "a-host-of-ours")
    subprocess.run(["git", "init", "-q"], check=True)
    identity = ["-c", "user.name=somebody-here", "-c", "user.email=somebody-here@a-host-of-ours"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    origin = json.dumps(origin_of(project))
    assert '"modified": true' in origin
    assert not any(name in origin for name in ("somebody-here", "a-host-of-ours", str(project.root)))


def test_a_table_has_the_requested_number_of_digits(tmp_path):
    keep(tmp_path, "few", example_result(), ORIGIN)
    keep(tmp_path, "many", Result(example_result().table, {}, digits=10), ORIGIN)
    assert (tmp_path / "few.csv").read_bytes() == b"step,risk\n1,1\n2,0.666667\n"
    assert (tmp_path / "many.csv").read_bytes() == b"step,risk\n1,1\n2,0.6666666667\n"


def test_a_killed_table_resumes_with_the_interrupted_part(project):
    """Completed parts are not computed again; a list of different parts is refused."""
    computed = []

    def compute(part, fatal=None):
        if part == fatal:
            raise KeyboardInterrupt
        computed.append(part)
        return np.full(2, part / 3)

    with pytest.raises(KeyboardInterrupt):
        in_parts("walks", "long", [1, 2, 3], lambda part: compute(part, fatal=3), 2)
    np.testing.assert_array_equal(in_parts("walks", "long", [1, 2, 3], compute, 2), np.outer([1, 2, 3], [1, 1]) / 3)
    assert computed == [1, 2, 3]
    with pytest.raises(ValueError, match="another run"):
        in_parts("walks", "long", [1, 2, 4], compute, 2)
