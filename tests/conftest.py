"""What all tests share: shapes and types of `lib` checked at run time, and the tolerances, each named once."""

import ctypes
import os
from collections import Counter
from pathlib import Path

# A program is compiled once for all tests and the kernels they start; from here or there, it is the same program.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parents[1] / "_build/tests/xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")

import chapters

# as the book's own kernels compile it
chapters.compile_quickly()

import jaxtyping  # noqa: E402

# before anything imports it; users pay nothing
jaxtyping.install_import_hook("lib", "beartype.beartype")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

from lib.statistics import comparison_quantile, standard_error  # noqa: E402

# EXACT is for float64, where both sides are the same number up to rounding.
EXACT = 1e-10
# What a mean of samples that do not vary may miss, relative to the largest.
ROUNDING = 1e-12


@pytest.fixture(scope="module", autouse=True)
def _give_memory_back():
    """What was freed goes back to the system after a file of tests: glibc keeps gigabytes of it until it is asked."""
    yield
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


@pytest.fixture(scope="module")
def float64():
    """JAX computes in float64 for the whole test module, and only there."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def quick_compilation():
    """For modules of many small laws, where XLA would spend its time on optimising what runs once.

    What was compiled so is forgotten afterwards: other tests compare digits with those of programs optimised as usual.
    """
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    jax.clear_caches()


@pytest.fixture(scope="session")
def assert_exact():
    """Equal up to EXACT of the largest entry, which is what rounding in float64 may cost."""

    def check(actual, desired, rtol=EXACT):
        desired = np.asarray(desired)
        assert np.shape(actual) == desired.shape
        largest = np.abs(desired).max(initial=0.0)
        np.testing.assert_allclose(actual, desired, rtol=rtol, atol=rtol * max(largest, 1e-3))

    return check


@pytest.fixture(scope="session")
def assert_monte_carlo():
    """The mean over the first axis is `expected`, up to the quantile of the measured standard error (MC).

    `laws` says how many laws the calling test is tried on: each of them adds to the number of comparisons.
    """

    def check(samples, expected, laws=1):
        samples, expected = np.asarray(samples, np.float64), np.asarray(expected)
        assert samples.shape[1:] == expected.shape
        errors = samples - expected
        bound = comparison_quantile(laws * expected.size) * standard_error(errors)
        rounding = ROUNDING * max(np.abs(samples).max(), 1.0)
        np.testing.assert_array_less(np.abs(errors.mean(axis=0)), bound + rounding)

    return check


# Of the site: the longest first, and beside it one that does not wait for the site to be built.
FIRST = ("test_pages.py", "test_broken.py", "test_pdf.py", "test_laboratory.py", "test_reading.py")


def pytest_configure(config):
    """Files are handed out in the order below: pytest-xdist would begin with those of the most tests."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """The site first: its build keeps every core busy, and its tests then share the time with all others."""
    tests = Counter(item.path for item in items)

    def place(item) -> tuple[bool, int, int]:
        name = item.path.name
        return "site" not in item.path.parts, FIRST.index(name) if name in FIRST else len(FIRST), -tests[item.path]

    items.sort(key=place)
