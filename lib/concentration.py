"""The mean error of a finite prompt over prompts and queries, and the rate at which it falls with the length.

[BB26, Prop. 3.1] and [BB26, Prop. 3.4] bound the mean square errors of outputs and gradients in L²(ν). Here they are
measured, for any distribution μ of tokens and any distribution ν of queries: a gap is the integrand at one prompt and
one query, an `ErrorCurve` is its mean at several lengths, `fit_rate` estimates the exponent of a curve with its error,
`fit_bound` the constants that the propositions leave open, `tightest_bound` the smallest of them. For isotropic
Gaussians `isotropic_error` is exact, and `sample_isotropic` draws the scores alone.
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

from lib._checks import as_float, public, require_count
from lib.attention import Attention, attend
from lib.batching import map_batched, tabulate
from lib.finite_prompt import score_statistics
from lib.measures import Empirical, Measure, empirical, tilted_cov, tilted_mean

# One number, or a pytree of several of the same prompt and query.
Gap = Callable[[Attention, Empirical, Measure, Float[Array, " q"]], PyTree[Float[Array, "..."]]]


@public
def output_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """Return `‖T[μ̂](z) - T[μ](z)‖²`, the square error of the output.

    Args:
      params: the head.
      prompt: the finite prompt μ̂.
      measure: the distribution μ of tokens.
      query: z, shape (q,).

    Returns:
      The square error, shape ().

    Raises:
      ValueError: as `lib.attention.attend`.

    Source: [BB26, Prop. 3.1]. Transformations: jit, vmap, grad.
    """
    return jnp.sum((attend(params, prompt, query) - attend(params, measure, query)) ** 2)


@public
def value_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """Return `‖∇_V T[μ̂](z) - ∇_V T[μ](z)‖²` in the Hilbert–Schmidt norm.

    `T = V∇Λ(Uz)` is linear in V, and each of its e rows multiplies the same tilted mean: e times the square gap of the
    means.

    Args:
      params: the head.
      prompt: the finite prompt μ̂.
      measure: the distribution μ of tokens.
      query: z, shape (q,).

    Returns:
      The square error, shape ().

    Raises:
      ValueError: as `lib.measures.tilted_mean`.

    Source: [BB26, Prop. 3.4]. Transformations: jit, vmap, grad.
    """
    tilt = params.bilinear @ query
    return params.value.shape[0] * jnp.sum((tilted_mean(prompt, tilt) - tilted_mean(measure, tilt)) ** 2)


@public
def bilinear_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """Return `‖∇_U T[μ̂](z) - ∇_U T[μ](z)‖²` in the Hilbert–Schmidt norm.

    In direction dU the output moves by `V ∇²Λ(Uz) dU z`: the square gap of `V ∇²Λ`, summed over its entries, times
    `‖z‖²`.

    Args:
      params: the head.
      prompt: the finite prompt μ̂.
      measure: the distribution μ of tokens.
      query: z, shape (q,).

    Returns:
      The square error, shape ().

    Raises:
      ValueError: as `lib.measures.tilted_cov`.

    Source: [BB26, Prop. 3.4]. Transformations: jit, vmap, grad.
    """
    tilt = params.bilinear @ query
    covs = tilted_cov(prompt, tilt) - tilted_cov(measure, tilt)
    return jnp.sum((params.value @ covs) ** 2) * jnp.sum(query**2)


class ByImportance(eqx.Module):
    """A gap at a query drawn from N(0, spread² I), weighted so that its mean is that over queries N(0, I).

    Where long queries carry the mean, few of the queries of N(0, I) are that long, and the standard error, measured on
    the same few, is too small. A wider distribution draws them more often. No weight exceeds `spread**q`.

    Args:
      gap: the gap to weight.
      spread: standard deviation of the queries' coordinates, shape (), spread ≥ 1.
    """

    gap: Gap
    spread: Float[Array, ""] = eqx.field(converter=as_float)

    @public
    def __call__(
        self, params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]
    ) -> PyTree[Float[Array, "..."]]:
        """Return the gap times the ratio of the densities of N(0, I) and N(0, spread² I) at the query.

        Args:
          params: the head.
          prompt: the finite prompt.
          measure: the distribution of tokens.
          query: z, shape (q,), drawn from N(0, spread² I).

        Returns:
          The weighted gap, a pytree like that of `gap`.

        Transformations: jit, vmap, grad.
        """
        log_weight = query.size * jnp.log(self.spread) - (1 - self.spread**-2) / 2 * jnp.sum(query**2)
        return jax.tree.map(lambda value: jnp.exp(log_weight) * value, self.gap(params, prompt, measure, query))


@public
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
    numbers_at_once: int = 2**18,
) -> PyTree[Float[Array, "prompts k ..."]]:
    """Return gaps of independent prompts at several lengths: the first L tokens of one long prompt, for each L.

    Rows are independent, columns are not. Each prompt has fresh queries, and its row is the mean over them, so that the
    mean over rows is unbiased for prompts and queries, and its standard error covers both. (A set of queries that all
    prompts share would leave its own error out; for a fixed set pass `queries=Empirical(set)`.) Prompt i is drawn from
    `fold_in(key, i)`, for any number of prompts. The function is jitted.

    Args:
      gap: a function of a head, a prompt, the distribution of tokens and a query, such as `output_gap`.
      params: the head.
      measure: the distribution μ of tokens.
      queries: the distribution ν of queries.
      lengths: k prompt lengths, whole numbers ≥ 1; static.
      prompts: number of prompts; static.
      key: JAX random key.
      queries_per_prompt: number of queries of each prompt; static.
      numbers_at_once: how many numbers of prompts are in memory at once, at least one prompt; batches follow one after
        the other (see `lib.batching.map_batched`).

    Returns:
      An array of shape (prompts, k), or a pytree of such arrays if `gap` returns a pytree.

    Raises:
      ValueError: if a count is not a whole number ≥ 1, or there is no length.

    Transformations: jit, vmap, grad.
    """
    prompts = require_count("sample_gaps", "prompts", prompts, "a mean is taken over them.")
    query_count = require_count(
        "sample_gaps", "queries_per_prompt", queries_per_prompt, "an error is that of an answer."
    )
    lengths = tuple(require_count("sample_gaps", "lengths", length, "no prompt is empty.") for length in lengths)
    if not lengths:
        raise ValueError("`sample_gaps(lengths=...)` needs at least one prompt length. Got none.")

    def one_prompt(index):
        prompt_key, query_key = jr.split(jr.fold_in(key, index))
        points = empirical(measure, max(lengths), key=prompt_key).points

        def one_query(query):
            gaps = [gap(params, Empirical(points[:length]), measure, query) for length in lengths]
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), *gaps)

        by_query = jax.vmap(one_query)(queries.sample(query_count, key=query_key))
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), by_query)

    size = max(lengths) * (measure.dimension + query_count)
    return map_batched(one_prompt, jnp.arange(prompts), size=size, numbers_at_once=numbers_at_once)


class ErrorCurve(eqx.Module):
    """Mean errors at several lengths, and the covariance of these means, since lengths may share prompts. NumPy arrays.

    Attributes:
      lengths: prompt lengths, shape (k,).
      mean: mean errors, shape (k,).
      cov: covariance of the means, shape (k, k).
    """

    lengths: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    cov: Float[np.ndarray, "k k"]

    @property
    def std_error(self) -> Float[np.ndarray, " k"]:
        """The standard error of each mean."""
        return np.sqrt(np.diagonal(self.cov))

    @public
    def deviations(self, expected: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return `|mean - expected| / std_error`.

        Args:
          expected: the expected means, shape (k,).

        Returns:
          The deviations in standard errors, shape (k,).
        """
        return np.abs(self.mean - expected) / self.std_error


@public
def error_curve(lengths: Sequence[int], samples: npt.ArrayLike) -> ErrorCurve:
    """Return the mean over the rows of `sample_gaps` and its covariance.

    Args:
      lengths: the k prompt lengths.
      samples: one column per length, shape (n, k), n > k.

    Returns:
      The curve, in NumPy arrays.

    Raises:
      ValueError: if shapes do not fit or there are not more rows than columns.
    """
    rows = np.asarray(samples)
    if rows.ndim != 2 or rows.shape[0] <= rows.shape[1] or len(lengths) != rows.shape[1]:
        raise ValueError(
            "`error_curve(lengths, samples)` needs one column per length and more rows than columns, because the "
            f"covariance of the means is estimated from the rows. Got {len(lengths)} lengths and samples of shape "
            f"{rows.shape}."
        )
    cov = np.atleast_2d(np.cov(rows, rowvar=False)) / len(rows)
    return ErrorCurve(np.asarray(lengths), rows.mean(axis=0), cov)


class Rate(eqx.Module):
    """The exponent β of `error ∝ L^-β`, as `fit_rate` estimates it. Python numbers.

    Attributes:
      exponent: β.
      std_error: its standard error.
      p_value: the probability of a worse fit if the fitted curve is the true one.
    """

    exponent: float
    std_error: float
    p_value: float

    def interval(self, quantile: float = 1.96) -> tuple[float, float]:
        """Return `exponent ± quantile · std_error`.

        Args:
          quantile: half the width in standard errors; 1.96 for 95 %.

        Returns:
          The two ends.
        """
        return self.exponent - quantile * self.std_error, self.exponent + quantile * self.std_error


# A function of the lengths that `fit_rate` adds to the straight line.
Correction = Callable[[Float[np.ndarray, " k"]], Float[np.ndarray, " k"]]


@public
def one_over_length(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Return `1/L`, the first correction to a power law with an expansion in 1/L.

    Args:
      length: prompt lengths, shape (k,).

    Returns:
      The correction, shape (k,).
    """
    return 1 / length


@public
def log_log_length(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Return `ln ln L`, the correction for a power of ln L that multiplies the power of L.

    Args:
      length: prompt lengths L ≥ 2, shape (k,).

    Returns:
      The correction, shape (k,).
    """
    return np.log(np.log(length))


@public
def fit_rate(curve: ErrorCurve, *corrections: Correction) -> Rate:
    """Fit `ln error = c - β ln L + Σ_j γ_j correction_j(L)` by generalised least squares and return β.

    A straight line through a curve has a slope with a small error and the wrong value. So corrections are fitted along,
    as `one_over_length`, `log_log_length`, or both, and their uncertainty widens the error of β, which comes from the
    full covariance of the means (delta method; the mean of a logarithm is corrected to second order). The error is
    valid if the true curve is among those fitted: a small `p_value` shows that it is not, a large one that the data
    cannot tell. The fit is not valid where a few rare prompts carry a mean, or where prompts are not many times more
    numerous than lengths.

    Args:
      curve: mean errors and their covariance, at more lengths than coefficients.
      *corrections: functions of the lengths that are added to the straight line.

    Returns:
      β with its standard error, and the p-value of the fit.

    Raises:
      ValueError: if there are not more lengths than coefficients.
    """
    if len(curve.mean) <= 2 + len(corrections):
        raise ValueError(
            f"`fit_rate` fits {2 + len(corrections)} coefficients and needs more lengths than that, because the "
            f"residual shows whether the curve fits. Got {len(curve.mean)}."
        )
    length = curve.lengths.astype(float)
    basis = np.stack(
        [-np.log(length), np.ones_like(length), *(correction(length) for correction in corrections)], axis=1
    )
    cov = curve.cov / np.outer(curve.mean, curve.mean)
    logs = np.log(curve.mean) + np.diagonal(cov) / 2
    root = np.linalg.cholesky(cov)
    white_basis, white_logs = np.linalg.solve(root, basis), np.linalg.solve(root, logs)
    inverse = np.linalg.pinv(white_basis)
    coefficients = inverse @ white_logs
    misfit = np.sum((white_logs - white_basis @ coefficients) ** 2)
    freedom = len(length) - basis.shape[1]
    return Rate(float(coefficients[0]), float(np.linalg.norm(inverse[0])), float(gammaincc(freedom / 2, misfit / 2)))


@public
def straight_exponents(
    lengths: Num[np.ndarray, " k"] | Sequence[int], errors: Float[np.ndarray, "*rows k"]
) -> Float[np.ndarray, "*rows"]:
    """Return minus the slope of the least-squares line through `ln error` against `ln L`, for each row.

    All lengths have the same weight and no correction is fitted: for curves without error bars (see `fit_rate`).

    Args:
      lengths: prompt lengths, shape (k,).
      errors: positive errors, shape (..., k).

    Returns:
      The exponents, shape (...).
    """
    logs = np.log(np.asarray(lengths, float))
    centred = logs - logs.mean()
    return np.asarray(-(np.log(errors) @ centred) / (centred @ centred))


class BoundShape(eqx.Module):
    """The bound `c₁ σ^p (ln L)^q / L^{c₂/σ²}` of [BB26, Prop. 3.1, 3.4]. Python numbers.

    p = 6 and q = 1 for outputs and $∇_V$, p = 12 and q = 2 for $∇_U$. At L = 1 it is zero, which no error is: use it
    for L ≥ 2.

    Attributes:
      c1: the factor c₁.
      c2: the constant c₂ in the exponent.
      sigma_power: p.
      log_power: q.
    """

    c1: float
    c2: float
    sigma_power: int
    log_power: int

    @public
    def __call__(
        self, sigma: float | Float[np.ndarray, "..."], length: float | Num[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """Return the bound at σ and L, which broadcast.

        Args:
          sigma: σ, positive.
          length: prompt length L ≥ 2.

        Returns:
          The bound, of the broadcast shape.
        """
        log_length = np.log(length)
        decay = np.exp(-self.c2 / np.square(sigma) * log_length)
        return np.asarray(self.c1 * sigma**self.sigma_power * log_length**self.log_power * decay)


@public
def fit_bound(
    sigmas: Sequence[float],
    lengths: Num[np.ndarray, " k"],
    errors: Float[np.ndarray, "s k"],
    *,
    sigma_power: int = 6,
    log_power: int = 1,
) -> BoundShape:
    """Return one pair of constants for all σ: the propositions state that there is one, but not which.

    c₂ is the smallest `σ² · slope` over σ, with the slopes of straight lines through `ln error` against `ln L`; c₁ is
    the smallest constant that bounds all given errors. It is a fit, not the paper's constants, and need not hold at
    other lengths.

    Args:
      sigmas: values of σ, shape (s,).
      lengths: prompt lengths L ≥ 2, shape (k,).
      errors: measured errors, shape (s, k).
      sigma_power: p of the bound.
      log_power: q of the bound.

    Returns:
      The bound with the fitted constants.
    """
    c2 = float(np.min(np.square(sigmas) * straight_exponents(lengths, errors)))
    return _touching(BoundShape(1.0, c2, sigma_power, log_power), sigmas, lengths, errors)


def _touching(shape: BoundShape, sigmas: Sequence[float], lengths: Num[np.ndarray, " k"], errors) -> BoundShape:
    """Return the bound with the smallest c₁ that bounds all given errors."""
    unit = BoundShape(1.0, shape.c2, shape.sigma_power, shape.log_power)(np.asarray(sigmas)[:, None], lengths)
    return BoundShape(float(np.max(errors / unit)), shape.c2, shape.sigma_power, shape.log_power)


@public
def tightest_bound(
    sigmas: Sequence[float],
    lengths: Num[np.ndarray, " k"],
    errors: Float[np.ndarray, "s k"],
    *,
    sigma_power: int = 6,
    log_power: int = 1,
) -> BoundShape:
    """Return, of all pairs of constants that bound the errors, the one whose `looseness` is least.

    The looseness is log-convex in c₂, so that a bounded scalar search finds its minimum.

    Args:
      sigmas: values of σ, shape (s,).
      lengths: prompt lengths L ≥ 2, shape (k,).
      errors: measured errors, shape (s, k).
      sigma_power: p of the bound.
      log_power: q of the bound.

    Returns:
      The bound with the best constants.
    """

    def touching(c2: float) -> BoundShape:
        return _touching(BoundShape(1.0, c2, sigma_power, log_power), sigmas, lengths, errors)

    def loosest(c2: float) -> float:
        return looseness(touching(c2)(np.asarray(sigmas)[:, None], lengths), errors)

    # a c₂ beyond the steepest slope, at the largest σ, only lifts c₁
    most = np.max(np.square(sigmas)) * max(np.max(straight_exponents(lengths, errors)), 1.0)
    return touching(float(minimize_scalar(loosest, bounds=(0.0, most), options={"xatol": 1e-10}).x))  # pyright: ignore[reportAttributeAccessIssue]


@public
def looseness(bound: Float[np.ndarray, "..."], errors: Float[np.ndarray, "..."]) -> float:
    """Return `max log₁₀(bound / error)`, the largest distance of a bound from the errors in powers of ten.

    Args:
      bound: the bound, any shape.
      errors: the errors, of the same shape.

    Returns:
      The looseness.
    """
    return float(np.log10(np.max(bound / errors)))


# The largest share of a mean that the nodes of a radial table may miss, at their density and at their end.
LARGEST_MISSED_SHARE = 1e-6


class RadialTable(eqx.Module):
    """Participation and score error at the nodes of a quadrature in τ (rows) and at several lengths (columns).

    For averages over the length of a query, in NumPy arrays. `lib.icl.ScoreTable` has one length and any τ.

    Attributes:
      tau: nodes in τ, shape (n,).
      weight: weights of the quadrature, shape (n,).
      participation: P = E Σ p², shape (n, k).
      score_error: Q = E (ĝ - τ)², shape (n, k).
    """

    tau: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, "n k"]
    score_error: Float[np.ndarray, "n k"]


@public
def radial_table(log_lengths: npt.ArrayLike, *, largest_tau: float = 20.0, nodes: int = 64) -> RadialTable:
    """Return the table at Gauss–Legendre nodes on [0, largest_tau]; it serves every dimension and every H.

    Args:
      log_lengths: natural logarithms of the prompt lengths, shape (k,), each between 0 and 330.
      largest_tau: the end of the range, at most 30.
      nodes: number of nodes n.

    Returns:
      The table; 1 to 2 ms per entry.

    Raises:
      ValueError: if float64 is off.
    """
    x, weight = np.polynomial.legendre.leggauss(nodes)
    tau = 0.5 * largest_tau * (1 + x)
    exact = tabulate(score_statistics, tau[:, None] ** 2, np.asarray(log_lengths, float))
    return RadialTable(tau, 0.5 * largest_tau * weight, exact.participation, exact.score_error)


@public
def isotropic_error(table: RadialTable, operator_norm: float, dimension: int) -> Float[np.ndarray, " k"]:
    """Return `E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)} / σ²` for $μ = N(m, σ²I_d)$, $ν = N(0, I_d)$, U = (H/σ)I, V = I.

    `output_error` is then `σ²(Q + (d - 1)P)` at τ = H‖z‖, and only the average over the length of the query is left.

    Args:
      table: the nodes in τ and the lengths.
      operator_norm: H; the default table resolves 0.4 ≤ H ≤ 2. Smaller H need more nodes, larger H and L a larger
        `largest_tau`, because queries up to τ² = 2 ln L and beyond carry the mean.
      dimension: d; the default table resolves d ≤ 16 at ln L ≤ 28.

    Returns:
      The error, one number per length of the table: relative error below 2e-6 with the default table in the domain
      above. NaN at all lengths where the nodes miss the total probability of τ by 1e-6, and at those where the last
      twentieth of the range of τ contributes more than 1e-6 of the mean.

    Source: derived here, see book/concentration.
    """
    mass = _radial_mass(table, operator_norm, dimension)
    terms = mass[:, None] * (table.score_error + (dimension - 1) * table.participation)
    errors = terms.sum(axis=0)
    last = table.tau > 0.95 * table.tau[-1]
    resolved = (abs(mass.sum() - 1) < LARGEST_MISSED_SHARE) & (terms[last].sum(axis=0) < LARGEST_MISSED_SHARE * errors)
    return np.where(resolved, errors, np.nan)


@public
def sample_isotropic(
    table: RadialTable,
    operator_norm: float,
    dimensions: Sequence[int],
    lengths: Sequence[int],
    *,
    prompts: int,
    key: PRNGKeyArray,
) -> Float[Array, "prompts d k"]:
    """Return samples whose mean is `isotropic_error`, from the L scores of each prompt alone.

    They are `Σ_j mass_j ((ĝ - τ_j)² + (d - 1) Σ p²)` over the nodes of the table: exact averages over the rest of the
    tokens and over the length of the query. Prompt i, from `fold_in(key, i)`, serves all dimensions and lengths.

    Args:
      table: the nodes in τ; its lengths are not used.
      operator_norm: H.
      dimensions: the dimensions d.
      lengths: prompt lengths L, whole numbers ≥ 1.
      prompts: number of prompts.
      key: JAX random key.

    Returns:
      The samples, shape (prompts, dimensions, lengths).

    Source: derived here, see book/concentration. Transformations: none.
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
    """Return the weights of the nodes in an average over τ = H‖z‖, z ~ N(0, I_d)."""
    return table.weight * np.exp(log_chi_density(table.tau / operator_norm, dimension)) / operator_norm


@public
def log_chi_density(radius: Float[np.ndarray, "..."], dimension: int) -> Float[np.ndarray, "..."]:
    """Return the logarithm of the density of ‖z‖ for z ~ $N(0, I_d)$.

    Args:
      radius: positive radii, any shape.
      dimension: d ≥ 1.

    Returns:
      The logarithm, of the same shape.
    """
    half = dimension / 2
    return (dimension - 1) * np.log(radius) - radius**2 / 2 - (half - 1) * np.log(2) - gammaln(half)
