"""What `make` does about an environment: it makes a missing, incomplete, moved or outdated one."""

import os
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
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
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


# Answers as a Python of the version {version}. An environment that it makes contains a copy of it instead of a Python.
# A call of pip logs $PIP_USER and ends with {status}.
INTERPRETER = """\
#!/bin/sh
case "$*" in
  -c*) echo {version} ;;
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  "-m pip install"*) echo "$PIP_USER" >> pip.log; exit {status} ;;
esac
"""


def interpreter(folder, version, status=0):
    """Write a program that answers as a Python of this version."""
    path = folder.parent / "python"
    path.write_text(INTERPRETER.format(version=version, status=status))
    path.chmod(0o755)
    return f"PYTHON={path}"


def make_environment(folder, python):
    """Make the environment with this Python, without uv, for a user whose pip installs into the home folder."""
    command = ["make", "UV=", python, ".venv/.installed"]
    environment = {**os.environ, "PIP_USER": "1"}
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, env=environment)


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
    assert is_made_again(checkout)


def test_an_incomplete_environment_is_made_again(checkout):
    """A failed installation leaves one; the message names what Python 3.14 needs."""
    finished = make_environment(checkout, interpreter(checkout, "3.14.0", status=1))
    assert finished.returncode == 2
    assert "With Python 3.14 one of them, immutables, is compiled" in finished.stderr
    assert not (checkout / ".venv/.installed").exists()
    (checkout / ".venv/from-the-first-try").touch()
    finished = make_environment(checkout, interpreter(checkout, "3.14.0"))
    assert finished.returncode == 0, finished.stderr
    assert (checkout / ".venv/.installed").exists()
    assert not (checkout / ".venv/from-the-first-try").exists()
    assert set((checkout / "pip.log").read_text().split()) == {"0"}  # pip refuses $PIP_USER in an environment


@pytest.mark.parametrize("version", ["3.10.13", "3.15.0", None])
def test_a_python_that_cannot_be_used_is_named(checkout, version):
    """Also one that cannot be run, as a program of pyenv that is not active; the environment is kept."""
    python = interpreter(checkout, version) if version else "PYTHON=python-not-here"
    finished = make_environment(checkout, python)
    assert finished.returncode == 2
    reason = f"{python.removeprefix('PYTHON=')} {f'is {version}' if version else 'cannot be run'}"
    assert f"Python 3.11, 3.12, 3.13 or 3.14 is needed, and {reason}. Name another: make PYTHON=" in finished.stderr
    assert (checkout / ".venv/.installed").exists()


# Logs its arguments; the first call fails with the error in FAILURE.
APT = """\
#!/bin/sh
echo "$@" >> "$LOG"
if [ "$(wc -l < "$LOG")" -eq 1 ]; then echo "$FAILURE" >&2; exit 100; fi
"""
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (unattended-upgr)"


@pytest.mark.parametrize(
    ("failure", "updates"),
    [(LOCKED, 2), ("E: Failed to fetch http://deb.example/dists/InRelease", 1)],
    ids=["locked", "offline"],
)
def test_automatic_updates_that_hold_the_package_lock_are_waited_for(tmp_path, failure, updates):
    """`update` takes a lock that has no timeout, so it is repeated, but only if the lock is the reason."""
    (tmp_path / "apt-get").write_text(APT)
    (tmp_path / "apt-get").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LOG": str(tmp_path / "log"), "FAILURE": failure}
    command = ["bash", ROOT / "tools/apt-install", "one", "two"]
    subprocess.run(command, check=True, env=environment | {"APT_INSTALL_PAUSE": "0"})
    *update, install = (tmp_path / "log").read_text().splitlines()
    assert update == ["update -qq"] * updates
    assert install == "-o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends one two"


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
