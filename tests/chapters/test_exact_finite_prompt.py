"""The chapter on exact finite prompts: its steps agree with other people's code, its claims with each other."""

import jax.random as jr
import numpy as np
import pytest
from scipy.special import softmax

from chapters.exact_finite_prompt.mean_outputs import largest_score
from chapters.exact_finite_prompt.parameters import Parameters
from chapters.exact_finite_prompt.participation_by_ratio import frozen_participation, solve_participation_curves
from chapters.exact_finite_prompt.plain_prompts import query_ray, simulate_prompts
from chapters.exact_finite_prompt.quadrature import solve_plane, solve_weight_sums
from lib.finite_prompt import LARGEST_TAU
from lib.measures import empirical

NAME = "exact_finite_prompt"


def test_the_tables_are_finite_but_where_nothing_was_simulated(run):
    for name, table in run.tables.items():
        frame = table.frame
        if name == "exact_error":
            assert (frame["std_error"].notna() == (frame["kind"] == "prompts")).all()
            frame = frame.drop(columns=["kind", "std_error"])
        assert np.isfinite(frame.to_numpy()).all()


@pytest.mark.parametrize("log_length", [80.0, 97.3, 320.0, 330.0])
def test_curves_reach_the_edge_of_the_domain_and_not_beyond(float64, log_length):
    """τ = 30 is τ/√(2 ln L) times √(2 ln L), which may round to a larger number: there the answer would be NaN."""
    (curve,) = solve_participation_curves([log_length]).values()
    assert np.isfinite(curve.participation).all()
    assert np.isclose(curve.ratio[-1] * np.sqrt(2 * log_length), LARGEST_TAU)


def test_values_given_twice_are_taken_once(smoke_parameters):
    values = smoke_parameters(NAME) | {"taus": [2.5, 0.5, 0.5], "lengths": [100, 4, 4], "decades": [8, 1, 8]}
    p = Parameters(**values)
    assert (p.taus, p.lengths, p.decades) == ([0.5, 2.5], [4, 100], [1, 8])


@pytest.mark.parametrize(
    "wrong",
    [
        {"taus": [0.5, 8.5]},
        {"taus": [0.0, 0.0]},
        {"lengths": [1, 100]},
        {"prompts": 10},
        {"seed": True},
        {"tokens": 10**5, "lengths": [4, 10**4]},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_plain_prompts_answer_with_a_numpy_softmax(float64):
    ray, key, taus = query_ray(), jr.key(5), [0.5, 3.0]
    outputs = simulate_prompts(ray, taus, 20, 4, key=key)
    bilinear, value = np.asarray(ray.params.bilinear), np.asarray(ray.params.value)
    for index, output in enumerate(outputs):
        points = np.asarray(empirical(ray.gaussian, 20, key=jr.fold_in(key, index)).points)
        weights = [softmax(points @ bilinear @ (tau * np.asarray(ray.direction))) for tau in taus]
        np.testing.assert_allclose(output, weights @ points @ value.T, rtol=1e-12)


def test_more_prompts_leave_the_first_as_they_were(float64):
    few, more = (simulate_prompts(query_ray(), [1.0], 10, n, key=jr.key(3)) for n in (5, 9))
    np.testing.assert_allclose(few, more[:5], rtol=1e-12)  # batches of another size may round otherwise


def test_one_token_has_no_pairs(float64):
    """At ln L = 0 participation is all there is, at every τ."""
    plane = solve_plane(6, 6)
    alone = plane.log_length == 0
    np.testing.assert_allclose(plane.participation[alone], 1, rtol=1e-12)
    np.testing.assert_allclose(solve_weight_sums(plane).exact[alone], 1, rtol=1e-12)


def test_frozen_participation_is_zero_up_to_freezing():
    np.testing.assert_allclose(frozen_participation(np.asarray([0.0, 0.5, 1.0, 2.0, 4.0])), [0, 0, 0, 0.5, 0.75])


@pytest.mark.parametrize(("length", "mean"), [(1, 0.0), (2, 1 / np.sqrt(np.pi)), (3, 1.5 / np.sqrt(np.pi))])
def test_the_largest_score_has_its_textbook_mean(length, mean):
    np.testing.assert_allclose(largest_score(np.log(length))[0], mean, atol=1e-12)


def test_two_scores_tie_with_the_density_of_their_difference():
    """|g₁ - g₂| has density 2/√(4π) at zero."""
    np.testing.assert_allclose(largest_score(np.log(2.0))[1], 1 / np.sqrt(np.pi), rtol=1e-12)
