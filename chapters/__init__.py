"""The chapters of the book: one folder per notebook, with parameters, simulations and one module per figure."""

import os
import warnings

# Flags that shorten compilation and lengthen the computation a little; the last one compiles a program as one module of
# LLVM, where XLA would make up to 32 that compile on several cores. A compiler that does not know a flag ends the
# process, so they are set only for the version of JAX in the lock.
QUICK, KNOWN_TO = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1",
    "0.10.",
)
# Options of `jax.jit` for a program of few operations: XLA takes longer to optimise it than all its runs take.
UNOPTIMISED = {"xla_backend_optimization_level": 0}
# Settings of JAX that decide numbers. Each can also be set by an environment variable, such as
# JAX_THREEFRY_PARTITIONABLE, which would silently give other numbers from the same seed.
NUMERIC_SETTINGS = {
    "jax_enable_x64": True,
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": True,
    "jax_random_seed_offset": 0,
    "jax_default_matmul_precision": None,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
}


def float64() -> None:
    """Open the context of every computation of this book: double precision, fixed random numbers, quick compilation.

    `companion.begin` calls this function. Compiled programs are cached where the builder offers a folder, unless the
    reader has chosen one, so that a run with another seed compiles nothing. A program that cannot be read is compiled
    again.
    """
    import jax

    from companion.project.paths import CACHE

    for name, value in NUMERIC_SETTINGS.items():
        jax.config.update(name, value)
    compile_quickly()
    offered = os.environ.get(CACHE)
    if offered and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", os.path.join(offered, "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        warnings.filterwarnings("ignore", message="Error reading persistent compilation cache entry")


def compile_quickly() -> None:
    """Compile with the flags `QUICK` from now on, unless `XLA_FLAGS` is set or a program was compiled before."""
    import jaxlib

    if jaxlib.__version__.startswith(KNOWN_TO):
        os.environ.setdefault("XLA_FLAGS", QUICK)


def device() -> str:
    """Return the name of the device that computes, and the compiler flags that the reader has set."""
    import jax

    flags = os.environ.get("XLA_FLAGS", QUICK)
    name = f"{jax.default_backend()}: {jax.devices()[0].device_kind}"
    return name if flags == QUICK else f"{name}, XLA_FLAGS={flags}"
