"""On a full disk a command fails with a message and leaves no incomplete file; with space it continues."""

import errno
import os
import shutil
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.build import execution
from companion.figures import store

FIGURE = "toy_error"


class Disk:
    """A disk with room for a number of files; it counts the files that are written, except those of a kernel."""

    def __init__(self, monkeypatch):
        self.room, self.written, self.counts, self.error = 0, 0, True, errno.ENOSPC
        for module, name in ((os, "fdopen"), (os, "mkdir"), (shutil, "copyfile")):
            monkeypatch.setattr(module, name, self.watch(getattr(module, name)))

    def watch(self, write: Callable) -> Callable:
        def watched(*arguments, **options):
            if self.counts:
                if self.written == self.room:
                    raise OSError(self.error, os.strerror(self.error), str(arguments[0]))
                self.written += 1
            return write(*arguments, **options)

        return watched


@pytest.fixture
def disk(clone, copied_run, monkeypatch):
    disk, copy = Disk(monkeypatch), execution._execute

    def execute(*arguments, **options):
        disk.counts = False
        copy(*arguments, **options)
        disk.counts = True

    monkeypatch.setattr(execution, "_execute", execute)
    monkeypatch.chdir(clone.root)
    return disk


def test_a_run_on_a_full_disk_fails_and_leaves_no_incomplete_file(ran, clone, disk):
    """The disk is full at each file and folder in turn, until all fit."""
    folder = clone.project.published / "toy"
    for room in range(100):
        disk.room, disk.written = room, 0
        finished = CliRunner().invoke(cli.app, ["run", "toy"])
        if not finished.exit_code:
            break
        assert finished.exit_code == 2, finished.exception
        assert "No space left on device" in finished.stderr
        assert "run the same command to continue" in finished.stderr.replace("\n", " ")
        assert not folder.exists() or store.faults(folder, FIGURE) == []
        assert [path.name for path in clone.project.generated.rglob(".*.json.*")] == []
    assert room > 10
    for place in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        assert clone.tree(place) == ran.tree(place)


def test_a_refused_write_is_an_error_with_the_reason(disk):
    """For example on a read-only file system."""
    disk.error = errno.EROFS
    finished = CliRunner().invoke(cli.app, ["run", "toy", "--isolated"])
    assert finished.exit_code == 2, finished.exception
    assert f"{os.strerror(errno.EROFS)}: '" in finished.stderr.replace("\n", " ")
