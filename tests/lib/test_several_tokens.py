"""One, none, or several relevant tokens: exact risks against mpmath, plain quadratures, enumeration and prompts."""

import itertools
import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import mpmath
import numpy as np
import pytest
import scipy.special

from lib.single_location import (
    Absent,
    Independent,
    Overlaps,
    Several,
    Spiked,
    _several,
    attention_risk,
    bayes_risk,
    bayes_risk_bounds,
    best_risk,
    hardmax,
    linear,
    relu,
    replica,
    sigmoid,
    simulate_bayes_risk,
    sink_softmax,
    softmax,
    softplus,
)

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation", "unchecked")

RNG = np.random.default_rng(55)
G = np.arange(-11.0, 11.0, 0.04)
DENSITY = 0.04 * np.exp(-0.5 * G**2) / math.sqrt(2 * math.pi)


def rows(*columns):
    return list(zip(*columns, strict=True))


# ------------------------------------------------------------------------------------------- independent quadratures

# the first twelve of thirty draws
ELEMENTWISE = rows(10.0 ** RNG.uniform(-12, -0.01, 30), RNG.uniform(0.1, 400.0, 30))[:12]


@pytest.mark.parametrize(("probability", "snr"), ELEMENTWISE)
def test_risk_of_independent_relevance_against_mpmath(probability, snr):
    task = Independent(1e12, probability, snr)
    with mpmath.workdps(30):
        q, nu = mpmath.mpf(probability), mpmath.mpf(snr)
        mean, root = nu / 2 + mpmath.log(q / (1 - q)), mpmath.sqrt(nu)

        def integrand(u):
            return mpmath.npdf(u, mean, root) / (1 + mpmath.exp(u))

        breaks = [mean - nu - 14 * root, *sorted({mean - nu, mean, mpmath.mpf(0)}), mean + 14 * root]
        breaks = sorted({point for point in breaks if breaks[0] <= point <= breaks[-1]})
        pieces = [a + (b - a) * k / 6 for a, b in itertools.pairwise(breaks) for k in range(6)] + [breaks[-1]]
        exact = mpmath.quad(integrand, pieces)
        error = float(abs(mpmath.mpf(float(bayes_risk(task))) / exact - 1))
    assert error < 5e-13
    assert float(best_risk(task, sigmoid)) == float(bayes_risk(task))


def plain_moments(task, slope, mean, sink):
    """`E Σ_A s`, `E Σ s²` over E|A| by plain trapezoids in the score and in y, without logarithms."""
    length = float(task.length)
    y = np.arange(-0.5 * slope**2 - abs(mean) - 9 * slope - math.log(length) - 40, 9 * slope + 6, 0.05)
    if math.isfinite(sink):
        y = np.append(np.arange(-sink - 42, y[0] - 0.03, 0.05), y) if -sink - 42 < y[0] else y

    def parts(shift):
        u = y[:, None] + slope * G + shift
        kernel = np.exp(-np.exp(u))
        kept, lost = kernel @ DENSITY, -np.expm1(-np.exp(u)) @ DENSITY
        log_kept = np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(np.maximum(kept, 1e-300)))
        return log_kept, (np.exp(u) * kernel) @ DENSITY, (np.exp(2 * u) * kernel) @ DENSITY

    (absent, _, b0), (present, a1, b1) = parts(0.0), parts(mean)
    of_relevant, of_other = (np.exp(each) for each in task.log_others(absent, present))
    factor = np.exp(-np.exp(y + sink))
    step = np.diff(y, append=2 * y[-1] - y[-2])
    return step @ (a1 * of_relevant * factor), step @ ((b1 * of_relevant + b0 * of_other) * factor)


def random_tasks(count):
    for index in range(count):
        length, snr = float(RNG.integers(3, 1000)), RNG.uniform(0.2, 12.0)
        make = (
            partial(Several, length, float(RNG.integers(1, min(int(length), 30))), snr),
            partial(Independent, length, RNG.uniform(0.01, 0.9), snr),
            partial(Absent, length, snr, RNG.uniform(0.05, 1.0)),
        )[index % 3]
        yield make, RNG.uniform(0.2, 4.0), RNG.uniform(-2.0, 6.0), (RNG.uniform(-3, 10) if index % 2 else -math.inf)


@pytest.mark.parametrize(("make", "slope", "mean", "sink"), list(random_tasks(30))[:12])
def test_softmax_against_a_plain_quadrature(make, slope, mean, sink):
    task = make()
    snr = float(task.snr)
    m_k = mean / math.sqrt(snr)
    hidden, power = plain_moments(task, slope, mean, sink)
    expected = 1.0 - 2.0 * 0.7 * hidden + 0.9 * power
    head = softmax if sink == -math.inf else replace(sink_softmax, sink=sink)
    risk = attention_risk(task, head, Overlaps(m_k, slope**2, 0.7, 0.9))
    assert float(risk) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("index", range(12))
def test_bayes_risk_with_absence_against_a_plain_quadrature(index):
    rng = np.random.default_rng(index)
    task = Absent(float(rng.integers(2, 2000)), rng.uniform(0.2, 14.0), rng.uniform(0.02, 1.0))
    root = math.sqrt(float(task.snr))
    hidden, power = plain_moments(task, root, float(task.snr), float(task.bayes_sink))
    assert abs(float(bayes_risk(task)) - (1.0 - hidden)) <= 5e-13 * float(bayes_risk(task)) + 1e-12
    assert 1.0 - power == pytest.approx(1.0 - hidden, abs=1e-11)


def test_a_coarse_grid_is_noticed():
    """Steps that are too long give risks below the Bayes risk; `E Σ s` shows it. The risks of heads are above it."""
    task = Several(100.0, 2.0, 100.0)
    coarse = _several._fill(task._law, (-130.0, 20.0), 100.0, 10.0, _several._VALUE._replace(step=6.0))
    moments = coarse.moments(-math.inf)
    assert abs(2.0 * moments.mass - 1.0) > _several.MASS_TOLERANCE
    with_sink = Absent(10.0, 30.0, 0.5)
    coarse = _several._fill(with_sink._law, (-90.0, 20.0), 30.0, math.sqrt(30.0), _several._VALUE._replace(step=4.0))
    assert min(coarse.moments(sink).risk for sink in np.arange(10.0, 30.0, 0.5)) < 0.9 * float(bayes_risk(with_sink))
    sinks = [float(attention_risk(with_sink, replace(sink_softmax, sink=sink), Overlaps(30.0**0.5, 30.0, 1.0, 1.0)))
             for sink in np.arange(10.0, 30.0, 2.0)]  # fmt: skip
    assert min(sinks) >= float(bayes_risk(with_sink))


# ------------------------------------------------------------------------------------------------- enumeration of sets


def enumerated_bayes_risk(length, snr, prior):
    """The Bayes risk of any prior of sets, by a lattice over all scores and a sum over all sets."""
    axis = np.arange(-7.5, 7.5 + math.sqrt(snr), 0.25)
    scores = np.stack(np.meshgrid(*[axis] * length, indexing="ij"), -1).reshape(-1, length)
    density = (0.25 / math.sqrt(2 * math.pi)) ** length * np.exp(-0.5 * (scores**2).sum(axis=1))
    sets = [np.asarray(each, float) for each in itertools.product((0, 1), repeat=length)]
    ratios = [prior(each) * np.exp(scores @ each * math.sqrt(snr) - 0.5 * snr * each.sum()) for each in sets]
    total = np.sum(ratios, axis=0)
    posterior = sum(ratio[:, None] * each for ratio, each in zip(ratios, sets, strict=True)) / total[:, None]
    number = sum(prior(each) * each.sum() for each in sets)
    return 1.0 - density @ (total * (posterior**2).sum(axis=1)) / number


def of_size(relevant, length):
    return lambda each: (each.sum() == relevant) / math.comb(length, relevant)


@pytest.mark.parametrize(
    ("make", "prior"),
    [
        (partial(Several, 3.0, 1.0, 3.0), of_size(1, 3)),
        (partial(Several, 3.0, 2.0, 3.0), of_size(2, 3)),
        (partial(Several, 2.0, 2.0, 3.0), of_size(2, 2)),
        (partial(Independent, 3.0, 0.3, 2.0), lambda each: 0.3 ** each.sum() * 0.7 ** (3 - each.sum())),
        (partial(Absent, 3.0, 4.0, 0.6), lambda each: 0.6 * (each.sum() == 1) / 3 + 0.4 * (each.sum() == 0)),
    ],
    ids=["one", "two of three", "all", "independent", "absent"],
)
def test_bayes_risk_against_enumeration(make, prior):
    task = make()
    expected = enumerated_bayes_risk(int(task.length), float(task.snr), prior)
    assert float(bayes_risk(task)) == pytest.approx(expected, abs=1e-9)
    risk, error = simulate_bayes_risk(task, 10_000, key=jr.key(3))
    assert abs(float(risk) - expected) <= 4.5 * float(error) + 1e-12


def test_two_of_four_against_enumeration():
    """The first number of relevant tokens without a known integral; a tensor quadrature gave .2129380229."""
    task = Several(4.0, 2.0, 3.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    scores = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), -1) + math.sqrt(3.0) * np.asarray([1, 1, 0, 0])
    chance = np.prod(np.stack(np.meshgrid(*[weights] * 4, indexing="ij"), -1), axis=-1)
    sets = [np.isin(range(4), each) for each in itertools.combinations(range(4), 2)]
    terms = [np.exp(math.sqrt(3.0) * scores @ each) for each in sets]
    hit = sum(term for term, each in zip(terms, sets, strict=True) if each[0]) / sum(terms)
    assert 1.0 - (chance * hit).sum() == pytest.approx(0.2129380229, abs=1e-4)
    risk, error = simulate_bayes_risk(task, 50_000, key=jr.key(0))
    assert abs(float(risk) - 0.2129380229) <= 4.5 * float(error)
    lower, upper = bayes_risk_bounds(task)
    assert float(lower) < 0.2129380229 < float(upper)


def test_theorem_which_weights_are_bayes():
    """The posterior is softmax up to a common factor iff |A| ≤ 1, and element-wise iff tokens are independent."""
    snr, length = 2.0, 4
    scores = RNG.normal(size=(2, length)) + 0.5
    sets = [np.asarray(each, float) for each in itertools.product((0, 1), repeat=length)]

    def posterior(prior, chi):
        ratios = np.asarray(
            [prior(each) * math.exp(math.sqrt(snr) * chi @ each - snr / 2 * each.sum()) for each in sets]
        )
        return ratios @ np.asarray(sets) / ratios.sum()

    def softmax_spread(prior):
        return max(np.ptp(np.log(posterior(prior, chi)) - math.sqrt(snr) * chi) for chi in scores)

    def elementwise_change(prior):
        other = scores[1].copy()
        other[0] = scores[0, 0]
        return abs(posterior(prior, scores[0])[0] - posterior(prior, other)[0])

    def independent(each):
        return 0.3 ** each.sum() * 0.7 ** (length - each.sum())

    at_most_one = [of_size(1, length), lambda each: 0.3 * (each.sum() == 1) / length + 0.7 * (each.sum() == 0)]
    assert max(map(softmax_spread, at_most_one)) < 1e-12
    assert min(map(softmax_spread, [of_size(2, length), of_size(3, length), independent])) > 1e-6
    assert elementwise_change(independent) < 1e-14
    assert min(map(elementwise_change, [*at_most_one, of_size(2, length)])) > 1e-6
    sink = float(Absent(length, snr, 0.3).bayes_sink)
    np.testing.assert_allclose(
        replace(sink_softmax, sink=sink).weights(math.sqrt(snr) * scores[0]),
        posterior(at_most_one[1], scores[0]),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        scipy.special.expit(math.sqrt(snr) * scores[0] - snr / 2 + math.log(0.3 / 0.7)),
        posterior(independent, scores[0]),
        rtol=1e-12,
    )


# --------------------------------------------------------------------------------------------------------- identities


def test_one_present_token_is_the_spiked_model(checked):
    for length, snr in ((2.0, 1.0), (100.0, 15.0), (1e12, 60.0)):
        expected = float(bayes_risk(Spiked(length, snr)))
        for task in (Several(length, 1, snr), Absent(length, snr, 1.0)):
            assert float(bayes_risk(task)) == pytest.approx(expected, rel=1e-10)
            assert float(best_risk(task, softmax)) == pytest.approx(expected, abs=1e-9)
    assert float(best_risk(Spiked(100.0, 15.0), sink_softmax)) == pytest.approx(
        float(bayes_risk(Spiked(100.0, 15.0))), rel=1e-10
    )


def test_numbers_of_the_specification():
    """L = 100, ν = 15 and r = 1, 2, 5, 10: softmax and element-wise weights, by an independent computation."""
    tasks = Several(np.full(4, 100.0), np.asarray([1.0, 2.0, 5.0, 10.0]), np.full(4, 15.0))
    np.testing.assert_allclose(best_risk(tasks, softmax), [0.1508, 0.3753, 0.3755, 0.3270], atol=6e-5)
    np.testing.assert_allclose(best_risk(tasks, sigmoid), [0.2477, 0.1986, 0.1427, 0.1070], atol=6e-5)
    assert float(best_risk(Absent(10, 8.0, 0.5), softmax)) == pytest.approx(0.467, abs=6e-4)
    assert float(best_risk(Absent(10, 8.0, 0.5), sink_softmax)) == pytest.approx(0.343, abs=6e-4)
    assert float(best_risk(Several(np.round(np.exp(30.0)), 4, 90.0), softmax)) == pytest.approx(0.682, abs=6e-4)


LONG = {
    "several": lambda: Several(1e12, 100.0, 60.0),
    "independent": lambda: Independent(1e12, 1e-10, 60.0),
    "absent": lambda: Absent(1e12, 60.0, 0.5),
}


@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_long_prompts(make):
    task = make()
    heads = [float(best_risk(task, each)) for each in (softmax, sigmoid, linear)]
    lower = float(bayes_risk_bounds(task)[0])
    assert all(lower - 1e-9 <= risk <= 1.0 for risk in heads)
    assert heads[1] == pytest.approx(_several.elementwise_bayes_risk(float(task.relevance), 60.0), rel=1e-12)


@pytest.mark.parametrize("kind", [Several, Independent, Absent])
def test_elementwise_heads_read_the_probability_only(checked, kind):
    task = {Several: lambda: Several(20, 4, 4.0), Independent: lambda: Independent(20, 0.2, 4.0),
            Absent: lambda: Absent(20, 4.0, 0.5)}[kind]()  # fmt: skip
    q = float(task.relevance)
    assert float(best_risk(task, linear)) == pytest.approx(1.0 / (1.0 / (1.0 - q) + 4.0 * q), rel=1e-12)
    overlaps = Overlaps(0.8, 0.9, 0.7, 0.6)
    scores = np.arange(-0.0, 12.0, 0.0005)
    density = [np.exp(-0.5 * ((scores - mean) / 0.9**0.5) ** 2) / math.sqrt(2 * math.pi * 0.9) for mean in (1.6, 0.0)]
    mean, square = 0.0005 * density[0] @ scores, [0.0005 * each @ scores**2 for each in density]
    expected = 1.0 - 2 * 0.7 * mean + 0.6 * (square[0] + (1.0 / q - 1.0) * square[1])
    assert float(attention_risk(task, relu, overlaps)) == pytest.approx(expected, abs=1e-6)
    assert float(best_risk(task, relu)) == pytest.approx(float(best_risk(Spiked(round(1 / q), 4.0), relu)), abs=1e-9)


@pytest.mark.parametrize(("length", "relevant"), [(10, 2), (10, 3), (10, 7), (9, 8), (50, 20)])
def test_simulated_risk_is_between_the_bounds(length, relevant):
    """In some cases r does not divide L. The risks also satisfy r E_r = (L - r) E_{L-r}."""
    task = Several(length, relevant, 3.0)
    lower, upper = (float(each) for each in bayes_risk_bounds(task))
    risk, error = (float(each) for each in simulate_bayes_risk(task, 20_000, key=jr.key(1)))
    assert lower - 4.5 * error <= risk <= upper + 4.5 * error
    if relevant < length:
        other = simulate_bayes_risk(Several(length, length - relevant, 3.0), 20_000, key=jr.key(2))
        ratio = (length - relevant) / relevant
        assert abs(risk - ratio * float(other[0])) <= 4.5 * math.hypot(error, ratio * float(other[1]))


def test_simulation_of_long_prompts():
    risk, error = simulate_bayes_risk(Several(10_000, 50, 20.0), 40, key=jr.key(0))
    lower, upper = bayes_risk_bounds(Several(10_000, 50, 20.0))
    assert float(lower) - 4.5 * float(error) < float(risk) < float(upper) + 4.5 * float(error)
    assert float(simulate_bayes_risk(Several(5, 5, 1.0), 10, key=jr.key(0))[0]) == 0.0


def test_area_under_the_risk_is_twice_the_entropy():
    """`∫ E dν = 2 H(A)/E|A|`: `(2/q) h(q)` for independent tokens, `2 (ln L + h(π)/π)` where one may be absent."""

    def entropy(p):
        return -p * math.log(p) - (1 - p) * math.log1p(-p)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    t, weights = 0.5 * (nodes + 1), 0.5 * weights
    snrs, jacobian = 150.0 * t**2, 300.0 * t
    for make, area in (
        (lambda snr: Independent(10.0, 0.2, snr), 10.0 * entropy(0.2)),
        (lambda snr: Absent(10.0, snr, 0.5), 2 * (math.log(10.0) + 2 * entropy(0.5))),
    ):
        risks = np.asarray([float(bayes_risk(make(snr))) for snr in snrs])
        assert weights @ (jacobian * risks) == pytest.approx(area, abs=1e-5)


def test_no_normalised_head_is_below_its_floor():
    floor = 0.5 / (0.5 + 0.5 * 10.0)
    risks = [float(best_risk(Absent(10.0, snr, 0.5), softmax)) for snr in (8.0, 100.0, 2500.0)]
    assert risks == sorted(risks, reverse=True)
    assert floor < risks[-1] < floor + 0.02


def test_without_a_signal_the_best_output_is_a_mean():
    for task in (Several(10.0, 2.0, 0.0), Independent(10.0, 0.2, 0.0), Absent(10.0, 0.0, 0.5)):
        q = float(task.relevance)
        assert [float(best_risk(task, each)) for each in (softmax, sigmoid, linear)] == pytest.approx([1 - q] * 3)


def test_a_stack_of_tasks_gives_a_stack_of_risks():
    stack = Absent(np.full((2, 1), 10.0), np.asarray([[1.0, 2.0, 3.0]]), np.asarray(0.5))
    risks = bayes_risk(stack)
    assert risks.shape == (2, 3)
    assert float(risks[1, 2]) == float(bayes_risk(Absent(10, 3.0, 0.5)))
    assert best_risk(stack, linear).shape == (2, 3)


# --------------------------------------------------------------------------------------------------------- bad input

nan, inf = math.nan, math.inf


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: Several(3, 4, 1.0),
            r"`Several\(relevant=\.\.\.\)` must be a whole number from 1 to.*Got 4",
        ),
        (lambda: Several(3, 0, 1.0), r"`Several\(relevant=\.\.\.\)` must be a whole number.*Got 0"),
        (lambda: Several(3, 1.5, 1.0), "whole number.*Got 1.5"),
        (lambda: Several(0, 1, 1.0), r"`Several\(length=\.\.\.\)` must be a whole number ≥ 1"),
        (lambda: Several("ten", 1, 1.0), "needs numbers.*Got 'ten'"),
        (lambda: Absent(None, 1.0, 0.5), "needs numbers.*Got None"),
        (lambda: Several(nan, 1, 1.0), r"`Several\(length=\.\.\.\)` must be a whole number ≥ 1"),
        (lambda: Several(3, 1, -1.0), r"`Several\(snr=\.\.\.\)` must be ≥ 0"),
        (lambda: Several(3, 1, inf), r"`Several\(snr=\.\.\.\)` must be ≥ 0, at most finite"),
        (
            lambda: Independent(3, 1.1, 1.0),
            r"`Independent\(probability=\.\.\.\)` must be a probability.*Got 1.1",
        ),
        (lambda: Independent(3, 0.0, 1.0), "probability above 0.*Got 0"),
        (lambda: Absent(3, 1.0, -0.1), r"`Absent\(present=\.\.\.\)` must be a probability above 0.*Got -0.1"),
        (lambda: bayes_risk(Several(10, 3, 1.0)), "`bayes_risk_bounds` or `simulate_bayes_risk`.*Got relevant = 3 of"),
        (lambda: best_risk(Several(10, 3, 1.0), softplus), "only `softmax` and `sink_softmax` are known.*Several"),
        (lambda: best_risk(Absent(10, 1.0, 0.5), hardmax), "only `softmax` and `sink_softmax` are known.*Absent"),
        (
            lambda: attention_risk(Several(5, 2, 1.0), softmax, Overlaps(1, 1, 1, 1, m_kv=0.1)),
            r"`attention_risk\(Several.*m_kv = m_vk = q_vk = 0",
        ),
        (
            lambda: attention_risk(Spiked(5, 1.0), sink_softmax, Overlaps(1, 1, 1, 1)),
            r"`Spiked\(length, snr\)` is `Several\(length, 1, snr\)`.*Got the task Spiked",
        ),
        (lambda: simulate_bayes_risk(Several(5, 2, 1.0), 1, key=jr.key(0)), "two prompts.*Got 1"),
        (lambda: simulate_bayes_risk(Several(5, 2, 900.0), 9, key=jr.key(0)), "ν ≤ 700.*900"),
        (lambda: jax.jit(bayes_risk)(Absent(5.0, 1.0, 0.5)), "computed by NumPy, which needs known numbers"),
        (lambda: jax.vmap(lambda snr: best_risk(Several(5, 2, snr), softmax))(jnp.ones(2)), "computed by NumPy"),
        (
            lambda: replica(
                Several(3, 2, 1.0), linear, noise_std=0.1, alpha=1.0, ridge=(1.0, 1.0), points=64, replicates=2
            ),
            "need `Spiked` or `Max`.*Got Several",
        ),
    ],
)
def test_bad_input_becomes_a_sentence(call, match):
    with pytest.raises(ValueError, match=match):
        call()
