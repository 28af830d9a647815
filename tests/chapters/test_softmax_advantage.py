"""The chapter on the advantage of softmax: its tables are consistent, and its simulated cosine agrees with SciPy."""

import jax.random as jr
import numpy as np
import pytest
from scipy.special import erf, softmax

from chapters.softmax_advantage import crossings, typical_prompt
from chapters.softmax_advantage.activation_risks import ACTIVATIONS, BIASES
from chapters.softmax_advantage.best_risks import strengths
from chapters.softmax_advantage.models import GENERIC_SNR
from chapters.softmax_advantage.parameters import SHOWN_HEADS
from chapters.softmax_advantage.single_heads import COSINE_BIAS, COSINE_LENGTH, Products, simulate_cosine
from lib import single_location as sl
from lib.finite_prompt import participation
from lib.random import normal

NAME = "softmax_advantage"


def test_claims_hold_and_tables_are_finite(run):
    run.assert_sound()


def test_no_head_is_below_bayes_and_none_above_answering_zero(run):
    risks = run.tables["population_risk"].frame
    assert (risks["softmax"] <= risks["sigmoid"] + 1e-9).all()
    assert (risks["softmax"] <= risks["linear"] + 1e-9).all()
    zoo = run.tables["activation_zoo"].frame
    assert (zoo["risk"] >= zoo["bayes"] - 1e-12).all()
    assert zoo["cosine_squared"].between(0.0, 1.0 + 1e-12).all()
    assert list(zoo["activation"][zoo["bias"].isin(["best", "none"])]) == 2 * list(ACTIVATIONS)
    for frame in (risks[["softmax", "sigmoid", "linear"]], zoo[["risk"]]):
        assert (frame.to_numpy() > 0).all()
        assert (frame.to_numpy() < 1).all()


def test_softplus_with_ever_lower_biases_falls_to_bayes(run):
    zoo = run.tables["activation_zoo"].frame
    for _, trail in zoo[zoo["activation"] == "softplus"].groupby("model"):
        assert list(trail["bias"]) == ["none", *(f"{bias:g}" for bias in BIASES)]
        assert (np.diff(trail["risk"]) <= 1e-12).all()


def test_the_bayes_risk_of_the_max_model_is_one_less_the_participation(float64):
    """What the picture of long prompts draws, by the library's other quadrature."""
    lengths = np.asarray([2.0, 50.0, 1e6])
    np.testing.assert_allclose(
        sl.bayes_risk(sl.Max(lengths, 6.0)), 1.0 - participation(np.full(3, 6.0), np.log(lengths)), rtol=1e-8
    )


def test_products_of_weights_and_posterior_are_those_of_scipy(float64):
    """The same scores, read by SciPy's softmax and error function."""
    key, root = jr.key(4), np.sqrt(GENERIC_SNR)
    scores = np.array(normal(key, (7, COSINE_LENGTH)))
    scores[:, 0] += root
    p, s = softmax(root * scores, axis=1), 1 + erf(scores + COSINE_BIAS)
    found = simulate_cosine(7, key=key)
    for products, expected in ((found.together, s * p), (found.weights, s**2), (found.posterior, p**2)):
        np.testing.assert_allclose(products, np.sum(expected, axis=1), rtol=1e-10)


def test_the_error_of_the_cosine_is_the_scatter_of_cosines():
    """There are a thousand sets of prompts, each with products that depend on each other."""
    a, b = np.random.default_rng(1).uniform(0.5, 1.5, size=(2, 1000, 400))
    sets = [Products(x * y, x**2, y**2, 0.0, 0.0) for x, y in zip(a, b, strict=True)]
    cosines = np.asarray([these.cosine_squared for these in sets])
    np.testing.assert_allclose(np.mean([these.std_error for these in sets]), cosines.std(), rtol=0.1)
    np.testing.assert_allclose([these.cosine_squared_within for these in sets], 1.0, rtol=1e-12)
    assert cosines.max() < 1.0


def test_strengths_span_the_hints_that_the_text_speaks_of():
    found = strengths(5)
    np.testing.assert_allclose([found[0], found[-1]], [0.1, 60.0])
    assert (np.diff(np.log(found)) > 0).all()


@pytest.mark.parametrize(("length", "crossing"), [(2, 15.5626), (3, 11.8876), (10, 2.6750)])
def test_softplus_leads_the_best_elementwise_head_up_to_one_strength_and_not_beyond(float64, run, length, crossing):
    """The order turns once from a weak hint of 0.01 to a strong one of 140, where the notebook finds it."""
    task = sl.Spiked(float(length), np.geomspace(0.01, 140.0, 8))
    ahead = np.asarray(sl.best_risk(task, sl.softplus)) < np.asarray(sl.best_elementwise_risk(task))
    np.testing.assert_array_equal(ahead, np.asarray(task.snr) < crossing)
    name = "longer" if length == crossings.LONG_LENGTH else length
    found = run.claims[f"softmax-advantage-half-crossing-{name}"].measured
    assert abs(found - crossing) < crossings.ACCURACY


@pytest.mark.parametrize("length", [2, 3])
def test_softplus_at_infinite_slope_is_the_normalised_relu(float64, length):
    """The library's limit of large slopes, by the Laplace identity, against the direct integral over the scores."""
    law = sl.softplus.score_mixture(sl.Spiked(float(length), 60.0), 1.0, 1.0)
    np.testing.assert_allclose(crossings.relu_risk(length, 60.0), sl.softplus._infinite_slope_risk(law), rtol=1e-9)


@pytest.mark.parametrize("length", [2, 3])
def test_the_normalised_relu_pays_an_inverse_power_of_the_strength(length):
    """Corrections are of relative order 1/√ν: four times the strength halves them."""
    weak, strong = (snr * crossings.relu_risk(length, snr) / (length - 1) for snr in (1e4, 4e4))
    np.testing.assert_allclose(2 * strong - weak, 1 - 1 / (2 * np.pi), rtol=1e-3)
    assert abs(weak / (1 - 1 / (2 * np.pi)) - 1) > 0.01


def test_softmax_finds_the_token_in_the_prompt_that_is_shown(run):
    """As the headline says; a linear head spreads its weight, and misses the label by more."""
    frame = run.tables["one_token_knows"].frame
    hidden = frame[frame["hidden"] == 1].iloc[0]
    outputs = {head: (frame[head] * frame["value"]).sum() for head in SHOWN_HEADS}
    assert hidden["softmax"] > 0.5
    assert np.abs(frame["linear"]).sum() > 2 * abs(hidden["linear"])
    assert abs(outputs["softmax"] - hidden["value"]) < abs(outputs["linear"] - hidden["value"])


def test_the_prompt_that_is_shown_is_the_median_one():
    """The median of five prompts with the same errors for both heads; the fourth is nearest to the mean square."""
    errors = np.sqrt([1.0, 100.0, 2.0, 5.0, 3.0])
    values = np.stack([errors, np.zeros(5)], axis=1)  # all weight on a token of value 0, and the label is the other's
    weights = {head: np.tile([0.0, 1.0], (5, 1)) for head in SHOWN_HEADS}
    prompts = typical_prompt.Prompts(values, values, np.zeros(5, int), weights, 0.0)
    assert prompts.median == 4
    assert not prompts.found("softmax").any()


def test_a_finite_hint_is_lost_in_a_long_prompt_and_an_infinite_one_is_not(run):
    frame = run.tables["max_long_prompts"].frame
    longest = frame[frame["kind"] == "fixed"].groupby("strength")["risk"].last()
    np.testing.assert_allclose(longest, 1.0, rtol=1e-9)
    assert (frame[frame["kind"] == "certain"]["risk"] == 0).sum() > 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"lengths": [1]},
        {"lengths": [10, 10]},
        {"snrs": 4},
        {"zoo_length": 2},
        {"zoo_snr": 30.0},
        {"prompts": 100},
        {"seed": -1},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
