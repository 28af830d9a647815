"""A training step of the published experiment, ours against the same protocol in PyTorch, side by side.

    python benchmarks/icl_training.py

One head with separate weights, 128 fresh prompts a step, plain SGD, single precision: steps a second with plain and
with collapsed prompts in JAX, and with PyTorch written as published, on one and on two threads. Under two minutes.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script from anywhere

import numpy as np

LENGTHS = (20, 100, 1000)
THREADS = (1, 2)
BATCH, STEP = 128, 1e-3
ROUNDS, SECONDS = 3, 1.0  # turns of each contender, and how long one takes


def ours(length: int, sampling) -> Callable[[int], None]:
    """Takes a number of steps, all in one `lax.scan`."""
    import equinox as eqx
    import jax
    import jax.random as jr
    import optax

    from chapters.published_experiment.protocol import SeparateWeights, published_head, published_task
    from lib.flow import Descent, descend
    from lib.icl import prompt_loss

    optimiser = optax.sgd(STEP)
    loss = prompt_loss(published_task(), length, batch=BATCH, head=published_head, sampling=sampling, weight=1.0)
    state = Descent.start(optimiser, SeparateWeights.draw(6, key=jr.key(0)), key=jr.key(1))
    go = eqx.filter_jit(descend)
    return lambda steps: jax.block_until_ready(go(loss, optimiser, state, steps))


def pytorch(length: int) -> Callable[[int], None]:
    """The same protocol in eager PyTorch: tokens drawn, layers applied, `backward`, `step`."""
    import torch

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

    return lambda steps: [step() for _ in range(steps)] and None


def worker(threads: int) -> None:
    """Time all contenders in turns, so that other load hits all, on as many processors; print steps a second."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    from lib.icl import collapsed, plain

    contenders = {"plain": lambda length: ours(length, plain), "collapsed": lambda length: ours(length, collapsed)}
    if find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
        contenders["PyTorch"] = pytorch
    for length in LENGTHS:
        steps = max(20, 30_000 // length)
        runs = {name: make(length) for name, make in contenders.items()}
        fastest = dict.fromkeys(runs, float("inf"))
        for run in runs.values():
            run(steps)  # compiles
        for _ in range(ROUNDS):
            for name, run in runs.items():
                turn = time.perf_counter()
                while (begun := time.perf_counter()) < turn + SECONDS / len(runs):
                    run(steps)
                    fastest[name] = min(fastest[name], time.perf_counter() - begun)
        print(
            json.dumps({"length": length, **{name: steps / seconds for name, seconds in fastest.items()}}), flush=True
        )


def main() -> None:
    """One process a number of threads, because both libraries count processors when they start."""
    from rich.console import Console
    from rich.table import Table

    table = Table("threads", "tokens a prompt", "PyTorch", "ours, plain", "ours, collapsed", "collapsed/PyTorch")
    for threads in THREADS:
        command = [sys.executable, __file__, "--worker", str(threads)]
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
            row = json.loads(line)
            peer = row.get("PyTorch")
            table.add_row(
                str(threads),
                str(row["length"]),
                f"{peer:,.0f}/s" if peer else "skipped: not installed",
                f"{row['plain']:,.0f}/s",
                f"{row['collapsed']:,.0f}/s",
                f"{row['collapsed'] / peer:.1f}" if peer else "",
            )
    Console(width=110).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]))
    else:
        main()
