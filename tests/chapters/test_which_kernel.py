"""The chapter on kernels: errors, gains, the kernel 1 + x and centred heads against independent computations."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from chapters.which_kernel import centred, kernels, linear_kernel, opposite_pairs, pair_risks, retrieval
from lib.icl import LinearRegression, best_values
from lib.statistics import comparison_quantile, standard_error

LENGTH, DIMENSION, NOISE = 7, 3, 0.4


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def task():
    return kernels.regression(DIMENSION, NOISE)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("exp", np.exp),
        ("1 + exp", lambda x: 1 + np.exp(x)),
        ("square", lambda x: (1 + x / 2) ** 2),
        ("softplus", lambda x: np.log(1 + np.exp(x))),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_kernels_have_the_stated_logarithms(name, kernel):
    scores = np.linspace(-8.1, 8.3, 40)
    np.testing.assert_allclose(np.exp(kernels.KERNELS[name](jnp.asarray(scores))), kernel(scores), rtol=1e-12)


def test_far_scores_of_softplus_are_exponential():
    np.testing.assert_allclose(kernels.softplus(jnp.asarray([-40.0, -800.0])), [-40.0, -800.0], rtol=1e-12)


def test_one_plus_tanh_is_the_sigmoid_with_half_the_key(task, monkeypatch):
    monkeypatch.setitem(kernels.KERNELS, "tanh", lambda x: jnp.log1p(jnp.tanh(x)))
    tanh = pair_risks.pair_error(task, "tanh", 0.15, 30)
    assert tanh == pytest.approx(pair_risks.pair_error(task, "sigmoid", 0.3, 30), rel=1e-9)
    assert abs(tanh - pair_risks.pair_error(task, "sigmoid", 0.15, 30)) > 1e-3


@pytest.mark.parametrize("kernel", ["square", "1 + exp"])
def test_the_leading_order_is_the_slope_of_exact_errors(task, kernel):
    """At long prompts and small keys the excess over debiased gradient descent is the sum of both terms."""
    length, key = 4000, 0.004
    excess = pair_risks.pair_error(task, kernel, key, length) - pair_risks.linear_errors(task, length)[1]
    bend = pair_risks.curvature(kernel) * key**2
    predicted = pair_risks.solve_gain_limit(task) * (bend / length + bend**2 / 4)
    assert excess == pytest.approx(predicted, rel=0.01)


def test_the_second_term_is_the_error_of_infinite_prompts(task):
    """By Gauss-Hermite: the response a E f'(ag)/E f(ag) of softplus, with the best value over queries."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    radius = np.linspace(0, 9, 2001)
    density = stats.chi(DIMENSION).pdf(radius)
    key = 0.08
    scores = key * radius[:, None] * nodes
    response = np.logaddexp(0, scores) @ (weights * nodes) / (np.logaddexp(0, scores) @ weights)
    moments = [integrate.simpson(density * f, x=radius) for f in (response**2, response * radius, radius**2)]
    power = float(task.task_scale) ** 2
    error = power * (moments[2] - moments[1] ** 2 / moments[0])
    predicted = power * DIMENSION * (DIMENSION + 2) * pair_risks.curvature("softplus") ** 2 * key**4 / 2
    assert error == pytest.approx(predicted, rel=0.05)


def test_best_keys_and_gains_approach_their_limits(task):
    length = 2000
    pairs = pair_risks.solve_best_pairs(task, length)
    for kernel in kernels.SLOW:
        assert pairs.keys[kernel] == pytest.approx(pair_risks.predicted_key(task, kernel, length), rel=0.02)
        gain = length**2 * (pairs.debiased - pairs.errors[kernel])
        assert gain == pytest.approx(pair_risks.solve_gain_limit(task), rel=0.05)
    assert pairs.keys["exp"] == pytest.approx(pair_risks.predicted_key(task, "exp", length), rel=0.02)


def test_linear_attention_wins_beyond_the_predicted_noise():
    for ratio, sign in ((0.5, 1), (2.0, -1)):
        variance = ratio * (DIMENSION + 3) / DIMENSION  # ς = ratio (d + 3)
        found = pair_risks.solve_noisy_comparison(DIMENSION, variance, 0.0, 2000)
        assert np.sign(found.difference) == np.sign(found.predicted) == sign
        assert found.difference == pytest.approx(found.predicted, rel=0.15)


def test_retrieval_errors_are_those_of_simulated_scores():
    """The best key of (1 + x/2)² by brute force over simulated prompts, whose minimum is biased by little."""
    found = retrieval.solve_retrieval(6, 9.0)
    scores = np.random.default_rng(4).normal(size=(60_000, 6))
    scores[:, 0] += 3.0

    def error(slope):
        weights = (1 + slope * scores / 2) ** 2
        weights /= weights.sum(axis=1, keepdims=True)
        return 1 - weights[:, 0].mean() ** 2 / np.sum(weights**2, axis=1).mean()

    assert min(error(slope) for slope in np.geomspace(0.5, 20, 40)) == pytest.approx(found.errors["square"], abs=5e-3)
    posterior = np.exp(3.0 * scores)
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert 1 - posterior[:, 0].mean() == pytest.approx(found.bayes, abs=5e-3)
    assert found.errors["square"] - found.bayes > 0.03


def test_the_error_with_one_plus_x_is_a_double_integral(task):
    """Over the length of the query and the mean of the scores, with the same prompts left out."""
    key, cut = 0.5, 0.3
    exact = linear_kernel.exact_error(task, key, LENGTH)
    power, noise = float(task.task_scale) ** 2, NOISE
    step = LENGTH / (LENGTH + DIMENSION + noise / power)
    mean = power * (LENGTH - 1) / LENGTH
    rest = power * (DIMENSION - 1) + noise
    square = power * (LENGTH**2 - 1) / LENGTH**2 + rest * (LENGTH - 1) / LENGTH**2

    def at(r):
        low, high = ((1 + sign * cut) ** 0.5 * LENGTH**0.5 / (key * r) for sign in (-1, 1))

        def integrand(h, order):
            factor = 1 / (1 - (key * r * h) ** 2 / LENGTH)
            error = noise + power * r**2 - 2 * step * r**2 * mean * factor + step**2 * r**2 * square * factor**2
            return stats.norm.pdf(h) * (error if order else 1.0)

        return [
            2 * sum(integrate.quad(integrand, *ends, args=(order,))[0] for ends in ((0, low), (high, np.inf)))
            for order in (0, 1)
        ]

    radius = np.linspace(1e-3, 8, 161)
    rows = np.array([at(r) for r in radius])
    mass, error = (integrate.simpson(stats.chi(DIMENSION).pdf(radius) * rows[:, k], x=radius) for k in (0, 1))
    prompts = np.exp(np.interp(np.log(cut), np.log(exact.cuts), -np.log(exact.left_out)))
    assert 1 / prompts == pytest.approx(1 - mass, rel=1e-3)
    assert float(exact.at(prompts)) == pytest.approx(error / mass, rel=1e-4)


def test_the_cut_error_at_its_end_has_the_tail_of_a_density(task):
    """The error per prompt is 4 n ρ₀ ρ₂ E k₂² η² for large n, with densities of X at 1 by a sum over queries."""
    key, n = 0.5, 1e12
    radius = np.linspace(1e-3, 9, 4001)
    x_density = stats.chi(DIMENSION).pdf(radius) * stats.norm.pdf(LENGTH**0.5 / (key * radius))
    x_density *= LENGTH**0.5 / (key * radius)
    first, second = (integrate.simpson(x_density * radius**k, x=radius) for k in (0, 2))
    power = float(task.task_scale) ** 2
    step = LENGTH / (LENGTH + DIMENSION + NOISE / power)
    square = power * (LENGTH**2 - 1) / LENGTH**2 + (power * (DIMENSION - 1) + NOISE) * (LENGTH - 1) / LENGTH**2
    expected = 4 * n * first * second * square * step**2
    assert float(linear_kernel.exact_error(task, key, LENGTH).at(n)) == pytest.approx(expected, rel=1e-3)


def test_the_pair_with_one_plus_x_is_descent_on_centred_data_over_a_factor():
    rng = np.random.default_rng(5)
    tokens, query, key, value = rng.normal(size=(6, 4)), rng.normal(size=4), 0.3, 1.7
    x, y, scores = tokens[:, :-1], tokens[:, -1], key * tokens[:, :-1] @ query[:-1]
    centred_data = 2 * value * key * np.mean((y - y.mean()) * ((x - x.mean(axis=0)) @ query[:-1]))
    output = centred_data / (1 - scores.mean() ** 2)
    prompts = SimpleNamespace(tokens=tokens[None], queries=query[None], targets=np.array([0.6]))
    [square], [distance] = linear_kernel._squares(prompts, key, value)
    assert square == pytest.approx((output - 0.6) ** 2, rel=1e-10)
    assert distance == pytest.approx(abs(1 - scores.mean() ** 2), rel=1e-10)


def test_prompts_of_one_length_do_not_depend_on_the_other_lengths(task):
    both = linear_kernel.simulate_cut_errors(task, [4, LENGTH], 0.5, 9000, 8, seed=3)
    [alone] = linear_kernel.simulate_cut_errors(task, [LENGTH], 0.5, 9000, 8, seed=3)
    np.testing.assert_array_equal(both[1].simulated, alone.simulated)


def test_the_curvature_of_a_centred_head_is_that_of_sampled_cumulants(task):
    """The even part's mean square by simulated prompts, and the odd part's coefficient by the pair's formula."""
    n, power, ratio = 200_000, float(task.task_scale) ** 2, float(task.noise_std / task.task_scale) ** 2
    rng = np.random.default_rng(6)
    g = rng.normal(size=(n, LENGTH))
    labels = power**0.5 * rng.normal(size=(n, 1)) * g
    labels += (power * (DIMENSION - 1) + NOISE) ** 0.5 * rng.normal(size=(n, LENGTH))
    scores, answers = (each - each.mean(axis=1, keepdims=True) for each in (g, labels))
    third = (scores**2 * answers).mean(axis=1)
    step = LENGTH / (LENGTH + DIMENSION + ratio)
    even = step**2 / 4 * DIMENSION * (DIMENSION + 2) * third**2
    odd = centred.solve_curvature(task, LENGTH).pair
    formula = centred.centred_curvature(task, LENGTH)
    error = even.std() / n**0.5
    assert abs(even.mean() + odd - formula) < 4 * error
    assert formula > 20 * error


def test_the_curvature_of_a_centred_head_is_that_of_exact_errors(task):
    found = centred.solve_curvature(task, LENGTH)
    assert found.measured == pytest.approx(found.predicted, rel=0.01)


def test_errors_of_plain_and_centred_heads_at_one_value_differ_by_the_average(task):
    """The simulated difference of both squares on the same prompts."""
    found = centred.simulate_centred_head(task, LENGTH, 8, 2000, seed=1)
    drawn = task.draw(LENGTH, 100_000, key=jax.random.key(4))
    tokens, queries, targets = (np.asarray(each) for each in (drawn.tokens, drawn.queries, drawn.targets))
    key = found.simulated_keys[-1]
    value = float(centred._best(task, jnp.asarray(key), jnp.log(float(LENGTH)))[2])
    weights = np.exp(key * np.einsum("plc,pc->pl", tokens[..., :-1], queries[:, :DIMENSION]))
    output = value * np.sum(weights * tokens[..., -1], axis=1) / weights.sum(axis=1)
    average = value * tokens[..., -1].mean(axis=1)
    differences = (output - targets) ** 2 - (output - average - targets) ** 2
    error = differences.std() / differences.size**0.5
    expected = found.plain_there[-1] - found.centred_there[-1]
    assert abs(differences.mean() - expected) < 4 * error
    assert expected > 20 * error


@pytest.mark.parametrize(
    ("dimension", "noise_variance", "length"),
    [(2, 0.75, 40), (3, 0.1, 28), (5, 0.1, 40), (5, 0.6, 110), (8, 0.25, 110)],
)
def test_slow_kernels_win_where_it_is_known(dimension, noise_variance, length):
    """Near the ends of the rule all pairs with slow kernels beat linear attention; far outside they do not."""
    task = kernels.regression(dimension, noise_variance)

    def lead(length):
        """Return the error of linear attention minus that of the worst pair."""
        errors = [pair_risks.best_key(task, kernel, length)[1] for kernel in kernels.SLOW]
        return pair_risks.linear_errors(task, length)[0] - max(errors)

    assert pair_risks.slow_kernels_win(task, length)
    assert lead(length) > 0
    assert not pair_risks.slow_kernels_win(task, length // 2)
    assert lead(length // 2) < 0


@pytest.mark.daily
@pytest.mark.parametrize(
    ("figure", "changed", "withheld"),
    [
        ("risk_along_keys", {"noise_variance": 0.7483}, {"which-kernel-beats-linear"}),
        (
            "gain_for_long_prompts",
            {"gain_lengths": [20, 40]},
            {"which-kernel-common-gain", "which-kernel-noisy-labels"},
        ),
        ("gain_for_long_prompts", {"large_noise_variance": 10.0}, set()),
        ("two_tasks", {"snr": 4.0}, {"which-kernel-slow-retrieval"}),
        ("kernel_one_plus_x", {"cut_lengths": [150, 200]}, {"which-kernel-cut-errors", "which-kernel-infinite-error"}),
    ],
)
def test_claims_hold_or_are_withheld(run_cells, figure, changed, withheld):
    run = run_cells("which_kernel", only=figure, **changed)
    assert run.broken == []
    assert set(run.withheld) == withheld


def test_a_noise_at_which_linear_attention_does_not_win_is_refused(run_cells):
    with pytest.raises(ValueError, match="linear attention wins only beyond"):
        run_cells("which_kernel", large_noise_variance=1.2)


# --- opposite pairs with other kernels ---------------------------------------------------------------------


def published_task():
    """The task of [He25]."""
    return LinearRegression(np.eye(5), task_scale=np.sqrt(0.2), noise_std=np.sqrt(0.1))


def identity(x):
    return x


def square(x):
    """Logarithm of (1 + x/2)², with a zero at -2."""
    return 2 * jnp.log(jnp.abs(1 + x / 2))


def shifted_tanh(x):
    return jnp.log1p(jnp.tanh(x))


def softplus(x):
    return jnp.log(jax.nn.softplus(x))


def plain_pair_risk(task, kernel, omega, length):
    """2R of the best opposite pair by NumPy: moments of the two heads without symmetries, and Simpson's rule in r."""
    power = float(task.task_scale) ** 2
    rest = power * (task.dimension - 1) + float(task.noise_std) ** 2
    r = np.linspace(0, 9, 37)
    simpson = np.where(np.arange(r.size) % 2, 4.0, 2.0)
    simpson[[0, -1]] = 1.0
    weight = simpson * r ** (task.dimension - 1) * np.exp(-(r**2) / 2)
    weight /= weight.sum()
    g = np.linspace(-11.5, 11.5, 461)
    normal = np.exp(-(g**2) / 2) / np.exp(-(g**2) / 2).sum()
    s = np.linspace(-np.log(length) - 31, 3.5, 140)
    h = s[1] - s[0]
    means, products, overlaps = [], [], []
    for radius in r:
        sizes = [np.exp(np.minimum(s, 700.0)[:, None]) * np.maximum(kernel(t * omega * radius * g), 0) for t in (1, -1)]
        kept = [np.exp(-np.minimum(size, 700)) for size in sizes]
        one = [size * each for size, each in zip(sizes, kept, strict=True)]
        means.append(length * h * np.sum((one[0] @ (g * normal)) * (kept[0] @ normal) ** (length - 1)))
        found = []
        for k in (0, 1):
            phi = (kept[0] * normal) @ kept[k].T
            single = length * phi ** (length - 1)
            double = length * (length - 1) * phi ** (length - 2)
            cross = ((one[0] * g * normal) @ kept[k].T) * ((kept[0] * g * normal) @ one[k].T)
            square = (one[0] * g**2 * normal) @ one[k].T
            found.append((np.sum(single * square + double * cross), np.sum(single * ((one[0] * normal) @ one[k].T))))
        (product, overlap), (mixed_product, mixed_overlap) = found
        products.append(h**2 * (product - mixed_product))
        overlaps.append(h**2 * (overlap - mixed_overlap))
    target = 2 * power * (weight * r) @ np.asarray(means)
    curvature = 2 * weight @ (power * np.asarray(products) + rest * np.asarray(overlaps))
    return power * task.dimension + float(task.noise_std) ** 2 - target**2 / curvature


@pytest.mark.parametrize(
    ("log_kernel", "kernel"),
    [
        (square, lambda x: (1 + x / 2) ** 2),
        (shifted_tanh, lambda x: 1 + np.tanh(x)),
        (softplus, lambda x: np.logaddexp(0, x)),
    ],
)
def test_opposite_kernels_agree_with_a_plain_quadrature(log_kernel, kernel):
    task = LinearRegression(np.eye(3), task_scale=0.7, noise_std=0.4)
    _, half = opposite_pairs.opposite_kernel_values(task, log_kernel, 0.31, np.log(25))
    assert abs(2 * half - plain_pair_risk(task, kernel, 0.31, 25)) < 1e-7


@pytest.mark.parametrize(("omega", "length"), [(0.02, 12), (0.3, 40), (-0.6, 40), (0.05, 5000)])
def test_opposite_exponentials_are_a_pair_of_softmax_heads(omega, length):
    mu, risk = opposite_pairs.opposite_kernel_values(published_task(), identity, omega, np.log(length))
    values, desired = best_values(published_task(), np.array([omega, -omega]), np.log(length))
    np.testing.assert_allclose(mu, values[0], rtol=1e-7)
    assert abs(risk - desired) < 1e-9


def test_opposite_kernels_agree_with_monte_carlo():
    task, omega, length, n = LinearRegression(np.eye(3), task_scale=0.8, noise_std=0.3), 0.6, 12, 60_000
    rng = np.random.default_rng(11)
    w = 0.8 * rng.normal(size=(n, 3))
    x, query = rng.normal(size=(n, length, 3)), rng.normal(size=(n, 3))
    y = np.einsum("nld,nd->nl", x, w) + 0.3 * rng.normal(size=(n, length))
    target = np.sum(query * w, axis=1) + 0.3 * rng.normal(size=n)
    scores = omega * np.einsum("nld,nd->nl", x, query)
    mu, risk = opposite_pairs.opposite_kernel_values(task, softplus, omega, np.log(length))
    weights = [np.logaddexp(0, sign * scores) for sign in (1, -1)]
    first, second = (each / each.sum(axis=1, keepdims=True) for each in weights)
    squares = (float(mu) * np.sum((first - second) * y, axis=1) - target) ** 2 / 2
    assert abs(squares.mean() - risk) < comparison_quantile(1) * standard_error(squares)
    assert abs(squares.mean() - 0.5 * (0.64 * 3 + 0.09)) > 20 * standard_error(squares)


def test_curvatures_of_kernels():
    """By hand: the second and third derivatives of f/f(0) over the first."""
    for log_kernel, desired in ((identity, 0), (square, -0.5), (shifted_tanh, -2), (jax.nn.log_sigmoid, -0.5)):
        np.testing.assert_allclose(opposite_pairs.kernel_curvature(log_kernel), desired, atol=1e-12)
    np.testing.assert_allclose(opposite_pairs.kernel_curvature(softplus), -1 / (4 * np.log(2)), rtol=1e-12)
    np.testing.assert_allclose(
        opposite_pairs.kernel_curvature(lambda x: softplus(3 * x)), -9 / (4 * np.log(2)), rtol=1e-12
    )
