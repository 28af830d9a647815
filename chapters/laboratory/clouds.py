"""Two distributions of tokens in the plane, a prompt of each, and their outputs, with U and V the identity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.attention import Attention, attend
from lib.batching import in_batches
from lib.measures import Empirical, Gaussian, GaussianMixture, Measure

HEAD = Attention(np.eye(2), np.eye(2))
Points = Float[np.ndarray, "... 2"]


@dataclass(frozen=True)
class Cloud:
    """A distribution, the tokens of a prompt, and the Gaussian distribution with the same mean and covariance."""

    law: Measure
    tokens: Points
    gaussian: Gaussian


def draw_clouds(tokens: int, *, key: PRNGKeyArray) -> Mapping[str, Cloud]:
    """Return one prompt per distribution. The mixture has the mean and covariance of the Gaussian distribution."""
    clouds = {}
    for number, (name, law) in enumerate(_laws().items()):
        drawn = np.asarray(law.sample(tokens, key=jr.fold_in(key, number)))
        clouds[name] = Cloud(law, drawn, _with_its_moments(law))
    return clouds


def outputs(law: Measure, queries: Points) -> Points:
    """Return the output of attention on a distribution, the infinite prompt, at each query."""
    return in_batches(partial(_attend, law), queries.reshape(-1, 2)).reshape(queries.shape)


@jax.jit
def _attend(law, queries):
    return jax.vmap(lambda query: attend(HEAD, law, query))(queries)


def prompt_outputs(tokens: Points, queries: Points) -> Points:
    """Return the output of attention on a prompt at each query."""
    return outputs(Empirical(tokens), queries)


def _laws() -> Mapping[str, GaussianMixture]:
    """Return a Gaussian, as a mixture of one component, and a mixture of three components."""
    three = Gaussian(
        [[-1.0, -0.7], [0.2, 1.4], [1.6, -0.5]],
        [[[0.30, 0.08], [0.08, 0.25]], [[0.35, -0.10], [-0.10, 0.20]], [[0.15, 0.05], [0.05, 0.30]]],
    )
    mixture = GaussianMixture(np.log([0.5, 0.3, 0.2]), three)
    moments = _with_its_moments(mixture)
    return {"Gaussian": GaussianMixture([0.0], Gaussian(moments.mean[None], moments.cov[None])), "mixture": mixture}


def _with_its_moments(law: GaussianMixture) -> Gaussian:
    weights = np.exp(np.asarray(law.log_weights) - np.logaddexp.reduce(np.asarray(law.log_weights)))
    means, covs = np.asarray(law.components.mean), np.asarray(law.components.cov)
    mean = weights @ means
    spread = np.einsum("k,ki,kj->ij", weights, means - mean, means - mean)
    return Gaussian(mean, np.einsum("k,kij->ij", weights, covs) + spread)
