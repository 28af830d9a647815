"""Start-up optimisations: libraries' work that `companion` does not need is skipped. No result changes."""

import gc
import sys

# Thresholds of the garbage collector's three generations.
GC_THRESHOLDS = (50_000, 20, 50)
# Packages that check durations, URIs and IRIs. Importing `rfc3987_syntax` compiles a grammar for more than a second.
FORMATS = ("isoduration", "rfc3986_validator", "rfc3987_syntax")


def collect_seldom() -> None:
    """Let the garbage collector run less often, for a process that keeps most objects."""
    gc.set_threshold(*GC_THRESHOLDS)


def skip_unused_formats() -> None:
    """Let `jsonschema` do without the packages `FORMATS` in this process, which must be one that `companion` started.

    `jsonschema` imports them if they are installed, to check formats that no notebook has.
    """
    for name in FORMATS:
        sys.modules.setdefault(name, None)  # pyright: ignore[reportArgumentType]: an import then fails at once
