"""Outputs of three kinds of prompt for Gaussian queries."""

from collections.abc import Mapping

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import infinite_outputs, query_distribution, two_clusters
from lib.attention import attend
from lib.finite_prompt import QueryRay
from lib.measures import Empirical

INFINITE, MIXTURE = "infinite prompts", "infinite prompts, mixture"
# Outputs by kind of prompt, one per query, centred and whitened with the mean and covariance of the lemma.
Outputs = Mapping[str, Float[np.ndarray, "queries e"]]


def simulate_outputs(ray: QueryRay, queries: int, length: int, *, key: PRNGKeyArray) -> Outputs:
    """Return outputs of three kinds of prompt for queries drawn from `query_distribution`."""
    query_key, prompt_key = jr.split(key)
    distribution = jax.tree.map(np.asarray, query_distribution())
    drawn = distribution.sample(queries, key=query_key)
    through = ray.params.value @ ray.gaussian.cov @ ray.params.bilinear
    mean = ray.params.value @ ray.gaussian.mean + through @ distribution.mean
    root = np.linalg.cholesky(through @ distribution.cov @ through.T)

    @jax.jit
    @jax.vmap
    def finite(points, query):
        return attend(ray.params, Empirical(points), query)

    tokens = ray.gaussian.sample(queries * length, key=prompt_key).reshape(queries, length, 3)
    outputs = {
        INFINITE: infinite_outputs(ray.params, ray.gaussian, drawn),
        f"prompts of {length} tokens": finite(tokens, drawn),
        MIXTURE: infinite_outputs(ray.params, two_clusters(ray.gaussian), drawn),
    }
    return {kind: np.linalg.solve(root, np.asarray(each - mean).T).T for kind, each in outputs.items()}
