"""Writing one file: the old one or the new one, whatever happens in between."""

import json
import os

import pytest

from companion import atomic


def test_file_is_replaced_and_readable_by_all(tmp_path):
    """Folders are made; nothing hidden is left."""
    for text in ("old", "new"):
        atomic.write_text(tmp_path / "a/b.txt", text)
    assert (tmp_path / "a/b.txt").read_text() == "new"
    assert (tmp_path / "a/b.txt").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    """And nothing hidden beside it."""
    atomic.write_text(tmp_path / "b.txt", "old")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        atomic.write_text(tmp_path / "b.txt", "new")
    assert (tmp_path / "b.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_json_keeps_order_and_is_strict():
    """Columns and parameters stay in the order they were declared; no NaN, which other readers refuse."""
    assert atomic.dump_json({"b": 1, "a": "é"}) == '{\n "b": 1,\n "a": "é"\n}\n'
    assert json.loads(atomic.dump_json({"a": [1, None]})) == {"a": [1, None]}
    with pytest.raises(ValueError, match="Out of range float"):
        atomic.dump_json({"a": float("nan")})
