"""The project: who may know whom, how large its rooms are, and that importing changes nothing."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from companion.analysis import dependencies
from companion.project.notebooks import Notebook
from companion.project.paths import Project

ROOT = Path(__file__).parents[1]
CHAPTERS = Project(ROOT).notebooks()
FIGURES = [(name, figure) for name in CHAPTERS for figure in Notebook.named(Project(ROOT), name).figures]


def files(package):
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """Full names of everything a file imports anywhere, inside functions too."""
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


def reaches(path, forbidden):
    return sorted(name for name in imported(path) for root in forbidden if name == root or name.startswith(f"{root}."))


RULES = {
    "the science knows neither machine nor book": ("lib", ["companion", "chapters"]),
    "the science draws nothing, and has no tables of its own": ("lib", ["matplotlib", "seaborn", "pandas", "pydantic"]),
    "the machine knows papers, not this paper": ("companion", ["lib", "chapters"]),
    "only the command line knows Snakemake": ("companion", ["snakemake"]),
}


@pytest.mark.parametrize("rule", RULES)
def test_no_module_reaches_up(rule):
    folder, forbidden = RULES[rule]
    mine = [path for path in files(folder) if ROOT / "companion/cli" not in path.parents]
    assert mine
    assert {str(path): names for path in mine if (names := reaches(path, forbidden))} == {}


def test_a_chapter_imports_no_other():
    for path in files("chapters"):
        if len(path.relative_to(ROOT).parts) > 2:
            others = [f"chapters.{name}" for name in CHAPTERS if name != path.relative_to(ROOT).parts[1]]
            assert reaches(path, others) == [], path


def test_a_figure_file_imports_no_sister():
    for name, figure in FIGURES:
        sisters = [f"chapters.{name}.{other}" for chapter, other in FIGURES if chapter == name and other != figure]
        for path in (ROOT / "chapters" / name).glob("*.py"):
            mine = sisters if path.stem == figure else [*sisters, f"chapters.{name}.{figure}"]
            assert reaches(path, mine) == [], path


def test_every_picture_says_what_to_see():
    """One line above all panels, short enough for its width, and no two alike."""
    said = []
    for name, figure in FIGURES:
        tree = ast.parse((ROOT / "chapters" / name / f"{figure}.py").read_text(encoding="utf-8"))
        (draw,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "draw")
        calls = [node for node in ast.walk(draw) if isinstance(node, ast.Call)]
        lines = [call.args[1].value for call in calls if getattr(call.func, "id", "") == "headline"]
        assert len(lines) == 1, f"chapters/{name}/{figure}.py: `draw` says once what to see, by `headline(figure, …)`"
        said += lines
    assert max(map(len, said)) <= 100
    assert len(set(said)) == len(said)


@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_pictures_hold_no_mathematics(name, figure):
    """What draws a figure comes from the chapter's drawing and from the machine: no science, no JAX, no SciPy."""
    library = dependencies.Library.at(ROOT, ["lib", "chapters"])
    parts = library._closure([f"chapters.{name}.{figure}"], "picture", machine=())
    for path, part in parts:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = dependencies._statements(tree, part)
        heavy = {
            heavy for heavy in imported_by(tree, path) if heavy.split(".")[0] in ("lib", "jax", "scipy", "equinox")
        }
        assert heavy == set(), path


@pytest.mark.parametrize("name", CHAPTERS)
def test_parameters_are_checked_without_anything_slow(name):
    allowed = {"typing", "collections", "itertools", "math", "pydantic", "annotated_types", "companion", "chapters"}
    path = ROOT / "chapters" / name / "parameters.py"
    assert {module.split(".")[0] for module in imported(path)} <= allowed


@pytest.mark.parametrize("name", CHAPTERS)
def test_included_code_is_named_in_the_prose(name):
    """JupyterLab does not show it: function and file stand in the text that leads to it, or in that before."""
    prose = "\n".join(
        cell["source"] for cell in Notebook.named(Project(ROOT), name).cells if cell["cell_type"] == "markdown"
    )
    for included in re.finditer(r"```\{literalinclude\} \.\./(\S+)\n:pyobject: (\S+)", prose):
        file, before = included[1], prose[: included.start()]
        assert f"`{file}`" in before, file
        assert re.search(rf"`(\w+\.)?{included[2].rpartition('.')[2]}`", before), included[2]


def test_quick_tests_exist_and_are_named_once():
    """Those of `make check`, none of which runs the book's notebooks; whoever contributes is told of them."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    quick = re.search(r"^QUICK := \\\n((?:  \S+(?: \\)?\n)+)", text, re.MULTILINE)[1].replace("\\", "").split()
    assert len(quick) == len(set(quick)) > 10
    assert [path for path in quick if not (ROOT / path).is_file()] == []
    assert [path for path in quick if SLOW.search(read(path))] == []
    assert "pytest -n 2 --dist loadfile $(QUICK)" in text
    assert "`make check`" in read("CONTRIBUTING.md")


# Fixtures, as tests take them, that run cells of the book, build its site or its wheel, or open a browser.
SLOW = re.compile(r"^def \w+\([^)]*\b(run_cells|site|browser|wheel)\b", re.MULTILINE)


def test_measures_do_not_know_attention():
    assert reaches(ROOT / "lib/measures.py", ["lib.attention"]) == []


def test_the_rules_can_be_broken(tmp_path, monkeypatch):
    """The reader of imports sees every way to write one."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "lib/icl").mkdir(parents=True)
    sinner = tmp_path / "lib/icl/sinner.py"
    for way in ("import lib.flow.x", "from lib import flow", "from .. import flow", "from ..flow import x"):
        sinner.write_text(f"def late():\n    {way}\n")
        assert reaches(sinner, ["lib.flow"]), way
    sinner.write_text("from lib import flowing\nfrom . import result\n")
    assert reaches(sinner, ["lib.flow"]) == []


@pytest.mark.parametrize("script", sorted(ROOT.glob("chapters/*/data/*.py")), ids=module_name)
def test_scripts_for_long_runs_begin(script):
    """They are run once in years, and what they import moves meanwhile."""
    assert importlib.import_module(module_name(script)).__doc__


def test_git_does_not_ignore_lib():
    """The stock Python .gitignore does. Files not added yet count; ignored ones do not."""
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
    """No precision, no style, no print option: not by any module of it, nor of the chapters."""
    made = [path for path in files("chapters") if path.name == "make.py"]
    names = [module_name(path) for path in [*files("lib"), *files("chapters")] if path not in made]
    assert "lib.measures" in names
    assert python(IMPORT_ALL, json.dumps(names), folder=tmp_path) == {}


def test_importing_lib_draws_nothing_in(tmp_path):
    """The science imports neither pictures nor tables."""
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


# What others import: names that stay where they are.
PUBLIC = {
    "lib.measures": "Measure Gaussian GaussianMixture Empirical Rademacher Uniform Laplace Pushforward empirical "
    "tilted_mean tilted_cov",
    "lib.attention": "Attention attend linear_attend fluctuation stream_attend",
    "lib.finite_prompt": "participation score_error mean_output output_error sample_output rate_exponent "
    "quadrature_error",
    "lib.flow": "gradient_flow",
    "lib.icl": "LinearRegression block_attention pair_participation pair_score_error pair_quadrature_error heads_risk "
    "best_values best_pair",
    "lib.single_location": "Spiked Max Overlaps bayes_risk attention_risk best_risk replica bayes_optimal_risk softmax "
    "linear erf softplus sigmoid relu exp hardmax",
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in PUBLIC for name in PUBLIC[module].split()])
def test_public_names_stay_and_are_no_modules(module, name):
    """A function may share its module's name, as `replica` does: what is imported must be the function."""
    value = getattr(importlib.import_module(module), name)
    assert not inspect.ismodule(value)
