"""The environment, the locks, the wheels and the command line."""

import inspect
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML
from typer.testing import CliRunner

from companion import cli
from companion.build.cache_keys import computing_versions, drawing_versions
from companion.cli.scaffold import create_book
from companion.project import slicing
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT, TOOL = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in (".", "companion")
)
EXTRAS, TOOL_EXTRAS = PYPROJECT["optional-dependencies"], TOOL["optional-dependencies"]
PACKAGES = {"lib": ROOT, "companion": ROOT / "companion/src", "chapters": ROOT}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def yaml(name):
    return YAML(typ="safe", pure=True).load(read(name))


def bounds(requirements):
    """Return version bounds by normalised name."""
    parsed = map(Requirement, requirements)
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in parsed}


def test_conda_environment_is_that_of_the_project():
    """The same packages and Python with the same bounds, whether conda or pip installs them; at last the clone."""
    *own, through_pip = yaml("environment.yml")["dependencies"]
    python, pip, *packages, tool, book = [*own, *through_pip["pip"]]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PYPROJECT["requires-python"])
    assert (pip, tool, book) == ("pip", "-e ./companion", "-e .")
    # the environment has nothing for clusters; an extra may include another extra
    extras = [line for name, extra in [*EXTRAS.items(), *TOOL_EXTRAS.items()] if name != "cluster" for line in extra]
    required = bounds([*PYPROJECT["dependencies"], *TOOL["dependencies"], *extras])
    own_names = {PYPROJECT["name"], TOOL["name"]}
    assert bounds(packages) == {name: bound for name, bound in required.items() if name not in own_names}


def test_binder_installs_the_lock_and_the_clone():
    """The lock, then the clone as in the Makefile, with a supported Python."""
    assert "-r ../requirements.lock" in read("binder/requirements.txt").splitlines()
    install = " --no-deps --no-build-isolation -e ./companion -e .\n"
    assert install in read("binder/postBuild")
    assert install in read("Makefile")
    python = read("binder/runtime.txt").strip().removeprefix("python-")
    assert python in SpecifierSet(PYPROJECT["requires-python"])


def locked(name):
    """Return the entries of a lock, each one line with its hashes."""
    return [line for line in re.sub(r" *#.*| *\\\n", "", read(name)).splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-weights.lock", ".ci/release.lock"])
def test_locked_requirements_are_pinned_and_hashed_and_name_no_address(name):
    """Users who install them need not reach the index that resolved them."""
    assert "://" not in read(name)
    entry = re.compile(r"[\w.-]+(\[[\w,-]+\])?==\S+( ; .+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*")
    assert [line for line in locked(name) if not entry.fullmatch(line)] == []


def test_all_pythons_have_the_same_versions_of_packages_that_compute_or_draw():
    """Two versions would give two sets of last digits, and need two sets of compiler flags."""
    versions = computing_versions(Project(ROOT)) | drawing_versions(Project(ROOT))
    needs = [Requirement(line.partition("--hash=")[0]) for line in locked("requirements.lock")]
    needs = [need for need in needs if need.name in versions]
    assert {"jax", "jaxlib", "numpy", "scipy", "matplotlib", "contourpy"} <= {need.name for need in needs}
    assert [str(need) for need in needs if "python_" in str(need.marker)] == []


def test_every_requirement_of_a_notebook_has_a_lower_bound():
    """`.ci/wheel.py lowest` runs the notebooks with these versions every night."""
    required = bounds([*PYPROJECT["dependencies"], *EXTRAS["notebook"], *TOOL["dependencies"]])
    assert [name for name, bound in required.items() if ">=" not in {one.operator for one in bound}] == []


def test_both_commands_run_every_night_with_every_python_of_the_readme():
    """CI uses Python 3.11, the nightly workflow the others."""
    versions = re.findall(r"3\.\d+", re.search(r"The commands need Python ([\d., or]+) with", read("README.md"))[1])
    allowed = SpecifierSet(PYPROJECT["requires-python"])
    assert versions == [f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed]
    assert SpecifierSet(TOOL["requires-python"]) == allowed
    verify, nightly = (yaml(f".github/workflows/{name}.yml")["jobs"] for name in ("verify", "nightly"))
    assert verify["verify"]["strategy"]["matrix"]["python"] == versions
    assert ["3.11", *nightly["pythons"]["strategy"]["matrix"]["python"]] == versions


def test_wheels_contain_all_code_and_nothing_else(tmp_path):
    """Modules, data and templates, also hidden ones; no tests and no figures."""
    for project in (ROOT, ROOT / "companion"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, project]
        finished = subprocess.run(command, check=False, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stdout + finished.stderr
    book, tool = (set(zipfile.ZipFile(built).namelist()) for built in sorted(tmp_path.glob("*.whl")))
    assert not book & tool
    code = {
        path.relative_to(folder).as_posix()
        for package, folder in PACKAGES.items()
        for path in (folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    own = {path for path in book | tool if ".dist-info/" not in path}
    # a notebook that runs from the wheel reads its settings from the chapters package
    assert own == code | {"chapters/pyproject.toml"}


def installed_with(names):
    """Return the distributions that pip installs with these, and their own names."""
    pending, found = [canonicalize_name(name) for name in names], set()
    while pending:
        if (name := pending.pop()) not in found:
            found.add(name)
            needs = map(Requirement, metadata.requires(name) or [])
            pending += [canonicalize_name(need.name) for need in needs if not need.marker or need.marker.evaluate()]
    return found


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_packages_import_only_their_requirements(package):
    """`lib` needs no extra, `chapters` the extra `notebook`, and `companion` the packages of its pyproject.toml."""
    lines = {
        "lib": PYPROJECT["dependencies"],
        "chapters": [*PYPROJECT["dependencies"], *EXTRAS["notebook"]],
        "companion": [*TOOL["dependencies"], *TOOL_EXTRAS["site"], *TOOL_EXTRAS["pdf"]],
    }[package]
    allowed = installed_with(Requirement(line).name for line in lines)
    allowed |= {*PACKAGES, *(Requirement(line.split(" ")[0]).name for line in locked("requirements-weights.lock"))}
    # scripts of long runs, in folders `data`, need a clone
    paths = [path for path in (PACKAGES[package] / package).rglob("*.py") if path.parent.name != "data"]
    dotted = slicing.modules([path.read_text(encoding="utf-8") for path in paths])
    imported = {name.partition(".")[0] for name in dotted} - sys.stdlib_module_names
    homes = metadata.packages_distributions()
    assert [name for name in imported if allowed.isdisjoint(map(canonicalize_name, homes.get(name, [name])))] == []


# The longest name of a notebook and of a package.
LONGEST = "longest_name_that_one_may_give"


@pytest.mark.parametrize("hook", ["ruff-check", "ruff-format", "nbstripout"])
def test_hooks_of_a_commit_leave_a_new_book_as_it_is(tmp_path, hook):
    """Also with the longest names; the rules are those of this repository."""
    create_book(tmp_path / LONGEST, LONGEST[::-1])
    paths = [*tmp_path.rglob("*.ipynb"), *([] if hook == "nbstripout" else tmp_path.rglob("*.py"))]
    before = [path.read_bytes() for path in paths]
    (entry,) = [each["entry"] for each in yaml(".pre-commit-config.yaml")["repos"][0]["hooks"] if each["id"] == hook]
    options = [] if hook == "nbstripout" else ["--no-cache", "--config", ROOT / "pyproject.toml"]
    command = [sys.executable, "-m", *entry.removeprefix(".venv/bin/").split(), *options, *paths]
    finished = subprocess.run(command, cwd=tmp_path / LONGEST, check=False, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert [path.read_bytes() for path in paths] == before


def printed(*arguments):
    """Return the output of a command in this process, without colours."""
    result = CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}).invoke(cli.app, arguments)
    return re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_help_lists_every_command_once_and_the_version_names_the_checkout():
    """Each with a sentence, in the order of a user's work; without a command, the help is printed."""
    names = ["build", "site", "list", "run", "redraw", "sweep", "compare", "verify", "new", "set-url"]
    assert re.findall(r"^[│|] ([a-z-]+) +[A-Z]", printed("--help"), re.MULTILINE) == names
    assert printed("-h") == printed("--help")
    assert "Usage:" in printed()
    assert printed("--version").replace("\n", "") == f"{TOOL['name']} {TOOL['version']} ({ROOT / 'companion/src'})"


COMMANDS = typer.main.get_command(cli.app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name):
    """It begins with a sentence that fits the table of `companion --help` and ends with an example that parses."""
    command, text = COMMANDS[name], printed(name, "--help")
    lines = [line.strip() for line in inspect.cleandoc(command.help).splitlines()]
    assert re.fullmatch(r"(?!\S+s )[A-Z][a-z]+ [^.]+\.", lines[0])  # in the imperative
    assert lines[1] == ""
    *_, heading, example = filter(None, lines)
    assert (heading, example.split()[:2]) == ("Example:", ["companion", name])
    assert example in text == printed(name, "-h")
    options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if option not in text] == []
    # click parses the words and raises an error for an unknown option or a surplus argument
    assert not command.make_context(name, shlex.split(example)[2:]).args


def test_documented_commands_and_options_exist():
    """As a line of code or in backticks, in all tracked texts; the changelog has old names too."""
    patterns = ["*.md", "*.txt", "*.ipynb", "*.py", "*.smk", "*.yml", "*.toml", "Snakefile", "Makefile"]
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    line = re.compile(r"(?:^\s*(?:\.venv/bin/|\$\(BIN\)/)?|`)companion ([a-z][^`#\n]*)", re.MULTILINE)
    paths = [path for path in listed.stdout.splitlines() if path != "CHANGELOG.md" and (ROOT / path).is_file()]
    commands = [(path, *command.split()) for path in paths for command in line.findall(read(path))]
    assert {"README.md", "CONTRIBUTING.md", "Makefile"} <= {path for path, *_ in commands}
    for path, name, *words in commands:
        assert name in COMMANDS, f"{path}: companion {name}"
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts} | {"-h", "--help"}
        used = {word for word in words if re.match(r"--?[a-z]", word)}
        assert used <= known, f"{path}: companion {name} {' '.join(words)}"


def run_lacking(modules, code):
    """Run Python code where these modules cannot be imported, because they are None in `sys.modules`."""
    lacking = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); {code}"
    return subprocess.run([sys.executable, "-c", lacking], cwd=ROOT, check=False, capture_output=True, text=True)


def test_a_missing_library_is_named():
    """For users who installed the package without extras."""
    finished = run_lacking(["typer"], "from companion.__main__ import main; main()")
    assert finished.returncode == 1
    assert re.search(r"^The command line needs typer, .*-companion\[site\]`", finished.stderr)


def test_importing_needs_nothing_that_windows_lacks():
    """Every module of `lib` and `companion` can be imported without them; their functions were not tried on Windows."""
    names = "[m.name for m in pkgutil.walk_packages(companion.__path__, 'companion.')]"
    code = f"import importlib, pkgutil, companion, lib; print(len([importlib.import_module(name) for name in {names}]))"
    finished = run_lacking(["fcntl", "grp", "pwd", "resource", "termios"], code)
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) > 40


@pytest.mark.parametrize(("typed", "completions"), [("companion ver", {"verify"}), ("companion run t", {"toy"})])
def test_shell_completes_commands_and_names(clone, typed, completions):
    """As `companion --install-completion` sets it up."""
    clone.environment |= {"_COMPANION_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    clone.environment |= {"COMP_CWORD": str(len(typed.split(" ")) - 1)}
    script = "import sys; sys.argv = ['companion']; from companion.__main__ import main; main()"
    assert set(clone.python("-c", script).stdout.split()) == completions


def test_the_profile_of_a_cluster_has_only_valid_options():
    """Options of Snakemake or of the plugin; the profile resumes and resubmits failed jobs."""
    profile = yaml("profiles/slurm/config.yaml")
    assert profile["executor"] == "slurm"
    assert profile["retries"] >= 1
    assert profile["rerun-incomplete"] is True
    finished = subprocess.run([sys.executable, "-m", "snakemake", "--help"], check=True, capture_output=True, text=True)
    options = set(re.findall(r"--([a-z-]+)", finished.stdout))
    assert {key for key in profile if key not in options and not key.startswith("slurm-")} == set()
