"""The chapter on finite prompts: its parts, and what its tables must obey whatever was claimed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import chi

from chapters.icl_finite import ball_search, descents, valley_search
from chapters.icl_finite.exact_flows import INFINITE, Flow, Isotropic, IsotropicProblem
from chapters.icl_finite.figures import trajectory_gap
from chapters.icl_finite.isotropic_risk import QueryLengths
from chapters.icl_finite.parameters import SHORTEST
from lib.attention import Attention
from lib.icl import Blocks, LinearRegression, PairAverage, QueryAverage, ScoreTable, block_risk, valley_limit
from lib.icl.averages import _on_rays
from lib.statistics import comparison_quantile, worst_deviation

NAME = "icl_finite"


def test_the_longest_prompt_is_the_infinite_one(float64):
    problem = IsotropicProblem.of_dimension(3, 0.5)
    params = Isotropic(jnp.asarray(0.9), jnp.asarray(1.3))
    exact = problem.task.infinite_risk(Blocks.isotropic(3, *params).head())
    np.testing.assert_allclose(jax.jit(problem.risk)(params, ScoreTable.at(INFINITE)), exact, rtol=1e-10)


def test_a_risk_between_two_times_is_on_the_line_between_their_logarithms():
    flow = Flow(2.0, np.asarray([1.0, 4.0]), np.zeros(2), np.zeros(2), np.asarray([8.0, 2.0]))
    assert flow.risk_at(2.0) == pytest.approx(4.0)
    assert flow.risk_at(4.0) == pytest.approx(2.0)


def test_a_head_of_the_valley_has_its_best_gain(float64):
    """On short prompts its risk is the least over gains; on long ones it is `valley_limit`.

    The risk of long prompts is 10²⁴ times smaller than that of the output 0.
    """
    task, queries, u = LinearRegression(np.eye(3)), QueryAverage.radial(3), 0.4

    def risk(log_length):
        lengths = QueryLengths.of_dimension(3)
        return np.exp(float(valley_search._log_risks(np.log(u), ScoreTable.at(log_length), lengths)[0]))

    short = jax.jit(lambda gain: block_risk(task, Blocks(u * jnp.eye(3), gain), ScoreTable.at(np.log(30)), queries))
    found = minimize_scalar(lambda gain: float(short(gain)), bracket=(0.1, 1 / u))
    assert abs(found.x * u - 1) > 0.1
    assert risk(np.log(30)) == pytest.approx(found.fun, rel=1e-12)
    assert 2 * risk(55.0) * np.exp(55.0) == pytest.approx(valley_limit(u**2, 3), rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"every": 30}, "every"),
        ({"lengths": [64, 64]}, "at least 2 different"),
        ({"log_lengths": [17.0, 20.0, 20.0]}, "at least 3 different"),
        ({"lengths": [512, 4096], "horizon": 1000.0}, "no flow ends"),
        ({"log_lengths": [10.0, 13.0, 17.0]}, "a value from 19 to 21"),
        ({"start_log_lengths": [6.0, 10.0]}, "must reach 13"),
        ({"all_log_lengths": [3.0, 20.0, 320.0]}, "three values from 20 on"),
        ({"steps": 10**6}, "followed from"),
        ({"step": 1e-4}, "followed from"),
    ],
)
def test_what_would_fail_after_the_computation_is_refused_before(run_cells, changed, rule):
    with pytest.raises(ValueError, match=rule):
        run_cells(NAME, **changed)


def test_the_search_over_a_ball_finds_what_a_grid_does(float64):
    """Block heads on the line: two numbers, so the supremum can be looked up."""
    scores = ScoreTable.at(5.0)
    angles = np.linspace(0, np.pi, 400)
    points = 2.0 * np.stack([np.cos(angles), 0 * angles, 0 * angles, np.sin(angles)], axis=1)
    gaps = jax.jit(jax.vmap(ball_search._line_gap, (0, None)))(jnp.asarray(points), scores)
    found = {row.family: row.gap for row in ball_search.solve_largest_gaps([2.0], [5.0], [5.0]) if row.rule == "2"}
    # rank one on one axis of the plane is a head on the line, with one more silent coordinate
    assert found["block heads, d = 2"] == pytest.approx(float(np.max(np.abs(gaps))), rel=0.1)
    assert found["all heads, d = 1"] > float(np.max(np.abs(gaps)))


def test_the_gap_in_the_plane_is_a_difference_of_risks(float64):
    """The risks are the average over queries on other rays and the risk on infinite prompts."""
    angles = np.pi * np.arange(200) / 200
    queries = _on_rays(np.stack([np.cos(angles), np.sin(angles)], axis=1), 60)
    task, scores = LinearRegression(np.eye(2)), ScoreTable.at(4.0)

    @jax.jit
    def difference(blocks):
        return block_risk(task, blocks, scores, queries) - task.infinite_risk(blocks.head())

    for point in np.random.default_rng(0).uniform(-0.7, 0.7, (3, 5)):
        gap = difference(Blocks(point[:4].reshape(2, 2), point[4]))
        assert float(jax.jit(ball_search._plane_gap)(jnp.asarray(point), scores)) == pytest.approx(float(gap), rel=1e-8)


def test_the_gap_on_the_line_is_that_of_any_head(float64):
    """The head has weights a, c of covariate and label in the scores and v, b in the values."""
    task, scores, average = LinearRegression(np.eye(1)), ScoreTable.at(4.0), PairAverage.line(48)
    difference = jax.jit(lambda head: task.risk_gap(head, scores, average))
    for a, c, v, b in np.random.default_rng(0).uniform(-0.7, 0.7, (3, 4)):
        gap = difference(Attention(np.asarray([[a, 0.0], [c, 0.0]]), np.asarray([[v, b]])))
        found = jax.jit(ball_search._line_gap)(jnp.asarray([a, c, v, b]), scores)
        assert float(found) == pytest.approx(float(gap), rel=1e-10)


def test_longer_prompts_cost_less_risk(run):
    frame = run.tables["final_risk"].frame
    for _, curve in frame[frame["kind"].isin(["trained", "infinite limit"])].groupby(["kind", "dimension"]):
        assert (np.diff(curve["risk"]) < 0).all()


def test_training_to_the_end_is_never_worse_than_the_infinite_limit(run):
    frame = run.tables["final_risk"].frame
    risks = frame.pivot(index=["dimension", "log_length"], columns="kind", values="risk")
    assert (risks["trained"] < risks["infinite limit"]).all()


def test_one_long_prompt_costs_what_the_closed_form_says(run):
    """Σ = I: `2 R L → min_s d (1-2s)^(-d/2) (1/(1-2s) + 1/s)`, by search."""
    frame = run.tables["final_risk"].frame
    longest = frame[(frame["kind"] == "trained") & (frame["log_length"] == frame["log_length"].max())]
    s = np.linspace(1e-4, 0.49, 200_001)
    for d, log_length, risk in zip(longest["dimension"], longest["log_length"], longest["risk"], strict=True):
        expected = np.min(d * (1 - 2 * s) ** (-d / 2) * (1 / (1 - 2 * s) + 1 / s))
        assert 2 * risk * np.exp(log_length) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("size", "dimension", "log_length"), [(0.5, 1, 8.0), (0.9, 3, 10.0), (1.4, 10, 17.0)])
def test_the_queries_beyond_the_law_of_long_prompts_are_counted(size, dimension, log_length):
    """The fraction of E τ² e^{τ²} beyond τ² = ½ ln L, by integration over the length of the query."""

    def part(low):
        log_density, share = chi(dimension).logpdf, size**2 / dimension
        return quad(lambda r: share * r**2 * np.exp(share * r**2 + log_density(r)), low, 40, limit=400)[0]

    edge = np.sqrt(log_length / 2 * dimension) / size
    assert trajectory_gap.beyond(size, dimension, log_length) == pytest.approx(part(edge) / part(0.0), rel=1e-6)


def test_no_law_of_long_prompts_where_its_mean_is_infinite():
    assert trajectory_gap.beyond(1.0, 1, 20.0) == 1.0


@pytest.mark.daily
@pytest.mark.parametrize(("dimension", "withheld"), [(1, True), (5, False)])
def test_the_slope_of_the_gap_is_claimed_only_where_queries_are_short(run_cells, dimension, withheld):
    """In one dimension the slope at time 0.5 is not yet -1: -0.92 at these lengths."""
    run = run_cells(NAME, only="trajectory_gap", dimension=dimension)
    assert ("icl-finite-gap" in run.withheld) is withheld
    assert run.broken == []


def test_noise_moves_the_mean_of_descents_by_no_more_than_its_bound(float64):
    """48 seeds with eight prompts per step: the bias is visible, and within the bound."""
    plan = descents.Plan(0.015, 200, 20, 48, 8 * 64 * 48)
    problem = IsotropicProblem.of_dimension(5, 0.5)
    (run,) = descents.train_descents(problem, [("collapsed", 64)], plan, key=jax.random.key(1234))
    deviation = worst_deviation(run.gain - run.exact.gain)
    quantile = comparison_quantile(run.exact.gain.size, samples=48)
    assert quantile < deviation < quantile + descents.noise_bias(plan, 64, 5)


@pytest.mark.daily
def test_descents_that_have_hardly_begun_decide_nothing(run_cells):
    """From a tiny start all descents are still near zero at the end, with prompts of any length."""
    run = run_cells(NAME, only="finite_training", alpha=0.0035)
    assert set(run.withheld) == {"icl-finite-training", "icl-finite-gain"}


@pytest.mark.daily
@pytest.mark.parametrize(("dimension", "withheld"), [(3, set()), (8, {"icl-finite-gain"})])
def test_the_bias_of_noisy_steps_grows_with_the_number_of_entries(run_cells, dimension, withheld):
    run = run_cells(NAME, only="finite_training", dimension=dimension)
    assert run.broken == []
    assert set(run.withheld) == withheld


@pytest.mark.daily
def test_flows_on_the_shortest_prompts_end(run_cells):
    for figure in ("trajectory_gap", "final_risk"):
        run = run_cells(NAME, only=figure, dimension=1, lengths=[SHORTEST, 512])
        assert run.broken == []


def test_prompts_without_an_end_are_refused(run_cells):
    with pytest.raises(ValueError, match="lengths"):
        run_cells(NAME, lengths=[2, 512])
