"""Two single heads in the spiked model: softmax at another slope than the best, and erf weights with their cosine."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.softmax_advantage.models import GENERIC_LENGTH, GENERIC_SNR, bayes_risk, risk_at_slope
from lib.single_location import Spiked, erf, softmax
from lib.statistics import standard_error

# A slope that is not the slope √ν of the posterior.
STEEP = 2.1
# Bias of the erf head whose cosine with the posterior is simulated, and the length of its prompts.
COSINE_BIAS, COSINE_LENGTH = -1.0, 5


@dataclass(frozen=True)
class SlopeRisks:
    """Risks of softmax heads k = c k* at the slope c = √ν of the posterior and at `STEEP`, and the Bayes risk."""

    posterior: float
    steep: float
    bayes: float


@dataclass(frozen=True)
class Products:
    """The products s·p, |s|² and |p|² per simulated prompt, for weights s and posterior p, and the exact risks of
    both."""

    together: Float[np.ndarray, " prompts"]
    weights: Float[np.ndarray, " prompts"]
    posterior: Float[np.ndarray, " prompts"]
    risk: float
    bayes: float

    @property
    def cosine_squared(self) -> float:
        """Return `(E s·p)²/(E|s|² E|p|²)`, the squared cosine of weights and posterior in L² of all prompts."""
        return float(self.together.mean() ** 2 / (self.weights.mean() * self.posterior.mean()))

    @property
    def std_error(self) -> float:
        """Return the standard error of `cosine_squared`, by the delta method."""
        both, weights, posterior = (
            product / product.mean() for product in (self.together, self.weights, self.posterior)
        )
        return float(standard_error(self.cosine_squared * (2 * both - weights - posterior)))

    @property
    def cosine_squared_within(self) -> float:
        """Return the mean over prompts of the squared cosine within a prompt, which is a different number."""
        return float(np.mean(self.together**2 / (self.weights * self.posterior)))


def solve_slope_risks() -> SlopeRisks:
    """Return the risks of softmax heads at two slopes, by the quadrature for normalised activations."""
    generic = Spiked(GENERIC_LENGTH, GENERIC_SNR)
    risks = [risk_at_slope(generic, softmax, slope) for slope in (np.sqrt(GENERIC_SNR), STEEP)]
    return SlopeRisks(*risks, bayes=float(bayes_risk(generic)))


def simulate_cosine(prompts: int, *, key: PRNGKeyArray) -> Products:
    """Simulate scores of prompts; return the products of element-wise weights and posterior."""
    task, head = Spiked(COSINE_LENGTH, GENERIC_SNR), replace(erf, bias=COSINE_BIAS)
    root = np.sqrt(GENERIC_SNR)
    scores = jr.normal(key, (prompts, COSINE_LENGTH)).at[:, 0].add(root)
    p, s = jax.nn.softmax(root * scores, axis=1), head.weights(scores)
    together, weights, posterior = (np.asarray(jnp.sum(a * b, axis=1)) for a, b in ((s, p), (s, s), (p, p)))
    risk = risk_at_slope(task, head, 1.0)
    return Products(together, weights, posterior, risk, float(bayes_risk(task)))
