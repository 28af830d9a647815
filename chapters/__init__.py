"""The book's chapters, a folder a notebook: parameters, what its figures share, and one file a figure."""

import os
import warnings


def float64() -> None:
    """What every computation of this book runs in; `begin` calls it.

    Most of the time goes into compiling, so compiled programs are kept where the builder offers a place, unless the
    reader has named one: a run with another seed compiles nothing. A program that cannot be read is compiled again.
    """
    import jax

    from companion.house import CACHE

    jax.config.update("jax_enable_x64", True)
    offered = os.environ.get(CACHE)
    if offered and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", os.path.join(offered, "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        warnings.filterwarnings("ignore", message="Error reading persistent compilation cache entry")


def device() -> str:
    """What computes, in words."""
    import jax

    return f"{jax.default_backend()}: {jax.devices()[0].device_kind}"
