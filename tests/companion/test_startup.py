"""What is left out for speed is missed by nobody."""

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
notebook.cells[0]["cell_type"] = "no such cell"
try:
    nbformat.validate(notebook)
except nbformat.ValidationError:
    print("refused")
"""


def test_notebooks_are_validated_without_parsers_of_addresses():
    """In a process of its own: what validates them imports no grammar, accepts what is right, refuses what is not."""
    told = subprocess.run([sys.executable, "-c", RUNNING], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "refused"
