"""Heads trained by descent on drawn prompts with several relevant tokens.

A token has four coordinates. The first is its score, shifted by √ν if the token is relevant, the second its value, and
the others are noise. A head learns its vectors k and v in all coordinates, a sigmoid head its bias too. Descents start
at half the unit vectors of score and value, plus noise, and the one that ends lowest on the training prompts is taken.
Softmax heads ended at the same risk from every start that we tried. Of the descents of a sigmoid about one in four ends
at a worse minimum, whose key reads the value, so it has more of them.
"""

from collections.abc import Sequence

import jax.random as jr
import numpy as np
import pandas as pd
import scipy.optimize
import scipy.special
from jaxtyping import Float, PRNGKeyArray

from chapters.several_relevant_tokens.parameters import LENGTH, SHOWN_SNR
from lib.single_location import Several, best_risk, sigmoid, softmax

DIMENSION, STARTS = 4, {"softmax": 2, "sigmoid": 8}
# Fresh prompts on which a trained head is measured, in blocks.
TESTED, BLOCK = 10_000, 1000


def train_heads(numbers: Sequence[int], training: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return the measured risks of heads trained on `training` prompts, and the least risks of such heads."""
    rows = []
    for relevant in (1, *numbers):
        task = Several(LENGTH, relevant, SHOWN_SNR)
        rng = np.random.default_rng(np.asarray(jr.key_data(jr.fold_in(key, relevant))))
        prompts = _draw(relevant, training, rng)
        tests = [_draw(relevant, BLOCK, rng) for _ in range(TESTED // BLOCK)]
        for head, activation in (("softmax", softmax), ("sigmoid", sigmoid)):
            arguments = (*prompts, relevant, head)
            ends = [
                scipy.optimize.minimize(_error_and_gradient, _start(relevant, rng), arguments, "L-BFGS-B", jac=True)
                for _ in range(STARTS[head])
            ]
            found = min(ends, key=lambda end: end.fun)
            errors = np.concatenate([_errors(found.x, *test, relevant, head)[0] for test in tests])
            standard_error = errors.std() / np.sqrt(errors.size)
            rows.append((relevant, head, errors.mean(), standard_error, float(best_risk(task, activation))))
    return pd.DataFrame(rows, columns=["relevant", "head", "risk", "std_error", "best"])


def _start(relevant: int, rng: np.random.Generator) -> np.ndarray:
    """Return vectors, and the bias at which a sigmoid without scores gives r tokens their weight."""
    vectors = 0.5 * np.eye(2, DIMENSION).ravel() + 0.2 * rng.standard_normal(2 * DIMENSION)
    return np.append(vectors, -np.log(LENGTH / relevant))


def _draw(relevant: int, prompts: int, rng: np.random.Generator):
    """Return tokens and labels without noise."""
    tokens = rng.standard_normal((prompts, LENGTH, DIMENSION))
    tokens[:, :relevant, 0] += np.sqrt(SHOWN_SNR)
    return tokens, tokens[:, :relevant, 1].sum(axis=1)


def _errors(parameters, tokens, label, relevant, head):
    """Return squared errors over the variance of the label, and what a gradient needs."""
    key, value = parameters[:DIMENSION], parameters[DIMENSION : 2 * DIMENSION]
    scores, values = tokens @ key, tokens @ value
    weights = (
        scipy.special.softmax(scores, axis=1) if head == "softmax" else scipy.special.expit(scores + parameters[-1])
    )
    residuals = (weights * values).sum(axis=1) - label
    return residuals**2 / relevant, weights, values, residuals


def _error_and_gradient(parameters, tokens, label, relevant, head) -> tuple[float, Float[np.ndarray, " n"]]:
    errors, weights, values, residuals = _errors(parameters, tokens, label, relevant, head)
    outer = 2.0 * residuals[:, None] / relevant / len(label)
    pull = values - (residuals + label)[:, None] if head == "softmax" else (1.0 - weights) * values
    of_key, of_value = (np.tensordot(outer * part, tokens, 2) for part in (weights * pull, weights))
    of_bias = 0.0 if head == "softmax" else (outer * weights * pull).sum()
    return errors.mean(), np.concatenate([of_key, of_value, [of_bias]])
