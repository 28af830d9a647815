"""Each public quadrature against mpmath at the edges of its stated domain, and NaN outside."""

from functools import partial

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from lib import single_location as sl
from lib._namespace import jitted
from lib.concentration import RadialTable
from lib.finite_prompt import participation, quadrature_error, score_error
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk
from lib.partition import square_given_others
from lib.single_location._argmax import log_argmax_probability
from lib.single_location.activations import _Erf, _Relu, _Sigmoid
from lib.single_location.bayes_optimal import bayes_optimal_risk
from lib.single_location.population import _in_numpy_or_stack

pytestmark = pytest.mark.usefixtures("float64", "unchecked")

risk_of_blocks = jax.jit(block_risk)
log_chances = jax.jit(log_argmax_probability)

# (model, L, ν): the Bayes risk to 16 digits, by `python tests/lib/references/bayes_risk.py` (minutes to an hour).
BAYES = {
    ("spiked", 2, 240.0): "4.958995743170373e-28",
    ("spiked", 2, 1000.0): "7.462049450647186e-111",
    ("spiked", 3, 1e-3): "0.6664444814937892",
    ("spiked", 3, 1000.0): "1.492409890129437e-110",
    ("spiked", 100, 300.0): "1.345917210229105e-32",
    ("spiked", 10**6, 140.0): "4.322033919936001e-11",
    ("spiked", 10**12, 20.0): "0.9998489422310823",
    ("spiked", 10**12, 110.0): "6.659518082862176e-4",
    ("spiked", 10**12, 1000.0): "7.462049450639724e-99",
    ("max", 3, 0.01): "0.6666444455555185",
    ("max", 10, 1000.0): "1.538751463890748e-3",
    ("max", 10**12, 7.4): "0.8888357670146057",
}
# The Bayes risk by two integrals, of every element of stacks.
bayes_integrals = partial(_in_numpy_or_stack, jitted()(lambda task: task.bayes_integrals()), batch=1)
MODELS = {"spiked": sl.Spiked, "max": sl.Max}


def bayes_risk_of_two(snr):
    """`E 1/(1 + e^{ν + √(2ν) g})` by a trapezoid around the g at which the exponent is zero."""
    with mp.workdps(30):
        root = mp.sqrt(2 * mp.mpf(snr))
        step = 1 / (8 * max(mp.mpf(1), root / 4))
        nodes = [k * step for k in range(-int(14 / step), int(14 / step) + 1)]
        return step * mp.fsum(mp.npdf(x - snr / root) / (1 + mp.exp(root * x)) for x in nodes)


# --- Bayes risks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "length", "snr"), BAYES)
def test_bayes_risk_has_ten_digits(model, length, snr):
    task, desired = MODELS[model](length, snr), float(BAYES[model, length, snr])
    error = abs(float(sl.bayes_risk(task)) / desired - 1)
    assert error < (1e-8 if model == "max" and snr > 500 else 1e-10)
    if model == "spiked":
        np.testing.assert_allclose(bayes_integrals(task)[1], desired, rtol=1e-10)


@pytest.mark.parametrize("snr", [1e-3, 140.0, 200.0, 300.0, 600.0, 2500.0])
def test_bayes_risk_of_two_spiked_tokens_keeps_its_digits(snr):
    task, desired = sl.Spiked(2, snr), float(bayes_risk_of_two(snr))
    error = abs(float(sl.bayes_risk(task)) / desired - 1)
    assert error < 1e-10


def test_bayes_risks_are_nan_outside_their_domain():
    outside = [sl.Spiked(2, 2501.0), sl.Spiked(1e13, 1.0), sl.Max(2, 1001.0), sl.Max(1e13, 1.0), sl.Max(1e13, np.inf)]
    for task in outside:
        values = [sl.bayes_risk(task), *bayes_integrals(task), sl.best_risk(task, sl.softmax)]
        assert np.isnan(values).all(), task


@pytest.mark.parametrize("snr", [1e-3, 40.0, 400.0, 1000.0])
def test_best_elementwise_risk_of_two_tokens_is_the_bayes_risk_of_half_the_strength(snr):
    found = sl.best_elementwise_risk(sl.Spiked(2, snr))
    np.testing.assert_allclose(found, float(bayes_risk_of_two(snr / 2)), rtol=1e-9)


def test_best_elementwise_risk_is_nan_outside_its_domain():
    assert np.isnan(sl.best_elementwise_risk(sl.Spiked([1.0, 1e13, 2.0], [1.0, 1.0, 1100.0]))).all()


# --- heads ------------------------------------------------------------------------------------------------

SHAPES = {
    "erf": (_Erf(-3.0), lambda x: mp.erfc(3 - x)),
    "sigmoid": (_Sigmoid(-5.0), lambda x: 1 / (1 + mp.exp(5 - x))),
    "relu": (_Relu(-3.0), lambda x: max(x - 3, mp.mpf(0))),
    "linear": (sl.linear, lambda x: 1 + x),
    "exp": (sl.exp, mp.exp),
}


def elementwise_terms(shape, length, snr, m_k, q_k):
    """E s_ε and E Σ s² by mpmath, one token at a time, over intervals of three standard deviations."""
    with mp.workdps(20):
        spread, offset = mp.sqrt(q_k), mp.sqrt(snr) * m_k

        def mean(power, centre):
            nodes = sorted({mp.mpf(3), *(centre + spread * k for k in range(-12, 25, 3))})
            return mp.quad(lambda x: shape(x) ** power * mp.npdf(x, centre, spread), nodes)

        return float(mean(1, offset)), float(mean(2, offset) + (length - 1) * mean(2, mp.mpf(0)))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("length", "snr", "root"), [(2, 1.0, 0.01), (10**12, 30.0, 59.0), (2, 400.0, 20.0)])
def test_attention_risk_of_elementwise_heads(name, length, snr, root):
    activation, shape = SHAPES[name]
    if name == "exp":
        snr, root = min(snr, 30.0), min(root, 2.0)
    risk = sl.attention_risk(sl.Spiked(length, snr), activation, sl.Overlaps(0.9 * root, root**2, 0.5, 0.7))
    hidden, power = elementwise_terms(shape, length, snr, 0.9 * root, root**2)
    assert abs(float(risk) - (1 - hidden + 0.7 * power)) <= 1e-9 * max(1, hidden, 0.7 * power)


@pytest.mark.parametrize("root", [3.0, 3.9])
def test_exp_is_right_or_nan_where_its_squares_look_far(root):
    """At the hidden token of a strong hint the squared weight is centred 2√q_k beyond it."""
    task, overlaps = sl.Spiked(10**12, 30.0), sl.Overlaps(0.9 * root, root**2, 0.5, 0.7)
    hidden, power = elementwise_terms(mp.exp, 10**12, 30.0, 0.9 * root, root**2)
    risk = float(sl.attention_risk(task, sl.exp, overlaps))
    assert np.isnan(risk) or abs(risk / (1 - hidden + 0.7 * power) - 1) < 1e-9


@pytest.mark.parametrize(("task", "slope"), [(sl.Spiked, np.sqrt), (sl.Max, float)], ids=["spiked", "max"])
@pytest.mark.parametrize("length", [2, 10**12])
def test_attention_risk_of_the_posterior_is_the_bayes_risk(task, slope, length):
    """To 1e-9 in the spiked and to 1e-8 in the max model, or NaN, from weak hints to the strongest."""
    strongest = 1000.0 if task is sl.Spiked else 60.0
    for snr in (1e-4, 1.0, 20.0, strongest):
        c = slope(snr)
        risk = float(sl.attention_risk(task(length, snr), sl.softmax, sl.Overlaps(c, c**2, 1.0, 1.0)))
        allowed = 1e-9 if task is sl.Spiked else 1e-8
        assert np.isnan(risk) or abs(risk - float(sl.bayes_risk(task(length, snr)))) < allowed


# --- finite prompts ---------------------------------------------------------------------------------------


# (τ, ln L): P and Q, by `python tests/lib/references/long_prompts.py`.
CORNERS = {
    (30.0, 330.0): (0.153298348435048, 21.1595578538216),
    (30.0, np.log(2.0)): (0.98121083386008, 867.179466706137),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_finite_prompts_at_the_corners_of_their_domain(corner):
    found = np.asarray([participation(*corner), score_error(*corner)])
    assert (np.abs(found / CORNERS[corner] - 1) < 1e-11).all()


def test_finite_prompts_are_nan_outside_their_domain():
    for function in (participation, score_error, quadrature_error):
        assert np.isnan(function(np.asarray([30.1, 1.0, 1.0]), np.asarray([1.0, 330.1, -0.1]))).all()


@pytest.mark.parametrize(
    ("tau", "log_others", "allowed"),
    [(15.0, 44.0, 1e-6), (20.0, 30.0, 1e-5), (-20.0, 80.0, 1e-5), (30.0, 150.0, 2e-4), (30.0, 20.0, 2e-4)],
)
def test_one_token_is_averaged_to_the_stated_accuracy(tau, log_others, allowed):
    with mp.workdps(20):
        middle = min(log_others / abs(tau), 2 * abs(tau))
        nodes = [-12, *(middle + d for d in (-2, -1, -0.5, 0, 0.5, 1, 2, 6)), 2 * abs(tau) + 14]
        desired = mp.quad(lambda g: mp.npdf(g) / (1 + mp.exp(log_others - abs(tau) * g)) ** 2, nodes)
    np.testing.assert_allclose(
        square_given_others(jnp.asarray(tau), jnp.asarray(log_others)), float(desired), rtol=allowed
    )
    assert np.isnan(square_given_others(jnp.asarray(30.1), jnp.asarray(1.0)))


# --- queries ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def score_tables(float64, unchecked):
    """The score tables of all lengths of this module, computed together."""
    lengths = (1, 20, 10**8)
    return dict(zip(lengths, ScoreTable.at_each(np.log(lengths)), strict=True))


@pytest.fixture(scope="module")
def tables(float64):
    """The default radial table, and one with more nodes that reach farther."""
    log_lengths = np.asarray([np.log(2.0), 15.0, 28.0])
    return RadialTable.at(log_lengths), RadialTable.at(log_lengths, largest_tau=30.0, nodes=240)


@pytest.mark.parametrize(("norm", "dimension"), [(0.4, 1), (0.4, 16), (2.0, 1), (2.0, 16)])
def test_isotropic_error_at_the_edges_of_its_domain(tables: tuple[RadialTable, RadialTable], norm, dimension):
    few, many = (table.error(norm, dimension) for table in tables)
    np.testing.assert_allclose(few, many, rtol=1e-6)


@pytest.mark.parametrize(("norm", "dimension"), [(0.1, 16), (2.0, 64), (3.0, 16)])
def test_isotropic_error_is_nan_where_the_nodes_miss_its_mean(tables, norm, dimension):
    assert np.isnan(tables[0].error(norm, dimension)).all()


def test_finite_risk_off_the_optimum_is_sharper_than_block_risk_at_default_nodes(score_tables):
    """In three dimensions, against 64 times as many directions; each within the accuracy that it states."""
    task, log_length, scores = LinearRegression(np.diag([0.5, 1.0, 1.5])), float(np.log(20)), score_tables[20]
    best = Blocks.best(task, log_length)
    turn = np.random.default_rng(3).normal(size=(3, 3))
    far = Blocks(best.matrix + 0.1 * np.linalg.norm(best.matrix) * turn, best.gain)
    fine = QueryAverage.of_frames(3, frames=4096, seed=7)
    for blocks, block_allowed, finite_allowed in ((best, 3e-4, 3e-4), (far, 4e-3, 1e-3)):
        desired = float(risk_of_blocks(task, blocks, scores, fine))
        by_seed = [
            float(risk_of_blocks(task, blocks, scores, QueryAverage.of_frames(3, seed=seed))) for seed in range(3)
        ]
        by_block = np.max(np.abs(np.asarray(by_seed) / desired - 1))
        finite = abs(float(task.finite_risk(Blocks.head(blocks), log_length)) / desired - 1)
        assert by_block < block_allowed
        assert finite < finite_allowed
        assert finite <= float(task.finite_risk_error(Blocks.head(blocks), log_length)) / desired
    assert finite < by_block / 3


# --- training and finite samples --------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [2, 3, 4, 30, 31, 500])
def test_equal_means_are_chosen_equally_often(tokens):
    """On both sides of each length at which the number of nodes changes."""
    chances = np.exp(log_chances(jnp.zeros(tokens), 0.4))
    np.testing.assert_allclose(chances, 1 / tokens, rtol=1e-11)


@pytest.mark.parametrize("behind", [1.0, 5.0, 10.0, 30.0])
def test_a_token_behind_another_is_chosen_by_a_normal_tail(behind):
    with mp.workdps(20):
        desired = float(mp.ncdf(-behind / mp.sqrt(2)))
    chance = float(np.exp(log_chances(jnp.asarray([-behind, 0.0]), 1.0)[0]))
    assert abs(chance - desired) < (1e-8 * desired if behind <= 10 else 1e-11)


@pytest.mark.parametrize("alpha", [1e4, 1e5, 1e7])
def test_no_number_of_prompts_beats_the_bayes_risk(alpha):
    task = sl.Spiked(2, 5.0)
    excess = float(bayes_optimal_risk(task, noise_std=0.3, alpha=alpha)) - float(sl.bayes_risk(task))
    assert 0 <= excess < 1.0 / alpha + 2e-8


@pytest.mark.parametrize("size", [0.1, 0.6, 2.0])
@pytest.mark.parametrize("length", [1, 20, 10**8])
def test_block_risk_of_isotropic_heads_is_resolved_by_the_radial_nodes(score_tables, length, size):
    """Three times as many nodes give the same digits, up to the stated norm ‖A‖ = 2."""
    scores = score_tables[length]
    for dimension in (1, 5, 16):
        task = LinearRegression(jnp.eye(dimension), noise_std=0.3)
        head = Blocks(size * np.eye(dimension), 1 / size)
        default, fine = (risk_of_blocks(task, head, scores, QueryAverage.radial(dimension, radii=n)) for n in (64, 192))
        np.testing.assert_allclose(default, fine, rtol=1e-9)
