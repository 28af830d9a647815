"""The chapter on a needle in a long prompt: risks at its thresholds are one half, and its curves are the library's."""

import numpy as np
import pytest

from chapters.needle_in_a_long_prompt.thresholds import linear_threshold, solve_half_risk, solve_reference_lines
from chapters.needle_in_a_long_prompt.transition import frozen
from lib import single_location as sl
from lib.finite_prompt import participation

NAME = "needle_in_a_long_prompt"


def test_claims_hold_and_tables_are_finite(run):
    run.assert_sound()


def test_bisection_finds_where_a_falling_risk_is_one_half(assert_exact):
    lengths = np.asarray([10.0, 1e6, 1e12])
    risks = solve_half_risk(lambda task: np.exp(-np.log(2.0) * task.snr / np.log(task.length)), lengths)
    assert_exact(risks, np.log(lengths), 1e-7)


def test_reference_lines_reach_from_the_shortest_prompt_to_the_longest():
    lines = solve_reference_lines([12, 2])
    assert (lines.decades[0], lines.decades[-1]) == (2.0, 12.0)
    np.testing.assert_allclose(lines.snrs["2 ln L"], 2.0 * lines.decades * np.log(10.0), rtol=1e-12)
    np.testing.assert_allclose(lines.snrs["L"], linear_threshold(lines.lengths), rtol=0.02)


def test_the_random_energy_model_freezes_at_the_threshold():
    np.testing.assert_allclose(frozen(np.asarray([0.1, 1.0, 4.0])), [0.0, 0.0, 0.5])


def test_the_thresholds_of_softmax_and_linear_attention_halve_their_risks(float64, run):
    table = run.tables["needle_price"].frame
    softmax = table[table["activation"] == "softmax"]
    risks = sl.bayes_risk(sl.Spiked(10.0 ** softmax["decade"].to_numpy(), softmax["snr"].to_numpy()))
    np.testing.assert_allclose(risks, 0.5, atol=1e-6)
    linear = table[(table["activation"] == "linear") & (table["decade"] == 2)]
    np.testing.assert_allclose(sl.best_risk(sl.Spiked(100.0, linear["snr"].to_numpy()), sl.linear), 0.5, atol=1e-8)


def test_softmax_never_needs_more_than_the_best_element_wise_activation(run):
    table = run.tables["needle_price"].frame
    thresholds = table.pivot_table(index="decade", columns="activation", values="snr").dropna()
    assert len(thresholds) >= 2
    assert (thresholds["softmax"] <= thresholds["sigmoid"]).all()


def test_risk_and_participation_are_at_the_same_scale(float64, run):
    row = run.tables["needle_threshold"].frame.iloc[-1]
    log_length = row["decade"] * np.log(10.0)
    np.testing.assert_allclose(row["snr"], 2 * log_length * row["ratio"], rtol=1e-12)
    np.testing.assert_allclose(participation(np.sqrt(row["snr"]), log_length), row["participation"], rtol=1e-9)


@pytest.mark.parametrize("wrong", [{"decades": [2, 13]}, {"decades": [12, 12]}, {"decades": [2]}, {"ratios": 3}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
