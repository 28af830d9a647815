"""Start-up optimisation: run the garbage collector less often. No result changes."""

import gc

# Thresholds of the garbage collector's three generations.
GC_THRESHOLDS = (50_000, 20, 50)


def collect_seldom() -> None:
    """Let the garbage collector run less often, for a process that keeps most objects, as Sphinx keeps its trees."""
    gc.set_threshold(*GC_THRESHOLDS)
