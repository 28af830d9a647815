"""The context in which the computations of the book run, tested in a separate process."""

import functools
import os
import subprocess
import sys

import jaxlib
import pytest

import chapters
from companion.project.paths import CACHE

PROGRAM = """
import os

import chapters

chapters.float64()
import jax
from lib.finite_prompt import participation

print(repr(float(jax.jit(participation)(1.5, 3.0))), os.environ.get("XLA_FLAGS", "no flags"))
"""
# Three random numbers; the sum needs the usual promotion of types.
RANDOM = """
import chapters

chapters.float64()
import jax
import jax.numpy as jnp

print(jax.random.normal(jax.random.key(3), 3) + jnp.ones(3, jnp.float32))
"""


def computed(program=PROGRAM, **environment):
    """What the program prints, with every warning it shows an error."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    arguments = [sys.executable, "-W", "error::UserWarning", "-c", program]
    done = subprocess.run(arguments, env={**named, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def plain(program=PROGRAM):
    return computed(program)


def test_compiled_programs_are_kept_and_change_nothing(tmp_path):
    """Where the builder offers a place. Read again they give the same digits as a run without one.

    A broken program, as a killed build leaves it, is compiled again without a warning.
    """
    offered = {CACHE: str(tmp_path / "cache")}
    first, kept = computed(**offered), sorted((tmp_path / "cache").rglob("*-cache"))
    assert any("participation" in path.name for path in kept)
    assert first == computed(**offered) == plain()
    assert sorted((tmp_path / "cache").rglob("*-cache")) == kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
    assert computed(**offered) == first


def test_cache_that_the_reader_named_is_theirs(tmp_path):
    """Ours stays empty."""
    computed(**{CACHE: str(tmp_path / "ours"), "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "theirs")})
    assert not (tmp_path / "ours").exists()


def test_programs_compiled_in_haste_compute_the_same():
    """Up to rounding; and flags that the reader has set, here none, are left alone."""
    (hasty, *flags), theirs = plain().split(), computed(XLA_FLAGS="").split()
    assert " ".join(flags) == chapters.QUICK
    assert len(theirs) == 1
    assert float(hasty) == pytest.approx(float(theirs[0]), rel=1e-12)


# Settings of the reader that would change random numbers or the types of sums.
SETTINGS = {
    "JAX_THREEFRY_PARTITIONABLE": "0",
    "JAX_DEFAULT_PRNG_IMPL": "rbg",
    "JAX_RANDOM_SEED_OFFSET": "1",
    "JAX_ENABLE_X64": "0",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
}


def test_settings_of_the_reader_do_not_change_random_numbers():
    assert computed(RANDOM, **SETTINGS) == plain(RANDOM)


@pytest.mark.parametrize(
    ("version", "flags"),
    [("0.10.0", chapters.QUICK), ("0.10.2", chapters.QUICK), ("0.12.0.1", None), ("0.100.0", None)],
)
def test_flags_are_set_for_the_jax_that_knows_them(monkeypatch, version, flags):
    """Whatever JAX is installed here: another one may not know them, and would end the process."""
    monkeypatch.setattr(jaxlib, "__version__", version)
    monkeypatch.setenv("XLA_FLAGS", "")  # so that what is set below is taken back
    monkeypatch.delenv("XLA_FLAGS")
    chapters.compile_quickly()
    assert os.environ.get("XLA_FLAGS") == flags


@pytest.mark.parametrize("version", ["0.10.2", "0.12.0.1"])
def test_flags_of_the_reader_stay(monkeypatch, version):
    monkeypatch.setattr(jaxlib, "__version__", version)
    monkeypatch.setenv("XLA_FLAGS", "--xla_of_the_reader")
    chapters.compile_quickly()
    assert os.environ["XLA_FLAGS"] == "--xla_of_the_reader"
