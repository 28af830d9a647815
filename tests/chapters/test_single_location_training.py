"""The chapter on training a single head: what it records, and how it tells what was learned."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from chapters.single_location_training import published_settings
from chapters.single_location_training.descents import (
    COSINE_ROUNDING,
    FAR_TIME,
    FLAT,
    LEARNED,
    SOFT,
    STEEP,
    Descents,
    described,
    draw_starts,
    train_erf,
    train_softmax,
)
from chapters.single_location_training.figures import published_descents
from chapters.single_location_training.figures.seven_overlaps import numbers
from chapters.single_location_training.names import in_sentence
from chapters.single_location_training.off_manifold import start_off, start_on, train_descents
from chapters.single_location_training.parameters import Parameters
from chapters.single_location_training.population_descent import descend_population
from chapters.single_location_training.simulated_risks import simulate_errors, simulate_random_heads, solve_angle_risks
from chapters.single_location_training.sphere_descent import (
    SphereTask,
    descend_on_prompts,
    draw_tokens,
    erf_risk,
    normalise,
    overlaps_on_sphere,
    projected_step,
    random_head,
    tangential_step,
)
from lib.random import named_keys, normal
from lib.single_location import Head, Overlaps, Spiked, softmax
from lib.statistics import comparison_quantile, standard_error

NAME = "single_location_training"


@pytest.mark.parametrize("wrong", [{"erf_step": 0.002}, {"dimension": 50}, {"repeats": 4}, {"seed": True}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_records_divide_the_steps_evenly_whatever_was_asked(float64):
    runs = train_softmax(SphereTask(20, 3, 0.5), draw_starts(20, 2, key=jr.key(1)), 95, 1e-3)
    assert list(runs) == [(SOFT, "on the manifold"), (SOFT, "anywhere")]
    for run in runs.values():
        np.testing.assert_array_equal(run.steps, np.arange(0, 81, 2))
        assert run.risk.shape == run.overlaps.m_k.shape == (2, 41)


def test_both_kinds_of_start_come_from_the_same_keys(float64):
    """A start on the manifold is the start anywhere of the same key, projected: they share their key direction."""
    starts = draw_starts(50, 3, key=jr.key(2))
    on, anywhere = (np.asarray(starts[kind].key)[:, 2:] for kind in ("on the manifold", "anywhere"))
    cosines = np.sum(on * anywhere, axis=1) / np.linalg.norm(on, axis=1) / np.linalg.norm(anywhere, axis=1)
    np.testing.assert_allclose(cosines, 1.0, rtol=1e-12)


def test_a_head_learns_both_directions_or_exchanges_them():
    """Four starts: solved, solved with the common sign turned, exchanged, and only the key found."""
    high, low, ones, none = LEARNED + 0.1, LEARNED - 0.1, np.ones((4, 1)), np.zeros((4, 1))
    m_k, m_v, m_kv, m_vk = (
        np.array(column)[:, None]
        for column in ([high, -high, low, high], [high, -high, 0, low], [0, 0, -high, low], [0, 0, high, 0])
    )
    run = Descents(np.array([0]), none, Overlaps(m_k, ones, m_v, ones, m_kv, m_vk, none), 10.0, 400)
    np.testing.assert_array_equal(run.learned, [True, True, False, False])
    np.testing.assert_array_equal(run.exchanged, [False, False, True, False])


def test_real_prompts_are_the_same_in_batches_of_any_size(float64):
    """More prompts than fit a batch, and the first of them alone."""
    task, head = SphereTask(400, 20, 0.5), random_head(400, key=jr.key(6))
    many, few = (simulate_errors(task, head, n, key=jr.key(7)) for n in (25, 3))
    assert many.shape == (25,)
    np.testing.assert_allclose(many[:3], few, rtol=1e-12)


def test_the_exchanged_value_vector_is_another_head(float64):
    """At some head its prediction is far from that of the head that the prompts meet."""
    test = simulate_random_heads(SphereTask(100, 5, 0.5), 200, key=jr.key(8))
    assert np.abs(np.log(test.flipped / test.predicted)).max() > 0.5


def test_angles_are_those_of_the_median_start(float64):
    """Up to a common sign; an angle below the rounding of its cosine counts as the least one that a cosine resolves."""
    m_k, m_v = np.array([[0.5], [-0.5], [1.0]]), np.array([[1.0], [-1.0], [0.0]])
    none = np.zeros((3, 1))
    run = Descents(np.array([0]), none, Overlaps(m_k, none + 1, m_v, none + 1, none, none, none), 10.0, 400)
    assert run.angles == pytest.approx((60.0, np.degrees(np.arccos(1.0 - COSINE_ROUNDING))))
    assert run.angles[1] < 3e-5


def test_an_angle_of_the_key_costs_less_than_of_the_value(float64):
    """And none of either costs nothing."""
    task = SphereTask(400, 10, 0.5)
    least = solve_angle_risks(task, 0.1, 30.0)
    assert least.none < least.key < least.value
    assert solve_angle_risks(task, 0.1, 0.0).key == pytest.approx(least.none)


def test_starts_are_off_the_manifold_and_on_it(float64):
    """By their overlaps: the same knowledge of the own direction, and all three cross overlaps or none."""
    truth = Head.orthogonal(400, key=jr.key(0))
    off, on = (start(truth, key=jr.key(1)).overlaps(truth) for start in (start_off, start_on))
    np.testing.assert_allclose([on.m_k, on.m_v], 0.2, atol=1e-12)
    np.testing.assert_allclose([on.m_kv, on.m_vk, on.q_vk], 0.0, atol=1e-12)
    np.testing.assert_allclose([off.m_k, off.m_v], 0.2, atol=0.15)
    assert min(abs(float(each)) for each in (off.m_kv, off.m_vk, off.q_vk)) > 0.05


def test_a_descent_in_the_whole_space_steps_against_the_gradient_of_real_prompts(float64):
    """One step agrees with the mean gradient of the squared error on many simulated prompts."""
    task, truth = Spiked(3, 4.0), Head.orthogonal(20, key=jr.key(2))
    start = start_off(truth, key=jr.key(3))
    path = descend_population(task, softmax, start, truth, step_size=0.1, steps=1, every=1)
    moved = np.concatenate([path.head.key[1] - path.head.key[0], path.head.value[1] - path.head.value[0]])

    def slope(key):
        fresh = task.draw(truth, 4000, noise_std=0.0, key=key)
        return jax.grad(lambda head: ((fresh.labels - fresh.outputs(softmax, head)) ** 2).mean())(start)

    slopes = jax.lax.map(slope, jr.split(jr.key(4), 20))
    samples = -0.1 * 20 * np.concatenate([slopes.key, slopes.value], axis=1)
    error = standard_error(samples)
    # fresh_risk is good to 1e-3, and a step is twenty times a tenth of its gradient
    assert np.all(np.abs(samples.mean(axis=0) - moved) < comparison_quantile(moved.size) * error + 5e-3)
    assert np.abs(moved).max() > 20 * error.max()


def test_seven_overlaps_hold_at_other_seeds_and_five_do_not(float64):
    for seed in (1, 2, 3):
        claim, kept = numbers(train_descents(400, 1000, key=named_keys(seed, "walk")["walk"])).claims
        assert claim.holds
        assert claim.catches_alternative
        assert kept.holds


def test_tracked_descents_are_those_of_the_published_settings():
    """Every experiment, run and record."""
    runs = published_settings.read_tracked()
    counts = runs.groupby("experiment", sort=False)["repeat"].agg(["nunique", "size"])
    assert list(counts.index) == list(published_settings.EXPERIMENTS)
    assert set(counts["nunique"]) == {published_settings.REPEATS}
    assert set(counts["size"]) == {published_settings.REPEATS * (published_settings.RECORDS + 1)}
    last = runs.groupby("experiment")["step"].max()
    assert last.to_dict() == {name: experiment.steps for name, experiment in published_settings.EXPERIMENTS.items()}


@pytest.mark.daily
def test_a_recomputed_run_follows_its_tracked_path(float64):
    """Up to the fifth digit of the tracked table, and rounding on another machine; other starts have other paths."""
    computed = published_settings.run(published_settings.ON, [0]).overlaps
    path = np.stack([computed.m_k[0], computed.m_v[0]], axis=1)
    tracked = published_settings.read_tracked().groupby(["experiment", "repeat"])[["m_k", "m_v"]]
    first, second = (tracked.get_group((published_settings.ON, repeat)) for repeat in (0, 1))
    np.testing.assert_allclose(path, first, atol=1e-3)
    assert np.abs(path - second.to_numpy()).max() > 0.1


def test_the_published_schedule_halves_the_sharpness_after_ten_thousand_steps():
    lams = published_settings.EXPERIMENTS[published_settings.FALLING].sharpnesses
    assert lams[[0, 10_000, 30_000]].tolist() == [1.0, 0.5, 0.25]
    assert set(published_settings.EXPERIMENTS[published_settings.FLAT].sharpnesses) == {0.1}


def test_no_run_ends_in_two_ways():
    """What the colours of the picture say of the tracked runs."""
    ends = published_descents.ends_of(published_settings.read_tracked())
    assert len(ends) == published_settings.REPEATS * len(published_settings.EXPERIMENTS)
    found = ends[ends["outcome"] == "found"]
    assert found[["key_angle", "value_angle"]].max().max() < np.degrees(np.arccos(LEARNED))
    assert set(ends.loc[ends["experiment"] == published_settings.SHARP, "outcome"]) == {"neither"}


def test_a_tangential_step_is_a_straight_one_of_another_length(float64):
    """Both stay in the plane of the point and the gradient; they agree where the gradient is tangent."""
    at, slope = (normalise(each) for each in jnp.asarray(normal(jr.key(11), (2, 7))))
    radial = slope @ at
    along = float(0.1 / (1 + 0.1 * radial))  # the straight step's normal part only changes its length
    np.testing.assert_allclose(tangential_step(at, slope, 0.1), projected_step(at, slope, along), rtol=1e-12)
    flat = slope - radial * at
    np.testing.assert_allclose(tangential_step(at, flat, 0.1), projected_step(at, flat, 0.1), rtol=1e-12)


def test_a_step_on_prompts_is_a_step_against_the_risk_on_average(float64):
    """The mean displacement over many draws is along the gradient of the closed form, which is in units of γ²."""
    task, size, lam = SphereTask(6, 3, 0.5), 1e-4, 0.5
    start = random_head(6, key=jr.key(12))

    def one(key):
        how = {"step_size": size, "every": 1, "batch": 64, "noise_std": 0.1, "key": key}
        curve = descend_on_prompts(task, start, jnp.full(1, lam), **how)
        return curve.overlaps.m_k[1] - curve.overlaps.m_k[0], curve.overlaps.m_v[1] - curve.overlaps.m_v[0]

    moved = np.stack(jax.jit(lambda keys: jax.lax.map(one, keys))(jr.split(jr.key(13), 2000)), axis=1) / size
    slope = jax.grad(lambda head: task.variance * erf_risk(task, overlaps_on_sphere(head), jnp.asarray(lam)))(start)
    k, v = (-(each - (each @ at) * at) for each, at in ((slope.key, start.key), (slope.value, start.value)))
    error = standard_error(moved)
    assert np.all(np.abs(moved.mean(axis=0) - [k[0], v[1]]) < comparison_quantile(2) * error + 1e-2)
    assert np.abs([k[0], v[1]]).max() > 10 * error.max()


def test_drawn_tokens_have_the_law_of_the_task(float64):
    task = SphereTask(5, 3, 0.5)
    tokens = np.asarray(draw_tokens(task, 20_000, key=jr.key(14)), float)
    np.testing.assert_allclose(tokens.mean(axis=0)[:, 0], [task.signal, 0, 0], atol=0.05)
    np.testing.assert_allclose(tokens.var(axis=0)[:, 1], [0.5, 1, 1], rtol=0.05)


@pytest.mark.parametrize(
    ("time", "dimension", "turning", "withheld"),
    [
        (6.0, 100, np.inf, False),
        (5.9, 100, np.inf, True),
        (80.0, 100, np.inf, False),
        (81.0, 100, np.inf, True),
        (20.0, 400, FAR_TIME, False),
        (21.0, 400, FAR_TIME, True),
        (6.0, 100, FAR_TIME, True),
    ],
)
def test_the_ends_of_short_and_long_descents_are_not_described(time, dimension, turning, withheld):
    """The reason names the time of the run. The key of a flat erf turns faster in fewer dimensions."""
    none = np.zeros(1)
    runs = {(FLAT, "anywhere"): Descents(none, none, Overlaps(*[none] * 7), time, dimension)}
    ends_described, reason = described(runs, FLAT, per_dimension=turning)
    assert ends_described is not withheld
    if withheld:
        assert f"this training takes {time:g}" in reason


@pytest.mark.parametrize(
    ("changed", "most"),
    [
        ({"dimension": 5000}, {"erf_step": 1.2e-4, "softmax_step": 1.8e-4}),
        ({"length": 50}, {"erf_step": 2.55e-4}),
        ({"length": 40, "variance": 1.0}, {"erf_step": 8.0e-4}),
        ({"variance": 0.1}, {"erf_step": 3.0e-4, "softmax_step": 4.5e-4}),
    ],
)
def test_steps_that_are_too_long_are_refused(smoke_parameters, changed, most):
    """The steps of the default are unstable in 5,000 dimensions, and the erf's also for long prompts."""
    values = smoke_parameters(NAME) | changed
    with pytest.raises(ValueError, match=r"`erf_step` must be at most 0\.000"):
        Parameters(**values)
    Parameters(**values | most)


@pytest.mark.parametrize(("factor", "stable"), [(1.8, True), (2.2, False)])
def test_softmax_ends_at_the_least_risk_only_with_short_steps(float64, factor, stable):
    """With longer steps the overlap of the value and k* grows after the directions are found."""
    task = SphereTask(100, 2, 0.5)
    run = train_softmax(task, draw_starts(100, 4, key=jr.key(3)), 1200, factor * 0.5 / 100)[SOFT, "anywhere"]
    assert bool(run.risk[:, 30:].max() < 0.1) is stable


@pytest.mark.parametrize(("factor", "stable"), [(0.9, True), (1.8, False)])
def test_long_prompts_need_short_steps_of_the_erf(float64, factor, stable):
    """From off the manifold, the risk of the sharp erf falls, or grows beyond what it was at first."""
    task = SphereTask(100, 40, 1.0)
    starts, step = draw_starts(100, 4, key=jr.key(3)), factor * 1.2 / (39 * 38)
    run = train_erf(task, starts, 400, step)[STEEP, "anywhere"]
    assert bool(run.risk[:, 20:].max() < 1.2 * run.risk[:, 0].max()) is stable


def test_names_have_their_sharpness_as_a_formula():
    assert in_sentence("erf, λ = 0.1") == "erf, $λ = 0.1$"
    assert in_sentence("SGD, λ falls from 2") == "SGD, $λ$ falls from 2"
