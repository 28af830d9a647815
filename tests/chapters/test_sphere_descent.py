"""Training on the sphere: closed-form risks against real tokens, and what descent may and may not change."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import mpmath as mp
import numpy as np
import pytest
from scipy.special import erf, softmax
from scipy.stats import beta

from chapters.single_location_training.sphere_descent import (
    SphereTask,
    descend_on_sphere,
    erf_risk,
    in_span,
    manifold_distance,
    manifold_head,
    overlaps_on_sphere,
    random_head,
    score_average_risk,
    score_nodes,
    softmax_quadrature_risk,
    softmax_risk,
    softmax_risk_error,
)
from lib import single_location as sl
from lib.single_location.tasks import Head, Overlaps

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")

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


def erf_reference(task, o, sharpness):
    """The same risk by mpmath's quadrature."""
    with mp.workdps(20):
        spread, signal = mp.sqrt(task.variance), mp.sqrt(mp.mpf(task.dimension) / 2)

        def mean(function):
            return mp.quad(lambda x: function(x) * mp.npdf(x), [-12, *mp.linspace(-8, 8, 33), 12])

        def plain(x):
            return mp.erf(sharpness * x)

        def marked(x):
            return mp.erf(sharpness * (signal * o["m_k"] + spread * x))

        def missed(x):
            return spread * o["m_kv"] * x - marked(x) * (signal * o["m_vk"] + spread * o["q_vk"] * x)

        others, rest, overlap = task.length - 1, 1 - o["q_vk"] ** 2, o["m_v"] - o["q_vk"] * o["m_kv"]
        bias = o["q_vk"] * mean(lambda x: plain(x) * x)
        square = mean(lambda x: plain(x) ** 2 * (o["q_vk"] ** 2 * x**2 + rest))
        alone = mean(lambda x: missed(x) ** 2) + task.variance * (
            1 - o["m_kv"] ** 2 - 2 * overlap * mean(marked) + rest * mean(lambda x: marked(x) ** 2)
        )
        crowd = others * (square - 2 * bias * mean(missed)) + others * (others - 1) * bias**2
        return float((alone + crowd) / task.variance)


@pytest.mark.parametrize(("sharpness", "allowed"), [(0.1, 1e-12), (1.0, 1e-12), (2.0, 1e-12), (3.0, 1e-8)])
def test_erf_risk_has_the_stated_accuracy(sharpness, allowed):
    task = SphereTask(400, 10, 0.5)
    overlaps = {"m_k": 0.3, "q_k": 1.0, "m_v": 0.4, "q_v": 1.0, "m_kv": 0.1, "m_vk": -0.05, "q_vk": 0.2}
    found = erf_risk(task, sl.Overlaps(**overlaps), jnp.asarray(sharpness))
    np.testing.assert_allclose(found, erf_reference(task, overlaps, sharpness), rtol=allowed)


@pytest.mark.parametrize("sharpness", [0.1, 0.9, 2.0])
def test_fewer_nodes_are_enough_for_small_sharpness(sharpness):
    task = SphereTask(400, 10, 0.5)
    overlaps = {"m_k": 0.3, "q_k": 1.0, "m_v": 0.4, "q_v": 1.0, "m_kv": 0.1, "m_vk": -0.05, "q_vk": 0.2}
    found = erf_risk(task, sl.Overlaps(**overlaps), jnp.asarray(sharpness), nodes=score_nodes(task, sharpness))
    np.testing.assert_allclose(found, erf_reference(task, overlaps, sharpness), rtol=1e-12)


def test_descent_stays_in_the_span_of_four_vectors():
    start = random_head(50, key=jr.key(4))
    risk, lams = partial(erf_risk, TASK), jnp.full(200, 0.4)
    whole, spanned = (
        descend_on_sphere(risk, head, lams, step_size=2e-3, every=100) for head in (start, in_span(start))
    )
    for left, right in zip(jax.tree.leaves(whole), jax.tree.leaves(spanned), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-12)


def test_erf_risk_is_nan_where_its_nodes_are_too_far_apart():
    assert np.isnan(erf_risk(SphereTask(400, 10, 0.5), sl.Overlaps(0.3, 1.0, 0.4, 1.0), jnp.asarray(3.1)))
    assert np.isnan(erf_risk(SphereTask(400, 10, 4.0), sl.Overlaps(0.3, 1.0, 0.4, 1.0), jnp.asarray(2.0)))


# `R = γ²(1 - 2 E p₁ + E p₁²) + E Σ_{l>1} p²`, evaluated independently of lib to five digits, at d = 100, L = 20,
# λ = 10, γ² = ½, m_v = 1: the setting of [Do25]. Two tokens, below, are compared with mpmath.
FAR = {0.0: 1.29205, 0.1: 1.17592, 0.2: 0.87507, 0.3: 0.46617, 0.34: 0.32344, 0.4: 0.16418, 0.5: 0.03752}


FAR_TASK = SphereTask(100, 20, 0.5)
by_quadrature = jax.jit(softmax_quadrature_risk, static_argnums=0)


@jax.jit
def far_risks(overlap):
    """Return the risk by quadrature, by prompts, and the standard error of the latter."""
    at = sl.Overlaps(overlap, 1.0, 1.0, 1.0), jnp.asarray(10.0)
    return [risk(FAR_TASK, *at) for risk in (softmax_quadrature_risk, softmax_risk, softmax_risk_error)]


@pytest.mark.parametrize("overlap", FAR)
def test_softmax_risk_by_quadrature_and_by_prompts_with_a_standard_error(overlap):
    """The prompts are off by up to 15 %, and their standard error covers it."""
    exact, by_prompts, std_error = map(float, far_risks(overlap))
    desired = FAR[overlap] / FAR_TASK.variance
    np.testing.assert_allclose(exact, desired, atol=1e-5 / FAR_TASK.variance)
    # the 99.9 % quantile of Student's distribution with 7 degrees of freedom for 7 comparisons
    assert abs(by_prompts - desired) < 8.1 * std_error


def test_softmax_risk_by_quadrature_of_two_tokens():
    """One average over the difference of two scores, by mpmath."""
    task, m_k, m_v, sharpness = SphereTask(400, 2, 0.3), 0.4, 0.7, 1.5
    with mp.workdps(20):
        shift = sharpness * mp.sqrt(200) * m_k
        width = sharpness * mp.sqrt(mp.mpf("1.3"))

        def mean(function):
            weight = lambda x: 1 / (1 + mp.exp(-shift - width * x))  # noqa: E731
            return mp.quad(lambda x: function(weight(x)) * mp.npdf(x), mp.linspace(-12, 12, 49))

        desired = 1 - 2 * m_v * mean(lambda p: p) + mean(lambda p: p**2) + mean(lambda p: (1 - p) ** 2) / mp.mpf("0.3")
    found = by_quadrature(task, sl.Overlaps(m_k, 1.0, m_v, 1.0), jnp.asarray(sharpness))
    np.testing.assert_allclose(found, float(desired), rtol=1e-9)


def test_softmax_risk_by_quadrature_is_nan_outside_its_domain():
    assert np.isnan(by_quadrature(FAR_TASK, sl.Overlaps(0.4, 1.0, 1.0, 1.0, 0.1), jnp.asarray(1.0)))
    assert np.isnan(by_quadrature(FAR_TASK, sl.Overlaps(0.4, 1.0, 1.0, 1.0, 0.0), jnp.asarray(31.0)))
