"""Examples for `test_transformations.py`: the functions and methods of `lib.single_location`.

Each maker returns a function of one pytree of floating-point arrays, and the value at which the transformations are
tried. Lengths, counts and activations are in its closure: the length of a prompt decides shapes.
"""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from lib.single_location import (
    Head,
    Max,
    Overlaps,
    Prompts,
    Several,
    Spiked,
    _prox,
    attention_risk,
    bayes_optimal_risk,
    bayes_risk,
    bayes_risk_bounds,
    best_elementwise_risk,
    best_risk,
    erf,
    linear,
    replica,
    simulate_bayes_risk,
    softmax,
)

SCORES = np.asarray([0.3, -0.8, 1.1])
OVERLAPS = {"m_k": 0.6, "q_k": 1.2, "m_v": 0.7, "q_v": 0.9}
SEVEN = {**OVERLAPS, "m_kv": 0.1, "m_vk": -0.2, "q_vk": 0.15}
NOISE = {"noise_std": 0.3, "alpha": 2.0}
VECTOR, GRADIENT = np.asarray([0.6, 0.0, 0.8]), np.asarray([0.2, -0.5, 0.3])


def marginals(snr):
    return Spiked(5.0, snr).marginals(jnp.ones(()), jnp.ones(()))


def risk_of_overlaps():
    """The risk on prompts of a task that is made outside of `jit`, as its length must be concrete."""
    task = Spiked(3, 4.0)
    return lambda values: task.fresh_risk(softmax, seven(values)), np.asarray(list(SEVEN.values()))


def channel(label):
    return _prox.Channel(
        jnp.asarray(SCORES), jnp.asarray([0.4, 0.9, -0.6]), jnp.asarray(0.7), jnp.asarray(0.5), jnp.asarray(label)
    )


def few(snr):
    return Prompts.of(lambda scores: jnp.sqrt(snr) * scores - 0.5 * snr, 2, step=0.4)


def seven(values):
    return Overlaps(**dict(zip(SEVEN, values, strict=True)))


FOLDER = {
    "activations.Activation.weights": lambda: (softmax.weights, SCORES),
    "activations.Activation.lowest_risk": lambda: (lambda snr: linear.lowest_risk(marginals(snr)), 2.0),
    "activations.Activation.best_risk": lambda: (lambda snr: linear.best_risk(Spiked(5.0, snr)), 2.0),
    "activations.Activation.prox": lambda: (lambda y: linear.prox(channel(y), jnp.zeros((1, 3))), 0.8),
    "bayes_optimal.bayes_optimal_risk": lambda: (
        lambda length: bayes_optimal_risk(Spiked(length, 4.0), **NOISE),
        3.0,
    ),
    "tasks.Head.overlaps": lambda: (lambda vectors: Head(*vectors).overlaps(Head(*vectors[::-1])), (VECTOR, GRADIENT)),
    "tasks.LocationTask.fresh_risk": risk_of_overlaps,
    "few_tokens.Prompts.bayes_risk": lambda: (lambda snr: few(snr).bayes_risk(), 2.0),
    "few_tokens.Prompts.weight_averages": lambda: (lambda slope: few(2.0).weight_averages(softmax, slope), 1.3),
    "population.bayes_risk": lambda: (lambda snr: bayes_risk(Spiked(5.0, snr)), 2.0),
    "population.attention_risk": lambda: (
        lambda overlaps: attention_risk(Spiked(5.0, 2.0), softmax, Overlaps(**overlaps)),
        OVERLAPS,
    ),
    "population.best_risk": lambda: (lambda snr: best_risk(Spiked(5.0, snr), linear), 2.0),
    "population.best_elementwise_risk": lambda: (lambda snr: best_elementwise_risk(Spiked(5.0, snr)), 2.0),
    "replica.replica": lambda: (
        lambda length: replica(Spiked(length, 4.0), linear, **NOISE, ridge=(0.5, 0.5), points=64, replicates=2),
        3.0,
    ),
    "several_tokens.bayes_risk_bounds": lambda: (lambda snr: bayes_risk_bounds(Several(5.0, 2.0, snr)), 2.0),
    "several_tokens.simulate_bayes_risk": lambda: (
        lambda snr: simulate_bayes_risk(Several(5.0, 2.0, snr), 10, key=jr.key(0)),
        2.0,
    ),
    "tasks.LocationTask.best_risk": lambda: (lambda snr: Spiked(5.0, snr).best_risk(linear), 2.0),
    "tasks.LocationTask.signal_scores": lambda: (
        lambda snr: Spiked(3.0, snr).signal_scores(jnp.asarray(SCORES), jnp.asarray(0.4)),
        2.0,
    ),
    "tasks.Spiked.bayes_integrals": lambda: (lambda task: task.bayes_integrals(), Spiked(5.0, 2.0)),
    "tasks.Max.bayes_integrals": lambda: (lambda task: task.bayes_integrals(), Max(5.0, 2.0)),
    "tasks.LocationTask.bayes_risk": lambda: (lambda task: task.bayes_risk(), Spiked(5.0, 2.0)),
    "tasks.LocationTask.risk": lambda: (
        lambda values: Spiked(5.0, 2.0).risk(erf.moments(marginals(2.0)), seven(values)),
        np.asarray(list(SEVEN.values())),
    ),
}
EXAMPLES = {f"lib.single_location.{name}": make for name, make in FOLDER.items()}
LOWEST_CANDIDATES = {"lib.single_location.prox.gauss_newton_scores", "lib.single_location.replica.update"}
IN_NUMPY = {
    f"lib.single_location.tasks.{name}"
    for name in ("LocationTask.bayes_risk", "Max.bayes_integrals", "Spiked.bayes_integrals")
}
