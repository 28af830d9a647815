"""A killed computation resumes from its checkpoint bit for bit; the example is a descent of `lib.flow.train`."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from companion.authoring.checkpoints import Checkpoint
from lib.flow import train

RUN = {"optimiser": optax.sgd(0.1, momentum=0.5), "steps": 40, "every": 10, "key": jr.key(5)}


pytestmark = pytest.mark.usefixtures("float64")


def noisy(params, key):
    """A quadratic with a noisy minimum."""
    return 0.5 * jnp.sum((params["x"] - jr.normal(key, (3,))) ** 2)


def stages(checkpoint, **changed):
    """Yield the progress of a run, and save each state before it is yielded."""
    for progress in train(noisy, {"x": jnp.arange(3.0)}, **RUN | changed, resume=checkpoint.load):
        checkpoint.save(progress.arrays)
        yield progress


@pytest.fixture
def uninterrupted(tmp_path):
    """The final state of a run without interruption; its checkpoint is `whole.npz`."""
    *_, end = stages(Checkpoint(tmp_path / "whole.npz", "a run"))
    return end


@pytest.mark.parametrize("stop", [10, 30, 40])
def test_a_stopped_run_resumes_bit_for_bit(tmp_path, uninterrupted, stop):
    checkpoint = Checkpoint(tmp_path / "stopped.npz", "a run")
    for progress in stages(checkpoint):
        if progress.state.step == stop:
            break
    resumed = list(stages(checkpoint))
    assert [int(progress.state.step) for progress in resumed] == [*range(stop, 41, 10)]
    for array, expected in zip(resumed[-1].arrays, uninterrupted.arrays, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("run", "changed", "rule"),
    [
        ("another run", {}, "another run"),
        ("a run", {"steps": 50}, "another run"),
        ("a run", {"key": jr.key(6)}, "another key"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, uninterrupted, run, changed, rule):
    with pytest.raises(ValueError, match=rule):
        next(stages(Checkpoint(tmp_path / "whole.npz", run), **changed))


@pytest.mark.parametrize("start", [[np.zeros(4)], [np.zeros(3, np.float32)], [np.zeros(3)] * 2])
def test_a_checkpoint_with_other_arrays_is_refused(tmp_path, start):
    """Shape, precision and number of the arrays must match."""
    checkpoint = Checkpoint(tmp_path / "run.npz", "a run")
    checkpoint.save([np.ones(3)])
    with pytest.raises(ValueError, match="another run"):
        checkpoint.load(start)
