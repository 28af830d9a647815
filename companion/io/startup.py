"""Time that other people's libraries take for what this machine does not ask of them, saved.

Nothing here changes a result: what is left out is asked for by nobody, what is done less often is tidying up.
"""

import gc
import sys

# jsonschema looks for these to check addresses with letters beyond ASCII; no notebook holds one. The second builds
# forty parsers when it is imported, which takes longer than all the rest of papermill.
GRAMMARS = ("rfc3987", "rfc3987_syntax")
# Objects made before the collector looks for cycles among the young ones; then how often among the old ones.
SELDOM = (50_000, 20, 50)


def leave_out_grammars() -> None:
    """Call it before papermill, nbformat or Jupyter Book is imported: 1.3 s less."""
    for name in GRAMMARS:
        sys.modules.setdefault(name, None)  # pyright: ignore[reportArgumentType]


def collect_seldom() -> None:
    """For a process that keeps what it makes, as Sphinx its trees: half its time went into finding no cycle."""
    gc.set_threshold(*SELDOM)
