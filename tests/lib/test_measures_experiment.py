"""The opening chapter: the same for other seeds, and its exact numbers are exact."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest

from lib.attention import attend
from lib.experiments.measures import (
    asked,
    bound_constants,
    head,
    laws,
    log_tilted_density,
    measures,
    prefix_outputs,
)
from lib.finite_prompt import score_error
from lib.measures import Empirical


@pytest.fixture(scope="module")
def smoke(smoke_parameters):
    return smoke_parameters("measures")


@pytest.fixture(scope="module")
def result(smoke):
    return measures(**smoke)


@pytest.fixture(scope="module")
def claims(result):
    return {claim.id: claim for claim in result.claims}


def test_a_fluctuation_ten_percent_off_would_be_noticed(claims):
    claim = claims["measures-fluctuation"]
    assert not claim.accepts(claim.measured * 1.1)
    assert not claim.accepts(claim.measured / 1.1)


@pytest.mark.parametrize("seed", [1, 2])
def test_claims_hold_for_other_seeds(smoke, seed):
    claims = measures(**{**smoke, "seed": seed}).claims
    assert [claim.id for claim in claims if not (claim.holds and claim.catches_alternative)] == []


def test_the_same_seed_gives_the_same_numbers(smoke, result):
    again = measures(**smoke)
    for name, table in result.tables.items():
        pd.testing.assert_frame_equal(table.frame, again.tables[name].frame, check_exact=True)
    assert again.claims == result.claims


def test_lengths_without_a_single_token_are_refused(smoke):
    with pytest.raises(ValueError, match="needs the length 1"):
        measures(**{**smoke, "short_lengths": [2, 4, 8]})


def test_prefix_outputs_are_attention_on_prefixes(float64, assert_exact):
    points = laws()["mixture"].sample(50, key=jr.key(3))
    lengths = np.asarray([1, 2, 17, 50])
    outputs = prefix_outputs(head(), points, asked(), lengths)
    assert_exact(outputs, [attend(head(), Empirical(points[:length]), jnp.asarray(asked())) for length in lengths])


@pytest.mark.parametrize("name", ["Gaussian", "mixture"])
def test_the_tilted_density_has_mass_one(float64, name):
    side = np.linspace(-12, 12, 481)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mass = np.exp(log_tilted_density(laws()[name], points)).sum() * (side[1] - side[0]) ** 2
    np.testing.assert_allclose(mass, 1, rtol=1e-10)


def test_the_bound_drawn_bounds_from_two_tokens_on(float64):
    lengths = [1, 2, 4, 8, 64, 512]
    errors = np.asarray(score_error(1.0, np.log(lengths)))
    constant, power = bound_constants(lengths, errors)
    bound = constant * np.log(lengths) / np.asarray(lengths) ** power
    assert (bound[1:] >= errors[1:] * (1 - 1e-12)).all()
    assert np.isclose(bound[1:] / errors[1:], 1).any()
    assert bound[0] == 0
