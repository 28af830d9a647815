"""Formulas in pictures are parsed once a process, which saves a third of the time that drawing takes.

Matplotlib keeps what it parsed with a renderer, fifty formulas each, and every file of every figure has its own
renderer. The look of a formula depends on the key of its cache, not on the renderer.
"""

from functools import lru_cache
from typing import Any

# Formulas, tick labels too, times sizes and resolutions, of all figures of a chapter.
KEPT = 4096
_OUTPUTS = {"vector": "path", "raster": "agg"}


def parse_once() -> None:
    """From now on, renderers share what was parsed. Does nothing the second time, nor where matplotlib is another."""
    from matplotlib.mathtext import MathTextParser

    parse = getattr(getattr(MathTextParser, "_parse_cached", None), "__wrapped__", None)
    if parse is None:
        return

    @lru_cache(KEPT)
    def parsed(output: str, *asked: Any) -> Any:
        return parse(MathTextParser(_OUTPUTS[output]), *asked)  # pyright: ignore

    def shared(parser: Any, *asked: Any) -> Any:
        return parsed(parser._output_type, *asked)

    MathTextParser._parse_cached = shared  # pyright: ignore
