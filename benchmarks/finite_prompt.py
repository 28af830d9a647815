"""What the exact theory of finite Gaussian prompts saves over prompts that are drawn."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks.contests import Contest
from lib.attention import Attention, attend, stream_attend
from lib.finite_prompt import (
    _integrals,  # pyright: ignore[reportPrivateUsage] # with nodes of our own
    output_error,
    sample_output,
)
from lib.measures import Gaussian, empirical
from lib.partition import _DEFAULT_RESOLUTION, Resolution

THREADS = (2,)
SEED = 0
ACCURACIES = (0.01, 0.001)  # standard errors of a Monte-Carlo estimate, relative to the error that it estimates
LENGTH, DIMENSION = 10_000, 32
TAUS = (1.0, 3.0)
PROMPTS = 8  # a call, where a prompt is timed
BLOCK = 65_536  # tokens that are held at once
COARSE = Resolution(count=16, step=1.0, reach=3.0, drop=6.0)  # within a percent at all TAUS


def contests() -> Iterator[Contest]:
    """Exact against Monte Carlo, to a percent and to a tenth of one; then single prompts, collapsed and plain."""
    for tau in TAUS:
        yield from exact_contests(tau)
    for length in (1_000, 1_000_000):
        for dimension in (8, 128):
            yield collapsed_contest(length, dimension)


def exact_contests(tau: float) -> Iterator[Contest]:
    """The library's answer has twelve digits; the same integrals on few nodes have those that Monte Carlo is given.

    Monte Carlo is the measured time of a prompt, in float32, times the prompts that its measured variance asks for.
    """
    query = tau * np.eye(DIMENSION)[0]
    with jax.enable_x64(True):
        squares = collapsed_errors(jnp.asarray(query))
        relative = float(jnp.var(squares) / jnp.mean(squares) ** 2)
        at = jnp.asarray(tau**2), jnp.log(jnp.asarray(float(LENGTH)))
        np.testing.assert_allclose(_integrals(*at, COARSE), _integrals(*at, _DEFAULT_RESOLUTION), rtol=ACCURACIES[0])
        params, law = isotropic()
    exact = eqx.filter_jit(output_error)
    ways = {
        "output_error": lambda: exact(params, law, jnp.asarray(query), np.log(LENGTH)),
        "its integrals to 1 %": lambda: _integrals(*at, COARSE),
    }
    samplers = {name: partial(sample, query) for name, sample in all_samplers().items()}
    for accuracy in ACCURACIES:
        part = PROMPTS / np.ceil(relative / accuracy**2)
        for name, way in ways.items():
            if name == "output_error" or accuracy == ACCURACIES[0]:
                yield Contest(
                    f"Error of a finite prompt, Monte Carlo to {100 * accuracy:g} %",
                    f"τ = {tau:g}, L = {LENGTH:,}, d = {DIMENSION}",
                    {name: partial(_double, way), **samplers},
                    dict.fromkeys(samplers, float(part)),
                )


def _double(way: Callable[[], object]) -> None:
    with jax.enable_x64(True):
        jax.block_until_ready(way())


def isotropic() -> tuple[Attention, Gaussian]:
    """Identities everywhere: the tilt is the query, and τ its norm."""
    eye = np.eye(DIMENSION)
    return Attention(eye, eye), Gaussian(np.zeros(DIMENSION), eye)


@jax.jit
def collapsed_errors(query):
    """Squared errors of prompts equal in law to those timed, and cheap enough to be many."""
    params, law = isotropic()
    keys = jr.split(jr.key(SEED), 4000)
    outputs = jax.lax.map(lambda key: sample_output(params, law, query, LENGTH, key=key), keys)
    return jnp.sum((outputs - attend(params, law, query)) ** 2, axis=1)


# --- Monte Carlo ------------------------------------------------------------------------------------------

Sampler = Callable[[np.ndarray], object]


def all_samplers() -> dict[str, Sampler]:
    """By library; PyTorch where it is installed."""
    samplers: dict[str, Sampler] = {"JAX": jax_sampler(), "NumPy": numpy_sampler()}
    return {**samplers, "PyTorch": torch_sampler()} if find_spec("torch") else samplers


def jax_sampler() -> Sampler:
    """`attend` on `empirical`, compiled."""
    with jax.enable_x64(False):
        params, law = isotropic()

    @jax.jit
    def errors(query):
        def one(key):
            points = empirical(law, LENGTH, key=key)
            return jnp.sum((attend(params, points, query) - attend(params, law, query)) ** 2)

        return jax.lax.map(one, jr.split(jr.key(SEED), PROMPTS))

    def sample(query):
        with jax.enable_x64(False):
            return errors(jnp.asarray(query)).block_until_ready()

    return sample


def numpy_sampler() -> Sampler:
    """A softmax written out."""
    generator = np.random.default_rng(SEED)

    def one(query):
        points = generator.standard_normal((LENGTH, DIMENSION), np.float32)
        scores = points @ query
        weights = np.exp(scores - scores.max())
        return np.sum((weights @ points / weights.sum() - query) ** 2)

    return lambda query: [one(query.astype(np.float32)) for _ in range(PROMPTS)]


def torch_sampler() -> Sampler:
    """`scaled_dot_product_attention`."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(SEED)

    @torch.inference_mode()
    def one(query):
        points = torch.randn(1, LENGTH, DIMENSION)
        output = torch.nn.functional.scaled_dot_product_attention(query[None, None], points, points, scale=1.0)
        return float(((output[0, 0] - query) ** 2).sum())

    return lambda query: [one(torch.tensor(query, dtype=torch.float32)) for _ in range(PROMPTS)]


# --- collapsed against plain ------------------------------------------------------------------------------


def collapsed_contest(length: int, dimension: int) -> Contest:
    """In float32; many prompts a call where they are small, so that no overhead is timed."""
    with jax.enable_x64(False):
        rng = np.random.default_rng(SEED)
        root = rng.normal(size=(dimension, dimension)) / np.sqrt(dimension)
        law = Gaussian(rng.normal(size=dimension), root @ root.T)
        params = Attention(rng.normal(size=(dimension, dimension)) / dimension, np.eye(dimension))
        query = jnp.asarray(rng.normal(size=dimension), jnp.float32)

    def plain(key):
        if length > BLOCK:
            return stream_attend(params, law, query, length, key=key, block=BLOCK)
        return attend(params, empirical(law, length, key=key), query)

    def collapsed(key):
        return sample_output(params, law, query, length, key=key)

    runs: dict[str, Callable[[], object]] = {}
    work: dict[str, float] = {}
    for name, way, numbers in (("collapsed", collapsed, length), ("token by token", plain, length * dimension)):
        prompts = max(1, 5_000_000 // numbers)
        batch = max(1, 100_000 // numbers)
        draw = jax.jit(lambda keys, way=way, batch=batch: jax.lax.map(way, keys, batch_size=batch))
        runs[name], work[name] = partial(_single, draw, prompts), prompts
    return Contest("One output of one prompt", f"L = {length:,}, d = {dimension}", runs, work)


def _single(draw, prompts: int) -> None:
    with jax.enable_x64(False):
        draw(jr.split(jr.key(SEED), prompts)).block_until_ready()
