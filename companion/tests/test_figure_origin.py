"""The origin of a figure on its page: profile, time, machine, versions and commit."""

import json
from types import SimpleNamespace

import pytest

from companion.project.paths import Project
from companion.site.sphinx.figure_directive import _origin

RECORD = SimpleNamespace(notebook="toy", profile="laptop", sources=("toy/one.py",))


@pytest.fixture
def origin(tmp_path):
    """Return a function that returns the text about a run with the given provenance."""

    def text(**known):
        path = Project(tmp_path).build("laptop").provenance / "toy.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        recorded = {"started": "2026-01-01", "seconds": 3.2, "cores": 2, "python": "3.11", "versions": {"numpy": "2"}}
        path.write_text(json.dumps({"device": None, "git": None, **recorded, **known}), encoding="utf-8")
        return _origin(Project(tmp_path), "laptop", RECORD)

    return text


def test_without_device_and_commit_neither_is_invented(origin):
    """A book may name no device, and its folder need not be a git repository."""
    text = origin()
    assert "in 3 s on 2 cores and Python 3.11, outside a git repository." in text
    assert "None" not in text


def test_device_and_commit_are_shown(origin):
    text = origin(device="cpu", cores=1, git={"commit": "0123456789abcdef", "modified": True})
    assert "on cpu with 1 core and Python 3.11, at commit `0123456789ab` with local changes." in text
