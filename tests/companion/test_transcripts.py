"""Commands typed in a fresh clone, on a terminal and into a pipe: exit codes, output and remaining files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from companion.project.notebooks import Notebook
from companion.project.paths import Project
from small_books import Clone

ROOT = Path(__file__).resolve().parents[2]
IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@b"]
# Escape sequences that move the cursor or colour a word; a carriage return alone starts a line again.
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\].*?\x07)")

# The commands in their order, each with its exit code and patterns that its output contains.
RUN = r"^✓ toy: 1 figure, 1 claim holds"
COMPARED = r"^  compared with the published figures: .*index\.html$"
COMMANDS = [
    ("--version", 0, [r"^paper-companion \S+ \("]),
    ("list", 0, [r"toy_error\W+published\W+—\W+1/1", r"the site\W+not built"]),
    ("list --json", 0, [r'"state": "published"']),
    ("build --dry-run", 0, [r"▸ run toy: ", r"▸ build the site: it was not built yet"]),
    ("run toy --parameters", 0, [r"^seed = 0$", r"smoke: 200"]),
    ("run toi", 2, [r"^Error: There is no notebook 'toi'\. Did you mean 'toy'\?"]),
    ("run toy -p typo=1", 2, [r"^Error: .*no parameter 'typo'\. Known: lengths, repeats, seed\."]),
    ("run toy -p seed 1", 2, [r"-p seed=1"]),
    ("list --runs", 0, [r"^There are no custom runs yet\."]),
    ("run toy", 0, [r"^▸ toy \(laptop\)$", RUN + r", \d+ s\. .*figures/toy$"]),
    ("run toy -p seed=1", 0, [RUN, COMPARED]),
    ("run toy -p seed=1", 0, [RUN, COMPARED]),
    ("run toy --figure toy_error", 0, [r"^▸ toy/toy_error \(laptop\)$", r"^✓ toy: 1 figure,"]),
    ("list --runs", 0, [r"^toy-\w{8}  1/1 claims hold  ", r"^  seed: 0 → 1$", r"^toy-toy_error-\w{8}  "]),
    ("sweep toy -p seed=1:2", 0, [r"^▸ Running 1 of 2 \(1 cached\)$", r"toy-rate\W+2/2", r"^Tables and a picture"]),
    ("compare figures _build/laptop", 0, [r"^= toy/toy_error$", r"^1 of 1 figures are equal\.$"]),
    ("compare figures toy-nothing", 2, [r"^Error: There is no folder and no custom run 'toy-nothing'"]),
    ("redraw", 0, [r"^All pictures are up to date\.$"]),
    ("redraw toy_error", 0, [r"^✓ toy/toy_error redrawn$"]),
    ("list", 0, [r"toy_error\W+fresh\W+\d+\W+1/1"]),
]


def run_on_terminal(clone, *words, interrupt_at=pexpect.EOF):
    """Run a command on a terminal; return its exit code and output. Press Ctrl-C after the words `interrupt_at`."""
    environment = {name: value for name, value in clone.environment.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    options = {"cwd": clone.root, "env": environment, "encoding": "utf-8", "timeout": 300}
    with pexpect.spawn(sys.executable, ["-m", "companion", *words], **options) as process:
        process.expect(interrupt_at)
        output = process.before
        if interrupt_at is not pexpect.EOF:
            process.sendintr()
            process.expect(pexpect.EOF)
            output += process.before
        process.wait()
    return process.exitstatus, output.replace("\r\n", "\n")


@pytest.fixture(scope="module")
def origin(ran, tmp_path_factory):
    """Return a git repository of the toy book with its published figures."""
    clone = ran.copy_to(tmp_path_factory.mktemp("origin") / "clone")
    for command in (["init", "-q"], ["add", "-A"], [*IDENTITY, "commit", "-qm", "A book"]):
        subprocess.run(["git", *command], cwd=clone.root, check=True)
    return clone


def clone_of(origin, root):
    """Clone `origin` with git into `root`."""
    subprocess.run(["git", "clone", "-q", origin.root, root], check=True)
    return Clone(root)


def git_status(clone):
    """Return the output of `git status --porcelain`."""
    return subprocess.check_output(["git", "status", "--porcelain"], cwd=clone.root, text=True)


@pytest.fixture(scope="module")
def transcript(origin, tmp_path_factory):
    """Return a fresh clone in which the COMMANDS were run in order, with their results."""
    clone = clone_of(origin, tmp_path_factory.mktemp("fresh") / "clone")
    clone.results = [clone.companion(*line.split()) for line, _, _ in COMMANDS]
    return clone


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[line for line, _, _ in COMMANDS])
def test_output_and_exit_code_of_a_command(transcript, number):
    """A pipe gets no control characters."""
    (_, code, patterns), finished = COMMANDS[number], transcript.results[number]
    output = finished.stdout + finished.stderr
    assert finished.returncode == code, output
    assert [pattern for pattern in patterns if not re.search(pattern, output, re.MULTILINE)] == [], output
    assert "Traceback" not in output
    assert [character for character in output if ord(character) < 32 and character != "\n"] == []


def test_commands_leave_git_status_clean(transcript):
    """No tracked file is modified, and every new file is ignored."""
    assert git_status(transcript) == ""


def test_site_of_a_fresh_clone_is_built_and_served(origin, tmp_path):
    """The site of published figures is served until Ctrl-C; then a notebook is created."""
    clone = clone_of(origin, tmp_path / "clone")
    assert "the site: " in clone.succeed("site", "--published")
    code, output = run_on_terminal(clone, "site", "--serve", "--port", "0", interrupt_at=r"press Ctrl-C to stop\.")
    assert (code, "http://127.0.0.1:" in output, "Stopped." in output) == (0, True, True), output
    _, output = run_on_terminal(clone, "list")
    assert "\x1b[32m" in output  # a colour
    assert re.search(r"the site\W+published", CONTROL.sub("", output))
    assert git_status(clone) == ""
    code, output = run_on_terminal(clone, "new", "second_idea")
    assert (code, "Run it: companion run second_idea" in output) == (0, True), output


def test_real_book_lists_every_figure_once():
    output, project = Clone(ROOT).succeed("list", "--json"), Project(ROOT)
    figures = [(name, figure) for name in project.notebooks() for figure in Notebook.named(project, name).figures]
    assert [(row["notebook"], row["figure"]) for row in json.loads(output)["figures"]] == figures
