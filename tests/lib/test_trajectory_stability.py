"""Trajectories: the programs compute what `attend` and its derivatives say, and nothing depends on batches."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from lib.experiments.shards import FOLDER
from lib.experiments.trajectory_stability import (
    TOGETHER,
    Study,
    Training,
    as_flat,
    as_head,
    exponents,
    read_prompts,
    scenes,
    shards,
    trajectory_stability,
    with_signs,
)
from lib.icl.tasks import episode_loss
from lib.measures import Empirical

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")

LENGTHS = (4, 8, 16, 32)
SCENE = "signs"


@pytest.fixture(scope="module")
def study(float64):
    return Study(SCENE, scenes()[SCENE], Training(LENGTHS, 8, 8, 0.02, 3, 12), 64, jr.key(0))


def infinite_risk(study):
    def risk(flat):
        def one(episode):
            return episode_loss(as_head(flat), episode.measure, study.scene.task, episode)

        return jnp.mean(jax.vmap(one)(study.episodes))

    return risk


def test_a_head_is_its_entries():
    flat = np.arange(12.0)
    np.testing.assert_array_equal(as_flat(as_head(jnp.asarray(flat))), flat)


def test_prompts_are_read_at_their_prefixes(study, assert_exact):
    """Head j, length j: against `episode_loss` on the first tokens."""
    heads = np.stack([as_flat(study.scene.start) * scale for scale in (1.0, 0.8, 1.2, 0.5)])
    tokens = study.programs.tokens(study.episodes, jr.split(jr.key(1), 8))
    asked = study.episodes.query, study.episodes.target
    values, slopes = read_prompts(study.scene.task.loss, LENGTHS, heads, tokens, asked)
    episode = jax.tree.map(lambda leaf: leaf[2], study.episodes)
    for j, length in enumerate(LENGTHS):
        prompt = Empirical(tokens[2, :length])
        value, slope = jax.value_and_grad(
            lambda flat, prompt=prompt: episode_loss(as_head(flat), prompt, study.scene.task, episode)
        )(jnp.asarray(heads[j]))
        assert_exact(values[2, j], value)
        assert_exact(slopes[2, j], slope)


@pytest.mark.parametrize("many", [1, TOGETHER, TOGETHER + 3])
def test_laws_are_read_whatever_the_number_of_heads(study, assert_exact, many):
    rng = np.random.default_rng(2)
    heads = as_flat(study.scene.start) + 0.1 * rng.normal(size=(many, 12))
    values, slopes = study.programs.read_laws(heads, study.episodes)
    value, slope = jax.jit(jax.value_and_grad(infinite_risk(study)))(jnp.asarray(heads[-1]))
    assert_exact(values[:, -1].mean(), value)
    assert_exact(slopes[:, -1].mean(axis=0), slope)


def test_the_infinite_path_descends_and_its_curvature_is_that_of_the_hessian(study):
    path = study.infinite
    np.testing.assert_allclose(path.heads[1:], path.heads[:-1] - 0.02 * path.slopes[:-1], rtol=1e-12)
    assert np.all(np.diff(path.risks) < 0)
    hessian = jax.jit(jax.vmap(jax.hessian(infinite_risk(study))))(jnp.asarray(path.heads))
    largest = np.linalg.norm(np.asarray(hessian), ord=2, axis=(1, 2)).max()
    assert study.curvature == pytest.approx(largest, rel=1e-5)


def test_finite_paths_start_where_the_infinite_one_does_and_follow_their_own_gradients(study):
    paths = study.finite
    np.testing.assert_array_equal(study.parameter_gaps[:, 0], 0.0)
    np.testing.assert_allclose(paths.heads[:, 1:], paths.heads[:, :-1] - 0.02 * paths.slopes[:, :-1], rtol=1e-12)
    assert len(np.unique(paths.risks)) == paths.risks.size, "every run, step and length reads prompts of its own"


def test_errors_of_the_gradient_do_not_depend_on_batches(study, assert_exact):
    other = Study(SCENE, scenes()[SCENE], Training(LENGTHS, 16, 8, 0.02, 3, 12), 64, jr.key(0))
    other.__dict__["infinite"] = study.infinite
    assert_exact(other.squared_gaps, study.squared_gaps)


@pytest.mark.parametrize("shard_lengths", [1, 3])
def test_nothing_depends_on_how_lengths_are_dealt_to_shards(study, assert_exact, shard_lengths):
    """And every piece has a name of its own, a seed's and a length's."""
    training = replace(study.training, shard_lengths=shard_lengths)
    other = Study(SCENE, study.scene, training, 64, jr.key(0))
    other.__dict__["infinite"] = study.infinite
    assert len(other.training_shards) == 3 * -(-4 // shard_lengths)
    assert_exact(other.finite.heads, study.finite.heads)
    assert_exact(other.finite.risks, study.finite.risks)
    assert_exact(other.squared_gaps, study.squared_gaps)


def test_shards_are_taken_from_where_they_were_left(study, tmp_path, monkeypatch):
    """One was computed elsewhere, and is believed; the others are computed."""
    name, *_ = study.checkpoint_shards
    np.savez(tmp_path / f"{name}.npz", gaps=np.full((64, 3, 4), 7.0))
    monkeypatch.setenv(FOLDER, str(tmp_path))
    other = Study(SCENE, study.scene, study.training, 64, jr.key(0))
    other.__dict__["infinite"] = study.infinite
    np.testing.assert_array_equal(other.squared_gaps, 7.0)
    np.testing.assert_array_equal(other.finite.heads, study.finite.heads)


def test_shards_of_the_chapter_are_by_task_seed_and_length():
    """Eight of a task here: three runs, and the checkpoints, of two groups of lengths."""
    listed = shards(
        **{"seed": 0, "tasks": ["signs"], "lengths": list(LENGTHS), "episodes": 8, "steps": 8, "step_size": 0.02},
        **{"runs": 3, "prompts": 64, "shard_lengths": 2},
    )
    assert [name for name in listed if name.startswith("signs")] == [
        *(f"signs-run-{run}-from-{length}" for run in range(3) for length in (4, 16)),
        *(f"signs-checkpoints-from-{length}" for length in (4, 16)),
    ]
    assert len(listed) == 16, "the control has as many"
    assert all(re.fullmatch(r"[\w-]+", name) for name in listed)


def test_squared_norms_of_the_start_are_those_of_its_block(study):
    """U = 0.1 I on covariates of covariance I, blind to labels."""
    assert study.squared_norms[0] == pytest.approx(0.01)


def test_exponents_of_powers(assert_exact):
    gaps = np.asarray([[2.0], [3.0]]) * np.asarray(LENGTHS) ** -np.asarray([[0.5], [0.8]])
    assert_exact(exponents(gaps, LENGTHS), np.asarray([0.5, 0.8]))


def test_the_task_that_is_drawn_must_be_there():
    assert with_signs(["signs", "mixture", "signs"]) == ["signs", "mixture"]
    with pytest.raises(ValueError, match="signs"):
        trajectory_stability(
            seed=0,
            tasks=["mixture"],
            lengths=[4, 8, 16, 32],
            episodes=8,
            steps=8,
            step_size=0.02,
            runs=3,
            prompts=256,
            shard_lengths=4,
        )
