"""Where everything stands. No other module of `companion` spells out a path."""

import importlib
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import read_text, read_yaml
from companion.project.configuration import FILE, Settings, has_table

# The build graph of every book.
WORKFLOW = Path(__file__).resolve().parents[1] / "build" / "workflow.smk"

DEFAULT_PROFILE = "laptop"
MARK = "_config.yml"

# How the runner tells the kernel where to publish, in which profile, and where a book may keep what is slow to make
# again, such as compiled programs; how a published output is known again.
OUT, PROFILE, CACHE = "COMPANION_OUT", "COMPANION_PROFILE", "COMPANION_CACHE"
MIME = "application/vnd.companion.figure+json"


@dataclass(frozen=True)
class Project:
    """A checkout of the companion, by its root folder."""

    root: Path

    @classmethod
    def here(cls) -> "Project":
        """The checkout around the working folder, else the one this package was installed from."""
        start = Path.cwd()
        for folder in (start, *start.parents, Path(__file__).resolve().parents[2]):
            if (folder / MARK).is_file() and has_table(folder / FILE):
                _require_utf8(folder)
                return cls(folder)
        raise UserError(
            f"`companion` works inside a clone of a book (a folder with {MARK} and a {FILE} with a table "
            f"[tool.companion]), and {start} is in none. A notebook runs without it: papermill NOTEBOOK.ipynb OUT.ipynb"
        )

    @property
    def settings(self) -> Settings:
        """What the book's `[tool.companion]` table says."""
        return Settings.read(self.root / FILE)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the book says of itself to those who install packages."""
        return tomllib.loads((self.root / FILE).read_text(encoding="utf-8"))["project"]

    @property
    def packages(self) -> list[str]:
        """The packages of this checkout, which are installed together."""
        own = ["companion"] if (self.root / "companion").is_dir() else []
        return sorted([*own, *self.settings.science])

    def import_module(self, name: str) -> ModuleType:
        """Import a module of the book, from this checkout even where the book is not installed."""
        self.make_importable()
        return importlib.import_module(name)

    def make_importable(self) -> None:
        """Let Python find the book's packages in this checkout."""
        if str(self.root) not in sys.path:
            sys.path.insert(0, str(self.root))

    def figure_module(self, name: str, figure: str) -> str:
        """Return the dotted name of the module of a figure: `chapters.<notebook>.figures.<figure>`."""
        return f"{self.settings.chapters}.{name}.figures.{figure}"

    def figure_file(self, name: str, figure: str) -> Path:
        """Return the path of the module of a figure."""
        return self.chapter(name) / "figures" / f"{figure}.py"

    def chapter(self, name: str) -> Path:
        """The folder with the code and the data of notebook `name`."""
        return self.root / self.settings.chapters / name

    def page_folder(self, name: str) -> Path:
        """Scripts and styles that notebook `name` brings for its page; most chapters have none."""
        return self.chapter(name) / "page"

    def page_files(self, name: str) -> list[Path]:
        """What is in that folder, in the order of the names."""
        return sorted(path for path in self.page_folder(name).rglob("*") if path.is_file())

    @property
    def book(self) -> Path:
        """Pages and notebooks, as people edit them."""
        return self.root / "book"

    @property
    def profiles(self) -> Path:
        """What each profile overrides."""
        return self.root / "profiles"

    @property
    def published(self) -> Path:
        """The tracked figures: what the last published build produced."""
        return self.root / "figures"

    @property
    def generated(self) -> Path:
        """Everything generated and untracked."""
        return self.root / "_build"

    @property
    def cache(self) -> Path:
        """Files that decide no number and are slow to make, such as compiled programs.

        A book's `context` may keep them here.
        """
        return self.generated / "cache"

    @property
    def runs(self) -> Path:
        """`<notebook>[-<figure>]-<digest>/`: custom runs, with other parameters or of one figure; each is a build."""
        return self.generated / "runs"

    @property
    def sweeps(self) -> Path:
        """`<notebook>-<parameters>/`: what runs over several values of parameters came to."""
        return self.generated / "sweeps"

    @property
    def verified(self) -> Path:
        """A copy of the book, in which `companion verify` computes the published figures again."""
        return self.generated / "verify"

    @property
    def lock(self) -> Path:
        """The hash-checked versions of every dependency."""
        return self.root / "requirements.lock"

    def notebook(self, name: str) -> Path:
        """The source of notebook `name`."""
        return self.book / f"{name}.ipynb"

    def notebooks(self) -> list[str]:
        """The names of all notebooks, in the order of the table of contents."""
        contents = self.root / "_toc.yml"
        pages = read_text(contents).split() if contents.is_file() else []
        names = sorted(path.stem for path in self.book.glob("*.ipynb"))
        place = {page: index for index, page in enumerate(pages)}
        return sorted(names, key=lambda name: place.get(f"{self.book.name}/{name}", len(pages)))

    def require_configuration(self) -> None:
        """Refuse a configuration or a table of contents that Jupyter Book could not read, before anything is run."""
        for name in (MARK, "_toc.yml"):
            if not isinstance(read_yaml(self.root / name), dict):
                raise UserError(f"{self.root / name} is not a mapping, `name: value` a line.")

    def require_notebook(self, name: str) -> None:
        """Refuse a notebook that does not exist, naming those that do."""
        if name not in self.notebooks():
            raise UserError(f"There is no notebook {name!r}. {did_you_mean(name, self.notebooks())}")

    def profile_names(self) -> list[str]:
        """`laptop`, which is the parameters cells themselves, and one for every file in profiles/."""
        return [DEFAULT_PROFILE, *sorted(path.stem for path in self.profiles.glob("*.yml"))]

    def require_profile(self, profile: str) -> None:
        """Refuse a profile that does not exist, naming those that do."""
        if profile not in self.profile_names():
            raise UserError(f"There is no profile {profile!r}. {did_you_mean(profile, self.profile_names())}")

    def data(self, name: str) -> Path:
        """Tracked results of runs too long for a laptop."""
        return self.chapter(name) / "data"

    def build(self, profile: str) -> "Build":
        """The generated files of one profile."""
        return Build(self.generated / profile, self.generated / "provenance" / profile)

    def custom_build(self, name: str) -> "Build":
        """The files of a custom run, by the name of its folder."""
        return Build(self.runs / name, self.runs / name / "provenance")

    def site(self, profile: str) -> Path:
        """The folder Jupyter Book writes the pages of `profile` to."""
        return self.site_output(profile) / "_build" / "html"

    def site_output(self, profile: str) -> Path:
        """What `jupyter-book build --path-output` is given: the default profile builds where it would anyway."""
        return self.root if profile == DEFAULT_PROFILE else self.generated / profile / "site"

    def shown_figures(self, profile: str) -> Path:
        """The figures the site of `profile` shows: the published ones by default, else those just built."""
        return self.published if profile == DEFAULT_PROFILE else self.build(profile).figures


@dataclass(frozen=True)
class Build:
    """What runs of one profile left under `_build/`."""

    folder: Path
    provenance: Path

    @property
    def figures(self) -> Path:
        """`<notebook>/<figure>.{svg,dark.svg,png,csv,json}`."""
        return self.folder / "figures"

    @property
    def tables(self) -> Path:
        """`<notebook>/<figure>.{csv,json}`: the unrounded numbers of the figures and their records."""
        return self.folder / "tables"

    @property
    def executed(self) -> Path:
        """Notebooks as kernels left them."""
        return self.folder / "executed"

    @property
    def notebooks(self) -> Path:
        """The same for readers: today's prose, today's pictures."""
        return self.folder / "notebooks"

    @property
    def page(self) -> Path:
        """The page of a custom run, which compares its figures with the published ones."""
        return self.folder / "index.html"

    @property
    def published_copy(self) -> Path:
        """Copies of the pictures that were published when that page was written, so that its folder can be moved."""
        return self.folder / "published"

    @property
    def failed(self) -> Path:
        """Executed copies of runs that were not accepted."""
        return self.folder / "failed"

    @property
    def stamps(self) -> Path:
        """`<target>.<content key>.json`: exists exactly if the target was built from what the key is made of."""
        return self.folder / "keys"

    @property
    def made_of(self) -> Path:
        """`<target>.json`: what the key of the last build was made of, part by part."""
        return self.folder / "made_of"

    @property
    def run_spec(self) -> Path:
        """The specification of a custom run."""
        return self.folder / "run.json"

    @property
    def tasks(self) -> Path:
        """`<notebook>.<content key>/<task>.npz`: cached results of tasks."""
        return self.folder / "tasks"

    @property
    def running(self) -> Path:
        """`<target>.json` while the target is being built."""
        return self.folder / ".running"

    @property
    def staging(self) -> Path:
        """Where runs write before they are accepted; on the same file system, so that accepting is a rename."""
        return self.folder / ".staging"

    @property
    def site_begun(self) -> Path:
        """There while the site is built, and after that unless it ended well."""
        return self.folder / ".site-begun"

    @property
    def locks(self) -> Path:
        """One lock file a notebook."""
        return self.folder / ".locks"


def _require_utf8(folder: Path) -> None:
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise UserError(
            f"The name of the folder {str(folder)!a} is not UTF-8, as records, notebooks and pages are. Rename it."
        ) from None


def relative(path: Path, root: Path) -> str:
    """`path` below `root`, with forward slashes, as it is written into tracked files."""
    return Path(os.path.relpath(path, root)).as_posix()
