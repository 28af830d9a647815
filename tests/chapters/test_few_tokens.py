"""Prompts of a few tokens on a lattice, against Laplace's identity, closed forms and counting."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from chapters.softmax_variations.log_ratios import max_log_ratio, narrow_log_ratio, shared_log_ratio, spiked_log_ratio
from lib import single_location as sl
from lib.single_location.few_tokens import Prompts, _score_lattice
from lib.single_location.population import _map_stack, _moments

pytestmark = pytest.mark.usefixtures("float64")

# Averages of weights, of every element of stacks.
attention_moments = partial(_map_stack, _moments, batch=1)

MODELS = {"spiked": (sl.Spiked, spiked_log_ratio), "max": (sl.Max, max_log_ratio)}
SNR = 2.7


def prompts_of(hint, length, *arguments, step=0.1):
    """Prompts of that hint."""
    return Prompts.of(lambda scores: hint(scores, *arguments), length, step=step, shift=2.0)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_order_is_counted(length):
    """Chances add up to one, and give a polynomial of the scores that does not mind their order its average."""
    scores, probabilities = _score_lattice(length, 0.2, 0.0)
    total = np.sum(scores, axis=1)
    averages = [float(probabilities @ values) for values in (np.ones_like(total), total**2, total**4)]
    np.testing.assert_allclose(averages, [1.0, length, 3.0 * length**2], rtol=1e-11)


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("model", MODELS)
def test_bayes_risk_is_that_of_the_identity(model, length):
    """And chances of prompts with a hint add up to one."""
    make, hint = MODELS[model]
    prompts = prompts_of(hint, length, SNR)
    assert float(jnp.sum(prompts.probabilities)) == pytest.approx(1.0, abs=1e-11)
    assert float(prompts.bayes_risk()) == pytest.approx(float(sl.bayes_risk(make(length, SNR))), abs=1e-10)


@pytest.mark.parametrize("slope", [0.4, 2.1])
@pytest.mark.parametrize("activation", [sl.softmax, sl.softplus, sl.linear, sl.sigmoid], ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("length", [2, 3])
def test_averages_are_those_of_the_identity(length, activation, slope):
    """E s_ε and E Σs² of a spiked head of any slope, normalised or not."""
    found = attention_moments(sl.Spiked(length, SNR), activation, sl.Overlaps(slope, slope**2, 1.0, 1.0))
    averages = prompts_of(spiked_log_ratio, length, SNR).weight_averages(activation, slope)
    np.testing.assert_allclose(averages, [found.hidden, found.power], rtol=1e-8)


def test_averages_in_the_max_model():
    """In this model the scores of the other tokens also depend on the hidden token."""
    found = attention_moments(sl.Max(2, SNR), sl.softplus, sl.Overlaps(1.3, 1.3**2, 1.0, 1.0))
    averages = prompts_of(max_log_ratio, 2, SNR).weight_averages(sl.softplus, 1.3)
    np.testing.assert_allclose(averages, [found.hidden, found.power], rtol=1e-8)


@pytest.mark.parametrize(("model", "slope"), [("spiked", SNR**0.5), ("max", SNR)])
def test_search_finds_the_posterior(model, slope):
    """The best softmax head has the posterior's slope, and the Bayes risk [D26, Prop. 4.2]."""
    prompts = prompts_of(MODELS[model][1], 2, SNR)
    found, risk = Prompts.best_key_risk(sl.softmax, [prompts])
    assert found == pytest.approx(slope, rel=1e-3)
    assert risk == pytest.approx(float(prompts.bayes_risk()), abs=1e-6)


@pytest.mark.parametrize("activation", [sl.softmax, sl.softplus], ids=lambda a: type(a).__name__)
def test_a_stack_of_tasks_has_the_slopes_and_risks_of_each(activation):
    """The best slopes are in different brackets, and one of the two kinds of prompts has a single token."""
    snrs = np.asarray([0.05, SNR, 6.0])

    def kinds(snr):
        return [prompts_of(max_log_ratio, length, snr) for length in (1, 2)]

    together = kinds(snrs[:, None, None])
    alone = [Prompts.best_key_risk(activation, kinds(snr)) for snr in snrs]
    slopes = Prompts.best_slopes(activation, together)
    np.testing.assert_allclose(slopes, [slope for slope, _ in alone], rtol=1e-5)
    risks = [Prompts.risk(activation, slope, together)[index] for index, slope in enumerate(slopes)]
    np.testing.assert_allclose(risks, [risk for _, risk in alone], rtol=1e-8)


@pytest.mark.parametrize("length", [2, 3])
def test_hint_with_a_common_part(length):
    """The weights are the frequencies at which drawn tokens are the hidden one; the best slope is √ν/(1 - ρ)."""
    share = 0.45
    prompts = prompts_of(shared_log_ratio, length, SNR, share)
    slope, _ = Prompts.best_key_risk(sl.softmax, [prompts])
    assert slope == pytest.approx(SNR**0.5 / (1 - share), rel=1e-3)
    rng = np.random.default_rng(5)
    n = 200_000
    scores = np.sqrt(share) * rng.normal(size=(n, 1)) + np.sqrt(1 - share) * rng.normal(size=(n, length))
    scores[:, 0] += SNR**0.5
    weights = np.asarray(sl.softmax.weights(jnp.asarray(slope * scores)))
    drawn = np.stack([weights[:, 0], np.sum(weights**2, axis=1)], axis=1)
    error = np.std(drawn, axis=0) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=0) - prompts.weight_averages(sl.softmax, slope)) < 4 * error).all()


def test_hint_of_a_narrow_score():
    """The hidden score drawn nearer to zero: frequencies of a draw are the lattice's averages."""
    prompts = prompts_of(narrow_log_ratio, 2, 0.5)
    rng = np.random.default_rng(6)
    n = 200_000
    scores = rng.normal(size=(n, 2)) * [0.5, 1.0]
    weights = np.asarray(sl.sigmoid.weights(jnp.asarray(scores)))
    drawn = np.stack([weights[:, 0], np.sum(weights**2, axis=1)], axis=1)
    error = np.std(drawn, axis=0) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=0) - prompts.weight_averages(sl.sigmoid, 1.0)) < 4 * error).all()


def test_without_tokens_there_is_no_prompt():
    """Told in a sentence."""
    with pytest.raises(ValueError, match="an empty prompt"):
        Prompts.of(spiked_log_ratio, 0)
