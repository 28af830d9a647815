"""Computations that are killed and go on to the bit: files, here of a descent of `lib.flow.train`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from companion.authoring.checkpoints import Checkpoint
from lib.flow import train

RUN = {"optimiser": optax.sgd(0.1, momentum=0.5), "steps": 40, "every": 10, "key": jr.key(5)}


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def noisy(params, key):
    """A quadratic with a noisy minimum."""
    return 0.5 * jnp.sum((params["x"] - jr.normal(key, (3,))) ** 2)


def stages(checkpoint, **changed):
    """What a run passes through, saved before it is seen."""
    for progress in train(noisy, {"x": jnp.arange(3.0)}, **RUN | changed, resume=checkpoint.load):
        checkpoint.save(progress.arrays)
        yield progress


def assert_same(left, right):
    for a, b in zip(left.arrays, right.arrays, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def whole(tmp_path):
    """The run that was not stopped, and its file."""
    *_, end = stages(Checkpoint(tmp_path / "whole.npz", "a run"))
    return end


@pytest.mark.parametrize("stop", [10, 30, 40])
def test_a_stopped_run_goes_on_to_the_bit(tmp_path, whole, stop):
    checkpoint = Checkpoint(tmp_path / "stopped.npz", "a run")
    for progress in stages(checkpoint):
        if progress.state.step == stop:
            break
    resumed = list(stages(checkpoint))
    assert [int(progress.state.step) for progress in resumed] == [*range(stop, 41, 10)]
    assert_same(resumed[-1], whole)


KILLED = """
import os, signal, sys
from pathlib import Path
import jax, jax.numpy as jnp, jax.random as jr, optax
from companion.authoring.checkpoints import Checkpoint
from lib.flow import train

jax.config.update("jax_enable_x64", True)
checkpoint = Checkpoint(Path(sys.argv[1]), "a run")
for progress in train(lambda params, key: 0.5 * jnp.sum((params["x"] - jr.normal(key, (3,))) ** 2),
        {"x": jnp.arange(3.0)}, optimiser=optax.sgd(0.1, momentum=0.5), steps=40, every=10, key=jr.key(5),
        resume=checkpoint.load):
    checkpoint.save(progress.arrays)
    if progress.state.step == 20:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_goes_on_to_the_bit(tmp_path, whole):
    """Killed by the system, with no chance to tidy up."""
    path = tmp_path / "killed" / "killed.npz"
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=tmp_path, env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert os.listdir(path.parent) == ["killed.npz"]
    first, *_, end = stages(Checkpoint(path, "a run"))
    assert first.state.step == 20
    assert_same(end, whole)


def test_a_checkpoint_is_replaced_whole(tmp_path, monkeypatch):
    """A save that dies half way leaves the file before it, and nothing else."""
    checkpoint = Checkpoint(tmp_path / "run.npz", "a run")
    checkpoint.save([np.arange(3.0)])
    before = checkpoint.path.read_bytes()

    def die(file, *arrays, **named):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", die)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save([np.ones(3)])
    assert checkpoint.path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]


def test_a_checkpoint_reaches_the_disk_before_its_name(tmp_path, monkeypatch):
    """After a loss of power the name must not stand over an empty file."""
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("fsync"), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("replace"), replace(*paths)))
    Checkpoint(tmp_path / "run.npz", "a run").save([np.ones(3)])
    assert done == ["fsync", "replace"]


@pytest.mark.parametrize(
    ("run", "changed", "rule"),
    [
        ("another run", {}, "another run"),
        ("a run", {"steps": 50}, "another run"),
        ("a run", {"key": jr.key(6)}, "another key"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, whole, run, changed, rule):
    with pytest.raises(ValueError, match=rule):
        next(stages(Checkpoint(tmp_path / "whole.npz", run), **changed))


def test_other_arrays_are_refused(tmp_path):
    """Of another shape, or another precision."""
    checkpoint = Checkpoint(tmp_path / "run.npz", "a run")
    checkpoint.save([np.ones(3)])
    np.testing.assert_array_equal(checkpoint.load([np.zeros(3)]), [np.ones(3)])
    for start in ([np.zeros(4)], [np.zeros(3, np.float32)], [np.zeros(3)] * 2):
        with pytest.raises(ValueError, match="another run"):
            checkpoint.load(start)
