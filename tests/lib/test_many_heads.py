"""Several softmax heads: pairs of tilts against mpmath and NumPy, risks against Monte Carlo and known values."""

import json
import runpy
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.opposite_heads.prices import long_prompt_coefficient
from chapters.worth_of_heads.disjoint_tasks import several_tasks_law
from chapters.worth_of_heads.long_prompts import long_prompt_covariance
from lib import pairs as pairs_module
from lib.finite_prompt import participation, score_error
from lib.icl import (
    Blocks,
    LinearRegression,
    QueryAverage,
    ScoreTable,
    best_pair,
    best_values,
    block_risk,
    heads_risk,
)
from lib.icl import heads as heads_module
from lib.pairs import _pair_statistics, pair_participation, pair_quadrature_error, pair_score_error
from lib.statistics import comparison_quantile, standard_error

pytestmark = pytest.mark.usefixtures("float64", "unchecked")

REFERENCES = Path(__file__).parent / "references" / "many_heads.json"
ROWS = np.asarray(runpy.run_path(str(REFERENCES.with_suffix(".py")))["points"]())[:40]
A, B, LOG_LENGTH = ROWS.T
ALLOWED = 1e-9
L40 = np.log(40)
# For traced programs, which contain several grids and run a few times: without most of the compiler's optimisations.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def centred_heads_risk(task, omega, mu, log_length):
    """The risk of heads with weights $p_l - 1/L$: C, G̃, P and Q lose 1/L each, and E ĝ does not change."""
    average = (task.task_scale**2 * task.dimension + task.noise_std**2) * np.exp(-log_length)
    return heads_risk(task, omega, mu, log_length) - 0.5 * average * np.sum(mu) ** 2


def published():
    """The task of [He25]."""
    return LinearRegression(np.eye(5), task_scale=np.sqrt(0.2), noise_std=np.sqrt(0.1))


@pytest.fixture(scope="module")
def pairs(float64):
    """Values at the first 40 of the 200 points, and √(Q(a) Q(b))."""
    values = _pair_statistics(A, B, LOG_LENGTH)
    scale = np.sqrt(score_error(A, LOG_LENGTH) * score_error(B, LOG_LENGTH))
    return np.asarray(values.participation), np.asarray(values.score_error), np.asarray(scale)


@contextmanager
def some_grids(*places):
    """Programs traced here contain only some grids, which are enough for the pairs of a test, and not all six."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "_GRIDS", [pairs_module._GRIDS[place] for place in places])
        pairs_module._differentiable.cache_clear()
        yield
    pairs_module._differentiable.cache_clear()


def trapezoid(a, b, log_length, *, step=0.33, reach=9.0, drop=30.0):
    """C and G̃ by NumPy on other grids; Stein's identity, without which float64 cancels, is left to mpmath."""
    largest = np.sqrt(2 * log_length)
    depth = drop + 2 * log_length + sum(min(x**2 / 2, abs(x) * (largest + 1)) for x in (a, b))
    grid = np.linspace(-1, 1, 801) * (largest + 10)
    normal = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()

    def levels(tilt):
        low = -log_length - tilt**2 / 2 - drop
        s = low + step * np.arange(np.ceil((12 * abs(tilt) + 8 - low) / step))
        size = np.exp(np.minimum(s[:, None] + tilt * grid, 6.6))
        lost, kept = -np.expm1(-size) @ normal, np.exp(-size) @ normal
        log_phi = np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(kept))
        return s[max(np.expm1(log_length), 1) * log_phi > -depth]

    s, t = levels(a), levels(b)
    places = (a, b, a + b, 2 * a, 2 * b, 0)
    low, high = max(min(places) - reach, -largest - reach), min(max(places) + reach, largest + reach)
    h = min(0.25, 0.33 / max(abs(a), abs(b)))
    g = low + h * np.arange(np.ceil((high - low) / h) + 1)
    half = np.sqrt(h / np.sqrt(2 * np.pi)) * np.exp(-(g**2) / 4)

    def factors(tilt, s):
        log_size = s[:, None] + tilt * g
        size = np.exp(np.minimum(log_size, 6.6))
        # powers of uA divided by those of e^s and by their largest, which are put back in logarithms
        tops = [np.max(power * tilt * g - g**2 / 4) for power in (1, 2)]
        powers = [np.exp(power * tilt * g - tops[power - 1] - size) * half for power in (1, 2)]
        scales = [power * s + tops[power - 1] for power in (1, 2)]
        return np.exp(-size) * half, *powers, -np.expm1(-size) * half, scales

    kept, first, double, lost, (scale, twice) = factors(a, s)
    kept_b, first_b, double_b, lost_b, (scale_b, twice_b) = factors(b, t)
    gone = (lost @ half)[:, None] + kept @ lost_b.T
    log_phi = np.log1p(-np.minimum(gone, 1 - 1e-16))
    others = np.expm1(log_length)
    weight = np.exp(log_length + scale[:, None] + scale_b + others * log_phi)
    half_phi = 0.5 * (others - 1) * log_phi
    mixed = np.exp(log_length + scale[:, None] + scale_b + half_phi) * (first @ first_b.T)
    from_a = a * np.exp(log_length + twice[:, None] + half_phi) * (double @ kept_b.T) + b * mixed
    from_b = b * np.exp(log_length + twice_b + half_phi) * (kept @ double_b.T) + a * mixed
    both = (first * (g - a) * (g - b)) @ first_b.T
    off = -np.expm1(-log_length) * np.sum(from_a * from_b)
    return step**2 * np.sum(weight * (first @ first_b.T)), step**2 * (np.sum(weight * both) + off)


# --- pairs of tilts ---------------------------------------------------------------------------------------


def test_pairs_agree_with_a_second_quadrature(pairs):
    """At 40 random points, relative to C and to √(Q(a) Q(b))."""
    found_c, found_g, scale = pairs
    desired = np.asarray([trapezoid(*row) for row in ROWS])
    assert np.abs(found_c / desired[:, 0] - 1).max() < ALLOWED
    assert (np.abs(found_g - desired[:, 1]) / scale).max() < ALLOWED


def test_pairs_agree_with_mpmath_and_report_no_smaller_error(pairs):
    found_c, found_g, scale = (column[:10] for column in pairs)
    rows = json.loads(REFERENCES.read_text(encoding="utf-8"))["pairs"]
    np.testing.assert_allclose([(row["a"], row["b"], row["log_length"]) for row in rows], ROWS[:10], rtol=0)
    c, g = (np.asarray([float(row[name]) for row in rows]) for name in ("participation", "score_error"))
    sure = np.asarray([row["change"] for row in rows])
    assert (sure[:, 0] / c).max() < 1e-10
    assert (sure[:, 1] / scale).max() < 1e-10
    errors = np.maximum(np.abs(found_c / c - 1), np.abs(found_g - g) / scale)
    reported = np.asarray(pair_quadrature_error(*ROWS[:10].T))
    assert errors.max() < ALLOWED
    assert (errors <= reported).all()


def test_reported_errors_are_small_in_the_domain_and_nan_outside():
    rows = np.asarray([*ROWS[10:40], (0, 0, 0), (5, -5, np.log(2)), (5, 5, 300), (-5, 0, 330), (10, -9, 3)])
    reported = np.asarray(pair_quadrature_error(*rows.T))
    assert (reported <= ALLOWED).all()
    assert (reported > 0).all()
    outside = np.asarray([(14.1, 0, 3), (0, -15, 3), (1, 1, -0.1), (1, 1, 331), (np.nan, 1, 1)]).T
    for function in (pair_participation, pair_score_error, pair_quadrature_error):
        assert np.isnan(function(*outside)).all()


@pytest.mark.parametrize(
    ("a", "b", "length", "c", "g"),
    [
        (0.3, -0.3, 40, 0.02290655514, 0.02085251374),
        (1, -1, 1e4, 3.679825715e-5, None),
        (2, 2, 1e8, 5.459499126e-7, None),
    ],
)
def test_pairs_have_their_known_values(a, b, length, c, g):
    found = _pair_statistics(a, b, np.log(length))
    np.testing.assert_allclose(found.participation, c, rtol=2e-10)
    if g is not None:
        np.testing.assert_allclose(found.score_error, g, rtol=3e-10)


def test_pairs_of_equal_tilts_are_those_of_one_head():
    a = np.asarray([0.0, 0.4, -3.0, 5.0, -5.0, 12.0, 14.0, 14.0])
    log_length = np.asarray([2.0, 0.0, 7.0, np.log(2), 300.0, 3.0, np.log(2), 330.0])
    found = _pair_statistics(a, a, log_length)
    np.testing.assert_allclose(found.participation, participation(a, log_length), rtol=1e-11)
    np.testing.assert_allclose(found.score_error, score_error(a, log_length), rtol=1e-11)


def test_a_grid_holds_every_pair_of_the_domain():
    """A traced pair without a grid is NaN. Most levels are needed by opposite tilts at ten tokens."""
    rng = np.random.default_rng(24)
    largest = pairs_module._LARGEST_TILT
    a = np.concatenate([rng.uniform(0, largest, 400), np.full(400, largest)])
    b = np.concatenate([rng.uniform(-largest, largest, 400), rng.uniform(-largest, -0.9 * largest, 400)])
    log_length = rng.choice([1.0, 0.02, 0.2], 800) * rng.uniform(0, pairs_module._LARGEST_LOG_LENGTH, 800)
    for resolution in (pairs_module._DEFAULT, pairs_module._FINER):
        placed = jax.jit(jax.vmap(lambda a, b, x, r=resolution: pairs_module._placed(a, b, x, r)[2]))
        levels, scores = placed(a, b, log_length)
        holds = [(levels <= rows) & (scores <= nodes) for rows, nodes in resolution.sizes()]
        assert np.any(holds, axis=0).all()
    assert float(pair_quadrature_error(largest, -largest, np.log(24))) < ALLOWED


def test_pairs_are_even_and_symmetric(pairs):
    some = ROWS[:20].T
    for a, b in ((-some[0], -some[1]), (some[1], some[0])):
        found = _pair_statistics(a, b, some[2])
        np.testing.assert_allclose(found.participation, pairs[0][:20], rtol=1e-12)
        assert (np.abs(found.score_error - pairs[1][:20]) / pairs[2][:20]).max() < 1e-12


def test_pairs_at_singular_points():
    """A tilt of 0 averages: C = 1/L, G̃ + ab - … with E ĝ(a) ĝ(0) = 1/L. One token: C = 1 and G̃ = 1 + ab."""
    a, log_length = np.asarray([0.0, 1.0, -5.0]), np.asarray([0.7, 5.0, 200.0])
    np.testing.assert_allclose(pair_participation(a, 0.0, log_length), np.exp(-log_length), rtol=1e-12)
    np.testing.assert_allclose(pair_score_error(a, 0.0, log_length), np.exp(-log_length), rtol=1e-9)
    b = np.asarray([0.0, -2.0, 4.0])
    np.testing.assert_allclose(pair_participation(a, b, 0.0), 1, rtol=1e-12)
    np.testing.assert_allclose(pair_score_error(a, b, 0.0), 1 + a * b, rtol=0, atol=1e-11)


def test_slopes_of_pairs_agree_with_differences_and_are_finite_at_singular_points():
    slopes = jax.jit(jax.vmap(jax.jacrev(lambda x: jnp.stack(_pair_statistics(*x)))), compiler_options=QUICK)
    places = np.asarray([(1.0, -2.0, 3.0), (-4.0, 0.5, np.log(2)), (2.0, 2.0, 40.0), (0.0, 1.5, 4.0), (5.0, -5.0, 8.0)])
    singular = np.asarray([(0, 0, 0), (0, 0, 3), (2, 0, 0), (-1, -1, 0), (0, 3, 300)], float)
    with some_grids(0, 1, 2):
        found = np.asarray(slopes(np.concatenate([places, singular])))
    assert np.isfinite(found).all()
    step = 1e-3
    for k in range(3):
        shift = step * np.eye(3)[k]
        at = [np.stack(_pair_statistics(*(places + j * shift).T)) for j in (-2, -1, 1, 2)]
        desired = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
        size = np.abs(np.stack(_pair_statistics(*places.T)))
        np.testing.assert_allclose(found[: len(places), :, k].T / size, desired / size, rtol=1e-7, atol=1e-8)


def test_single_precision_is_refused():
    with jax.enable_x64(False):
        for function in (pair_participation, pair_score_error, pair_quadrature_error):
            with pytest.raises(ValueError, match="double precision"):
                function(1.0, 1.0, 1.0)


# --- risks ------------------------------------------------------------------------------------------------


def test_one_head_has_the_risk_of_a_block_head():
    """To the accuracy that is promised for `heads_risk`, because a radial rule is exact for isotropic blocks."""
    task, rows = published(), [(0.5179, 1.497, L40), (-0.3, -2.0, 5.0), (0.4, 0.7, 0.0)]
    tables = ScoreTable.at_each([log_length for *_, log_length in rows])
    for (omega, mu, log_length), table in zip(rows, tables, strict=True):
        desired = block_risk(task, Blocks(omega * np.eye(5), mu), table, QueryAverage.radial(5))
        found = heads_risk(task, np.array([omega]), np.array([mu]), log_length)
        np.testing.assert_allclose(found, desired, rtol=1e-8)


@pytest.mark.parametrize(
    ("omega", "mu", "square"),
    [
        ([0.5179], [1.497], 0.403963),
        ([0.0712, -0.0712], [6.176, -6.176], 0.242824),
        ([0.13, -0.13], [3.391, -3.391], 0.242988),
    ],
)
def test_risks_of_the_published_task(omega, mu, square):
    assert abs(2 * heads_risk(published(), np.array(omega), np.array(mu), L40) - square) < 1e-6


@pytest.mark.parametrize(
    ("omega", "square", "plain"),
    [(0.05, 0.24400, 1.02157), (0.45, 0.32025, 0.40704)],
)
def test_centred_and_plain_heads_at_their_best_values(omega, square, plain):
    task, key = published(), np.array([omega])
    assert abs(2 * best_values(task, key, L40)[1] - plain) < 1e-5
    assert abs(2 * best_values(task, key, L40, centred=True)[1] - square) < 1e-5


def test_risk_agrees_with_monte_carlo():
    """Prompts drawn by NumPy, at three heads and d = 3: 40 batches at once show the error of the mean."""
    task = LinearRegression(np.eye(3), task_scale=0.8, noise_std=0.3)
    omega, mu = np.array([0.5, -0.2, 0.1]), np.array([1.1, -2.0, 0.7])
    rng = np.random.default_rng(5)
    deviations = []
    for length in (1, 4, 30):
        n = 10_000
        w = 0.8 * rng.normal(size=(n, 3))
        x, query = rng.normal(size=(n, length, 3)), rng.normal(size=(n, 3))
        y = np.einsum("nld,nd->nl", x, w) + 0.3 * rng.normal(size=(n, length))
        target = np.sum(query * w, axis=1) + 0.3 * rng.normal(size=n)
        scores = np.einsum("nld,nd->nl", x, query)
        weights = np.exp(omega[:, None, None] * scores)
        weights /= weights.sum(axis=-1, keepdims=True)
        squares = (np.einsum("h,hnl,nl->n", mu, weights, y) - target) ** 2 / 2
        expected = float(heads_risk(task, omega, mu, np.log(length)))
        deviations.append((squares.mean() - expected) / standard_error(squares))
    assert np.abs(deviations).max() < comparison_quantile(len(deviations))


@pytest.mark.parametrize("centred", [False, True])
def test_best_values_minimise_the_risk(monkeypatch, centred):
    """The moments of the heads, which do not depend on the values, are computed once."""
    task, omega = published(), np.array([0.3, -0.25] if centred else [0.3, -0.25, 0.1])
    moments = heads_module._head_moments(*heads_module._isotropic("best_values", task, omega, L40))
    monkeypatch.setattr(heads_module, "_head_moments", lambda *_: moments)
    risk_of = centred_heads_risk if centred else heads_risk
    mu, risk = best_values(task, omega, L40, centred=centred)
    np.testing.assert_allclose(risk_of(task, omega, mu, L40), risk, rtol=1e-10 if centred else 1e-12)
    for shift in np.vstack([np.eye(len(mu)), -np.eye(len(mu))]):
        assert risk_of(task, omega, np.asarray(mu) + 0.01 * shift, L40) > risk


def test_best_values_of_equal_keys_are_shared():
    task = published()
    mu, risk = best_values(task, np.array([0.3, 0.3, -0.2]), L40)
    alone, desired = best_values(task, np.array([0.3, -0.2]), L40)
    np.testing.assert_allclose(risk, desired, rtol=1e-10)
    np.testing.assert_allclose(mu, [alone[0] / 2, alone[0] / 2, alone[1]], rtol=1e-7)
    none, worst = best_values(task, np.array([0.3, -0.2]), 0.0)
    np.testing.assert_array_equal(none, 0)
    np.testing.assert_allclose(worst, 0.55, rtol=1e-12)
    none, worst = best_values(task, np.zeros(2), L40)
    np.testing.assert_allclose(none, 0, atol=1e-12)
    np.testing.assert_allclose(worst, 0.55, rtol=1e-12)


def test_best_values_keep_the_digits_of_long_prompts():
    """At ln L = 200 the excess of a noiseless task is e^{-200} of `long_prompt_coefficient`, up to 1/L."""
    task, omega = LinearRegression(np.eye(3)), np.array([0.3, -0.2])
    mu, risk = best_values(task, omega, 200.0)
    np.testing.assert_allclose(mu @ omega, 1, rtol=1e-12)
    np.testing.assert_allclose(risk * np.exp(200.0), long_prompt_coefficient(task, omega, mu), rtol=1e-8)


def test_slopes_of_the_best_risk_are_finite_and_right(monkeypatch):
    """The cases include equal keys, a key of 0 and one token; averages are over eight lengths of the query."""
    task = published()
    monkeypatch.setattr(heads_module, "_RADII", 8)

    def risk(x):
        return best_values(task, x[:2], x[2])[1]

    slope = jax.jit(jax.grad(risk), compiler_options=QUICK)
    at, step = np.asarray([0.3, 0.3, L40]), 1e-3
    with some_grids(1):
        found = slope(at)
        for place in ([0.3, 0.0, L40], [0.1, -0.1, 0.0]):
            assert np.isfinite(slope(np.asarray(place))).all()
    values = [float(risk(at + j * step * np.array([1.0, 1.0, 0.0]))) for j in (-2, -1, 1, 2)]
    desired = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    np.testing.assert_allclose(found[:2].sum(), desired, rtol=1e-6)


@pytest.mark.parametrize(
    ("length", "key"),
    [
        (10, 1.149),
        (160, 0.407),
        (2560, 0.3967),
        (1e12, np.sqrt(12 / 76.5)),
    ],
)
def test_best_pair_has_its_known_keys(length, key):
    """ω √L, on both sides of the length at which the search changes; the last has its limit `√(12/(9 · 8.5))`."""
    omega, mu, risk = best_pair(published(), np.log(length))
    assert abs(omega * np.sqrt(length) - key) < (6e-4 if length < 500 else 6e-5 if length < 1e4 else 1e-6)
    assert risk < published().debiased_descent(np.log(length))[1] or length > 1e6
    if length <= 160:
        heads = np.array([omega, -omega])
        np.testing.assert_allclose(heads_risk(published(), heads, np.array([mu, -mu]), np.log(length)), risk, rtol=1e-9)


def test_best_pair_of_the_published_task():
    omega, mu, risk = best_pair(published(), L40)
    assert abs(omega - 0.0712) < 6e-5
    assert risk < published().debiased_descent(L40)[1]
    assert abs(mu - 6.176) < 1e-3
    assert abs(2 * risk - 0.242824) < 1e-6


def test_best_pair_of_one_token(monkeypatch):
    """All keys have the same risk there. The search leaves out the largest, which take longest."""
    monkeypatch.setattr(heads_module, "_LARGEST_TILT", 3.0)
    key, mu, risk = best_pair(published(), 0.0)
    assert key > 0
    assert mu == 0
    np.testing.assert_allclose(risk, 0.55, rtol=1e-12)


@pytest.mark.parametrize(("dimension", "noise"), [(1, 0.0), (5, 0.3)])
def test_searches_of_the_best_pair_agree_where_they_meet(monkeypatch, dimension, noise):
    """To the accuracy that is promised for ω; from this length on no larger key is better than the one near 0."""
    task = LinearRegression(np.eye(dimension), task_scale=dimension**-0.5, noise_std=noise)
    long = float(best_pair(task, np.log(36.0))[0])
    monkeypatch.setattr(heads_module, "_SHORT", np.log(40.0))
    assert abs(float(best_pair(task, np.log(36.0))[0]) / long - 1) < 1e-5


def test_best_pair_in_many_dimensions():
    """No neighbour of the key is better, as judged by 80 nodes in place of the 20 of the search."""
    task = LinearRegression(np.eye(40), task_scale=40**-0.5, noise_std=0.5)
    for length in (12.0, 200.0):
        log_length = jnp.log(length)
        keys = best_pair(task, log_length)[0] * jnp.array([0.98, 0.99, 1.01, 1.02])
        at = heads_module._pair_excess(task, keys, log_length, heads_module._lengths_by_key(40, keys, log_length, 80))[
            1
        ]
        # the minimum of the polynomial through four points that are placed evenly around it
        outer, inner = at[3] - at[0], at[2] - at[1]
        slope, curvature = (8 * inner - outer) / 12, (at[0] + at[3] - at[1] - at[2]) / 3
        assert abs(0.01 * slope / curvature) < 1e-5


@pytest.mark.parametrize(
    ("dimension", "omega", "length"), [(7, 0.05, 12), (3, 0.3, 40), (7, -0.7, 40), (7, 0.2, 1e4), (3, 0.9, 1e60)]
)
def test_opposite_values_are_the_best_of_two_opposite_keys(dimension, omega, length):
    """In few and in many dimensions; in many, the quadrature for small keys is not that for large ones."""
    task = LinearRegression(np.eye(dimension), task_scale=0.7, noise_std=0.4)
    _, mu, risk = best_pair(task, np.log(length), omega)
    values, desired = best_values(task, np.array([omega, -omega]), np.log(length))
    np.testing.assert_allclose([mu, -mu], values, rtol=1e-8)
    np.testing.assert_allclose(risk, desired, rtol=1e-10)


def test_opposite_values_at_singular_points():
    """Tiny keys give debiased descent, all keys are equal at one token, and nothing is known outside the domain."""
    task = published()
    np.testing.assert_allclose(best_pair(task, L40, 1e-7)[2], task.debiased_descent(L40)[1], rtol=1e-12)
    _, mu, risk = best_pair(task, 0.0, 0.3)
    assert mu == 0
    np.testing.assert_allclose(risk, 0.55, rtol=1e-12)
    assert np.isnan(best_pair(task, -1.0, 0.3)[1:]).all()
    assert np.isnan(best_pair(task, L40, 9.0)[2])


def test_traced_pairs_are_those_that_are_computed_one_by_one():
    """Jitted, vmapped and differentiated programs contain several grids, and concrete pairs compile their own."""
    task, keys = published(), jnp.array([0.1, -0.2])
    value_and_slope = jax.value_and_grad(lambda x: best_pair(task, L40, x)[2])
    traced = jax.jit(jax.vmap(value_and_slope), compiler_options=QUICK)
    with some_grids(0, 1):
        values, slopes = traced(keys)
    np.testing.assert_allclose(values, [best_pair(task, L40, key)[2] for key in keys], rtol=1e-12)
    step = 1e-3
    at = [np.array([best_pair(task, L40, key + j * step)[2] for key in keys]) for j in (-2, -1, 1, 2)]
    np.testing.assert_allclose(slopes, (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step), rtol=1e-7)
    with some_grids(1):
        searched = jax.jit(best_pair, compiler_options=QUICK)(task, L40)
    for found, desired in zip(searched, best_pair(task, L40), strict=True):
        np.testing.assert_allclose(found, desired, rtol=1e-6)


def test_debiased_descent_is_the_limit_of_small_keys():
    task = published()
    step, risk = task.debiased_descent(L40)
    mu, close = best_values(task, np.array([2e-3, -2e-3]), L40)
    np.testing.assert_allclose(2 * 2e-3 * mu[0], step, rtol=1e-4)
    np.testing.assert_allclose(risk, close, rtol=1e-6)
    assert abs(2 * risk - 0.242857) < 1e-6


def test_long_prompts_have_their_coefficient():
    """Also with a bias: heads that do not answer exactly lose at order 1/L what their shrinkage changes."""
    task, omega = published(), np.array([0.3, -0.2])
    for mu in (np.array([2.0, -1.0]), np.array([2.0, -2.0])):
        infinite = 0.5 * (0.2 * 5 * (1 - mu @ omega) ** 2 + 0.1)
        excess = (heads_risk(task, omega, mu, 16.0) - infinite) * np.exp(16.0)
        np.testing.assert_allclose(excess, long_prompt_coefficient(task, omega, mu), rtol=2e-5)
    np.testing.assert_allclose(long_prompt_covariance(task, 0.0), 1.1, rtol=1e-12)
    assert long_prompt_covariance(task, 0.5) == np.inf
    assert long_prompt_coefficient(task, np.array([0.8]), np.array([1.25])) == np.inf


def test_law_of_several_tasks():
    """One task is `long_prompt_coefficient`; two heads on three tasks reach D(D + 1) as keys vanish."""
    task = LinearRegression(np.eye(4), task_scale=1.5, noise_std=0.4)
    omega, mu = np.array([0.3, -0.2]), np.array([2.0, -2.0])
    infinite, coefficient = several_tasks_law((4,), omega[:, None], mu[:, None], task_scale=1.5, noise_std=0.4)
    np.testing.assert_allclose(infinite, 0, atol=1e-15)
    np.testing.assert_allclose(coefficient, long_prompt_coefficient(task, omega, mu), rtol=1e-12)
    key = 1e-3
    keys = np.array([[key] * 3, [-key] * 3])
    _, coefficient = several_tasks_law((2, 2, 2), keys, 0.5 / keys)
    np.testing.assert_allclose(2 * coefficient, 6 * 7, rtol=1e-3)


def test_arguments_and_results_have_their_annotated_types(checked):
    for function in (pair_participation, pair_score_error, pair_quadrature_error):
        assert function(0.3, np.array([-0.3, 0.1]), L40).shape == (2,)
    task, omega = published(), np.array([0.3, -0.2])
    mu, risk = best_values(task, omega, L40)
    np.testing.assert_allclose(heads_risk(task, omega, mu, L40), risk, rtol=1e-12)
    np.testing.assert_array_equal(best_pair(task, L40, 0.3)[0], 0.3)


def test_tasks_and_heads_that_do_not_fit_are_refused():
    key = np.array([0.1])
    with pytest.raises(ValueError, match="cov is the identity"):
        heads_risk(LinearRegression(2 * np.eye(2)), key, key, 1.0)
    with pytest.raises(ValueError, match="query_cov is the identity"):
        best_values(LinearRegression(np.eye(2), 3 * np.eye(2)), key, 1.0)
    with pytest.raises(ValueError, match="cov is the identity"):
        best_pair(LinearRegression(2 * np.eye(2)), 1.0)
    with pytest.raises(ValueError, match="one key and one value per head"):
        heads_risk(LinearRegression(np.eye(2)), key, np.ones(2), 1.0)
    with pytest.raises(ValueError, match="H ≥ 1"):
        best_values(LinearRegression(np.eye(2)), np.zeros(0), 1.0)
