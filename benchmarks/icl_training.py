"""A training step of the published experiment, ours beside the same protocol in PyTorch.

One head with separate weights, 128 fresh prompts a step, plain SGD, single precision. Up to 100 tokens a start of ours
has one thread, as `chapters/published_experiment/data/every_run.py` gives it: XLA does not share so small a step among
processors, and takes a quarter longer where it prepares to. PyTorch has them all.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import optax

from benchmarks.contests import Contest
from chapters.published_experiment.batches import batch_loss
from chapters.published_experiment.protocol import POOLS, SeparateWeights, published_head, published_task
from lib.flow import _descend, _Descent
from lib.icl import prompt_loss

THREADS = (1, 2)
LENGTHS = (20, 100, 1000)
BATCH, STEP = 128, 1e-3
ALONE, SMALL = {"NPROC": "1"}, 100  # what XLA takes for the number of processors
TWO = "batches by their sums, two starts at a time"


def contests() -> Iterator[Contest]:
    """Seconds a step of one start, and of one of two that are trained at a time."""
    for activation in POOLS:
        for length in LENGTHS:
            steps = max(10, 6_000 // length)
            batches = ours(batch_loss, activation, length, pool=POOLS[activation])
            prompts = partial(ours, prompt_loss, activation, length, pool=POOLS[activation])
            peers = {"PyTorch": pytorch(activation, length)} if find_spec("torch") else {}
            drawn = {"collapsed prompts": prompts(), "plain prompts": prompts(every_token=True)}
            setting = f"{activation}, L = {length:,}"
            ways = {"batches by their sums": batches, **drawn, **peers}
            yield contest(setting, steps, ways, ALONE if length <= SMALL else {})
            if peers and len(os.sched_getaffinity(0)) > 1:
                yield contest(setting, steps, {TWO: two_at_a_time(batches), **peers}, {})


def contest(
    setting: str, steps: int, ways: Mapping[str, Callable[[int], None]], environment: Mapping[str, str]
) -> Contest:
    """Return a contest in seconds per step and start."""
    work = {name: steps * (2.0 if name == TWO else 1.0) for name in ways}
    runs = {name: partial(way, steps) for name, way in ways.items()}
    return Contest("A step of the published training", setting, runs, work, environment=environment)


def ours(make: Callable, activation: str, length: int, **how) -> Callable[[int], None]:
    """Takes a number of steps, all in one `lax.scan`."""
    with jax.enable_x64(False):
        optimiser = optax.sgd(STEP)
        loss = make(published_task(), length, batch=BATCH, head=published_head, weight=1.0, **how)
        state = _Descent.start(optimiser, SeparateWeights.draw(6, key=jr.key(0)), key=jr.key(1))
    go = eqx.filter_jit(_descend)

    def take(steps: int) -> None:
        with jax.enable_x64(False):
            jax.block_until_ready(go(loss, optimiser, state, steps))

    return take


def two_at_a_time(run: Callable[[int], None]) -> Callable[[int], None]:
    """Two starts, a thread each."""
    pool = ThreadPoolExecutor(2)

    def take(steps: int) -> None:
        list(pool.map(run, [steps] * 2))

    return take


def pytorch(activation: str, length: int) -> Callable[[int], None]:
    """The same protocol in eager PyTorch: tokens drawn, layers applied, `backward`, `step`."""
    import torch  # pyright: ignore[reportMissingImports]

    covariance = torch.tensor(0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))), dtype=torch.float32)
    factor = torch.linalg.cholesky(covariance)
    layers = torch.nn.ModuleDict({name: torch.nn.Linear(6, 6, bias=False) for name in ("query", "key", "value")})
    layers["output"] = torch.nn.Linear(6, 1, bias=False)
    optimiser = torch.optim.SGD(layers.parameters(), lr=STEP)

    def draw():
        task = torch.randn(BATCH, 5, 1) / 5**0.5
        covariates = torch.randn(BATCH, length + 1, 5) @ factor.T
        labels = covariates @ task + 0.1**0.5 * torch.randn(BATCH, length + 1, 1)
        query = torch.cat([covariates[:, -1:], torch.zeros(BATCH, 1, 1)], dim=2)
        return torch.cat([covariates[:, :-1], labels[:, :-1]], dim=2), query, labels[:, -1, 0]

    def step():
        tokens, query, target = draw()
        scores = layers["query"](query) @ layers["key"](tokens).transpose(1, 2) / 6**0.5
        weights = torch.softmax(scores, dim=2) if activation == "softmax" else scores / length
        output = layers["output"](weights @ layers["value"](tokens))
        loss = torch.nn.functional.mse_loss(output[:, 0, 0], target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def take(steps: int) -> None:
        for _ in range(steps):
            step()

    return take
