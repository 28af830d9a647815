"""The opening chapter: the same for other seeds, and its exact numbers are exact."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest

from chapters.concentration.bounds import fit_bound
from chapters.measures import example_head
from chapters.measures.figures import one_prompt_converges, single_token
from chapters.measures.growing_prompts import (
    InfiniteOutput,
    PrefixOutputs,
    prefix_outputs,
    simulate_growing_prompts,
    solve_limit_and_fluctuation,
)
from chapters.measures.parameters import Parameters
from chapters.measures.short_prompt_errors import simulate_short_prompts, solve_short_prompt_errors
from chapters.measures.token_distributions import log_tilted_density, token_distributions
from lib.attention import attend
from lib.finite_prompt import score_error
from lib.measures import Empirical
from lib.statistics import comparison_quantile, standard_error

NAME = "measures"


def test_a_fluctuation_ten_percent_off_would_be_noticed(run):
    claim = run.claims["measures-fluctuation"]
    assert not claim.accepts(claim.measured * 1.1)
    assert not claim.accepts(claim.measured / 1.1)


@pytest.mark.daily
@pytest.mark.parametrize("seed", [1, 2])
def test_claims_hold_for_other_seeds(run_cells, seed):
    assert run_cells(NAME, seed=seed).broken == []


def test_the_same_seed_gives_the_same_numbers(run, run_cells):
    """In this process as in the kernel of the build, and whether other figures are made or not."""
    figure = "one_prompt_converges"
    again = run_cells(NAME, only=figure)
    pd.testing.assert_frame_equal(run.tables[figure].frame, again.tables[figure].frame, check_exact=True)
    assert again.claims.items() <= run.claims.items()
    assert again.claims


def test_lengths_without_a_single_token_are_refused(run_cells):
    with pytest.raises(ValueError, match="needs the length 1"):
        run_cells(NAME, short_lengths=[2, 4, 8])


def test_a_prompt_longer_than_what_is_drawn_is_refused(run_cells):
    with pytest.raises(ValueError, match=r"`mean_tokens` must be at least `tokens` \+ `changes`, 10010"):
        run_cells(NAME, tokens=10_000, changes=10, mean_tokens=10_000)


def test_values_given_twice_are_taken_once(smoke_parameters):
    values = smoke_parameters(NAME)
    p = Parameters(**values | {"taus": [1.5, 0.5, 1.5], "spread_lengths": [300, 10, 10], "short_lengths": [4, 1, 2, 2]})
    assert (p.taus, p.spread_lengths, p.short_lengths) == ([0.5, 1.5], [10, 300], [1, 2, 4])


def test_prefix_outputs_are_attention_on_prefixes(float64, assert_exact):
    points = token_distributions()["mixture"].sample(50, key=jr.key(3))
    lengths = np.asarray([1, 2, 17, 50])
    head, query = example_head.head(), example_head.query()
    outputs = prefix_outputs(head, points, query, lengths)
    assert_exact(outputs, [attend(head, Empirical(points[:length]), jnp.asarray(query)) for length in lengths])


@pytest.mark.parametrize("name", ["Gaussian", "mixture"])
def test_the_tilted_density_has_mass_one(float64, name):
    side = np.linspace(-12, 12, 481)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    tilt = example_head.tilt(example_head.head(), example_head.query())
    mass = np.exp(log_tilted_density(token_distributions()[name], tilt, points)).sum() * (side[1] - side[0]) ** 2
    np.testing.assert_allclose(mass, 1, rtol=1e-10)


def test_the_bound_drawn_bounds_from_two_tokens_on(float64):
    lengths = np.asarray([1, 2, 4, 8, 64, 512])
    errors = np.asarray(score_error(1.0, np.log(lengths)))
    bound = fit_bound([1.0], lengths[1:], errors[None, 1:])(1.0, lengths)
    assert (bound[1:] >= errors[1:] * (1 - 1e-12)).all()
    assert np.isclose(bound[1:] / errors[1:], 1).any()
    assert bound[0] == 0


def test_the_correction_of_the_fluctuation_is_that_of_simulated_prompts(float64):
    """At 100 tokens it is seven standard errors, and the next order, about ten times (c/L)², less than two."""
    first, mixture = example_head.first_output(example_head.head()), token_distributions()["mixture"]
    theory = solve_limit_and_fluctuation(first, mixture, example_head.query())
    many = simulate_growing_prompts(first, mixture, example_head.query(), [100], 150_000, key=jr.key(11))
    ratios = 100 * (many.at_longest - theory.limit) ** 2 / theory.variance
    away = ratios.mean() - 1 - theory.correction / 100
    assert abs(away) < comparison_quantile(1) * standard_error(ratios) + 10 * (theory.correction / 100) ** 2
    assert theory.correction / 100 > 5 * standard_error(ratios)


@pytest.mark.parametrize(("correction", "withheld"), [(2.9, False), (-2.9, False), (3.1, True), (-3.1, True)])
def test_the_limit_of_the_fluctuation_is_withheld_at_short_prompts(correction, withheld):
    """From a correction of a tenth on, here at 30 tokens; below, twice the correction is part of the tolerance."""
    theory = InfiniteOutput(0.0, 1.0, 1.0, 2.0, correction)
    outputs = np.random.default_rng(2).normal(scale=30**-0.5, size=(20_000, 1))
    few, many = (PrefixOutputs(np.asarray([30]), drawn) for drawn in (outputs[:4], outputs))
    numbers = one_prompt_converges.numbers(theory, few, many)
    assert [claim.id for claim in numbers.withheld] == (["measures-fluctuation"] if withheld else [])
    if not withheld:
        claim = next(claim for claim in numbers.made if claim.id == "measures-fluctuation")
        expected = comparison_quantile(1) * claim.std_error + 2 * 2.9 / 30
        assert claim.tolerance == pytest.approx(expected, abs=5e-7)  # a claim has six digits


@pytest.mark.parametrize(("taus", "withheld"), [([0.06], True), ([0.06, 1.0], False)])
def test_short_prompts_are_not_claimed_where_they_have_the_error_of_long_ones(float64, taus, withheld):
    lengths = [1, 2, 4]
    simulated = simulate_short_prompts(taus, lengths, 4000, key=jr.key(3))
    numbers = single_token.numbers(simulated, solve_short_prompt_errors(taus, lengths))
    assert [claim.id for claim in numbers.withheld] == (["measures-short-prompts"] if withheld else [])
    assert all(claim.holds and claim.catches_alternative for claim in numbers.made)
