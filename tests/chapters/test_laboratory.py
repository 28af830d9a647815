"""The laboratory: its tables, the ranges of its pages, and the properties that its headlines state.

The claims `live-plane-read`, `live-needle-read`, `live-pair-read`, `live-valley-read` and `live-cloud-read` compare the
tables with the library between their nodes.
"""

import ast
import re
from pathlib import Path

import jax.random as jr
import numpy as np
import pandas as pd
import pytest

from chapters.laboratory import (
    clouds,
    key_pairs,
    key_plane,
    needle_risks,
    query_plane,
    ranges,
    regression_heads,
    several_risks,
    valley_risks,
)
from chapters.laboratory.clouds import draw_clouds
from chapters.laboratory.figures import live_needle, live_pair, live_valley
from chapters.laboratory.grids import Axis, Grid, rounded
from chapters.laboratory.table_interpolation import share_left
from chapters.laboratory.trials import Trial
from companion.analysis.dependencies import digest
from companion.project.paths import Project
from lib.icl import LinearRegression, best_pair, best_values, heads_risk
from lib.icl.blocks import best_in_the_valley

NAME = "laboratory"
PROJECT = Project(Path(__file__).resolve().parents[2])
SETTINGS = 50


def published(figure: str, *axes: str) -> Grid:
    """The table as the page has it."""
    frame = pd.read_csv(PROJECT.published / NAME / f"{figure}.csv")
    return Grid.of_rows(frame, axes, frame.columns.drop([*axes]))


def test_claims_hold_and_tables_are_finite(run):
    run.assert_sound(
        "live-plane-read", "live-plane-line", "live-needle-read", "live-pair-read", "live-pair-best", "live-valley-read"
    )


def test_a_grid_reads_polynomials_exactly_and_nodes_as_they_are():
    axes = [Axis.between("x", -1.0, 2.0, 5), Axis.between("y", 0.0, 1.0, 4)]
    grid = Grid.of(axes, lambda x, y: {"z": x**4 * y**3 - x * y + 1})
    x, y = np.random.default_rng(1).uniform([[-1.0], [0.0]], [[2.0], [1.0]], (2, 30))
    np.testing.assert_allclose(grid.read("z", x, y), x**4 * y**3 - x * y + 1, atol=2e-4)  # six digits of the nodes
    at = grid.frame.iloc[7]
    assert grid.read("z", np.asarray(at["x"]), np.asarray(at["y"])) == at["z"]
    assert np.abs(Trial(grid, (x, y), {}).read_straight("z", x, y) - grid.read("z", x, y)).max() > 0.1


def test_nodes_have_the_digits_of_the_table():
    nodes = Axis.between("x", 0.0, np.pi, 9).nodes
    np.testing.assert_array_equal(nodes, rounded(nodes))
    assert (np.diff(nodes) > 0).all()


def test_towards_the_dashed_line_the_answer_is_lost_and_short_prompts_lose_it_first():
    """As the headline of the plane says: at every length nearer to the line less is left, and less of a shorter one."""
    grid, ratios = published("live_plane", "tau", "top"), np.linspace(0.3, 1.0, 15)
    left = np.stack([share_left(grid, ratio, query_plane.LARGEST_DECADE) for ratio in ratios])
    assert (np.diff(left, axis=0) < 1e-5).all()  # what six digits of a logarithm leave
    assert (np.diff(left, axis=1) > -1e-5).all()
    assert left[-1].max() < 0.95
    assert (left[0, 2:] > 0.99).all()  # well left of the line linear attention's answer is there, from 1000 tokens on


@pytest.mark.parametrize("view", ["cloud", "pair", "plane", "several", "valley"])
def test_a_picture_that_moves_has_the_headline_of_the_one_that_does_not(view):
    """Except `needle`, whose headline has the numbers of its setting."""
    script = (PROJECT.page_folder(NAME) / "views" / f"{view}.js").read_text(encoding="utf-8")
    says = re.search(r'^  says: "(.+)",$', script, re.MULTILINE)
    drawing = ast.parse(PROJECT.figure_file(NAME, f"live_{view}").read_text(encoding="utf-8"))
    headline = " ".join((ast.get_docstring(drawing) or "").split("\n\n")[0].split())
    for formula, text in {r"$\sqrt{2\ln L}$": "√(2 ln L)", r"$2\ln L$": "2 ln L", "$L$": "L"}.items():
        headline = headline.replace(formula, text)
    assert says
    assert says[1] == headline


def test_one_token_and_the_corners_of_the_plane(float64):
    grid = published("live_plane", "tau", "top")
    taus = np.linspace(0, 15, 31)
    np.testing.assert_allclose(grid.read("log_participation", taus, 0.0 * taus), 0.0, atol=1e-5)
    np.testing.assert_allclose(np.exp(grid.read("log_score_error", taus, 0.0 * taus)), 1 + taus**2, rtol=1e-3)


def test_no_head_is_below_softmax():
    grid = published("live_needle", "scale", "top")
    assert all((grid.columns["softmax"] <= grid.columns[name] + 1e-5).all() for name in live_needle.NAMES)


VALLEY = ("dimension", "log_length", "tilt", "noise")


def valley(grid: Grid, share, *places):
    """Excess risk of the head with bu = share, and of the best linear head, as the page makes them."""
    shrink, spread, linear = (np.exp(grid.read(name, *places)) for name in ("log_shrink", "log_spread", "log_linear"))
    return live_valley._excess(places[0], share, shrink, spread), linear


def test_the_published_valley_is_the_library(float64):
    """Against the risk of one of several heads, by other nodes than the block risk that the table is made of."""
    grid, rng = published("live_valley", *VALLEY), np.random.default_rng(13)
    for dimension, noise, length in ((1, 0.0, 7), (2, 1.0, 60), (2, 0.1, 3000)):
        task, tilt, share = LinearRegression(np.eye(dimension), noise_std=np.sqrt(noise)), *rng.uniform(0.2, 0.9, 2)
        risk = heads_risk(task, np.array([tilt]), np.array([share / tilt]), np.log(length))
        head, linear = valley(grid, share, *map(np.asarray, (float(dimension), np.log(length), tilt, noise)))
        np.testing.assert_allclose(head, risk - noise / 2, rtol=3e-3)
        np.testing.assert_allclose(linear, task.linear_attention_risk(length) - noise / 2, rtol=1e-3)


def test_the_parts_of_the_valley_are_those_of_the_library(float64):
    """As the claim on the table, which is withheld for small tables, and against the risk of one of several heads."""
    rng = np.random.default_rng(14)
    for dimension, noise, length in ((1, 1.0, 40), (5, 0.1, 900)):
        task, tilt, share = LinearRegression(np.eye(dimension), noise_std=np.sqrt(noise)), *rng.uniform(0.2, 0.5, 2)
        places = (np.array([one]) for one in (float(dimension), np.log(length), tilt, noise))
        parts = {name: np.exp(one[0]) for name, one in regression_heads.parts(*places).items()}
        head = live_valley._excess(dimension, share, parts["log_shrink"], parts["log_spread"])
        risk = heads_risk(task, np.array([tilt]), np.array([share / tilt]), np.log(length))
        np.testing.assert_allclose(head, risk - noise / 2, rtol=1e-6)
        np.testing.assert_allclose(parts["log_linear"], task.linear_attention_risk(length) - noise / 2, rtol=1e-9)


@pytest.mark.parametrize("dimension", valley_risks.DIMENSIONS)
def test_the_floor_of_the_valley_has_the_price_of_one_head(dimension):
    grid, tilts = published("live_valley", *VALLEY), np.linspace(0.1, 0.7, 200)
    excess, linear = valley(grid, 1.0, dimension, np.log(1e6), tilts, 0.0)
    np.testing.assert_allclose(np.min(excess / linear), best_in_the_valley(int(dimension)).price, rtol=0.02)


def test_linear_attention_is_never_dearer_than_one_head():
    """As the line above the picture says."""
    columns = published("live_valley", *VALLEY).columns
    shrink, spread, linear = (np.exp(columns[name]) for name in ("log_shrink", "log_spread", "log_linear"))
    d = np.asarray(valley_risks.DIMENSIONS)[:, None, None, None]
    assert (live_valley._excess(d, (2 * d - shrink) / (2 * (d - shrink + spread)), shrink, spread) > linear).all()


PAIR = ("log_length", "size", "product")
# Pairs of keys: any, opposite, small and nearly equal, large and nearly equal, and one key at zero.
PAIRS = ((0.35, -0.1), (-0.5, 0.5), (0.05, 0.051), (-0.58, -0.579), (0.0, 0.45))


def log_ratio(first: float, second: float, log_length: float) -> float:
    """Return the logarithm of the least excess risk over that of debiased gradient descent, by the library."""
    task = key_pairs.task()
    excess = best_values(task, np.asarray([first, second]), log_length)[1] - key_pairs.NOISE / 2
    return float(np.log(2 * excess / key_pairs.descent_excess(log_length)))


def test_risks_of_pairs_are_those_of_the_library(float64):
    """At all lengths from one quadrature, to more digits than the table has; also for keys that nearly coincide."""
    log_lengths = np.log([10.0, 1e4])
    for first, second in PAIRS:
        size, product = key_plane.coordinates(first, second)
        found = key_pairs.log_ratios(size[None], float(product), log_lengths)[0]
        np.testing.assert_allclose(found, [log_ratio(first, second, one) for one in log_lengths], atol=2e-6)


def test_rows_of_the_table_of_pairs_have_the_risks_of_their_keys(run):
    """In a small table, too; the largest product is the last node, at which keys nearly coincide."""
    for row in run.tables["live_pair"].frame.iloc[[7, 33, 49, 74]].itertuples():
        found = key_pairs.log_ratios(np.array([row.size]), row.product, np.array([row.log_length]))
        np.testing.assert_allclose(found, [[row.log_ratio]], rtol=1e-5, atol=1e-9)


def test_the_best_pair_of_ten_tokens_is_the_best_opposite_pair(float64):
    """The least risk of the plane is that of the best opposite pair; `tests/lib/test_many_heads.py` checks its key."""
    log_length = np.log(10.0)
    _, _, risk = best_pair(key_pairs.task(), log_length, 1.149 / np.sqrt(10.0))
    grid, keys = published("live_pair", *PAIR), np.linspace(-0.6, 0.6, 121)
    size, product = key_plane.coordinates(keys[:, None], keys)
    least = np.exp(grid.read("log_ratio", log_length, size, product).min())
    expected = (2 * float(risk) - key_pairs.NOISE) / key_pairs.descent_excess(log_length)
    np.testing.assert_allclose(least, expected, rtol=live_pair.INTERPOLATION)
    assert expected < 1 - 10 * live_pair.INTERPOLATION


def test_coordinates_of_pairs_have_their_symmetries():
    rng = np.random.default_rng(15)
    first, second = rng.uniform(-key_plane.LARGEST_KEY, key_plane.LARGEST_KEY, (2, SETTINGS))
    size, product = key_plane.coordinates(first, second)
    assert (size <= 1).all()
    mean, gap = key_plane.keys_at(size, product)
    np.testing.assert_allclose(mean, np.abs(first + second) / 2, atol=1e-12)
    np.testing.assert_allclose(gap, np.abs(first - second) / 2, atol=1e-12)


def test_the_corners_of_the_square_are_the_largest_sizes():
    sizes, _ = key_plane.coordinates(np.asarray([0.6, 0.6, 0.6, 0.0]), np.asarray([0.6, -0.6, 0.0, 0.0]))
    np.testing.assert_allclose(sizes, [1, 1, 1, 0], atol=1e-12)


def test_clouds_have_the_moments_of_their_gaussian(float64):
    frame = pd.read_csv(PROJECT.published / NAME / "live_cloud.csv")
    for law, cloud in draw_clouds(20000, key=jr.key(3)).items():
        tokens = frame[(frame["law"] == law) & (frame["kind"] == "token")]
        assert len(tokens) == clouds.TOKENS
        np.testing.assert_allclose(tokens[["x", "y"]].to_numpy().mean(axis=0), cloud.gaussian.mean, atol=0.25)
        np.testing.assert_allclose(cloud.tokens.mean(axis=0), cloud.gaussian.mean, atol=0.05)
        np.testing.assert_allclose(np.cov(cloud.tokens.T), cloud.gaussian.cov, atol=0.05)


def test_what_is_not_ours_is_what_its_note_says():
    folder = PROJECT.page_folder(NAME) / "vendor"
    noted = dict(re.findall(r"sha256 (\w{64})  (\S+\.js)", (folder / "README.md").read_text(encoding="utf-8")))
    assert sorted(noted.values()) == sorted(path.name for path in folder.glob("*.js"))
    assert all(digest((folder / name).read_bytes()) == found for found, name in noted.items())


def test_the_table_carries_the_settings_of_the_page():
    """The ranges of the sliders, which the page's scripts repeat, are those of the tables."""
    script = (PROJECT.page_folder(NAME) / "views" / "plane.js").read_text(encoding="utf-8")
    assert f"low: 0, high: {query_plane.LARGEST_TAU:g}," in script
    assert f"low: 0, high: {query_plane.LARGEST_DECADE}," in script
    script = (PROJECT.page_folder(NAME) / "views" / "needle.js").read_text(encoding="utf-8")
    assert float(re.search(r"nu: \{.*?high: (\d+)", script)[1]) <= needle_risks.LARGEST_SNR
    assert f"high: {ranges.LARGEST_NEEDLE_DECADE}," in script
    script = (PROJECT.page_folder(NAME) / "views" / "several.js").read_text(encoding="utf-8")
    assert f"low: 0, high: {ranges.LARGEST_SEVERAL_SNR}," in script
    assert f"stops: {[*several_risks.RELEVANT]}," in script
    script = (PROJECT.page_folder(NAME) / "views" / "pair.js").read_text(encoding="utf-8")
    assert script.count(f"low: {-key_plane.LARGEST_KEY:g}, high: {key_plane.LARGEST_KEY:g},") == 2
    assert f"const largest = {key_plane.LARGEST_KEY:g};" in script
    assert f"low: {key_plane.SHORTEST / np.log(10):g}, high: {key_plane.LONGEST / np.log(10):g}," in script
    script = (PROJECT.page_folder(NAME) / "views" / "valley.js").read_text(encoding="utf-8")
    assert f"stops: [{', '.join(f'{one:g}' for one in valley_risks.DIMENSIONS)}]" in script
    assert f"stops: [{', '.join(f'{one:g}' for one in valley_risks.NOISES)}]" in script
    low, high = ranges.VALLEY_TILTS
    assert f'u: {{ label: "factor of the scores, u", low: {low:g}, high: {high:g},' in script
    assert f"low: 0, high: {ranges.LARGEST_VALLEY_GAIN:g}," in script
    assert f"high: {valley_risks.LARGEST_DECADE}," in script
    assert 10 ** float(re.search(r"decades: \{.*?low: ([\d.]+)", script)[1]) >= valley_risks.SHORTEST


@pytest.mark.parametrize(
    "wrong",
    [
        {"plane_nodes": 15},
        {"pair_nodes": [11, 16, 21]},
        {"needle_nodes": 4},
        {"valley_tilts": 3},
        {"heads": 1},
        {"settings": 3},
        {"seed": -1},
    ],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
