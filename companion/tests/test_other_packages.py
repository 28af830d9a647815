"""Packages of the same name elsewhere, on PYTHONPATH or in another environment: the book's own are used."""

import os
import sys

import pytest

from companion.io.errors import UserError
from companion.project.paths import Project


def with_path(clone, *folders):
    clone.environment["PYTHONPATH"] = os.pathsep.join([*map(str, folders), clone.environment["PYTHONPATH"]])


def test_another_package_of_the_same_name_on_the_path_is_not_used(clone, tmp_path):
    """Its folder comes first in PYTHONPATH, and it has no chapter `toy`."""
    (tmp_path / "other/clone").mkdir(parents=True)
    (tmp_path / "other/clone/__init__.py").touch()
    with_path(clone, tmp_path / "other")
    finished = clone.python("-P", "-m", "companion", "run", "toy")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("module", ["clone", "clone.toy.parameters"])
def test_another_package_that_was_imported_is_named(clone, tmp_path, monkeypatch, module):
    """The error names its file and PYTHONPATH, and asks for no class."""
    other = tmp_path / "other"
    (other / "clone").mkdir(parents=True)
    (other / "clone/__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(other))
    monkeypatch.syspath_prepend(other)
    __import__("clone")
    with pytest.raises(UserError) as caught:
        clone.project.import_module(module)
    assert str(other / "clone/__init__.py") in str(caught.value)
    assert f"PYTHONPATH is {other}" in str(caught.value)


def test_own_packages_are_imported_from_a_folder_behind_a_link(clone, tmp_path):
    (tmp_path / "link").symlink_to(clone.root)
    assert Project(tmp_path / "link").import_module("clone.toy.parameters").Parameters


def test_packages_of_another_active_environment_are_not_used(clone, tmp_path):
    """IPython would put the packages of the environment in VIRTUAL_ENV before all others; its kernel does not."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = tmp_path / "other project/.venv/lib" / version / "site-packages"
    (packages / "numpy").mkdir(parents=True)
    (packages / "numpy/__init__.py").write_text("raise RuntimeError('the package of another project')\n")
    clone.environment["VIRTUAL_ENV"] = str(tmp_path / "other project/.venv")
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
