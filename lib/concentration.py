"""How far a finite prompt is from its law, in the mean over prompts and queries, and at which rate that falls.

[BB26, Prop. 3.1] and [BB26, Prop. 3.4] bound the mean square errors of outputs and gradients in L²(ν). Here they
are measured, for any token law μ and any query law ν: a gap is the integrand at one prompt and one query, an
`ErrorCurve` its mean at several lengths, `fit_rate` reads the exponent of a curve with its error, `fit_bound` the
constants that the propositions leave open, `tightest_bound` the least of them. Where all is Gaussian and isotropic,
`isotropic_error` is exact, and `sample_isotropic` draws what is random in it and nothing else.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpy.typing as npt
from jaxtyping import Array, Float, Int, Num, PRNGKeyArray, PyTree
from scipy.optimize import minimize_scalar
from scipy.special import gammaincc, gammaln

from lib._checks import as_float, require_count
from lib.attention import Attention, attend
from lib.batching import map_batched, tabulate
from lib.finite_prompt import score_statistics
from lib.measures import Empirical, Measure, empirical, tilted_cov, tilted_mean

# One number, or a pytree of several of the same prompt and query.
Gap = Callable[[Attention, Empirical, Measure, Float[Array, " q"]], PyTree[Float[Array, "..."]]]


def output_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """`‖T[prompt](z) - T[measure](z)‖²` [BB26, Prop. 3.1]."""
    return jnp.sum((attend(params, prompt, query) - attend(params, measure, query)) ** 2)


def value_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """`‖∇_V T[prompt](z) - ∇_V T[measure](z)‖²`, the Hilbert–Schmidt norm [BB26, Prop. 3.4].

    `T = V∇Λ(Uz)` is linear in V, and each of its e rows meets the same tilted mean: e times the gap of the means.
    """
    tilt = params.bilinear @ query
    return params.value.shape[0] * jnp.sum((tilted_mean(prompt, tilt) - tilted_mean(measure, tilt)) ** 2)


def bilinear_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """`‖∇_U T[prompt](z) - ∇_U T[measure](z)‖²`, the Hilbert–Schmidt norm [BB26, Prop. 3.4].

    In direction dU the output moves by `V ∇²Λ(Uz) dU z`: the gap of `V ∇²Λ`, entry by entry, times `‖z‖²`.
    """
    tilt = params.bilinear @ query
    covs = tilted_cov(prompt, tilt) - tilted_cov(measure, tilt)
    return jnp.sum((params.value @ covs) ** 2) * jnp.sum(query**2)


class ByImportance(eqx.Module):
    """`gap` of a query drawn from N(0, spread² I), weighted so that its mean is that over N(0, I).

    Where the mean over queries is carried by long ones, plain queries rest it on a handful of them, and the standard
    error, measured on the same handful, is too small. A wider law draws them more often; no weight passes spread^q.
    """

    gap: Gap
    spread: Float[Array, ""] = eqx.field(converter=as_float)

    def __call__(self, params, prompt, measure, query):
        """The gap of one prompt and one query, times the ratio of the densities at the query."""
        log_weight = query.size * jnp.log(self.spread) - (1 - self.spread**-2) / 2 * jnp.sum(query**2)
        return jax.tree.map(lambda value: jnp.exp(log_weight) * value, self.gap(params, prompt, measure, query))


@eqx.filter_jit
def sample_gaps(
    gap: Gap,
    params: Attention,
    measure: Measure,
    queries: Measure,
    lengths: Sequence[int],
    *,
    prompts: int,
    key: PRNGKeyArray,
    queries_per_prompt: int = 1,
    together: int = 2**18,
) -> PyTree[Float[Array, "prompts k ..."]]:
    """`gap` of `prompts` independent prompts at each of the k `lengths`: the first L tokens of one long prompt.

    An array of one row a prompt and one column a length, or the gap's pytree of such. Rows are independent, columns
    are not. Each prompt has `queries_per_prompt` fresh queries of its own and its row is the mean over them, so that
    the mean over rows is unbiased for prompts and queries and their standard error covers both. (A set of queries
    shared by all prompts would leave its own error out of that; where a fixed set is meant, pass it as
    `queries=Empirical(set)`.) Prompt i is drawn from `fold_in(key, i)`, whatever `prompts` is.
    About `together` numbers of prompts are held at once, and never less than one prompt.
    """
    prompts = require_count("sample_gaps", "prompts", prompts, "a mean is taken over them.")
    asked = require_count("sample_gaps", "queries_per_prompt", queries_per_prompt, "an error is that of an answer.")
    lengths = tuple(require_count("sample_gaps", "lengths", length, "no prompt is empty.") for length in lengths)
    if not lengths:
        raise ValueError("`sample_gaps(lengths=...)` needs at least one prompt length. Got none.")

    def one_prompt(index):
        prompt_key, query_key = jr.split(jr.fold_in(key, index))
        points = empirical(measure, max(lengths), key=prompt_key).points

        def one_query(query):
            gaps = [gap(params, Empirical(points[:length]), measure, query) for length in lengths]
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), *gaps)

        by_query = jax.vmap(one_query)(queries.sample(asked, key=query_key))
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), by_query)

    size = max(lengths) * (measure.dimension + asked)
    return map_batched(one_prompt, jnp.arange(prompts), size=size, together=together)


class ErrorCurve(eqx.Module):
    """Mean errors at several lengths, and the covariance of these means: lengths may share prompts. NumPy arrays."""

    lengths: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    cov: Float[np.ndarray, "k k"]

    @property
    def std_error(self) -> Float[np.ndarray, " k"]:
        """Of each mean."""
        return np.sqrt(np.diagonal(self.cov))

    def deviations(self, expected: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Distances of the means from `expected`, in standard errors."""
        return np.abs(self.mean - expected) / self.std_error


def error_curve(lengths: Sequence[int], samples: npt.ArrayLike) -> ErrorCurve:
    """The means over rows of `sample_gaps`, one column a length, and the covariance of rows over their number."""
    rows = np.asarray(samples)
    if rows.ndim != 2 or rows.shape[0] <= rows.shape[1] or len(lengths) != rows.shape[1]:
        raise ValueError(
            "`error_curve(lengths, samples)` needs one column a length and more rows than columns, because the means' "
            f"covariance is estimated from the rows. Got {len(lengths)} lengths and samples of shape {rows.shape}."
        )
    cov = np.atleast_2d(np.cov(rows, rowvar=False)) / len(rows)
    return ErrorCurve(np.asarray(lengths), rows.mean(axis=0), cov)


class Rate(eqx.Module):
    """`error ∝ L^-exponent`, its standard error, and the chance of a worse fit if the curve fitted is the true one."""

    exponent: float
    std_error: float
    p_value: float

    def interval(self, quantile: float = 1.96) -> tuple[float, float]:
        """`exponent ± quantile · std_error`; 1.96 for 95 %."""
        return self.exponent - quantile * self.std_error, self.exponent + quantile * self.std_error


Bend = Callable[[Float[np.ndarray, " k"]], Float[np.ndarray, " k"]]


def one_over_length(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """`1/L`: the first correction to a law with an expansion in 1/L."""
    return 1 / length


def log_log_length(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """`ln ln L`, for a power of ln L beside the power of L; needs L ≥ 2."""
    return np.log(np.log(length))


def fit_rate(curve: ErrorCurve, *bends: Bend) -> Rate:
    """The β of `ln error = c - β ln L + Σ_j γ_j bend_j(L)`, by generalised least squares.

    A straight line through a curve has a slope with a small error and the wrong value. So the bend is fitted along,
    as `one_over_length`, `log_log_length`, or both, and what is not known of it widens the error of β, which
    comes from the full covariance of the means (delta method; the mean of a logarithm is corrected to second order).
    It is honest where the true curve is among those fitted: a small `p_value` says that it is not, a large one that
    the data cannot tell. Not to be trusted where a handful of rare prompts carries a mean, nor for prompts not many
    times more numerous than lengths. Needs more lengths than coefficients.
    """
    if len(curve.mean) <= 2 + len(bends):
        raise ValueError(
            f"`fit_rate` fits {2 + len(bends)} coefficients and needs more lengths than that, because what is left "
            f"over tells whether the curve fits. Got {len(curve.mean)}."
        )
    length = curve.lengths.astype(float)
    basis = np.stack([-np.log(length), np.ones_like(length), *(bend(length) for bend in bends)], axis=1)
    cov = curve.cov / np.outer(curve.mean, curve.mean)
    logs = np.log(curve.mean) + np.diagonal(cov) / 2
    root = np.linalg.cholesky(cov)
    white_basis, white_logs = np.linalg.solve(root, basis), np.linalg.solve(root, logs)
    inverse = np.linalg.pinv(white_basis)
    coefficients = inverse @ white_logs
    misfit = np.sum((white_logs - white_basis @ coefficients) ** 2)
    freedom = len(length) - basis.shape[1]
    return Rate(float(coefficients[0]), float(np.linalg.norm(inverse[0])), float(gammaincc(freedom / 2, misfit / 2)))


def straight_exponents(
    lengths: Num[np.ndarray, " k"] | Sequence[int], errors: Float[np.ndarray, "*rows k"]
) -> Float[np.ndarray, "*rows"]:
    """Of each row: minus the slope of the straight line through `ln error` against `ln L`, by least squares.

    All lengths weigh the same, and no bend is fitted: for curves without an error bar (see `fit_rate`).
    """
    logs = np.log(np.asarray(lengths, float))
    centred = logs - logs.mean()
    return np.asarray(-(np.log(errors) @ centred) / (centred @ centred))


class BoundShape(eqx.Module):
    """`c₁ σ^p (ln L)^q / L^{c₂/σ²}`: p = 6, q = 1 for outputs and ∇_V, p = 12, q = 2 for ∇_U [BB26, Prop. 3.1, 3.4].

    At L = 1 it is zero, which no error is: read it for L ≥ 2.
    """

    c1: float
    c2: float
    sigma_power: int
    log_power: int

    def __call__(
        self, sigma: float | Float[np.ndarray, "..."], length: float | Num[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """The right side, for σ and L that broadcast."""
        log_length = np.log(length)
        decay = np.exp(-self.c2 / np.square(sigma) * log_length)
        return np.asarray(self.c1 * sigma**self.sigma_power * log_length**self.log_power * decay)


def fit_bound(
    sigmas: Sequence[float],
    lengths: Num[np.ndarray, " k"],
    errors: Float[np.ndarray, "s k"],
    *,
    sigma_power: int = 6,
    log_power: int = 1,
) -> BoundShape:
    """One pair of constants for all σ: the propositions say that there is one, not which.

    c₂ is the smallest `σ² · slope` over σ, the slopes those of straight lines through `ln error` against `ln L`; c₁
    the smallest constant that bounds all errors given. A fit, not the paper's constants: nothing follows from it
    for lengths beyond those given, which is what makes it worth trying there.
    """
    c2 = float(np.min(np.square(sigmas) * straight_exponents(lengths, errors)))
    return _touching(BoundShape(1.0, c2, sigma_power, log_power), sigmas, lengths, errors)


def _touching(shape: BoundShape, sigmas: Sequence[float], lengths: Num[np.ndarray, " k"], errors) -> BoundShape:
    """With the smallest c₁ that bounds all errors given."""
    unit = BoundShape(1.0, shape.c2, shape.sigma_power, shape.log_power)(np.asarray(sigmas)[:, None], lengths)
    return BoundShape(float(np.max(errors / unit)), shape.c2, shape.sigma_power, shape.log_power)


def tightest_bound(
    sigmas: Sequence[float],
    lengths: Num[np.ndarray, " k"],
    errors: Float[np.ndarray, "s k"],
    *,
    sigma_power: int = 6,
    log_power: int = 1,
) -> BoundShape:
    """Of all pairs of constants that bound the errors given, the one whose `looseness`, log-convex in c₂, is least."""

    def touching(c2: float) -> BoundShape:
        return _touching(BoundShape(1.0, c2, sigma_power, log_power), sigmas, lengths, errors)

    def loosest(c2: float) -> float:
        return looseness(touching(c2)(np.asarray(sigmas)[:, None], lengths), errors)

    # a c₂ beyond the steepest slope, at the largest σ, only lifts c₁
    most = np.max(np.square(sigmas)) * max(np.max(straight_exponents(lengths, errors)), 1.0)
    return touching(float(minimize_scalar(loosest, bounds=(0.0, most), options={"xatol": 1e-10}).x))  # pyright: ignore[reportAttributeAccessIssue]


def looseness(bound: Float[np.ndarray, "..."], errors: Float[np.ndarray, "..."]) -> float:
    """How many powers of ten the bound lies above the errors, where it does most."""
    return float(np.log10(np.max(bound / errors)))


# The largest share of a mean that the nodes of a radial table may miss, at their density and at their end.
UNRESOLVED = 1e-6


class RadialTable(eqx.Module):
    """lib.finite_prompt at the nodes of a quadrature in τ (rows) and at several lengths (columns). NumPy arrays.

    For averages over the length of a query. `lib.icl.ScoreTable` is of one length, and can be asked at any τ.
    """

    tau: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, "n k"]
    score_error: Float[np.ndarray, "n k"]


def radial_table(log_lengths: npt.ArrayLike, *, largest_tau: float = 20.0, nodes: int = 64) -> RadialTable:
    """Gauss–Legendre nodes on [0, largest_tau]: one table serves every dimension and every H; 1 to 2 ms an entry."""
    x, weight = np.polynomial.legendre.leggauss(nodes)
    tau = 0.5 * largest_tau * (1 + x)
    exact = tabulate(score_statistics, tau[:, None] ** 2, np.asarray(log_lengths, float))
    return RadialTable(tau, 0.5 * largest_tau * weight, exact.participation, exact.score_error)


def isotropic_error(table: RadialTable, operator_norm: float, dimension: int) -> Float[np.ndarray, " k"]:
    """Return `E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)} / σ²` for μ = N(m, σ²I_d), ν = N(0, I_d), U = (H/σ)I, V = I.

    `output_error` is then `σ²(Q + (d - 1)P)` at τ = H‖z‖, and only the length of the query is left to average over.

    Args:
      table: the nodes in τ and the lengths.
      operator_norm: H; the default table resolves 0.4 ≤ H ≤ 2. Smaller H need more nodes, larger H and L a larger
        `largest_tau`, because the mean is carried by queries up to τ² = 2 ln L and beyond.
      dimension: d; the default table resolves d ≤ 16 at ln L ≤ 28.

    Returns:
      The error, one number per length of the table: relative error below 2e-6 with the default table in the domain
      above. NaN at all lengths where the nodes miss the total probability of τ by 1e-6, and at those where the last
      twentieth of the range of τ contributes more than 1e-6 of the mean.

    Source: derived here, see book/output_concentration.
    """
    mass = _radial_mass(table, operator_norm, dimension)
    terms = mass[:, None] * (table.score_error + (dimension - 1) * table.participation)
    errors = terms.sum(axis=0)
    last = table.tau > 0.95 * table.tau[-1]
    resolved = (abs(mass.sum() - 1) < UNRESOLVED) & (terms[last].sum(axis=0) < UNRESOLVED * errors)
    return np.where(resolved, errors, np.nan)


def sample_isotropic(
    table: RadialTable,
    operator_norm: float,
    dimensions: Sequence[int],
    lengths: Sequence[int],
    *,
    prompts: int,
    key: PRNGKeyArray,
) -> Float[Array, "prompts d k"]:
    """What `isotropic_error` is the mean of, given the L scores of each of `prompts` prompts and nothing else of them.

    `Σ_j mass_j ((ĝ - τ_j)² + (d - 1) Σ p²)` over the nodes of the table: averaged exactly over the rest of the tokens
    and over the length of the query. Prompt i, from `fold_in(key, i)`, serves all dimensions and lengths.
    """
    masses = jnp.asarray([_radial_mass(table, operator_norm, d) for d in dimensions])
    others, tau = jnp.asarray(dimensions) - 1, jnp.asarray(table.tau)

    def one_prompt(index):
        scores = jr.normal(jr.fold_in(key, index), (max(lengths),), tau.dtype)

        def at_length(length):
            weights = jax.nn.softmax(tau[:, None] * scores[:length], axis=1)
            misses, shares = (weights @ scores[:length] - tau) ** 2, jnp.sum(weights**2, axis=1)
            return masses @ misses + others * (masses @ shares)

        return jnp.stack([at_length(length) for length in lengths], axis=1)

    return map_batched(one_prompt, jnp.arange(prompts), size=max(lengths) * tau.size)


def _radial_mass(table: RadialTable, operator_norm: float, dimension: int) -> Float[np.ndarray, " n"]:
    """Weights of the nodes in the mean over τ = H‖z‖, z ~ N(0, I_d)."""
    return table.weight * np.exp(log_chi_density(table.tau / operator_norm, dimension)) / operator_norm


def log_chi_density(radius: Float[np.ndarray, "..."], dimension: int) -> Float[np.ndarray, "..."]:
    """The logarithm of the density of ‖z‖ for z ~ N(0, I_d), at positive radii."""
    half = dimension / 2
    return (dimension - 1) * np.log(radius) - radius**2 / 2 - (half - 1) * np.log(2) - gammaln(half)
