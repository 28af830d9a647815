"""The chapter on heads at other lengths: heads are the best at their length, and risks agree with other code."""

import numpy as np
import pytest

from chapters.trained_at_other_lengths import regression, retrieval
from chapters.trained_at_other_lengths.figures import retrieval_elsewhere
from companion import Claims
from lib import single_location as sl
from lib.icl import Blocks, LinearRegression

NAME = "trained_at_other_lengths"


def test_claims_hold_and_tables_are_finite(run):
    assert len(run.claims) == 6
    run.assert_sound()


@pytest.mark.parametrize(("length", "snr"), [(13, 7.0), (250, 31.0)])
def test_trained_retrievers_are_the_best_of_their_kind(float64, length, snr):
    task = sl.Spiked(length, snr)
    best = {
        retrieval.SOFTMAX: sl.bayes_risk(task),
        retrieval.SIGMOID: sl.best_risk(task, sl.sigmoid),
        retrieval.LINEAR: sl.best_risk(task, sl.linear),
    }
    for kind, least in best.items():
        np.testing.assert_allclose(
            retrieval.risk(retrieval.best_head(kind, length, snr), length, snr), least, rtol=1e-5
        )


def test_linear_attention_elsewhere_is_affine_in_the_length(float64):
    head = retrieval.best_head(retrieval.LINEAR, 40, 9.0)
    risks = [retrieval.risk(head, length, 9.0) for length in (40, 140, 540)]
    power = head.value**2 * (1 + head.key**2)  # of a token that is not hidden
    np.testing.assert_allclose(np.diff(risks), [100 * power, 400 * power], rtol=1e-8)


def test_a_trained_regressor_is_a_minimum_along_both_parameters(float64):
    head = regression.best_head(3, 60)
    least = regression.risk(head, 60)
    for factor in (0.98, 1.02):
        assert regression.risk(regression.scale_scores(head, factor), 60) > least
        moved = type(head)(head.matrix, factor * head.gain)
        assert regression.risk(moved, 60) > least
    np.testing.assert_allclose(head.matrix, head.matrix[0, 0] * np.eye(3), atol=1e-6)
    np.testing.assert_allclose(regression.best_factor(head, 60), (1.0, least), rtol=1e-4)


def test_regressors_elsewhere_have_the_library_s_risk(float64):
    """Compare with the average over tasks and queries of any head, which uses other nodes."""
    head, length = regression.best_head(3, 60), 700
    theirs = LinearRegression(np.eye(3)).finite_risk(Blocks.head(regression.scale_scores(head, 1.2)), np.log(length))
    np.testing.assert_allclose(regression.risk(regression.scale_scores(head, 1.2), length), theirs, rtol=2e-3)


def test_the_risk_without_a_factor_levels_off_at_the_shrinkage(float64):
    head = regression.best_head(3, 60)
    shrunk = float(head.gain * head.matrix[0, 0])
    assert 0 < shrunk < 1
    np.testing.assert_allclose(regression.risk(head, 10**9), 1.5 * (1 - shrunk) ** 2, rtol=1e-3)
    factor, risk = regression.best_factor(head, 10**9)
    np.testing.assert_allclose(factor, 1 / shrunk, rtol=1e-3)
    assert risk < 1e-3 * regression.risk(head, 10**9)


@pytest.mark.parametrize("wrong", [{"trained": 20}, {"snr": 1.0}, {"per_decade": 9}, {"prompts": 100}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_risks_are_compared_only_where_errors_are_not_too_rare():
    """At strong signals most prompts have no error, and the standard error of the rest says little."""

    def claim(*exact):
        trials = [retrieval.Trial(retrieval.LINEAR, 10, 100, 0.5, 0.01, 0.5, 0.9, 1000)]
        trials += [retrieval.Trial(retrieval.SOFTMAX, 10, 100, 0.0, 0.0, risk, 0.9, 1000) for risk in exact]
        claims = Claims("temperature", source="simulated here")
        retrieval_elsewhere._claim_simulated(claims, trials)
        return next(iter(claims))

    assert claim(0.09).holds
    assert claim(0.09).comparisons == 1
    assert "left out are 1 risks too small for 1,000 prompts" in claim(0.09).statement
    assert claim().comparisons == 1
    assert "left out" not in claim().statement


@pytest.mark.daily
def test_scaling_may_pay_where_the_head_shrinks_much(run_cells):
    """In nineteen dimensions the product bu of the trained head is so small that √3 is a good factor."""
    run = run_cells("trained_at_other_lengths", only="regression_elsewhere", dimension=19)
    assert run.broken == []
    assert "temperature-scaling-costs" in run.withheld
