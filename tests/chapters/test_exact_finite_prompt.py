"""The chapter on exact finite prompts: its steps agree with other people's code, its claims with each other."""

import jax.random as jr
import numpy as np
import pytest
from scipy.special import softmax

from chapters.exact_finite_prompt.finite_prompt_plane import add_weights, evaluate
from chapters.exact_finite_prompt.freezing import frozen_participation
from chapters.exact_finite_prompt.plain_prompts import Scene, simulate
from lib.finite_prompt import LARGEST_TAU
from lib.measures import empirical

NAME = "exact_finite_prompt"


@pytest.fixture(scope="module")
def run(run_chapter):
    return run_chapter(NAME)


def test_claims_hold_and_would_not_under_their_alternatives(run):
    assert len(run.claims) == 6
    assert run.broken == []


def test_the_tables_are_finite_but_where_nothing_was_simulated(run):
    for name, table in run.tables.items():
        frame = table.frame
        if name == "exact_error":
            simulated = frame["prompts"].notna()
            assert (frame["simulated"].notna() == simulated).all()
            assert (frame["std_error"].notna() == simulated).all()
            frame = frame.drop(columns=["prompts", "simulated", "std_error"])
        if name == "freezing":  # τ = 30, the edge of the guaranteed domain, may round to a point beyond it
            tau = frame["ratio"] * np.sqrt(2 * frame["log_length"])
            frame = frame[tau < (1 - 1e-12) * LARGEST_TAU]
        assert np.isfinite(frame.to_numpy()).all()


@pytest.mark.parametrize("wrong", [{"taus": [0.5, 8.5]}, {"lengths": [1, 100]}, {"prompts": 10}, {"seed": True}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_plain_prompts_answer_with_a_numpy_softmax(float64):
    scene, key, taus = Scene.fixed(), jr.key(5), [0.5, 3.0]
    outputs = simulate(scene, taus, 20, 4, key=key)
    bilinear, value = np.asarray(scene.params.bilinear), np.asarray(scene.params.value)
    for index, output in enumerate(outputs):
        points = np.asarray(empirical(scene.gaussian, 20, key=jr.fold_in(key, index)).points)
        weights = [softmax(points @ bilinear @ (tau * np.asarray(scene.direction))) for tau in taus]
        np.testing.assert_allclose(output, weights @ points @ value.T, rtol=1e-12)


def test_more_prompts_leave_the_first_as_they_were(float64):
    few, more = (simulate(Scene.fixed(), [1.0], 10, n, key=jr.key(3)) for n in (5, 9))
    np.testing.assert_array_equal(few, more[:5])


def test_queries_are_measured_in_standard_deviations_of_a_score(float64):
    scene = Scene.fixed()
    tilt = np.asarray(scene.params.bilinear @ scene.direction)
    assert tilt @ np.asarray(scene.gaussian.cov) @ tilt == pytest.approx(1, rel=1e-12)


def test_one_token_has_no_pairs(float64):
    """At ln L = 0 participation is all there is, at every τ."""
    plane = evaluate(6, 6)
    alone = plane.log_length == 0
    np.testing.assert_allclose(plane.participation[alone], 1, rtol=1e-12)
    np.testing.assert_allclose(add_weights(plane).right[alone], 1, rtol=1e-12)


def test_frozen_participation_is_zero_up_to_freezing():
    np.testing.assert_allclose(frozen_participation(np.asarray([0.0, 0.5, 1.0, 2.0, 4.0])), [0, 0, 0, 0.5, 0.75])
