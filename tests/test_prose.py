"""The prose linter: the text that it reads, the patterns that it reports, and the exceptions; sentences cut by code."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import prose

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "tools/prose.py"


def suggestions(text):
    return [pattern.instead for pattern in prose.PATTERNS for _ in pattern.finditer(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "It writes a row a length.",
        "It returns what it is told.",
        "The reason is said in the message.",
        "The value stands in the table.",
        "The table is printed beside the figure.",
        "The error, as far as it is known, is small.",
        "The price that nobody can avoid.",
        "The error is zero in the mean.",
        "The two agree to the number.",
        "The matrix is regular.",
        "Runs that end the wrong way round.",
        "The hay freezes.",
        "Drawn is the largest score.",
        "Who asks for a figure gets it.",
        "Of single runs, the limit.",
        "It returns what is asked for.",
        "The largest is reached the later the higher it is.",
        "It happens at a share 0.5 of the starts.",
        "It fails without a word.",
    ],
)
def test_a_sentence_of_the_dialect_is_found(sentence):
    assert suggestions(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Write one row per length.",
        "Return the targets whose sources are unchanged since the kernel imported them.",
        "Extrapolate single runs to infinite size; return the limit and its standard error.",
        "Theory and simulation agree (largest deviation 2.3 standard errors, 61 comparisons).",
        "It happens at 6 of 12 starts.",
        "The in-context learner stands out.",
        "The threshold is steep in the mean-field limit.",
        "Users who install the wheel see the tracked figures.",
        "An error is raised if the matrix is not invertible.",
    ],
)
def test_plain_english_passes(sentence):
    assert suggestions(sentence) == []


def lint(folder, *arguments):
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    command = [sys.executable, str(SCRIPT), *arguments, "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_docstrings_comments_messages_pages_and_cells_are_checked(tmp_path):
    bad = "The table is printed beside the figure."
    (tmp_path / "docstring.py").write_text(f'"""{bad}"""\n')
    (tmp_path / "comment.py").write_text(f"x = 1  # {bad}\n")
    (tmp_path / "message.py").write_text(f'x = 1\nraise ValueError(f"{bad} Got {{x}}.")\n')
    (tmp_path / "page.md").write_text(f"# Title\n\n{bad}\n")
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [bad]},
        {"cell_type": "code", "metadata": {}, "source": [f"# {bad}"]},
    ]
    (tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": cells}))
    result = lint(tmp_path)
    assert result.returncode == 1
    places = sorted(line.split(":")[0] for line in result.stdout.splitlines() if "beside the figure" in line)
    assert places == ["comment.py", "docstring.py", "message.py", "notebook.ipynb", "notebook.ipynb", "page.md"]


def test_code_quotations_and_formulas_are_ignored(tmp_path):
    (tmp_path / "page.md").write_text(
        "The word `beside` is code, $beside$ a formula.\n\n> printed beside the figure\n\n```sh\necho beside\n```\n"
    )
    (tmp_path / "code.py").write_text('beside = "beside"\n')
    assert lint(tmp_path).returncode == 0


def test_an_exception_is_listed(tmp_path):
    (tmp_path / "kept.py").write_text("x = 1  # printed beside it  prose: keep (a quotation)\n")
    result = lint(tmp_path)
    assert result.returncode == 0
    assert "1 kept on purpose" in result.stdout
    assert "kept.py:1" in result.stdout


def test_more_counted_patterns_than_allowed_are_an_error(tmp_path):
    (tmp_path / "counted.py").write_text('"""Return all names but for the last."""\n')
    assert lint(tmp_path).returncode == 0
    result = lint(tmp_path, "--most", "1")
    assert result.returncode == 1
    assert "more than 1.0 per 1,000 words" in result.stdout


# The end of one string and the start of the next, as a tool leaves them that wraps a text as if it were code.
SEAM = re.compile(r'(?<=\s)"\s+f?"(?=\w)|(?<=\w)"\s+f?"(?=\s)')


def docstrings(path):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [text for node in nodes if isinstance(node, kinds) and (text := ast.get_docstring(node))]


@pytest.mark.parametrize("folder", ["lib", "chapters", "companion", "benchmarks", "tests", "tools"])
def test_no_docstring_contains_the_seam_of_two_strings(folder):
    """The seam is `sample "`, a line break and `"ratio`. Captions are docstrings, too."""
    texts = {path: docstrings(path) for path in (ROOT / folder).rglob("*.py")}
    assert sum(map(len, texts.values())) > 10
    assert [f"{path}: {text}" for path, found in texts.items() for text in found if SEAM.search(text)] == []


def test_no_published_text_contains_the_seam_of_two_strings():
    """Captions, claims, and the descriptions of columns and parameters."""
    records = {path: path.read_text(encoding="utf-8") for path in (ROOT / "figures").glob("*/*.json")}
    assert len(records) > 100
    assert [path for path, text in records.items() if SEAM.search(text.replace(r"\"", '"').replace(r"\n", "\n"))] == []


@pytest.mark.parametrize("seam", ['sample "\n    "ratio', 'sample"\n    " ratio', 'sample "\n    f"ratio'])
def test_a_seam_is_found_and_quotations_are_none(seam):
    assert SEAM.search(seam)
    assert not SEAM.search('words such as "sample" "ratio" and "sample",\n"ratio"')
