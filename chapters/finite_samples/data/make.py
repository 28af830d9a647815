"""Find the best ridges, train at them and at weak ones, and keep the three tables beside this file.

    python chapters/finite_samples/data/make.py

Writes `best_ridges`, `runs` and `weak_ridges`, each a `.csv` and, last, a `.json` with where it came from. About ten
minutes on one core.
"""

import argparse
import datetime
import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from scipy.optimize import minimize

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from chapters.finite_samples.parameters import ALPHAS  # noqa: E402
from chapters.finite_samples.theory import predict, ridge_at  # noqa: E402
from chapters.finite_samples.training import HEADS, LENGTH, NOISE_STD, RUNS, SNR, STARTS, train  # noqa: E402
from lib.single_location.erm import Erm  # noqa: E402

# Where the replica is trusted; best ridges are looked for from here on.
SMALLEST_RIDGE = 0.3
RIDGE_ALPHAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
# Weak regularisation: equal ridges of keys and values, at one size.
WEAK_RIDGES, WEAK_ALPHA, WEAK_DIMENSION, WEAK_RUNS = (0.01, 0.03, 0.1, 0.3, 1.0), 1.5, 200, 12


def best_ridges() -> pd.DataFrame:
    """The ridges, from `SMALLEST_RIDGE` on, of least replica risk: by the simplex method, on coarse fixed points."""
    rows = []
    for name, activation in HEADS.items():
        logs = np.log([0.5, 0.5] if name == "softmax" else [0.5, 8.0])
        for alpha in RIDGE_ALPHAS:

            def risk(logs, activation=activation, alpha=alpha):
                ridge = np.maximum(np.exp(logs), SMALLEST_RIDGE)
                return float(predict(activation, alpha, ridge, points=512).risk)

            simplex = logs + np.asarray([[0.0, 0.0], [0.4, 0.0], [0.0, 0.4]])
            options = {"xatol": 0.05, "fatol": 1e-4, "initial_simplex": simplex}
            logs = minimize(risk, logs, method="Nelder-Mead", options=options).x
            ridge_k, ridge_v = np.maximum(np.exp(logs), SMALLEST_RIDGE).round(3)
            rows.append({"head": name, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v})
    return pd.DataFrame(rows)


def grid(ridges: pd.DataFrame) -> pd.DataFrame:
    """Runs at the best ridges, in all dimensions, from the hidden directions."""
    frames = []
    for name in HEADS:
        for alpha in ALPHAS:
            ridge = ridge_at(ridges, name, alpha)
            for dimension, runs in RUNS.items():
                seeds = list(range(runs))
                frames.append(table(name, "informed", alpha=alpha, ridge=ridge, dimension=dimension, seeds=seeds))
    return pd.concat(frames, ignore_index=True)


def weak() -> pd.DataFrame:
    """Runs at weak ridges, each twice on the same prompts: from the hidden directions, and from random ones."""
    seeds = list(range(WEAK_RUNS))
    return pd.concat(
        [
            table("softmax", start, alpha=WEAK_ALPHA, ridge=(ridge, ridge), dimension=WEAK_DIMENSION, seeds=seeds)
            for ridge in WEAK_RIDGES
            for start in STARTS
        ],
        ignore_index=True,
    )


def table(
    name: str, start: str, *, alpha: float, ridge: tuple[float, float], dimension: int, seeds: Sequence[int]
) -> pd.DataFrame:
    """Training runs of one setting, a row a seed."""
    runs = train(name, start, alpha=alpha, ridge=ridge, dimension=dimension, seeds=seeds)
    setting = {"head": name, "start": start, "alpha": alpha, "ridge_k": ridge[0], "ridge_v": ridge[1]}
    return pd.DataFrame({**setting, "dimension": dimension, "seed": seeds, **columns_of(runs)})


def columns_of(runs: Erm) -> dict[str, np.ndarray]:
    """The numbers of a stack of runs, by name."""
    overlaps = {name: np.asarray(value) for name, value in vars(runs.overlaps).items()}
    rest = ("train_loss", "objective", "flatness", "steps")
    return {"risk": np.asarray(runs.risk), **overlaps, **{name: np.asarray(getattr(runs, name)) for name in rest}}


def write(name: str, frame: pd.DataFrame) -> None:
    """The numbers, and beside them where they come from."""
    frame.to_csv(HERE / f"{name}.csv", index=False, float_format="%.8g")
    (HERE / f"{name}.json").write_text(json.dumps(provenance(name, frame), indent=1) + "\n", encoding="utf-8")


def provenance(name: str, frame: pd.DataFrame) -> dict:
    """Where a table came from."""
    return {
        "command": "python chapters/finite_samples/data/make.py",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, CPU",
        "parameters": {"length": LENGTH, "snr": SNR, "noise_std": NOISE_STD},
        "rows": len(frame),
        "seeds": "the column `seed`: key = fold_in(key(seed), dimension)" if "seed" in frame else "none: deterministic",
        "table": name,
        "versions": {package: version(package) for package in ("jax", "optax", "numpy", "scipy")},
    }


def main() -> None:
    """Search, train, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with jax.enable_x64(True):
        ridges = best_ridges()
        write("best_ridges", ridges)
        write("runs", grid(ridges))
        write("weak_ridges", weak())


if __name__ == "__main__":
    main()
