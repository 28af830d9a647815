"""Claims that the text quotes and no picture shows: leads of softplus, crossings of risks, a slope and a cosine."""

import numpy as np

from chapters.softmax_advantage.activation_risks import LONG, SHORT, STRONG, SoftplusLeads
from chapters.softmax_advantage.crossings import ACCURACY, BECAUSE_ACCURATE, LENGTHS, LONG_LENGTH, Crossings
from chapters.softmax_advantage.models import GENERIC_LENGTH, GENERIC_SNR
from chapters.softmax_advantage.single_heads import COSINE_LENGTH, STEEP, Products, SlopeRisks
from chapters.softmax_advantage.style import BECAUSE_DISTINCT, DISTINCT
from companion import Claims


def softplus_and_elementwise(leads: SoftplusLeads, crossings: Crossings) -> Claims:
    """Claim where softplus without a bias has a lower risk than element-wise weights, and where the risks are equal."""
    claim = Claims("softmax-advantage-half", source="derived here", box="one-half-of-softmax")
    claim.at_most(
        "or-none",
        "On short prompts with weak signals in the spiked model, softplus without bias has a lower risk than "
        f"all element-wise weights (larger difference of the risks at $(L, ν) = {SHORT[0]}$ and ${SHORT[1]}$).",
        leads.short.max(),
        -DISTINCT,
        because=BECAUSE_DISTINCT,
        rejects=(f"the difference on a longer prompt, $(L, ν) = {LONG}$", leads.long),
    )
    claim.at_least(
        "strong",
        "At strong signals in the spiked model the best element-wise weights have a lower risk than softplus "
        "without bias on short prompts too (smallest difference of the risks at "
        f"$(L, ν) = {', '.join(map(str, STRONG))}$).",
        leads.strong.min(),
        DISTINCT,
        because=BECAUSE_DISTINCT,
        rejects=("the difference at weak signals", leads.short.max()),
    )
    for length, softplus, lattice, posterior in zip(
        LENGTHS, crossings.softplus, crossings.lattice, crossings.posterior_slope, strict=True
    ):
        claim.equal(
            f"crossing-{length}",
            f"With {length} tokens in the spiked model, the signal strength at which softplus without a bias "
            "has the risk of the best element-wise weights is the same by the Laplace identity and by sums "
            f"over a lattice of scores, within {ACCURACY:g}.",
            softplus,
            lattice,
            within=ACCURACY,
            because=BECAUSE_ACCURATE,
            rejects=("softplus at the slope $√ν$ of the posterior instead of its best slope", posterior),
        )
    claim.at_most(
        "crossing-longer",
        "In the spiked model the signal strength at which softplus without a bias has the risk of the best "
        f"element-wise weights falls with the length: with {LONG_LENGTH} tokens it is below that with "
        f"{LENGTHS[-1]} tokens.",
        crossings.longer,
        crossings.softplus[-1],
        because=f"the signal strength with {LENGTHS[-1]} tokens, as stated",
        rejects=(
            f"the signal strength with {LENGTHS[0]} tokens, as if it rose with the length",
            crossings.softplus[0],
        ),
    )
    from_softplus, from_posterior = (
        np.abs(strengths / crossings.relu - 1).max() for strengths in (crossings.softplus, crossings.posterior_slope)
    )
    claim.at_most(
        "relu",
        "Softplus without a bias and a normalised ReLU, its limit at large slopes, reach the risk of the best "
        "element-wise weights at the same signal strength in the spiked model (larger relative distance with "
        f"{LENGTHS[0]} and {LENGTHS[1]} tokens).",
        from_softplus,
        0,
        within=0.01,
        because="the kernels of slope $c$ and of the limit differ within $1/c$ of zero, so that risks at the best "
        "slope $c$, about 12, differ by order $1/c²$",
        rejects=("softplus at the slope $√ν$ of the posterior", from_posterior),
    )
    return claim


def slope_and_angle(slopes: SlopeRisks, cosine: Products) -> Claims:
    """Claim the slope at which softmax attains the Bayes risk, and the risk of other weights from their angle."""
    claim = Claims("softmax-advantage")
    claim.equal(
        "bayes",
        f"Softmax with $k = √ν k*$ attains the Bayes risk at $L = {GENERIC_LENGTH}$ and $ν = {GENERIC_SNR:g}$ in "
        "the spiked model (its risk, from the quadrature for normalised activations, minus the Bayes risk).",
        slopes.posterior - slopes.bayes,
        0,
        within=1e-9,
        because="the documented error of the quadrature",
        source="[D26, Prop. 4.2]",
        box="d26-bayes",
        rejects=(f"another slope, {STEEP:g} instead of $√ν$", slopes.steep - slopes.bayes),
    )
    claim.equal(
        "cosine",
        r"The risk of a head with the best $v$ is $1 - \mathbb{E}|p|² cos²θ$, where $θ$ is the angle between its "
        r"weights $s$ and the posterior $p$ with the scalar product $\mathbb{E} s·p$ over all prompts ($cos²θ$ of "
        f"erf weights at $L = {COSINE_LENGTH}$ from {len(cosine.together):,} simulated prompts).",
        cosine.cosine_squared,
        (1 - cosine.risk) / (1 - cosine.bayes),
        std_error=cosine.std_error,
        source="derived here",
        box="risk-is-an-angle",
        rejects=("the mean over prompts of the squared cosine within a prompt", cosine.cosine_squared_within),
    )
    return claim
