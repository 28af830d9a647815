"""Writing one file: the old one or the new one, whatever happens in between."""

import json
import os
import subprocess
import threading

import pytest

from companion.io import atomic


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


def test_file_that_was_there_keeps_its_name_while_it_is_written(tmp_path, monkeypatch):
    """It is renamed into place when it is whole, and not before."""
    atomic.write_text(tmp_path / "b.txt", "old")
    seen, replace = [], os.replace

    def look(new, path):
        seen.append((path.read_text(), os.stat(new).st_size))
        replace(new, path)

    monkeypatch.setattr(os, "replace", look)
    atomic.write_bytes(tmp_path / "b.txt", b"new one")
    assert seen == [("old", len("new one"))]


def test_what_runs_is_announced_while_it_does(tmp_path):
    """And not after, however it ended; what a dead process announced does not count, nor what is no announcement."""
    with atomic.announced(tmp_path / "toy"):
        assert atomic.alive(tmp_path) == ["toy"]
    assert atomic.alive(tmp_path) == []
    with pytest.raises(KeyboardInterrupt), atomic.announced(tmp_path / "toy"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    (tmp_path / "dead").write_text(json.dumps({"pid": dead.pid}))
    (tmp_path / "odd").write_text("[1]")
    assert atomic.alive(tmp_path) == []
    assert atomic.alive(tmp_path / "nowhere") == []


def test_a_lock_is_waited_for(tmp_path, capsys):
    """With a word about it, only if it is taken."""
    with atomic.locked(tmp_path / "a/lock", "waiting"):
        assert capsys.readouterr().out == ""
        order = []

        def second():
            with atomic.locked(tmp_path / "a/lock", "waiting"):
                order.append("second")

        thread = threading.Thread(target=second)
        thread.start()
        while "waiting" not in capsys.readouterr().out:
            assert thread.is_alive()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_staging_ends_with_its_work(tmp_path):
    """Staging folders of killed runs with the same prefix are removed; those of other prefixes are kept."""
    (tmp_path / "toy-deadbeef/x").mkdir(parents=True)
    (tmp_path / "toy-b-deadbeef").mkdir()

    def work():
        with atomic.staging_folder(tmp_path, "toy") as folder:
            assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["toy-b-deadbeef", folder.name])
            (folder / "x").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert [path.name for path in tmp_path.iterdir()] == ["toy-b-deadbeef"]
