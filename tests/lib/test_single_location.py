"""Population risks: two Bayes integrals, closed forms, simulated scores and tokens, searches, and the domain."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from lib import single_location as sl
from lib._namespace import jitted
from lib.single_location.activations import (
    _affine_fit,
    _elementwise_risk,
    _Erf,
    _optimal_risk,
    _Relu,
    _Sigmoid,
    _Softplus,
)
from lib.single_location.population import _MOST_MIXTURES, _in_numpy_or_stack, _moments

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

# Averages of weights, of every element of stacks: the first ones by NumPy.
attention_moments = partial(_in_numpy_or_stack, _moments, batch=1, most=_MOST_MIXTURES)

# The Bayes risk by two integrals, of every element of stacks.
bayes_integrals = partial(_in_numpy_or_stack, jitted()(lambda task: task.bayes_integrals()), batch=1)

ALL = ("softmax", "softplus", "hardmax", "linear", "exp", "erf", "sigmoid", "relu")
# Biases that are neither zero nor best.
ACTIVATIONS = {name: getattr(sl, name) for name in ALL} | {
    "erf": _Erf(-0.4),
    "sigmoid": _Sigmoid(-1.0),
    "relu": _Relu(-0.3),
}
SEVEN = (0.7, 0.9, 0.6, 0.8, 0.3, -0.2, 0.25)
FOUR = (0.7, 0.9, 0.6, 0.8, 0.0, 0.0, 0.0)
ALIGNED = (0.9, 0.81, 0.6, 0.8, 0.0, 0.0, 0.0)
AWAY = (-0.6, 0.7, 0.6, 0.8, 0.0, 0.0, 0.0)


# --- Bayes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [sl.Spiked, sl.Max])
def test_the_two_bayes_integrals_agree(model):
    lengths, snrs = np.meshgrid([2, 3, 10, 1e3, 1e6, 1e8], [0.01, 0.3, 1.0, 5.0, 20.0, 60.0])
    one, two = bayes_integrals(model(lengths, snrs))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-9)


@pytest.mark.parametrize("snr", [0.01, 1.0, 20.0, 1000.0])
def test_bayes_risk_of_two_tokens_in_the_max_model(snr):
    """`1 - E Σp² = E[1/(2 cosh²(d/2))]/1` of a difference of scores d ~ N(0, 2ν²)."""
    with mpmath.workdps(30):
        nodes = [x / snr for x in mpmath.linspace(-80, 80, 81)] if snr > 8 else mpmath.linspace(-10, 10, 41)
        width = mpmath.sqrt(2) * snr / 2
        exact = mpmath.quad(lambda g: mpmath.npdf(g) / (2 * mpmath.cosh(width * g) ** 2), nodes)
    np.testing.assert_allclose(sl.bayes_risk(sl.Max(2, snr)), float(exact), rtol=1e-9)


def area_under_the_bayes_risk(length, snr):
    """Return `∫₀^snr E_Bayes dν` by Gauss-Legendre quadrature of the library's risk."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    return 0.5 * snr * weights @ sl.bayes_risk(sl.Spiked(length, 0.5 * snr * (nodes + 1.0)))


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize("snr", [0.5, 4.0, 12.0])
def test_area_under_the_bayes_risk_is_twice_the_information(length, snr):
    """`∫₀^ν E_Bayes dν' = 2 E ln(L p_ε)`, box `tallest-straw`: the right side by a lattice over the scores alone."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(48)
    scores = np.stack(np.meshgrid(*[nodes] * length, indexing="ij")) * np.sqrt(snr)
    scores[0] += snr
    information = np.log(length) + scores[0] - special.logsumexp(scores, axis=0)
    for _ in range(length):
        information = information @ (weights / np.sqrt(2.0 * np.pi))
    # the lattice is the less accurate side: 48 nodes differ from 96 by less than 1e-7 of the value
    np.testing.assert_allclose(area_under_the_bayes_risk(length, snr), 2.0 * information, rtol=1e-6)


def test_area_under_the_bayes_risk_is_twice_the_information_of_drawn_scores(assert_monte_carlo):
    rng = np.random.default_rng(1)
    length, snr = 50, 6.0
    scores = np.sqrt(snr) * rng.normal(size=(20_000, length))
    scores[:, 0] += snr
    information = np.log(length) + scores[:, 0] - special.logsumexp(scores, axis=1)
    assert_monte_carlo(2.0 * information[:, None], [area_under_the_bayes_risk(length, snr)])


@pytest.mark.parametrize("length", [2, 10, 10**6, 10**12])
def test_whole_area_under_the_bayes_risk_is_twice_the_entropy_of_the_place(length):
    """2 ln L at every length: the area of the step that the risk becomes, box `tallest-straw`."""
    # beyond ν = 140 at most (L - 1) 2√(π/140) e^{-35} is left, box `laws-at-strong-hints`
    left = 2.0 * (length - 1.0) * np.sqrt(np.pi / 140.0) * np.exp(-35.0)
    np.testing.assert_allclose(area_under_the_bayes_risk(length, 140.0), 2.0 * np.log(length), rtol=1e-7, atol=left)


def test_bayes_risk_at_the_ends():
    """One token is known; no hint leaves 1 - 1/L; a certain hint leaves nothing."""
    np.testing.assert_array_equal(sl.bayes_risk(sl.Spiked(1, 3.0)), 0.0)
    for model in (sl.Spiked, sl.Max):
        np.testing.assert_allclose(sl.bayes_risk(model([2, 10, 10**12], 0.0)), [0.5, 0.9, 1.0], atol=1e-10)
    np.testing.assert_array_equal(sl.bayes_risk(sl.Max([2, 10**8], np.inf)), 0.0)


def test_bayes_risk_of_softmax_weights_meets_simulated_posteriors(assert_monte_carlo):
    rng = np.random.default_rng(0)
    length, snr = 20, 6.0
    scores = rng.normal(size=(20_000, length))
    peaked = special.softmax(snr * scores, axis=1)
    scores[:, 0] += np.sqrt(snr)
    posterior = special.softmax(np.sqrt(snr) * scores, axis=1)
    simulated = np.stack([1 - posterior[:, 0], 1 - np.sum(peaked**2, axis=1)], axis=1)
    assert_monte_carlo(simulated, [sl.bayes_risk(sl.Spiked(length, snr)), sl.bayes_risk(sl.Max(length, snr))])


# --- closed forms -----------------------------------------------------------------------------------------


def gaussian_mean(function, mean=0.0):
    return integrate.quad(
        lambda x: function(x) * stats.norm.pdf(x - mean), mean - 12, mean + 12, epsabs=1e-13, limit=400
    )[0]


@pytest.mark.parametrize(("length", "snr"), [(2, 0.01), (30, 12.0), (10**6, 40.0)])
def test_best_spiked_risks_have_closed_forms(length, snr):
    root, odds = np.sqrt(snr), np.log(length - 1) + snr / 2
    task = sl.Spiked(length, snr)
    hit = gaussian_mean(lambda x: np.exp((length - 1) * special.log_ndtr(x)), root)
    exp = optimize.minimize_scalar(
        lambda c: -np.exp(-(c**2)) / (1 + (length - 1) * np.exp(-2 * c * root)), bounds=(0, 4), options={"xatol": 1e-9}
    )
    closed = {
        "linear": 1 / (length / (length - 1) + snr / length),
        "hardmax": 1 - hit**2,
        "sigmoid": 1 - gaussian_mean(lambda x: special.expit(root * x - odds), root),
        "exp": 1 + exp.fun,
    }
    for name, desired in closed.items():
        np.testing.assert_allclose(sl.best_risk(task, getattr(sl, name)), desired, rtol=0, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("length", [2, 10**6])
def test_best_risks_of_the_certain_max_model_have_closed_forms(length):
    """μ_L by quadrature of the law of the maximum; for two tokens the best weight Φ(χ) is an erf."""
    task = sl.Max(length, np.inf)

    def density(x):
        return length * stats.norm.pdf(x) * np.exp((length - 1) * special.log_ndtr(x))

    x = np.linspace(-10, 12, 20_001)
    mean = np.trapezoid(x * density(x), x)
    np.testing.assert_allclose(sl.best_risk(task, sl.linear), 1 - (1 + mean**2) / length, rtol=0, atol=1e-8)
    for activation in (sl.softmax, sl.hardmax):
        np.testing.assert_allclose(sl.best_risk(task, activation), 0.0, atol=1e-9)
    least = (length - 1) / (2 * length - 1)
    erf = float(sl.best_risk(task, sl.erf))
    assert erf == pytest.approx(least, abs=1e-8) if length == 2 else erf > least


def test_linear_max_risk_follows_from_the_bayes_risk():
    tasks = sl.Max([2, 10, 1000], [0.3, 4.0, 20.0])
    bayes = sl.bayes_risk(tasks)
    desired = 1 - (1 + (tasks.snr * bayes) ** 2) / tasks.length
    np.testing.assert_allclose(sl.best_risk(tasks, sl.linear), desired, rtol=0, atol=1e-9)


@pytest.mark.parametrize("model", [sl.Spiked, sl.Max])
def test_without_a_hint_nothing_beats_an_equal_share(model):
    task = model(5, 1e-9)
    for name in set(ALL) - {"hardmax", "softplus"}:
        np.testing.assert_allclose(sl.best_risk(task, getattr(sl, name)), 0.8, rtol=0, atol=2e-4, err_msg=name)
    np.testing.assert_allclose(sl.best_risk(task, sl.hardmax), 1 - 1 / 25, rtol=0, atol=1e-4)


# --- simulations ------------------------------------------------------------------------------------------


def squared_errors(activation, scores, values, answers):
    weights = np.asarray(activation.weights(jnp.asarray(scores)))
    return (answers - np.sum(weights * values, axis=1)) ** 2


def gram(*overlaps):
    """Return the Gram matrix of k*, v*, k, v."""
    m_k, q_k, m_v, q_v, m_kv, m_vk, q_vk = overlaps
    return np.asarray([[1, 0, m_k, m_vk], [0, 1, m_kv, m_v], [m_k, m_kv, q_k, q_vk], [m_vk, m_v, q_vk, q_v]])


@pytest.mark.parametrize(
    ("model", "length", "snr", "overlaps"),
    [
        (sl.Spiked, 5, 2.0, SEVEN),
        (sl.Max, 5, 2.0, FOUR),
        (sl.Max, 5, np.inf, FOUR),
        (sl.Max, 2, 4.0, ALIGNED),
        (sl.Max, 5, np.inf, ALIGNED),
        (sl.Max, 5, 3.0, AWAY),
    ],
)
def test_attention_risk_meets_simulated_fields(model, length, snr, overlaps, assert_monte_carlo):
    rng = np.random.default_rng(length)
    covariance = gram(*overlaps)
    fields = rng.multivariate_normal(np.zeros(4), covariance, size=(10_000, length), method="eigh")
    if model is sl.Spiked:
        fields[:, 0] += np.sqrt(snr) * covariance[0]
        hidden = np.zeros(len(fields), int)
    else:
        noise = 0.0 if np.isinf(snr) else rng.gumbel(size=fields.shape[:2]) / snr
        hidden = np.argmax(fields[..., 0] + noise, axis=1)
    answers = fields[np.arange(len(fields)), hidden, 1]
    samples = [squared_errors(each, fields[..., 2], fields[..., 3], answers) for each in ACTIVATIONS.values()]
    task = model(length, snr)
    risks = [sl.attention_risk(task, each, sl.Overlaps(*overlaps)) for each in ACTIVATIONS.values()]
    assert_monte_carlo(np.stack(samples, axis=1), np.asarray(risks), laws=7)


def test_attention_risk_meets_simulated_tokens(assert_monte_carlo):
    """Vectors of dimension 400 with all seven overlaps, label noise included and subtracted."""
    dimension, length, snr, noise, prompts = 400, 4, 3.0, 0.5, 6000
    rng = np.random.default_rng(400)
    frame = np.linalg.qr(rng.normal(size=(dimension, 4)))[0].T * np.sqrt(dimension)
    answer_key, answer, key, value = np.linalg.cholesky(gram(*SEVEN)) @ frame
    tokens = rng.normal(size=(prompts, length, dimension))
    hidden = rng.integers(length, size=prompts)
    tokens[np.arange(prompts), hidden] += np.sqrt(snr / dimension) * answer_key
    read = {name: tokens @ each / np.sqrt(dimension) for name, each in (("y", answer), ("k", key), ("v", value))}
    labels = read["y"][np.arange(prompts), hidden] + noise * rng.normal(size=prompts)
    samples = [squared_errors(each, read["k"], read["v"], labels) - noise**2 for each in ACTIVATIONS.values()]
    task = sl.Spiked(length, snr)
    risks = [sl.attention_risk(task, each, sl.Overlaps(*SEVEN)) for each in ACTIVATIONS.values()]
    assert_monte_carlo(np.stack(samples, axis=1), np.asarray(risks))


def test_long_prompts_meet_simulated_scores(assert_monte_carlo):
    """Softplus and softmax in the max model, at a length where one token is little."""
    rng = np.random.default_rng(3)
    length, snr = 2000, 4.0
    scores = rng.normal(size=(1000, length))
    p = special.softmax(snr * scores, axis=1)
    for activation in (sl.softplus, sl.softmax, sl.hardmax):
        s = np.asarray(activation.weights(jnp.asarray(2.0 * scores)))
        these = attention_moments(sl.Max(length, snr), activation, sl.Overlaps(2.0, 4.0, 1.0, 1.0))
        samples = np.stack([np.sum(s * p, axis=1), np.sum(s**2, axis=1)], axis=1)
        assert_monte_carlo(samples, np.stack([these.hidden, these.power]), laws=3)


# --- searches ---------------------------------------------------------------------------------------------


# `quick_compilation` would double the time of the searches
OPTIMISED = {"xla_backend_optimization_level": 1, "xla_llvm_disable_expensive_passes": False}


@partial(jax.jit, compiler_options=OPTIMISED)
def compiled_risk_at(task, activation, c):
    these = attention_moments(task, activation, sl.Overlaps(c, c**2, 1.0, 1.0))
    return _optimal_risk(these.hidden, these.power)


def risk_at(task, activation, c):
    return float(compiled_risk_at(task, activation, jnp.asarray(c)))


@pytest.mark.parametrize(("model", "length", "snr", "best"), [(sl.Spiked, 2, 5.0, np.sqrt(5.0)), (sl.Max, 4, 3.0, 3.0)])
def test_softmax_searched_from_several_starts_is_bayes(model, length, snr, best):
    """[D26, Prop. 4.2], without using it."""
    task = model(length, snr)
    for start in (0.2, 8.0):
        bracket = np.log(start), np.log(start) + 0.5
        found = optimize.minimize_scalar(
            lambda c: np.nan_to_num(risk_at(task, sl.softmax, np.exp(c)), nan=2.0), bracket, tol=1e-5
        )
        assert found.fun == pytest.approx(float(sl.bayes_risk(task)), abs=1e-8)
        assert np.exp(found.x) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("name", ["erf", "sigmoid", "relu"])
def test_biased_activations_searched_from_several_starts(name):
    task = sl.Spiked(2, 5.0)
    shape = type(getattr(sl, name))

    def risk(point):
        return risk_at(task, shape(point[1]), np.exp(point[0]))

    found = [
        optimize.minimize(risk, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12}).fun
        for start in ([0.0, 0.0], [1.0, -3.0], [0.5, 1.0])
    ]
    np.testing.assert_allclose(found, sl.best_risk(task, getattr(sl, name)), rtol=0, atol=1e-8)


def test_the_weight_that_knows_one_token_only_is_its_posterior(assert_exact):
    """Bayes' rule for a score drawn from one of two normal laws."""
    length, snr, scores = 7, 3.0, np.linspace(-3.0, 5.0, 9)
    hidden, other = stats.norm.pdf(scores, np.sqrt(snr)), stats.norm.pdf(scores)
    weights = _Sigmoid(-0.5 * snr - np.log(length - 1.0)).weights(jnp.asarray(np.sqrt(snr) * scores))
    assert_exact(weights, hidden / (hidden + (length - 1) * other))


def test_no_element_wise_search_finds_less_than_the_lone_posterior():
    """The sigmoid's own search finds as little, at its best; the others more."""
    tasks = sl.Spiked([2.0, 30.0, 1e5], [3.0, 6.0, 20.0])
    known = np.asarray(sl.best_elementwise_risk(tasks))
    np.testing.assert_allclose(sl.best_risk(tasks, sl.sigmoid), known, atol=1e-8)
    for activation in (sl.erf, sl.relu, sl.linear, sl.exp):
        assert (np.asarray(sl.best_risk(tasks, activation)) > known).all()


@pytest.mark.parametrize(("length", "snr"), [(2, 5.0), (50, 8.0)])
def test_softplus_searched_from_several_starts(length, snr):
    """The best c is finite for two tokens and infinite for fifty."""
    task = sl.Spiked(length, snr)
    best = float(sl.best_risk(task, sl.softplus))
    for start in (0.5, 12.0):
        found = optimize.minimize(
            lambda c: np.nan_to_num(risk_at(task, sl.softplus, np.exp(c[0])), nan=2.0),
            [np.log(start)],
            method="Nelder-Mead",
        )
        assert best <= found.fun + 1e-6
        assert found.fun - best < (1e-7 if length == 2 else 1e-3)


def test_positive_kernels_given_by_their_logarithm():
    """The exponential reaches the Bayes risk, and the square of a polynomial agrees with simulated prompts."""
    task = sl.Spiked(8, 5.0)
    found = float(sl.best_risk(task, sl.Activation.of_kernel(jnp.asarray)))
    bayes = float(sl.bayes_risk(task))
    assert bayes - 1e-9 < found < bayes + 1e-4
    square = sl.Activation.of_kernel(lambda x: 2 * jnp.log(jnp.abs(1 + x / 2)))
    exact = float(sl.attention_risk(task, square, sl.Overlaps(1.5, 2.25, 1.0, 1.0)))
    rng = np.random.default_rng(8)
    scores = rng.normal(size=(100_000, 8))
    scores[:, 0] += np.sqrt(5.0)
    kernel = (1 + 0.75 * scores) ** 2
    weights = kernel / kernel.sum(axis=1, keepdims=True)
    squares = 1 - 2 * weights[:, 0] + np.sum(weights**2, axis=1)
    assert abs(squares.mean() - exact) < 4 * squares.std() / squares.size**0.5


@pytest.mark.parametrize(("model", "slope"), [(sl.Spiked, 6.0**0.5), (sl.Max, 6.0)])
def test_softplus_far_down_its_bias_is_softmax(model, slope):
    """At the slope of the posterior its risk falls to the Bayes risk; weights and risks with a bias are SciPy's."""
    task, overlaps = model(10, 6.0), sl.Overlaps(slope, slope**2, 1.0, 1.0)
    risks = [float(sl.attention_risk(task, _Softplus(bias), overlaps)) for bias in (-2.0, -8.0, -60.0)]
    assert risks == sorted(risks, reverse=True)
    np.testing.assert_allclose(risks[-1], sl.bayes_risk(task), atol=1e-9)
    scores = np.linspace(-40.0, 20.0, 7)
    kernel = np.log1p(np.exp(scores - 2.0))
    np.testing.assert_allclose(_Softplus(-2.0).weights(scores), kernel / kernel.sum(), rtol=1e-12)


@pytest.mark.parametrize(("model", "length", "snr"), [(sl.Spiked, 10**4, 30.0), (sl.Max, 3, 0.5)])
def test_no_activation_is_below_bayes(model, length, snr):
    task = model(length, snr)
    bayes = float(sl.bayes_risk(task))
    for name in set(ALL) - {"softplus"}:
        assert bayes - 1e-10 <= float(sl.best_risk(task, getattr(sl, name))) <= 1.0, name


# --- shapes and domain ------------------------------------------------------------------------------------


def test_stacks_vmaps_and_loops_are_one(assert_exact):
    tasks = sl.Spiked([2.0, 10.0, 1e6], [1.0, 5.0, 30.0])
    overlaps = sl.Overlaps([0.5, 1.0, 2.0], [0.5, 2.0, 5.0], 0.7, 0.9, 0.1, -0.1, 0.2)
    wide = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, 3), overlaps)
    assert_exact(sl.bayes_risk(tasks), jax.jit(jax.vmap(sl.bayes_risk))(tasks))
    stacked = sl.attention_risk(tasks, sl.relu, overlaps)
    of_relu = jax.jit(jax.vmap(lambda task, overlaps: sl.attention_risk(task, sl.relu, overlaps)))
    assert_exact(stacked, of_relu(tasks, wide))
    alone = jax.tree.map(lambda leaf: leaf[1], (tasks, wide))
    assert_exact(stacked[1], sl.attention_risk(alone[0], sl.relu, alone[1]))
    of_linear = jax.jit(jax.vmap(lambda task: sl.best_risk(task, sl.linear)))
    assert_exact(of_linear(tasks), sl.best_risk(tasks, sl.linear))


def test_a_spiked_elementwise_head_sees_only_the_mean_length(assert_exact):
    ends = attention_moments(sl.Spiked([4.0, 16.0], 3.0), sl.erf, sl.Overlaps(1.0, 1.3, 0.0, 0.0))
    middle = attention_moments(sl.Spiked(10.0, 3.0), sl.erf, sl.Overlaps(1.0, 1.3, 0.0, 0.0))
    assert_exact([ends.hidden.mean(), ends.power.mean()], [middle.hidden, middle.power])


def test_what_is_not_resolved_is_nan():
    nan = [
        sl.bayes_risk(sl.Max(5, 2000.0)),
        sl.attention_risk(sl.Max(5, 100.0), sl.erf, sl.Overlaps(*ALIGNED)),
        sl.attention_risk(sl.Spiked(5, 1.0), sl.erf, sl.Overlaps(1.0, 1e5, 1.0, 1.0)),
        sl.attention_risk(sl.Spiked(5, 1.0), sl.exp, sl.Overlaps(1.0, 25.0, 1.0, 1.0)),
        sl.attention_risk(sl.Max(5, np.inf), sl.relu, sl.Overlaps(0.99999, 1.0, 1.0, 1.0)),
    ]
    assert np.isnan(nan).all()


def test_cross_overlaps_in_the_max_model_raise():
    with pytest.raises(ValueError, match="m_kv = m_vk = q_vk = 0"):
        sl.attention_risk(sl.Max(5, 1.0), sl.linear, sl.Overlaps(*SEVEN))


def test_single_precision_raises():
    with jax.enable_x64(False), pytest.raises(ValueError, match="enable_x64"):
        sl.bayes_risk(sl.Spiked(2, 1.0))


IMPORT_AND_COUNT = """
import importlib, sys
import jax
for name in sys.argv[1:]:
    importlib.import_module(name)
print(len(jax.live_arrays()))
"""


def test_importing_makes_no_array_of_jax():
    """It would be one of the precision that held at import, on the device that was there."""
    folder = Path(sl.__file__).parent
    names = ["lib", *(f"lib.single_location.{path.stem}" for path in folder.glob("[a-z]*.py"))]
    run = subprocess.run([sys.executable, "-c", IMPORT_AND_COUNT, *names], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "0"
    assert "lib.single_location.activations" in names


@pytest.mark.parametrize("name", ["erf", "sigmoid", "relu"])
def test_no_bias_and_a_bias_of_zero_are_one(assert_exact, name):
    activation = getattr(sl, name)
    biased = type(activation)(0.0)
    task, overlaps = sl.Spiked(5, 2.0), sl.Overlaps(*ALIGNED)
    assert activation.bias.shape == biased.bias.shape == ()
    for risk in (sl.attention_risk, jax.jit(sl.attention_risk)):
        assert_exact(risk(task, activation, overlaps), risk(task, biased, overlaps))


@pytest.mark.parametrize("model", [sl.Spiked, sl.Max])
def test_the_affine_fit_has_its_least_risk_at_its_own_slope(model, assert_exact):
    """Its c, and not another sign of it: among heads `1 + cχ`."""
    mixture = model(5, 2.0).marginals(1.0, 1.0)
    risk, slope = _affine_fit(mixture)
    tried = np.linspace(-3, 3, 601)
    risks = jax.lax.map(lambda c: _elementwise_risk(mixture, 1.0 + c * mixture.scores), tried)
    assert 0.1 < abs(slope) < 3
    assert abs(tried[np.argmin(risks)] - slope) <= 0.01
    assert_exact(_elementwise_risk(mixture, 1.0 + slope * mixture.scores), risk)


def test_batches_of_a_stack_do_not_change_risks(assert_exact):
    """The cases include a last batch that is not full, `jit` and `vmap`, and a batch larger than the stack."""
    snrs = jnp.linspace(0.5, 6.0, 5)

    def risk(batch, snr):
        return sl.bayes_risk(sl.Spiked(5.0, snr), batch=batch)

    expected = risk(1, snrs)
    assert_exact(risk(7, snrs), expected)
    assert_exact(jax.jit(partial(risk, 2))(snrs), expected)
    assert_exact(jax.vmap(partial(risk, 2))(snrs), expected)
    with pytest.raises(ValueError, match="batch"):
        risk(0, snrs)


@pytest.mark.parametrize(
    ("model", "snr", "gradient"),
    [
        (sl.Spiked, 2.0, lambda risk: jax.grad(lambda snrs: jnp.sum(risk(snrs)))),
        (sl.Max, 3.0, lambda risk: jax.vmap(jax.grad(risk))),
    ],
    ids=["a stack of Spiked", "Max under vmap"],
)
def test_the_bayes_risk_has_a_reverse_mode_gradient(model, snr, gradient):
    """Against central differences, whose error is of the order of step²."""
    step = 1e-4

    def risk(snr):
        return sl.bayes_risk(model(5.0, snr))

    slope = float(risk(snr + step) - risk(snr - step)) / (2 * step)
    snrs = jnp.asarray([snr, 2 * snr])
    assert float(gradient(risk)(snrs)[0]) == pytest.approx(slope, rel=1e-6)
