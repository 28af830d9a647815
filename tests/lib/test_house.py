"""The house: who may know whom, and that importing changes nothing."""

import ast
import importlib
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def files(package):
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """Full names of everything a file imports anywhere, inside functions too."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def reaches(path, forbidden):
    return sorted(name for name in imported(path) for root in forbidden if name == root or name.startswith(f"{root}."))


RULES = {
    "lib knows nothing of companion": ("lib", ["companion"]),
    "numbers know nothing of pictures": ("lib/experiments", ["matplotlib", "seaborn", "lib.plotting"]),
    "pictures hold no mathematics": ("lib/plotting", ["jax", "equinox", "scipy"]),
    "only the command line knows Snakemake": ("companion", ["snakemake"]),
}


@pytest.mark.parametrize("rule", RULES)
def test_no_module_reaches_up(rule):
    folder, forbidden = RULES[rule]
    mine = [path for path in files(folder) if path != ROOT / "companion/cli.py"]
    assert mine
    assert {str(path): names for path in mine if (names := reaches(path, forbidden))} == {}


@pytest.mark.parametrize("path", ["lib/measures.py", "lib/attention.py", "lib/_checks.py"])
def test_the_heart_knows_neither_experiments_nor_pictures(path):
    assert reaches(ROOT / path, ["lib.experiments", "lib.plotting", "matplotlib", "seaborn", "pandas"]) == []


def test_measures_do_not_know_attention():
    assert reaches(ROOT / "lib/measures.py", ["lib.attention"]) == []


def test_the_rules_can_be_broken(tmp_path, monkeypatch):
    """The reader of imports sees every way to write one."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "lib/experiments").mkdir(parents=True)
    sinner = tmp_path / "lib/experiments/sinner.py"
    ways = [
        "import lib.plotting.style",
        "from lib import plotting",
        "from .. import plotting",
        "from ..plotting import x",
    ]
    for way in ways:
        sinner.write_text(f"def late():\n    {way}\n")
        assert reaches(sinner, ["lib.plotting"]), way
    sinner.write_text("from lib import plotting_free\nfrom . import result\n")
    assert reaches(sinner, ["lib.plotting"]) == []


def test_git_does_not_ignore_lib():
    """The stock Python .gitignore does. Files not added yet count; ignored ones do not."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        [shutil.which("git"), "ls-files", "--cached", "--others", "--exclude-standard", "lib"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert listed
    assert set(listed) >= {str(path.relative_to(ROOT)) for path in files("lib")}


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
    """No precision, no style, no print option: not by any module of it."""
    names = [module_name(path) for path in files("lib")]
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
    "lib.icl": "LinearRegression block_attention",
    "lib.single_location": "Spiked Max Overlaps bayes_risk attention_risk best_risk replica bayes_optimal_risk softmax "
    "linear erf softplus sigmoid relu exp hardmax",
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in PUBLIC for name in PUBLIC[module].split()])
def test_public_names_stay_and_are_no_modules(module, name):
    """A function may share its module's name, as `replica` does: what is imported must be the function."""
    value = getattr(importlib.import_module(module), name)
    assert not inspect.ismodule(value)
