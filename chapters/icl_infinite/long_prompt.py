"""One prompt, the outputs of the head (A*, b*) as the prompt gets longer, and errors on infinite prompts."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.icl_infinite.block_flows import toeplitz
from lib.attention import Attention, attend, linear_attend
from lib.icl import Blocks, LinearRegression, block_attention
from lib.measures import Empirical, Gaussian

# Number of tokens in the figure, length of the longest prompt, and number of tasks that test the head.
SHOWN, LONGEST, TASKS = 8, 2**17, 100


@dataclass(frozen=True)
class Prompt:
    """One prompt with the outputs of a head for prompts of increasing length.

    Attributes:
      tokens: the first tokens (x, y).
      query: the query (x, 0).
      label: the missing label.
      lengths: prompt lengths.
      outputs: outputs at these lengths, of softmax and of linear attention.
      errors: largest relative errors of two heads on infinite prompts.
    """

    tokens: Float[np.ndarray, "L d+1"]
    query: Float[np.ndarray, " d+1"]
    label: float
    lengths: list[int]
    outputs: dict[str, Float[np.ndarray, " lengths"]]
    errors: dict[str, float]


def simulate_prompt(d: int, *, key: PRNGKeyArray) -> Prompt:
    """Return a prompt without label noise, the outputs of the head (A*, b*), and errors on infinite prompts."""
    task, prompt_key, tasks_key = LinearRegression(toeplitz(d)), *jr.split(key)
    blocks = Blocks.infinite_limit(task)
    head = block_attention(blocks.matrix, blocks.gain)
    isotropic = np.eye(d) * np.linalg.norm(blocks.matrix) / np.sqrt(d)
    sample = jax.jit(lambda key: task.draw(LONGEST, 1, key=key))(prompt_key)
    tokens, query = np.asarray(sample.tokens[0]), np.asarray(sample.queries[0])
    lengths = [2**n for n in range(LONGEST.bit_length()) if 2**n >= SHOWN]
    kinds = {"softmax": jax.jit(attend), "linear": jax.jit(linear_attend)}
    outputs = {
        name: np.array([float(kind(head, _first_tokens(tokens, n), query)[-1]) for n in lengths])
        for name, kind in kinds.items()
    }
    errors = {
        "balanced": _relative_error(task, head, key=tasks_key),
        "isotropic": _relative_error(task, block_attention(isotropic, blocks.gain), key=tasks_key),
    }
    return Prompt(tokens[:SHOWN], query, float(sample.targets[0]), lengths, outputs, errors)


def _first_tokens(tokens: Float[np.ndarray, "L d+1"], n: int) -> Empirical:
    """Return the empirical measure of the first n tokens.

    The tokens are repeated, so that all prompts have the same shape and share a compilation; n divides their number.
    """
    return Empirical(np.tile(tokens[:n], (len(tokens) // n, 1)))


def _relative_error(task: LinearRegression, head: Attention, *, key: PRNGKeyArray) -> float:
    """Return the largest error on infinite prompts, over random tasks, relative to the root mean square label."""
    task_key, query_key = jr.split(key)
    tasks = jr.normal(task_key, (TASKS, task.dimension))
    queries = np.asarray(jr.normal(query_key, (TASKS, task.dimension))) @ np.linalg.cholesky(task.cov).T

    return float(_largest_error(task, head, tasks, queries) / np.sqrt(np.trace(task.cov)))


@jax.jit
def _largest_error(
    task: LinearRegression, head: Attention, tasks: Float[Array, "n d"], queries: Float[Array, "n d"]
) -> Float[Array, ""]:
    def error(w, query):
        maps = jnp.concatenate([jnp.eye(task.dimension), w[None]])
        tokens = Gaussian(jnp.zeros(task.dimension + 1), maps @ task.cov @ maps.T)
        return attend(head, tokens, jnp.append(query, 0.0))[-1] - w @ query

    return jnp.max(jnp.abs(jax.vmap(error)(tasks, queries)))
