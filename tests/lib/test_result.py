"""Claims can fail, tables explain themselves, and parameters are checked before anything is computed."""

from typing import Annotated

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pandas as pd
import pytest
from beartype import beartype
from pydantic import Field, ValidationError

from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error

nan = float("nan")


def claim(measured=1.0, relation="=", tolerance=0.1, **changes):
    fields = {
        "id": "slope",
        "statement": "the slope is one",
        "source": "derived here",
        "figure": "line",
        "measured": measured,
        "expected": 1.0,
        "tolerance": tolerance,
        "alternative": Alternative("the slope is two", 2.0),
        "relation": relation,
    }
    return Claim(**{**fields, **changes})


def table(**changes):
    fields = {"frame": pd.DataFrame({"x": [1, 2]}), "columns": {"x": Column("abscissa")}}
    return Table(**{**fields, **changes})


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [
        ("=", 1.0, True),
        ("=", 1.09, True),
        ("=", 0.91, True),
        ("=", 1.11, False),
        ("=", 0.89, False),
        ("≤", -5.0, True),
        ("≤", 1.09, True),
        ("≤", 1.11, False),
        ("≥", 5.0, True),
        ("≥", 0.91, True),
        ("≥", 0.89, False),
    ],
)
def test_a_claim_holds_within_its_tolerance(relation, measured, holds):
    assert claim(measured, relation).holds is holds


@pytest.mark.parametrize("relation", ["=", "≤", "≥"])
def test_nan_never_holds(relation):
    assert not claim(nan, relation).holds
    assert not claim(1.0, relation, tolerance=nan).holds
    assert not claim(1.0, relation, expected=nan).holds


@pytest.mark.parametrize("relation", ["=", "≤"])
def test_a_claim_fails_under_its_alternative(relation):
    assert claim(relation=relation).catches_alternative
    assert not claim(relation=relation, alternative=Alternative("hardly different", 1.05)).catches_alternative


def test_a_claim_keeps_plain_numbers():
    """NumPy and JAX scalars become floats, so that the published json is the number and nothing else."""
    numbers = claim(np.float64(1.0), tolerance=np.float64(0.1))
    assert type(numbers.measured) is float
    assert type(numbers.tolerance) is float


@pytest.mark.parametrize("name", ["id", "statement", "source", "figure"])
def test_a_claim_leaves_nothing_blank(name):
    with pytest.raises(ValueError, match=rf"`Claim\({name}=\.\.\.\)` must not be empty"):
        claim(**{name: "  "})


def test_claim_ids_differ():
    with pytest.raises(ValueError, match=r"ids must differ.*\['slope'\]"):
        Result({"line": table()}, (claim(), claim()))


def test_every_claim_has_a_figure():
    with pytest.raises(ValueError, match=r"names the figure.*\['slope'\].*\['curve'\]"):
        Result({"curve": table()}, (claim(),))


def test_of_takes_one_figure_and_its_claims():
    tables = {"line": table(), "curve": table()}
    result = Result(tables, (claim(), claim(id="bend", figure="curve")), "wave", {"seed": 0})
    part = result.of("curve")
    assert list(part.tables) == ["curve"]
    assert part.tables["curve"] is tables["curve"]
    assert [each.id for each in part.claims] == ["bend"]
    assert (part.experiment, part.parameters) == ("wave", {"seed": 0})
    with pytest.raises(KeyError, match=r"`wave` has no table 'lines'.*'curve', 'line'"):
        result.of("lines")


@pytest.mark.parametrize("columns", [{}, {"y": Column("ordinate")}, {"x": Column("a"), "y": Column("b")}])
def test_every_column_has_a_meaning(columns):
    with pytest.raises(ValueError, match=r"needs a meaning for every column.*Got columns \['x'\]"):
        table(columns=columns)


def test_meanings_stand_in_the_order_of_the_columns():
    frame = pd.DataFrame({"x": [1], "y": [2]})
    with pytest.raises(ValueError, match="in order"):
        table(frame=frame, columns={"y": Column("b"), "x": Column("a")})


def test_a_standard_error_is_a_column_too():
    with pytest.raises(ValueError, match=r"`Column\(std_error=\.\.\.\)` of 'x' must name a column.*'x_error'"):
        table(columns={"x": Column("abscissa", std_error="x_error")})
    frame = pd.DataFrame({"x": [1.0], "x_error": [0.1]})
    table(frame=frame, columns={"x": Column("abscissa", std_error="x_error"), "x_error": Column("its error")})


@pytest.mark.parametrize("comparisons", [1, 7, 100])
def test_comparison_quantile_is_exceeded_as_often_as_it_says(comparisons):
    """At 90 % confidence the worst of N normal errors exceeds it in a tenth of 20,000 trials."""
    worst = np.abs(np.random.default_rng(0).normal(size=(20_000, comparisons))).max(axis=1)
    exceeded = worst[:, None] > comparison_quantile(comparisons, confidence=0.9)
    assert abs(exceeded.mean() - 0.1) < comparison_quantile(3) * standard_error(exceeded)


def test_comparison_quantile_is_textbook_for_one_comparison():
    assert comparison_quantile(1) == pytest.approx(3.290526731, abs=1e-8)
    assert comparison_quantile(1, confidence=0.95) == pytest.approx(1.959963985, abs=1e-8)


def test_standard_error_is_the_spread_of_the_mean():
    samples = np.random.default_rng(1).normal(scale=3.0, size=(4000, 25))
    np.testing.assert_allclose(standard_error(samples, axis=1), 3.0 / 5, rtol=0.8)
    np.testing.assert_allclose(standard_error(samples), 3.0 / np.sqrt(4000), rtol=0.1)
    assert samples.mean(axis=1).std() == pytest.approx(standard_error(samples, axis=1).mean(), rel=0.05)


calls = []


@experiment
def wave(
    *,
    seed: Annotated[int, Field(ge=0, description="root of all keys")],
    lengths: Annotated[list[int], Field(min_length=1, description="tokens")],
    step: Annotated[float, Field(gt=0, le=1, description="of the flow")],
) -> Result:
    """A toy that records in which precision it ran."""
    calls.append(seed)
    frame = pd.DataFrame({"bytes": [jnp.ones(1).dtype.itemsize] * len(lengths)})
    return Result({"line": Table(frame, {"bytes": Column("of one number")})}, (claim(),))


good = {"seed": 1, "lengths": [16, 64], "step": 1e-3}


@pytest.mark.parametrize("outside", [False, True])
def test_an_experiment_computes_in_float64_and_restores_what_was(outside):
    with jax.enable_x64(outside):
        result = wave(**good)
        assert jax.config.jax_enable_x64 is outside
        assert jnp.ones(1).dtype.itemsize == (8 if outside else 4)
    assert (result.tables["line"].frame["bytes"] == 8).all()


def test_an_experiment_restores_precision_when_it_fails():
    @experiment
    def breaks(*, seed: int) -> Result:
        raise ArithmeticError(seed)

    with jax.enable_x64(False):
        with pytest.raises(ArithmeticError):
            breaks(seed=1)
        assert jnp.ones(1).dtype == jnp.float32


def test_an_experiment_names_itself_and_its_parameters():
    result = wave(**good)
    assert (result.experiment, result.parameters) == ("wave", good)
    assert wave.__name__ == "wave"
    assert set(wave.parameters_model.model_fields) == set(good)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"sed": 1}, "sed"),
        ({"seed": True}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"seed": 1.0}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
        ({"lengths": []}, "lengths"),
        ({"lengths": [16, "64"]}, "lengths"),
        ({"lengths": [16, True]}, "lengths"),
        ({"lengths": 16}, "lengths"),
        ({"step": 0.0}, "step"),
        ({"step": 1.5}, "step"),
        ({"step": nan}, "step"),
        ({"step": float("inf")}, "step"),
        ({"step": "1e-3"}, "step"),
    ],
    ids=str,
)
def test_an_experiment_refuses_what_its_signature_does_not_say(change, names):
    calls.clear()
    with pytest.raises(ValidationError, match=names):
        wave(**{**good, **change})
    assert not calls


@pytest.mark.parametrize("missing", good)
def test_an_experiment_has_no_default_of_its_own(missing):
    calls.clear()
    with pytest.raises(ValidationError, match=rf"{missing}\n.*required"):
        wave(**{name: value for name, value in good.items() if name != missing})
    assert not calls


def test_an_experiment_takes_a_whole_number_for_a_real_one():
    assert wave(**{**good, "step": 1}).parameters["step"] == 1.0


def test_an_experiment_can_be_type_checked():
    """Tests wrap every function of `lib` this way; the signature must still be seen through it."""
    checked = experiment(jaxtyping.jaxtyped(typechecker=beartype)(wave.__wrapped__))
    assert checked(**good).parameters == good
    with pytest.raises(ValidationError):
        checked(**{**good, "seed": True})
