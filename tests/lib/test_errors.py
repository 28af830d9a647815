"""Bad input becomes a sentence: which argument, which rule, why, and what came."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from lib.attention import Attention, attend, dependent_fluctuation, fluctuation, linear_attend, stream_attend
from lib.measures import (
    Empirical,
    Gaussian,
    GaussianMixture,
    Laplace,
    Pushforward,
    Rademacher,
    Uniform,
    empirical,
    tilted_cov,
    tilted_mean,
)

nan, inf = float("nan"), float("inf")
eye, ones = np.eye, np.ones


@pytest.fixture(autouse=True)
def as_users_see_it(float64, quick_compilation, unchecked):
    """Users have no run-time type checks: the library's own sentences must come, not beartype's."""


def raises(call, match):
    """`call` raises a `ValueError` that matches and says what came."""
    with pytest.raises(ValueError, match=match) as caught:
        call()
    assert "Got " in str(caught.value)


def components(k=2, d=3):
    return Gaussian(np.zeros((k, d)), np.stack([eye(d)] * k))


def stack(measure, k):
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * k), measure)


# ----------------------------------------------------------------------------------------------- measures

BAD_MEASURES = {
    "mean and cov of two dimensions": (
        lambda: Gaussian(ones(3), eye(2)),
        r"`Gaussian\(mean, cov\)`.*shape \(d, d\).*\(3,\) and \(2, 2\)",
    ),
    "variances for a cov": (lambda: Gaussian(ones(3), ones(3)), r"`Gaussian\(mean, cov\)`.*\(3,\) and \(3,\)"),
    "scalar mean": (lambda: Gaussian(np.array(1.0), eye(1)), r"`Gaussian\(mean, cov\)`.*\(\) and \(1, 1\)"),
    "no dimension": (lambda: Gaussian(ones(0), ones((0, 0))), r"`Gaussian\(.*\(0,\)"),
    "asymmetric cov": (
        lambda: Gaussian(ones(2), np.array([[1.0, 0.5], [0.25, 1.0]])),
        r"`Gaussian\(cov=\.\.\.\)` must be symmetric.*0\.25",
    ),
    "negative cov": (
        lambda: Gaussian(ones(2), np.diag([1.0, -0.125])),
        r"`Gaussian\(cov=\.\.\.\)` must have no negative eigenvalue.*variance.*-0\.125",
    ),
    "one bad cov of a stack": (
        lambda: Gaussian(ones((2, 2)), np.stack([eye(2), -eye(2)])),
        r"`Gaussian\(cov=\.\.\.\)` must have no negative eigenvalue.*-1",
    ),
    "nan in a mean": (
        lambda: Gaussian(np.array([1, nan]), eye(2)),
        r"`Gaussian\(mean=\.\.\.\)` must be finite.*1 NaN or infinite of 2",
    ),
    "inf in a cov": (
        lambda: Gaussian(ones(2), np.diag([inf, 1])),
        r"`Gaussian\(cov=\.\.\.\)` must be finite.*1 NaN or infinite of 4",
    ),
    "too few weights": (
        lambda: GaussianMixture(ones(3), components(2)),
        r"`GaussianMixture\(log_weights, components\)` needs one log-weight a component.*\(3,\).*\(2, 3\)",
    ),
    "components not stacked": (
        lambda: GaussianMixture(ones(3), Gaussian(ones(3), eye(3))),
        r"`GaussianMixture\(log_weights, components\)`.*\(3,\), means \(3,\)",
    ),
    "no component": (
        lambda: GaussianMixture(ones(0), Gaussian(np.zeros((0, 3)), np.zeros((0, 3, 3)))),
        r"`Gaussian.*\(0,",
    ),
    "nan weight": (
        lambda: GaussianMixture(np.array([nan, 0]), components()),
        r"`GaussianMixture\(log_weights=\.\.\.\)`.*nan",
    ),
    "infinite weight": (
        lambda: GaussianMixture(np.array([inf, 0]), components()),
        r"`GaussianMixture\(log_weights=\.\.\.\)`.*below \+inf.*inf",
    ),
    "no weight at all": (
        lambda: GaussianMixture(np.array([-inf, -inf]), components()),
        r"`GaussianMixture\(log_weights=\.\.\.\)`.*not all -inf.*-inf",
    ),
    "empty prompt": (
        lambda: Empirical(np.zeros((0, 3))),
        r"`Empirical\(points=\.\.\.\)` needs at least one token.*\(0, 3\)",
    ),
    "tokens of no dimension": (lambda: Empirical(np.zeros((3, 0))), r"`Empirical\(points=\.\.\.\)`.*\(3, 0\)"),
    "one token, not a row": (
        lambda: Empirical(ones(3)),
        r"`Empirical\(points=\.\.\.\)` needs one token per row.*\(3,\)",
    ),
    "nan token": (
        lambda: Empirical(np.array([[1, nan], [inf, 0]])),
        r"`Empirical\(points=\.\.\.\)` must be finite.*2 NaN or infinite of 4",
    ),
    "matrix of another dimension": (
        lambda: Pushforward(Rademacher(ones(3)), ones((2, 2)), ones(2)),
        r"`Pushforward\(measure, matrix, offset\)`.*d = 3.*\(2, 2\) and \(2,\)",
    ),
    "offset of another dimension": (
        lambda: Pushforward(Rademacher(ones(3)), ones((2, 3)), ones(3)),
        r"`Pushforward\(measure, matrix, offset\)`.*\(2, 3\) and \(3,\)",
    ),
    "nan matrix": (
        lambda: Pushforward(Rademacher(ones(2)), eye(2) * nan, ones(2)),
        r"`Pushforward\(matrix=\.\.\.\)` must be finite.*4 NaN",
    ),
    "nan offset": (
        lambda: Pushforward(Rademacher(ones(2)), eye(2), np.array([0, nan])),
        r"`Pushforward\(offset=\.\.\.\)` must be finite.*1 NaN",
    ),
    "prompt of no token": (
        lambda: empirical(Rademacher(ones(2)), 0, key=jr.key(0)),
        r"`empirical\(n=\.\.\.\)` must be a whole number ≥ 1.*Got 0",
    ),
    "prompt of minus one": (lambda: empirical(Rademacher(ones(2)), -1, key=jr.key(0)), r"whole number ≥ 1.*Got -1"),
    "prompt of two tokens and a half": (lambda: empirical(Rademacher(ones(2)), 2.5, key=jr.key(0)), r"Got 2\.5"),
}


@pytest.mark.parametrize("case", BAD_MEASURES)
def test_a_bad_measure_is_refused(case):
    call, match = BAD_MEASURES[case]
    raises(call, match)


@pytest.mark.parametrize(("law", "name"), [(Rademacher, "scale"), (Uniform, "halfwidth"), (Laplace, "scale")], ids=str)
@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.array([1.0, 0.0]), r"must be positive.*0\."),
        (np.array([1.0, -2.0]), r"must be positive.*-2\."),
        (np.array([1.0, nan]), "must be finite.*1 NaN"),
        (np.array([1.0, inf]), "must be finite.*1 NaN or infinite"),
        (np.array(1.0), r"shape \(d,\).*\(\)"),
        (np.ones(0), r"shape \(d,\).*\(0,\)"),
    ],
    ids=["zero", "negative", "nan", "inf", "scalar", "empty"],
)
def test_a_bad_scale_is_refused(law, name, value, match):
    raises(lambda: law(value), rf"`{law.__name__}\({name}=\.\.\.\)`.*{match}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_covariance_may_miss_by_rounding_and_no_more(dtype, size):
    """`d * eps(dtype) * largest eigenvalue`: accepted just inside, refused just outside."""
    tolerance = 3 * np.finfo(dtype).eps
    for miss, fits in ((0.9, True), (1.2, False)):
        negative = size * np.diag([1.0, 0.5, -miss * tolerance])
        skew = size * (np.diag([1.0, 0.5, 0.25]) + miss * tolerance * np.eye(3, k=2))
        for cov, match in ((negative, "no negative eigenvalue"), (skew, "must be symmetric")):
            if fits:
                assert Gaussian(np.zeros(3, dtype), cov.astype(dtype)).cov.dtype == dtype
            else:
                raises(lambda cov=cov: Gaussian(np.zeros(3, dtype), cov.astype(dtype)), match)


# -------------------------------------------------------------------------------------- heads and queries

HEAD = Attention(eye(3), ones((2, 3)))
LAW = Rademacher(ones(3))

VERBS = {
    "attend": attend,
    "linear_attend": linear_attend,
    "fluctuation": fluctuation,
    "stream_attend": lambda *args: stream_attend(*args, 5, key=jr.key(0), block=2),
}


@pytest.fixture(params=VERBS)
def verb(request):
    return VERBS[request.param]


def test_a_head_of_two_dimensions_is_refused():
    raises(lambda: Attention(eye(2), ones((1, 3))), r"`Attention\(bilinear, value\)`.*\(2, 2\) and \(1, 3\)")
    raises(lambda: Attention(eye(3), ones(3)), r"`Attention\(bilinear, value\)`.*\(3, 3\) and \(3,\)")


@pytest.mark.parametrize("name", ["bilinear", "value"])
@pytest.mark.parametrize("bad", [nan, inf])
def test_a_head_that_is_not_finite_is_refused(name, bad):
    matrices = {"bilinear": eye(3), "value": eye(3)}
    matrices[name][0, 1] = bad
    raises(lambda: Attention(**matrices), rf"`Attention\({name}=\.\.\.\)`.*finite")


def test_keys_and_queries_that_do_not_pair_are_refused():
    raises(
        lambda: Attention.from_kqv(ones((4, 3)), ones((5, 3)), eye(3)),
        r"`Attention.from_kqv\(key, query, value\)`.*same number of rows.*\(4, 3\) and \(5, 3\)",
    )
    raises(lambda: Attention.from_kqv(ones(3), ones(3), eye(3)), r"from_kqv.*\(3,\) and \(3,\)")


@pytest.mark.parametrize("shape", [(2,), (4,), (), (5, 3)], ids=str)
def test_a_query_of_another_shape_is_refused(verb, shape):
    raises(lambda: verb(HEAD, LAW, jnp.ones(shape)), rf"`query` must be a vector.*Got shape {re.escape(str(shape))}")


def test_tokens_of_another_dimension_are_refused(verb):
    with pytest.raises(ValueError, match=r"`params` acts on tokens of dimension 3.*`measure`.*dimension 2.*agree"):
        verb(HEAD, Rademacher(ones(2)), jnp.ones(3))


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_query_that_is_not_finite_is_refused(verb, bad):
    raises(lambda: verb(HEAD, LAW, jnp.array([0.0, bad, 0.0])), "finite")


STACKS = {
    "gaussians": Gaussian(np.zeros(3), eye(3)),
    "prompts": Empirical(ones((3, 3))),
    "signs": LAW,
    "boxes": Uniform(ones(3)),
    "laplaces": Laplace(0.1 * ones(3)),
    "mixtures": GaussianMixture(np.zeros(2), components()),
    "images": Pushforward(LAW, eye(3), ones(3)),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", STACKS)
def test_a_stack_is_refused_where_one_measure_is_needed(name, k):
    """One stack has as many measures as tokens have entries, so that broadcasting would return a wrong result."""
    bad = stack(STACKS[name], k)
    for call in (attend, linear_attend, fluctuation):
        with pytest.raises(ValueError, match=r"jax\.vmap"):
            call(HEAD, bad, jnp.full(3, 0.1))
    with pytest.raises(ValueError, match=r"jax\.vmap"):
        tilted_mean(bad, jnp.full(3, 0.1))


@pytest.mark.parametrize("function", [tilted_mean, tilted_cov])
@pytest.mark.parametrize("shape", [(2,), (), (1, 3)], ids=str)
def test_a_tilt_of_another_shape_is_refused(function, shape):
    raises(lambda: function(LAW, jnp.zeros(shape)), r"tilt ξ must be a vector.*R\^3.*Got shape \(")


@pytest.mark.parametrize("bad", [1.01, [0.5, nan], [[0.5]], [-2.0]], ids=str)
def test_correlations_that_are_none_are_refused(bad):
    gaussian = Gaussian(np.zeros(3), eye(3))
    message = r"`dependent_fluctuation\(correlations=\.\.\.\)` must be a vector .* in \[-1, 1\].*Got "
    raises(lambda: dependent_fluctuation(HEAD, gaussian, jnp.ones(3), jnp.asarray(bad)), message)


def test_a_stream_needs_tokens_and_blocks():
    for n, block, name, got in ((0, 4, "n", 0), (-3, 4, "n", -3), (4, 0, "block", 0)):
        raises(
            lambda n=n, block=block: stream_attend(HEAD, LAW, jnp.ones(3), n, key=jr.key(0), block=block),
            rf"`stream_attend\({name}=\.\.\.\)` must be a whole number ≥ 1.*Got {got}",
        )


# ------------------------------------------------------------------------------------------- out of domain

DOMAIN = r"tilt ξ must lie where Λ\(ξ\) = log E exp⟨ξ, z⟩ is finite"
WIDE = Laplace(ones(3))


@pytest.mark.parametrize("where", [1.0, -1.0, 1.5, 40.0])
@pytest.mark.parametrize("function", [tilted_mean, tilted_cov])
def test_a_tilt_outside_the_domain_is_refused_at_once(function, where):
    raises(lambda: function(WIDE, jnp.array([0.0, where, 0.0])), DOMAIN + r".*Got Λ = inf at ξ = \[")


def test_attention_outside_the_domain_is_refused_at_once():
    outside = jnp.array([0.0, 1.0, 0.2])
    raises(lambda: attend(HEAD, WIDE, outside), DOMAIN + ".*inf")
    raises(lambda: attend(HEAD, Pushforward(WIDE, eye(3), ones(3)), outside), DOMAIN)


def test_fluctuation_needs_twice_the_tilt_inside_the_domain():
    """Between half the pole and the pole attention exists and `L Cov` grows without bound."""
    query = jnp.array([0.0, 0.6, 0.2])
    assert jnp.isfinite(attend(HEAD, WIDE, query)).all()
    raises(lambda: fluctuation(HEAD, WIDE, query), DOMAIN + ".*Λ = inf.*1.2")
    assert jnp.isfinite(fluctuation(HEAD, WIDE, query * 0.8)).all()


@pytest.mark.parametrize(
    ("function", "inside", "outside"),
    [
        (lambda x: attend(HEAD, WIDE, x), 0.9, 1.0),
        (lambda x: fluctuation(HEAD, WIDE, x), 0.45, 0.5),
        (lambda x: tilted_mean(WIDE, x), 0.9, 1.0),
        (lambda x: tilted_cov(WIDE, x), 0.9, 1.0),
        (lambda x: attend(HEAD, LAW, x), 0.9, nan),
    ],
    ids=["attend", "fluctuation", "tilted_mean", "tilted_cov", "nan"],
)
def test_a_tilt_outside_the_domain_is_refused_inside_jit(function, inside, outside):
    """The message shows the rule, but not the values, which are traced."""
    jitted = eqx.filter_jit(function)
    assert jnp.isfinite(jitted(jnp.array([0.0, inside, 0.1]))).all()
    with pytest.raises(eqx.EquinoxRuntimeError, match=DOMAIN):
        jax.block_until_ready(jitted(jnp.array([0.0, outside, 0.1])))


def test_one_bad_query_of_a_batch_is_refused():
    batched = eqx.filter_jit(jax.vmap(lambda query: attend(HEAD, WIDE, query)))
    with pytest.raises(eqx.EquinoxRuntimeError, match=DOMAIN):
        jax.block_until_ready(batched(jnp.array([[0.0, 0.5, 0.0], [0.0, 0.0, 1.0]])))
