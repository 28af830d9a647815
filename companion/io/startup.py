"""Start-up optimisations: skip optional imports, run the garbage collector less often. No result changes."""

import gc
import sys

# jsonschema imports these to check internationalised addresses, which no notebook contains. The second module builds
# forty parsers on import, which takes longer than the rest of papermill.
OPTIONAL_GRAMMARS = ("rfc3987", "rfc3987_syntax")
# Thresholds of the garbage collector's three generations.
GC_THRESHOLDS = (50_000, 20, 50)


def leave_out_grammars() -> None:
    """Prevent the import of the optional grammars, which saves 1.3 s. Call it before importing papermill."""
    for name in OPTIONAL_GRAMMARS:
        sys.modules.setdefault(name, None)  # pyright: ignore[reportArgumentType]


def collect_seldom() -> None:
    """Let the garbage collector run less often, for a process that keeps most objects, as Sphinx keeps its trees."""
    gc.set_threshold(*GC_THRESHOLDS)
