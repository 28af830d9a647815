"""The script that packs a release, and the workflows that run it."""

import importlib.util
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def release():
    """The script `.ci/release.py` as a module."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci/release.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def folder_of(folder: Path, names: list[str]) -> Path:
    """Create a folder of small files, in this order."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_archives_of_equal_files_are_identical(release, tmp_path):
    """Dates, permissions and the order of creation do not matter; the content does."""
    one, two = folder_of(tmp_path / "one", ["b", "a/c"]), folder_of(tmp_path / "two", ["a/c", "b"])
    os.utime(two / "b", (0, 0))
    (two / "b").chmod(0o600)

    def packed(folder):
        release.archive(tmp_path / "site-1.tar.gz", folder, release.files(folder), 1_000_000_000)
        return (tmp_path / "site-1.tar.gz").read_bytes()

    assert (first := packed(one)) == packed(two)
    with tarfile.open(tmp_path / "site-1.tar.gz") as tar:
        entries = [(entry.name, entry.mtime, entry.uid, entry.uname) for entry in tar]
    assert entries == [(f"site-1/{name}", 1_000_000_000, 0, "") for name in ("a/c", "b")]
    (two / "b").write_text("other", encoding="utf-8")
    assert packed(two) != first


def test_digests_can_be_checked_with_sha256sum(release, tmp_path):
    folder = folder_of(tmp_path / "dist", ["b.whl", "a.tar.gz"])
    release.digests(folder)
    check = ["sha256sum", "--check", "--strict", release.DIGESTS]
    output = subprocess.run(check, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert output == "a.tar.gz: OK\nb.whl: OK\n"
    (folder / "b.whl").write_text("changed", encoding="utf-8")
    assert subprocess.run(check, cwd=folder, check=False, capture_output=True).returncode == 1


def test_packing_an_empty_folder_is_refused(release, tmp_path):
    with pytest.raises(SystemExit, match="make book"):
        release.files(tmp_path)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_restrict_permissions(path):
    """Actions are pinned by commit, permissions are read-only by default, and each write permission has a reason."""
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (.+)", text)
    assert {bool(re.fullmatch(r"\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)) for action in actions} == {True}
    workflow = YAML(typ="safe", pure=True).load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert {"read", "write"}.issuperset(job["permissions"].values())
    assert all("#" in line for line in text.splitlines() if line.strip().endswith("write"))


def test_a_release_verifies_builds_and_packs_in_this_order():
    """Only the job that creates the release may write."""
    jobs = YAML(typ="safe", pure=True).load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))[
        "jobs"
    ]
    order = [
        "make verify",
        "make book",
        "git diff --exit-code",
        "--require-hashes -r .ci/release.lock",
        ".ci/release.py",
    ]
    run = "\n".join(step.get("run", "") for step in jobs["pack"]["steps"])
    assert re.findall("|".join(map(re.escape, order)), run) == order
    assert jobs["pack"]["permissions"] == {"contents": "read"}
    assert jobs["offer"]["needs"] == "pack"
