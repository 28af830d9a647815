"""What the tests of the publishing machine share: clones to try things on, and a list of what was forgotten.

A clone is the repository with one scaffolded notebook, `toy`, in place of its own. It is made once, run once, and
copied for every test that changes something.
"""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from companion import address, figure_set, scaffold
from companion.address import BOOTSTRAP_TAG
from companion.house import OUT, PROFILE, House
from companion.mistakes import Mistake
from companion.notebooks import Notebook

ROOT = Path(__file__).resolve().parents[2]


class Clone:
    """A copy of the repository whose only notebook is `toy`, and what one does with it."""

    def __init__(self, root: Path):
        self.root, self.house = root, House(root)
        inherited = {name: value for name, value in os.environ.items() if name not in (OUT, PROFILE, "FORCE_COLOR")}
        # no bytecode: two edits of one size within one second would otherwise run the older one
        own = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200", "NO_COLOR": "1"}
        self.environment = inherited | own

    def python(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            check=False,
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    def companion(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "companion", *arguments)

    def copy_to(self, folder: Path) -> "Clone":
        return Clone(Path(shutil.copytree(self.root, folder)))

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}: the template changed, change this test with it"
        (self.root / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    def rewrite_cell(self, first_line: str, source: str, **metadata: Any) -> None:
        """Replace the source, and update the metadata, of the code cell of toy that starts with `first_line`."""
        path = self.house.notebook("toy")
        notebook = json.loads(path.read_text(encoding="utf-8"))
        (cell,) = [cell for cell in notebook["cells"] if "".join(cell["source"]).startswith(first_line)]
        cell["source"] = source.splitlines(keepends=True)
        cell["metadata"].update(metadata)
        path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")

    def tree(self, *below: str) -> dict[str, str]:
        """Every file of these folders (all of them by default), with the digest of its content."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for start in (below or (".",))
            for path in sorted((self.root / start).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """The clone as it was laid out, for reading only."""
    root = tmp_path_factory.mktemp("pristine") / "clone"
    experiments = (ROOT / "lib/experiments").glob("*.py")
    own = [path.stem for path in experiments if any(map(_is_experiment, _functions(path).values()))]
    own += House(ROOT).notebooks()
    homes = [f"{folder}/{name}" for name in own for folder in ("book", "lib/experiments", "lib/plotting")]
    for path in _repository_files():
        if str(Path(path).with_suffix("")) not in homes and Path(path).parts[0] not in ("figures", "data", "tests"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, root / path)
    for package in ("experiments", "plotting"):
        _forget_reexports(root / "lib" / package / "__init__.py", own)
    for profile in (root / "profiles").glob("*.yml"):
        profile.write_text("# what each notebook overrides\n", encoding="utf-8")
    _forget_rows(root / "_toc.yml", own)
    scaffold.lay_out(House(root), "toy")
    return Clone(root)


@pytest.fixture
def clone(pristine: Clone, tmp_path: Path) -> Clone:
    """A clone to change, in which nothing was run."""
    return pristine.copy_to(tmp_path / "clone")


@pytest.fixture(scope="session")
def ran(pristine: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which `companion run toy` ended well, for reading only; `.seconds` is how long that took."""
    clone, clock = pristine.copy_to(tmp_path_factory.mktemp("ran") / "clone"), time.monotonic()
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    clone.seconds, clone.said = time.monotonic() - clock, finished.stdout  # pyright: ignore
    return clone


@pytest.fixture
def ran_clone(ran: Clone, tmp_path: Path) -> Clone:
    """A clone to change, in which `toy` was run."""
    return ran.copy_to(tmp_path / "clone")


@pytest.fixture(scope="session")
def forgotten() -> Callable[[House], list[str]]:
    """What a contributor forgot, all but the published figures: a sentence each."""
    return lambda house: [
        *(sentence for name in house.notebooks() for sentence in _missing(house, name)),
        *_orphans(house),
    ]


@pytest.fixture(scope="session")
def unpublished() -> Callable[[House], list[str]]:
    """Which figures are not, or not wholly, in `figures/`, and which are there for nothing: a sentence each."""
    return lambda house: [*_unpublished(house)]


def _repository_files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return [path for path in listed if path and (ROOT / path).is_file()]


def _forget_reexports(init: Path, names: list[str]) -> None:
    lines = init.read_text(encoding="utf-8").splitlines(keepends=True)
    for node in reversed(ast.parse("".join(lines)).body):
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] in names:
            del lines[node.lineno - 1 : node.end_lineno]
    init.write_text("".join(lines), encoding="utf-8")


def _forget_rows(contents: Path, names: list[str]) -> None:
    yaml = YAML()
    toc = yaml.load(contents.read_text(encoding="utf-8"))
    for part in toc["parts"]:
        part["chapters"] = [row for row in part["chapters"] if Path(row["file"]).name not in names]
    with contents.open("w", encoding="utf-8") as file:
        yaml.dump(toc, file)


def _missing(house: House, name: str) -> Iterator[str]:
    """What notebook `name` needs and does not have."""
    experiment, plots = f"lib/experiments/{name}.py", f"lib/plotting/{name}.py"
    try:
        notebook = Notebook.named(house, name)
        defaults, figures = set(notebook.defaults), notebook.figures
        assert notebook.title
    except Mistake as mistake:
        yield str(mistake)
        return
    if (function := _functions(house.root / experiment).get(name)) is None or not _is_experiment(function):
        yield f"Write {experiment} with a function `{name}` decorated with @experiment."
    elif (taken := {argument.arg for argument in function.args.kwonlyargs}) != defaults:
        yield (
            f"The parameters cell of book/{name}.ipynb and the signature of {experiment} must name the same "
            f"parameters; they differ in {sorted(taken ^ defaults)}."
        )
    if (f"lib.experiments.{name}", name) not in _reexports(house.root / "lib/experiments/__init__.py"):
        yield f"Re-export it: add `from lib.experiments.{name} import {name} as {name}` to lib/experiments/__init__.py."
    if not figures:
        yield f"book/{name}.ipynb shows nothing: end it with `publish(plotting.NAME, result)`."
    for figure in figures:
        if figure not in _functions(house.root / plots):
            yield f"Write a function `{figure}` in {plots}: book/{name}.ipynb publishes it."
        if (f"lib.plotting.{name}", figure) not in _reexports(house.root / "lib/plotting/__init__.py"):
            row = f"from lib.plotting.{name} import {figure} as {figure}"
            yield f"Re-export the plot: add `{row}` to lib/plotting/__init__.py."
    for profile in ("smoke", "full"):
        if name not in _yaml(house.profiles / f"{profile}.yml"):
            yield f"Say what profile {profile} overrides: add an entry `{name}:` to profiles/{profile}.yml."
    if f"book/{name}" not in set(_rows(_yaml(house.root / "_toc.yml"))):
        yield f"Put it into the table of contents: add `- file: book/{name}` to _toc.yml."
    if f"book/{name}.ipynb" in address.differing(house):
        yield f"book/{name}.ipynb has not the bootstrap cell that all notebooks share: run `companion address`."
    yield from _too_thick(notebook)


def _too_thick(notebook: Notebook) -> Iterator[str]:
    """What stands in a notebook and belongs elsewhere."""
    for index, cell in enumerate(notebook.cells):
        if cell["cell_type"] != "code":
            continue
        where = f"book/{notebook.name}.ipynb, cell {index}"
        if BOOTSTRAP_TAG in cell["metadata"].get("tags", []):  # the one cell that may install
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            yield f"{where}: strip the outputs (`nbstripout book/{notebook.name}.ipynb`)."
        try:
            nodes = list(ast.walk(ast.parse(cell["source"])))
        except SyntaxError as error:
            yield f"{where}: is not plain Python ({error.msg})."
            continue
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    yield f"{where}: move `{node.name}` to lib/experiments/{notebook.name}.py."
                case ast.For() | ast.While() | ast.comprehension():
                    yield f"{where}: move the loop to lib/experiments/{notebook.name}.py."
                case ast.Import(names=names):
                    yield f"{where}: `import {names[0].name}` belongs to lib; a notebook imports companion and lib."
                case ast.ImportFrom(module=module) if module not in ("companion", "lib"):
                    yield f"{where}: `from {module} import` belongs to lib; a notebook imports companion and lib."
                case ast.Call(func=ast.Name(id="open" | "print" | "exec")):
                    yield f"{where}: a notebook neither opens files nor prints."
                case ast.Constant(value=str(text)) if "/" in text or "\\" in text:
                    yield f"{where}: {text!r} looks like a path, which another machine does not have."


def _orphans(house: House) -> Iterator[str]:
    """What is there for a notebook that is not."""
    names = house.notebooks()
    yield from _orphaned_modules(house, names)
    for package in ("experiments", "plotting"):
        for module, name in sorted(_reexports(house.root / f"lib/{package}/__init__.py")):
            if not (house.root / (module.replace(".", "/") + ".py")).is_file():
                yield f"lib/{package}/__init__.py re-exports `{name}` from {module}, which is not there."
    for profile in sorted(house.profiles.glob("*.yml")):
        for name in sorted(set(_yaml(profile)) - set(names)):
            yield f"profiles/{profile.name} has an entry `{name}`, and there is no such notebook."
    for row in _rows(_yaml(house.root / "_toc.yml")):
        if not any((house.root / f"{row}{ending}").is_file() for ending in (".md", ".ipynb")):
            yield f"_toc.yml has a row `{row}`, and there is no such page."
    for folder in sorted([*house.published.glob("*/"), *(house.root / "data").glob("*/")]):
        if folder.name not in names:
            yield f"{folder.relative_to(house.root)}/ belongs to no notebook: remove it."


def _orphaned_modules(house: House, names: list[str]) -> Iterator[str]:
    for path in sorted((house.root / "lib/experiments").glob("*.py")):
        if path.stem not in names and any(map(_is_experiment, _functions(path).values())):
            yield f"lib/experiments/{path.name} has no notebook: write book/{path.stem}.ipynb, or remove it."
    for path in sorted((house.root / "lib/plotting").glob("*.py")):
        drawn = [name for name, node in _functions(path).items() if "Alt:" in (ast.get_docstring(node) or "")]
        if drawn and path.stem not in names:
            yield f"lib/plotting/{path.name} has no notebook: write book/{path.stem}.ipynb, or remove it."
        elif drawn:
            for figure in sorted(set(drawn) - set(Notebook.named(house, path.stem).figures)):
                yield f"book/{path.stem}.ipynb does not publish `{figure}` of lib/plotting/{path.name}."


def _unpublished(house: House) -> Iterator[str]:
    for name in house.notebooks():
        figures, folder = Notebook.named(house, name).figures, house.published / name
        for figure in figures:
            for fault in figure_set.faults(folder, figure):
                yield f"figures/{name}/: {fault}. Run `companion run {name}` and commit what it publishes."
        for extra in sorted(set(figure_set.names_in(folder)) - set(figures)):
            yield f"figures/{name}/{extra}: no longer published. Run `companion run {name}` and commit."


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def _is_experiment(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(decorator, ast.Name) and decorator.id == "experiment" for decorator in function.decorator_list
    )


def _reexports(init: Path) -> set[tuple[str, str]]:
    body = ast.parse(init.read_text(encoding="utf-8")).body
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    return {(node.module or "", alias.name) for node in imports for alias in node.names if alias.asname == alias.name}


def _yaml(path: Path) -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")) or {}


def _rows(contents: Any) -> Iterator[str]:
    """Every page a table of contents names."""
    match contents:
        case dict():
            yield from (page for key, page in contents.items() if key in ("root", "file"))
            for value in contents.values():
                yield from _rows(value)
        case list():
            for value in contents:
                yield from _rows(value)
