"""Simulated training: the prompts have the law they claim, L-BFGS ends at a minimum, risk follows from overlaps."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from lib.random import normal
from lib.single_location.activations import linear, softmax
from lib.single_location.erm import _minimise, _random_start, _train_loss, _train_once, simulate_erm
from lib.single_location.population import attention_risk
from lib.single_location.tasks import Head, Max, Spiked

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")

TASKS = {"spiked": lambda: Spiked(3, 4.0), "max": lambda: Max(3, 2.0), "argmax": lambda: Max(3, np.inf)}
HEADS = {"softmax": softmax, "linear": linear}


@pytest.fixture(scope="module")
def truth(float64):
    return Head.orthogonal(60, key=jr.key(1))


@pytest.fixture(scope="module")
def head(truth):
    """Neither vector is orthogonal to anything."""
    first, second = normal(jr.key(5), (2, truth.key.size))
    return Head(
        0.8 * truth.key + 0.3 * truth.value + 0.5 * first,
        0.2 * truth.key + 0.7 * truth.value + 0.3 * first + 0.4 * second,
    )


@pytest.fixture(scope="module")
def on_prompts(truth, head):
    """For each task: hidden scores of 20,000 prompts, and for both activations errors on them and risk by overlaps."""
    return {name: jax.jit(partial(look, make()))(truth, head) for name, make in TASKS.items()}


def look(task, truth, head):
    prompts = task.draw(truth, 20_000, noise_std=0.0, key=jr.key(2))
    scores = prompts.tokens[:, 0] @ truth.key / jnp.sqrt(truth.key.size)
    overlaps = head.overlaps(truth)
    errors = {name: (prompts.labels - prompts.outputs(activation, head)) ** 2 for name, activation in HEADS.items()}
    return scores, errors, {name: task.fresh_risk(activation, overlaps) for name, activation in HEADS.items()}


@pytest.mark.parametrize("name", TASKS)
def test_prompts_of_known_and_of_traced_keys_agree(truth, assert_exact, name):
    task = TASKS[name]()

    def draw(key):
        return task.draw(truth, 5, noise_std=0.3, key=key)

    known, compiled = draw(jr.key(4)), jax.jit(draw)(jr.key(4))
    assert_exact(known.tokens, compiled.tokens)
    assert_exact(known.labels, compiled.labels)


def test_directions_are_orthogonal_and_long(truth, assert_exact):
    assert_exact(
        jnp.stack([truth.key @ truth.key, truth.value @ truth.value, truth.key @ truth.value]), [60.0, 60.0, 0.0]
    )


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("head_name", HEADS)
def test_risk_from_overlaps_is_risk_on_fresh_prompts(on_prompts, assert_monte_carlo, name, head_name):
    """With all seven overlaps at work."""
    _, errors, risks = on_prompts[name]
    assert_monte_carlo(errors[head_name], risks[head_name], laws=len(TASKS) * len(HEADS))


@pytest.mark.parametrize("head_name", HEADS)
def test_risk_agrees_with_the_population_quadrature(truth, head, on_prompts, head_name):
    expected = attention_risk(TASKS["spiked"](), HEADS[head_name], head.overlaps(truth))
    risks = on_prompts["spiked"][-1]
    np.testing.assert_allclose(risks[head_name], expected, rtol=5e-3)


@pytest.mark.parametrize("name", TASKS)
def test_scores_of_the_first_token_are_those_of_the_hidden_one(on_prompts, assert_monte_carlo, name):
    """Mean √ν in the spiked task; in the others the mean of Σ softmax(νχ)χ over plain normals."""
    scores = on_prompts[name][0]
    plain = np.random.default_rng(4).normal(size=(20_000, 3))
    sharp = np.exp(min(float(TASKS[name]().snr), 300.0) * (plain - plain.max(axis=1, keepdims=True)))
    chosen = (sharp / sharp.sum(axis=1, keepdims=True) * plain).sum(axis=1)
    reference = np.full(20_000, 2.0) if name == "spiked" else chosen
    assert_monte_carlo(np.asarray(scores) - reference, 0.0, laws=len(TASKS))


def test_lbfgs_ends_where_scipy_ends(truth):
    prompts = TASKS["spiked"]().draw(truth, 180, noise_std=0.3, key=jr.key(6))

    def objective(head):
        return 180 * _train_loss(softmax, prompts, head) + 0.4 * (head.key @ head.key + head.value @ head.value)

    found, flatness, _ = jax.jit(lambda head: _minimise(objective, head))(truth)
    slope = jax.jit(jax.value_and_grad(lambda point: objective(Head(*point))))

    def numpy_slope(flat):
        value, gradient = slope(jnp.asarray(flat.reshape(2, -1)))
        return float(value), np.asarray(gradient).ravel()

    start = np.concatenate([truth.key, truth.value])
    other = scipy_minimize(numpy_slope, start, jac=True, method="BFGS", options={"gtol": 1e-7})
    assert flatness < 1e-3
    np.testing.assert_allclose(objective(found), other.fun, rtol=1e-8)


def test_both_starts_agree_where_the_ridge_is_strong():
    """And draw the same prompts, on the way from different places."""
    task = Spiked(2, 5.0)

    def run(knows):
        def start(truth, key):
            return jax.tree.map(partial(jnp.where, knows), truth, _random_start(truth, key))

        setting = {"noise_std": 0.3, "alpha": 3.0, "ridge": (1.0, 1.0), "dimension": 60}
        return _train_once(task, softmax, **setting, start=start, trainer=None, key=jr.key(9))

    runs = jax.jit(lambda both: jax.lax.map(run, both))(jnp.asarray([True, False]))
    np.testing.assert_allclose(*runs.risk, rtol=1e-4)
    np.testing.assert_allclose(*runs.objective, rtol=1e-8)
    assert runs.steps[0] != runs.steps[1]
    assert 0 < runs.train_loss.min() <= runs.train_loss.max() < 0.5 * (1 + 0.3**2)


def test_a_run_has_the_key_of_its_seed_and_dimension():
    """And its start is random by default."""
    setting = {"noise_std": 0.3, "alpha": 2.0, "ridge": (1.0, 1.0), "dimension": 20}
    runs = simulate_erm(TASKS["spiked"](), linear, **setting, seeds=[4, 7])
    key = jr.fold_in(jr.key(7), 20)
    again = _train_once(TASKS["spiked"](), linear, **setting, start=_random_start, trainer=None, key=key)
    np.testing.assert_allclose(runs.risk[1], again.risk, rtol=1e-9)
    assert runs.risk[0] != runs.risk[1]
