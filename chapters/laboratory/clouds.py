"""Two distributions of tokens in the plane, a prompt of each, and their outputs, with U and V the identity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.laboratory.grids import Axis, Grid
from chapters.laboratory.ranges import LARGEST_QUERY
from chapters.laboratory.trials import Trial, uniform
from lib.attention import Attention, attend
from lib.batching import in_batches
from lib.measures import Empirical, Gaussian, GaussianMixture, Measure

TOKENS = 300
# Nodes per coordinate of a query; an odd number, so that zero is a node.
NODES = 25

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


def simulate_clouds(settings: int, *, key: PRNGKeyArray) -> Mapping[str, tuple[Cloud, Trial]]:
    """Return a prompt and the outputs at grid and random queries of one square, for each distribution."""
    axes = [Axis.between(name, -LARGEST_QUERY, LARGEST_QUERY, NODES) for name in ("x", "y")]
    places = tuple(
        map(np.asarray, uniform(key, settings, (-LARGEST_QUERY, LARGEST_QUERY), (-LARGEST_QUERY, LARGEST_QUERY)))
    )
    clouds = {}
    for name, cloud in draw_clouds(TOKENS, key=key).items():

        def exactly(x, y, law=cloud.law):
            output = outputs(law, np.stack([x, y], axis=-1))
            return {"u": output[..., 0], "v": output[..., 1]}

        clouds[name] = (cloud, Trial(Grid.of(axes, exactly), places, exactly(*places)))
    return clouds


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
