"""Several softmax heads on in-context linear regression: exact risks, best values, and the best opposite pair.

With isotropic covariates all heads with keys `ω_h I` see the same normal scores at a query of length r, head h with the
tilt `a_h = ω_h r`. A risk is an average over r of the two functions C and G̃ of a pair of tilts of `lib.pairs`: a
quadratic form in the values μ_h, so that the best ones are the solution of a linear system. Derived here, see
book/opposite_heads.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import as_array, as_float, is_concrete, public
from lib._namespace import choose, constant, exact, jitted, known, namespace
from lib._types import AnyArray, Scalar
from lib.finite_prompt import score_statistics
from lib.icl.averages import _few_radii, _radii
from lib.icl.regression import LinearRegression, _identity
from lib.pairs import _LARGEST_TILT, _opposite_statistics, _pair_statistics
from lib.partition import _LARGEST_LOG_LENGTH

# Nodes in the length of the query, and natural logarithms that the integrand falls beyond the last.
_RADII, _RADIUS_DROP = 40, 34.0
_SHORT = math.log(35.0)  # up to this length the best key is searched among all, beyond it near 0
_MANY, _SMALL_KEY = 5, 0.2  # from this dimension on, up to this key, 20 nodes of the Gauss rule reach rounding
_FIT = 12  # keys that are compared first, and those of the polynomial that is minimised
_POINTS = np.cos(np.pi * (np.arange(_FIT) + 0.5) / _FIT)
_TO_POWERS = np.linalg.inv(np.vander(_POINTS))
# least squares for h where ω⁴ h is known at nodes ω² that are proportional to the points plus one
_NEAR_ZERO = ((_POINTS + 1) / 2) ** 2
_TO_REST = np.linalg.pinv(_NEAR_ZERO[:, None] * np.vander(_POINTS, 8)) * _NEAR_ZERO


@public
def heads_risk(
    task: LinearRegression,
    omega: Float[Array, " h"] | Float[np.ndarray, " h"],
    mu: Float[Array, " k"] | Float[np.ndarray, " k"],
    log_length: Scalar,
) -> Float[Array, ""]:
    """Return `½ E (ŷ - y)²` of the sum of H softmax heads, head h with scores `ω_h ⟨x_l, x_q⟩` and values `μ_h y_l`.

    `2R = s² + τ_w² [δ² d + 2δ Σ_h μ_h ω_h E r²P(ω_h r)] + μᵀNμ` with δ = 1 - μ·ω, r² ~ χ²_d, and
    `N_hk = E [τ_w² G̃ + (τ_w² (d - 1) + s²) C](ω_h r, ω_k r)`. Head h is `block_attention(ω_h I, μ_h)`.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys ω, shape (H,), H ≥ 1, of either sign. Tilts |ω| r up to 14 are computed, r up to √d + √(68 + 2 ln L)
        for large keys: the domain is |ω| ≤ 1.2 for d = 5 and L = 100, and |ω| ≤ 0.47 for the longest prompts.
      mu: values μ, shape (H,), of either sign.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      The risk, shape (), the noise of the query's label included. NaN outside the domain. Its relative error is below
      1e-8, except where δ is itself a rounding error, and for opposite keys below 0.01, whose values cancel
      (`best_pair` avoids both). The cost is 40 ms for the heads alone, and 40 times that of `pair_participation` for
      each pair of heads.

    Raises:
      ValueError: if a covariance of `task` is not the identity, if the shapes differ, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    task, omega, log_length = _isotropic("heads_risk", task, omega, log_length)
    mu = known(as_float(mu))
    if mu.shape != omega.shape:
        raise ValueError(
            "`heads_risk(omega, mu)` needs one key and one value per head, because a head has both. "
            f"Got shapes {omega.shape} and {mu.shape}."
        )
    noise, shrinkage = _head_moments(task, omega, log_length)
    missing = 1 - mu @ omega
    bias = task.task_scale**2 * (missing**2 * task.dimension + 2 * missing * mu @ shrinkage)
    return as_array(0.5 * (task.noise_std**2 + bias + mu @ noise @ mu))


@public
def best_values(
    task: LinearRegression,
    omega: Float[Array, " h"] | Float[np.ndarray, " h"],
    log_length: Scalar,
    *,
    centred: bool = False,
) -> tuple[Float[Array, " h"], Float[Array, ""]]:
    """Return the values μ that minimise `heads_risk` at the keys ω, and the risk there.

    The minimum-norm μ where several minimise it: heads with one key share its value, and all values are 0 at L = 1.
    Solved with `L N`, `1 - μ·ω` and the excess risk as unknowns, so that no digits are lost for long prompts.
    With `centred` each head subtracts the plain average of its values, so that its weights are $p_l - 1/L$: then
    `(τ_w² d + s²)/L` is subtracted from every entry of N.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys ω, shape (H,), H ≥ 1, of either sign, in the domain of `heads_risk`: for d = 5, |ω| ≤ 1.2 at L = 100.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.
      centred: whether the heads subtract the average of the prompt. Digits are then lost in proportion to 1/ω² at small
        keys: the excess has a relative accuracy of about 1e-8 for |ω| ≥ 0.01.

    Returns:
      (μ of shape (H,), risk of shape ()): half the mean square, label noise included. The excess over the noise keeps
      its relative accuracy, about 1e-8, at any L. Singular values below 1e-11 of the largest count as 0, so keys
      that differ by less than about 1e-5 count as equal. The gradient of the risk is exact also where keys coincide;
      that of μ is then the least-squares one. NaN outside the domain. The cost is that of `heads_risk`.

    Raises:
      ValueError: if a covariance of `task` is not the identity, if `omega` has no head, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    task, omega, log_length = _isotropic("best_values", task, omega, log_length)
    noise, shrinkage = _head_moments(task, omega, log_length)
    if centred:
        noise = noise - (task.task_scale**2 * task.dimension + task.noise_std**2) * namespace(log_length).exp(
            -log_length
        )
    return _solve_for_values(task, omega, log_length, noise, shrinkage)


def _solve_for_values(task, omega, log_length, noise, shrinkage):
    """The values that minimise the risk with these moments of the heads, and the risk."""
    xp = namespace(task.task_scale, task.noise_std, omega, log_length, noise, shrinkage)
    heads = omega.shape[0]
    power, length = task.task_scale**2, xp.exp(log_length)
    untouched = power * task.dimension  # the excess of the output 0
    # stationarity in μ and in δ = 1 - μ·ω with a multiplier for the latter: the multiplier is the excess 2R - s²
    (norm,) = constant(xp.linalg.norm(omega))
    unit = 1 / (1 / length + norm)
    column = xp.concatenate([-omega, -xp.ones(1) / length]) * unit
    bottom = xp.concatenate([omega, xp.asarray([1.0, 0.0])])
    moments = xp.concatenate([length * noise, power * length * shrinkage[:, None]], axis=1)
    stationary = xp.concatenate([moments, xp.concatenate([power * shrinkage, xp.reshape(untouched, (1,))])[None]])
    matrix = xp.concatenate([xp.concatenate([stationary, column[:, None]], axis=1), bottom[None]])
    target = xp.concatenate([xp.zeros(heads + 1), xp.ones(1)])
    finite = xp.all(xp.isfinite(matrix))
    (frozen,) = constant(xp.where(finite, matrix, xp.eye(heads + 2)))
    inverse = xp.linalg.pinv(frozen, rtol=1e-11)
    solution = inverse @ target
    solution = solution + inverse @ (target - matrix @ solution)
    alone = log_length > 0  # a single token has the same answer at all keys
    mu = xp.where(alone, solution[:heads], 0 * solution[:heads])
    excess = xp.where(alone, solution[-1] * unit / length, untouched)
    return as_array(mu), as_array(xp.where(finite, 0.5 * (task.noise_std**2 + excess), xp.nan))


def _isotropic(owner: str, task: LinearRegression, omega, log_length):
    task = _identity(owner, task)
    omega, log_length = exact(f"lib.icl.{owner}", omega, log_length)
    if omega.ndim != 1 or not omega.size:
        raise ValueError(
            f"`{owner}(omega=...)` needs shape (H,) with H ≥ 1, one key per head. Got shape {omega.shape}."
        )
    return task, omega, log_length


@jitted(static=(0, 3))
def _lengths(dimension: int, steepest: Scalar, log_length: Scalar, nodes: int):
    """Return nodes and weights for the length of a standard normal query, while `e^{steepest² r²}/L` matters."""
    xp = namespace(steepest, log_length)
    squared, log_length = constant(steepest**2, log_length)
    slack = xp.maximum(0.5 - squared, 1e-6)
    reach = xp.sqrt(xp.minimum(2 * (_RADIUS_DROP + log_length), _RADIUS_DROP / slack))
    return _radii(dimension, nodes, reach)


def _head_moments(task: LinearRegression, omega, log_length):
    """N of `heads_risk`, shape (H, H), and `ω_h E r²P(ω_h r)`, shape (H,)."""
    xp = namespace(omega, log_length, task.task_scale, task.noise_std)
    heads = omega.shape[0]
    radius, weight = _lengths(task.dimension, xp.max(xp.abs(omega)), log_length, _RADII)
    tilts = omega[:, None] * radius
    power = task.task_scale**2
    rest = power * (task.dimension - 1) + task.noise_std**2
    single = jax.tree.map(known, score_statistics(tilts**2, log_length))
    small = xp.abs(tilts) <= _LARGEST_TILT
    diagonal = xp.where(small, power * single.score_error + rest * single.participation, xp.nan) @ weight
    noise = diagonal[:, None] * np.eye(heads)
    if heads > 1:
        first, second = np.triu_indices(heads, 1)
        pairs = jax.tree.map(known, _pair_statistics(tilts[first], tilts[second], log_length))
        mixed = (power * pairs.score_error + rest * pairs.participation) @ weight
        place = np.zeros((heads, heads), int)
        place[first, second] = place[second, first] = np.arange(len(first))
        noise = xp.where(np.eye(heads, dtype=bool), diagonal, mixed[place])
    return noise, omega * ((single.participation * radius**2) @ weight)


# --- the best opposite pair -------------------------------------------------------------------------------


@public
def best_pair(
    task: LinearRegression, log_length: Scalar, omega: Scalar | None = None
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return the keys and values (ω, μ) of the heads (ω, μ) and (-ω, -μ) that minimise `heads_risk`, and the risk.

    The best ω is about `√(12/((d + 4)(d + 3 + ς) L))`, $ς = s²/τ_w²$. Where ω is given, this is `best_values` of an
    opposite pair, faster and without its loss of digits at small keys. Pairs with other keys are not searched.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330; NaN outside.
      omega: the key ω, shape (), of either sign, `1e-7 ≤ |ω|`, up to the largest of `heads_risk`; by default the best.

    Returns:
      (ω of shape (), μ of shape (), risk of shape ()): half the mean square, label noise included. The best ω is
      positive and has a relative error below 1e-5; the excess of the risk over the noise has one below 1e-10 for
      |ω| ≤ 0.7 and d ≤ 10. At L = 1 all keys are equal, and μ = 0. For a given ω 40 ms if |ω| is below 0.3, half of it
      for 5 or more dimensions and |ω| ≤ 0.2, if ω is not traced.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap; grad of the risk, and of both at a given ω (first derivatives).
    """
    task, log_length = _identity("best_pair", task), exact("best_pair", log_length)[0]
    if omega is not None:
        key = exact("best_pair", omega)[0]
        return as_array(key), *_opposite_values(task, key, log_length)
    xp = namespace(log_length, task.task_scale, task.noise_std)
    inside = (log_length >= 0) & (log_length <= _LARGEST_LOG_LENGTH)
    searched = inside & (log_length > 0)  # at one token every key is best, and the search would compare rounding errors
    leaves, structure = jax.tree.flatten((task, xp.where(searched, log_length, 1.0)))
    (best,) = constant(_best_key(*jax.tree.unflatten(structure, constant(*leaves))))
    return as_array(xp.where(inside, best, xp.nan)), *_opposite_values(task, best, log_length)


def _opposite_values(
    task: LinearRegression, omega: Scalar, log_length: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the best value μ of the heads (ω, μ) and (-ω, -μ), and their risk.

    With β = 2μω and a = ω r the pair has `2R - s² = τ_w² [(1 - β)² d + 2(1 - β)β E r²P(a)] + β² n`,
    `n = ½ E r² [τ_w² (Q(a) - G̃(a, -a)) + (τ_w² (d - 1) + s²)(P(a) - C(a, -a))]/a²`, which is smooth in ω² down to 0.
    """
    xp = namespace(omega, log_length, task.task_scale, task.noise_std)
    inside = (log_length >= 0) & (log_length <= _LARGEST_LOG_LENGTH)
    log_length = xp.where(inside, log_length, 1.0)
    keys = xp.reshape(xp.abs(omega), (1,))
    if task.dimension >= _MANY and is_concrete(omega) and keys[0] <= _SMALL_KEY:
        lengths = _few_lengths(task.dimension, keys, log_length)
    else:
        lengths = _lengths_by_key(task.dimension, keys, log_length, _RADII)
    gain, excess = (one[0] for one in _pair_excess(task, keys, log_length, lengths))
    alone = log_length == 0
    value = xp.where(alone, 0.0, gain / (2 * omega))
    power = task.task_scale**2 * task.dimension
    risk = 0.5 * (task.noise_std**2 + xp.where(alone, power, excess * xp.exp(-log_length)))
    return as_array(xp.where(inside, value, xp.nan)), as_array(xp.where(inside, risk, xp.nan))


def _best_key(task: LinearRegression, log_length: Scalar) -> Scalar:
    """Compare keys on a geometric grid and fit around the best; for long prompts, fit the rest of an expansion at 0."""
    xp = namespace(log_length, task.task_scale, task.noise_std)
    dimension, power, ratio, inverse = task.dimension, task.task_scale**2, task._noise_ratio, xp.exp(-log_length)
    leading = 12 * inverse / ((dimension + 4) * (dimension + 3 + ratio))
    stretch = 1 / (1 + (dimension + ratio) * inverse)
    start = power * dimension * (dimension + 1 + ratio) * stretch
    slope = 4 * power * dimension * (dimension + 2) * (1 - inverse) * inverse * stretch**2
    widest = 0.3 / (dimension + 4)
    largest = 0.98 * _LARGEST_TILT / xp.max(_few_lengths(dimension, xp.ones(1), log_length)[0])

    def excess(keys):
        return _pair_excess(task, keys, log_length, _few_lengths(dimension, keys, log_length))[1]

    short = log_length <= _SHORT
    scan = xp.linspace(0.5 * xp.log(leading) - 1.0, xp.log(largest), _FIT)
    scanned = choose(short, excess, xp.zeros_like, xp.exp(scan))
    best = xp.nanargmin(scanned)
    low = xp.where(short, scan[xp.maximum(best - 1, 0)], 0.0)
    high = xp.where(short, scan[xp.minimum(best + 1, _FIT - 1)], widest)
    nodes = low + (high - low) * (_POINTS + 1) / 2
    values = excess(xp.where(short, xp.exp(nodes), xp.sqrt(xp.abs(nodes))))
    near_zero = _minimum_near_zero(values - start, slope, leading, widest)
    return xp.where(short, xp.exp(_minimum_between(low, high, values / start)), xp.sqrt(xp.maximum(near_zero, 0.0)))


@jitted()
def _minimum_between(low, high, values) -> Scalar:
    """Return the place in [low, high] at which the polynomial through the values at the nodes is least."""
    xp = namespace(low, high, values)
    fit = _TO_POWERS @ values
    grid = xp.linspace(-1, 1, 401)
    place = grid[xp.argmin(xp.polyval(fit, grid))]
    first = xp.polyder(fit)
    second = xp.polyder(first)
    for _ in range(6):
        move = xp.polyval(first, place) / xp.abs(xp.polyval(second, place))
        place = xp.clip(place - move, -1.0, 1.0)
    return low + (high - low) * (place + 1) / 2


@jitted()
def _minimum_near_zero(values, slope, leading, widest) -> Scalar:
    """Return the ω² at which `-slope ω² + ω⁴ h(ω²)` is least, given its values at the nodes in [0, widest]."""
    xp = namespace(values, slope, leading)
    squares = widest * (_POINTS + 1) / 2
    rest = _TO_REST @ ((values + slope * squares) / squares**2)
    change = xp.polyder(rest) * 2 / widest
    squared = leading
    for _ in range(12):
        x = 2 * squared / widest - 1
        squared = slope / (2 * xp.polyval(rest, x) + squared * xp.polyval(change, x))
    return squared


def _pair_excess(
    task: LinearRegression,
    keys: Float[AnyArray, " k"],
    log_length: Scalar,
    lengths: tuple[Float[AnyArray, "k r"], Float[AnyArray, "k r"]],
):
    """The gain β of the best values and `L (2R - s²)`, at keys ω > 0; `lengths` of queries with their weights."""
    tilts = namespace(keys, lengths[0]).maximum(keys[:, None] * lengths[0], 1e-7)
    pairs = jax.tree.map(known, _opposite_statistics(tilts, log_length))
    return _excess_of_moments(task, lengths, pairs, log_length)


def _few_lengths(dimension: int, keys: Float[AnyArray, " k"], log_length: Scalar):
    """Lengths of queries and their weights, by the Gauss rule of the squared length in many dimensions."""
    if dimension < _MANY:
        return _lengths_by_key(dimension, keys, log_length, 24)
    radii, weights = _few_radii(dimension, 20)
    return np.broadcast_to(radii, (keys.size, 20)), np.broadcast_to(weights, (keys.size, 20))


def _lengths_by_key(dimension: int, keys: Float[AnyArray, " k"], log_length: Scalar, nodes: int):
    if namespace(keys, log_length) is np:
        rows = [_lengths(dimension, key, log_length, nodes) for key in keys]
        radii, weights = zip(*rows, strict=True)
        return np.stack(radii), np.stack(weights)
    return jax.vmap(lambda omega: _lengths(dimension, omega, log_length, nodes))(jnp.asarray(keys))


@jitted()
def _excess_of_moments(task: LinearRegression, lengths, pairs, log_length):
    (radius, weight), (participation, participation_gap, error_gap) = lengths, pairs
    xp = namespace(log_length, participation, task.task_scale, task.noise_std)
    dimension, power, length = task.dimension, task.task_scale**2, xp.exp(log_length)
    rest = power * (dimension - 1) + task.noise_std**2
    noise = 0.5 * length * xp.sum((power * error_gap + rest * participation_gap) * radius**2 * weight, axis=1)
    shrinkage = length * xp.sum(participation * radius**2 * weight, axis=1)
    curvature = power * (dimension - 2 * shrinkage / length) + noise / length
    gain = power * (dimension - shrinkage / length) / curvature
    return gain, power * (dimension * noise - power * shrinkage**2 / length) / curvature
