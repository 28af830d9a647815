"""A checkout that was moved or copied with its environment: `make` makes the environment again."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("Makefile", "requirements.lock", "requirements-weights.lock", "pyproject.toml", "companion/pyproject.toml")


@pytest.fixture
def checkout(tmp_path):
    """A folder with the Makefile and an environment as `make` leaves it; the folder's name has a space."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    binaries = folder / ".venv/bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "companion").write_text(f"#!/bin/sh\n'''exec' \"{binaries}/python\" \"$0\" \"$@\"\n' '''\n")
    (folder / ".venv/.installed").touch()
    return folder


def is_made_again(folder, *arguments):
    """Return whether `make` would make the environment; nothing is run."""
    command = ["make", "--dry-run", "--no-print-directory", "check", *arguments]
    output = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert ("-m venv .venv" in output) == ("rm -rf .venv" in output) == ("It is made again" in output)
    return "-m venv .venv" in output


def interpreter(folder, version):
    """Write a program that answers as a Python of this version."""
    path = folder.parent / "python"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return f"PYTHON={path}"


def test_an_environment_in_its_place_is_kept(checkout):
    assert not is_made_again(checkout)
    assert not is_made_again(checkout, interpreter(checkout, sys.version.split()[0]))


def test_the_environment_of_a_moved_or_copied_checkout_is_made_again(checkout):
    """That of the copy would run the code of the original."""
    copy = Path(shutil.copytree(checkout, checkout.parent / "copy", symlinks=True))
    assert is_made_again(copy)
    assert not is_made_again(checkout)
    assert is_made_again(checkout.rename(checkout.parent / "moved"))


def test_an_environment_of_another_python_is_made_again(checkout):
    """If `make PYTHON=...` asks for another version, or if the Python is gone."""
    assert is_made_again(checkout, interpreter(checkout, "3.99.0"))
    (checkout / ".venv/bin/python").unlink()
    (checkout / ".venv/bin/python").symlink_to(checkout / "gone")
    assert is_made_again(checkout)


def test_code_of_another_checkout_is_reported(clone):
    """A command of a copied environment runs the package of the original."""
    own = "companion/src/companion"
    clone.environment["PYTHONPATH"] = str((ROOT / own).parent)
    command = ("-P", "-m", "companion", "list")
    finished = clone.python(*command)
    assert (finished.returncode, finished.stderr) == (0, "")  # this book has no package `companion`
    clone.write("companion/src/companion/__init__.py", "")
    finished = clone.python(*command)
    assert finished.returncode == 0, finished.stderr
    assert f"Note: {ROOT / own} runs, and not {clone.root.resolve() / own}." in finished.stderr
