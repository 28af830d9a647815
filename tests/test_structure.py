"""The structure of the project: the contents of modules, and imports without side effects.

import-linter checks which modules may import which (`[tool.importlinter]` in pyproject.toml).
"""

import ast
import csv
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from companion.analysis import dependencies
from companion.figures import store
from companion.figures.style import COLUMN, WIDE
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.nodes import size_of

ROOT = Path(__file__).parents[1]
PROJECT = Project(ROOT)
CHAPTERS = PROJECT.notebooks()
FIGURES = [(name, figure) for name in CHAPTERS for figure in Notebook.named(PROJECT, name).figures]


def files(package):
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """Yield the full names of all imports of a file, including imports inside functions."""
    yield from imported_by(ast.parse(path.read_text(encoding="utf-8")), path)


def imported_by(tree, path):
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def test_every_picture_has_one_of_two_widths():
    """The site shows pictures at their own size, in which their text is as large as that of the page."""
    wrong = {}
    for name, figure in FIGURES:
        width, _ = size_of(PROJECT.published / name / f"{figure}.svg")
        if min(abs(width - 96 * inches) for inches in (COLUMN, WIDE)) > 0.01:
            wrong[f"{name}/{figure}"] = width
    assert not wrong


def test_other_programs_can_show_every_picture():
    """Ids are unique in the book, links are those of SVG 1.1, and a PNG has its resolution."""
    owners: dict[str, str] = {}
    for name, figure in FIGURES:
        picture = (PROJECT.published / name / f"{figure}.svg").read_text(encoding="utf-8")
        for own in re.findall(r' id="([^"]*)"', picture):
            assert owners.setdefault(own, figure) == figure
        assert not re.search(r'<style|[ \n](?:style|class|href)="', picture), figure
        assert b"pHYs" in (PROJECT.published / name / f"{figure}.png").read_bytes().partition(b"IDAT")[0], figure
    assert len(owners) > 10 * len(FIGURES)


def test_every_figure_has_a_headline_that_is_not_drawn():
    """The first paragraph of a docstring is one short sentence, no two are equal, and no picture has a title above."""
    headlines = []
    for name, figure in FIGURES:
        source = PROJECT.figure_file(name, figure).read_text(encoding="utf-8")
        headlines.append(" ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split()))
        assert headlines[-1].endswith("."), (
            f"{name}/{figure}: the first paragraph of the docstring must be one sentence"
        )
        assert "suptitle" not in source, f"{name}/{figure}: the headline opens the caption and is not drawn"
    assert max(map(len, headlines)) <= 140
    assert len(set(headlines)) == len(headlines)


@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_drawing_code_imports_no_science(name, figure):
    """The code that draws a figure imports neither `lib` nor JAX, SciPy or equinox."""
    library = dependencies.Library.at(ROOT, ["lib", "chapters"])
    parts = library._closure([PROJECT.figure_module(name, figure)], "picture", own_modules=())
    for path, part in parts:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = dependencies._statements(tree, part)
        heavy = {
            heavy for heavy in imported_by(tree, path) if heavy.split(".")[0] in ("lib", "jax", "scipy", "equinox")
        }
        assert heavy == set(), path


@pytest.mark.parametrize("path", sorted(ROOT.glob("chapters/*/data/**/*.csv")), ids=lambda path: path.stem)
def test_datasets_are_those_of_their_records(path):
    """Nobody has edited a table since a script made it."""
    record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert {"table", "parameters", "command", "made", "machine", "versions"} <= set(record)
    assert record["sha256"] == dependencies.digest(path.read_bytes())
    assert ",".join(record["columns"]) == path.read_text(encoding="utf-8").partition("\n")[0]


# Tables that have more empty cells than `test_tables_are_tidy` allows, and why.
UNTIDY = {
    "mixtures/denoising_from_a_prompt": "one of the two heads has a limit, which moves with the simulated tasks",
    "preconditioned_training/flow_by_condition": "integrated values have an accuracy, which closed forms do not share",
}


def test_tables_are_tidy():
    """At most a tenth of the cells of a table is empty, apart from standard errors, which exact values do not have."""
    untidy = set()
    for name, figure in FIGURES:
        columns = store.read_record(PROJECT.published / name, figure).columns.values()
        errors = {column.std_error for column in columns}
        with (PROJECT.published / name / f"{figure}{store.DATA}").open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.DictReader(file) for column, cell in row.items() if column not in errors]
        if cells.count("") > len(cells) / 10:
            untidy.add(f"{name}/{figure}")
    assert untidy == set(UNTIDY)


COMPUTATIONS = ("simulate_", "solve_", "train_", "read_")


@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_notebook_names_the_computation_of_each_figure(name, figure):
    """The data of each figure come from a function whose prefix says how it computes or reads them."""
    if "numbers = no_numbers" in PROJECT.figure_file(name, figure).read_text(encoding="utf-8"):
        return  # a schematic
    functions = slicing.steps_of(Notebook.named(PROJECT, name).code, figure, ["chapters"]).functions
    assert any(function.rpartition(".")[2].startswith(COMPUTATIONS) for function in functions), functions


@pytest.mark.parametrize("name", CHAPTERS)
def test_parameters_import_nothing_slow(name):
    allowed = {"typing", "collections", "itertools", "math", "pydantic", "annotated_types", "companion", "chapters"}
    path = ROOT / "chapters" / name / "parameters.py"
    assert {module.split(".")[0] for module in imported(path)} <= allowed


@pytest.mark.parametrize("name", CHAPTERS)
def test_included_code_is_named_in_the_prose(name):
    """JupyterLab does not show included code, so the text before it must name its function and file."""
    prose = "\n".join(cell["source"] for cell in Notebook.named(PROJECT, name).cells if cell["cell_type"] == "markdown")
    for included in re.finditer(r"```\{literalinclude\} \.\./(\S+)\n:pyobject: (\S+)", prose):
        file, before = included[1], prose[: included.start()]
        assert f"`{file}`" in before, file
        assert re.search(rf"`(\w+\.)?{included[2].rpartition('.')[2]}`", before), included[2]


def test_quick_tests_exist_and_are_named_once():
    """The tests of `make check` exist and run no notebook of the book; CONTRIBUTING names the command."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    quick = re.search(r"^QUICK := \\\n((?:  \S+(?: \\)?\n)+)", text, re.MULTILINE)[1].replace("\\", "").split()
    assert len(quick) == len(set(quick)) > 10
    assert [path for path in quick if not (ROOT / path).is_file()] == []
    assert [path for path in quick if SLOW.search(read(path))] == []
    assert "pytest -n 2 --dist loadfile $(QUICK)" in text
    assert "`make check`" in read("CONTRIBUTING.md")


# Fixtures that run cells of the book, build its site or its wheel, or open a browser.
SLOW = re.compile(r"^def \w+\([^)]*\b(run_cells|site|browser|wheel)\b", re.MULTILINE)


@pytest.mark.parametrize("script", sorted(ROOT.glob("chapters/*/data/*.py")), ids=module_name)
def test_scripts_of_long_runs_can_be_imported(script):
    """These scripts run rarely, and the modules that they import change in the meantime."""
    assert importlib.import_module(module_name(script)).__doc__


def test_git_does_not_ignore_lib():
    """The standard .gitignore for Python ignores `lib/`. Files that are not added yet count."""
    assert set(repository_files()) >= {str(path.relative_to(ROOT)) for path in files("lib")}


def repository_files():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert listed
    return [path for path in listed if (ROOT / path).is_file()]


def read(path):
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:  # a picture
        return ""


IMPORT_ALL = """
import importlib, json, sys, warnings
import jax, matplotlib, numpy
def state():
    settings = {name: repr(value) for name, value in jax.config.values.items()}
    settings |= {"x64 now": jax.numpy.ones(1).dtype.name}
    settings |= {f"mpl {name}": repr(matplotlib.rcParams._get(name)) for name in matplotlib.rcParams}
    settings |= {f"numpy {name}": repr(value) for name, value in numpy.get_printoptions().items()}
    settings |= {f"numpy {name}": repr(value) for name, value in numpy.geterr().items()}
    return settings
before = state()
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
after = state()
print(json.dumps({name: [before.get(name), after.get(name)] for name in before | after
                  if before.get(name) != after.get(name)}))
"""


def python(code, *arguments, folder):
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(run.stdout)


def test_importing_lib_changes_nothing_global(tmp_path):
    """Importing any module of `lib` or `chapters` changes no precision, style or print option."""
    scripts = [path for path in files("chapters") if path.name == "make.py"]
    names = [module_name(path) for path in [*files("lib"), *files("chapters")] if path not in scripts]
    assert "lib.measures" in names
    assert python(IMPORT_ALL, json.dumps(names), folder=tmp_path) == {}


def test_importing_lib_imports_no_plotting(tmp_path):
    """`lib` imports neither plotting packages nor pandas."""
    loaded = python("import json, sys, lib; print(json.dumps(sorted(sys.modules)))", folder=tmp_path)
    assert "lib.measures" in loaded
    assert {"matplotlib", "seaborn", "pandas", "companion"}.isdisjoint(loaded)


def test_lib_is_a_table_of_contents():
    """Every name in `lib/__init__.py` is a re-export, written `from x import y as y`."""
    body = ast.parse((ROOT / "lib/__init__.py").read_text(encoding="utf-8")).body
    docstring, *imports = body
    assert isinstance(docstring, ast.Expr)
    for node in imports:
        assert isinstance(node, ast.ImportFrom)
        assert [alias.asname for alias in node.names] == [alias.name for alias in node.names]


def test_chapters_import_public_names_of_lib():
    private = [
        f"{path.name}: {alias.name}"
        for path in files("chapters")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lib"
        for alias in node.names
        if alias.name.startswith("_") or "._" in f".{node.module}"
    ]
    assert private == []


# Names that checks outside the repository import.
PUBLIC = {
    "lib.measures": "Measure Gaussian GaussianMixture Empirical Rademacher Uniform Laplace Pushforward empirical "
    "tilted_mean tilted_cov",
    "lib.attention": "Attention attend linear_attend fluctuation stream_attend",
    "lib.finite_prompt": "participation score_error mean_output output_error sample_output rate_exponent "
    "quadrature_error",
    "lib.flow": "gradient_flow",
    "lib.mixtures": "denoising_bayes_risk denoising_linear_risk discriminant_bayes_risk mixture_quadrature_error",
    "lib.icl": "LinearRegression block_attention heads_risk best_values best_pair",
    "lib.random": "named_keys",
    "lib.pairs": "pair_participation pair_score_error pair_quadrature_error",
    "lib.single_location": "Spiked Max Overlaps bayes_risk attention_risk best_risk replica bayes_optimal_risk softmax "
    "linear erf softplus sigmoid relu exp hardmax",
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in PUBLIC for name in PUBLIC[module].split()])
def test_public_names_are_not_modules(module, name):
    """A function may have the name of its module, as `replica` does; the import must give the function."""
    value = getattr(importlib.import_module(module), name)
    assert not inspect.ismodule(value)
