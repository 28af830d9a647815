"""On a full disk a command fails with a message and leaves no incomplete file; with space it continues."""

import errno
import os
import shutil
import subprocess
import sys
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
        self.room, self.written, self.counts = 0, 0, True
        for module, name in ((os, "fdopen"), (os, "mkdir"), (shutil, "copyfile")):
            monkeypatch.setattr(module, name, self.watch(getattr(module, name)))

    def watch(self, write: Callable) -> Callable:
        def watched(*arguments, **options):
            if self.counts:
                if self.written == self.room:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
                self.written += 1
            return write(*arguments, **options)

        return watched


@pytest.fixture
def disk(ran, monkeypatch):
    """Return the disk; a stand-in for the kernel copies the results of `ran`."""
    disk = Disk(monkeypatch)

    def execute(project, notebook, changed, staging, *, environment, failed):
        disk.counts = False
        build = ran.project.build("laptop")
        for kind, folder in (("figures", build.figures), ("tables", build.tables)):
            shutil.copytree(folder, staging / kind)
        shutil.copyfile(build.executed / "toy.ipynb", staging / "toy.ipynb")
        (staging / "device.json").write_text("null")
        disk.counts = True

    monkeypatch.setattr(execution, "_execute", execute)
    return disk


def test_a_run_on_a_full_disk_fails_and_leaves_no_incomplete_file(ran, clone, disk, monkeypatch):
    """The disk is full at each file and folder in turn, until all fit."""
    monkeypatch.chdir(clone.root)
    folder = clone.project.published / "toy"
    for room in range(100):
        disk.room, disk.written = room, 0
        finished = CliRunner().invoke(cli.app, ["run", "toy"])
        if not finished.exit_code:
            break
        assert finished.exit_code == 2, finished.exception
        assert "No space is left on the disk" in finished.stderr
        assert "run the same command to continue" in finished.stderr
        assert not folder.exists() or store.faults(folder, FIGURE) == []
        assert [path.name for path in clone.project.generated.rglob(".*.json.*")] == []
    assert room > 10
    for place in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        assert clone.tree(place) == ran.tree(place)


# Sizes of a file system in memory: too small for a run; enough for a run but not for the site; enough for all.
SIZES = ("32k", "3m", "300m")
FILL = """
mount -t tmpfs -o size=32k none _build || exit
for size in {sizes}; do
    mount -o remount,size=$size _build
    {python} -m companion build > ../$size.out 2>&1
    echo $? >> ../codes
done
"""


def test_a_build_on_a_full_disk_continues_when_there_is_space(clone, ran):
    """A mounted file system becomes full; whatever exception a library raises, the command prints one message."""
    (clone.root / "_build").mkdir(exist_ok=True)
    script = FILL.format(sizes=" ".join(SIZES), python=sys.executable)
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    finished = subprocess.run(
        command, cwd=clone.root, env=clone.environment, capture_output=True, text=True, check=False
    )
    if not (folder := clone.root.parent).joinpath("codes").exists():
        pytest.skip(f"This machine does not allow users to mount a file system: {finished.stderr}")
    outputs = [(folder / f"{size}.out").read_text() for size in SIZES]
    assert (folder / "codes").read_text().split() == ["2", "2", "0"], outputs
    for output in outputs[:-1]:
        assert "No space is left on the disk" in output
        assert "Traceback" not in output
    assert clone.tree("figures") == ran.tree("figures")
