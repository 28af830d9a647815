"""The import of optional grammars is skipped for speed; validation of notebooks works without them."""

import subprocess
import sys

RUNNING = r"""
import sys
from companion.io import startup
startup.leave_out_grammars()
import nbformat
import papermill

assert not any(name.startswith(("rfc3987_syntax.", "lark")) for name in sys.modules)
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
nbformat.validate(notebook)
notebook.cells[0]["cell_type"] = "no cell type"
try:
    nbformat.validate(notebook)
except nbformat.ValidationError:
    print("rejected")
"""


def test_notebooks_are_validated_without_the_grammars():
    """In a new process, the validator imports no grammar, accepts a valid notebook and rejects an invalid one."""
    finished = subprocess.run([sys.executable, "-c", RUNNING], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "rejected"
