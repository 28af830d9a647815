"""What the machine must know of a book: the `[tool.companion]` table of its `pyproject.toml`.

The table is in the checkout, and the wheel of a book contains a copy inside the chapters package, so that a notebook
finds it wherever the wheel is installed.
"""

import functools
import importlib
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from companion.io.errors import UserError, did_you_mean

FILE = "pyproject.toml"
TABLE = "[tool.companion]"


@dataclass(frozen=True)
class Settings:
    """One book's table. Functions are named as `module:function`.

    `chapters`: the package with a folder a notebook. `science`: the packages whose sources decide numbers, chapters
    among them. `context`: called once before anything is computed, for example to open double precision. `device`:
    says in words what computes. `report`: the distributions whose versions are recorded with every run. `statements`:
    the file that lists the statements of the papers and where each was read, for a book that keeps such a list.
    `hours_a_step`: how long one cell of a notebook may take before its run is ended, for one that hangs. `live`: under
    which figures stands which one that moves, as `notebook/figure`, from a chapter with scripts. `api`: the packages,
    or modules, of which every public name is explained on some page by `{companion-api}`; a build misses what is not.
    `preload`: packages of others that a build of several notebooks imports once for all their kernels. `compute`:
    distributions whose versions can change a number, besides the needs of the book's `[project.dependencies]`.
    """

    chapters: str
    science: tuple[str, ...]
    context: str | None = None
    device: str | None = None
    report: tuple[str, ...] = ()
    statements: str | None = None
    hours_a_step: float = 24.0
    live: Mapping[str, str] = field(default_factory=dict)
    api: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()
    compute: tuple[str, ...] = ("pandas",)

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """The table in `path`, or a `UserError` that says what is wrong with it."""
        return _read(path, path.stat().st_mtime_ns)

    @classmethod
    def of_package(cls, package: str) -> "Settings":
        """The table of the book whose chapters are `package`, imported already: from its checkout, else its wheel."""
        folder = Path(str(sys.modules[package].__file__)).parent
        for place in (folder.parent / FILE, folder / FILE):
            if has_table(place):
                return cls.read(place)
        raise UserError(
            f"The package `{package}` stands in {folder.parent}, and neither there nor in it is a {FILE} with a table "
            f"{TABLE}, which says what the book's notebooks need."
        )

    def open_context(self) -> None:
        """Call the book's `context`, if it has one."""
        if self.context:
            function(self.context)()

    def device_in_words(self) -> str | None:
        """Return the text of the book's `device`, if it has one."""
        return str(function(self.device)()) if self.device else None


def has_table(path: Path) -> bool:
    """Whether `path` is a file with a `[tool.companion]` table."""
    return path.is_file() and TABLE in path.read_text(encoding="utf-8").splitlines()


def function(name: str) -> Callable[[], Any]:
    """The function that `module:function` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


@functools.cache
def _read(path: Path, _modified: int) -> Settings:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["companion"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise UserError(f"{path} needs a table {TABLE} that says what the book is made of ({error!r}).") from error
    known = {
        "chapters": str,
        "science": list,
        "context": str,
        "device": str,
        "report": list,
        "statements": str,
        "hours_a_step": (int, float),
        "live": dict,
        "api": list,
        "preload": list,
        "compute": list,
    }
    for name, value in table.items():
        if name not in known:
            raise UserError(f"{path}: {TABLE} has no entry {name!r}. {did_you_mean(name, known)}")
        if not isinstance(value, known[name]):
            kind = {str: "text", list: "a list of texts", dict: "a table of figures"}.get(known[name], "a number")
            raise UserError(f"{path}: `{name}` in {TABLE} is {kind}. Got {value!r}.")
    if table.get("hours_a_step", 1) <= 0:
        raise UserError(f"{path}: `hours_a_step` in {TABLE} is above 0. Got {table['hours_a_step']!r}.")
    if "chapters" not in table:
        raise UserError(f"{path}: {TABLE} needs `chapters`, the package with a folder a notebook.")
    science = tuple(dict.fromkeys([*table.get("science", []), table["chapters"]]))
    lists = {"science": science, **{name: tuple(table.get(name, [])) for name in ("report", "api", "preload")}}
    if "compute" in table:
        lists["compute"] = tuple(table["compute"])
    return Settings(**{**table, **lists})
