"""The book's chapters, a folder a notebook: parameters, what its figures share, and one file a figure."""

import os
import warnings

# Less time for compiling, and a little more for running what was compiled. A compiler that does not know a flag ends
# the process, so they are for that of the lock only.
QUICK, KNOWN_TO = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1", "0.10."


def float64() -> None:
    """What every computation of this book runs in; `begin` calls it.

    Most of the time goes into compiling, so it is done quickly, and compiled programs are kept where the builder offers
    a place, unless the reader has named one: a run with another seed compiles nothing. A program that cannot be read is
    compiled again.
    """
    import jax

    from companion.project.paths import CACHE

    jax.config.update("jax_enable_x64", True)
    compile_quickly()
    offered = os.environ.get(CACHE)
    if offered and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", os.path.join(offered, "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        warnings.filterwarnings("ignore", message="Error reading persistent compilation cache entry")


def compile_quickly() -> None:
    """Ask the compiler for less from now on, unless the reader has set `XLA_FLAGS` or a program was compiled before."""
    import jaxlib

    if jaxlib.__version__.startswith(KNOWN_TO):
        os.environ.setdefault("XLA_FLAGS", QUICK)


def device() -> str:
    """What computes, in words."""
    import jax

    return f"{jax.default_backend()}: {jax.devices()[0].device_kind}"
