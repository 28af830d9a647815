"""The chapter on variations of the task: its tables are consistent, and its constants are those of closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad

from chapters.softmax_variations import strong_signals
from chapters.softmax_variations.figures import random_length
from chapters.softmax_variations.fixed_heads import pooled, score_marginals
from chapters.softmax_variations.models import MODELS
from chapters.softmax_variations.style import DISTINCT
from lib import single_location as sl
from lib.single_location.activations import _affine_fit
from lib.single_location.population import _map_stack, _moments

NAME = "softmax_variations"


def test_claims_hold_and_tables_are_finite(run):
    run.assert_sound()


def test_one_head_for_two_lengths_is_no_better_than_one_head_for_each(run):
    """It pays for not knowing the length; where there is one length it pays nothing."""
    frame = run.tables["random_length"].frame
    assert (frame["risk"] >= frame["per_length"] - 1e-9).all()
    assert (frame["per_length"] >= frame["bayes"] - 1e-9).all()
    narrow = frame[frame["width"] == 0]
    np.testing.assert_allclose(narrow["risk"], narrow["per_length"], atol=1e-9)


@pytest.mark.parametrize("model", ["spiked", "max"])
def test_tuning_to_a_law_of_lengths_is_least_squares_on_both(float64, model):
    """For linear weights: the slope that the averaged law gives is the best of moments averaged over the lengths."""
    ends = MODELS[model](np.asarray([3.0, 17.0]), 4.0)
    either = pooled([score_marginals(MODELS[model](length, 4.0)) for length in (3.0, 17.0)])
    risk, slope = _affine_fit(either)

    def averaged(c):
        both = _map_stack(_moments, ends, sl.linear, sl.Overlaps(c, c**2, 1.0, 1.0), batch=1)
        return 1.0 - np.mean(both.hidden) ** 2 / np.mean(both.power)

    np.testing.assert_allclose(averaged(slope), risk, rtol=1e-9)
    assert min(averaged(0.9 * slope), averaged(1.1 * slope)) > risk


def test_a_law_of_no_width_is_the_mean_length_itself(run):
    """At width 0 the softmax head has the Bayes risk, and the sigmoid and linear heads have larger risks."""
    frame = run.tables["random_length"].frame
    narrow = frame[frame["width"] == 0].pivot(index="model", columns="activation", values="risk")
    bayes = frame[frame["width"] == 0].groupby("model")["bayes"].first()
    np.testing.assert_allclose(narrow["softmax"], bayes, atol=1e-9)
    assert (narrow["softmax"] < narrow["sigmoid"]).all()
    assert (narrow["sigmoid"] < narrow["linear"]).all()


def test_the_picture_of_random_lengths_shows_what_its_headline_says(run):
    """In both panels the curves of all heads but softmax rise, and that of softmax stays on zero."""
    figure = random_length.draw(run.tables["random_length"].frame)
    for panel in figure.axes:
        softmax, *others = (line.get_ydata() for line in panel.get_lines())
        np.testing.assert_allclose(softmax, 0.0, atol=1e-9)
        assert len(others) == 3
        for heights in others:
            assert (np.diff(heights) > DISTINCT).all()
            assert heights[-1] < panel.get_ylim()[1]


@pytest.mark.parametrize("wrong", [{"lengths": [1]}, {"lengths": [10, 10]}, {"published_snrs": 3}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_constants_at_every_length_are_those_of_closed_forms(float64):
    """Linear attention's from its exact risk; softmax's of two tokens from one integral, by SciPy."""
    every = strong_signals.solve_limit_constants()
    lengths, snr = every.lengths, np.asarray([[2000.0], [4000.0]]) * every.lengths
    weak, strong = snr / (lengths / (lengths - 1) + snr / lengths)
    np.testing.assert_allclose(every.linear[1], 2 * strong - weak, rtol=1e-9)
    snrs = strong_signals.CONSTANT * np.asarray([1.0, 2.0])

    def scaled(snr):
        """Return e^(ν/4) / √(π/ν) times `E sigmoid(-ν - √(2ν) g)`, with both exponentials taken together."""
        spread = np.sqrt(2 * snr)

        def integrand(x):  # g = (x - ν)/√(2ν), the odds being e^x
            return np.exp(snr / 4 - np.logaddexp(0.0, x) - (x - snr) ** 2 / (4 * snr)) / np.sqrt(2 * np.pi) / spread

        return quad(integrand, -200, 200, points=[0.0], limit=400)[0] / np.sqrt(np.pi / snr)

    weak, strong = map(scaled, snrs)
    np.testing.assert_allclose(every.softmax[0, 0], 2 * strong - weak, rtol=1e-6)
    np.testing.assert_allclose(every.softmax[1], (every.lengths - 1) / 2, rtol=0.01)
