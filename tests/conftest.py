"""Fixtures for all tests: run-time checks of the types of `lib`, and assertions with the common tolerances."""

import ast
import ctypes
import gc
import os
from collections import Counter
from pathlib import Path
from unittest.mock import patch

# All tests and the kernels that they start share one compilation cache.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parents[1] / "_build/tests/xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Tests run side by side. XLA divides no program among threads if it counts one processor.
os.environ.setdefault("NPROC", "1")

import chapters

# with the compiler options of the book's kernels
chapters.compile_quickly()

import jaxtyping  # noqa: E402
from jaxtyping._import_hook import JaxtypingTransformer  # noqa: E402


def _leave_inner_functions(self, node):
    """Types of functions within functions are not checked: each call of the outer one would prepare it again."""
    if not isinstance(node, ast.FunctionDef):
        ast.NodeVisitor.generic_visit(self, node)


JaxtypingTransformer.generic_visit = _leave_inner_functions
# before any module imports `lib`; users do not pay for these checks
jaxtyping.install_import_hook("lib", "beartype.beartype")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

from companion.io import startup  # noqa: E402
from lib.statistics import comparison_quantile, standard_error  # noqa: E402

startup.skip_unused_formats()  # before a test imports jsonschema

# Relative tolerance of float64 results that are equal except for rounding.
EXACT = 1e-10
# Rounding error of the mean of constant samples, relative to the largest sample.
ROUNDING = 1e-12
# Bytes that a process may keep between two modules.
KEPT = 2e9


def _trim():
    """Return freed memory to the system: glibc would keep gigabytes of it."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


@pytest.fixture(scope="module", autouse=True)
def _release_memory():
    """Release memory after each module; compiled programs too, if the process is large then."""
    yield
    _trim()
    pages = Path("/proc/self/statm")
    if pages.is_file() and int(pages.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") > KEPT:
        jax.clear_caches()
        gc.collect()
        _trim()


@pytest.fixture(scope="module")
def float64():
    """JAX computes in float64 during the test module, and only there."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def quick_compilation():
    """Disable most optimisations of XLA, for modules that run many small programs once.

    The compiled programs are deleted afterwards: other tests compare digits with those of optimised programs.
    """
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    jax.clear_caches()


@pytest.fixture(scope="module")
def unchecked():
    """Disable the run-time checks of types during the test module, as for users.

    A check costs a tenth of a millisecond per call, most of the time of functions of a few numbers.
    `test_transformations.py` calls nearly all public functions of `lib` with checks.
    """
    with patch.object(jaxtyping.config, "jaxtyping_disable", True):
        yield


@pytest.fixture
def checked():
    """Enable the run-time checks of types in a test of an `unchecked` module."""
    with patch.object(jaxtyping.config, "jaxtyping_disable", False):
        yield


@pytest.fixture(scope="session")
def assert_exact():
    """Assert equality up to EXACT relative to the largest entry, the effect of rounding in float64."""

    def check(actual, desired, rtol=EXACT):
        desired = np.asarray(desired)
        assert np.shape(actual) == desired.shape
        largest = np.abs(desired).max(initial=0.0)
        np.testing.assert_allclose(actual, desired, rtol=rtol, atol=rtol * max(largest, 1e-3))

    return check


@pytest.fixture(scope="session")
def assert_monte_carlo():
    """Assert that the mean over the first axis is `expected`, up to a quantile times the measured standard error.

    `laws` is the number of distributions that the calling test checks: each adds to the number of comparisons.
    """

    def check(samples, expected, laws=1):
        samples, expected = np.asarray(samples, np.float64), np.asarray(expected)
        assert samples.shape[1:] == expected.shape
        errors = samples - expected
        bound = comparison_quantile(laws * expected.size) * standard_error(errors)
        rounding = ROUNDING * max(np.abs(samples).max(), 1.0)
        np.testing.assert_array_less(np.abs(errors.mean(axis=0)), bound + rounding)

    return check


# The modules that start first: the longest of tests/site, which builds the site; then some that need no site, because
# Sphinx uses one core; then other long ones.
FIRST = (
    "test_pages.py",
    *("test_transformations.py", "test_many_heads.py", "test_mixtures.py", "test_icl.py"),
    *("test_pdf.py", "test_laboratory.py", "test_search.py"),
    *("test_another_paper.py", "test_transcripts.py", "test_notebooks.py", "test_real_heads.py"),
)


def pytest_configure(config):
    """Keep the order of modules below: pytest-xdist would start with the modules that have the most tests."""
    config.option.loadscopereorder = False
    startup.collect_seldom()  # collecting as often as usual takes a twentieth of the time of the tests


def pytest_collection_finish():
    """Let the garbage collector skip the modules and tests that are there now."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    """Run the tests of the site first, and then the modules with the most tests."""
    tests = Counter(item.path for item in items)

    def order(item) -> tuple[int, bool, int]:
        name = item.path.name
        place = FIRST.index(name) if name in FIRST else len(FIRST)
        return place, "site" not in item.path.parts, -tests[item.path]

    items.sort(key=order)
