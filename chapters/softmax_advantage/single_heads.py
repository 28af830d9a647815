"""Two heads in the spiked model, one by one: softmax of a wrong slope, and erf weights beside the posterior."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.softmax_advantage.models import GENERIC_LENGTH, GENERIC_SNR, bayes_risk, best_scale
from lib.single_location import Erf, Overlaps, Spiked, attention_moments, softmax
from lib.statistics import standard_error

# The slope that is tried in place of √ν.
STEEP = 2.1
# The head whose cosine with the posterior is simulated, with erf weights: element-wise, biased, and not the best one.
COSINE_BIAS, COSINE_LENGTH = -1.0, 5


@dataclass(frozen=True)
class SlopeRisks:
    """Risks of softmax heads k = c k*: of the right slope c = √ν, and of `STEEP`; and the Bayes risk."""

    right: float
    steep: float
    bayes: float


@dataclass(frozen=True)
class Products:
    """Of each simulated prompt s·p, |s|² and |p|², for weights s and posterior p; and the exact risks of both."""

    together: Float[np.ndarray, " prompts"]
    weights: Float[np.ndarray, " prompts"]
    posterior: Float[np.ndarray, " prompts"]
    risk: float
    bayes: float

    @property
    def cosine_squared(self) -> float:
        """`(E s·p)²/(E|s|² E|p|²)`: of weights and posterior in L² of all prompts."""
        return float(self.together.mean() ** 2 / (self.weights.mean() * self.posterior.mean()))

    @property
    def std_error(self) -> float:
        """Of `cosine_squared`, by the delta method: the relative influence of every prompt on it."""
        both, weights, posterior = (part / part.mean() for part in (self.together, self.weights, self.posterior))
        return float(standard_error(self.cosine_squared * (2 * both - weights - posterior)))

    @property
    def cosine_squared_within(self) -> float:
        """The mean over prompts of the squared cosine within a prompt: another number."""
        return float(np.mean(self.together**2 / (self.weights * self.posterior)))


def evaluate_slopes() -> SlopeRisks:
    """Softmax heads of the right slope and of a wrong one, by the quadrature of every normalised activation."""
    generic = Spiked(GENERIC_LENGTH, GENERIC_SNR)
    slopes = np.asarray([np.sqrt(GENERIC_SNR), STEEP])
    risks = best_scale(attention_moments(generic, softmax, Overlaps(slopes, slopes**2, 1.0, 1.0)))
    return SlopeRisks(*map(float, risks), bayes=float(bayes_risk(generic)))


def simulate_cosine(prompts: int, *, key: PRNGKeyArray) -> Products:
    """The scores of simulated prompts, read by an element-wise head and by the posterior."""
    task, head = Spiked(COSINE_LENGTH, GENERIC_SNR), Erf(COSINE_BIAS)
    root = np.sqrt(GENERIC_SNR)
    scores = jr.normal(key, (prompts, COSINE_LENGTH)).at[:, 0].add(root)
    p, s = jax.nn.softmax(root * scores, axis=1), head.weights(scores)
    together, weights, posterior = (np.asarray(jnp.sum(a * b, axis=1)) for a, b in ((s, p), (s, s), (p, p)))
    risk = best_scale(attention_moments(task, head, Overlaps(1.0, 1.0, 1.0, 1.0)))
    return Products(together, weights, posterior, float(risk), float(bayes_risk(task)))
