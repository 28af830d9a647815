"""Fixtures shared by the tests of `companion`: copies of small books, and a check for incomplete notebooks.

A clone is a book with one notebook, `toy`, as `companion new --book` creates it. It is created once and run once per
session; every test that changes something gets a copy.
"""

import ast
import atexit
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from typer.testing import CliRunner

from companion.analysis.dependencies import MACHINE, Library
from companion.authoring.tasks import FOLDER
from companion.build import execution, fork_server
from companion.build.run_spec import RunSpec
from companion.cli import app, scaffold, terminal
from companion.figures import store
from companion.figures.record import Claim, FigureRecord
from companion.figures.rendering import caption_and_alt
from companion.io.errors import UserError
from companion.io.yaml import read_yaml
from companion.project import repository, slicing
from companion.project.notebooks import BOOTSTRAP_TAG, BY_HAND_TAG, Notebook
from companion.project.paths import OUT, PROFILE, Project

# Commands that are called print as wide as those in processes.
for console in (terminal.console, terminal.errors):
    console.width, console.no_color = 200, True

# The fixtures, which a conftest.py imports.
__all__ = [
    "_isolated_imports",
    "clone",
    "copied_run",
    "in_tasks",
    "omissions",
    "pristine",
    "ran",
    "ran_clone",
    "split_clone",
    "unpublished",
    "walked",
]

SOURCES = Path(__file__).resolve().parents[1] / "src"
INHERITED = {name: value for name, value in os.environ.items() if name not in (OUT, PROFILE, FOLDER, "FORCE_COLOR")}


# What the kernels of a book import.
PACKAGES = ("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "pandas", "PIL.Image", "seaborn")


@cache
def kernels() -> dict[str, str]:
    """Start a fork server for the kernels of this session; return the environment variable that names it."""
    if not fork_server.can_be():
        return {}
    folder = tempfile.mkdtemp(prefix="cpn-tests-", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = f"{folder}/kernels"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"MPLBACKEND": "agg"}
    server = subprocess.Popen(fork_server.command(address, PACKAGES), stdin=subprocess.PIPE, env=environment)
    atexit.register(server.communicate)  # it ends when its standard input is closed
    return {fork_server.FORK_SERVER: address}


class Clone:
    """A book whose only notebook is `toy`, with helpers to run commands in it and to edit it."""

    def __init__(self, root: Path):
        self.root, self.project = root, Project(root)
        # import `companion` from this checkout, even if another checkout is installed;
        # write no bytecode: Python would run stale bytecode after two edits of equal size within one second
        overrides = {
            "PYTHONPATH": os.pathsep.join([str(root), str(SOURCES)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }
        self.environment = INHERITED | overrides
        self._usual = {**self.environment}
        # True for a test of a process: commands and kernels are started, not called and forked
        self.in_processes = False

    def python(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python in a process."""
        return subprocess.run(
            [sys.executable, *arguments],
            check=False,
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    @contextmanager
    def inside(self, folder: str = ".") -> Iterator[None]:
        """Let this process be in a folder of the book, with the environment of its commands and with forked kernels."""
        before, path, environment = Path.cwd(), sys.path[:], {**os.environ}
        os.chdir(self.root / folder)
        os.environ.update(self.environment | kernels())
        try:
            yield
        finally:
            os.chdir(before)
            sys.path[:] = path
            os.environ.clear()
            os.environ.update(environment)
            forget_modules(self.root)

    def companion(self, *arguments: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
        """Run a command: in this process, unless the test changed its environment or what Python does at its start."""
        changed = self.environment != self._usual or (self.root / "sitecustomize.py").exists()
        if self.in_processes or changed:
            return self.python("-m", "companion", *arguments, cwd=self.root / folder)
        with self.inside(folder):
            result = CliRunner().invoke(app, arguments)
        errors = result.stderr
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            errors += "".join(traceback.format_exception(result.exception))
        return subprocess.CompletedProcess(["companion", *arguments], result.exit_code, result.stdout, errors)

    def succeed(self, *arguments: str) -> str:
        """Run a command that must succeed; return its output."""
        finished = self.companion(*arguments)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    def copy_to(self, folder: Path) -> "Clone":
        return Clone(Path(shutil.copytree(self.root, folder)))

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}: the template changed, change this test with it"
        (self.root / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def edit_notebook(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Let `change` edit the content of toy's notebook."""
        path = self.project.notebook("toy")
        notebook = json.loads(path.read_text(encoding="utf-8"))
        change(notebook)
        path.write_text(repository.dump_notebook(notebook), encoding="utf-8")

    def rewrite_cell(self, first_line: str, source: str, **metadata: Any) -> None:
        """Replace the source, and update the metadata, of the code cell of toy that starts with `first_line`."""

        def rewrite(notebook: dict[str, Any]) -> None:
            (cell,) = [cell for cell in notebook["cells"] if "".join(cell["source"]).startswith(first_line)]
            cell["source"] = source.splitlines(keepends=True)
            cell["metadata"].update(metadata)

        self.edit_notebook(rewrite)

    def add_cells(self, *cells: tuple[str, list[str]]) -> None:
        """Append code cells to toy's notebook, each with its source and its tags."""

        def append(notebook: dict[str, Any]) -> None:
            notebook["cells"] += [
                new_code_cell(source, id=f"added-{index}", metadata={"tags": tags})
                for index, (source, tags) in enumerate(cells)
            ]

        self.edit_notebook(append)

    def add_page(self, name: str) -> None:
        """Add a notebook that has no parameters cell, no chapter and no figure."""
        self.write(f"book/{name}.ipynb", page_notebook())
        self.replace("_toc.yml", "- file: book/toy", f"- file: book/toy\n      - file: book/{name}")

    def tree(self, *below: str) -> dict[str, str]:
        """Return the digest of every file in these folders (default: the whole book)."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for start in (below or (".",))
            for path in sorted((self.root / start).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture(autouse=True)
def _isolated_imports(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove modules imported from temporary books after each test, because all clones use the same package names."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    forget_modules(tmp_path_factory.getbasetemp())


def forget_modules(folder: Path) -> None:
    """Remove the modules that were imported from below `folder`, unless it is the checkout of this package."""
    if MACHINE.is_relative_to(folder):
        return
    # a test may have put None or an object in the place of a module; a package without `__init__.py` has no file
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    start = f"{folder}{os.sep}"  # comparing paths would take 20 ms for thousands of modules, at each call
    below = {name for name, file in files.items() if isinstance(file, str) and file.startswith(start)}
    packages = {name.partition(".")[0] for name in below}
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A newly created book, read-only: its package is `clone`, its notebook `toy`."""
    root = tmp_path_factory.mktemp("pristine") / "clone"
    scaffold.create_book(root, "toy")
    return Clone(root)


@pytest.fixture
def clone(pristine: Clone, tmp_path: Path) -> Clone:
    """A writable clone in which no notebook was run."""
    return pristine.copy_to(tmp_path / "clone")


@pytest.fixture(scope="session")
def ran(pristine: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A read-only clone after a successful `companion run toy`; `.seconds` is its duration, `.output` its output."""
    clone, clock = pristine.copy_to(tmp_path_factory.mktemp("ran") / "clone"), time.monotonic()
    clone.in_processes = True  # tests compare its files with those of called commands and forked kernels
    clone.output = clone.succeed("run", "toy")  # pyright: ignore
    clone.seconds = time.monotonic() - clock  # pyright: ignore
    return clone


@pytest.fixture
def ran_clone(ran: Clone, tmp_path: Path) -> Clone:
    """A writable clone in which `toy` was run."""
    return ran.copy_to(tmp_path / "clone")


@pytest.fixture
def copied_run(ran: Clone, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let runs of `toy` copy the results of `ran` instead of starting a kernel; return a function that sets a call.

    The call is made at the end of the run.
    """
    calls: list[Callable[[], object]] = []

    def execute(project: Project, notebook: Notebook, changed: Any, staging: Path, **_: Any) -> None:
        build = ran.project.build("laptop")
        for kind, folder in (("figures", build.figures), ("tables", build.tables)):
            shutil.copytree(folder, staging / kind)
        shutil.copyfile(build.executed / "toy.ipynb", staging / "toy.ipynb")
        for call in calls:
            call()

    monkeypatch.setattr(execution, "_execute", execute)
    return calls.append


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A read-only copy of `another_paper` (two figures, tracked data) in which `walks` was run."""
    root = tmp_path_factory.mktemp("walked") / "a book"
    ignored = shutil.ignore_patterns("_build", "__pycache__")
    clone = Clone(Path(shutil.copytree(Path(__file__).with_name("another_paper"), root, ignore=ignored)))
    shutil.rmtree(root / "figures", ignore_errors=True)
    clone.succeed("run", "walks")
    return clone


def commit_all(folder: Path) -> str:
    """Make a git repository of a folder, with one commit of all its files; return the commit."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    commit = (*who, "commit", "-q", "--allow-empty", "-m", "Start")
    for command in (("init", "-q"), ("add", "."), commit, ("rev-parse", "HEAD")):
        finished = subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True, text=True)
    return finished.stdout.strip()


def judged(
    relation: str = "=",
    measured: float = 1.0,
    expected: float = 1.0,
    tolerance: float = 0.3,
    *,
    std_error: float | None = None,
    alternative: tuple[str, float] | None = ("it rises", 2.0),
) -> Claim:
    """Return a claim with these numbers."""
    numbers: dict[str, Any] = {"relation": relation, "measured": measured, "expected": expected}
    numbers |= {"tolerance": tolerance, "std_error": std_error, "alternative": alternative}
    return Claim.judged(id="demo-rate", statement="It falls.", source="derived here", **numbers)


def figure_record(**changes: Any) -> FigureRecord:
    """Return the record of the figure `one` of `demo`, with `changes`."""
    texts = {"figure": "one", "notebook": "demo", "profile": "laptop", "caption": "A caption.", "alt": "A line."}
    parts = {"parameters": {}, "columns": {}, "claims": (judged(),), "files": {}, "picture": "1234"}
    parts |= dict.fromkeys(("steps", "functions", "sources"), ())
    return FigureRecord(schema_version=1, **texts | parts | changes)


def page_notebook(*, parameters: bool = False) -> str:
    """Return a notebook without figures, titled "A page", that prints a sum, with or without a parameters cell."""
    cells = [
        new_markdown_cell("# A page", id="title"),
        new_code_cell("base = 1\n", id="code-0", metadata={"tags": ["parameters"]} if parameters else {}),
        new_code_cell("import math\nprint('the sum is', math.pi + base)", id="code-1"),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return repository.dump_notebook(new_notebook(cells=cells, metadata=metadata))


# The tasks of toy, one per length. They refuse to be computed in a kernel, where their results should be cached.
TASKS = '''"""Squared errors of means, one task per length."""

import os
from functools import partial

import numpy as np

from companion.authoring.tasks import FOLDER


def tasks(*, seed, lengths):
    """Return one task per length; the number of repeats is a constant, so that it is no parameter of the tasks."""
    return {f"length-{length}": partial(one, seed, length) for length in lengths}


def one(seed, length):
    """Return the squared errors at one length."""
    if FOLDER in os.environ:
        raise RuntimeError(f"length {length} is not cached")
    return {"errors": np.random.default_rng([seed, length]).uniform(-1, 1, (500, length)).mean(axis=1) ** 2}
'''


@pytest.fixture(scope="session")
def in_tasks(pristine: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A read-only new book whose `simulate_squared_errors` gathers tasks; its numbers equal those of `pristine`."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("in_tasks") / "clone")
    clone.write("clone/toy/tasks.py", TASKS)
    figure = "clone/toy/figures/toy_error.py"
    clone.replace(figure, "from companion import Cla", "from clone.toy.tasks import tasks\nfrom companion import Cla")
    clone.replace(figure, "Numbers, Table\n", "Numbers, Table, gather\n")
    text = (clone.root / figure).read_text(encoding="utf-8")
    start, end = text.index("    return {\n        length: np.random"), text.index("def numbers(")
    body = (
        "    values = gather(tasks(seed=seed, lengths=lengths))\n"
        '    return {length: value["errors"] for length, value in zip(lengths, values, strict=True)}\n\n\n'
    )
    clone.write(figure, text[:start] + body + text[end:])
    return clone


@pytest.fixture
def split_clone(in_tasks: Clone, tmp_path: Path) -> Clone:
    """A writable clone whose `simulate_squared_errors` gathers tasks and in which no notebook was run."""
    return in_tasks.copy_to(tmp_path / "clone")


@pytest.fixture(scope="session")
def omissions() -> Callable[[Project], list[str]]:
    """Return a function that lists what a contributor forgot, one sentence each; published figures are not checked."""
    return lambda project: [
        *(sentence for name in project.notebooks() for sentence in _missing(project, name)),
        *map(project.why_ignored, project.unlisted_notebooks()),
        *_orphans(project),
    ]


@pytest.fixture(scope="session")
def unpublished() -> Callable[[Project], list[str]]:
    """Return a function that lists missing, incomplete and superfluous figures in `figures/`, one sentence each."""
    return lambda project: [*_unpublished(project)]


def _missing(project: Project, name: str) -> Iterator[str]:
    """Yield one sentence for each part that notebook `name` lacks."""
    try:
        notebook = Notebook.named(project, name)
        if not notebook.figures and notebook.parameters_cell is None and not project.chapter(name).is_dir():
            return  # a page
        assert notebook.title
        RunSpec(name).check(project)
    except UserError as error:
        yield str(error)
        return
    folder = f"{project.settings.chapters}/{name}"
    if not (project.root / folder / "__init__.py").is_file():
        yield f"Write {folder}/__init__.py, with a line that says what the chapter is about."
    if not notebook.figures:
        yield f"book/{name}.ipynb publishes nothing: end a cell with `publish(FIGURE, …)`."
    for figure in notebook.figures:
        yield from _missing_of_figure(project, name, figure)
    for profile in ("smoke", "full"):
        if name not in (read_yaml(project.profiles / f"{profile}.yml") or {}):
            yield f"Say what profile {profile} overrides: add an entry `{name}:` to profiles/{profile}.yml."
    if f"book/{name}.ipynb" in repository.outdated_copies(project):
        yield f"book/{name}.ipynb lacks the bootstrap cell that all notebooks share: run `companion set-url`."
    yield from _misplaced_code(project, notebook)


def _missing_of_figure(project: Project, name: str, figure: str) -> Iterator[str]:
    file = project.figure_file(name, figure).relative_to(project.root).as_posix()
    if not (project.root / file).is_file():
        yield f"Write {file}: book/{name}.ipynb publishes it."
        return
    for function in ("numbers", "draw"):
        if function not in _names(project.root / file):
            yield f"Write a function `{function}` in {file}: book/{name}.ipynb publishes it."
    try:
        caption_and_alt(ModuleType(file, _docstring(project.root / file)))
    except ValueError as error:
        yield str(error)


def _misplaced_code(project: Project, notebook: Notebook) -> Iterator[str]:
    """Yield one sentence for each construct in the notebook that belongs in a module of its chapter."""
    chapters, science = project.settings.chapters, project.settings.science
    package = f"{chapters}.{notebook.name}"
    allowed = tuple(f"{name}." for name in ("companion", package, *science) if name != chapters)
    for index, cell in enumerate(notebook.cells):
        if cell["cell_type"] != "code":
            continue
        where = f"book/{notebook.name}.ipynb, cell {index}"
        if BOOTSTRAP_TAG in cell["metadata"].get("tags", []):  # only this cell may install packages
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            yield f"{where}: strip the outputs (`nbstripout book/{notebook.name}.ipynb`)."
        try:
            nodes = list(ast.walk(ast.parse(cell["source"])))
        except SyntaxError as error:
            yield f"{where}: is not plain Python ({error.msg})."
            continue
        if BY_HAND_TAG in cell["metadata"].get("tags", []):
            yield from (f"{where}: {sentence}" for sentence in _not_by_hand(cell["source"], nodes))
            continue
        for node in nodes:
            yield from (f"{where}: {sentence}" for sentence in _out_of_place(node, package, allowed))


def _not_by_hand(source: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Yield what a by-hand cell must not be: long, with a function of its own, or silent."""
    if len(source.splitlines()) > LONGEST_BY_HAND:
        yield f"a by-hand cell has at most {LONGEST_BY_HAND} lines."
    if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in nodes):
        yield "a by-hand cell defines no function."
    calls = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    if calls.count("print") != 1:
        yield "a by-hand cell prints its number, once."


LONGEST_BY_HAND = 12
IMPORTS = "a notebook imports companion, the science, and its own chapter."


def _out_of_place(node: ast.AST, package: str, allowed: tuple[str, ...]) -> Iterator[str]:
    """Yield the correction for this syntax node, if it does not belong in a notebook."""
    folder = package.replace(".", "/") + "/"
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield f"move `{name}` to {folder}."
        case ast.Lambda():
            yield f"move the lambda to {folder}."
        case ast.For() | ast.While() | ast.comprehension():
            yield f"move the loop to {folder}."
        case ast.Import(names=names):
            yield f"`import {names[0].name}` belongs to {folder}; {IMPORTS}"
        case ast.ImportFrom(module=module) if not f"{module}.".startswith(allowed):
            yield f"`from {module} import` belongs to {folder}; {IMPORTS}"
        case ast.Call(func=ast.Name(id="open" | "print" | "exec")):
            yield "a notebook neither opens files nor prints."
        case ast.Constant(value=str(text)) if "/" in text or "\\" in text:
            yield f"{text!r} looks like a path, which another machine does not have."


def _orphans(project: Project) -> Iterator[str]:
    """Yield one sentence for each file, entry or folder whose notebook does not exist."""
    names, chapters = [*project.notebooks(), *project.unlisted_notebooks()], project.settings.chapters
    for folder in sorted((project.root / chapters).glob("*/")):
        if folder.name not in names and any("__pycache__" not in path.parts for path in folder.rglob("*.*")):
            yield f"{chapters}/{folder.name}/ has no notebook: write book/{folder.name}.ipynb, or remove it."
        elif folder.name in project.notebooks():
            yield from _unpublishable(project, folder.name)
    for profile in sorted(project.profiles.glob("*.yml")):
        for name in sorted(set(read_yaml(profile) or {}) - set(names)):
            yield f"profiles/{profile.name} has an entry `{name}`, and there is no such notebook."
    contents = (project.root / "_toc.yml").read_text(encoding="utf-8")
    for row in re.findall(r'(?:root|file): "?([\w/.-]+)', contents):
        if not any((project.root / f"{row}{ending}").is_file() for ending in (".md", ".ipynb")):
            yield f"_toc.yml has a row `{row}`, and there is no such page."
    for folder in sorted(project.published.glob("*/")):
        if folder.name not in names:
            yield f"{folder.relative_to(project.root)}/ belongs to no notebook: remove it."


def _unpublishable(project: Project, name: str) -> Iterator[str]:
    """Yield one sentence for each figure module that its notebook does not publish."""
    for path in sorted(project.chapter(name).rglob("*.py")):
        is_figure = {"numbers", "draw"} <= _names(path) or "Alt:" in _docstring(path)
        if is_figure and path.stem not in Notebook.named(project, name).figures:
            yield f"book/{name}.ipynb does not publish `{path.stem}` of {path.relative_to(project.root)}."


def _unpublished(project: Project) -> Iterator[str]:
    library = Library.at(project.root, project.settings.science)
    for name in project.notebooks():
        figures, folder = Notebook.named(project, name).figures, project.published / name
        for figure in figures:
            faults = store.faults(folder, figure)
            for fault in faults:
                yield f"figures/{name}/: {fault}. Run `companion run {name}` and commit what it publishes."
            current = library.picture_digest(project.figure_module(name, figure))
            if not faults and store.read_record(folder, figure).picture != current:
                yield f"figures/{name}/{figure}: drawn by older code. Run `companion redraw {name}/{figure}`, commit."
        if slicing.publishes_claims(Notebook.named(project, name).code) and not store.read_claims(folder):
            yield f"figures/{name}/{store.CLAIMS}.json is missing. Run `companion run {name}` and commit it."
        for extra in sorted(set(store.names_in(folder)) - set(figures)):
            yield f"figures/{name}/{extra}: no longer published. Run `companion run {name}` and commit."


def _names(path: Path) -> set[str]:
    """Return the functions of a module, and the names that it assigns, such as `numbers = no_numbers`."""
    return set(re.findall(r"^(?:def )?(\w+)(?:\(| =)", path.read_text(encoding="utf-8"), re.MULTILINE))


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
