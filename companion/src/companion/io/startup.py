"""Start-up optimisations: libraries' work that `companion` does not need is skipped. No result changes."""

import gc
import sys

# Thresholds of the garbage collector's three generations.
GC_THRESHOLDS = (50_000, 20, 50)


def collect_seldom() -> None:
    """Let the garbage collector run less often, for a process that keeps most objects, as Sphinx keeps its trees."""
    gc.set_threshold(*GC_THRESHOLDS)


def skip_grammar_of_addresses() -> None:
    """Let `jsonschema` do without `rfc3987_syntax` in this process, which must be one that `companion` started.

    That package compiles the grammar of international addresses when it is imported, in more than a second.
    `jsonschema` imports it if it is there, to check the format "iri", which no notebook has.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]: an import then fails at once
