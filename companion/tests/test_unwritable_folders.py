"""A folder that cannot be written is named in a sentence; commands that only read work."""

import errno
import os

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.io import atomic


def link_to_nothing(folder):
    folder.symlink_to("/a/disk/that/is/not/mounted")


def file_in_its_place(folder):
    folder.write_text("", encoding="utf-8")


@pytest.mark.parametrize("replace", [link_to_nothing, file_in_its_place])
def test_a_build_folder_that_is_none_is_named(clone, replace):
    replace(clone.project.generated)
    for command in ("run toy --isolated", "build"):
        finished = clone.companion(*command.split())
        assert finished.returncode == 2
        assert "clone/_build" in finished.stderr
        assert "cannot be used: " in finished.stderr
        assert "Traceback" not in finished.stderr
    assert clone.companion("run", "toy", "--parameters").returncode == 0


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_refused_write_is_an_error_with_the_reason(clone, monkeypatch, code):
    """For example on a read-only file system."""
    monkeypatch.chdir(clone.root)

    def refuse(path, *_):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(atomic, "write_bytes", refuse)
    finished = CliRunner().invoke(cli.app, ["run", "toy", "--isolated"])
    assert finished.exit_code == 2, finished.exception
    assert f"cannot be used: {os.strerror(code)}." in finished.stderr.replace("\n", " ")
