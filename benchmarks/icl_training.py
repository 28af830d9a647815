"""A training step of the published experiment, ours against the same protocol in PyTorch, side by side.

    python benchmarks/icl_training.py

One head with separate weights, 128 fresh prompts a step, plain SGD, single precision, softmax and linear attention:
steps a second of one start with plain prompts, with collapsed ones and with batches by their sums (`batch_loss`) in
JAX, and with PyTorch written as published, on one and on two threads; and steps times starts a second where as many
starts as threads are trained at a time. About four minutes.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script from anywhere

import numpy as np

HEADS = ("softmax", "linear")
LENGTHS = (20, 100, 1000)
THREADS = (1, 2)
BATCH, STEP = 128, 1e-3
ROUNDS, SECONDS = 3, 1.0  # turns of each contender, and how long one takes


def ours(activation: str, length: int, sampling: str) -> Callable[[int], None]:
    """Takes a number of steps, all in one `lax.scan`."""
    import equinox as eqx
    import jax
    import jax.random as jr
    import optax

    from chapters.published_experiment.every_run import SUMMARIES
    from chapters.published_experiment.protocol import POOLS, SeparateWeights, published_head, published_task
    from lib.flow import Descent, descend
    from lib.icl import batch_loss, collapsed, plain, prompt_loss

    optimiser, protocol = optax.sgd(STEP), {"batch": BATCH, "head": published_head, "weight": 1.0}
    if sampling == "batches":
        loss = batch_loss(published_task(), length, summary=SUMMARIES[activation], **protocol)
    else:
        drawn = {"plain": plain, "collapsed": collapsed}[sampling]
        loss = prompt_loss(published_task(), length, pool=POOLS[activation], sampling=drawn, **protocol)
    state = Descent.start(optimiser, SeparateWeights.draw(6, key=jr.key(0)), key=jr.key(1))
    go = eqx.filter_jit(descend)
    return lambda steps: jax.block_until_ready(go(loss, optimiser, state, steps))


def at_a_time(run: Callable[[int], None], starts: int) -> Callable[[int], None]:
    """So many starts at once, a thread each."""
    pool = ThreadPoolExecutor(starts)
    return lambda steps: list(pool.map(run, [steps] * starts)) and None


def pytorch(activation: str, length: int) -> Callable[[int], None]:
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
        weights = torch.softmax(scores, dim=2) if activation == "softmax" else scores / length
        output = layers["output"](weights @ layers["value"](tokens))
        loss = torch.nn.functional.mse_loss(output[:, 0, 0], target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return lambda steps: [step() for _ in range(steps)] and None


def worker(threads: int) -> None:
    """Time all contenders in turns, so that other load hits all, on as many processors; print steps a second."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    samplings = ("plain", "collapsed", "batches")
    peer = find_spec("torch") is not None
    if peer:
        import torch

        torch.set_num_threads(threads)
    for activation, length in ((activation, length) for activation in HEADS for length in LENGTHS):
        steps = max(20, 30_000 // length)
        runs = {sampling: ours(activation, length, sampling) for sampling in samplings}
        if threads > 1:
            runs["several"] = at_a_time(runs["batches"], threads)
        if peer:
            runs["PyTorch"] = pytorch(activation, length)
        fastest = dict.fromkeys(runs, float("inf"))
        for run in runs.values():
            run(steps)  # compiles
        for _ in range(ROUNDS):
            for name, run in runs.items():
                turn = time.perf_counter()
                while (begun := time.perf_counter()) < turn + SECONDS / len(runs):
                    run(steps)
                    fastest[name] = min(fastest[name], time.perf_counter() - begun)
        rates = {name: steps / seconds * (threads if name == "several" else 1) for name, seconds in fastest.items()}
        print(json.dumps({"head": activation, "length": length, **rates}), flush=True)


def main() -> None:
    """One process a number of threads, because both libraries count processors when they start."""
    from rich.console import Console
    from rich.table import Table

    names = ("PyTorch", "plain", "collapsed", "batches", "several")
    table = Table("threads", "head", "tokens", *names, "batches/PyTorch", "several/PyTorch")
    for threads in THREADS:
        command = [sys.executable, __file__, "--worker", str(threads)]
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
            row = json.loads(line)
            rates = [f"{row[name]:,.0f}/s" if name in row else "" for name in names]
            ratios = [
                f"{row[name] / row['PyTorch']:.1f}" if {name, "PyTorch"} <= row.keys() else ""
                for name in ("batches", "several")
            ]
            table.add_row(str(threads), row["head"], str(row["length"]), *rates, *ratios)
    console = Console(width=130)
    console.print(table)
    console.print("several: as many starts at a time as threads, steps times starts a second")
    if not find_spec("torch"):
        console.print("PyTorch is skipped: it is not installed.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]))
    else:
        main()
