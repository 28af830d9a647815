"""The fixtures of `small_books`; sites are built by forks of the process of the tests, which has imported Sphinx."""

import importlib
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO

from companion.io import startup

startup.skip_unused_formats()  # before a test imports jsonschema

import pytest  # noqa: E402

from companion.build import fork_server  # noqa: E402
from companion.site import jupyter_book  # noqa: E402
from small_books import *  # noqa: E402, F403
from small_books import forget_modules  # noqa: E402

# What Jupyter Book imports for the site of a book.
PACKAGES = ("jupyter_book.cli.main", "jupyter_book.sphinx", "myst_nb.sphinx_ext", "sphinx_book_theme", "sphinx_proof")
PACKAGES += ("sphinx_togglebutton", "sphinxcontrib.bibtex", "companion.site.sphinx", "companion.figures.thumbnails")


def build_in_fork(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[str], **_: object
) -> subprocess.CompletedProcess[str]:
    """Build a site as `jupyter_book` does with `subprocess.run`."""
    for package in PACKAGES:
        importlib.import_module(package)
    child = os.fork()
    if not child:
        _become(command[len(jupyter_book.JUPYTER_BOOK) :], cwd, env, stdout)
    return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _become(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: IO[str]) -> None:
    """Run Jupyter Book and end this process."""
    code = 1
    try:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        sys.stdout = sys.stderr = os.fdopen(1, "w", encoding="utf-8", buffering=1)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
        sys.argv, sys.dont_write_bytecode = ["jupyter-book", *arguments], True
        forget_modules(folder)
        startup.collect_seldom()
        importlib.import_module("jupyter_book.cli.main").main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


@pytest.fixture(scope="session", autouse=True)
def _forked_sites() -> Iterator[None]:
    """Build sites in forks, unless a test starts a command that builds them."""
    with pytest.MonkeyPatch.context() as patch:
        if fork_server.can_be():
            patch.setattr(jupyter_book, "subprocess", SimpleNamespace(run=build_in_fork, STDOUT=subprocess.STDOUT))
        yield
