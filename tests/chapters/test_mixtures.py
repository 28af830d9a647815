"""The chapter on Gaussian mixtures: gates, landscape, flows, denoisers and trainings by independent computations."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit

from chapters.mixtures import (
    best_denoisers,
    classifier_training,
    finite_prompts,
    flows,
    gates,
    iterated_denoiser,
    labelled_heads,
    landscape,
    settings,
)
from chapters.mixtures.denoisers import add_noise, denoised, denoising_excess, head_outputs, residual_denoise
from chapters.mixtures.gated_scores import GatedScore, bayes_score, discriminant_excess, label_tokens
from lib.attention import Attention, attend
from lib.flow import gradient_flow

NAME = "mixtures"
pytestmark = pytest.mark.usefixtures("float64")


def test_claims_hold_and_cells_are_filled_where_they_belong(run):
    """A start has a number if it is random, and a size if it is near a minimiser; only the smaller head has a limit.

    The short training of the smoke profile decides nothing.
    """
    assert run.claims
    assert run.broken == []
    assert set(run.withheld) == {"mixture-denoising-training"}
    partly = {"merging_components": ["start"], "flow_to_minimisers": ["size"], "denoising_from_a_prompt": ["limit"]}
    for name, table in run.tables.items():
        filled = table.frame.drop(columns=partly.get(name, []))
        assert not filled.isna().to_numpy().any(), name
        assert not np.isinf(filled.select_dtypes("number").to_numpy()).any(), name
    iterates = run.tables["merging_components"].frame
    assert (iterates["start"].isna() == (iterates["kind"] == "distance")).all()
    flow = run.tables["flow_to_minimisers"].frame
    assert (flow["size"].isna() == (flow["family"] == "invariant")).all()
    prompts = run.tables["denoising_from_a_prompt"].frame
    assert (prompts["limit"].isna() == (prompts["size"] == 1)).all()


def test_posterior_follows_from_densities(run):
    table = run.tables["gate_over_the_plane"].frame
    places = table[["x", "y"]].to_numpy()
    first, second = (np.exp(-((places - mean) ** 2).sum(axis=1) / 2) for mean in ([1, 0], [0, 1]))
    np.testing.assert_allclose(table["posterior"], 0.6 * first / (0.6 * first + 0.4 * second), rtol=1e-5, atol=1e-6)


def test_the_weight_of_a_class_is_that_of_softmax():
    """A head on the labelled mixture has the mean label as output."""
    blocks = gates.head_with_factor(0.7)
    query = jnp.array([0.3, -1.2])
    output = attend(
        labelled_heads.attention(blocks), label_tokens(settings.published_classes()), jnp.append(query, 0.0)
    )
    np.testing.assert_allclose(gates.weight(blocks, query[None]), (1 + output) / 2, rtol=1e-12)


@pytest.mark.parametrize("head", [labelled_heads.head_without_gate, labelled_heads.head_with_constant_gate])
def test_published_heads_have_the_bayes_risk(head):
    assert float(labelled_heads.excess(head(), settings.published_classes())) < 1e-25


def test_published_heads_switch_the_gate_off_in_two_ways():
    law = settings.published_classes()
    without, constant = (labelled_heads.score_of(head(), law) for head in flows.FAMILIES.values())
    assert abs(float(without.height)) < 1e-14
    assert float(jnp.linalg.norm(without.gate_slope)) > 0.1
    assert float(jnp.linalg.norm(constant.gate_slope)) < 1e-14
    assert float(constant.height) > 0.1
    # the value printed in the paper's table
    np.testing.assert_allclose(labelled_heads.head_with_constant_gate().corner, 1.0273255405, atol=5e-11)


@pytest.mark.parametrize(("height", "gate_slope"), [(2.0, 1.5), (-3.0, 4.0)])
def test_least_excess_at_a_gate_is_that_of_a_search(height, gate_slope):
    """Over w in two dimensions and b, with the expected divergence of the library."""
    law = settings.published_classes()
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


def test_derivatives_of_the_risk_are_those_of_jax():
    law = settings.published_classes()
    flat, unravel = ravel_pytree(labelled_heads.head_with_constant_gate())
    flat = flat + 0.1
    slope = jax.jit(jax.grad(lambda flat: labelled_heads.excess(unravel(flat), law)))
    np.testing.assert_allclose(landscape.slope(flat), slope(flat), atol=1e-14)
    np.testing.assert_allclose(landscape.hessian(flat), jax.jacfwd(slope)(flat), atol=1e-13)


@pytest.mark.parametrize("dimension", [2, 3])
def test_derivatives_of_the_score_are_those_of_jax(dimension):
    law = landscape._random_law(dimension, jr.key(1))
    blocks = landscape._random_minimiser("constant gate", law, jr.key(2))
    tokens = jr.normal(jr.key(3), (20, dimension))
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, blocks))
    score = lambda flat: jax.vmap(labelled_heads.score_of(unravel(flat), law))(tokens)  # noqa: E731
    values, slopes = landscape.scores_and_slopes(blocks, law, tokens)
    np.testing.assert_allclose(values, score(flat), atol=1e-12)
    np.testing.assert_allclose(slopes, jax.jacfwd(score)(flat), atol=1e-12)


def test_the_saddle_has_no_value_of_tokens_and_is_above_the_bayes_risk():
    point, changed = landscape.saddle()
    assert np.all(np.asarray(point.row) == 0)
    assert float(jnp.linalg.norm(landscape.slope(ravel_pytree(point)[0]))) < 1e-7
    assert float(jnp.linalg.norm(landscape.slope(ravel_pytree(changed)[0]))) > 1e-3
    assert float(labelled_heads.excess(point, settings.published_classes())) > 1e-3


@pytest.mark.parametrize(
    ("means", "row", "rank"),
    [([[1, 0.5], [-1, 2]], [1, 0.3], 6), ([[1, 0.5], [-1, 2]], [0, 0], 5), ([[1, 0.5], [-1, -0.5]], [1, 0.3], 5)],
)
def test_lemma_3_2_parameters_lose_directions_at_opposite_means_and_where_the_value_ignores_tokens(means, row, rank):
    law = settings.classes(means, 1.0)
    blocks = labelled_heads.Blocks(
        jr.normal(jr.key(0), (2, 2)), jnp.array([0.4, 1.0]), jnp.asarray(row, float), jnp.ones(())
    )
    flat, unravel = ravel_pytree(blocks)

    def parameters(flat):
        score = labelled_heads.score_of(unravel(flat), law)
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
        eta = expit(along + np.log(1.5))
        limit += 0.5 * chance * weights @ (eta * (1 - eta) * (0.5 * second * along**2) ** 2)
    length, law = 1e4, settings.published_classes()
    np.testing.assert_allclose(length**2 * landscape._along_the_sequence(length, law), limit, rtol=1e-2)


def test_distances_to_the_families_are_the_least_ones():
    best = bayes_score(settings.published_classes())
    rng = np.random.default_rng(3)
    score = GatedScore(rng.normal(size=2), 0.3, 1.2, rng.normal(size=2), best.gate_offset)
    point = np.concatenate([score.slope, [score.intercept, score.height], score.gate_slope])

    def to_constant(height):
        chance = expit(best.gate_offset)
        return np.linalg.norm(point - [*best.slope, float(best.intercept) - height * chance, height, 0, 0])

    np.testing.assert_allclose(flows.distance(flows.CONSTANT, score, best), minimize_scalar(to_constant).fun, rtol=1e-8)
    without = np.linalg.norm(point - [*best.slope, float(best.intercept), 0, *score.gate_slope])
    np.testing.assert_allclose(flows.distance(flows.GATELESS, score, best), without, rtol=1e-12)


def test_the_implicit_flow_is_that_of_the_library():
    law = settings.published_classes()
    start = flows.perturbed(labelled_heads.head_with_constant_gate(), 0.1, jr.key(4))
    times = np.array([0.5, 3.0])
    ours = flows.solve_flow(start, times)
    theirs = jax.jit(
        lambda start: gradient_flow(lambda blocks: labelled_heads.excess(blocks, law), start, times).params
    )(start)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_start_is_moved_by_its_size():
    head = labelled_heads.head_without_gate()
    moved = flows.perturbed(head, 0.1, jr.key(5))
    np.testing.assert_allclose(jnp.linalg.norm(ravel_pytree(moved)[0] - ravel_pytree(head)[0]), 0.1, rtol=1e-12)


def test_the_inverse_square_of_the_distance_grows_as_the_normal_form_predicts():
    """From a head with s = 0 whose u_12 is moved by 0.005, after the fast directions have settled."""
    head = labelled_heads.head_with_constant_gate()
    start = head._replace(column=head.column + 0.005 * jnp.array([0.6, -0.8]))
    times = np.array([1e5, 2e5, 1e7])
    path = flows.solve_flow(start, times)
    best = bayes_score(settings.published_classes())
    inverse = np.asarray(flows._distances(path, best, flows.CONSTANT)) ** -2.0
    predicted, free = flows.growth_of_inverse_square(jax.tree.map(lambda leaf: leaf[-1], path))
    measured = (inverse[2] - inverse[1]) / (times[2] - times[1])
    # corrections are of the relative order of the distance, at most 0.01, with a constant of at most five
    assert measured == pytest.approx(predicted, rel=0.05)
    assert measured != pytest.approx(free, rel=0.5)


def test_the_curvature_at_the_best_slope_is_that_of_a_simulation(assert_monte_carlo):
    law = flows.invariant_classes()
    rng, mean, cov = np.random.default_rng(6), flows.INVARIANT_MEAN, np.diag(flows.INVARIANT_COV)
    labels = rng.choice([-1.0, 1.0], size=40_000)
    tokens = labels[:, None] * mean + rng.normal(size=(40_000, 3)) * np.sqrt(cov)
    eta = expit(tokens @ (2 * mean / cov))
    products = (eta * (1 - eta))[:, None] * np.stack(
        [tokens[:, i] * tokens[:, j] for i, j in ((0, 0), (0, 2), (1, 1))], 1
    )
    curvature = flows._curvature(law)
    assert_monte_carlo(products, np.array([curvature[0, 0], curvature[0, 2], curvature[1, 1]]), 3)


def test_steps_are_recorded_from_the_first_to_the_last():
    for steps in (800, 4000, 40_000):
        recorded = classifier_training.recorded_steps(steps)
        assert recorded[0] == classifier_training.EVERY
        assert recorded[-1] == steps
        assert classifier_training.EARLY_STEPS in recorded
        assert not (recorded % classifier_training.EVERY).any()
        assert (np.diff(recorded) > 0).all()


def test_a_start_with_a_random_value_only_has_a_score_of_zero():
    law = settings.opposite_classes()
    every, value = (classifier_training.random_start(kind, jr.key(0)) for kind in classifier_training.STARTS)
    token = jnp.ones(settings.OPPOSITE_DIMENSION)
    np.testing.assert_allclose(value.row, every.row)
    # b = -⟨v, m⟩ and r = 2⟨v, m⟩: the constant gate one half cancels the intercept
    np.testing.assert_allclose(labelled_heads.score_of(value, law)(token), 0.0, atol=1e-14)
    assert abs(float(labelled_heads.score_of(every, law)(token))) > 0.1


def test_labels_are_those_of_the_tokens(assert_monte_carlo):
    """The first coordinate of a token has its label as mean; the others have mean zero."""
    tokens, labels = map(np.asarray, classifier_training._draw(jr.key(1), 20_000))
    assert set(labels) == {-1.0, 1.0}
    assert_monte_carlo(labels[:, None] * tokens[:, :2], np.array([1.0, 0.0]), 2)


# --- denoising --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.7, 0.0)])
def test_products_of_matrices_are_attention_and_the_posterior_mean(weights):
    """For means of different norms, too."""
    law = settings.mixture([[1.0, 2.0], [-0.5, 0.3]], 0.64, weights)
    rng = np.random.default_rng(4)
    head, queries = Attention(rng.normal(size=(2, 2)), rng.normal(size=(2, 2))), rng.normal(size=(5, 2))
    noisy = add_noise(law, 1.5)
    outputs, means = head_outputs(head, noisy, jnp.asarray(queries)), denoised(law, 1.5, jnp.asarray(queries))
    probabilities = np.exp(weights) / np.exp(weights).sum()
    for query, output, mean in zip(queries, outputs, means, strict=True):
        np.testing.assert_allclose(output, attend(head, noisy, jnp.asarray(query)), rtol=1e-11)
        expected = posterior_mean(np.asarray(law.components.mean), probabilities, 0.64, 2.25, query)
        np.testing.assert_allclose(mean, expected, rtol=1e-11)


def posterior_mean(means, weights, token_variance, noise_variance, query):
    """Return `E[X | Z = query]` of two components with isotropic covariances, by Bayes' rule."""
    total = token_variance + noise_variance
    densities = [
        weight * np.exp(-((query - mean) ** 2).sum() / (2 * total)) for weight, mean in zip(weights, means, strict=True)
    ]
    share = token_variance / total
    centres = [mean + share * (query - mean) for mean in means]
    return np.average(centres, axis=0, weights=densities)


def test_excess_of_linear_attention_is_that_of_a_simulation(run, assert_monte_carlo):
    """`E‖A Z - f*(Z)‖²` with the best matrix A = C (C + ξ² I)⁻¹, C = E X Xᵀ."""
    table = run.tables["heads_needed"].frame
    row = table[np.isclose(table["noise_std"], 2.0)].iloc[0]
    rng, means = np.random.default_rng(7), 3 * np.eye(2)
    component = rng.integers(2, size=40_000)
    tokens = means[component] + rng.normal(size=(len(component), 2))
    noisy = tokens + 2.0 * rng.normal(size=tokens.shape)
    second = means.T @ means / 2 + np.eye(2)
    denoised = noisy @ np.linalg.inv(second + 4 * np.eye(2)) @ second
    best = np.array([posterior_mean(means, [0.5, 0.5], 1.0, 4.0, z) for z in noisy])
    squares = ((denoised - best) ** 2).sum(axis=1)[:, None]
    assert_monte_carlo(squares, np.array([row["linear"] * row["bayes_risk"]]), 1)


def test_the_best_head_is_no_better_than_two_and_no_worse_than_linear_attention(run):
    table = run.tables["heads_needed"].frame
    assert (table["two_heads"] <= table["one_head"] + 1e-12).all()
    assert (table["one_head"] < table["linear"]).all()


def test_noise_levels_are_symmetric_and_contain_the_published_one():
    levels = best_denoisers.noise_levels([1.5])
    np.testing.assert_allclose(levels, [1 / 1.5, 1.0, 1.5, 2.0])


def test_the_best_single_head_depends_neither_on_random_starts_nor_on_the_grid(monkeypatch):
    """To the digits that `heads_needed` publishes, down to a third of the standard deviation of the tokens."""
    ratios = [1.5, 3.0]
    levels = best_denoisers.solve_noise_levels(ratios, key=jr.key(1))
    monkeypatch.setattr(best_denoisers, "FINE", (640, 32))
    finer = best_denoisers.solve_noise_levels(ratios, key=jr.key(2))
    expected = [level.one_head for level in finer]
    np.testing.assert_allclose([level.one_head for level in levels], expected, rtol=1e-6, atol=1e-20)


def test_the_excess_of_a_search_is_that_of_the_library():
    noise_std, law = 0.5, settings.published_tokens()
    excess, head = best_denoisers._search()(noise_std, jr.key(1), None)
    bilinear, value = jnp.asarray(head).reshape(2, 2, 2)
    noisy = add_noise(law, noise_std)
    theirs = denoising_excess(lambda z: attend(Attention(bilinear, value), noisy, z), law, noise_std, nodes=512)
    np.testing.assert_allclose(excess, theirs, rtol=1e-6)


@pytest.mark.parametrize("separation", [0.7, 1.3, 2.0])
def test_iterates_follow_the_hyperbolic_tangent(separation):
    """One step leads to the line of the means; then u becomes tanh(λ² u)."""
    ends = iterated_denoiser.simulate_ends([separation], key=jr.key(3))
    early = ends[ends["steps"] == 3].set_index("start")["position"]
    late = ends[ends["steps"] == 10].set_index("start")["position"]
    expected = early.to_numpy()
    for _ in range(7):
        expected = np.tanh(separation**2 * expected)
    np.testing.assert_allclose(late, expected, atol=1e-12)


def test_the_root_is_that_of_a_root_finder():
    root = iterated_denoiser.simulate_ends([1.4], key=jr.key(0))["root"].iloc[0]
    assert root == pytest.approx(brentq(lambda u: u - np.tanh(1.4**2 * u), 0.1, 1.0), rel=1e-12)


def test_the_residual_layer_denoises_every_task():
    """Its output on the infinite prompt is the posterior mean, by Bayes' rule."""
    head = finite_prompts.head_of_size(1.0)
    for seed in range(5):
        task = finite_prompts.draw_task(jr.key(seed))
        weights = np.exp(np.asarray(task.log_weights))
        query = np.asarray(jr.normal(jr.key(seed + 100), (2,))) * 3
        output = residual_denoise(head, add_noise(task, 2.0), jnp.asarray(query))
        expected = posterior_mean(np.asarray(task.components.mean), weights, 1.0, 4.0, query)
        np.testing.assert_allclose(output, expected, rtol=1e-10)


def test_the_exponent_of_a_power_law_is_found():
    lengths = [100, 400, 1600]
    factors = np.random.default_rng(0).exponential(size=(500, 1))
    slope, std_error = finite_prompts.exponent(pd.DataFrame(factors / np.sqrt(lengths), columns=lengths))
    assert slope == pytest.approx(-0.5)
    assert std_error < 1e-12


def test_published_means_have_one_norm():
    np.testing.assert_allclose(np.linalg.norm(settings.published_tokens().components.mean, axis=1), 3.0)
    assert settings.mixture(np.eye(2), 1.0).components.cov.shape == (2, 2, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gate_length": 10},
        {"gate_prompts": 10},
        {"flow_starts": 0},
        {"classifier_steps": 810},
        {"classifier_runs": 1},
        {"noise_ratios": [1.0]},
        {"separations": [1.0]},
        {"prompt_lengths": [100, 200]},
        {"tasks": 10},
        {"denoiser_runs": 1},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
