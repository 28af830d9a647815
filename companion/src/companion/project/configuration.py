"""The configuration of a book: the table `[tool.companion]` of its `pyproject.toml`.

The table is in the checkout, and the wheel of a book contains a copy inside the chapters package, so that a notebook
finds it wherever the wheel is installed.
"""

import functools
import importlib
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from companion.io.errors import UserError, did_you_mean

FILE = "pyproject.toml"
TABLE = "[tool.companion]"

# TOML has lists, and a frozen table has none.
Texts = Annotated[tuple[str, ...], Field(strict=False)]


class Settings(BaseModel):
    """The table `[tool.companion]` of one book. An entry names a function as `module:function`."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    chapters: str = Field(description="the package with one folder per notebook")
    science: Texts = Field((), description="the packages whose sources decide numbers, besides the chapters")
    inputs: Texts = Field(
        (),
        description="other files and folders of the book that computations read, data or modules",
    )
    context: str | None = Field(None, description="a function that is called once before anything is computed")
    device: str | None = Field(None, description="a function that returns the name of the computing device")
    report: Texts = Field((), description="the distributions whose versions are recorded with every run")
    statements: str | None = Field(None, description="the file that lists the statements of the papers")
    hours_a_step: float = Field(24.0, gt=0, description="the hours after which a cell counts as hanging and is stopped")
    live: dict[str, str] = Field(
        default_factory=dict,
        description="for a `notebook/figure`, the interactive figure that its page also shows",
    )
    terms: dict[str, str] = Field(
        default_factory=dict,
        description="for a term, its definition, to which chapters link: the label of a theorem box, or `page#anchor`",
    )
    api: Texts = Field((), description="the packages or modules whose public names `{companion-api}` must explain")
    preload: Texts = Field((), description="packages that a build of several notebooks imports once for all kernels")
    costs: dict[str, str] = Field(
        default_factory=dict,
        description="for a profile, a table of what its notebooks cost elsewhere: `notebook`, `core minutes` and "
        "optionally `memory`",
    )
    compute: Texts = Field(
        ("pandas",),
        description="distributions whose versions can change a number, besides the needs of `[project.dependencies]`",
    )

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """Return the table in `path`. Raise a `UserError` that names the first wrong entry."""
        return _read(path, path.stat().st_mtime_ns)

    @classmethod
    def of_package(cls, package: str) -> "Settings":
        """Return the table of the book whose chapters are the imported package `package`.

        The table is read from the book's checkout, or, if the book was installed from a wheel, from the wheel's copy.

        Raises:
          UserError: if neither file exists.
        """
        folder = Path(str(sys.modules[package].__file__)).parent
        for path in (folder.parent / FILE, folder / FILE):
            if has_table(path):
                return cls.read(path)
        raise UserError(
            f"The package `{package}` has no table {TABLE}, which configures a book: there is no {FILE} with this "
            f"table in {folder.parent} or {folder}."
        )

    def open_context(self) -> None:
        """Call the book's `context`, if it has one."""
        if self.context:
            function(self.context)()

    def device_in_words(self) -> str | None:
        """Return the text of the book's `device`, if it has one."""
        return str(function(self.device)()) if self.device else None


def has_table(path: Path) -> bool:
    """Return whether `path` is a file with a `[tool.companion]` table."""
    return path.is_file() and TABLE in path.read_text(encoding="utf-8").splitlines()


def function(name: str) -> Callable[[], Any]:
    """Import and return the function that `module:function` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


@functools.cache
def _read(path: Path, _modified: int) -> Settings:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["companion"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise UserError(f"{path} needs a table {TABLE}, which configures the book. Got {error!r}.") from error
    try:
        settings = Settings.model_validate(table)
    except ValidationError as error:
        raise UserError(f"{path}: {_explain(error)}") from error
    return settings.model_copy(update={"science": tuple(dict.fromkeys([*settings.science, settings.chapters]))})


def _explain(error: ValidationError) -> str:
    """Return a sentence about the first wrong entry, about an unknown one before any other."""
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"{TABLE} has no entry {name!r}. {did_you_mean(name, Settings.model_fields)}"
    description = Settings.model_fields[name].description
    return f"`{name}` in {TABLE} is wrong: {first['msg']}. It is {description}. Got {first['input']!r}."
