"""In-context linear regression: every exact risk against drawn prompts, closed limits, and itself in other ways."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize

from lib import Attention, Empirical, Gaussian, attend
from lib.finite_prompt import score_statistics
from lib.icl import (
    Blocks,
    LinearRegression,
    PairAverage,
    QueryAverage,
    ScoreTable,
    block_attention,
    block_risk,
)
from lib.icl.averages import _few_radii, _radial
from lib.random import normal

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

DIMENSIONS = (2, 5)
# prompts drawn a batch, and batches: the samples of a test are the means of batches
BATCH = {1: 4000, 10: 2000, 300: 100}
BATCHES = 60
# (d, length)
DRAWN = [(2, 1), (2, 10), (5, 300)]
# natural logarithms of the prompt lengths of tables
LOG_LENGTHS = (0.0, math.log(2), math.log(10), math.log(1000), math.log(1e8), 40 * math.log(10), 330.0)
OTHERS = (2.0, math.log(50), math.log(300), 20.0, 40 * math.log(10) + 1)
# compiled as one program each
risk_of_blocks = jax.jit(block_risk)


@pytest.fixture(scope="module", autouse=True)
def _tables(float64, unchecked):
    """Compute all tables together, which takes a fourth of the time."""
    ScoreTable.at_each(LOG_LENGTHS + OTHERS)


def a_task(d):
    """Both covariances differ, and each is singular in turn."""
    rng = np.random.default_rng(d)
    narrow, square = rng.normal(size=(d, d - 1)), rng.normal(size=(d, d))
    covs = (narrow @ narrow.T / d, square @ square.T / d)
    return LinearRegression(*(covs if d == 5 else covs[::-1]), task_scale=0.8, noise_std=0.4)


def correlated_task(isotropic_queries=False):
    """Neighbours correlated by a half, on prompt and query alike; or more so on the prompt, and the query isotropic."""
    cov = 0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    covs = (cov @ cov, np.eye(5)) if isotropic_queries else (cov, cov)
    return LinearRegression(*covs, task_scale=5**-0.5, noise_std=0.1**0.5)


def a_head(d):
    """Nothing of U or of V is zero; V has one row, or all."""
    rng = np.random.default_rng(100 + d)
    rows = d + 1 if d == 5 else 1
    return Attention(0.3 * rng.normal(size=(d + 1, d + 1)) / math.sqrt(d), 0.7 * rng.normal(size=(rows, d + 1)))


def half_squares(task, params, length, key):
    """Half the square error of softmax and of linear attention on a batch of drawn prompts, by NumPy."""
    tokens, queries, targets = task.draw(length, BATCH[length], key=key)
    scores = np.sum(tokens * (queries @ np.asarray(params.bilinear).T)[:, None], axis=2)
    values = tokens @ np.asarray(params.value[-1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax = np.sum(weights * values, axis=1) / np.sum(weights, axis=1)
    return [0.5 * np.mean((output - targets) ** 2) for output in (softmax, np.mean(scores * values, axis=1))]


@pytest.mark.parametrize(("d", "length"), DRAWN)
def test_risks_are_those_of_drawn_prompts(d, length, assert_monte_carlo):
    task, params = a_task(d), a_head(d)
    keys = jr.split(jr.key(d + 1000 * length), BATCHES)
    samples = [half_squares(task, params, length, key) for key in keys]
    # four times the default nodes, whose error is then small compared with that of the drawn prompts
    average = PairAverage.of_frames(d, frames={2: 512, 5: 2048}[d])
    exact = [task.finite_risk(params, math.log(length), average=average), task.linear_head_risk(params, length)]
    assert_monte_carlo(samples, exact, laws=len(DRAWN))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_infinite_risk_is_that_of_gaussian_prompts(d, assert_monte_carlo):
    """Tasks and queries drawn, the prompt replaced by its law, attended by the library's own verb."""
    task, params = a_task(d), a_head(d)

    def half_square(w, query):
        cov = jnp.block([[task.cov, (task.cov @ w)[:, None]], [w @ task.cov, w @ task.cov @ w + task.noise_std**2]])
        output = attend(params, Gaussian(jnp.zeros(d + 1), cov), jnp.append(query, 0.0))[-1]
        return 0.5 * ((output - w @ query) ** 2 + task.noise_std**2)

    task_key, query_key = jr.split(jr.key(d))
    tasks = float(task.task_scale) * normal(task_key, (50_000, d))
    queries = Gaussian(np.zeros(d), task.query_cov).sample(50_000, key=query_key)
    samples = jax.jit(jax.vmap(half_square))(tasks, queries)
    assert_monte_carlo(samples, task.infinite_risk(params), laws=len(DIMENSIONS))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_finite_risk_becomes_infinite_risk(d):
    task, params = a_task(d), a_head(d)
    gaps = [abs(task.finite_risk(params, log) / task.infinite_risk(params) - 1) for log in (0.0, 20.0, 330.0)]
    assert gaps[0] > 1e-2
    assert gaps[1] < 1e-2
    assert gaps[2] < 1e-6


def test_draw_is_the_task(assert_monte_carlo):
    """Second moments of tokens, query and label, jointly."""
    task = a_task(5)
    tokens, queries, targets = task.draw(3, 40_000, key=jr.key(0))
    x, y = tokens[..., :5], tokens[..., 5]
    power, noise = task.task_scale**2, task.noise_std**2
    assert_monte_carlo(np.einsum("ni,nj->nij", x[:, 0], x[:, 0]), task.cov, laws=5)
    assert_monte_carlo(np.einsum("ni,nj->nij", queries[:, :5], queries[:, :5]), task.query_cov, laws=5)
    assert not queries[:, 5].any()
    assert_monte_carlo(y**2, np.broadcast_to(power * np.trace(task.cov) + noise, (3,)), laws=5)
    assert_monte_carlo(targets**2, power * np.trace(task.query_cov) + noise, laws=5)
    # y target x_i x_q,j has the mean power · S[i, :] S_q[:, j], because both labels are of one task
    shared = np.einsum("n,ni,nj->nij", y[:, 1] * targets, x[:, 1], queries[:, :5])
    assert_monte_carlo(shared, power * task.cov @ task.query_cov, laws=5)


@pytest.mark.parametrize("length", [1, 3, 40])
def test_bayes_risk_is_that_of_ridge_on_drawn_labels(length, assert_monte_carlo):
    task = a_task(5)
    tokens, queries, targets = map(np.asarray, task.draw(length, 20_000, key=jr.key(1)))
    x, y = tokens[..., :5], tokens[..., 5]
    ridge = float(task.noise_std / task.task_scale) ** 2
    learned = np.linalg.solve(np.swapaxes(x, 1, 2) @ x + ridge * np.eye(5), np.einsum("nli,nl->ni", x, y)[..., None])
    samples = 0.5 * (np.einsum("ni,ni->n", learned[..., 0], queries[:, :5]) - targets) ** 2
    # the library's mean, on independent prompts, has much smaller noise
    exact = task.bayes_risk(length, key=jr.key(2), n=20_000)
    assert_monte_carlo(samples, exact, laws=3)
    assert exact < task.linear_attention_risk(length)


def test_bayes_risk_of_known_and_of_traced_keys_agree(assert_exact):
    by_key = partial(a_task(5).bayes_risk, 3, n=20)
    assert_exact(by_key(key=jr.key(0)), jax.jit(lambda key: by_key(key=key))(jr.key(0)))


@pytest.mark.parametrize(("d", "length"), [(5, 2), (5, 5), (3, 30)])
def test_bayes_risk_without_noise_is_what_the_prompt_does_not_span(d, length, assert_exact):
    """Minimum-norm least squares: a share of 1 - L/d of the task stays unknown."""
    risk = LinearRegression(np.eye(d), task_scale=2.0).bayes_risk(length, key=jr.key(0), n=200)
    share = max(d - length, 0) / d
    if length < d:  # by symmetry only in mean over prompts, but the trace of a projection does not vary
        assert_exact(risk, 0.5 * 4.0 * d * share)
    else:
        assert abs(risk) < 1e-10


@pytest.mark.parametrize("d", [1, 5])
def test_linear_attention_risk_without_noise_is_known(d, assert_exact):
    for length in (1, 7, 1000):
        risk = LinearRegression(np.eye(d)).linear_attention_risk(length)
        assert_exact(risk, 0.5 * d * (d + 1) / (length + d + 1))


@jax.jit
def linear_risk_of_blocks(task, blocks):
    """The risk of the linear head of blocks at twelve tokens, and its gradient."""
    return jax.value_and_grad(lambda blocks: task.linear_head_risk(Blocks.head(blocks), 12))(blocks)


@jax.jit
def slope_of_linear_risk(task, params):
    return jax.grad(lambda params: task.linear_head_risk(params, 12))(params)


@pytest.mark.parametrize("make", [lambda: a_task(2), lambda: a_task(5), correlated_task])
def test_linear_attention_risk_is_the_least_of_linear_head_risk(make, assert_exact):
    task = make()
    d, length = task.dimension, 12
    cov, noise = np.asarray(task.cov), float(np.trace(task.cov) + (task.noise_std / task.task_scale) ** 2)
    # ŷ = b ⟨w̃, A x_q⟩ with w̃ = (1/L) Σ y x, so A = M at b = 1
    best = np.linalg.inv((1 + 1 / length) * cov + noise / length * np.eye(d))
    risk, slope = linear_risk_of_blocks(task, Blocks(best, 1.0))
    assert_exact(risk, task.linear_attention_risk(length))
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope)) < 1e-12
    # and of all heads, not only of blocks
    general = slope_of_linear_risk(task, block_attention(best, 1.0))
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(general)) < 1e-12


STEPS = (1e-4, -1e-4)


def test_finite_risk_of_no_scores_is_smooth(assert_exact):
    """U = 0: plain averaging, where τ = 0 for every query, and the gradient is that of the plain average."""
    task, length = a_task(2), 10
    params = Attention(np.zeros((3, 3)), a_head(2).value)
    risk, slope = jax.jit(jax.value_and_grad(lambda params: task.finite_risk(params, math.log(length))))(params)
    v, b = np.asarray(params.value[-1, :2]), float(params.value[-1, 2])
    label = task.task_scale**2 * np.trace(task.cov) + task.noise_std**2
    target = task.task_scale**2 * np.trace(task.query_cov) + task.noise_std**2
    assert_exact(risk, 0.5 * (target + (v @ np.asarray(task.cov) @ v + b**2 * label) / length))
    nudged = [task.finite_risk(Attention(step * np.ones((3, 3)), params.value), math.log(length)) for step in STEPS]
    np.testing.assert_allclose((nudged[0] - nudged[1]) / 2e-4, np.sum(slope.bilinear[:, :2]), rtol=1e-5)


def test_blocks_are_heads(assert_exact):
    """Two averages over tasks, one closed and one by nodes, at the same queries."""
    task = a_task(5)
    rng = np.random.default_rng(3)
    blocks = Blocks(0.3 * rng.normal(size=(5, 5)), 1.3)
    head = Blocks.head(blocks)
    for log_length in (0.0, math.log(10), 20.0):
        pairs = PairAverage.of_frames(5, frames=4, query_radii=32)
        queries = QueryAverage.of_frames(5, frames=4, radii=32)
        by_nodes = task.finite_risk(head, log_length, average=pairs)
        assert_exact(risk_of_blocks(task, blocks, ScoreTable.at(log_length), queries), by_nodes)
    missed = (1.3 * np.asarray(task.cov) @ blocks.matrix - np.eye(5)) @ np.linalg.cholesky(
        np.asarray(task.query_cov) + 1e-15 * np.eye(5)
    )
    predicted = 0.5 * task.task_scale**2 * np.sum(missed**2)
    assert_exact(task.infinite_risk(head), predicted + 0.5 * task.noise_std**2)


@pytest.mark.parametrize(("d", "length"), [(2, 300), (5, 10)])
def test_reported_error_covers_the_true_error(d, length):
    """The truth being the mean over five other sets of nodes."""
    task, params, log_length = a_task(d), a_head(d), math.log(length)
    risk = jax.jit(lambda average: task.finite_risk(params, log_length, average=average))
    others = [risk(PairAverage.of_frames(d, seed=seed)) for seed in range(10, 15)]
    error = abs(task.finite_risk(params, log_length) - np.mean(others))
    assert error <= task.finite_risk_error(params, log_length) < 0.05 * np.mean(others)


@pytest.mark.parametrize(("d", "ratio"), [(1, 4.2179), (5, 3.1926)])
def test_price_of_one_softmax_head(d, ratio):
    """Σ = I, no noise, L = 10⁸: softmax over linear has its limit of long prompts, from three starts if d = 5."""

    def limit(s):
        return (1 - 2 * s) ** (-d / 2) * (1 / (1 - 2 * s) + 1 / s) / (d + 1)

    best = scipy.optimize.minimize_scalar(limit, bounds=(1e-3, 0.499), method="bounded", options={"xatol": 1e-10})
    assert best.fun == pytest.approx(ratio, abs=1e-4)
    if d == 5:
        assert best.x**0.5 == pytest.approx(0.35050, abs=1e-5)
    task, log_length, queries = LinearRegression(np.eye(d)), math.log(1e8), QueryAverage.radial(d)
    for scale, gain in ((0.3, 2.0), (1.0, 1.0), (0.9, 1.2))[: 3 if d == 5 else 1]:
        blocks = Blocks.best(task, log_length, start=Blocks(scale * np.eye(d), gain), queries=queries)
        risk = risk_of_blocks(task, blocks, ScoreTable.at(log_length), queries)
        assert risk / task.linear_attention_risk(10**8) == pytest.approx(best.fun, rel=1e-3)
        assert blocks.matrix[0, 0] == pytest.approx(best.x**0.5, rel=1e-2)
        assert blocks.matrix[0, 0] * blocks.gain == pytest.approx(1.0, abs=1e-3)
    # the general risk, which knows nothing of blocks, is the same there
    np.testing.assert_allclose(task.finite_risk(Blocks.head(blocks), log_length), risk, rtol=1e-5)


def test_isotropic_blocks_have_the_norm_they_are_given():
    blocks = Blocks.isotropic(4, 1.5, 2.0)
    np.testing.assert_allclose(blocks.matrix, blocks.matrix[0, 0] * np.eye(4), rtol=1e-15)
    assert float(jnp.linalg.norm(blocks.matrix)) == pytest.approx(1.5)
    assert float(blocks.gain) == 2.0


@pytest.mark.parametrize("isotropic_queries", [False, True])
def test_best_blocks_do_not_depend_on_the_start(checked, isotropic_queries):
    task, log_length = correlated_task(isotropic_queries), math.log(50)
    queries = QueryAverage.of_frames(5, frames=16, radii=24)
    starts = [None, Blocks(np.eye(5), 1.0), Blocks(np.diag(np.arange(1.0, 6.0)) / 3, -2.0)]
    risks = [
        risk_of_blocks(task, Blocks.best(task, log_length, start=start), ScoreTable.at(log_length), queries)
        for start in starts
    ]
    np.testing.assert_allclose(risks, risks[0], rtol=1e-6)
    assert (
        task.linear_attention_risk(50)
        < risks[0]
        < risk_of_blocks(task, Blocks.infinite_limit(task), ScoreTable.at(log_length), queries)
    )


@jax.jit
def quadrature(tau_squared, log_length):
    """Logarithms of both statistics, and the slope in τ² of the first."""

    def both(tau_squared):
        exact = score_statistics(tau_squared, log_length)
        return jnp.log(exact.participation), jnp.log(exact.score_error)

    values, slopes = jax.jvp(jax.vmap(both), (tau_squared,), (jnp.ones_like(tau_squared),))
    return (*values, slopes[0])


@jax.jit
def read(table, tau_squared):
    """Both statistics of a table, and the slope in τ² of the logarithm of the first."""
    slope = jax.grad(lambda s: jnp.log(table.statistics(s).participation))
    return jax.vmap(table.statistics)(tau_squared), jax.vmap(slope)(tau_squared)


@pytest.mark.parametrize("log_length", LOG_LENGTHS)
def test_table_is_the_quadrature(log_length):
    """Values to 1e-9, at random τ and at the seams; slopes in τ² with them."""
    table = ScoreTable.at(log_length)
    tau = np.concatenate([[0.0, 1e-4, 0.5, 2.0, 29.999], np.random.default_rng(0).uniform(0.0, 30.0, 20)])
    found, slope = read(table, tau**2)
    log_participation, log_score_error, true_slope = quadrature(jnp.asarray(tau**2), jnp.asarray(log_length))
    np.testing.assert_allclose(jnp.log(found.participation), log_participation, atol=1e-9)
    np.testing.assert_allclose(jnp.log(found.score_error), log_score_error, atol=1e-9, rtol=1e-9)
    np.testing.assert_allclose(slope, true_slope, atol=2e-6)


@pytest.mark.parametrize("tau", [31.0, 100.0])
def test_table_freezes_beyond_its_reach(tau):
    """Against drawn scores, up to what still changes there, and continuously."""
    scores = np.random.default_rng(0).normal(size=(200_000, 10))
    mean_score = np.sum(np.asarray(jax.nn.softmax(jnp.asarray(tau * scores), axis=1)) * scores, axis=1)
    found = ScoreTable.at(math.log(10)).statistics(tau**2)
    np.testing.assert_allclose(tau * (1 - found.participation), mean_score.mean(), rtol=5e-3)
    np.testing.assert_allclose(found.score_error, np.mean((mean_score - tau) ** 2), rtol=5e-3)
    inside, outside = (ScoreTable.at(math.log(10)).statistics(900.0 * (1 + side)) for side in (-1e-12, 1e-12))
    np.testing.assert_allclose(jax.tree.leaves(inside), jax.tree.leaves(outside), rtol=1e-9)


def test_table_is_remembered_inside_jit(assert_exact):
    remembered = jax.jit(lambda: ScoreTable.at(math.log(10)).log_participation)()
    assert_exact(remembered, ScoreTable.at(math.log(10)).log_participation)


@pytest.mark.parametrize("d", [1, 2, 20])
def test_radial_rules_know_the_moments(d, assert_exact):
    """E |x|^{2k} = d (d+2) … (d+2k-2)."""
    for k in range(5):
        moment = math.prod(d + 2 * i for i in range(k))
        for radius, weights in (_radial(d, 48), _few_radii(d, 3)):
            assert_exact(weights @ radius ** (2 * k), float(moment), rtol=1e-9)


def test_query_average_is_exact_for_quadratic_functions(assert_exact):
    average = QueryAverage.of_frames(5, frames=2)
    assert_exact(jnp.einsum("n,ni,nj->ij", average.weights, average.nodes, average.nodes), np.eye(5))


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"cov": np.ones((2, 3))}, "square matrix"),
        ({"cov": np.array([[1.0, 0.5], [0.0, 1.0]])}, "symmetric"),
        ({"cov": -np.eye(2)}, "negative eigenvalue"),
        ({"cov": np.eye(2), "query_cov": np.eye(3)}, "one dimension"),
        ({"cov": np.eye(2), "task_scale": 0.0}, "positive"),
        ({"cov": np.eye(2), "noise_std": -1.0}, "≥ 0"),
        ({"cov": np.eye(2), "noise_std": np.nan}, "finite"),
    ],
)
def test_refuses_what_is_no_task(arguments, rule):
    with pytest.raises(ValueError, match=rule):
        LinearRegression(**arguments)


def test_refuses_single_precision():
    with jax.enable_x64(False):
        task, params = LinearRegression(np.eye(2)), block_attention(np.eye(2), 1.0)
        for risk in (
            lambda: task.infinite_risk(params),
            lambda: task.finite_risk(params, 1.0),
            lambda: task.linear_attention_risk(10),
        ):
            with pytest.raises(ValueError, match=r"jax\.enable_x64\(True\)"):
                risk()


def test_head_reads_the_last_row(assert_exact):
    task, params = a_task(5), a_head(5)
    last = Attention(params.bilinear, params.value[-1:])
    assert_exact(task.finite_risk(last, 2.0), task.finite_risk(params, 2.0))
    head = block_attention(np.arange(4.0).reshape(2, 2), 3.0)
    tokens = np.random.default_rng(0).normal(size=(4, 3))
    scores = tokens[:, :2] @ head.bilinear[:2, :2] @ np.array([0.3, -0.2])
    expected = 3.0 * jax.nn.softmax(scores) @ tokens[:, 2]
    assert_exact(attend(head, Empirical(tokens), jnp.array([0.3, -0.2, 7.0]))[-1], expected)


def test_risk_gap_is_the_difference_and_keeps_its_digits(checked):
    """On the line, scores that see labels too; where prompts are long the difference itself has few digits left."""
    task, head, average = (
        LinearRegression(np.eye(1)),
        Attention(np.array([[0.4, 0.0], [0.15, 0.0]]), np.array([[0.2, 1.1]])),
        PairAverage.line(48),
    )
    infinite = task.infinite_risk(head)
    gap = task.risk_gap(head, ScoreTable.at(math.log(50)), average)
    np.testing.assert_allclose(gap, task.finite_risk(head, math.log(50)) - infinite, rtol=1e-3)
    np.testing.assert_allclose(gap, task.finite_risk(head, math.log(50), average=average) - infinite, rtol=1e-8)
    long, longer = (
        task.risk_gap(head, ScoreTable.at(log), average) for log in (40 * math.log(10), 40 * math.log(10) + 1)
    )
    assert 1 < long / longer < math.e**1.01
