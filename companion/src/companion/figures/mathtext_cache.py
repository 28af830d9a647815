"""Parse every formula in pictures once per process, which saves a third of the drawing time.

Matplotlib caches fifty parsed formulas per renderer, and every file of every figure has a new renderer. The look of a
formula depends on the key of the cache, not on the renderer.
"""

from functools import lru_cache
from typing import Any

# Size of the cache: formulas and tick labels of all figures of a chapter, times sizes and resolutions.
CACHE_SIZE = 4096
_OUTPUTS = {"vector": "path", "raster": "agg"}


def parse_once() -> None:
    """Let all renderers share one cache. A second call, or a version of Matplotlib without this cache, changes nothing.

    The function replaces a private method of Matplotlib's parser.
    """
    from matplotlib.mathtext import MathTextParser

    parse = getattr(getattr(MathTextParser, "_parse_cached", None), "__wrapped__", None)
    if parse is None:
        return

    @lru_cache(CACHE_SIZE)
    def parsed(output: str, *arguments: Any) -> Any:
        return parse(MathTextParser(_OUTPUTS[output]), *arguments)  # pyright: ignore

    def shared(parser: Any, *arguments: Any) -> Any:
        return parsed(parser._output_type, *arguments)

    MathTextParser._parse_cached = shared  # pyright: ignore
