"""What the exact theory of finite Gaussian prompts saves, measured side by side.

    python benchmarks/finite_prompt.py

Three tables: many pairs (τ, L) at once; the error at one prompt length, exactly and by Monte Carlo in JAX, NumPy
and PyTorch at equal accuracy; outputs of single prompts, collapsed and token by token. Under two minutes.
"""

import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script from anywhere

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from rich.console import Console
from rich.table import Table

from lib.attention import Attention, attend, stream_attend
from lib.finite_prompt import (
    _integrals,  # pyright: ignore[reportPrivateUsage] # with nodes of our own
    output_error,
    sample_output,
    score_statistics,
)
from lib.measures import Gaussian, empirical
from lib.partition import DEFAULT, Resolution

SEED = 0
PAIRS = 1000
ACCURACY = 0.01  # standard error of a Monte-Carlo estimate, relative to the error that it estimates
LENGTH, DIMENSION = 10_000, 32
TAUS = (1.0, 2.0, 3.0, 5.0)
PROMPTS = 8  # a call, where a prompt is timed
BLOCK = 65_536  # tokens that are held at once
COARSE = Resolution(levels=16, step=1.0, reach=3.0, drop=6.0)  # within ACCURACY at all TAUS


def best_times(runs: Mapping[str, Callable[[], object]], *, rounds: int = 3) -> dict[str, float]:
    """Seconds of each run's fastest, after one that compiles; in turns, so that other load on the machine hits all.

    Short runs are given a tenth of a second a turn.
    """
    for run in runs.values():
        jax.block_until_ready(run())
    times = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            turn = time.perf_counter()
            while (begun := time.perf_counter()) < turn + 0.1:
                jax.block_until_ready(run())
                times[name] = min(times[name], time.perf_counter() - begun)
    return times


def readable(seconds: float) -> str:
    """Three digits and a unit."""
    unit, size = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size), ("µs", 1e-6))
    return f"{seconds / size:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"


def a_table(title: str, names: tuple[str, ...], caption: str = "") -> Table:
    """A table of right-aligned columns."""
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for name in names:
        table.add_column(name, justify="right")
    return table


# --- many pairs -------------------------------------------------------------------------------------------


def pairs_table() -> Table:
    """Seconds for PAIRS random (τ, L)."""
    tau_key, length_key = jr.split(jr.key(SEED))
    tau = jr.uniform(tau_key, (PAIRS,), maxval=30.0)
    log_length = jr.uniform(length_key, (PAIRS,), maxval=330.0)
    both = jax.jit(score_statistics)
    seconds = best_times({"both": lambda: both(tau**2, log_length)})["both"]
    table = a_table("Participation and score error, after compilation", ("random pairs (τ ≤ 30, ln L ≤ 330)", "all in"))
    table.add_row(f"{PAIRS:,}", readable(seconds))
    return table


# --- exact against Monte Carlo ----------------------------------------------------------------------------

Sampler = Callable[[np.ndarray], object]


def jax_sampler() -> Sampler:
    """`attend` on `empirical`, compiled, in float32 to be quick."""
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
    """A softmax written out, in float32."""
    generator = np.random.default_rng(SEED)

    def one(query):
        points = generator.standard_normal((LENGTH, DIMENSION), np.float32)
        scores = points @ query
        weights = np.exp(scores - scores.max())
        return np.sum((weights @ points / weights.sum() - query) ** 2)

    return lambda query: [one(query.astype(np.float32)) for _ in range(PROMPTS)]


def torch_sampler() -> Sampler:
    """`scaled_dot_product_attention`, in float32."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(SEED)

    @torch.inference_mode()
    def one(query):
        points = torch.randn(1, LENGTH, DIMENSION)
        output = torch.nn.functional.scaled_dot_product_attention(query[None, None], points, points, scale=1.0)
        return float(((output[0, 0] - query) ** 2).sum())

    return lambda query: [one(torch.tensor(query, dtype=torch.float32)) for _ in range(PROMPTS)]


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


def accuracy_table(libraries: Mapping[str, Callable[[], Sampler]]) -> Table:
    """One row a τ and library: how long until the standard error is ACCURACY, and how long the exact answer takes.

    The library's own answer has twelve digits; the same integrals on few nodes have those that Monte Carlo is given.
    """
    exact, (params, law) = eqx.filter_jit(output_error), isotropic()
    samplers = {name: make() for name, make in libraries.items()}
    table = a_table(
        f"The mean square error at L = {LENGTH:,}, d = {DIMENSION}: exact, and by Monte Carlo to {ACCURACY:.0%} of it",
        ("τ", "library", "a prompt", "prompts needed", "Monte Carlo", "exact", "ratio", "exact to 1%", "ratio"),
        "Prompts needed: from the measured variance of a prompt's squared error. Monte Carlo: the measured time of a "
        f"prompt ({PROMPTS} a call) times prompts needed, so extrapolated and not run; in float32. Exact: in float64, "
        "as the library answers, and on as few nodes as are within 1%.",
    )
    for tau in TAUS:
        query = tau * np.eye(DIMENSION)[0]
        squares = collapsed_errors(jnp.asarray(query))
        needed = int(np.ceil(jnp.var(squares) / jnp.mean(squares) ** 2 / ACCURACY**2))
        runs = {name: lambda sample=sample: sample(query) for name, sample in samplers.items()}  # noqa: B023
        runs["exact"] = lambda: exact(params, law, jnp.asarray(query), np.log(LENGTH))  # noqa: B023
        at = jnp.asarray(tau**2), jnp.log(jnp.asarray(float(LENGTH)))
        runs["coarse"] = lambda: _integrals(*at, COARSE)  # noqa: B023
        np.testing.assert_allclose(_integrals(*at, COARSE), _integrals(*at, DEFAULT), rtol=ACCURACY)
        times = best_times(runs)
        for name in samplers:
            total = needed * times[name] / PROMPTS
            cells = [readable(times[name] / PROMPTS), f"{needed:,}", readable(total)]
            for way in ("exact", "coarse"):
                cells += [readable(times[way]), f"{total / times[way]:,.0f}"]
            table.add_row(f"{tau:g}", name, *cells)
        table.add_section()
    return table


# --- collapsed against plain ------------------------------------------------------------------------------


def sampler_table() -> Table:
    """Seconds a prompt, in float32."""
    table = a_table(
        "One output of one prompt of N(m, Γ) tokens: collapsed, and token by token",
        ("L", "d", "token by token", "collapsed", "ratio", "ratio / d"),
        f"Token by token: `attend` up to {BLOCK:,} tokens, beyond the faster `stream_attend`. All in float32.",
    )
    for length in (1_000, 1_000_000):
        for dimension in (8, 128):
            plain, collapsed = sampler_times(length, dimension)
            cells = readable(plain), readable(collapsed), f"{plain / collapsed:,.1f}"
            table.add_row(f"{length:,}", str(dimension), *cells, f"{plain / collapsed / dimension:.2f}")
    return table


def sampler_times(length: int, dimension: int) -> tuple[float, float]:
    """Token by token and collapsed; many prompts a call where they are small, so that no overhead is timed."""
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

        def draws(way, numbers):
            keys = jr.split(jr.key(SEED), max(1, 5_000_000 // numbers))
            draw = jax.jit(lambda keys: jax.lax.map(way, keys, batch_size=max(1, 100_000 // numbers)))
            return (lambda: draw(keys)), keys.size

        (run_plain, plain_prompts), (run_collapsed, prompts) = (
            draws(plain, length * dimension),
            draws(collapsed, length),
        )
        times = best_times({"plain": run_plain, "collapsed": run_collapsed}, rounds=2)
        return times["plain"] / plain_prompts, times["collapsed"] / prompts


def main() -> None:
    """All tables, with what they were measured on."""
    console, begun = Console(width=None if sys.stdout.isatty() else 110), time.perf_counter()
    console.print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}, NumPy {np.__version__}")
    libraries = {"JAX": jax_sampler, "NumPy": numpy_sampler}
    if find_spec("torch"):
        libraries["PyTorch"] = torch_sampler
    with jax.enable_x64(True):
        console.print(pairs_table())
        console.print(accuracy_table(libraries))
        if "PyTorch" not in libraries:
            console.print("PyTorch: skipped, because it is not installed (pip install torch==2.13.0)")
        console.print(sampler_table())
    console.print(f"{time.perf_counter() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
