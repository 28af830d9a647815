"""Plain training: descent and SGD step down the objective that L-BFGS minimises, and end at its bottom."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from chapters.finite_samples.gradient_training import stochastic_trainer
from lib.single_location import Head, Spiked, linear, softmax
from lib.single_location.erm import _descent, _minimise, _penalised_loss, _random_start, simulate_erm

RIDGE = (0.5, 0.7)


@pytest.fixture
def problem(float64):
    """Prompts of a small task, a random start, and where L-BFGS ends from there."""
    task, keys = Spiked(3, 2.0), jr.split(jr.key(3), 3)
    truth = Head.orthogonal(30, key=keys[0])
    prompts = task.draw(truth, 90, noise_std=0.3, key=keys[1])
    return prompts, _random_start(truth, keys[2])


def descend(steps, activation, prompts, start, *, flat=1e-5):
    return _descent(steps, flat)(activation, prompts, RIDGE, start, jr.key(0))


def objectives(activation, prompts, *heads):
    objective = _penalised_loss(activation, prompts, RIDGE)
    return [float(objective(head)) for head in heads]


@pytest.mark.parametrize("activation", [softmax, linear])
def test_gradient_descent_ends_at_the_bottom_that_l_bfgs_finds(problem, activation):
    prompts, start = problem
    head, steps = jax.jit(lambda start: descend(5000, activation, prompts, start))(start)
    bottom, _, _ = jax.jit(lambda start: _minimise(_penalised_loss(activation, prompts, RIDGE), start))(start)
    assert int(steps) < 5000
    np.testing.assert_allclose(*objectives(activation, prompts, head, bottom), rtol=1e-7)
    np.testing.assert_allclose(head.key, bottom.key, atol=1e-3)


def test_every_step_of_gradient_descent_falls_and_more_of_them_go_on(problem):
    """Down from the start, one objective after another; none after the gradient is flat."""
    prompts, start = problem
    ends = [descend(steps, softmax, prompts, start)[0] for steps in (1, 2, 5, 20)]
    assert np.all(np.diff(objectives(softmax, prompts, start, *ends)) < 0)
    assert int(descend(20, softmax, prompts, start, flat=1e3)[1]) == 1


def test_one_step_is_against_the_gradient(problem):
    """The move is a negative multiple of the automatic gradient of the whole objective."""
    prompts, start = problem
    head, _ = descend(1, softmax, prompts, start)
    slope = jax.grad(_penalised_loss(softmax, prompts, RIDGE))(start)
    moved, down = (
        np.concatenate([a, b])
        for a, b in ((head.key - start.key, head.value - start.value), (-slope.key, -slope.value))
    )
    np.testing.assert_allclose(moved / np.linalg.norm(moved), down / np.linalg.norm(down), atol=1e-10)


@pytest.mark.parametrize(("activation", "size"), [(softmax, 0.3), (linear, 0.05)])
def test_stochastic_descent_comes_near_the_same_bottom(problem, activation, size):
    """Nearer with more epochs; another key is another path."""
    prompts, start = problem
    bottom, _, _ = jax.jit(lambda start: _minimise(_penalised_loss(activation, prompts, RIDGE), start))(start)

    def train(epochs, key):
        return jax.jit(stochastic_trainer(epochs=epochs, batch=8, step_size=size), static_argnums=0)(
            activation, prompts, RIDGE, start, key
        )

    (few, _), (many, steps), (other, _) = train(20, jr.key(0)), train(1500, jr.key(0)), train(1500, jr.key(1))
    low, *rest = objectives(activation, prompts, bottom, few, many, other)
    assert rest[0] > rest[1] > low
    assert rest[1] / low - 1 < 5e-3
    assert not jnp.array_equal(many.key, other.key)
    assert int(steps) == 1500 * (90 // 8)


def test_a_trainer_sees_the_prompts_and_start_of_l_bfgs(float64):
    """With no step to go but one, the head is hardly away from the start of that key."""
    task = Spiked(3, 2.0)
    how = {"noise_std": 0.3, "alpha": 2.0, "ridge": RIDGE, "dimension": 40, "seeds": [5]}
    plain = simulate_erm(task, linear, **how, descent_steps=4000)
    quasi_newton = simulate_erm(task, linear, **how)
    with pytest.raises(ValueError, match="not both"):
        simulate_erm(task, linear, **how, descent_steps=1, trainer=lambda *fits: None)
    np.testing.assert_allclose(plain.objective, quasi_newton.objective, rtol=1e-7)
    np.testing.assert_allclose(plain.risk, quasi_newton.risk, atol=1e-4)
