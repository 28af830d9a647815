"""Measure the CPU time of the first call of functions of `lib`, each in a new process, and of later calls.

    python -m benchmarks.first_calls                      # all functions, to `book/first_calls.csv`
    python -m benchmarks.first_calls participation best   # those whose names contain one of these words, to look at

CPU time of all threads, in which the load of the machine does not count. The first call follows the import, and its
arguments are made before. Programs are those that XLA compiles during the first call.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
TABLE = ROOT / "book" / "first_calls.csv"
COLUMNS = ["function", "first", "programs", "one", "thirty", "thousand"]
COUNTS = {"one": 1, "thirty": 30, "thousand": 1000}
# A call is repeated for this long; a function is not called on more values if that would take longer than the latter.
LEAST_SECONDS, MOST_SECONDS = 0.3, 60.0


def functions() -> dict[str, tuple[Callable, Callable]]:
    """Return by name the call that is measured, and a function that makes its arguments for n values."""
    import numpy as np

    from lib import icl, mixtures, pairs, single_location
    from lib.attention import Attention
    from lib.finite_prompt import (
        mean_output,
        output_error,
        participation,
        quadrature_error,
        rate_exponent,
        score_error,
    )
    from lib.measures import Gaussian, GaussianMixture

    log_length = np.log(100.0)

    def between(low: float, high: float, n: int):
        return low if n == 1 else np.linspace(low, high, n)

    def head(n: int):
        eye = np.eye(2)
        return [(Attention(eye, eye), Gaussian(np.zeros(2), eye), np.array([x, 0.5]), log_length) for x in at(n)]

    def at(n: int):
        return np.atleast_1d(between(0.5, 4.0, n))

    def regression(n: int):
        return [(icl.LinearRegression(np.eye(5), noise_std=0.5), np.log(100.0 + k)) for k in range(n)]

    def keys(n: int):
        return [(task, np.array([0.2, -0.1]), length) for task, length in regression(n)]

    def mixture(n: int, separation: float = 2.0):
        means = np.array([[separation, 0.0], [-separation, 0.0]])
        parts = Gaussian(means, np.broadcast_to(np.eye(2), (2, 2, 2)))
        return [(GaussianMixture(np.log([0.4, 0.6]), parts), noise) for noise in np.linspace(0.5, 2.0, n)]

    def spiked(n: int):
        return single_location.Spiked(100, between(9.0, 40.0, n))

    def largest(n: int):
        return single_location.Max(100, between(3.0, 9.0, n))

    def each(function: Callable) -> Callable:
        return lambda rows: [function(*row) for row in rows]

    overlaps = single_location.Overlaps(1.0, 4.0, 1.0, 1.0)
    return {
        "rate_exponent": (rate_exponent, lambda n: between(0.5, 4.0, n)),
        **{
            f.__name__: (lambda x, f=f: f(x, log_length), lambda n: between(1.0, 5.0, n))
            for f in (participation, score_error, quadrature_error)
        },
        "mean_output": (each(mean_output), head),
        "output_error": (each(output_error), head),
        **{
            f.__name__: (lambda x, f=f: f(x, -x, log_length), lambda n: between(0.5, 3.0, n))
            for f in (pairs.pair_participation, pairs.pair_score_error, pairs.pair_quadrature_error)
        },
        "heads_risk": (
            each(lambda task, omega, length: icl.heads_risk(task, omega, np.array([2.5, -2.5]), length)),
            keys,
        ),
        "best_values": (each(icl.best_values), keys),
        "best_pair": (each(icl.best_pair), regression),
        "LinearRegression.finite_risk": (
            each(lambda task, length: task.finite_risk(icl.block_attention(0.2 * np.eye(5), 4.0), length)),
            regression,
        ),
        "bayes_risk, Spiked": (single_location.bayes_risk, spiked),
        "bayes_risk, Max": (single_location.bayes_risk, largest),
        **{
            f"{verb}, {task.__name__}, {name}": (call, make)
            for task, make in ((single_location.Spiked, spiked), (single_location.Max, largest))
            for name in ("softmax", "linear", "sigmoid")
            for verb, call in (
                (
                    "attention_risk",
                    lambda x, name=name: single_location.attention_risk(x, getattr(single_location, name), overlaps),
                ),
                ("best_risk", lambda x, name=name: single_location.best_risk(x, getattr(single_location, name))),
            )
        },
        "denoising_bayes_risk": (each(mixtures.denoising_bayes_risk), mixture),
        "denoising_linear_risk": (each(mixtures.denoising_linear_risk), mixture),
        "discriminant_bayes_risk": (each(lambda mixture, _: mixtures.discriminant_bayes_risk(mixture)), mixture),
        "mixture_quadrature_error": (
            each(lambda *args: mixtures.mixture_quadrature_error(mixtures.denoising_bayes_risk, *args)),
            mixture,
        ),
        "bayes_optimal_risk": (
            lambda n: single_location.bayes_optimal_risk(single_location.Spiked(10, 9.0), noise_std=0.3, alpha=3.0),
            lambda n: n,
        ),
    }


def measure(name: str) -> dict[str, float | str]:
    """Return the seconds of the first call in this new process, its compiled programs, and seconds per later call."""
    import jax

    jax.config.update("jax_enable_x64", True)
    programs = []
    function, arguments = functions()[name]
    prepared = {column: arguments(count) for column, count in COUNTS.items()}
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **__: programs.append(event) if event.endswith("backend_compile_duration") else None
    )
    begun = time.process_time()
    jax.block_until_ready(function(prepared["one"]))
    row: dict[str, float | str] = {"function": name, "first": time.process_time() - begun}
    row["programs"] = len(programs)
    last = 0.0
    for column in COUNTS if name != "bayes_optimal_risk" else ["one"]:
        if 34 * last < MOST_SECONDS:  # the next column has at most 34 times as many values
            row[column] = last = seconds(function, prepared[column])
    return row


def seconds(function: Callable, argument) -> float:
    """Return the CPU seconds per call, after one that is not counted."""
    import jax

    jax.block_until_ready(function(argument))
    calls, begun = 0, time.process_time()
    while not calls or time.process_time() < begun + LEAST_SECONDS:
        jax.block_until_ready(function(argument))
        calls += 1
    return (time.process_time() - begun) / calls


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the named functions and print the results; without names, measure all and write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks.first_calls", description="Cost of first and later calls.")
    parser.add_argument("words", nargs="*", help="words of the names of functions; all if there are none")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        print(json.dumps(measure(given.worker)))
        return
    import pandas as pd

    chosen = [name for name in functions() if not given.words or any(word in name for word in given.words)]
    rows = []
    for name in chosen:
        command = [sys.executable, "-m", "benchmarks.first_calls", "--worker", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr}")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(
            {key: round(value, 4) if isinstance(value, float) else value for key, value in rows[-1].items()}, flush=True
        )
    if not given.words:
        pd.DataFrame(rows, columns=COLUMNS).to_csv(TABLE, index=False, float_format="%.3g")


if __name__ == "__main__":
    main()
