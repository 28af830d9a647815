"""A training step of the published experiment, ours beside the same protocol in PyTorch.

One head with separate weights, 128 fresh prompts a step, plain SGD, single precision.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import optax

from benchmarks.contests import Contest
from chapters.published_experiment.protocol import SeparateWeights, published_head, published_task
from lib.flow import Descent, descend
from lib.icl import collapsed, plain, prompt_loss

THREADS = (1, 2)
LENGTHS = (20, 100, 1000)
BATCH, STEP = 128, 1e-3


def contests() -> Iterator[Contest]:
    """Seconds a step, with prompts of several lengths."""
    for length in LENGTHS:
        steps = max(10, 6_000 // length)
        contenders = {"collapsed prompts": ours(length, collapsed), "plain prompts": ours(length, plain)}
        if find_spec("torch"):
            contenders["PyTorch"] = pytorch(length)
        runs = {name: partial(run, steps) for name, run in contenders.items()}
        yield Contest("A step of the published training", f"L = {length:,}", runs, dict.fromkeys(runs, steps))


def ours(length: int, sampling) -> Callable[[int], None]:
    """Takes a number of steps, all in one `lax.scan`."""
    optimiser = optax.sgd(STEP)
    loss = prompt_loss(published_task(), length, batch=BATCH, head=published_head, sampling=sampling, weight=1.0)
    state = Descent.start(optimiser, SeparateWeights.draw(6, key=jr.key(0)), key=jr.key(1))
    go = eqx.filter_jit(descend)
    return lambda steps: jax.block_until_ready(go(loss, optimiser, state, steps))


def pytorch(length: int) -> Callable[[int], None]:
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
        output = layers["output"](torch.softmax(scores, dim=2) @ layers["value"](tokens))
        loss = torch.nn.functional.mse_loss(output[:, 0, 0], target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def take(steps: int) -> None:
        for _ in range(steps):
            step()

    return take
