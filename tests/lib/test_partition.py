"""The quadrature of ratios over random exponentials: its one-token expectations, its nodes, and what they integrate."""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special, stats

from lib.finite_prompt import participation
from lib.partition import (
    _DEFAULT_RESOLUTION,
    Resolution,
    _crossing,
    _log_tilted_moments,
    log_survival,
    log_tilted,
    square_given_others,
)

pytestmark = pytest.mark.usefixtures("float64", "unchecked")

_rng = np.random.default_rng(23)
# Random levels of random scores, then corners: scores that hardly differ, both ends of y at the largest τ.
_SPREADS = 10 ** _rng.uniform(-2, np.log10(30), 14)
_PLACES = np.sort(_rng.uniform(-8, 3, 14))
_CORNERS = [(-1.0, 1e-3), (2.0, 0.05), (-780.0, 30.0), (0.0, 30.0), (261.0, 30.0), (60.0, 12.0), (-300.0, 2.0)]
# Above all scores, where the mass that is lost lies far from the mass that is kept.
_CORNERS += [(9.0, 2.0), (14.0, 0.57), (12.0, 0.3), (80.0, 5.0)]
Y, TAU = np.append(np.stack([_PLACES * _SPREADS, _SPREADS]), np.transpose(_CORNERS), axis=1)
NAMES = ("survival", "tilted 1", "tilted 2", "tilted 3", "square 2")
# Nearly rounding, but where y is far above the scores: all is below e^{-5} there, and the steps are coarse for it.
CLOSE = np.where(Y <= 3 * TAU, 2e-12, 1e-7)


@jax.jit
@jax.vmap
def ours(y, tau):
    """In the order of NAMES, at one level."""
    one = y[None]
    tilted = [log_tilted(power, one, tau) for power in (1, 2, 3)]
    return jnp.concatenate([log_survival(one, tau), *tilted, _log_tilted_moments(2, one, tau)[1]])


def theirs(y, tau):
    """Logs of the same expectations by mpmath: a plain trapezoid in g over all it can need, at 25 digits."""
    with mp.workdps(25):
        y, tau = mp.mpf(y), mp.mpf(tau)
        step = 1 / (4 * max(tau, mp.mpf(1)))
        # beyond u = 6 nothing but `lost` is alive, and that needs g no farther than τ
        low, high = int((10 + max(0, y / tau)) / step), int(max(tau + 10, min(3 * tau + 10, (6 - y) / tau)) / step)
        sums = [mp.mpf(0)] * 6
        for k in range(-low, high + 1):
            g = k * step
            e = mp.exp(y + tau * g)
            density, alive = step * mp.npdf(g), mp.exp(-e)
            single, double = density * e * alive, density * e**2 * alive
            terms = (density * -mp.expm1(-e), density * alive, single, double, e * double, (g - tau) ** 2 * double)
            sums = [total + term for total, term in zip(sums, terms, strict=True)]
        lost, kept, *tilted = sums
        log_phi = mp.log1p(-lost) if lost < kept else mp.log(kept)
        return np.asarray([log_phi, *map(mp.log, tilted)], float)


@pytest.fixture(scope="module")
def compared(float64):
    """Ours and mpmath's, a row for each level and a column for each of NAMES."""
    return np.asarray(ours(Y, TAU)), np.stack([theirs(*pair) for pair in zip(Y, TAU, strict=True)])


@pytest.mark.parametrize("name", NAMES)
def test_expectations_agree_with_mpmath(compared, name):
    """Small expectations to their relative digits; φ near one to those of 1 - φ, which are those of log φ."""
    actual, desired = (table[:, NAMES.index(name)] for table in compared)
    np.testing.assert_array_less(np.abs(actual - desired), CLOSE * np.minimum(1, np.abs(desired)))


def test_the_levels_compared_reach_both_ends(compared):
    """The comparison above sees survivals next to one and next to zero."""
    survival = compared[1][:, 0]
    assert -1e-60 < survival.max() < 0
    assert survival.min() < -40


def test_scipy_agrees_where_it_can():
    """`scipy.integrate.quad` of φ, for scores of ordinary spread."""

    def phi(y, tau):
        return integrate.quad(lambda g: np.exp(-np.exp(y + tau * g)) * stats.norm.pdf(g), -12, 12, epsabs=1e-13)[0]

    y, tau = np.linspace(-3, 2, Y.size), np.linspace(0.3, 3, Y.size)
    desired = [phi(*pair) for pair in zip(y, tau, strict=True)]
    np.testing.assert_allclose(np.exp(ours(y, tau)[:, 0]), desired, rtol=1e-9)


def test_derivatives_of_the_survival_are_expectations(compared):
    """`∂φ/∂y = -E[e^u exp(-e^u)]`, and by the heat equation `∂φ/∂τ = τ E[(e^{2u} - e^u) exp(-e^u)]`."""
    slopes = jax.jit(jax.vmap(jax.grad(lambda y, tau: log_survival(y[None], tau)[0], argnums=(0, 1))))
    by_y, by_tau = slopes(Y, TAU)
    log_phi, one, two, *_ = compared[1].T
    gain, loss = TAU * np.exp(two - log_phi), TAU * np.exp(one - log_phi)
    np.testing.assert_array_less(np.abs(by_y * TAU + loss), 100 * CLOSE * loss)
    np.testing.assert_array_less(np.abs(by_tau - (gain - loss)), 100 * CLOSE * (gain + loss))


# --- nodes ------------------------------------------------------------------------------------------------

PLACES = 40
SCORES = _rng.uniform(0.02, 12, PLACES)
LENGTHS = np.exp(_rng.uniform(0, 40, PLACES))


@partial(jax.jit, static_argnames="resolution")
def token_ahead(*places, resolution):
    """Nodes, their spacing, and logs of the integrand of `E e^{χ+s} / (e^{χ+s} + Σ e^{χ_i})`, L - 1 other tokens."""

    def at(tau, log_length, shift):
        y, spacing = resolution.levels(tau, log_length, shift=shift)
        log_token = log_tilted(1, y + shift, tau, resolution=resolution)
        return y, spacing, log_token + jnp.expm1(log_length) * log_survival(y, tau, resolution=resolution)

    return jax.vmap(at)(*places)


def special_weight(*places, resolution=_DEFAULT_RESOLUTION):
    """What softmax gives, in mean, to a token ahead of the others by s."""
    _, spacing, logs = token_ahead(*places, resolution=resolution)
    return spacing * np.exp(logs).sum(axis=1)


def test_without_advantage_every_token_weighs_the_same():
    np.testing.assert_allclose(special_weight(SCORES, np.log(LENGTHS), np.zeros(PLACES)), 1 / LENGTHS, rtol=1e-12)


def test_two_tokens_share_by_a_sigmoid():
    """`E sigmoid(s + √2 τ g)` by SciPy, for advantages of both signs."""
    shift = _rng.uniform(-30, 30, PLACES)

    def share(tau, shift):
        def integrand(g):
            return special.expit(shift + np.sqrt(2) * tau * g) * stats.norm.pdf(g)

        peaks = np.clip([0.0, -shift / (np.sqrt(2) * tau), np.sqrt(2) * tau], -12, 30)
        return integrate.quad(integrand, -12, 30, points=peaks, epsabs=0, epsrel=1e-11, limit=400)[0]

    desired = [share(*pair) for pair in zip(SCORES, shift, strict=True)]
    np.testing.assert_allclose(special_weight(SCORES, np.full(PLACES, np.log(2.0)), shift), desired, rtol=1e-10)


SPIKES = [(0.5, 3, 1.0), (1.0, 30, 4.0), (2.0, 300, -1.0), (3.0, 100, 8.0), (1.5, 1000, 5.0), (6.0, 10, -5.0)]


def test_a_spiked_token_weighs_what_monte_carlo_says(assert_monte_carlo):
    """Softmax by SciPy over one token ahead and L - 1 that are not."""
    rng, weights = np.random.default_rng(5), []
    for tau, length, shift in SPIKES:
        scores = tau * rng.normal(size=(3000, length))
        scores[:, 0] += shift
        weights.append(special.softmax(scores, axis=1)[:, 0])
    tau, length, shift = (np.resize(column, PLACES).astype(float) for column in np.transpose(SPIKES))
    assert_monte_carlo(np.transpose(weights), special_weight(tau, np.log(length), shift)[: len(SPIKES)])


def test_finer_steps_and_farther_ends_change_nothing():
    """For tokens ahead and for tokens behind."""
    places = SCORES, np.log(LENGTHS), _rng.uniform(-40, 40, PLACES)
    finer = Resolution(count=400, step=0.15, reach=11.0, drop=60.0)
    np.testing.assert_allclose(special_weight(*places), special_weight(*places, resolution=finer), rtol=1e-12)


def test_nodes_cover_the_integrand_and_no_desert():
    """At both ends it is below rounding, and nearly all nodes lie where it is not."""
    shift = np.append(np.zeros(PLACES // 2), _rng.uniform(0, 20, PLACES // 2))
    y, _, logs = token_ahead(SCORES, np.log(LENGTHS), shift, resolution=_DEFAULT_RESOLUTION)
    fallen = logs.max(axis=1)[:, None] - logs
    assert (np.diff(y) > 0).all()
    assert (np.exp(-fallen[:, [0, -1]]) < np.finfo(float).eps).all()
    assert ((fallen < _DEFAULT_RESOLUTION.drop).sum(axis=1) > 0.8 * _DEFAULT_RESOLUTION.count).all()


def test_nodes_are_constants_to_derivatives():
    """Where they lie does not move the integral, so nothing is differentiated through the search for them."""

    def ends(tau, log_length, shift):
        y, spacing = Resolution().levels(tau, log_length, shift=shift)
        return y[0] + y[-1] + spacing

    by_all = jax.jit(jax.grad(ends, argnums=(0, 1, 2)))(2.0, 5.0, 1.0)
    np.testing.assert_array_equal(by_all, 0.0)


@pytest.mark.parametrize("halvings", [10, 30])
def test_a_crossing_is_found_to_as_many_halvings_as_asked(halvings):
    """Between brackets of any sign, under vmap; where it holds throughout, at the upper end."""
    low, high = jnp.asarray(-5.0), jnp.asarray(1e3)
    ends = jnp.asarray([-3.0, 0.1, 700.0])
    found = jax.vmap(lambda end: _crossing(lambda y: y < end, low, high, halvings=halvings))(ends)
    assert np.max(np.abs(found - ends)) <= 1005 / 2**halvings
    assert high - _crossing(lambda y: y < 2e3, low, high, halvings=halvings) <= 1005 / 2**halvings


def test_levels_say_how_to_get_the_precision_they_need():
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"jax\.enable_x64\(True\)"):
        Resolution().levels(jnp.asarray(1.0), jnp.asarray(2.0))


@pytest.mark.parametrize(
    ("tau", "log_others"), [(0.1, 0.3), (0.7, 1.0), (2.6, 8.0), (5.2, 20.0), (11.0, 31.0), (15.0, 44.0)]
)
def test_one_token_is_averaged_as_scipy_does(tau, log_others):
    def integrand(g):
        return special.expit(tau * g - log_others) ** 2 * stats.norm.pdf(g)

    middle = min(log_others / tau, 2 * tau)
    ends = (-12.0, middle - 1, middle, middle + 1, 2 * tau + 14)
    parts = [integrate.quad(integrand, *pair, epsrel=1e-12, epsabs=0, limit=400)[0] for pair in pairwise(ends)]
    found = square_given_others(jnp.asarray(tau), jnp.asarray(log_others))
    np.testing.assert_allclose(found, sum(parts), rtol=1e-6)


def test_participation_is_the_mean_over_one_token_and_the_others():
    """Two tokens: the other's score is averaged by quadrature, too."""
    tau = 1.9
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    found = square_given_others(jnp.asarray(tau), jnp.asarray(tau * nodes))
    mean = 2 * np.sum(np.asarray(found) * weights) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(mean, float(participation(tau, np.log(2.0))), rtol=1e-8)
