"""Single-location regression at the population level: softmax is Bayes-optimal, and what its two halves are worth.

Exact risks of eight activations in the spiked and the max model [D26], their laws at strong hints, and prompts of
random length. Nothing is simulated but the cosine between weights and posterior.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from pydantic import Field

from lib import single_location as sl
from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error
from lib.single_location.activations import Erf, Sigmoid, affine_fit, optimal_risk
from lib.single_location.moments import Moments
from lib.single_location.population import bayes_integrals, moments

MODELS = {"spiked": sl.Spiked, "max": sl.Max}
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
# The head whose cosine with the posterior is simulated: element-wise, biased, and not the best one.
COSINE_HEAD, COSINE_LENGTH, COSINE_SNR = Erf(-1.0), 5, 4.0
# Where the laws at strong hints are read off, and up to where their corrections, of order 1/ν, are looked at.
STRONG, STRONGEST = 45.0, 90.0
# The widest law of lengths: L = mean ± width, with equal chances.
MEAN_LENGTH = 10


@experiment
def softmax_advantage(
    *,
    seed: Annotated[int, Field(ge=0, description="The prompts that measure one cosine are drawn from it.")],
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**8)]], Field(min_length=1, max_length=5, description="Prompt lengths L.")
    ],
    snrs: Annotated[int, Field(ge=5, le=100, description="Strengths ν of the hint from 0.1 to 60.")],
    zoo_length: Annotated[int, Field(ge=3, le=1000, description="Prompt length at which activations are compared.")],
    zoo_snr: Annotated[float, Field(ge=2.0, le=20.0, description="Strength ν at which activations are compared.")],
    prompts: Annotated[int, Field(ge=10**4, le=10**7, description="Simulated prompts that measure one cosine.")],
) -> Result:
    """Risk against ν, the zoo of activations, laws at strong hints, and prompts of random length."""
    zoo = zoo_frame(zoo_length, zoo_snr)
    rates = rates_frame(sorted({2, *lengths}))
    random = random_length_frame()
    return Result(
        tables={
            "population_risk": risk_table(sorted(set(lengths)), np.geomspace(0.1, 60.0, snrs)),
            "activation_zoo": zoo_table(zoo),
            "strong_hints": rates_table(rates),
            "random_length": random_length_table(random),
        },
        claims=(
            integrals_claim(lengths),
            *zoo_claims(zoo),
            cosine_claim(prompts, key=jr.key(seed)),
            *rate_claims(rates),
            *random_length_claims(random),
        ),
    )


# --- risk against the strength of the hint ----------------------------------------------------------------


def risk_table(lengths: list[int], snrs: np.ndarray) -> Table:
    """Bayes, best element-wise and linear risk, by model, length and ν."""
    frames = []
    for model, make in MODELS.items():
        for length in lengths:
            tasks = make(length, snrs)
            frames.append(
                pd.DataFrame(
                    {
                        "model": model,
                        "length": length,
                        "snr": snrs,
                        "softmax": bayes_risk(tasks),
                        "sigmoid": best_sigmoid(model, tasks),
                        "linear": np.asarray(sl.best_risk(tasks, sl.linear)),
                    }
                )
            )
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "snr": Column("Strength of the hint, ν"),
        "softmax": Column("Excess risk of the best softmax head, the Bayes risk"),
        "sigmoid": Column("Excess risk of the best head with element-wise sigmoid weights"),
        "linear": Column("Excess risk of the best head with linear weights"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def bayes_risk(task) -> np.ndarray:
    """The first of the two integrals: both are asked for somewhere, so one compilation serves."""
    return np.asarray(bayes_integrals(task)[0])


def best_sigmoid(model: str, tasks) -> np.ndarray:
    """In the spiked model the best bias and slope are known; in the max model they are searched."""
    if model == "max":
        return np.asarray(sl.best_risk(tasks, sl.sigmoid))
    bias = -0.5 * tasks.snr - jnp.log(tasks.length - 1.0)
    overlaps = sl.Overlaps(jnp.sqrt(tasks.snr), tasks.snr, 1.0, 1.0)
    return best_scale(moments(tasks, Sigmoid(bias), overlaps))


def best_scale(these: Moments) -> np.ndarray:
    """The risk with v along v* and as long as is best."""
    return np.asarray(optimal_risk(these.hidden, these.power))


def integrals_claim(lengths: list[int]) -> Claim:
    """`1 - E p_ε` against `1 - E Σp²`, in both models."""
    worst = off = 0.0
    snrs = np.asarray([0.01, 1.0, 10.0, 60.0])
    for make in MODELS.values():
        for length in sorted({2, *lengths, 10**8}):
            one, two = (np.asarray(each) for each in bayes_integrals(make(length, snrs)))
            worst = max(worst, float(np.max(np.abs(one - two))))
            off = max(off, float(np.max(np.abs(one - np.asarray(bayes_integrals(make(length + 1, snrs))[1])))))
    return Claim(
        id="softmax-advantage-two-integrals",
        statement=(
            "What the posterior leaves to the wrong tokens, 1 - E p_ε, and its spread, 1 - E Σp², are the same number: "
            "two integrals without a common term differ at most by rounding, from two tokens to a hundred million."
        ),
        source="[D26, Prop. 4.2]",
        figure="population_risk",
        measured=worst,
        expected=0.0,
        tolerance=1e-9,
        relation="≤",
        alternative=Alternative("one of the two counts one token too many", off),
    )


# --- the zoo ----------------------------------------------------------------------------------------------


def zoo_frame(length: int, snr: float) -> pd.DataFrame:
    """The best risk of every activation in both models."""
    rows = []
    for model, make in MODELS.items():
        task = make(length, snr)
        bayes = float(bayes_risk(task))
        for name, (activation, normalised, exponential) in ZOO.items():
            best = bayes if name == "softmax" else float(sl.best_risk(task, activation))
            rows.append(
                {
                    "model": model,
                    "activation": name,
                    "normalised": normalised,
                    "exponential": exponential,
                    "risk": best,
                    "bayes": bayes,
                    "cosine_squared": (1.0 - best) / (1.0 - bayes),
                }
            )
    return pd.DataFrame(rows)


def zoo_table(frame: pd.DataFrame) -> Table:
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


def zoo_claims(frame: pd.DataFrame) -> list[Claim]:
    """Only softmax is Bayes; one half of it is not enough."""
    spiked = dict(zip(ZOO, np.asarray(frame.loc[frame["model"] == "spiked", "risk"]), strict=True))
    excess = np.asarray(frame["risk"] - frame["bayes"])
    others = excess[np.asarray(frame["activation"] != "softmax")]
    generic = sl.Spiked(MEAN_LENGTH, 4.0)
    slopes = np.asarray([1.6, 1.9, 2.0, 2.1, 2.4])
    risks = best_scale(moments(generic, sl.softmax, sl.Overlaps(slopes, slopes**2, 1.0, 1.0)))
    bayes = float(bayes_risk(generic))
    return [
        Claim(
            id="softmax-advantage-bayes",
            statement=(
                f"Softmax with k = √ν k* attains the Bayes risk: at L = {MEAN_LENGTH} and ν = 4 its risk, from the "
                "quadrature that serves every normalised activation, less the Bayes risk."
            ),
            source="[D26, Prop. 4.2]",
            figure="activation_zoo",
            measured=risks[2] - bayes,
            expected=0.0,
            tolerance=1e-9,
            alternative=Alternative("another slope, 2.1 in place of √ν = 2", risks[3] - bayes),
        ),
        Claim(
            id="softmax-advantage-no-other",
            statement="No other activation reaches the Bayes risk: the smallest excess over both models.",
            source="derived here",
            figure="activation_zoo",
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
            figure="activation_zoo",
            measured=min(spiked[name] for name in ("erf", "relu", "linear", "exp")) - spiked["sigmoid"],
            expected=0.0,
            tolerance=1e-9,
            relation="≥",
            alternative=Alternative(
                "softmax, were it an element-wise activation", min(spiked.values()) - spiked["sigmoid"]
            ),
        ),
    ]


def cosine_claim(prompts: int, *, key) -> Claim:
    """`1 - risk = E|p|² cos²` with the cosine from simulated prompts, the risk from the quadrature."""
    task = sl.Spiked(COSINE_LENGTH, COSINE_SNR)
    root = np.sqrt(COSINE_SNR)
    scores = jr.normal(key, (prompts, COSINE_LENGTH)).at[:, 0].add(root)
    p, s = jax.nn.softmax(root * scores, axis=1), COSINE_HEAD.weights(scores)
    products = np.stack([np.asarray(jnp.sum(a * b, axis=1)) for a, b in ((s, p), (s, s), (p, p))], axis=1)
    both, weights, posterior = products.mean(axis=0)
    cosine = both**2 / (weights * posterior)
    # delta method: the relative influence of every prompt on the cosine
    influence = cosine * (products @ (np.asarray([2.0, -1.0, -1.0]) / products.mean(axis=0)))
    pointwise = products[:, 0] ** 2 / (products[:, 1] * products[:, 2])
    risk = best_scale(moments(task, COSINE_HEAD, sl.Overlaps(1.0, 1.0, 1.0, 1.0)))
    std_error = float(standard_error(influence))
    return Claim(
        id="softmax-advantage-cosine",
        statement=(
            "The risk of a head with the best v is 1 - E|p|² cos², with the cosine of its weights and the posterior in "
            f"L² of all prompts: for erf weights at L = {COSINE_LENGTH}, cos² from {prompts} simulated prompts."
        ),
        source="derived here",
        figure="activation_zoo",
        measured=float(cosine),
        expected=float((1.0 - risk) / (1.0 - bayes_risk(task))),
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative("the mean over prompts of the cosine within a prompt", float(pointwise.mean())),
    )


# --- strong hints -----------------------------------------------------------------------------------------

LAWS = {
    "softmax": lambda length, snr: (length - 1) * 0.5 * np.sqrt(np.pi / snr) * np.exp(-snr / 4),
    "hardmax": lambda length, snr: (length - 1) * (2 / np.sqrt(np.pi * snr)) * np.exp(-snr / 4),
    "sigmoid": lambda length, snr: np.sqrt((length - 1) * np.pi / (2 * snr)) * np.exp(-snr / 8),
    "linear": lambda length, snr: length / snr,
}


def rates_frame(lengths: list[int]) -> pd.DataFrame:
    """Exact risks in the spiked model over the laws they should tend to."""
    snrs = np.sort(np.append(np.geomspace(4.0, STRONGEST, 18), STRONG))
    frames = []
    for length in lengths:
        tasks = sl.Spiked(length, snrs)
        exact = {
            "softmax": bayes_risk(tasks),
            "hardmax": np.asarray(sl.best_risk(tasks, sl.hardmax)),
            "sigmoid": best_sigmoid("spiked", tasks),
            "linear": np.asarray(sl.best_risk(tasks, sl.linear)),
        }
        frames += [
            pd.DataFrame(
                {"activation": name, "length": length, "snr": snrs, "risk": risk, "ratio": risk / law(length, snrs)}
            )
            for (name, risk), law in zip(exact.items(), LAWS.values(), strict=True)
        ]
    return pd.concat(frames, ignore_index=True)


def rates_table(frame: pd.DataFrame) -> Table:
    """By activation, length and ν."""
    columns = {
        "activation": Column("What a head makes of its scores", "name"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "snr": Column("Strength of the hint, ν"),
        "risk": Column("Excess risk of the best head", absolute=1e-13),
        "ratio": Column("Excess risk over its law at large ν", absolute=1e-4),
    }
    return Table(frame, columns)


def rate_claims(frame: pd.DataFrame) -> list[Claim]:
    """Exponents between two strong hints, and the price of a hard decision extrapolated in 1/ν; all at L = 2."""
    short = frame[frame["length"] == 2].pivot(index="snr", columns="activation", values="risk")
    weak, strong = (short.loc[short.index[np.argmin(np.abs(short.index - snr))]] for snr in (STRONG, STRONGEST))
    exponent = {
        name: np.log(weak[name] * np.sqrt(STRONG) / (strong[name] * np.sqrt(STRONGEST))) / (STRONGEST - STRONG)
        for name in ("softmax", "sigmoid", "linear")
    }
    price = 2 * strong["hardmax"] / strong["softmax"] - weak["hardmax"] / weak["softmax"]
    words = {"softmax": ("of softmax, the Bayes risk,", "1/4", 0.25), "sigmoid": ("of the best sigmoid", "1/8", 0.125)}
    between = f"between ν = {STRONG:g} and {STRONGEST:g} at L = 2"
    exponential = [
        Claim(
            id=f"softmax-advantage-{name}-exponent",
            statement=f"The risk {whose} falls like e^(-ν·{fraction})/√ν: the exponent {between}.",
            source="derived here",
            figure="strong_hints",
            measured=float(exponent[name]),
            expected=expected,
            tolerance=0.003,
            alternative=Alternative("half of it, or for the sigmoid twice", 0.375 - expected),
        )
        for name, (whose, fraction, expected) in words.items()
    ]
    return [
        *exponential,
        Claim(
            id="softmax-advantage-linear-power",
            statement=(
                f"The risk of linear attention falls only like a power of ν: log-log slope {between}, still on its way "
                "to -1."
            ),
            source="derived here",
            figure="strong_hints",
            measured=float(np.log(strong["linear"] / weak["linear"]) / np.log(STRONGEST / STRONG)),
            expected=-1.0,
            tolerance=0.1,
            alternative=Alternative(
                "an exponential, like softmax",
                float(np.log(strong["softmax"] / weak["softmax"]) / np.log(STRONGEST / STRONG)),
            ),
        ),
        Claim(
            id="softmax-advantage-hardmax-price",
            statement=(
                "Hardmax pays a factor 4/π for its hard decision: its risk over the Bayes risk, extrapolated in 1/ν "
                f"{between}."
            ),
            source="derived here",
            figure="strong_hints",
            measured=float(price),
            expected=4 / np.pi,
            tolerance=0.005,
            alternative=Alternative("no price at all", 1.0),
        ),
    ]


# --- random lengths ---------------------------------------------------------------------------------------


def random_length_frame() -> pd.DataFrame:
    """Prompts of `MEAN_LENGTH ± width` tokens with equal chances; heads fixed at what is best for the mean length."""
    rows = []
    for model, make in MODELS.items():
        mean = make(MEAN_LENGTH, np.asarray(COSINE_SNR))
        slope = float(affine_fit(mean.marginals(jnp.ones(()), jnp.ones(())))[1])
        sharp = np.sqrt(COSINE_SNR) if model == "spiked" else COSINE_SNR
        heads = {
            "softmax": (sl.softmax, sharp),
            "sigmoid": (Sigmoid(-0.5 * COSINE_SNR - np.log(MEAN_LENGTH - 1.0)), np.sqrt(COSINE_SNR)),
            "linear": (sl.linear, slope),
        }
        widths = np.arange(MEAN_LENGTH - 1)
        for name, (activation, c) in heads.items():
            ends = make(np.stack([MEAN_LENGTH - widths, MEAN_LENGTH + widths]), COSINE_SNR)
            these = moments(ends, activation, sl.Overlaps(c, c**2, 1.0, 1.0))
            risks = best_scale(jax.tree.map(lambda leaf: leaf.mean(axis=0), these))
            bayes = bayes_risk(ends).mean(axis=0)
            rows.append(
                pd.DataFrame({"model": model, "activation": name, "width": widths, "risk": risks, "bayes": bayes})
            )
    return pd.concat(rows, ignore_index=True)


def random_length_table(frame: pd.DataFrame) -> Table:
    """By model, activation and width of the law."""
    columns = {
        "model": Column("How the hidden token stands out: spiked or max", "name"),
        "activation": Column("What a head makes of its scores", "name"),
        "width": Column(f"Prompts have {MEAN_LENGTH} - width or {MEAN_LENGTH} + width tokens", "tokens"),
        "risk": Column("Excess risk of the head that is best at the mean length, v rescaled"),
        "bayes": Column("Mean of the Bayes risks of the two lengths"),
    }
    return Table(frame, columns)


def random_length_claims(frame: pd.DataFrame) -> list[Claim]:
    """Spiked element-wise heads see the mean length only; softmax is Bayes at every length."""
    unchanged = frame.groupby(["model", "activation"])["risk"].transform("first")
    risk, bayes = np.asarray(frame["risk"]), np.asarray(frame["bayes"])
    changes = np.abs(risk - np.asarray(unchanged))
    soft, spiked = np.asarray(frame["activation"] == "softmax"), np.asarray(frame["model"] == "spiked")
    fixed = np.asarray(frame.groupby(["model", "activation"])["bayes"].transform("first"))
    return [
        Claim(
            id="softmax-advantage-mean-length",
            statement=(
                "In the spiked model an element-wise head sees of a random length nothing but its mean: the largest "
                "change of its risk with the width of the law."
            ),
            source="derived here",
            figure="random_length",
            measured=float(changes[~soft & spiked].max()),
            expected=0.0,
            tolerance=1e-9,
            relation="≤",
            alternative=Alternative("the same in the max model", float(changes[~soft & ~spiked].max())),
        ),
        Claim(
            id="softmax-advantage-any-length",
            statement=(
                "One softmax head is Bayes-optimal at all lengths together: its risk under a random length is the mean "
                "of the Bayes risks; the largest difference."
            ),
            source="derived here",
            figure="random_length",
            measured=float(np.abs(risk - bayes)[soft].max()),
            expected=0.0,
            tolerance=1e-9,
            relation="≤",
            alternative=Alternative(
                "the Bayes risk of the mean length in its place", float(np.abs(risk - fixed)[soft].max())
            ),
        ),
    ]
