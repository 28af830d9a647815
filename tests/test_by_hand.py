"""Every by-hand cell works alone: with its own names, the book's library and its requirements.

Cells with more than NumPy run in a process without the chapters and the publishing tool. All cells run in their
notebooks in `tests/chapters/test_notebooks.py`, which compares what they print with the claims.
"""

import ast
import builtins
import json
import subprocess
import symtable
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The chapters that have by-hand cells, each two of them.
CHAPTERS = ("measures", "gaussian_limit", "concentration", "exact_finite_prompt", "icl_infinite", "icl_finite")
CHAPTERS += ("trajectory_stability", "published_experiment", "risk_and_parameters", "softmax_advantage")
CHAPTERS += ("needle_in_a_long_prompt", "finite_samples")
# Runs the cells one after the other, each with its own names, and prints one line per cell.
ALONE = """
import json, sys
sys.modules["companion"] = sys.modules["chapters"] = None
for name, source in json.load(sys.stdin):
    exec(compile(source, name, "exec"), {"__name__": "__main__"})
"""


def by_hand_cells() -> list[tuple[str, str]]:
    """Return the by-hand cells of the book, each with the name of its notebook."""
    return [
        (path.stem, "".join(cell["source"]))
        for path in sorted((ROOT / "book").glob("*.ipynb"))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if "by-hand" in cell["metadata"].get("tags", [])
    ]


CELLS = by_hand_cells()


def imported(source: str) -> set[str]:
    """Return the packages that a cell imports."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


def foreign_names(source: str) -> set[str]:
    """Return the names that a cell reads without giving them a value."""

    def read(table: symtable.SymbolTable) -> set[str]:
        top = table.get_type() == "module"
        symbols = [symbol for symbol in table.get_symbols() if symbol.is_referenced() and (top or symbol.is_global())]
        return {symbol.get_name() for symbol in symbols}.union(*map(read, table.get_children()))

    table = symtable.symtable(source, "cell", "exec")
    given = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    return read(table) - given - set(dir(builtins))


def test_each_chapter_has_two_cells():
    assert Counter(name for name, _ in CELLS) == dict.fromkeys(CHAPTERS, 2)


def test_cells_use_no_name_of_their_notebook():
    assert {name: found for name, source in CELLS if (found := foreign_names(source))} == {}
    assert foreign_names("import numpy as np\nx = [y + len(z) for y in p.lengths]\nprint(np.ones(x))") == {"p", "z"}


def test_cells_with_more_than_numpy_run_alone(tmp_path):
    """In a process without the chapters and the publishing tool, in which they choose their own precision."""
    more = [(name, source) for name, source in CELLS if imported(source) != {"numpy"}]
    assert more
    record = {name: json.loads((ROOT / f"figures/{name}/claims.json").read_text(encoding="utf-8")) for name, _ in more}
    command = [sys.executable, "-c", ALONE]
    finished = subprocess.run(
        command, check=False, input=json.dumps(more), capture_output=True, text=True, cwd=tmp_path
    )
    assert finished.returncode == 0, finished.stderr
    for cell, printed in zip(more, finished.stdout.splitlines(), strict=True):
        name = cell[0]
        published = [claim["measured"] for claim in record[name]["claims"] if "-by-hand-" in claim["id"]]
        place = [other for other in CELLS if other[0] == name].index(cell)
        assert float(printed) == pytest.approx(published[place], rel=1e-5, abs=1e-13)
