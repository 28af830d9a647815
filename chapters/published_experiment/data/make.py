"""Train the published model once, as published, and keep what it passed through beside this file.

    python chapters/published_experiment/data/make.py --length 20 --activation softmax --seed 0 --steps 300000

One head with separate query, key, value and output matrices, plain SGD of step 1e-3 on the mean square of 128 fresh
prompts a step. Writes `<activation>_<length>_<seed>.csv` and, last, `.json` with where it came from. A killed run
goes on from its checkpoint in `_build/published_experiment/` when started again.
"""

import argparse
import json
import math
import platform
import subprocess
import sys
import time
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from rich.progress import Progress

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from lib.flow import Checkpoint, History, train  # noqa: E402
from lib.icl.training import (  # noqa: E402
    SeparateWeights,
    linear_pool,
    prompt_loss,
    published_head,
    published_task,
    softmax_pool,
)

BATCH, STEP, EVERY = 128, 1e-3, 1000
CHECKPOINTS = ROOT / "_build" / "published_experiment"
POOLS = {"softmax": softmax_pool, "linear": linear_pool}
MEANING = {
    "step": "steps of stochastic gradient descent",
    "loss": "mean square error over the fresh prompts of the steps since the row before",
    "loss_std_error": "its standard error, from the spread over steps",
    "risk": "exact mean square error of the head after this step, label noise included",
}


def run(length: int, activation: str, steps: int, seed: int) -> History:
    """Train, from the checkpoint if there is one."""
    name = f"{activation}_{length}_{seed}"
    weights_key, prompts_key = jr.split(jr.key(seed))
    with Progress() as progress:
        bar = progress.add_task(name, total=steps)

        def report(step: int, loss: float) -> None:
            progress.update(bar, completed=step, description=f"{name}: mean square {loss:.4f}")

        return train(
            prompt_loss(published_task(), length, batch=BATCH, head=published_head, pool=POOLS[activation], weight=1.0),
            SeparateWeights.draw(6, key=weights_key),
            optimiser=optax.sgd(STEP),
            steps=steps,
            every=EVERY,
            key=jr.fold_in(prompts_key, length),
            checkpoint=Checkpoint(CHECKPOINTS / f"{name}.npz", f"{name}, {steps} steps"),
            report=report,
        )


def table(history: History, length: int, activation: str) -> pd.DataFrame:
    """The history with the exact mean square of every recorded head, which needs no prompt."""
    with jax.enable_x64(True):
        task = published_task()
        if activation == "softmax":
            risk = jax.jit(lambda weights: task.finite_risk(published_head(weights), math.log(length)))
        else:
            risk = jax.jit(lambda weights: task.linear_risk(published_head(weights), length))
        weights = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), history.params)
        exact = np.asarray(jax.lax.map(risk, weights))
    columns = {"step": history.steps, "loss": history.loss, "loss_std_error": history.loss_std_error, "risk": 2 * exact}
    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})


def provenance(arguments: dict, digest: str) -> dict:
    """Where a table came from."""
    describe = ["git", "describe", "--always", "--dirty"]
    options = " ".join(f"--{k} {v}" for k, v in arguments.items())
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return {
        "columns": MEANING,
        "command": f"python chapters/published_experiment/data/make.py {options}",
        "parameters": arguments | {"batch": BATCH, "step_size": STEP, "sampling": "collapsed", "precision": "float32"},
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit,
        "machine": f"{platform.machine()}, {platform.system()}, {jax.default_backend()}",
        "versions": {"python": platform.python_version()} | {name: version(name) for name in ("jax", "numpy", "optax")},
        "sha256": digest,
    }


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, required=True, help="tokens in a prompt")
    parser.add_argument("--activation", choices=POOLS, required=True)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = vars(parser.parse_args())
    frame = table(run(**arguments), arguments["length"], arguments["activation"])
    target = HERE / "{activation}_{length}_{seed}.csv".format(**arguments)
    text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    record = provenance(arguments, sha256(text.encode()).hexdigest())
    target.write_text(text, encoding="utf-8")
    target.with_suffix(".json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
