"""The two minima and the pass between them, checked by other methods than those that found it; changed trainings."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
import scipy.integrate

from chapters.published_experiment import every_run, runs
from chapters.published_experiment.head_points import ALIGNED_ENTRIES, SWAPPED_ENTRIES, points_of
from chapters.published_experiment.protocol import LAWS, POOLS, WIDTH, SeparateWeights, published_head, published_task
from chapters.second_minima import published_runs, saddle_search
from chapters.second_minima.changed_trainings import (
    CHANGES,
    CONTROL,
    PARTS,
    STARTS,
    as_drawn,
    balanced,
    balanced_scale,
    frame_of,
    heads_loss,
    label_entry,
    read_ends,
    train_and_judge,
)
from chapters.second_minima.descents import Paths
from chapters.second_minima.landscape import (
    alignment,
    copies,
    distance,
    head_at,
    least_curvature,
    linear_square,
    settle,
    square_and_slope,
)
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.stationary_heads import (
    ELSEWHERE,
    OPTIMUM,
    SECOND,
    SWAPPED,
    StationaryHead,
    StationaryHeads,
    classify_ends,
    find_heads_of,
)
from lib.attention import Attention
from lib.statistics import comparison_quantile

NAME = "second_minima"
pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def ways(float64):
    return saddle_search.read_ways()


@pytest.fixture(scope="module")
def linear_places(float64):
    return find_heads_of("linear", published_runs.CORRECTED)


@pytest.fixture(scope="module")
def linear_hessian(float64):
    """Return the Hessian of the mean square of linear attention, by automatic differentiation."""
    return jax.jit(jax.hessian(square_of("linear")))


def square_of(activation):
    """Return the mean square as a function of a point, by the program that also gives the slope."""
    return lambda point: square_and_slope(activation, published_runs.CORRECTED, point)[0]


@pytest.mark.parametrize("wrong", [{"starts": 4}, {"softmax_starts": 2}, {"seed": -1}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


# --- tracked tables ------------------------------------------------------------------------------------------


def test_extracts_equal_the_tables_of_the_published_experiment():
    """Every run on prompts of this length is extracted, with all digits."""
    long = runs.read_long_runs() | runs.read_runs_from_other_starts()
    expected = {run: path for run, path in long.items() if run[1] == SECOND_LENGTH}
    extracted = published_runs.read_paths()
    assert list(extracted) == list(expected)
    for run, path in expected.items():
        np.testing.assert_array_equal(extracted[run].steps, path.steps)
        np.testing.assert_array_equal(extracted[run].risks, path.risks)
    ends = every_run.read_every_run()["ends"].query("law == 'corrected' and length == @SECOND_LENGTH")
    columns = ["activation", "start", "risk"]
    pd.testing.assert_frame_equal(published_runs.read_ends(), ends[columns].reset_index(drop=True), check_exact=True)


# --- heads as points, their symmetries and curvatures --------------------------------------------------------


def test_the_least_curvature_is_that_of_the_hessian():
    """For linear attention, by automatic differentiation; the direction (U, v) ↦ (cU, v/c) is flat at a minimum."""
    task, (rows, d) = published_task(), (6, 5)
    point = settle("linear", np.random.default_rng(3).normal(size=rows * d + rows))

    def risk(point):
        bilinear = jnp.zeros((rows, rows)).at[:, :d].set(point[:-rows].reshape(rows, d))
        return linear_square(task, Attention(bilinear, point[None, -rows:]))

    slope, hessian = jax.jit(jax.grad(risk))(point), jax.jit(jax.hessian(risk))(point)
    assert np.abs(slope).max() < 1e-6
    scaling = np.concatenate([point[:-rows], -point[-rows:]])
    np.testing.assert_allclose(hessian @ scaling, 0.0, atol=1e-5)
    rest = np.linalg.svd(scaling[None])[2][1:]
    assert least_curvature("linear", point) == pytest.approx(np.linalg.eigvalsh(rest @ hessian @ rest.T)[0], rel=1e-4)


def test_alignment_is_a_cosine_with_the_first_principal_axis():
    axis = np.linalg.eigh(0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))))[1][:, -1]
    across = np.array([1.0, 0.0, 0.0, 0.0, -1.0]) / np.sqrt(2)  # the axis is even
    point = np.concatenate([np.ones(25), -2 * axis, axis + across, [7.0]])
    assert alignment(point) == pytest.approx(np.sqrt(0.5))
    assert alignment(point, axis=1) == pytest.approx(0.0, abs=1e-12)


def test_points_and_heads_convert_into_each_other(assert_exact):
    """Only the last column of U is lost, on which no output depends."""
    rng = np.random.default_rng(4)
    heads = jax.vmap(jax.vmap(Attention))(rng.normal(size=(3, 2, 6, 6)), rng.normal(size=(3, 2, 1, 6)))
    points = points_of(heads)
    assert points.shape == (3, 2, 36)
    back = jax.vmap(jax.vmap(head_at))(points)
    assert_exact(back.bilinear[..., :-1], heads.bilinear[..., :-1])
    assert_exact(back.bilinear[..., -1], np.zeros((3, 2, 6)))
    assert_exact(back.value, heads.value)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("activation", POOLS)
def test_copies_of_a_head_have_the_same_risk(activation, law, assert_exact):
    """The box `two-families`; descent never leaves a family."""
    rng = np.random.default_rng(6)
    alike = copies(activation, 0.4 * rng.normal(size=36))
    squares = np.array([square_and_slope(activation, law, point)[0] for point in alike])
    assert_exact(squares, np.full(4, squares[0]))
    for family, other in ((ALIGNED_ENTRIES, SWAPPED_ENTRIES), (SWAPPED_ENTRIES, ALIGNED_ENTRIES)):
        point = np.zeros(36)
        point[family] = 0.4 * rng.normal(size=len(family))
        slope = np.asarray(square_and_slope(activation, law, point)[1])
        assert np.abs(slope[other]).max() < 1e-9 < np.abs(slope[family]).max()


def test_the_distance_between_copies_of_a_head_is_zero():
    point = np.random.default_rng(7).normal(size=36)
    mirrored = point * np.where(np.isin(np.arange(36), SWAPPED_ENTRIES), -1.0, 1.0)
    scaled = point * np.where(np.arange(36) < 30, -2.0, -0.5)
    assert distance("softmax", mirrored, point) == pytest.approx(0.0, abs=1e-12)
    assert distance("softmax", scaled, point) > 1
    assert distance("linear", scaled, mirrored) == pytest.approx(0.0, abs=1e-12)


def test_ends_are_classified_by_mean_square_and_distance():
    """Four ends: at the optimum, at its level but far away, near it but above its level, at the swapped head."""
    points = np.eye(3, 36)
    places = StationaryHeads(
        "softmax", *(StationaryHead(point, square) for point, square in zip(points, (0.5, 0.9, 0.7), strict=True))
    )
    assert list(places.named) == [OPTIMUM, SWAPPED, SECOND]
    assert places.reach == pytest.approx(np.sqrt(0.5))
    last = np.stack([points[0], 3 * points[0], points[0], 1.1 * points[1]])
    heads = np.stack([last[::-1], last], axis=1)
    risks = np.array([[0.91, 0.51], [0.6, 0.51], [0.51, 0.6], [0.51, 0.91]])
    found = classify_ends(Paths(np.zeros((4, 2)), risks, heads), places)
    assert found == [OPTIMUM, ELSEWHERE, ELSEWHERE, SWAPPED]


# --- the pass ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", POOLS)
def test_the_pass_is_stationary(activation, ways):
    """Differences of mean squares vanish in every entry, unlike half-way up, where the steepest entry is tried."""
    square, way = square_of(activation), ways[activation]
    moves = 1e-4 * np.eye(WIDTH * WIDTH)

    def slope(point, moves):
        return np.array([(square(point + move) - square(point - move)) / 2e-4 for move in moves])

    assert np.abs(slope(way.points[way.top], moves)).max() < 1e-6
    half = way.points[way.top // 2]
    steepest = np.argmax(np.abs(square_and_slope(activation, published_runs.CORRECTED, half)[1]))
    assert np.abs(slope(half, moves[[steepest]])).max() > 1e-4


def test_the_linear_pass_has_one_way_down(ways, linear_hessian):
    """One curvature is negative, and one vanishes, along (U, v) ↦ (cU, v/c)."""
    values = np.linalg.eigvalsh(linear_hessian(ways["linear"].points[ways["linear"].top]))
    assert values[0] < -0.01
    assert abs(values[1]) < 1e-6
    assert values[2] > 1e-3


def test_the_flow_leaves_the_linear_pass_for_either_minimum(ways, linear_places, linear_hessian):
    """The gradient flow from points near the pass on both sides, by SciPy's integrator of stiff equations."""
    slope, saddle = jax.jit(jax.grad(square_of("linear"))), ways["linear"].points[ways["linear"].top]
    axis = np.linalg.eigh(linear_hessian(saddle))[1][:, 0]
    found = []
    for side in (1, -1):
        flow = scipy.integrate.solve_ivp(
            lambda time, point: -np.asarray(slope(point)),
            (0, 3000),
            saddle + side * 1e-3 * axis,
            method="BDF",
            jac=lambda time, point: -np.asarray(linear_hessian(point)),
        )
        end = flow.y[:, -1]
        near = {name: distance("linear", end, place.point) for name, place in linear_places.named.items()}
        found.append(min(near, key=near.__getitem__))
        assert min(near.values()) < 1e-3
    assert sorted(found) == [OPTIMUM, SECOND]


@pytest.mark.parametrize("activation", POOLS)
def test_a_way_rises_to_its_pass_and_falls_from_it(activation, ways):
    """Tracked mean squares and those of a coarser average rise and fall; the straight line is higher."""
    way, square = ways[activation], square_of(activation)
    for squares in (way.squares, np.array([square(point) for point in way.points[::6]])):
        top = int(np.argmax(squares))
        assert np.all(np.diff(squares[: top + 1]) > -1e-4)
        assert np.all(np.diff(squares[top:]) < 1e-4)
    assert np.argmax(way.squares) == pytest.approx(way.top, abs=1)
    assert way.straight.max() > way.height
    np.testing.assert_allclose(way.along, np.append(0, np.cumsum(np.linalg.norm(np.diff(way.points, axis=0), axis=1))))


def test_a_search_finds_the_linear_pass_again(ways, linear_places):
    """Both first searches; the saddle towards the far copy of the optimum is the best swapped head."""
    tracked = saddle_search.read_searches().query("activation == 'linear'").reset_index(drop=True)
    for number, named in enumerate(("pass", "best swapped head")):
        row, saddle = saddle_search.search("linear", linear_places, number)
        assert row["square"] == pytest.approx(tracked["square"][number], rel=1e-5)
        assert row["negative"] == tracked["negative"][number] == 1
        point = ways["linear"].points[ways["linear"].top] if named == "pass" else linear_places.swapped.point
        squares = [float(square_of("linear")(each)) for each in (saddle, point)]
        assert squares[0] == pytest.approx(squares[1], rel=1e-9)


def test_no_search_found_a_lower_pass(ways):
    """Every search ended at a saddle not below the pass, up to the lack of symmetry of the average."""
    for activation, found in saddle_search.read_searches().groupby("activation"):
        square = square_of(activation)(ways[activation].points[ways[activation].top])
        assert found["square"].min() == pytest.approx(float(square), rel=1e-5)
        assert found["slope"].max() < 1e-6


def test_stationary_heads_of_linear_attention_have_equal_norms(linear_places):
    """Otherwise rounding would decide their curvatures, by where along (cU, v/c) a search ends."""
    for place in linear_places.named.values():
        head = head_at(place.point)
        np.testing.assert_allclose(np.linalg.norm(head.bilinear), np.linalg.norm(head.value), rtol=1e-12)


def test_both_sides_of_the_swapped_head_are_copies_of_each_other(linear_places, linear_hessian):
    """This head is its own copy and its soft direction is not, so that heads on one side have copies on the other."""
    swapped = linear_places.swapped.point
    axis = np.linalg.eigh(linear_hessian(swapped))[1][:, 0]
    assert np.abs(axis[SWAPPED_ENTRIES]).max() < 1e-6 < np.abs(swapped[SWAPPED_ENTRIES]).max()
    one, other = (copies("softmax", swapped + sign * 0.1 * axis) for sign in (1, -1))
    assert np.min(np.linalg.norm(one - other[0], axis=1)) < 1e-5


# --- trainings with one change ---------------------------------------------------------------------------


def test_the_table_has_every_change_and_start():
    table = read_ends()
    counts = table.groupby(["change", "activation"], sort=False).size()
    assert list(counts.index) == PARTS
    assert set(counts) == {STARTS}
    several = table["change"].map(lambda name: CHANGES[name].heads > 1)
    assert list(several) == list(table["risk_std_error"].notna()) == list(table["wrong_way"].isna())


@pytest.mark.parametrize("name", [CONTROL, "batch 4"])
def test_a_training_ends_as_it_would_today(name):
    """Linear attention from the first start; on other machines up to rounding in single precision."""
    found = frame_of([(name, "linear")], train_and_judge(CHANGES[name], "linear", starts=[0])[None])
    tracked = read_ends().query("change == @name and activation == 'linear' and start == 0")
    assert found["risk"].item() == pytest.approx(tracked["risk"].item(), rel=1e-3)


def test_changed_starts_have_their_properties(assert_exact):
    """The balanced start is [BB26, Eq. 9]; a label entry gets its size, and the rest of the head stays."""
    weights, key = SeparateWeights.draw(WIDTH, key=jr.key(1), dtype=float), jr.key(2)
    drawn = published_head(weights)
    assert as_drawn(weights, key) is weights
    head = published_head(balanced(weights, key))
    block, theta = head.bilinear[:-1, :-1], jr.normal(key, (WIDTH - 1, WIDTH - 1))
    assert_exact(block, balanced_scale() * theta @ theta.T / jnp.linalg.norm(theta @ theta.T))
    assert_exact(head.value, jnp.zeros((1, WIDTH)).at[0, -1].set(jnp.linalg.norm(block)))
    assert np.all(head.bilinear[-1] == 0)
    assert np.all(head.bilinear[:, -1] == 0)
    head = published_head(label_entry(2.0)(weights, key))
    assert_exact(head.value[0, -1], 2.0 * jnp.sign(drawn.value[0, -1]))
    assert_exact(head.value[0, :-1], drawn.value[0, :-1])
    assert_exact(head.bilinear, drawn.bilinear)


@pytest.mark.parametrize("activation", POOLS)
def test_several_heads_have_the_sum_of_their_outputs(activation, assert_exact):
    """Two heads with half the output each equal one head, which has the mean square of the exact formula."""
    weights = SeparateWeights.draw(WIDTH, key=jr.key(3), dtype=float)
    halves = SeparateWeights(weights.query, weights.key, weights.value, weights.output / 2)
    stack = {1: [weights], 2: [halves, halves]}
    stacked = {n: jax.tree.map(lambda *leaves: jnp.stack(leaves), *heads) for n, heads in stack.items()}
    loss = jax.jit(heads_loss(published_task(), SECOND_LENGTH, batch=1 << 10, pool=POOLS[activation]))
    assert_exact(loss(stacked[1], jr.key(0)), loss(stacked[2], jr.key(0)))
    means = np.array([loss(stacked[1], jr.key(i)) for i in range(50)])
    exact = float(square_of(activation)(points_of(published_head(weights))))
    assert abs(means.mean() - exact) < comparison_quantile(1) * means.std() / np.sqrt(len(means))
