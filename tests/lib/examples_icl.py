"""Examples for `test_transformations.py`: all of `lib` but `lib.single_location`.

Each maker returns a function of one pytree of arrays, floating-point where it may be differentiated, and the value at
which the transformations are tried. Fixed arguments, such as keys, counts and functions, are in its closure.
"""

import sys
from functools import partial
from unittest import mock

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from lib import attention, batching, finite_prompt, flow, icl, measures, partition
from lib.attention import Attention
from lib.measures import Empirical, Gaussian
from lib.random import fast_normal, normal

KEY = jr.key(7)
LENGTH, LOG_LENGTH = 20, 3.0
TAU = 1.5
LEVELS = np.linspace(-3.0, 1.0, 4)
RESOLUTION = partition.Resolution(count=24, step=0.5)  # coarse, to compile quickly

TOKENS = np.array([[0.3, -1.0], [1.2, 0.4], [-0.7, 0.2], [0.1, 0.9]])
SCORES, VALUES = TOKENS @ TOKENS.T, np.sin(np.arange(12.0)).reshape(4, 3)
QUERY = np.array([0.7, -0.4])


def gaussian():
    return Gaussian(np.array([0.2, -0.1]), np.array([[1.0, 0.3], [0.3, 0.5]]))


def head():
    return Attention(np.array([[0.6, 0.1], [-0.2, 0.4]]), np.array([[1.0, 0.5]]))


def gap(function):
    """A gap of a prompt of Gaussian tokens."""
    return lambda: (lambda x: function(*x), (head(), Empirical(TOKENS), gaussian(), QUERY))


def of_head(function, *fixed, **options):
    """A function of a head, Gaussian tokens and a query."""
    return lambda: (lambda x: function(*x, *fixed, **options), (head(), gaussian(), QUERY))


def noisy_loss(params, key):
    return jnp.sum((params - jr.normal(key, params.shape)) ** 2)


COV = np.array([[1.0, 0.3], [0.3, 0.5]])
WORDS = np.array([5, 7], np.uint32)


def regression():
    return icl.LinearRegression(COV, noise_std=0.3)


def regression_of(cov):
    return icl.LinearRegression(cov, noise_std=0.3)


def regression_head():
    return Attention(np.array([[0.6, 0.1, 0.2], [-0.2, 0.4, 0.1], [0.1, 0.0, 0.3]]), np.array([[0.1, 0.2, 0.9]]))


def blocks():
    return icl.Blocks(COV, 0.7)


def scores():
    """A table; that of `check_vmap` for the larger length is computed with it."""
    return icl.ScoreTable.at_each([LOG_LENGTH, 1.01 * LOG_LENGTH])[0]


def four_panels(log_length):
    """The first four panels of a table of scores; where the length is traced, the program computes only these."""
    module = sys.modules["lib.icl.score_table"]
    traced = isinstance(log_length, jax.core.Tracer)
    with mock.patch.object(module, "_EDGES", module._EDGES[:5] if traced else module._EDGES):
        return jax.tree.map(lambda table: table[:4], icl.ScoreTable.at(log_length))


def few_pairs():
    return icl.PairAverage.of_frames(2, frames=2, query_radii=3, task_radii=2)


def few_frames(function):
    """A function that averages over two frames of queries where it would choose 512."""
    small = partial(icl.PairAverage.of_frames, frames=2)
    return mock.patch.object(icl.PairAverage, "of_frames", small)(function)


def risk(name, *fixed, average=None):
    """A risk of a head, as a function of the task and the head."""

    def make():
        options = {} if average is None else {"average": average()}
        return lambda x: getattr(x[0], name)(x[1], *fixed, **options), (regression(), regression_head())

    return make


def statistics():
    return finite_prompt._ScoreStatistics(*map(jnp.asarray, (0.2, 0.4)))


EXAMPLES = {
    # measures
    "lib.measures.Measure.log_mgf": lambda: (lambda x: x[0].log_mgf(x[1]), (gaussian(), QUERY)),
    "lib.measures.Measure.sample": lambda: (lambda x: x.sample(3, key=KEY), gaussian()),
    "lib.measures.empirical": lambda: (lambda x: measures.empirical(x, 3, key=KEY), gaussian()),
    "lib.measures.tilted_mean": lambda: (lambda x: measures.tilted_mean(*x), (Empirical(TOKENS), QUERY)),
    "lib.measures.tilted_cov": lambda: (lambda x: measures.tilted_cov(*x), (Empirical(TOKENS), QUERY)),
    # attention
    "lib.attention.Attention.from_kqv": lambda: (lambda x: Attention.from_kqv(*x), (TOKENS, TOKENS + 1.0, TOKENS)),
    "lib.attention.attend": of_head(attention.attend),
    "lib.attention.linear_attend": of_head(attention.linear_attend),
    "lib.attention.fluctuation": of_head(attention.fluctuation),
    "lib.attention.dependent_fluctuation": lambda: (
        lambda x: attention.dependent_fluctuation(*x),
        (head(), gaussian(), QUERY, np.array([0.5, -0.2])),
    ),
    "lib.attention.stream_attend": of_head(attention.stream_attend, 7, key=KEY, block=3),
    # batching
    "lib.batching.map_batched": lambda: (lambda x: batching.map_batched(jnp.sin, x, size=1), np.arange(3.0)),
    "lib.batching.in_batches": lambda: (lambda x: batching.in_batches(np.sin, x), np.arange(3.0)),
    # partition
    "lib.partition.log_survival": lambda: (lambda x: partition.log_survival(*x), (LEVELS, TAU)),
    "lib.partition.log_tilted": lambda: (lambda x: partition.log_tilted(2, *x), (LEVELS, TAU)),
    "lib.partition.Resolution.levels": lambda: (lambda x: RESOLUTION.levels(*x), (TAU, LOG_LENGTH)),
    "lib.partition.square_given_others": lambda: (lambda x: partition.square_given_others(*x), (TAU, LOG_LENGTH)),
    # finite prompts
    "lib.finite_prompt.participation": lambda: (lambda x: finite_prompt.participation(*x), (TAU, LOG_LENGTH)),
    "lib.finite_prompt.score_error": lambda: (lambda x: finite_prompt.score_error(*x), (TAU, LOG_LENGTH)),
    "lib.finite_prompt.score_statistics": lambda: (lambda x: finite_prompt.score_statistics(*x), (TAU, LOG_LENGTH)),
    "lib.finite_prompt.sink_statistics": lambda: (
        lambda x: finite_prompt.sink_statistics(*x),
        (TAU, LOG_LENGTH, 2.0),
    ),
    # with a sink; `test_finite_prompt.py` compiles it without one
    "lib.finite_prompt.quadrature_error": lambda: (
        lambda x: finite_prompt.quadrature_error(*x),
        (TAU, LOG_LENGTH, 2.0),
    ),
    "lib.finite_prompt.measured_statistics": lambda: (finite_prompt.measured_statistics, SCORES),
    "lib.finite_prompt.mean_output": of_head(finite_prompt.mean_output, LOG_LENGTH),
    "lib.finite_prompt.output_error": of_head(finite_prompt.output_error, LOG_LENGTH),
    "lib.finite_prompt.sample_output": of_head(finite_prompt.sample_output, LENGTH, key=KEY),
    "lib.finite_prompt.rate_exponent": lambda: (finite_prompt.rate_exponent, 1.3),
    "lib.finite_prompt.QueryRay.through": of_head(finite_prompt.QueryRay.through),
    "lib.finite_prompt.QueryRay.queries": lambda: (lambda x: ray(x[0]).queries(x[1]), (QUERY, np.arange(3.0))),
    "lib.finite_prompt.QueryRay.read": lambda: (lambda x: ray(x[0]).read(x[1]), (QUERY, np.ones((3, 1)))),
    # concentration
    # flow
    "lib.flow.gradient_flow": lambda: (
        lambda x: flow.gradient_flow(lambda y: jnp.sum(y**4), x, np.array([0.5, 1.0])),
        np.array([1.0, -0.5]),
    ),
    "lib.flow.follow_flow": lambda: (
        lambda x: flow.follow_flow(lambda point: (point @ point / 2, point), x, np.array([0.5, 1.0]))[0],
        np.array([1.0, -0.5]),
    ),
    "lib.flow.sgd": lambda: (
        lambda x: flow.sgd(noisy_loss, x, optimiser=optax.sgd(0.1), steps=4, every=2, key=KEY),
        np.array([1.0, -0.5]),
    ),
    # heads
    # in-context regression
    "lib.icl.blocks.block_attention": lambda: (lambda x: icl.block_attention(*x), (COV, 0.7)),
    "lib.icl.blocks.Blocks.head": lambda: (icl.Blocks.head, blocks()),
    "lib.icl.blocks.Blocks.balanced": lambda: (lambda x: icl.Blocks.balanced(*x), (TOKENS.T, 0.7)),
    "lib.icl.blocks.Blocks.isotropic": lambda: (lambda x: icl.Blocks.isotropic(2, *x), (0.8, 0.7)),
    "lib.icl.blocks.Blocks.infinite_limit": lambda: (icl.Blocks.infinite_limit, regression()),
    "lib.icl.blocks.block_risk": lambda: (
        lambda x: icl.block_risk(*x, icl.QueryAverage.radial(2, radii=3)),
        (regression(), blocks(), scores()),
    ),
    "lib.icl.regression.LinearRegression.infinite_risk": risk("infinite_risk"),
    "lib.icl.regression.LinearRegression.linear_head_risk": risk("linear_head_risk", LENGTH),
    "lib.icl.regression.LinearRegression.finite_risk": risk("finite_risk", LOG_LENGTH, average=few_pairs),
    "lib.icl.regression.LinearRegression.risk_gap": lambda: (
        lambda x: x[0].risk_gap(x[1], x[2], few_pairs()),
        (regression(), regression_head(), scores()),
    ),
    "lib.icl.regression.LinearRegression.finite_risk_error": lambda: (
        few_frames(lambda x: x[0].finite_risk_error(x[1], LOG_LENGTH)),
        (regression(), regression_head()),
    ),
    "lib.icl.regression.LinearRegression.linear_attention_risk": lambda: (
        lambda x: regression_of(x).linear_attention_risk(LENGTH),
        COV,
    ),
    "lib.icl.regression.LinearRegression.debiased_descent": lambda: (
        lambda x: icl.LinearRegression(np.eye(2), noise_std=x[0]).debiased_descent(x[1]),
        (0.3, LOG_LENGTH),
    ),
    "lib.icl.regression.LinearRegression.bayes_risk": lambda: (
        lambda x: regression_of(x).bayes_risk(4, key=KEY, n=3),
        COV,
    ),
    "lib.icl.regression.LinearRegression.draw": lambda: (lambda x: regression_of(x).draw(4, 3, key=KEY), COV),
    # tasks
    "lib.icl.score_table.ScoreTable.statistics": lambda: (lambda x: x[0].statistics(x[1]), (scores(), 2.0)),
    "lib.icl.score_table.ScoreTable.at": lambda: (four_panels, LOG_LENGTH),
    "lib.icl.score_table.ScoreTable.at_each": lambda: (icl.ScoreTable.at_each, np.array([LOG_LENGTH])),
    # training
    "lib.icl.training.prompt_loss": lambda: (
        partial(icl.prompt_loss(regression(), 4, batch=2, every_token=True), key=KEY),
        regression_head(),
    ),
    "lib.random.normal": lambda: (lambda x: normal(jr.wrap_key_data(x), (3,)), WORDS),
    "lib.random.fast_normal": lambda: (
        lambda x: [fast_normal(jr.wrap_key_data(x), (3,), dtype) for dtype in (float, complex)],
        WORDS,
    ),
}

IN_NUMPY = {
    "lib.partition.log_survival",
    "lib.partition.log_tilted",
    "lib.partition.Resolution.levels",
}


def ray(direction):
    return finite_prompt.QueryRay(head(), gaussian(), direction)
