"""A run that succeeds reports empty columns, and what cells wrote to standard error."""

import csv
import json

import pytest

from companion.build import run_warnings
from companion.project.paths import Project

FIGURE = "toy_error"


@pytest.fixture
def results(tmp_path):
    """Return a function that writes the results of a run, and returns the warnings about them."""

    def write(rows, outputs=()):
        build = Project(tmp_path).build("laptop")
        (build.tables / "toy").mkdir(parents=True)
        with (build.tables / "toy" / f"{FIGURE}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("length", "error"), *rows])
        cell = {"cell_type": "code", "execution_count": 4, "outputs": list(outputs), "source": ""}
        build.executed.mkdir(parents=True)
        notebook = {"cells": [{"cell_type": "markdown", "source": ""}, cell]}
        (build.executed / "toy.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        return run_warnings.of_run(build, "toy", [FIGURE])

    return write


def test_plain_results_give_no_warning(results):
    """A value may be missing in some rows, and a cell may print."""
    stdout = {"output_type": "stream", "name": "stdout", "text": ["hello\n"]}
    assert results([(10, ""), (20, 0.5)], [stdout]) == []


def test_a_column_without_any_value_is_reported(results):
    assert results([(10, ""), (20, "")]) == [f"Column 'error' in the table of {FIGURE} is empty or NaN in every row."]


def test_a_table_without_rows_is_reported(results):
    assert results([]) == [f"The table of {FIGURE} has no row."]


def test_standard_error_of_a_cell_is_reported(results):
    stderr = {"output_type": "stream", "name": "stderr", "text": ["a.py:3: RuntimeWarning: overflow\n", "  x = y\n"]}
    assert results([(10, 1)], [stderr]) == [
        "Cell 4 wrote to standard error, and the page shows it: a.py:3: RuntimeWarning: overflow … (1 more line)"
    ]


def test_the_command_prints_the_warnings(ran_clone):
    """A warning of a cell, and a column of NaN, whether or not the result is fresh."""
    code = "clone/toy/figures/toy_error.py"
    ran_clone.replace(code, "from collections.abc", "import warnings\nfrom collections.abc")
    ran_clone.replace(code, "    rows = [\n", '    warnings.warn("not converged", stacklevel=1)\n    rows = [\n')
    ran_clone.replace(code, '{"length": length, ', '{"length": length, "spread": np.nan, ')
    ran_clone.replace(
        code, '        "squared_error": Column', '        "spread": Column("s"),\n        "squared_error": Column'
    )
    for _ in range(2):
        finished = ran_clone.companion("run", "toy", "--isolated")
        assert finished.returncode == 0, finished.stderr
        assert "Warning: Column 'spread' in the table of toy_error is empty or NaN in every row." in finished.stdout
        assert "wrote to standard error, and the page shows it" in finished.stdout
        assert "not converged" in finished.stdout
