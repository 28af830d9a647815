r"""Of eight activations only softmax attains the Bayes risk, and softplus approaches it as its bias falls.

Left: the spiked model. Right: the max model. Horizontal axis: the lowest excess risk of each activation on prompts of
ten tokens at $\nu=6$. The slope and the scale are the best ones, and so is the bias of
sigmoid, erf and relu. Dashed: the Bayes risk. Filled markers: normalised activations. Round markers: exponential
activations, with hardmax as a limit of softmax. Small filled squares: softplus at the slope of the posterior with the
biases −2, −4, −8, −16 and −64; the lower the bias, the lower the risk. The distance of a risk from 1 is
$\mathbb{E}|p|^2\cos^2\theta$, where $\theta$ is the angle between the weights and the posterior $p$.

Alt: Two dot charts, one per model, that list softmax, hardmax, softplus, exp, sigmoid, erf, relu and linear. Softmax
is on the dashed Bayes line, hardmax is next, linear has the largest risk in both. From softplus a row of small squares
leads to the Bayes line.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.softmax_advantage.activation_risks import (
    ACTIVATIONS,
    BIASES,
    LONG,
    SHORT,
    STRONG,
    ActivationRisks,
    SoftplusLeads,
)
from chapters.softmax_advantage.crossings import ACCURACY, BECAUSE_ACCURATE, LENGTHS, LONG_LENGTH, Crossings
from chapters.softmax_advantage.models import GENERIC_LENGTH, GENERIC_SNR
from chapters.softmax_advantage.single_heads import COSINE_LENGTH, STEEP, Products, SlopeRisks
from chapters.softmax_advantage.style import BECAUSE_DISTINCT, DISTINCT, TITLES, dot
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.statistics import comparison_quantile


def numbers(
    activations: Mapping[str, ActivationRisks],
    leads: SoftplusLeads,
    crossings: Crossings,
    slopes: SlopeRisks,
    cosine: Products,
) -> Numbers:
    """Return risks by model and activation; claim which attain the Bayes risk, the lead of softplus, and a cosine."""
    rows = [
        {
            "model": model,
            "activation": name,
            "bias": bias,
            "normalised": ACTIVATIONS[name].normalised,
            "exponential": ACTIVATIONS[name].exponential,
            "risk": best,
            "bayes": model_risks.bayes,
            "cosine_squared": (1.0 - best) / (1.0 - model_risks.bayes),
        }
        for model, model_risks in activations.items()
        for name, bias, best in (
            *((name, "best" if ACTIVATIONS[name].biased else "none", best) for name, best in model_risks.risks.items()),
            *(("softplus", f"{bias:g}", risk) for bias, risk in model_risks.shifted.items()),
        )
    ]
    columns = {
        "model": Column("Model of the relevant token: spiked or max", "name"),
        "activation": Column("Activation of the head", "name"),
        "bias": Column("Bias that is added to all scores: the `best` one, `none`, or a number", "name"),
        "normalised": Column("Whether the weights of a prompt add up to one", "yes or no"),
        "exponential": Column("Whether ratios of weights grow exponentially with differences of scores", "yes or no"),
        "risk": Column("Lowest excess risk over slope and scale; with a given bias, at the slope of the posterior"),
        "bayes": Column("Bayes risk"),
        "cosine_squared": Column("(1 - risk)/(1 - Bayes risk), the squared cosine of weights and posterior"),
    }
    claims = (
        *_activation_claims(activations),
        *_lead_claims(leads),
        *_crossing_claims(crossings),
        _slope_claim(slopes),
        _cosine_claim(cosine),
    )
    return Numbers(Table(pd.DataFrame(rows), columns), claims)


def _activation_claims(activations: Mapping[str, ActivationRisks]) -> tuple[Claim, ...]:
    excess = {name: min(model.risks[name] - model.bayes for model in activations.values()) for name in ACTIVATIONS}
    lowest = min(BIASES)
    spiked = activations["spiked"].risks
    return (
        Claim(
            id="softmax-advantage-no-other",
            statement=(
                "None of seven activations other than softmax attains the Bayes risk; softplus has no bias here "
                "(smallest difference between a risk and the Bayes risk, over both models)."
            ),
            source="derived here",
            box="risk-is-an-angle",
            measured=min(excess[name] for name in ACTIVATIONS if name != "softmax"),
            expected=DISTINCT,
            tolerance=0.0,
            reason=BECAUSE_DISTINCT,
            relation="≥",
            alternative=Alternative("an activation with the risk of softmax", excess["softmax"]),
        ),
        Claim(
            id="softmax-advantage-softplus-bias",
            statement=(
                f"With a bias of {lowest:g} and the slope of the posterior, softplus attains the Bayes risk (risk "
                "minus Bayes risk, the larger of both models)."
            ),
            source="derived here",
            box="softplus-far-left",
            measured=max(model.shifted[lowest] - model.bayes for model in activations.values()),
            expected=0.0,
            tolerance=DISTINCT,
            reason=BECAUSE_DISTINCT,
            relation="≤",
            alternative=Alternative("softplus without a bias, at its best slope", excess["softplus"]),
        ),
        Claim(
            id="softmax-advantage-best-elementwise",
            statement=(
                "In the spiked model no other element-wise activation has a lower risk than the sigmoid (lowest other "
                "risk minus that of the sigmoid)."
            ),
            source="derived here",
            box="best-elementwise",
            measured=min(spiked[name] for name in ("erf", "relu", "linear", "exp")) - spiked["sigmoid"],
            expected=0.0,
            tolerance=1e-9,
            relation="≥",
            alternative=Alternative("softmax, which is not element-wise", spiked["softmax"] - spiked["sigmoid"]),
        ),
    )


def _lead_claims(leads: SoftplusLeads) -> tuple[Claim, Claim]:
    return (
        Claim(
            id="softmax-advantage-half-or-none",
            statement=(
                "On short prompts with weak signals in the spiked model, softplus without bias has a lower risk than "
                f"all element-wise weights (larger difference of the risks at $(L, ν) = {SHORT[0]}$ and ${SHORT[1]}$)."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=float(leads.short.max()),
            expected=-DISTINCT,
            tolerance=0.0,
            reason=BECAUSE_DISTINCT,
            relation="≤",
            alternative=Alternative(f"the difference on a longer prompt, $(L, ν) = {LONG}$", leads.long),
        ),
        Claim(
            id="softmax-advantage-half-strong",
            statement=(
                "At strong signals in the spiked model the best element-wise weights have a lower risk than softplus "
                "without bias on short prompts too (smallest difference of the risks at "
                f"$(L, ν) = {', '.join(map(str, STRONG))}$)."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=float(leads.strong.min()),
            expected=DISTINCT,
            tolerance=0.0,
            reason=BECAUSE_DISTINCT,
            relation="≥",
            alternative=Alternative("the difference at weak signals", float(leads.short.max())),
        ),
    )


def _crossing_claims(crossings: Crossings) -> tuple[Claim, ...]:
    """Claim where softplus and the best element-wise weights have equal risks, as a normalised ReLU has."""

    def farthest(strengths: np.ndarray) -> float:
        return float(np.max(np.abs(strengths / crossings.relu - 1.0)))

    return (
        *(
            Claim(
                id=f"softmax-advantage-half-crossing-{length}",
                statement=(
                    f"With {length} tokens in the spiked model, the signal strength at which softplus without a bias "
                    "has the risk of the best element-wise weights is the same by the Laplace identity and by sums "
                    f"over a lattice of scores, within {ACCURACY:g}."
                ),
                source="derived here",
                box="one-half-of-softmax",
                measured=float(softplus),
                expected=float(lattice),
                tolerance=ACCURACY,
                reason=BECAUSE_ACCURATE,
                alternative=Alternative(
                    "softplus at the slope $√ν$ of the posterior instead of its best slope", float(posterior)
                ),
            )
            for length, softplus, lattice, posterior in zip(
                LENGTHS, crossings.softplus, crossings.lattice, crossings.posterior_slope, strict=True
            )
        ),
        Claim(
            id="softmax-advantage-half-crossing-longer",
            statement=(
                "In the spiked model the signal strength at which softplus without a bias has the risk of the best "
                f"element-wise weights falls with the length: with {LONG_LENGTH} tokens it is below that with "
                f"{LENGTHS[-1]} tokens."
            ),
            source="derived here",
            box="one-half-of-softmax",
            measured=crossings.longer,
            expected=float(crossings.softplus[-1]),
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(
                f"the signal strength with {LENGTHS[0]} tokens, as if it rose with the length",
                float(crossings.softplus[0]),
            ),
        ),
        Claim.at_most(
            "softmax-advantage-half-relu",
            "Softplus without a bias and a normalised ReLU, its limit at large slopes, reach the risk of the best "
            "element-wise weights at the same signal strength in the spiked model (larger relative distance with "
            f"{LENGTHS[0]} and {LENGTHS[1]} tokens).",
            farthest(crossings.softplus),
            0.0,
            within=0.01,
            because=(
                "the kernels of slope $c$ and of the limit differ within $1/c$ of zero, so that risks at the best "
                "slope $c$, about 12, differ by order $1/c²$"
            ),
            source="derived here",
            box="one-half-of-softmax",
            alternative=Alternative("softplus at the slope $√ν$ of the posterior", farthest(crossings.posterior_slope)),
        ),
    )


def _slope_claim(slopes: SlopeRisks) -> Claim:
    return Claim(
        id="softmax-advantage-bayes",
        statement=(
            f"Softmax with $k = √ν k*$ attains the Bayes risk at $L = {GENERIC_LENGTH}$ and $ν = {GENERIC_SNR:g}$ in "
            "the spiked model (its risk, from the quadrature for normalised activations, minus the Bayes risk)."
        ),
        source="[D26, Prop. 4.2]",
        box="d26-bayes",
        measured=slopes.posterior - slopes.bayes,
        expected=0.0,
        tolerance=1e-9,
        reason="the documented error of the quadrature",
        alternative=Alternative(f"another slope, {STEEP:g} instead of $√ν$", slopes.steep - slopes.bayes),
    )


def _cosine_claim(cosine: Products) -> Claim:
    return Claim(
        id="softmax-advantage-cosine",
        statement=(
            r"The risk of a head with the best $v$ is $1 - \mathbb{E}|p|² cos²θ$, where $θ$ is the angle between its "
            r"weights $s$ and the posterior $p$ with the scalar product $\mathbb{E} s·p$ over all prompts ($cos²θ$ of "
            f"erf weights at $L = {COSINE_LENGTH}$ from {len(cosine.together):,} simulated prompts)."
        ),
        source="derived here",
        box="risk-is-an-angle",
        measured=cosine.cosine_squared,
        expected=(1.0 - cosine.risk) / (1.0 - cosine.bayes),
        tolerance=comparison_quantile(1) * cosine.std_error,
        reason="99.9 % quantile of one standard normal deviation, times the standard error",
        std_error=cosine.std_error,
        alternative=Alternative(
            "the mean over prompts of the squared cosine within a prompt", cosine.cosine_squared_within
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per model, with one dot per activation and a line at the Bayes risk."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.8), sharey=True)
    names = list(dict.fromkeys(table["activation"]))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for row in rows.itertuples():
            size = {} if row.bias in ("best", "none") else {"markersize": 4, "markeredgewidth": 0}
            panel.plot(row.risk, names.index(row.activation), **dot(row.normalised, row.exponential) | size)
        trail = rows[rows["activation"] == "softplus"]
        panel.plot(trail["risk"], [names.index("softplus")] * len(trail), color="C0", linewidth=1)
        panel.annotate(
            r"bias $\to -\infty$", (rows["bayes"].iloc[0] + 0.02, names.index("softplus") + 0.45), fontsize=9
        )
        panel.axvline(rows["bayes"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
        label(panel, rows["bayes"].iloc[0], len(names) - 1, "Bayes", ink(), xytext=(-6, 0), ha="right")
        panel.set(xlim=(0, 1), title=title, xlabel="lowest excess risk")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    kinds = {
        "normalised, exponential": dot(normalised=True, exponential=True),
        "normalised only": dot(normalised=True, exponential=False),
        "exponential only": dot(normalised=False, exponential=True),
        "neither": dot(normalised=False, exponential=False),
    }
    figure.legend([Line2D([], [], **kind) for kind in kinds.values()], list(kinds), loc="outside lower center", ncols=4)
    return figure
