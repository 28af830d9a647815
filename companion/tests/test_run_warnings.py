"""A run that succeeds reports empty columns, and what cells wrote to standard error."""

import csv
import json

import pytest

from companion.build import run_warnings
from companion.project.paths import Project

FIGURE = "toy_error"


def printed(name, *lines):
    return {"output_type": "stream", "name": name, "text": list(lines)}


# The rows of a table, the outputs of a cell, and the warnings.
RESULTS = {
    "a value is missing in some rows, and a cell prints": ([(10, ""), (20, 0.5)], [printed("stdout", "hello\n")], []),
    "empty column": (
        *([(10, ""), (20, "")], []),
        [f"Column 'error' in the table of {FIGURE} is empty or NaN in every row."],
    ),
    "empty table": ([], [], [f"The table of {FIGURE} has no row."]),
    "standard error": (
        *([(10, 1)], [printed("stderr", "a.py:3: RuntimeWarning: overflow\n", "  x = y\n")]),
        ["Cell 4 wrote to standard error, and the page shows it: a.py:3: RuntimeWarning: overflow … (1 more line)"],
    ),
}


@pytest.mark.parametrize(("rows", "outputs", "warnings"), RESULTS.values(), ids=RESULTS)
def test_results_that_are_not_intended_are_reported(tmp_path, rows, outputs, warnings):
    build = Project(tmp_path).build("laptop")
    (build.tables / "toy").mkdir(parents=True)
    with (build.tables / "toy" / f"{FIGURE}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("length", "error"), *rows])
    cell = {"cell_type": "code", "execution_count": 4, "outputs": outputs, "source": ""}
    build.executed.mkdir(parents=True)
    notebook = {"cells": [{"cell_type": "markdown", "source": ""}, cell]}
    (build.executed / "toy.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    assert run_warnings.of_run(build, "toy", [FIGURE]) == warnings


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
        output = ran_clone.succeed("run", "toy", "--isolated")
        assert "Warning: Column 'spread' in the table of toy_error is empty or NaN in every row." in output
        assert "wrote to standard error, and the page shows it" in output
        assert "not converged" in output
