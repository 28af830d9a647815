"""Training on the sphere: closed-form risks against real tokens, and what descent may and may not change."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.special import erf, softmax
from scipy.stats import beta

from lib.single_location.overlaps import Head, Overlaps
from lib.single_location.sphere_descent import (
    SphereTask,
    descend_on_sphere,
    erf_risk,
    manifold_distance,
    manifold_head,
    overlaps_on_sphere,
    random_head,
    score_average_risk,
    softmax_risk,
)

pytestmark = pytest.mark.usefixtures("float64")

TASK = SphereTask(dimension=40, length=5, variance=0.5)
RISKS = {"erf": (erf_risk, erf), "softmax": (softmax_risk, lambda chi: softmax(chi, axis=1))}


def tilted_head():
    """All five scalar products away from zero."""
    k, v = np.zeros((2, 40))
    k[:4], v[:4] = [0.3, 0.2, 0.5, 0.4], [0.15, 0.6, 0.3, -0.2]
    return k / np.linalg.norm(k), v / np.linalg.norm(v)


@pytest.mark.parametrize("name", RISKS)
def test_risk_from_overlaps_is_risk_on_real_tokens(assert_monte_carlo, name):
    risk, weights = RISKS[name]
    k, v = tilted_head()
    tokens = np.random.default_rng(3).normal(size=(20_000, 5, 40))
    tokens[:, 0] *= np.sqrt(0.5)
    tokens[:, 0, 0] += np.sqrt(20)
    answers = (weights(0.4 * tokens @ k) * (tokens @ v)).sum(axis=1)
    predicted = risk(TASK, overlaps_on_sphere(Head(jnp.asarray(k), jnp.asarray(v))), jnp.asarray(0.4))
    # the softmax average is over 256 quasi-random prompts, good to half a percent
    slack = 0.005 * float(predicted) if name == "softmax" else 0.0
    errors = (tokens[:, 0, 1] - answers) ** 2 / 0.5
    gap = errors - predicted
    assert_monte_carlo(gap - np.clip(gap.mean(), -slack, slack), 0.0, laws=len(RISKS))


@pytest.mark.parametrize("sharpness", [0.1, 0.9])
@pytest.mark.parametrize("aligned", [0.02, 0.9])
def test_one_score_at_a_time_is_all_scores_together(sharpness, aligned):
    """The quadrature of erf-attention against the average over whole prompts that any activation has."""
    overlaps = Overlaps(aligned, 1.0, 0.4, 1.0, 0.1, -0.05, 0.2)
    scores = jnp.asarray(np.random.default_rng(5).normal(size=(100_000, 5)))
    together = score_average_risk(lambda chi: jax.scipy.special.erf(sharpness * chi), TASK, overlaps, scores)
    np.testing.assert_allclose(erf_risk(TASK, overlaps, jnp.asarray(sharpness)), together, rtol=0.01)


@pytest.mark.parametrize("head", [random_head, manifold_head])
def test_starts_are_on_the_sphere(head):
    start = head(40, key=jr.key(2))
    np.testing.assert_allclose([start.key @ start.key, start.value @ start.value], 1.0, rtol=1e-12)


def test_manifold_starts_have_no_cross_overlap_and_others_do():
    assert manifold_distance(overlaps_on_sphere(manifold_head(40, key=jr.key(2)))) < 1e-15
    assert manifold_distance(overlaps_on_sphere(random_head(40, key=jr.key(2)))) > 1e-2


@pytest.fixture(scope="module")
def runs():
    with jax.enable_x64(True):
        starts = jax.vmap(partial(manifold_head, 40))(key=jr.split(jr.key(4), 4))

        def one(risk, start):
            return descend_on_sphere(partial(risk, TASK), start, jnp.full(4800, 0.4), step_size=2e-3, every=400)

        yield {name: jax.jit(jax.vmap(partial(one, risk)))(starts) for name, (risk, _) in RISKS.items()}


@pytest.mark.parametrize("name", RISKS)
def test_risk_falls_along_descent(runs, name):
    assert (np.diff(runs[name].risk, axis=1) <= 1e-9).all()
    assert runs[name].risk.shape == (4, 13)


@pytest.mark.parametrize("name", RISKS)
def test_descent_never_leaves_the_manifold_nor_the_sphere(runs, name):
    overlaps = runs[name].overlaps
    assert manifold_distance(overlaps).max() < 1e-10
    np.testing.assert_allclose(overlaps.q_k, 1.0, rtol=1e-12)
    np.testing.assert_allclose(overlaps.q_v, 1.0, rtol=1e-12)


@pytest.mark.parametrize("name", RISKS)
def test_descent_aligns_both_vectors(runs, name):
    """Further than chance aligns random vectors, up to a common sign, which erf-attention cannot see.

    The squared overlap of a random unit vector, orthogonal to one direction, is Beta(½, (d - 2)/2).
    """
    k, v = np.asarray(runs[name].overlaps.m_k[:, -1]), np.asarray(runs[name].overlaps.m_v[:, -1])
    chance = beta.isf(1e-3 / (2 * len(RISKS) * len(k)), 0.5, (TASK.dimension - 2) / 2)
    assert min((k**2).min(), (v**2).min()) > chance
    assert (k * v > 0).all()


def test_distance_counts_the_three_cross_overlaps():
    np.testing.assert_allclose(manifold_distance(Overlaps(0.9, 1.0, 0.8, 1.0, 2.0, 3.0, 6.0)), 7.0)
