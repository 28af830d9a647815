r"""The best risk of eight activations, in both models, at one length and one strength of the hint.

Every activation has its best slope, bias and scale. Filled: normalised over the tokens. Round: growing
exponentially with the score (hardmax as a limit of softmax); square: not. Dashed: the Bayes risk. Only softmax,
which is both, reaches it. The distance from 1 is $\mathbb{E}|p|^2\cos^2$, with the angle between the weights and
the posterior $p$.

Alt: Two dot charts, one a model, listing softmax, hardmax, softplus, exp, sigmoid, erf, relu and linear. Softmax
sits on the dashed Bayes line, hardmax is next, and linear has the largest risk in both.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.softmax_advantage.marks import TITLES, WIDE
from chapters.softmax_advantage.models import GENERIC_LENGTH, GENERIC_SNR, MODELS, bayes_risk, best_scale
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib import single_location as sl
from lib.single_location.activations import Erf
from lib.single_location.population import moments
from lib.statistics import comparison_quantile, standard_error

# Of each activation: is it normalised over the tokens, does it grow exponentially?
ZOO = {
    "softmax": (sl.softmax, True, True),
    "hardmax": (sl.hardmax, True, True),
    "softplus": (sl.softplus, True, False),
    "exp": (sl.exp, False, True),
    "sigmoid": (sl.sigmoid, False, False),
    "erf": (sl.erf, False, False),
    "relu": (sl.relu, False, False),
    "linear": (sl.linear, False, False),
}
# The head whose cosine with the posterior is simulated, with erf weights: element-wise, biased, and not the best one.
COSINE_BIAS, COSINE_LENGTH = -1.0, 5


@dataclass(frozen=True)
class Zoo:
    """Of one model: the Bayes risk, and the lowest risk of each activation."""

    bayes: float
    risks: Mapping[str, float]


@dataclass(frozen=True)
class Slopes:
    """Risks of softmax heads k = c k* in the spiked model by their slopes c, √ν in the middle; and the Bayes risk."""

    slopes: Float[np.ndarray, " slopes"]
    risks: Float[np.ndarray, " slopes"]
    bayes: float


@dataclass(frozen=True)
class Cosine:
    """Of each simulated prompt s·p, |s|² and |p|², for weights s and posterior p; and the exact risks of both."""

    products: Float[np.ndarray, "prompts 3"]
    risk: float
    bayes: float


def best_risks(length: int, snr: float) -> dict[str, Zoo]:
    """By model: the best risk of every activation."""
    return {model: _best_risks(make(length, snr)) for model, make in MODELS.items()}


def _best_risks(task: sl.Task) -> Zoo:
    bayes = float(bayes_risk(task))
    risks = {
        name: bayes if name == "softmax" else float(sl.best_risk(task, activation))
        for name, (activation, _, _) in ZOO.items()
    }
    return Zoo(bayes, risks)


def try_slopes() -> Slopes:
    """Softmax heads of the right slope and of wrong ones, by the quadrature of every normalised activation."""
    generic = sl.Spiked(GENERIC_LENGTH, GENERIC_SNR)
    slopes = np.asarray([1.6, 1.9, 2.0, 2.1, 2.4])
    risks = best_scale(moments(generic, sl.softmax, sl.Overlaps(slopes, slopes**2, 1.0, 1.0)))
    return Slopes(slopes, risks, float(bayes_risk(generic)))


def measure_cosine(prompts: int, *, key: PRNGKeyArray) -> Cosine:
    """The scores of simulated prompts, read by an element-wise head and by the posterior."""
    task, head = sl.Spiked(COSINE_LENGTH, GENERIC_SNR), Erf(COSINE_BIAS)
    root = np.sqrt(GENERIC_SNR)
    scores = jr.normal(key, (prompts, COSINE_LENGTH)).at[:, 0].add(root)
    p, s = jax.nn.softmax(root * scores, axis=1), head.weights(scores)
    products = np.stack([np.asarray(jnp.sum(a * b, axis=1)) for a, b in ((s, p), (s, s), (p, p))], axis=1)
    risk = best_scale(moments(task, head, sl.Overlaps(1.0, 1.0, 1.0, 1.0)))
    return Cosine(products, float(risk), float(bayes_risk(task)))


def numbers(zoos: Mapping[str, Zoo], slopes: Slopes, cosine: Cosine) -> Numbers:
    """The zoo; only softmax is Bayes, one half of it is not enough, and the rest is an angle."""
    frame = _frame(zoos)
    return Numbers(_table(frame), (_bayes_claim(slopes), *_zoo_claims(frame), _cosine_claim(cosine)))


def _frame(zoos: Mapping[str, Zoo]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "model": model,
                "activation": name,
                "normalised": ZOO[name][1],
                "exponential": ZOO[name][2],
                "risk": best,
                "bayes": zoo.bayes,
                "cosine_squared": (1.0 - best) / (1.0 - zoo.bayes),
            }
            for model, zoo in zoos.items()
            for name, best in zoo.risks.items()
        ]
    )


def _table(frame: pd.DataFrame) -> Table:
    """By model and activation."""
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "normalised": Column("Whether the weights of a prompt add up to one", "yes or no"),
        "exponential": Column("Whether ratios of weights grow exponentially with differences of scores", "yes or no"),
        "risk": Column("Lowest excess risk over slope, bias and scale"),
        "bayes": Column("Bayes risk"),
        "cosine_squared": Column("(1 - risk)/(1 - Bayes risk), the squared cosine of weights and posterior"),
    }
    return Table(frame, columns)


def _bayes_claim(slopes: Slopes) -> Claim:
    return Claim(
        id="softmax-advantage-bayes",
        statement=(
            f"Softmax with k = √ν k* attains the Bayes risk: at L = {GENERIC_LENGTH} and ν = 4 its risk, from the "
            "quadrature that serves every normalised activation, less the Bayes risk."
        ),
        source="[D26, Prop. 4.2]",
        measured=slopes.risks[2] - slopes.bayes,
        expected=0.0,
        tolerance=1e-9,
        alternative=Alternative("another slope, 2.1 in place of √ν = 2", slopes.risks[3] - slopes.bayes),
    )


def _zoo_claims(frame: pd.DataFrame) -> list[Claim]:
    """Only softmax is Bayes; one half of it is not enough."""
    spiked = dict(zip(ZOO, np.asarray(frame.loc[frame["model"] == "spiked", "risk"]), strict=True))
    excess = np.asarray(frame["risk"] - frame["bayes"])
    others = excess[np.asarray(frame["activation"] != "softmax")]
    return [
        Claim(
            id="softmax-advantage-no-other",
            statement="No other activation reaches the Bayes risk: the smallest excess over both models.",
            source="derived here",
            measured=float(others.min()),
            expected=1e-4,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("an activation that is as good as softmax", float(excess.min())),
        ),
        Claim(
            id="softmax-advantage-best-elementwise",
            statement=(
                "In the spiked model no element-wise activation is below the sigmoid: the lowest of the others, less "
                "the sigmoid's risk."
            ),
            source="[D26]",
            measured=min(spiked[name] for name in ("erf", "relu", "linear", "exp")) - spiked["sigmoid"],
            expected=0.0,
            tolerance=1e-9,
            relation="≥",
            alternative=Alternative(
                "softmax, were it an element-wise activation", min(spiked.values()) - spiked["sigmoid"]
            ),
        ),
    ]


def _cosine_claim(these: Cosine) -> Claim:
    """`1 - risk = E|p|² cos²` with the cosine from simulated prompts, the risk from the quadrature."""
    products = these.products
    both, weights, posterior = products.mean(axis=0)
    cosine = both**2 / (weights * posterior)
    # delta method: the relative influence of every prompt on the cosine
    influence = cosine * (products @ (np.asarray([2.0, -1.0, -1.0]) / products.mean(axis=0)))
    pointwise = products[:, 0] ** 2 / (products[:, 1] * products[:, 2])
    std_error = float(standard_error(influence))
    return Claim(
        id="softmax-advantage-cosine",
        statement=(
            "The risk of a head with the best v is 1 - E|p|² cos², with the cosine of its weights and the posterior in "
            f"L² of all prompts: for erf weights at L = {COSINE_LENGTH}, cos² from {len(products)} simulated prompts."
        ),
        source="derived here",
        measured=float(cosine),
        expected=(1.0 - these.risk) / (1.0 - these.bayes),
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative("the mean over prompts of the cosine within a prompt", float(pointwise.mean())),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a model: a dot an activation, and the Bayes line."""
    figure, panels = plt.subplots(1, 2, figsize=WIDE, sharey=True)
    names = list(dict.fromkeys(table["activation"]))
    for panel, (model, title) in zip(panels, TITLES.items(), strict=True):
        rows = table[table["model"] == model]
        for row in rows.itertuples():
            panel.plot(
                row.risk,
                names.index(row.activation),
                "o" if row.exponential else "s",
                color="C0" if row.normalised else "C1",
                fillstyle="full" if row.normalised else "none",
                markersize=9,
                markeredgewidth=2,
            )
        panel.axvline(rows["bayes"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xlim=(0, 1), title=title, xlabel="lowest excess risk")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    kinds = {
        "normalised, exponential": {"marker": "o", "color": "C0"},
        "normalised only": {"marker": "s", "color": "C0"},
        "exponential only": {"marker": "o", "color": "C1", "fillstyle": "none"},
        "neither": {"marker": "s", "color": "C1", "fillstyle": "none"},
    }
    handles = [Line2D([], [], linestyle="", markersize=9, markeredgewidth=2, **kind) for kind in kinds.values()]
    handles.append(Line2D([], [], color=ink(), linestyle="--", linewidth=1.5))
    panels[1].legend(handles, [*kinds, "Bayes"], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
