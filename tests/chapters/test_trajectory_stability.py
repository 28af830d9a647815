"""Trajectories: the programs agree with `attend` and its derivatives, and no result depends on batches."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
import scipy.special

from chapters.trajectory_stability import balanced_flows, checkpoints, envelope, exponents, task_scales, trajectories
from chapters.trajectory_stability.parameters import with_signs
from chapters.trajectory_stability.prediction_tasks import episode_loss
from chapters.trajectory_stability.problems import CONTROL, keys_by_task, problems
from chapters.trajectory_stability.programs import TOGETHER, as_flat, as_head, read_prompts
from chapters.trajectory_stability.tasks import tasks
from companion.authoring.tasks import FOLDER
from companion.figures import store
from lib.measures import Empirical

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")

NAME = "trajectory_stability"
PROJECT = Path(__file__).parents[2]
LENGTHS = (4, 8, 16, 32)
TASK = "signs"
PROMPTS = 64


@dataclass(frozen=True)
class Study:
    """The notebook's steps for one task, each computed when a test first needs it."""

    plan: trajectories.TrainingPlan
    seed: int = 0

    @property
    def start(self):
        return as_flat(self.course.problem.start)

    @cached_property
    def course(self):
        return trajectories.Course.draw(problems()[TASK], self.plan, key=keys_by_task(self.seed, "episodes")[TASK])

    @cached_property
    def infinite(self):
        return trajectories.train_infinite_path(self.course, self.plan)

    @cached_property
    def finite(self):
        keys = keys_by_task(self.seed, "training")
        return trajectories.train_finite_paths({TASK: self.course}, self.plan, keys=keys)[TASK]

    @cached_property
    def squared_gaps(self):
        return self.squared_gaps_on(self.infinite)

    def squared_gaps_on(self, path):
        """Return the squared gaps of this study's prompts at the checkpoints of a path."""
        courses, paths, of_tasks = {TASK: self.course}, {TASK: path}, keys_by_task(self.seed, "checkpoints")
        errors = checkpoints.simulate_gradient_errors(courses, paths, self.plan, PROMPTS, keys=of_tasks)
        return errors[TASK].squared_gaps


@pytest.fixture(scope="module")
def study(float64):
    return Study(trajectories.TrainingPlan(LENGTHS, 8, 8, 0.02, 3, 12))


def infinite_risk(study):
    def risk(flat):
        def one(episode):
            return episode_loss(as_head(flat), episode.measure, study.course.problem.task, episode)

        return jnp.mean(jax.vmap(one)(study.course.episodes))

    return risk


def test_heads_convert_into_their_entries_and_back():
    flat = np.arange(12.0)
    np.testing.assert_array_equal(as_flat(as_head(jnp.asarray(flat))), flat)


def test_each_head_reads_its_prefix_of_the_prompt(study, assert_exact):
    """Head j reads length j: loss and gradient agree with `episode_loss` on the first tokens."""
    task, episodes = study.course.problem.task, study.course.episodes
    heads = np.stack([study.start * scale for scale in (1.0, 0.8, 1.2, 0.5)])
    tokens = study.course.programs.tokens(episodes, jr.split(jr.key(1), 8))
    values, slopes = read_prompts(task.loss, LENGTHS, heads, tokens, (episodes.query, episodes.target))
    episode = jax.tree.map(lambda leaf: leaf[2], episodes)
    for j, length in enumerate(LENGTHS):
        prompt = Empirical(tokens[2, :length])
        value, slope = jax.value_and_grad(
            lambda flat, prompt=prompt: episode_loss(as_head(flat), prompt, task, episode)
        )(jnp.asarray(heads[j]))
        assert_exact(values[2, j], value)
        assert_exact(slopes[2, j], slope)


@pytest.mark.parametrize("many", [1, TOGETHER, TOGETHER + 3])
def test_infinite_prompts_are_read_by_any_number_of_heads(study, assert_exact, many):
    rng = np.random.default_rng(2)
    heads = study.start + 0.1 * rng.normal(size=(many, 12))
    values, slopes = study.course.programs.read_laws(heads, study.course.episodes)
    value, slope = jax.jit(jax.value_and_grad(infinite_risk(study)))(jnp.asarray(heads[-1]))
    assert (len(values), len(slopes)) == (many, many)
    assert_exact(values[-1].mean(), value)
    assert_exact(slopes[-1].mean(axis=0), slope)


def test_the_infinite_path_descends_with_the_curvature_of_the_hessian(study):
    path = study.infinite
    np.testing.assert_allclose(path.heads[1:], path.heads[:-1] - 0.02 * path.slopes[:-1], rtol=1e-12)
    assert np.all(np.diff(path.risks) < 0)
    hessian = jax.jit(jax.vmap(jax.hessian(infinite_risk(study))))(jnp.asarray(path.heads))
    largest = np.linalg.norm(np.asarray(hessian), ord=2, axis=(1, 2)).max()
    assert envelope.curvature(study.course, path.heads) == pytest.approx(largest, rel=1e-5)


def test_every_episode_has_a_key_of_its_own(study, assert_exact):
    """It is the key of the course, folded with the number of the episode."""
    task, key = study.course.problem.task, keys_by_task(study.seed, "episodes")[TASK]
    alone = [task.draw(key=jr.fold_in(key, i)) for i in range(study.plan.episodes)]
    assert_exact(study.course.episodes.query, np.stack([episode.query for episode in alone]))
    assert len(np.unique(study.course.episodes.query, axis=0)) > 1


@pytest.mark.parametrize(("run", "step"), [(0, 3), (2, 8)])
def test_every_prompt_of_a_step_has_a_key_of_its_own(study, assert_exact, run, step):
    """It is the key of training, folded with run, step and number of the episode; lengths share the first tokens."""
    course, key = study.course, jr.fold_in(jr.fold_in(keys_by_task(study.seed, "training")[TASK], run), step)
    tokens = course.programs.tokens(course.episodes, jnp.stack([jr.fold_in(key, i) for i in range(8)]))
    assert len(np.unique(tokens, axis=0)) == 8
    asked = course.episodes.query, course.episodes.target
    risks, slopes = read_prompts(course.problem.task.loss, LENGTHS, study.finite.heads[run, step], tokens, asked)
    assert_exact(study.finite.risks[run, step], np.mean(risks, axis=0))
    assert_exact(study.finite.slopes[run, step], np.mean(slopes, axis=0))


def test_the_noise_of_prompts_is_that_of_the_worst_time(study):
    """It is the maximum over times, and times differ."""
    times = range(study.finite.heads.shape[1])
    each = [
        envelope.prompt_noise(
            study.course, replace(study.finite, heads=study.finite.heads[:, [t]], slopes=study.finite.slopes[:, [t]])
        )
        for t in times
    ]
    np.testing.assert_allclose(envelope.prompt_noise(study.course, study.finite), np.max(each, axis=0), rtol=1e-9)
    assert (np.ptp(each, axis=0) > 0).all()


def test_the_region_of_the_envelope_contains_both_paths_and_heads_between_them(study):
    """At the start all three heads are equal; at the end the far one is that of a run, and the middle one half-way."""
    centres, middles, far = np.split(envelope.region(study.infinite, study.finite), 3)
    np.testing.assert_array_equal(centres[0], far[0])
    np.testing.assert_allclose(middles, (centres + far) / 2)
    gaps = trajectories.parameter_gaps(study.infinite, study.finite)[:, -1]
    assert np.linalg.norm(far[-1] - centres[-1]) == pytest.approx(gaps.max())


def test_fixed_times_are_in_units_of_the_curvature_and_never_the_first_step():
    times = 0.1 * np.arange(1, 11)
    these = envelope.Envelope(times, (4,), np.ones((3, 10, 1)), times, np.ones(1), 4.0)
    assert [these.step_at(unit) for unit in (0.1, 1.0, 2.0, 4.0, 9.0)] == [1, 2, 4, 9, 9]


def test_the_mean_over_normal_tasks_is_a_bessel_function(assert_exact):
    """d = 2: `E e^{-l/(1+r)}`, r exponential of mean 2, is `e^{1/2} z K_1(z)` at z = √(2l), up to e^{-l}."""
    log_lengths = np.array([100.0, 1000.0])
    roots = np.sqrt(2 * log_lengths)
    known = np.exp(0.5) * roots * scipy.special.k1(roots) * log_lengths**task_scales.LOGARITHMS
    assert_exact(task_scales.mean_bound(log_lengths, task_scales.NORMAL), known)


def test_student_tasks_have_covariance_one():
    """E ‖w‖² = d, by the quadrature of the bound."""
    squares = np.exp(task_scales._NODES)
    mean = np.trapezoid(np.exp(task_scales.student_tasks(5)(squares) + 2 * task_scales._NODES), task_scales._NODES)
    assert mean == pytest.approx(2.0, rel=1e-6)


def test_the_balanced_start_is_balanced_and_the_tilt_is_the_operator_norm():
    head = balanced_flows.start(jr.key(0))
    assert float(jnp.linalg.norm(head.matrix)) == pytest.approx(float(head.gain))
    assert balanced_flows.squared_tilt(np.eye(3)) == pytest.approx(balanced_flows.VARIANCES.max() ** 2)


def test_finite_paths_share_the_start_and_follow_their_own_gradients(study):
    paths = study.finite
    np.testing.assert_array_equal(trajectories.parameter_gaps(study.infinite, paths)[:, 0], 0.0)
    np.testing.assert_allclose(paths.heads[:, 1:], paths.heads[:, :-1] - 0.02 * paths.slopes[:, :-1], rtol=1e-12)
    assert len(np.unique(paths.risks)) == paths.risks.size, "every run, step and length reads different prompts"


def test_errors_of_the_gradient_do_not_depend_on_batches(study, assert_exact):
    other = Study(replace(study.plan, episodes=16))
    assert_exact(other.squared_gaps_on(study.infinite), study.squared_gaps)


@pytest.mark.parametrize("lengths_per_group", [1, 3])
def test_no_result_depends_on_the_groups_of_lengths(study, assert_exact, lengths_per_group):
    """Every task has a different name, made from its run and its first length."""
    other = Study(replace(study.plan, lengths_per_group=lengths_per_group))
    listed = trajectories.training_tasks(TASK, lambda: other.course, other.plan, key=jr.key(0))
    assert len(listed) == 3 * -(-4 // lengths_per_group)
    assert_exact(other.finite.heads, study.finite.heads)
    assert_exact(other.finite.risks, study.finite.risks)
    assert_exact(other.squared_gaps_on(study.infinite), study.squared_gaps)


def listed_tasks(**changed):
    return tasks(
        **{"seed": 0, "tasks": [TASK], "lengths": list(LENGTHS), "episodes": 8, "steps": 8, "step_size": 0.02},
        **{"runs": 3, "prompts": PROMPTS, "lengths_per_group": 12, **changed},
    )


def test_results_of_tasks_are_read_from_their_folder(study, tmp_path, monkeypatch):
    """One task was computed by another process, and its result is used; the others are computed."""
    name = f"{TASK}-checkpoints-from-{LENGTHS[0]}"
    assert name in listed_tasks()
    np.savez(tmp_path / f"{name}.npz", gaps=np.full((PROMPTS, 3, 4), 7.0))
    monkeypatch.setenv(FOLDER, str(tmp_path))
    other = Study(study.plan)
    np.testing.assert_array_equal(other.squared_gaps_on(study.infinite), 7.0)
    np.testing.assert_array_equal(other.finite.heads, study.finite.heads)


def test_tasks_computed_by_name_are_what_the_notebook_gathers(study):
    """From the parameters alone, with the same bits."""
    listed = listed_tasks()
    run = listed[f"{TASK}-run-1-from-{LENGTHS[0]}"]()
    for part in ("heads", "risks", "slopes"):
        np.testing.assert_array_equal(run[part], getattr(study.finite, part)[1])
    errors = listed[f"{TASK}-checkpoints-from-{LENGTHS[0]}"]()
    np.testing.assert_array_equal(errors["gaps"], study.squared_gaps)


def test_tasks_of_the_chapter_are_named_by_task_run_and_length():
    """Each task has eight: three runs and the checkpoints, for two groups of lengths."""
    listed = listed_tasks(lengths_per_group=2)
    assert [name for name in listed if name.startswith("signs")] == [
        *(f"signs-run-{run}-from-{length}" for run in range(3) for length in (4, 16)),
        *(f"signs-checkpoints-from-{length}" for length in (4, 16)),
    ]
    assert len(listed) == 16, "the control has as many"
    assert all(re.fullmatch(r"[\w-]+", name) for name in listed)


def test_tasks_have_different_keys():
    """Keys differ by purpose and by task, and every task has them, also the control."""
    of_tasks = [keys_by_task(3, simulation) for simulation in ("episodes", "training", "checkpoints")]
    assert all(list(by_task) == list(problems()) and CONTROL in by_task for by_task in of_tasks)
    data = [tuple(jr.key_data(key).tolist()) for by_task in of_tasks for key in by_task.values()]
    assert len(set(data)) == 3 * len(problems())


def test_squared_norms_of_the_start_are_those_of_its_block(study):
    """U = 0.1 I on covariates of covariance I, without labels."""
    norms = checkpoints.solve_squared_norms({TASK: study.course}, {TASK: study.infinite})[TASK]
    assert norms[0] == pytest.approx(0.01)


def test_distances_have_the_error_of_a_root_mean_square(assert_exact):
    """The spread over repeated experiments agrees with the error that each of them reports."""
    rng = np.random.default_rng(8)
    drawn = [
        envelope.Envelope(np.ones(1), (4,), rng.gamma(20.0, 0.1, size=(200, 1, 1)), *np.ones((2, 1)), 1.0)
        for _ in range(300)
    ]
    distances, errors = (np.ravel([getattr(one, name) for one in drawn]) for name in ("distance", "std_error"))
    assert_exact(distances[0], np.sqrt(np.mean(drawn[0].gaps ** 2)))
    np.testing.assert_allclose(errors.mean(), distances.std(), rtol=0.2)


def test_repeated_lengths_are_an_error(run_cells):
    with pytest.raises(ValueError, match="lengths"):
        run_cells(NAME, lengths=[16, 16, 64, 64])


def test_the_task_with_a_risk_curve_is_required(run_cells):
    assert with_signs(["signs", "mixture", "signs"]) == ["signs", "mixture"]
    with pytest.raises(ValueError, match="signs"):
        run_cells(NAME, tasks=["mixture"])


@pytest.mark.parametrize("correction", [np.reciprocal, exponents.one_over_root])
def test_exponents_are_one_whichever_correction_there_is(correction):
    """For errors like 1/L with a correction; with few lengths only the faster correction is fitted."""
    lengths = tuple(2**power for power in range(4, 13))
    means = (1 - 1.5 * correction(np.asarray(lengths, float))) / lengths
    gaps = means * np.random.default_rng(0).exponential(size=(20_000, 3, len(lengths)))
    (rates,) = exponents.solve_rates({TASK: checkpoints.GradientErrors(lengths, gaps)}).values()
    assert all(abs(rate.exponent - 1) < 3.5 * rate.std_error < 0.2 for rate in rates)
    few = exponents.MANY - 1
    (fewer,) = exponents.solve_rates({TASK: checkpoints.GradientErrors(lengths[:few], gaps[..., :few])}).values()
    plain = [exponents.fit_rate(lengths[:few], gaps[:, stop, :few], np.reciprocal) for stop in range(3)]
    assert [rate.exponent for rate in fewer] == [rate.exponent for rate in plain]


def test_a_slower_correction_must_be_fitted():
    """Without it the exponent is wrong by many standard errors, although the fit looks good."""
    lengths = tuple(2**power for power in range(4, 13))
    means = (1 - 1.5 * exponents.one_over_root(np.asarray(lengths, float))) / lengths
    gaps = means * np.random.default_rng(2).exponential(size=(20_000, len(lengths)))
    plain = exponents.fit_rate(lengths, gaps, np.reciprocal)
    assert plain.p_value > 0.1
    assert abs(plain.exponent - 1) > 5 * plain.std_error


def test_the_distance_grows_where_the_tilt_is_large_and_the_risk_forgets_it():
    """The headline of `from_a_balanced_start` on the published table: most growth is at large tilts, at any L."""
    table = pd.read_csv(PROJECT / "figures/trajectory_stability/from_a_balanced_start.csv")
    growth, ends = [], []
    for _, curve in table.groupby("log10_length"):
        large = curve[curve["tilt"] > 0.5]["distance"]
        growth.append(large.iloc[-1] / large.iloc[0])
        ends.append(curve.iloc[-1])
        assert growth[-1] > ends[-1]["distance"] / large.iloc[-1]
    assert growth == sorted(growth)
    assert growth[-1] >= 100
    # the risk falls faster than the square root of the length, the distance does not
    root = 10 ** ((ends[0]["log10_length"] - ends[-1]["log10_length"]) / 2)
    assert ends[-1]["risk"] / ends[0]["risk"] < root < ends[-1]["distance"] / ends[0]["distance"]


def test_the_page_gives_the_measured_exponent_with_the_heuristic_one():
    """A measured number needs the expected one: one paragraph has both, and they belong to one claim."""
    record = store.read_record(PROJECT / "figures/trajectory_stability", "from_a_balanced_start")
    claims = {claim.id: claim for claim in record.claims}
    assert claims["trajectory-stability-passage"].expected == claims["trajectory-stability-passage-rate"].measured
    text = (PROJECT / "book/trajectory_stability.ipynb").read_text(encoding="utf-8")
    both = r"\{claim\}`trajectory-stability-passage`[^\n]*\{claim\}`trajectory-stability-passage-rate`"
    assert re.search(both, text)


def test_what_the_fit_leaves_out_changes_the_exponent_by_no_more_than_claimed():
    """Errors with the next power of the series, and prompts so many that chance changes the exponent less."""
    lengths = np.array([16, 40, 100, 256])
    tokens = 4.0
    chance = 1 + 0.01 * np.random.default_rng(0).normal(size=(4000, 3, 4))
    errors = checkpoints.GradientErrors(tuple(lengths.tolist()), chance * np.exp(2 * (tokens / lengths) ** 2) / lengths)
    for rate, change in zip(exponents.solve_rates({"task": errors})["task"], exponents.left_out(errors), strict=True):
        assert abs(rate.exponent - 1) > 5 * rate.std_error
        assert abs(rate.exponent - 1) < 5 * change


@pytest.mark.daily
@pytest.mark.parametrize(
    ("changed", "withheld"),
    [
        ({"decades": [1, 2]}, {"trajectory-stability-opening"}),
        ({"decades": [8, 9]}, {"trajectory-stability-balanced-risk"}),
        ({"horizon": 500.0}, set()),
    ],
)
def test_flows_from_a_balanced_start_at_other_lengths_and_times(run_cells, changed, withheld):
    run = run_cells(NAME, only="from_a_balanced_start", **changed)
    assert run.broken == []
    assert set(run.withheld) == withheld
