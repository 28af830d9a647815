"""What is typed in a fresh clone, on a terminal and into a pipe: exit codes, what is said, what is left behind."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from companion.project.notebooks import Notebook
from companion.project.parameters import parameters_of
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@b"]
# What moves a cursor or colours a word; a carriage return alone begins a line again.
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\].*?\x07)")

# In this order: what is typed, the exit code, and what the answer has, as patterns.
LINES = [
    ("--version", 0, [r"^large-prompt-attention \S+ \("]),
    ("list", 0, [r"toy_error\W+published\W+—\W+1/1", r"the site\W+not built"]),
    ("list --json", 0, [r'"state": "published"']),
    ("build --dry-run", 0, [r"▸ run toy: ", r"▸ build the site: it was not built yet"]),
    ("run toy --parameters", 0, [r"^seed = 0$", r"smoke: 200", r"It was not run here yet\."]),
    ("run toi", 2, [r"^Error: There is no notebook 'toi'\. Did you mean 'toy'\?"]),
    ("run toy -p typo=1", 2, [r"^Error: .*no parameter 'typo'\. Known: lengths, repeats, seed\."]),
    ("run toy -p seed 1", 2, [r"-p seed=1"]),
    ("runs", 0, [r"^There are no runs of your own yet"]),
    ("run toy", 0, [r"^▸ toy \(laptop\)$", r"^✓ toy: 1 figures, 1 claims hold, \d+ s\. .*figures/toy$"]),
    ("run toy -p seed=1", 0, [r"^✓ toy: 1 figures, 1 claims hold", r"^  beside what is published: .*index\.html$"]),
    ("run toy -p seed=1", 0, [r"^✓ toy: 1 figures, 1 claims hold", r"^  beside what is published: "]),
    ("run toy --figure toy_error", 0, [r"^▸ toy/toy_error \(laptop\)$", r"^✓ toy: 1 figures"]),
    ("runs", 0, [r"^toy-\w{8}  1/1 claims hold  ", r"^  seed: 0 → 1$", r"^toy-toy_error-\w{8}  ", r"^  as published$"]),
    ("sweep toy -p seed=1:2", 0, [r"^▸ 1 runs of 2; the others are there$", r"toy-rate\W+2/2", r"^Tables and a"]),
    ("compare figures _build/laptop", 0, [r"^= toy/toy_error$", r"^1 figures are equal, 0 differ\.$"]),
    ("compare figures toy-nothing", 2, [r"^Error: There is no folder and no run 'toy-nothing'"]),
    ("draw", 0, [r"^Every picture of numbers that are fresh is up to date\.$"]),
    ("draw toy_error", 0, [r"^✓ toy/toy_error drawn$"]),
    ("list", 0, [r"toy_error\W+fresh\W+\d+\W+1/1"]),
]


def piped(clone, *words):
    """Exit code, and everything that was said."""
    finished = clone.companion(*words)
    return finished.returncode, finished.stdout + finished.stderr


def on_a_terminal(clone, *words, until=None):
    """The same; where `until` is said, Ctrl-C is typed."""
    environment = {name: value for name, value in clone.environment.items() if name != "NO_COLOR"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "companion", *words]
    terminal = dict.fromkeys(["stdin", "stdout", "stderr"], theirs)
    with subprocess.Popen(command, cwd=clone.root, env=environment | {"TERM": "xterm"}, **terminal) as process:
        os.close(theirs)
        said = b""
        try:
            while heard := os.read(ours, 4096):
                said += heard
                if until and until.encode() in said:
                    process.send_signal(signal.SIGINT)
                    until = None
        except OSError:  # how Linux says that nobody has the other end any more
            pass
        finally:
            os.close(ours)
            process.wait(timeout=60)
    return process.returncode, said.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def origin(ran, tmp_path_factory):
    """A repository of the toy book, its figures published."""
    clone = ran.copy_to(tmp_path_factory.mktemp("origin") / "clone")
    for command in (["init", "-q"], ["add", "-A"], [*IDENTITY, "commit", "-qm", "A book"]):
        subprocess.run(["git", *command], cwd=clone.root, check=True)
    return clone


def fresh(origin, root):
    """A clone of it as git makes one."""
    subprocess.run(["git", "clone", "-q", origin.root, root], check=True)
    return type(origin)(root)


def changed(clone):
    """What git says is not as it was committed."""
    command = ["git", "status", "--porcelain"]
    return subprocess.run(command, cwd=clone.root, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", params=[piped, on_a_terminal], ids=["piped", "on a terminal"])
def transcript(origin, request, tmp_path_factory):
    """A fresh clone, and all answers to LINES there, in order."""
    clone = fresh(origin, tmp_path_factory.mktemp("fresh") / "clone")
    clone.answers = [request.param(clone, *line.split()) for line, _, _ in LINES]
    clone.terminal = request.param is on_a_terminal
    return clone


@pytest.mark.parametrize("number", range(len(LINES)), ids=[line for line, _, _ in LINES])
def test_what_is_typed_is_answered(transcript, number):
    """The same words on a terminal, where they have colours, and in a pipe, where there is nothing but words."""
    _, code, patterns = LINES[number]
    left, said = transcript.answers[number]
    plain = CONTROL.sub("", said)
    assert left == code, said
    for pattern in patterns:
        assert re.search(pattern, plain, re.MULTILINE), f"{pattern!r} is not in\n{plain}"
    assert "Traceback" not in plain
    if not transcript.terminal:
        assert [character for character in said if ord(character) < 32 and character != "\n"] == []


def test_a_terminal_has_colours(transcript):
    """And only that."""
    _, said = transcript.answers[[line for line, _, _ in LINES].index("list")]
    assert ("\x1b[32m" in said) == transcript.terminal


def test_rerunning_leaves_the_clone_as_it_was(transcript):
    """Nothing is modified, and nothing is untracked that git does not ignore."""
    assert changed(transcript) == ""


def test_site_of_a_fresh_clone_is_built_and_shown_on_a_terminal(origin, tmp_path):
    """From published figures, until Ctrl-C; then a new notebook is laid out."""
    clone = fresh(origin, tmp_path / "clone")
    code, said = on_a_terminal(clone, "book", "--published")
    assert (code, "the site: " in said) == (0, True), said
    code, said = on_a_terminal(clone, "serve", "--port", "0", until="Ctrl-C ends it.")
    assert (code, "http://127.0.0.1:" in said, "Ended." in said) == (0, True, True), said
    assert re.search(r"the site\W+published", CONTROL.sub("", on_a_terminal(clone, "list")[1]))
    assert changed(clone) == ""
    code, said = on_a_terminal(clone, "new", "second_idea")
    assert (code, "It runs as it is: companion run second_idea" in said) == (0, True), said


@pytest.fixture(scope="module")
def real(pristine):
    """This checkout, whatever was run in it."""
    return type(pristine)(ROOT)


def test_real_book_lists_every_figure(real):
    """Once, for people and for programs."""
    code, said = piped(real, "list")
    assert code == 0, said
    project = Project(ROOT)
    for name in project.notebooks():
        for figure in Notebook.named(project, name).figures:
            assert len(re.findall(rf"{name}\W+{figure}\W", said)) == 1, f"{name}/{figure}"
    assert len(json.loads(piped(real, "list", "--json")[1])["figures"]) > 60


@pytest.mark.parametrize("name", Project(ROOT).notebooks())
def test_real_notebook_lists_its_parameters(real, name):
    """Each with its value."""
    code, said = piped(real, "run", name, "--parameters")
    assert code == 0, said
    for parameter in parameters_of(Project(ROOT), name).model_fields:
        assert re.search(rf"^{parameter} = ", said, re.MULTILINE)


def test_real_book_says_what_a_build_would_run(real):
    code, said = piped(real, "build", "--dry-run")
    assert code == 0, said
    assert re.search(r"^(▸ |Nothing would run)", said)
