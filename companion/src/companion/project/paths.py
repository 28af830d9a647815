"""The paths of a book and of its build. No other module of `companion` spells out a path."""

import importlib
import os
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import read_yaml
from companion.project.configuration import FILE, Settings, has_table

# The build graph of every book.
WORKFLOW = Path(__file__).resolve().parents[1] / "build" / "workflow.smk"

# Where the checkout of a book contains the sources of this package, if it does.
SOURCES = Path("companion", "src")

DEFAULT_PROFILE = "laptop"
MARK = "_config.yml"
# The table of contents of Jupyter Book.
CONTENTS = "_toc.yml"
# How to cite the book.
CITATION = "CITATION.cff"

# Environment variables of a kernel: the folder to publish to, its notebook, the profile, and the folder for files that
# are slow to make again, such as compiled programs.
OUT, NOTEBOOK, PROFILE, CACHE = "COMPANION_OUT", "COMPANION_NOTEBOOK", "COMPANION_PROFILE", "COMPANION_CACHE"
# The MIME type of the output that refers to a published figure.
MIME = "application/vnd.companion.figure+json"


@dataclass(frozen=True)
class Project:
    """The checkout of a book, given by its root folder."""

    root: Path

    @classmethod
    def here(cls) -> "Project":
        """Return the checkout that contains the working folder, or else the one this package was installed from.

        Raises:
          UserError: if neither is the checkout of a book.
        """
        start = Path.cwd()
        for folder in (start, *start.parents, *Path(__file__).resolve().parents[4:5]):
            if (folder / MARK).is_file() and has_table(folder / FILE):
                _require_utf8(folder)
                return cls(folder)
        raise UserError(
            f"`companion` must run inside a clone of a book (a folder with {MARK} and a {FILE} with a table "
            f"[tool.companion]). Got {start}. A notebook runs without a clone: papermill NOTEBOOK.ipynb OUT.ipynb"
        )

    @property
    def settings(self) -> Settings:
        """The book's table `[tool.companion]`."""
        return Settings.read(self.root / FILE)

    @property
    def metadata(self) -> dict[str, Any]:
        """The table `[project]` of the book: the metadata of its distribution."""
        return tomllib.loads((self.root / FILE).read_text(encoding="utf-8"))["project"]

    @property
    def packages(self) -> dict[str, Path]:
        """The folders of the packages in this checkout, which are installed together, by package."""
        folders = {name: self.root / name for name in self.settings.science}
        own = {"companion": self.root / SOURCES / "companion"}
        return dict(sorted({**folders, **{name: path for name, path in own.items() if path.is_dir()}}.items()))

    @property
    def search_path(self) -> list[str]:
        """The folders of this checkout in which Python finds its packages."""
        return list(dict.fromkeys([str(self.root), *(str(folder.parent) for folder in self.packages.values())]))

    def import_module(self, name: str) -> ModuleType:
        """Import and return a module of the book from this checkout; the book need not be installed.

        Raises:
          UserError: if Python has imported the package of the module from another folder.
        """
        self.make_importable()
        package = name.partition(".")[0]
        try:
            module = importlib.import_module(name)
        except ImportError:
            self._require_own(package)
            raise
        self._require_own(package)
        return module

    def make_importable(self) -> None:
        """Put this checkout at the beginning of Python's search path, before the folders of PYTHONPATH."""
        own = self.search_path
        if sys.path[: len(own)] != own:
            sys.path[:0] = own

    def _require_own(self, package: str) -> None:
        """Raise a `UserError` if this checkout has a package that Python has imported from another folder."""
        module = sys.modules.get(package)
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        imported = next((Path(place) for place in places if place), None)
        own = self.packages.get(package, self.root / package)
        if imported is None or not own.is_dir() or imported.resolve().is_relative_to(own.resolve()):
            return
        path = os.environ.get("PYTHONPATH")
        raise UserError(
            f"Python has imported another package `{package}`, {imported}, and not {own}. "
            + (f"PYTHONPATH is {path}: remove the folder of the other package from it." if path else "")
            + " Then start a new process."
        )

    def figure_module(self, name: str, figure: str) -> str:
        """Return the dotted name of the module of a figure: `chapters.<notebook>.figures.<figure>`."""
        return f"{self.settings.chapters}.{name}.figures.{figure}"

    def figure_file(self, name: str, figure: str) -> Path:
        """Return the path of the module of a figure."""
        return self.chapter(name) / "figures" / f"{figure}.py"

    def chapter(self, name: str) -> Path:
        """Return the folder with the code and the data of notebook `name`."""
        return self.root / self.settings.chapters / name

    def page_folder(self, name: str) -> Path:
        """Return the folder with the scripts and styles for the page of notebook `name`; most chapters have none."""
        return self.chapter(name) / "page"

    def page_files(self, name: str) -> list[Path]:
        """Return the files in `page_folder(name)`, sorted by name."""
        return visible(self.page_folder(name), "**/*")

    @property
    def book(self) -> Path:
        """The folder of the sources of pages and notebooks."""
        return self.root / "book"

    @property
    def profiles(self) -> Path:
        """The folder of the profiles, one YAML file each."""
        return self.root / "profiles"

    @property
    def published(self) -> Path:
        """The folder of the published figures, which are tracked."""
        return self.root / "figures"

    @property
    def generated(self) -> Path:
        """The folder of all generated, untracked files."""
        return self.root / "_build"

    @property
    def cache(self) -> Path:
        """The folder for files that decide no number and are slow to make, such as compiled programs.

        A book's `context` may write to it.
        """
        return self.generated / "cache"

    @property
    def runs(self) -> Path:
        """The folder of the custom runs; each is a build, named `<notebook>[-<figure>]-<digest>`."""
        return self.generated / "runs"

    @property
    def sweeps(self) -> Path:
        """The folder of the results of sweeps, named `<notebook>-<parameters>`."""
        return self.generated / "sweeps"

    @property
    def verified(self) -> Path:
        """The copy of the book in which `companion verify` recomputes the published figures."""
        return self.generated / "verify"

    @property
    def lock(self) -> Path:
        """The lock file with the versions and hashes of all dependencies."""
        return self.root / "requirements.lock"

    def notebook(self, name: str) -> Path:
        """Return the path of the source of notebook `name`."""
        return self.book / f"{name}.ipynb"

    def notebooks(self) -> list[str]:
        """Return the names of all notebooks in the table of contents, in its order.

        Other notebooks in the folder of the book, for example `Untitled.ipynb`, do not belong to the book. Without a
        table of contents all do, sorted by name.
        """
        names = sorted(path.stem for path in visible(self.book, "*.ipynb"))
        positions = self._positions(names)
        return names if positions is None else sorted(positions, key=positions.__getitem__)

    def unlisted_notebooks(self) -> list[str]:
        """Return the names of the notebooks in the folder of the book that are not in the table of contents."""
        listed = set(self.notebooks())
        return [path.stem for path in visible(self.book, "*.ipynb") if path.stem not in listed]

    def why_ignored(self, name: str) -> str:
        """Return why a notebook of `unlisted_notebooks` is ignored, and the correction."""
        place = f"{self.book.name}/{name}"
        composed = unicodedata.normalize("NFC", name)
        if self._positions([composed]):
            return (
                f"The name of {place}.ipynb has other Unicode characters than its row in {CONTENTS}, which look the "
                f"same (a letter and a separate accent, as macOS writes them). Rename it to {composed!a}."
            )
        return (
            f"{place}.ipynb is not in the table of contents and is ignored. Add `- file: {place}` to {CONTENTS}, or "
            "remove the notebook."
        )

    def _positions(self, names: Iterable[str]) -> dict[str, int] | None:
        """Return the positions of the listed ones of `names` in the table of contents, or None if there is none."""
        if not (self.root / CONTENTS).is_file():
            return None
        pages = list(_pages(read_yaml(self.root / CONTENTS)))
        positions: dict[str, int] = {}
        for name in names:
            place = f"{self.book.name}/{name}"
            matching = (i for i, (page, is_pattern) in enumerate(pages) if _matches(place, page, is_pattern))
            if (position := next(matching, None)) is not None:
                positions[name] = position
        return positions

    def require_configuration(self) -> None:
        """Raise a `UserError` if the configuration or the table of contents of Jupyter Book is not a mapping."""
        for name in (MARK, CONTENTS):
            if not isinstance(read_yaml(self.root / name), dict):
                raise UserError(f"{self.root / name} must be a mapping, with one `name: value` per line.")

    def require_notebook(self, name: str) -> None:
        """Raise a `UserError` that lists the known notebooks if notebook `name` does not exist."""
        if name not in self.notebooks():
            unlisted = name in self.unlisted_notebooks()
            reason = self.why_ignored(name) if unlisted else did_you_mean(name, self.notebooks())
            raise UserError(f"There is no notebook {name!r}. {reason}")

    def profile_names(self) -> list[str]:
        """Return the names of all profiles: the default, which overrides nothing, and one per file in profiles/."""
        return [DEFAULT_PROFILE, *sorted(path.stem for path in visible(self.profiles, "*.yml"))]

    def require_profile(self, profile: str) -> None:
        """Raise a `UserError` that lists the known profiles if `profile` does not exist."""
        if profile not in self.profile_names():
            raise UserError(f"There is no profile {profile!r}. {did_you_mean(profile, self.profile_names())}")

    def data(self, name: str) -> Path:
        """Return the folder of the datasets of notebook `name`."""
        return self.chapter(name) / "data"

    def build(self, profile: str) -> "Build":
        """Return the paths of the build of `profile`."""
        return Build(self.generated / profile, self.generated / "provenance" / profile)

    def custom_build(self, name: str) -> "Build":
        """Return the paths of a custom run, given the name of its folder."""
        return Build(self.runs / name, self.runs / name / "provenance")

    def site(self, profile: str) -> Path:
        """Return the folder to which Jupyter Book writes the pages of `profile`."""
        return self.site_output(profile) / "_build" / "html"

    def site_output(self, profile: str) -> Path:
        """Return the argument of `jupyter-book build --path-output`; the default profile uses Jupyter Book's folder."""
        return self.root if profile == DEFAULT_PROFILE else self.generated / profile / "site"

    def shown_figures(self, profile: str) -> Path:
        """Return the folder of the figures that the site of `profile` shows.

        The default profile shows the published figures; another profile shows the figures of its build.
        """
        return self.published if profile == DEFAULT_PROFILE else self.build(profile).figures


@dataclass(frozen=True)
class Build:
    """The paths of one build: the runs of a profile, or one custom run."""

    folder: Path
    provenance: Path

    @property
    def figures(self) -> Path:
        """The folder of the figures, `<notebook>/<figure>.{svg,png,csv,json}`."""
        return self.folder / "figures"

    @property
    def tables(self) -> Path:
        """The folder of the unrounded tables and their records, `<notebook>/<figure>.{csv,json}`."""
        return self.folder / "tables"

    @property
    def executed(self) -> Path:
        """The folder of the executed notebooks."""
        return self.folder / "executed"

    @property
    def notebooks(self) -> Path:
        """The folder of the executed notebooks for readers, with the current prose and pictures."""
        return self.folder / "notebooks"

    @property
    def page(self) -> Path:
        """The report of a custom run, a page that compares its figures with the published ones."""
        return self.folder / "index.html"

    @property
    def published_copy(self) -> Path:
        """The folder with a copy of the published pictures, so that the report can be moved or sent."""
        return self.folder / "published"

    @property
    def failed(self) -> Path:
        """The folder of the executed notebooks whose runs were not accepted."""
        return self.folder / "failed"

    @property
    def stamps(self) -> Path:
        """The folder of the stamp files, `<target>.<cache key>.json`.

        A stamp file exists exactly if the target was built from the content that the key identifies.
        """
        return self.folder / "keys"

    @property
    def made_of(self) -> Path:
        """The folder of the contents of the last keys, part by part: `<target>.json`."""
        return self.folder / "made_of"

    @property
    def run_spec(self) -> Path:
        """The file with the specification of a custom run."""
        return self.folder / "run.json"

    @property
    def tasks(self) -> Path:
        """The folder of the results of tasks, `<notebook>.<cache key>/<task>.npz`."""
        return self.folder / "tasks"

    @property
    def staging(self) -> Path:
        """The folder to which runs write before they are accepted.

        It is on the same file system as the build, so that accepting a run renames a folder.
        """
        return self.folder / ".staging"

    @property
    def site_begun(self) -> Path:
        """The file that exists from the start of a site build until the build succeeds."""
        return self.folder / ".site-begun"

    @property
    def locks(self) -> Path:
        """The folder of the lock files, one per notebook."""
        return self.folder / ".locks"


def visible(folder: Path, pattern: str) -> list[Path]:
    """Return the files below `folder` that match `pattern`, sorted, without those whose path has a leading dot.

    Editors and file systems leave such files next to others: `.#name` (a link to nothing), `._name`,
    `.ipynb_checkpoints/`.
    """
    return sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _pages(contents: Any) -> Iterator[tuple[str, bool]]:
    """Yield every page that a table of contents names, without suffix, and whether it is a pattern."""
    if isinstance(contents, dict):
        for key in ("root", "file", "glob"):
            if isinstance(page := contents.get(key), str):
                yield page.removesuffix(".ipynb"), key == "glob"
    if isinstance(contents, dict | list):
        for value in contents.values() if isinstance(contents, dict) else contents:
            yield from _pages(value)


def _matches(place: str, page: str, is_pattern: bool) -> bool:
    return fnmatchcase(place, page) if is_pattern else place == page


def _require_utf8(folder: Path) -> None:
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise UserError(
            f"The name of the folder {str(folder)!a} must be UTF-8, because records, notebooks and pages are UTF-8. "
            "Rename it."
        ) from None


def relative(path: Path, root: Path) -> str:
    """Return `path` relative to `root` with forward slashes, the form in tracked files."""
    return Path(os.path.relpath(path, root)).as_posix()
