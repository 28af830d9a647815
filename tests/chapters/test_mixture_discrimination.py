"""The chapter on telling two classes apart: gates, landscape, flows and training by independent computations."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize, minimize_scalar

from chapters.mixture_discrimination import flows, gates, landscape, settings, training
from chapters.mixture_discrimination.gated_scores import GatedScore, bayes_score, discriminant_excess, label_tokens
from lib.attention import attend
from lib.flow import gradient_flow

NAME = "mixture_discrimination"
pytestmark = pytest.mark.usefixtures("float64")


def sigmoid(t):
    return 1 / (1 + np.exp(-np.asarray(t, float)))


def test_claims_hold_and_columns_are_filled_where_they_belong(run):
    assert run.claims
    assert run.broken == []
    assert not run.tables["gate_over_the_plane"].frame.isna().to_numpy().any()
    assert not run.tables["training_from_two_starts"].frame.isna().to_numpy().any()
    landscape_table = run.tables["minimisers_and_saddle"].frame
    assert (landscape_table["excess"].isna() == landscape_table["eigenvalue"].notna()).all()
    flow = run.tables["flow_to_minimisers"].frame
    assert flow["distance"].notna().all()
    assert (flow["start"].isna() == (flow["family"] == "invariant")).all()
    for table in run.tables.values():
        assert not np.isinf(table.frame.select_dtypes("number").to_numpy()).any()


def test_posterior_follows_from_densities(run):
    table = run.tables["gate_over_the_plane"].frame
    places = table[["x", "y"]].to_numpy()
    first, second = (np.exp(-((places - mean) ** 2).sum(axis=1) / 2) for mean in ([1, 0], [0, 1]))
    np.testing.assert_allclose(table["posterior"], 0.6 * first / (0.6 * first + 0.4 * second), rtol=1e-5, atol=1e-6)


def test_the_weight_of_a_class_is_that_of_softmax():
    """A head on the labelled mixture has the mean label as output."""
    blocks = gates.head_with_factor(0.7)
    query = jnp.array([0.3, -1.2])
    output = attend(settings.attention(blocks), label_tokens(settings.published_mixture()), jnp.append(query, 0.0))
    np.testing.assert_allclose(gates.weight(blocks, query[None]), (1 + output) / 2, rtol=1e-12)


@pytest.mark.parametrize("head", [settings.head_without_gate, settings.head_with_constant_gate])
def test_published_heads_have_the_bayes_risk(head):
    assert float(settings.excess(head(), settings.published_mixture())) < 1e-25


def test_published_heads_switch_the_gate_off_in_two_ways():
    law = settings.published_mixture()
    without, constant = (settings.score_of(head(), law) for head in flows.FAMILIES.values())
    assert abs(float(without.height)) < 1e-14
    assert float(jnp.linalg.norm(without.gate_slope)) > 0.1
    assert float(jnp.linalg.norm(constant.gate_slope)) < 1e-14
    assert float(constant.height) > 0.1
    # the value printed in the paper's table
    np.testing.assert_allclose(settings.head_with_constant_gate().corner, 1.0273255405, atol=5e-11)


@pytest.mark.parametrize(("height", "gate_slope"), [(2.0, 1.5), (-3.0, 4.0)])
def test_least_excess_at_a_gate_is_that_of_a_search(height, gate_slope):
    """Over w in two dimensions and b, with the expected divergence of the library."""
    law = settings.published_mixture()
    best = bayes_score(law)
    tilt = gate_slope * best.slope / jnp.linalg.norm(best.slope)

    @jax.jit
    def risk(point):
        return jax.value_and_grad(
            lambda point: discriminant_excess(law, GatedScore(point[:2], point[2], height, tilt, best.gate_offset))
        )(point)

    start = np.append(np.asarray(best.slope), float(best.intercept))
    end = minimize(lambda point: tuple(np.asarray(part, float) for part in risk(jnp.asarray(point))), start, jac=True)
    np.testing.assert_allclose(landscape._least_excess(np.array([height]), gate_slope)[0], end.fun, rtol=1e-6)


def test_hessian_is_the_derivative_of_the_gradient():
    flat = ravel_pytree(settings.head_with_constant_gate())[0] + 0.1
    step = 1e-5
    columns = [
        (landscape.slope(flat + step * direction) - landscape.slope(flat - step * direction)) / (2 * step)
        for direction in jnp.eye(flat.size)
    ]
    np.testing.assert_allclose(landscape.hessian(flat), jnp.stack(columns), atol=1e-8)


def test_the_saddle_has_no_value_of_tokens_and_is_above_the_bayes_risk():
    point, changed = landscape.saddle()
    assert np.all(np.asarray(point.row) == 0)
    assert float(jnp.linalg.norm(landscape.slope(ravel_pytree(point)[0]))) < 1e-7
    assert float(jnp.linalg.norm(landscape.slope(ravel_pytree(changed)[0]))) > 1e-3
    assert float(settings.excess(point, settings.published_mixture())) > 1e-3


@pytest.mark.parametrize(
    ("means", "row", "rank"),
    [([[1, 0.5], [-1, 2]], [1, 0.3], 6), ([[1, 0.5], [-1, 2]], [0, 0], 5), ([[1, 0.5], [-1, -0.5]], [1, 0.3], 5)],
)
def test_lemma_3_2_parameters_lose_directions_at_opposite_means_and_where_the_value_ignores_tokens(means, row, rank):
    law = settings.mixture(means, np.eye(2), 0.6)
    blocks = settings.Blocks(jr.normal(jr.key(0), (2, 2)), jnp.array([0.4, 1.0]), jnp.asarray(row, float), jnp.ones(()))
    flat, unravel = ravel_pytree(blocks)

    def parameters(flat):
        score = settings.score_of(unravel(flat), law)
        return jnp.concatenate([score.slope, score.intercept[None], score.height[None], score.gate_slope])

    assert np.linalg.matrix_rank(np.asarray(jax.jacobian(parameters)(flat)), tol=1e-10) == rank


def test_proposition_3_4_excess_times_the_square_of_r_has_the_limit_of_the_second_order_term():
    """`E[η(1 - η)(σ''(s_0)⟨w*, X⟩²/2)²]/2`, from classes whose ⟨w*, X⟩ is normal with mean ±1 and variance 2."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    second = 0.6 * 0.4 * (1 - 1.2)
    limit = 0.0
    for chance, mean in ((0.6, 1.0), (0.4, -1.0)):
        along = mean + np.sqrt(2) * nodes
        eta = sigmoid(along + np.log(1.5))
        limit += 0.5 * chance * weights @ (eta * (1 - eta) * (0.5 * second * along**2) ** 2)
    length = 1e4
    np.testing.assert_allclose(length**2 * landscape._along_the_sequence(length, 0.6), limit, rtol=1e-2)


def test_distances_to_the_families_are_the_least_ones():
    best = bayes_score(settings.published_mixture())
    rng = np.random.default_rng(3)
    score = GatedScore(rng.normal(size=2), 0.3, 1.2, rng.normal(size=2), best.gate_offset)
    point = np.concatenate([score.slope, [score.intercept, score.height], score.gate_slope])

    def to_constant(height):
        chance = sigmoid(best.gate_offset)
        return np.linalg.norm(point - [*best.slope, float(best.intercept) - height * chance, height, 0, 0])

    np.testing.assert_allclose(flows.distance(flows.CONSTANT, score, best), minimize_scalar(to_constant).fun, rtol=1e-8)
    without = np.linalg.norm(point - [*best.slope, float(best.intercept), 0, *score.gate_slope])
    np.testing.assert_allclose(flows.distance(flows.GATELESS, score, best), without, rtol=1e-12)


def test_the_implicit_flow_is_that_of_the_library():
    law = settings.published_mixture()
    start = flows.perturbed(settings.head_with_constant_gate(), 0.1, jr.key(4))
    times = np.array([0.5, 3.0])
    ours = flows.solve_flow(start, times)
    theirs = jax.jit(lambda start: gradient_flow(lambda blocks: settings.excess(blocks, law), start, times).params)(
        start
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_start_is_moved_by_its_size():
    head = settings.head_without_gate()
    moved = flows.perturbed(head, 0.1, jr.key(5))
    np.testing.assert_allclose(jnp.linalg.norm(ravel_pytree(moved)[0] - ravel_pytree(head)[0]), 0.1, rtol=1e-12)


def test_the_inverse_square_of_the_distance_grows_as_the_normal_form_predicts():
    """From a head with s = 0 whose u_12 is moved by 0.005, after the fast directions have settled."""
    head = settings.head_with_constant_gate()
    start = head._replace(column=head.column + 0.005 * jnp.array([0.6, -0.8]))
    times = np.array([1e5, 2e5, 1e7])
    path = flows.solve_flow(start, times)
    best = bayes_score(settings.published_mixture())
    inverse = np.asarray(flows._distances(path, best, flows.CONSTANT)) ** -2.0
    predicted, free = flows.growth_of_inverse_square(jax.tree.map(lambda leaf: leaf[-1], path))
    measured = (inverse[2] - inverse[1]) / (times[2] - times[1])
    # corrections are of the relative order of the distance, at most 0.01, with a constant of at most five
    assert measured == pytest.approx(predicted, rel=0.05)
    assert measured != pytest.approx(free, rel=0.5)


def test_the_curvature_at_the_best_slope_is_that_of_a_simulation(assert_monte_carlo):
    law = flows.invariant_mixture()
    rng, mean, cov = np.random.default_rng(6), flows.INVARIANT_MEAN, np.diag(flows.INVARIANT_COV)
    labels = rng.choice([-1.0, 1.0], size=40_000)
    tokens = labels[:, None] * mean + rng.normal(size=(40_000, 3)) * np.sqrt(cov)
    eta = sigmoid(tokens @ (2 * mean / cov))
    products = (eta * (1 - eta))[:, None] * np.stack(
        [tokens[:, i] * tokens[:, j] for i, j in ((0, 0), (0, 2), (1, 1))], 1
    )
    curvature = flows._curvature(law)
    assert_monte_carlo(products, np.array([curvature[0, 0], curvature[0, 2], curvature[1, 1]]), 3)


def test_steps_are_recorded_from_the_first_to_the_last():
    for steps in (800, 4000, 40_000):
        recorded = training.recorded_steps(steps)
        assert recorded[0] == training.EVERY
        assert recorded[-1] == steps
        assert training.EARLY_STEPS in recorded
        assert not (recorded % training.EVERY).any()
        assert (np.diff(recorded) > 0).all()


def test_a_start_with_a_random_value_only_has_a_score_of_zero():
    law = settings.opposite_mixture()
    every, value = (training.random_start(kind, jr.key(0)) for kind in training.STARTS)
    token = jnp.ones(settings.OPPOSITE_DIMENSION)
    np.testing.assert_allclose(value.row, every.row)
    # b = -⟨v, m⟩ and r = 2⟨v, m⟩: the constant gate one half cancels the intercept
    np.testing.assert_allclose(settings.score_of(value, law)(token), 0.0, atol=1e-14)
    assert abs(float(settings.score_of(every, law)(token))) > 0.1


def test_labels_are_those_of_the_tokens(assert_monte_carlo):
    """The first coordinate of a token has its label as mean; the others have mean zero."""
    tokens, labels = map(np.asarray, training._draw(jr.key(1), 20_000))
    assert set(labels) == {-1.0, 1.0}
    assert_monte_carlo(labels[:, None] * tokens[:, :2], np.array([1.0, 0.0]), 2)


@pytest.mark.parametrize(
    "wrong",
    [{"prompt_length": 10}, {"prompts": 10}, {"flow_starts": 0}, {"training_steps": 810}, {"training_runs": 1}],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
