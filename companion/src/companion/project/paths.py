"""The paths of a book and of its build. No other module of `companion` spells out a path."""

import importlib
import os
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
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
# The folder in that of OUT with the published pictures, which are copied where the same code drew the same numbers.
DRAWN = "drawn"
# The MIME type of the output that refers to a published figure.
MIME = "application/vnd.companion.figure+json"


class Below:
    """A path below another path of the same object."""

    def __init__(self, folder: str, name: str):
        self.folder, self.name = folder, name

    def __get__(self, instance: Any, _owner: type | None = None) -> Path:
        return getattr(instance, self.folder) / self.name


@dataclass(frozen=True)
class Project:
    """The checkout of a book, given by its root folder."""

    root: Path

    # The sources of pages and notebooks.
    book = Below("root", "book")
    # The profiles, one YAML file each.
    profiles = Below("root", "profiles")
    # The published figures, which are tracked.
    published = Below("root", "figures")
    # The versions and hashes of all dependencies.
    lock = Below("root", "requirements.lock")
    # All generated, untracked files.
    generated = Below("root", "_build")
    # Files that decide no number and are slow to make, such as compiled programs. A book's `context` may write to it.
    cache = Below("generated", "cache")
    # The custom runs; each is a build, named `<notebook>[-<figure>]-<digest>`.
    runs = Below("generated", "runs")
    # The results of sweeps, named `<notebook>-<parameters>`.
    sweeps = Below("generated", "sweeps")
    # The copy of the book in which `companion verify` recomputes the published figures.
    verified = Below("generated", "verify")

    @classmethod
    def here(cls) -> "Project":
        """Return the checkout that contains the working folder, or else the one this package was installed from.

        Raises:
          UserError: if neither is the checkout of a book.
        """
        start = Path.cwd()
        for folder in (start, *start.parents, *Path(__file__).resolve().parents[4:5]):
            if (folder / MARK).is_file() and has_table(folder / FILE):
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
        if (own := self.root / SOURCES / "companion").is_dir():
            folders["companion"] = own
        return dict(sorted(folders.items()))

    @property
    def search_path(self) -> list[str]:
        """The folders of this checkout in which Python finds its packages."""
        return list(dict.fromkeys([str(self.root), *(str(folder.parent) for folder in self.packages.values())]))

    def import_module(self, name: str) -> ModuleType:
        """Import and return a module of the book from this checkout; the book need not be installed."""
        self.make_importable()
        return importlib.import_module(name)

    def make_importable(self) -> None:
        """Put this checkout at the beginning of Python's search path, before the folders of PYTHONPATH."""
        own = self.search_path
        if sys.path[: len(own)] != own:
            sys.path[:0] = own

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

    def notebook(self, name: str) -> Path:
        """Return the path of the source of notebook `name`."""
        return self.book / f"{name}.ipynb"

    def notebooks(self) -> list[str]:
        """Return the names of all notebooks in the table of contents, in its order.

        Other notebooks in the folder of the book, for example `Untitled.ipynb`, do not belong to the book.
        """
        pages = dict.fromkeys(_pages(read_yaml(self.root / CONTENTS)))
        entries = os.scandir(self.book) if self.book.is_dir() else ()
        files = {entry.name for entry in entries if entry.is_file()}
        places = [page.rpartition("/") for page in pages]
        return [name for folder, _, name in places if folder == self.book.name and f"{name}.ipynb" in files]

    def unlisted_notebooks(self) -> list[str]:
        """Return the names of the notebooks in the folder of the book that are not in the table of contents."""
        listed = set(self.notebooks())
        return [path.stem for path in visible(self.book, "*.ipynb") if path.stem not in listed]

    def why_ignored(self, name: str) -> str:
        """Return why a notebook of `unlisted_notebooks` is ignored, and the correction."""
        place = f"{self.book.name}/{name}"
        return (
            f"{place}.ipynb is not in the table of contents and is ignored. Add `- file: {place}` to {CONTENTS}, or "
            "remove the notebook."
        )

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

    # The figures, `<notebook>/<figure>.{svg,png,csv,json}`.
    figures = Below("folder", "figures")
    # The unrounded tables and their records, `<notebook>/<figure>.{csv,json}`.
    tables = Below("folder", "tables")
    # The executed notebooks.
    executed = Below("folder", "executed")
    # The executed notebooks for readers, with the current prose and pictures.
    notebooks = Below("folder", "notebooks")
    # The executed notebooks whose runs were not accepted.
    failed = Below("folder", "failed")
    # The stamp files, `<target>.<cache key>.json`. One exists exactly if the target was built from the content that the
    # key identifies.
    stamps = Below("folder", "keys")
    # The contents of the last keys, part by part: `<target>.json`.
    made_of = Below("folder", "made_of")
    # The results of tasks, `<notebook>.<cache key>/<task>.npz`.
    tasks = Below("folder", "tasks")
    # What runs write before they are accepted. It is on the same file system as the build, so that accepting a run
    # renames a folder.
    staging = Below("folder", ".staging")
    # The lock files, one per notebook.
    locks = Below("folder", ".locks")
    # The file that exists from the start of a site build until the build succeeds.
    site_begun = Below("folder", ".site-begun")
    # The specification of a custom run.
    run_spec = Below("folder", "run.json")
    # The report of a custom run, a page that compares its figures with the published ones.
    page = Below("folder", "index.html")
    # A copy of the published pictures, so that the report can be moved or sent.
    published_copy = Below("folder", "published")


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


def _pages(contents: Any) -> Iterator[str]:
    """Yield every page that a table of contents names, without suffix, in order."""
    if isinstance(contents, dict):
        for key, value in contents.items():
            yield from [value.removesuffix(".ipynb")] if key in ("root", "file") else _pages(value)
    elif isinstance(contents, list):
        for part in contents:
            yield from _pages(part)


def relative(path: Path, root: Path) -> str:
    """Return `path` relative to `root` with forward slashes, the form in tracked files."""
    return Path(os.path.relpath(path, root)).as_posix()
