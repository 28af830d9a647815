"""In-context tasks: every one passes the same laws, each law that was derived meets an independent computation."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from chapters.trajectory_stability.exponents import fit_rate
from chapters.trajectory_stability.prediction_tasks import (
    Classification,
    GeneralRegression,
    Independent,
    IndexRegression,
    Logistic,
    Noisy,
    SingleIndex,
    Task,
    episode_loss,
    half_square,
    hide_label,
    logistic,
    predict,
)
from lib.attention import Attention, fluctuation
from lib.icl.regression import LinearRegression
from lib.measures import Empirical, Gaussian, GaussianMixture, Laplace, Rademacher, Uniform, empirical, tilted_cov
from lib.statistics import comparison_quantile, standard_error

pytestmark = pytest.mark.usefixtures("float64")

ONES, EYE = np.ones(2), np.eye(2)


class Echo(Task):
    """What a reader adds: the label of every token is the hidden number itself."""

    def draw(self, *, key):
        value_key, token_key = jr.split(key)
        label = jr.normal(value_key, (1,))
        law = Independent(Gaussian(np.zeros(2), EYE), Gaussian(label, jnp.eye(1)))
        return hide_label(law, law.sample(1, key=token_key)[0])

    loss = staticmethod(half_square)


def task_vectors():
    return Uniform(ONES)


# The registry: one row a task, and all the laws below hold of it.
TASKS = {
    "rademacher": lambda: GeneralRegression(Rademacher(ONES), task_vectors(), 0.3),
    "mixture": lambda: GeneralRegression(mixture(), task_vectors()),
    "tanh": lambda: IndexRegression(jnp.tanh, task_vectors(), 0.2),
    "classification": lambda: Classification(task_vectors()),
    "laplace, well inside": lambda: GeneralRegression(Laplace(0.3 * ONES), task_vectors(), 0.3, Rademacher(ONES)),
    "added by a reader": Echo,
}
LENGTHS = (16, 48, 144, 432)
EPISODES, PROMPTS = 3, 600


def mixture():
    return GaussianMixture([0.3, -0.2], Gaussian([[0.8, 0.0], [-0.5, 0.3]], np.stack([0.4 * EYE, 0.7 * EYE])))


def head():
    """One that looks at labels too, and asks nothing beyond a quarter of Laplace's pole."""
    return Attention([[0.4, 0.1, 0.7], [-0.2, 0.3, 0.5], [0.15, -0.1, 0.2]], [[0.3, -0.4, 1.2]])


@pytest.fixture(scope="module", params=TASKS)
def task(request, float64, quick_compilation):
    return TASKS[request.param]()


@pytest.fixture(scope="module")
def episodes(task):
    return jax.jit(jax.vmap(lambda key: task.draw(key=key)))(jr.split(jr.key(1), EPISODES))


@pytest.fixture(scope="module")
def limits(episodes):
    """The prediction of the infinite prompt and its fluctuation, for each episode."""

    def both(episode):
        last = fluctuation(head(), episode.measure, episode.query)[-1, -1]
        return predict(head(), episode.measure, episode.query), last

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(both))(episodes))


@pytest.fixture(scope="module")
def errors(episodes, limits):
    """The errors of predictions: independent prompts × episodes × lengths, whose prompts are prefixes of one."""

    def one(key):
        def ask(episode, key):
            points = empirical(episode.measure, max(LENGTHS), key=key).points
            return jnp.stack([predict(head(), Empirical(points[:length]), episode.query) for length in LENGTHS])

        return jax.vmap(ask)(episodes, jr.split(key, EPISODES))

    keys = jr.split(jr.key(2), PROMPTS)
    return np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys))(keys)) - limits[0][:, None]


# --- laws of every task -----------------------------------------------------------------------------------


def test_the_square_error_falls_like_one_over_length(errors):
    rate = fit_rate(LENGTHS, np.mean(errors**2, axis=1), np.reciprocal)
    assert abs(rate.exponent - 1) < comparison_quantile(len(TASKS)) * rate.std_error
    assert rate.std_error < 0.15


def test_length_times_square_error_is_the_fluctuation(errors, limits, assert_monte_carlo):
    assert_monte_carlo(LENGTHS[-1] * errors[:, :, -1] ** 2, limits[1], laws=len(TASKS))


def test_the_order_of_tokens_does_not_matter(task, episodes, assert_exact):
    episode = jax.tree.map(lambda leaf: leaf[0], episodes)
    points = empirical(episode.measure, 50, key=jr.key(4)).points
    shuffled = np.random.default_rng(5).permutation(points)

    @jax.jit
    def value_and_slope(points):
        return jax.value_and_grad(episode_loss)(head(), Empirical(points), task, episode)

    jax.tree.map(assert_exact, value_and_slope(shuffled), value_and_slope(points))


def test_the_log_mgf_is_one_of_a_probability(episodes):
    """`Λ(0) = 0`, and Λ is convex."""

    def both(measure):
        return measure.log_mgf(jnp.zeros(3)), jnp.linalg.eigvalsh(tilted_cov(measure, jnp.asarray([0.3, -0.2, 0.4])))

    at_zero, spectrum = jax.jit(jax.vmap(both))(episodes.measure)
    np.testing.assert_allclose(at_zero, 0.0, atol=1e-14)
    assert np.all(np.asarray(spectrum) > -1e-12)


def test_queries_have_no_label_and_losses_are_lowest_at_the_target(task, episodes):
    np.testing.assert_array_equal(episodes.query[:, -1], 0.0)
    for target in np.asarray(episodes.target):
        loss = [float(task.loss(jnp.asarray(s * target), jnp.asarray(target))) for s in (-1.0, 0.0, 1.0)]
        assert loss[0] > loss[1] > loss[2]


# --- closed forms against independent computations --------------------------------------------------------

W = np.asarray([0.9, -1.4])


def plane_log_mgf(label_mgf, tilt):
    """`log E exp` over x ~ N(0, I_2), on a square grid, in NumPy."""
    axis = np.arange(-10.0, 10.05, 0.1)
    x = np.stack(np.meshgrid(axis, axis), axis=-1)
    density = np.exp(-0.5 * np.sum(x**2, axis=-1))
    values = np.exp(x @ tilt[:2]) * label_mgf(x @ W, tilt[2])
    return np.log(np.sum(density * values) / np.sum(density))


LABELS = {
    "tanh": (lambda: Noisy(jnp.tanh, 0.4), lambda s, t: np.exp(t * np.tanh(s) + 0.08 * t**2)),
    "logistic": (Logistic, lambda s, t: (np.exp(s + t) + np.exp(-t)) / (1 + np.exp(s))),
}


@pytest.mark.parametrize("name", LABELS)
def test_the_law_of_an_index_model_is_a_plane_integral(name, assert_exact):
    make, label_mgf = LABELS[name]
    law, tilts = SingleIndex(jnp.asarray(W), make()), np.random.default_rng(6).uniform(-1.5, 1.5, (5, 3))
    desired = [plane_log_mgf(label_mgf, tilt) for tilt in tilts]
    assert_exact(jax.vmap(law.log_mgf)(jnp.asarray(tilts)), desired, rtol=1e-8)


def test_regression_tokens_have_the_log_mgf_of_their_covariates(assert_exact):
    task = GeneralRegression(mixture(), Empirical(W[None]), 0.7)
    tilt = np.asarray([0.3, -0.8, 0.6])
    desired = mixture().log_mgf(jnp.asarray(tilt[:2] + tilt[2] * W)) + 0.5 * (0.7 * tilt[2]) ** 2
    assert_exact(task.draw(key=jr.key(7)).measure.log_mgf(jnp.asarray(tilt)), desired)


COV, QUERY_COV = np.asarray([[1.0, 0.4], [0.4, 0.7]]), np.diag([0.5, 1.6])
TASK_SCALE, NOISE_STD = 1.3, 0.5


@pytest.fixture(scope="module")
def both_regressions(float64):
    """The general task with Gaussian laws throughout, and the one in closed form that its docstring names."""
    of_task_vectors = Gaussian(0 * ONES, TASK_SCALE**2 * EYE)
    general = GeneralRegression(Gaussian(0 * ONES, COV), of_task_vectors, NOISE_STD, Gaussian(0 * ONES, QUERY_COV))
    return general, LinearRegression(COV, QUERY_COV, TASK_SCALE, NOISE_STD)


def test_gaussian_regression_has_the_infinite_risk_of_the_closed_form(both_regressions, assert_monte_carlo):
    general, closed = both_regressions

    def loss(key):
        episode = general.draw(key=key)
        return episode_loss(head(), episode.measure, general, episode)

    samples = jax.jit(jax.vmap(loss))(jr.split(jr.key(8), 20_000))
    assert_monte_carlo(samples, closed.infinite_risk(head()))


def test_gaussian_regression_is_linear_regression_in_law(both_regressions):
    """Second moments of two tokens, query and label, and the fourth ones that know that labels share a task vector."""
    general, closed = both_regressions

    def moments(tokens, query, target):
        numbers = jnp.concatenate([tokens.ravel(), query[:-1], target[None]])
        first, second = jnp.outer(*tokens[:, :-1]).ravel(), jnp.outer(tokens[0, :-1], query[:-1]).ravel()
        shared = jnp.concatenate([tokens[0, -1] * tokens[1, -1] * first, tokens[0, -1] * target * second])
        return jnp.concatenate([jnp.outer(numbers, numbers)[jnp.triu_indices(numbers.size)], shared])

    def general_moments(key):
        episode_key, prompt_key = jr.split(key)
        episode = general.draw(key=episode_key)
        return moments(episode.measure.sample(2, key=prompt_key), episode.query, episode.target)

    here = np.asarray(jax.jit(jax.vmap(general_moments))(jr.split(jr.key(10), 40_000)))
    there = np.asarray(jax.jit(jax.vmap(moments))(*closed.draw(2, 40_000, key=jr.key(11))))
    away = np.abs(here.mean(axis=0) - there.mean(axis=0)) / np.hypot(standard_error(here), standard_error(there))
    assert away.max() < comparison_quantile(away.size)


def test_queries_may_have_a_law_of_their_own(assert_exact):
    task = GeneralRegression(Gaussian(0 * ONES, EYE), Empirical(W[None]), query_covariates=Rademacher(ONES))
    episodes = jax.vmap(lambda key: task.draw(key=key))(jr.split(jr.key(9), 20))
    assert_exact(np.abs(episodes.query[:, :2]), np.ones((20, 2)))
    assert_exact(episodes.target, np.asarray(episodes.query[:, :2]) @ W)


def test_the_logistic_loss_is_that_of_the_logistic_label():
    """`e^{-loss}` is the chance of the label whose score is predicted; the mean label is its tanh."""
    scores = jnp.linspace(-3.0, 3.0, 7)
    losses = jax.vmap(jax.vmap(logistic, (0, None)), (None, 0))(scores, jnp.asarray([1.0, -1.0]))
    up, down = np.exp(-np.asarray(losses))
    np.testing.assert_allclose(up + down, 1.0)
    mean = jax.vmap(jax.grad(Logistic().log_mgf, argnums=1), (0, None))(scores, jnp.asarray(0.0))
    np.testing.assert_allclose(mean, up - down, atol=1e-12)
    np.testing.assert_allclose(mean, np.tanh(np.asarray(scores) / 2), atol=1e-12)
