r"""Four token laws with the same $\sigma$, and two rates.

Mean square of $L^{1/2}(T[\hat\mu_L]-T[\mu])$ over prompts and queries, two coordinates, $U=uI$. Every law has the
variance $\sigma^2$ in each coordinate and is $\sigma$-sub-Gaussian with no smaller constant, so Proposition 3.1
treats them alike. Points: simulated, with two standard errors, joined to guide the eye. Dashed: the mean of
$\operatorname{tr}(\mathrm{fluctuation})$ over queries, the limit where it is finite. Signs, uniform and clustered
tokens level off at it: their error falls like $1/L$. The Gaussian has none and climbs: its error falls slower.

Alt: Log-log plot of prompt length times error against prompt length. Points of Rademacher, uniform and mixture
tokens become flat on three dashed horizontal lines within a few hundred tokens. The Gaussian points climb along a
straight line with no end in sight.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from chapters.output_concentration.anatomy import take_apart
from chapters.output_concentration.error_curves import as_columns
from chapters.output_concentration.marks import MARKERS, SIZE, line
from chapters.output_concentration.scene import DIMENSION, clusters, head
from companion import Alternative, Claim, Column, Numbers, Table
from lib.attention import fluctuation
from lib.concentration import ErrorCurve, Rate, fit_rate, one_over_length
from lib.measures import Measure, Uniform
from lib.statistics import comparison_quantile

# The share of a mixture's variance that lies within its components.
WITHIN = 0.1


def token_laws(scale: float, dimension: int = DIMENSION) -> dict[str, Measure]:
    """Four products of symmetric laws of variance σ², each σ-sub-Gaussian and with no smaller constant."""
    return {
        "Gaussian": clusters(scale, within=1.0, dimension=dimension),
        "mixture": clusters(scale, within=WITHIN, dimension=dimension),
        "uniform": Uniform(np.full(dimension, np.sqrt(3.0) * scale)),
        "Rademacher": clusters(scale, within=0.0, dimension=dimension),
    }


def simulate(
    scale: float, gain: float, truncation: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[str, ErrorCurve]:
    """By law: the error of simulated prompts.

    The truncation has no part in an error. It is asked for because the prompts are taken apart as those of each scale
    are, so that all share a compilation.
    """
    return {
        name: take_apart(law, gain, truncation, lengths, prompts, key=jr.fold_in(key, i)).error
        for i, (name, law) in enumerate(token_laws(scale).items())
    }


def law_limits(scale: float, gain: float) -> dict[str, float]:
    """`lim L · E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)}`: the mean of `tr fluctuation` over queries, where it is finite.

    The coordinates of token and query are independent, so with `r = e^{Λ(2ξ)-2Λ(ξ)}` of one coordinate the mean is
    `d · E[fluctuation] · E[r]^{d-1}`, each over one normal. At H² ≥ ½ Gaussian tokens have none.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    params, weights = head(gain, 1), jnp.asarray(weights / weights.sum())

    def limit(law):
        def one(z):
            tilt = gain * z[None]
            return fluctuation(params, law, z[None])[0, 0], jnp.exp(law.log_mgf(2 * tilt) - 2 * law.log_mgf(tilt))

        noise, ratio = jax.vmap(one)(jnp.asarray(nodes))
        return DIMENSION * (weights @ noise) * (weights @ ratio) ** (DIMENSION - 1)

    laws = {name: law for name, law in token_laws(scale, 1).items() if name != "Gaussian"}
    limits = jax.jit(lambda: {name: limit(law) for name, law in laws.items()})()
    return {name: float(value) for name, value in limits.items()}


def numbers(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Numbers:
    """Errors by law, their exponents, and their limits."""
    return Numbers(_table(curves, limits), (*_law_claims(curves), _limit_claim(curves, limits)))


def _table(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Table:
    """Error against length by law, with the 1/L law of long prompts where there is one."""
    frames = [pd.DataFrame({"law": name, "kind": "prompts", **as_columns(curve)}) for name, curve in curves.items()]
    for name, limit in limits.items():
        lengths = curves[name].lengths.astype(float)
        frames.append(pd.DataFrame({"law": name, "kind": "limit", "length": lengths, "error": limit / lengths}))
    columns = {
        "law": Column(f"Law of a token: {DIMENSION} independent coordinates of equal variance", "name"),
        "kind": Column("`prompts`: simulated; `limit`: the mean of tr(fluctuation)/L over queries", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _rate_of(curve: ErrorCurve) -> Rate:
    """The exponent, with a correction of relative size 1/L fitted along."""
    return fit_rate(curve, one_over_length)


def _law_claims(curves: Mapping[str, ErrorCurve]) -> list[Claim]:
    """1/L for each law but the Gaussian, whose exponent is the alternative."""
    gaussian = _rate_of(curves["Gaussian"]).exponent
    others = {name: _rate_of(curve) for name, curve in curves.items() if name != "Gaussian"}
    words = {"mixture": "clustered", "uniform": "uniform", "Rademacher": "Rademacher"}
    return [
        Claim(
            id=f"output-concentration-{name.lower()}",
            statement=(
                f"The error of {words[name]} tokens falls like 1/L: the fitted exponent, with a correction of relative "
                "size 1/L, is 1."
            ),
            source="derived here",
            measured=rate.exponent,
            expected=1.0,
            tolerance=comparison_quantile(len(others)) * rate.std_error,
            std_error=rate.std_error,
            alternative=Alternative("it fell like that of Gaussian tokens of the same σ", gaussian),
        )
        for name, rate in others.items()
    ]


def _limit_claim(curves: Mapping[str, ErrorCurve], limits: Mapping[str, float]) -> Claim:
    """L times the error at the longest length, in units of its limit."""
    units = {name: limit / curves[name].lengths[-1] for name, limit in limits.items()}
    ratios = [(curves[name].mean[-1] / unit, curves[name].std_error[-1] / unit) for name, unit in units.items()]
    ratio, std_error = max(ratios, key=lambda pair: abs(pair[0] - 1) / pair[1])
    return Claim(
        id="output-concentration-limit",
        statement=(
            "For tokens that are clustered, uniform or signs, L times the error tends to the mean of tr(fluctuation) "
            "over queries: the ratio of the two at the longest length is 1, worst of three laws."
        ),
        source="derived here",
        measured=ratio,
        expected=1.0,
        tolerance=comparison_quantile(len(ratios)) * std_error,
        std_error=std_error,
        alternative=Alternative("the noise were a third smaller", 1.5 * ratio),
    )


def draw(table: pd.DataFrame) -> Figure:
    """L times the error, a colour a law, over its limit."""
    figure, axes = plt.subplots(figsize=SIZE)
    for index, law in enumerate(dict.fromkeys(table["law"])):
        mine = table[table["law"] == law]
        prompts, limit = (mine[mine["kind"] == kind] for kind in ("prompts", "limit"))
        lengths = prompts["length"]
        axes.errorbar(
            lengths,
            lengths * prompts["error"],
            2 * lengths * prompts["std_error"],
            color=f"C{index}",
            marker=MARKERS[index],
            markersize=6,
            linewidth=1,
            capsize=2,
            label=law,
        )
        axes.plot(limit["length"], limit["length"] * limit["error"], color=f"C{index}", linestyle="--", linewidth=1.8)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="$L$ × mean squared error")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([*handles, line("--", 1.8)], [*labels, "limit"], loc="upper left")
    return figure
