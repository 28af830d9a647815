"""Measure the CPU time of the first call of functions of `lib`, each in a new process, and of later calls.

    python -m benchmarks.first_calls                      # all functions, to `book/first_calls.csv`
    python -m benchmarks.first_calls participation best   # those whose names contain one of these words, to look at

Times are CPU times of all threads, which depend little on the load of the machine. The first call follows the import,
and its arguments are made before. Programs are those that XLA compiles during the first call. Some functions, such as
those that train, draw or fit, are called on one set of arguments only.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
TABLE = ROOT / "book" / "first_calls.csv"
COLUMNS = ["function", "before", "first", "programs", "one", "thirty", "thousand", "because"]
# A first call that takes longer than this has a reason; the functions are named without what follows a comma.
LONG = 0.15
REASONS = {
    "it imports SciPy's Sobol points": (
        "QueryAverage.of_frames",
        "PairAverage.of_frames",
        "LocationTask.fresh_risk",
    ),
    "it trains": ("Blocks.best", "gradient_flow", "follow_flow", "sgd", "train", "simulate_erm"),
    "it iterates replica equations": ("bayes_optimal_risk", "replica"),
    "it averages over thousands of nodes": ("LinearRegression.finite_risk", "LinearRegression.finite_risk_error"),
}
COUNTS = {"one": 1, "thirty": 30, "thousand": 1000}
# A call is repeated for this long; a function is not called on more values if that would take longer than the latter.
LEAST_SECONDS, MOST_SECONDS = 0.1, 5.0


class Measured(NamedTuple):
    """A call, and a function that makes its argument for n values; `alone` if it is measured on one value only."""

    call: Callable[[Any], Any]
    argument: Callable[[int], Any]
    alone: bool = False


def functions() -> dict[str, Measured]:
    """Return the calls by name: that of the function, and after a comma what else the cost depends on.

    Arguments are made later, in the process that measures the call.
    """
    groups = (
        of_measures,
        of_finite_prompts,
        of_heads,
        of_regression,
        of_location,
        of_mixtures,
        of_training,
        of_helpers,
    )
    return {name: measured for group in groups for name, measured in group().items()}


def between(low: float, high: float, n: int):
    """Return n values, or one number for n = 1."""
    import numpy as np

    return low if n == 1 else np.linspace(low, high, n)


def each(function: Callable) -> Callable:
    """Return a function that calls `function` with each row of arguments."""
    return lambda rows: [function(*row) for row in rows]


def once(function: Callable, make: Callable[[], tuple]) -> Measured:
    """Return a call that is measured on one set of arguments, which `make` returns."""
    return Measured(lambda made: function(*made[0], **made[1]), lambda n: make(), alone=True)


def given(*args: Any, **options: Any) -> tuple:
    """Return the arguments of a call for `once`."""
    return args, options


def head(n: int) -> list:
    """Return a head, a Gaussian and n queries."""
    import numpy as np

    from lib.attention import Attention
    from lib.measures import Gaussian

    eye = np.eye(2)
    return [(Attention(eye, eye), Gaussian(np.zeros(2), eye), np.array([0.3 + k / n, 0.5])) for k in range(n)]


def of_measures() -> dict[str, Measured]:
    """Return calls of measures and attention."""
    import jax.random as jr
    import numpy as np

    from lib import attention, measures

    def gaussian():
        return measures.Gaussian(np.zeros(2), np.eye(2))

    def tilts(n: int):
        return [(gaussian(), np.array([0.3 + k / n, 0.5])) for k in range(n)]

    def prompt(n: int):
        points = np.sin(np.arange(200.0)).reshape(100, 2)
        return [(params, measures.Empirical(points), query) for params, _, query in head(n)]

    stack = given(np.zeros((2, 2)), np.broadcast_to(np.eye(2), (2, 2, 2)))
    return {
        "Gaussian": once(measures.Gaussian, lambda: given(np.zeros(2), np.eye(2))),
        "Gaussian.sample": once(measures.Gaussian.sample, lambda: given(gaussian(), 10, key=jr.key(0))),
        "GaussianMixture": once(measures.GaussianMixture, lambda: given(np.zeros(2), measures.Gaussian(*stack[0]))),
        "Empirical": once(measures.Empirical, lambda: given(np.eye(2))),
        **{
            name: once(getattr(measures, name), lambda: given(np.ones(2)))
            for name in ("Rademacher", "Uniform", "Laplace")
        },
        "Pushforward": once(measures.Pushforward, lambda: given(gaussian(), np.eye(2), np.zeros(2))),
        "Attention": once(attention.Attention, lambda: given(np.eye(2), np.eye(2))),
        "Attention.from_kqv": once(attention.Attention.from_kqv, lambda: given(np.eye(2), np.eye(2), np.eye(2))),
        "tilted_mean": Measured(each(measures.tilted_mean), tilts),
        "tilted_cov": Measured(each(measures.tilted_cov), tilts),
        "empirical": once(measures.empirical, lambda: given(gaussian(), 100, key=jr.key(0))),
        "attend": Measured(each(attention.attend), head),
        "attend, Empirical": Measured(each(attention.attend), prompt),
        "linear_attend": Measured(each(attention.linear_attend), head),
        "fluctuation": Measured(each(attention.fluctuation), head),
        "dependent_fluctuation": Measured(
            each(lambda *args: attention.dependent_fluctuation(*args, np.array([0.5, 0.2]))), head
        ),
        "stream_attend": once(attention.stream_attend, lambda: given(*head(1)[0], 1000, key=jr.key(0))),
    }


def of_finite_prompts() -> dict[str, Measured]:
    """Return calls of the exact theory of one head."""
    import jax.random as jr
    import numpy as np

    from lib import concentration, finite_prompt, partition

    log_length = np.log(100.0)

    def of_tau(function: Callable) -> Measured:
        return Measured(lambda tau: function(tau, log_length), lambda n: between(1.0, 5.0, n))

    def of_query(function: Callable) -> Measured:
        return Measured(each(lambda *args: function(*args, log_length)), head)

    def of_level(function: Callable) -> Measured:
        return Measured(function, lambda n: between(-3.0, 1.0, n))

    def ray():
        return finite_prompt.QueryRay.through(*head(1)[0])

    return {
        "rate_exponent": Measured(finite_prompt.rate_exponent, lambda n: between(0.5, 4.0, n)),
        **{
            name: of_tau(getattr(finite_prompt, name))
            for name in ("participation", "score_error", "score_statistics", "quadrature_error")
        },
        "sink_statistics": of_tau(lambda tau, log_length: finite_prompt.sink_statistics(tau, log_length, 1.0)),
        "quadrature_error, sink": of_tau(lambda tau, log_length: finite_prompt.quadrature_error(tau, log_length, 1.0)),
        "mean_output": of_query(finite_prompt.mean_output),
        "output_error": of_query(finite_prompt.output_error),
        "sample_output": once(finite_prompt.sample_output, lambda: given(*head(1)[0], 100, key=jr.key(0))),
        "measured_statistics": Measured(
            finite_prompt.measured_statistics, lambda n: np.sin(np.arange(100.0 * n)).reshape(n, 100)
        ),
        "QueryRay.through": Measured(each(finite_prompt.QueryRay.through), head),
        "QueryRay.read": once(lambda ray: ray.read(ray.queries(2.0)), lambda: given(ray())),
        "RadialTable.at": once(concentration.RadialTable.at, lambda: given([log_length])),
        "log_survival": of_level(lambda y: partition.log_survival(y, 2.0)),
        "log_tilted": of_level(lambda y: partition.log_tilted(2, y, 2.0)),
        "Resolution.levels": once(partition.Resolution().levels, lambda: given(2.0, log_length)),
        "square_given_others": of_level(lambda y: partition.square_given_others(2.0, y)),
    }


def of_heads() -> dict[str, Measured]:
    """Return calls of the theory of several heads."""
    import numpy as np

    from lib import icl, pairs

    log_length = np.log(100.0)

    def keys(n: int):
        return [(*row, np.array([0.2, -0.1])) for row in regression(n)]

    return {
        **{
            name: Measured(lambda x, name=name: getattr(pairs, name)(x, -x, log_length), lambda n: between(0.5, 3.0, n))
            for name in pairs.__all__
        },
        "heads_risk": Measured(
            each(lambda task, length, omega: icl.heads_risk(task, omega, np.array([2.5, -2.5]), length)), keys
        ),
        "best_values": Measured(each(lambda task, length, omega: icl.best_values(task, omega, length)), keys),
        "best_pair": Measured(each(icl.best_pair), regression),
    }


def regression(n: int) -> list:
    """Return a task of regression and n lengths of prompts."""
    import numpy as np

    from lib import icl

    return [(icl.LinearRegression(np.eye(5), noise_std=0.5), np.log(100.0 + k)) for k in range(n)]


def of_regression() -> dict[str, Measured]:
    """Return calls of in-context regression with one head."""
    import jax.random as jr
    import numpy as np

    from lib import icl

    def blocks():
        return icl.Blocks(0.2 * np.eye(5), 4.0)

    def with_head(function: Callable) -> Measured:
        return Measured(each(function), lambda n: [(task, blocks().head(), length) for task, length in regression(n)])

    return {
        "LinearRegression": once(icl.LinearRegression, lambda: given(np.eye(5))),
        "Blocks": once(icl.Blocks, lambda: given(np.eye(5), 4.0)),
        "Blocks.balanced": once(icl.Blocks.balanced, lambda: given(np.eye(5), 0.5)),
        "Blocks.infinite_limit": once(icl.Blocks.infinite_limit, lambda: given(regression(1)[0][0])),
        "Blocks.best": once(icl.Blocks.best, lambda: given(*regression(1)[0])),
        "block_attention": once(icl.block_attention, lambda: given(0.2 * np.eye(5), 4.0)),
        "block_risk": once(
            icl.block_risk,
            lambda: given(
                regression(1)[0][0], blocks(), icl.ScoreTable.at(np.log(100.0)), icl.QueryAverage.of_frames(5)
            ),
        ),
        "ScoreTable.at": once(icl.ScoreTable.at, lambda: given(np.log(100.0))),
        "QueryAverage.of_frames": once(icl.QueryAverage.of_frames, lambda: given(5)),
        "PairAverage.of_frames": once(icl.PairAverage.of_frames, lambda: given(5)),
        "valley_limit": Measured(lambda square: icl.valley_limit(square, 5), lambda n: between(0.1, 0.3, n)),
        "best_in_the_valley": once(icl.best_in_the_valley, lambda: given(5)),
        "LinearRegression.infinite_risk": with_head(lambda task, params, _: task.infinite_risk(params)),
        "LinearRegression.linear_head_risk": with_head(
            lambda task, params, length: task.linear_head_risk(params, np.exp(length))
        ),
        "LinearRegression.finite_risk": with_head(icl.LinearRegression.finite_risk),
        "LinearRegression.finite_risk_error": once(
            lambda task, length, params: task.finite_risk_error(params, length),
            lambda: given(*regression(1)[0], blocks().head()),
        ),
        "LinearRegression.linear_attention_risk": Measured(
            each(lambda task, length: task.linear_attention_risk(np.exp(length))), regression
        ),
        "LinearRegression.debiased_descent": Measured(each(icl.LinearRegression.debiased_descent), regression),
        "LinearRegression.bayes_risk": once(
            icl.LinearRegression.bayes_risk, lambda: given(regression(1)[0][0], 100, key=jr.key(0), n=256)
        ),
        "LinearRegression.draw": once(
            icl.LinearRegression.draw, lambda: given(regression(1)[0][0], 100, 10, key=jr.key(0))
        ),
        "prompt_loss": once(
            lambda task, params, key: icl.prompt_loss(task, 100, batch=10)(params, key),
            lambda: given(regression(1)[0][0], blocks().head(), jr.key(0)),
        ),
    }


def of_location() -> dict[str, Measured]:
    """Return calls of single-location regression."""
    import jax.random as jr
    import numpy as np

    from lib import single_location as sl

    tasks = {
        "Spiked": lambda n: sl.Spiked(100, between(9.0, 40.0, n)),
        "Max": lambda n: sl.Max(100, between(3.0, 9.0, n)),
    }
    sets = {
        "Several": lambda n: sl.Several(100, 10, between(9.0, 40.0, n)),
        "Independent": lambda n: sl.Independent(100, 0.1, between(9.0, 40.0, n)),
        "Absent": lambda n: sl.Absent(100, between(9.0, 40.0, n), 0.5),
    }

    def overlaps():
        return sl.Overlaps(1.0, 4.0, 1.0, 1.0)

    def spiked():
        return sl.Spiked(10, 9.0)

    def head_of(dimension: int):
        return sl.Head.orthogonal(dimension, key=jr.key(0))

    def prompts():
        return sl.Prompts.of(lambda scores: 3.0 * scores - 4.5, 2, shift=3.0)

    def risks(task: str, make_task: Callable, names: Sequence[str]) -> dict[str, Measured]:
        return {
            f"{verb}, {task}, {name}": Measured(call, make)
            for name in names
            for verb, call, make in (
                (
                    "attention_risk",
                    lambda row, name=name: sl.attention_risk(row[0], getattr(sl, name), row[1]),
                    lambda n: (make_task(n), overlaps()),
                ),
                ("best_risk", lambda task, name=name: sl.best_risk(task, getattr(sl, name)), make_task),
            )
        }

    activations = ("softmax", "softplus", "hardmax", "linear", "exp", "erf", "sigmoid", "relu")
    setting = {"noise_std": 0.3, "alpha": 3.0}
    return {
        "Spiked": once(sl.Spiked, lambda: given(100, 9.0)),
        "Max": once(sl.Max, lambda: given(100, 9.0)),
        "Several": once(sl.Several, lambda: given(100, 10, 9.0)),
        "Independent": once(sl.Independent, lambda: given(100, 0.1, 9.0)),
        "Absent": once(sl.Absent, lambda: given(100, 9.0, 0.5)),
        "Overlaps": once(sl.Overlaps, lambda: given(1.0, 4.0, 1.0, 1.0)),
        **{f"bayes_risk, {task}": Measured(sl.bayes_risk, make) for task, make in tasks.items()},
        **{f"bayes_risk, {task}": Measured(sl.bayes_risk, sets[task]) for task in ("Independent", "Absent")},
        **{f"bayes_risk_bounds, {task}": Measured(sl.bayes_risk_bounds, make) for task, make in sets.items()},
        **{
            f"simulate_bayes_risk, {task}": once(
                sl.simulate_bayes_risk, lambda make=make: given(make(1), 1000, key=jr.key(0))
            )
            for task, make in sets.items()
        },
        "best_elementwise_risk": Measured(sl.best_elementwise_risk, tasks["Spiked"]),
        **{name: row for task, make in tasks.items() for name, row in risks(task, make, activations).items()},
        **risks("Several", sets["Several"], ("softmax", "sink_softmax", "linear", "sigmoid")),
        **{
            f"{name}.weights": Measured(getattr(sl, name).weights, lambda n: np.sin(np.arange(10.0 * n)).reshape(n, 10))
            for name in (*activations, "sink_softmax")
        },
        "Activation.of_kernel": once(
            lambda task: sl.best_risk(task, sl.Activation.of_kernel(lambda chi: chi)), lambda: given(spiked())
        ),
        "Prompts.of": once(sl.Prompts.of, lambda: given(lambda scores: 3.0 * scores - 4.5, 2, shift=3.0)),
        "Prompts.bayes_risk": once(sl.Prompts.bayes_risk, lambda: given(prompts())),
        "Prompts.best_key_risk": once(sl.Prompts.best_key_risk, lambda: given(sl.softmax, [prompts()])),
        "Head.orthogonal": once(sl.Head.orthogonal, lambda: given(20, key=jr.key(0))),
        "Head.overlaps": once(lambda head: head.overlaps(head), lambda: given(head_of(20))),
        "LocationTask.draw": once(
            sl.Spiked.draw, lambda: given(spiked(), head_of(20), 10, noise_std=0.3, key=jr.key(0))
        ),
        "LocationTask.fresh_risk": once(sl.Spiked.fresh_risk, lambda: given(spiked(), sl.softmax, overlaps())),
        "bayes_optimal_risk, Spiked": once(sl.bayes_optimal_risk, lambda: given(spiked(), **setting)),
        "bayes_optimal_risk, Max": once(sl.bayes_optimal_risk, lambda: given(sl.Max(2, np.inf), **setting)),
        "replica": once(
            sl.replica,
            lambda: given(spiked(), sl.softmax, **setting, ridge=(1.0, 1.0), points=256, replicates=2),
        ),
        "simulate_erm": once(
            sl.simulate_erm,
            lambda: given(spiked(), sl.softmax, **setting, ridge=(1.0, 1.0), dimension=20, seeds=[0]),
        ),
    }


def of_mixtures() -> dict[str, Measured]:
    """Return calls of Gaussian mixtures."""
    import numpy as np

    from lib import mixtures
    from lib.measures import Gaussian, GaussianMixture

    def rows(n: int, separation: float = 2.0):
        means = np.array([[separation, 0.0], [-separation, 0.0]])
        parts = Gaussian(means, np.broadcast_to(np.eye(2), (2, 2, 2)))
        return [(GaussianMixture(np.log([0.4, 0.6]), parts), noise) for noise in np.linspace(0.5, 2.0, n)]

    return {
        "denoising_bayes_risk": Measured(each(mixtures.denoising_bayes_risk), rows),
        "denoising_linear_risk": Measured(each(mixtures.denoising_linear_risk), rows),
        "discriminant_bayes_risk": Measured(each(lambda mixture, _: mixtures.discriminant_bayes_risk(mixture)), rows),
        "mixture_quadrature_error": Measured(
            each(lambda *args: mixtures.mixture_quadrature_error(mixtures.denoising_bayes_risk, *args)), rows
        ),
    }


def of_training() -> dict[str, Measured]:
    """Return calls of flows and descents."""
    import jax
    import jax.numpy as jnp
    import jax.random as jr
    import numpy as np
    import optax

    from lib import flow

    def risk(point):
        return jnp.sum(point**2)

    def loss(point, key):
        return jnp.sum((point - jr.normal(key, (2,))) ** 2)

    def start():
        return jnp.array([1.0, 2.0])

    def descent():
        return given(loss, start(), optimiser=optax.sgd(0.1), steps=10, every=5, key=jr.key(0))

    times = np.array([0.0, 1.0])
    return {
        "gradient_flow": once(flow.gradient_flow, lambda: given(risk, start(), times)),
        "follow_flow": once(
            flow.follow_flow, lambda: given(jax.jit(jax.value_and_grad(risk)), np.array([1.0, 2.0]), times)
        ),
        "sgd": once(flow.sgd, descent),
        "train": once(lambda *args, **options: [row.loss for row in flow.train(*args, **options)], descent),
    }


def of_helpers() -> dict[str, Measured]:
    """Return calls of random numbers, batches and error bars."""
    import jax.numpy as jnp
    import jax.random as jr
    import numpy as np

    from lib import batching, random, statistics

    rows = np.sin(np.arange(300.0)).reshape(100, 3)
    return {
        "named_keys": once(random.named_keys, lambda: given(0, "task", "prompts")),
        "fast_normal": once(random.fast_normal, lambda: given(jr.key(0), (100,))),
        "map_batched": once(batching.map_batched, lambda: given(jnp.sum, jnp.asarray(rows), size=3)),
        "in_batches": once(batching.in_batches, lambda: given(lambda part: part.sum(axis=1), rows)),
        "comparison_quantile": once(statistics.comparison_quantile, lambda: given(100)),
        "standard_error": once(statistics.standard_error, lambda: given(rows)),
        "worst_deviation": once(statistics.worst_deviation, lambda: given(rows)),
        "tells_apart": once(statistics.tells_apart, lambda: given(rows[0], np.abs(rows[1]), 3.0)),
    }


def measure(name: str) -> dict[str, float | str]:
    """Return the seconds of the first call in this new process, its compiled programs, and seconds per later call."""
    import jax

    jax.config.update("jax_enable_x64", True)
    programs = []
    function, arguments, alone = functions()[name]
    argument = arguments(1)
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration_secs, **_: programs.append(event) if event.endswith("backend_compile_duration") else None
    )
    begun = time.process_time()
    jax.block_until_ready(function(argument))
    row: dict[str, float | str] = {"function": name, "first": time.process_time() - begun}
    row["programs"] = len(programs)
    last = 0.0
    for column, count in COUNTS.items():
        # a column has at most 34 times as many values as the one before
        if count == 1 or not (alone or 34 * last > MOST_SECONDS):
            row[column] = last = seconds(function, arguments(count))
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
    import pandas as pd

    parser = argparse.ArgumentParser("python -m benchmarks.first_calls", description="Cost of first and later calls.")
    parser.add_argument("words", nargs="*", help="words of the names of functions; all if there are none")
    words = parser.parse_args(arguments).words
    names = [name for name in functions() if not words or any(word in name for word in words)]
    rows = []
    # a fork has the imported modules, and JAX has not started in it
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(measure, names):
            rows.append(row)
            print(
                {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}, flush=True
            )
    if not words:
        table = pd.DataFrame(rows, columns=COLUMNS)
        if TABLE.exists():
            table["before"] = table["function"].map(pd.read_csv(TABLE).set_index("function")["before"])
        table["because"] = [because(row["function"], row["first"], row["programs"]) for row in rows]
        table.to_csv(TABLE, index=False, float_format="%.3g")


def because(name: str, first: float, programs: int) -> str:
    """Return why a first call takes long, and nothing if it does not."""
    if first < LONG:
        return ""
    bare = name.partition(",")[0]
    otherwise = "it compiles small programs" if programs else "its computation takes that long"
    return next((reason for reason, names in REASONS.items() if bare in names), otherwise)


if __name__ == "__main__":
    main()
