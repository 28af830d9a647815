"""The archives of a release; its workflow checks the digests, and zizmor (`make lint`) the workflows."""

import importlib.util
import os
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_archives_of_equal_files_are_identical(tmp_path):
    """Dates, permissions and the order of creation do not matter; the content does."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/release.py")
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)

    def packed(folder, *names):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name, encoding="utf-8")
        os.utime(folder / names[0], (0, 0))
        (folder / names[1]).chmod(0o600)
        release.archive(tmp_path / "site-1.tar.gz", folder, release.files(folder), 1_000_000_000)
        return (tmp_path / "site-1.tar.gz").read_bytes()

    assert packed(tmp_path / "one", "b", "a/c") == packed(tmp_path / "two", "a/c", "b")
    with tarfile.open(tmp_path / "site-1.tar.gz") as tar:
        entries = [(entry.name, entry.mtime, entry.uid, entry.uname) for entry in tar]
    assert entries == [(f"site-1/{name}", 1_000_000_000, 0, "") for name in ("a/c", "b")]
    assert packed(tmp_path / "three", "b", "a/d") != packed(tmp_path / "four", "b", "a/c")
