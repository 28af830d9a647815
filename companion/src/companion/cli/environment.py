"""Variables of the user's environment that would stop the packages with which a command computes and draws."""

import getpass
import os
from contextlib import suppress
from pathlib import Path

from companion.io.errors import UserError
from companion.project.paths import Project


def prepare() -> None:
    """Replace such variables, also for the processes that this one starts.

    Raises:
      UserError: if a variable has a value that only the user can correct.
    """
    os.environ["MPLBACKEND"] = "agg"  # a terminal in Jupyter names a backend that may not be installed here
    date = os.environ.get("SOURCE_DATE_EPOCH")
    if date is not None and not date.isdecimal():
        raise UserError(
            "SOURCE_DATE_EPOCH must be a number of seconds, because IPython, Sphinx and Matplotlib read it. "
            f"Got {date!r}. Correct it, or unset it."
        )
    try:
        getpass.getuser()
    except (KeyError, OSError):  # Snakemake asks for the name, and a user of a container may have none
        os.environ["LOGNAME"] = f"user-{os.getuid()}"
    with suppress(UserError, OSError):  # there is no book here, or it cannot be written either
        _give_folders(Project.here().cache)


def _give_folders(cache: Path) -> None:
    """Name folders below `cache` for the files of Jupyter and Matplotlib, if the user has no home folder for them.

    A container may run as a user without a name. In an unwritable home folder Matplotlib prints a message, which the
    page of a notebook would show.
    """
    try:
        home = Path.home()
    except RuntimeError:
        home = cache / "home"
        home.mkdir(parents=True, exist_ok=True)
        os.environ["HOME"] = str(home)
    usual = [home, home / ".config/matplotlib", home / ".cache/matplotlib"]
    if not any(folder.is_dir() and os.access(folder, os.W_OK) for folder in usual):
        os.environ.setdefault("MPLCONFIGDIR", str(cache / "matplotlib"))
