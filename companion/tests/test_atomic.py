"""Atomic writes, locks and staging folders: a file is either old or new, even if the process is killed."""

import json
import os
import threading

import pytest

from companion.io import atomic


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_file_is_replaced_and_has_the_permissions_of_new_files(tmp_path, umask, mode):
    """The umask decides them. Missing folders are created, and no hidden file remains."""
    before = os.umask(umask)
    try:
        for text in ("old", "new"):
            atomic.write_text(tmp_path / "a/b.txt", text)
    finally:
        os.umask(before)
    assert (tmp_path / "a/b.txt").read_text() == "new"
    assert (tmp_path / "a/b.txt").stat().st_mode & 0o777 == mode
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    """The new file is complete before it is renamed. No hidden file remains next to the old one."""
    atomic.write_text(tmp_path / "b.txt", "old")

    def full_disk(new, path):
        assert (new.read_text(), path.read_text()) == ("new one", "old")
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        atomic.write_text(tmp_path / "b.txt", "new one")
    assert (tmp_path / "b.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_json_keeps_order_and_rejects_nan():
    """Columns and parameters keep the order of their declaration; NaN is no valid JSON."""
    assert atomic.dump_json({"b": 1, "a": "é"}) == '{\n "b": 1,\n "a": "é"\n}\n'
    assert json.loads(atomic.dump_json({"a": [1, None]})) == {"a": [1, None]}
    with pytest.raises(ValueError, match="Out of range float"):
        atomic.dump_json({"a": float("nan")})


def test_a_taken_lock_is_waited_for(tmp_path, monkeypatch):
    """The message is printed only if the lock is taken."""
    printed = threading.Event()
    monkeypatch.setattr(atomic, "print", lambda *_, **__: printed.set(), raising=False)
    with atomic.locked(tmp_path / "a/lock", "waiting"):
        assert not printed.is_set()
        order = []

        def second():
            with atomic.locked(tmp_path / "a/lock", "waiting"):
                order.append("second")

        thread = threading.Thread(target=second)
        thread.start()
        assert printed.wait(60)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_staging_folder_is_removed_after_its_block(tmp_path):
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
