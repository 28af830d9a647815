r"""Errors of the two gradients against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

Mean squared Hilbert–Schmidt norm of the gradient at a finite prompt minus that at its law, over prompts and
queries. Points: simulated, with two standard errors. Solid (left): exact. Dashed: the form of the bound,
$c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ for $\nabla_V$, $c_1\sigma^{12}(\ln L)^2/L^{c_2/\sigma^2}$ for $\nabla_U$. The
paper does not give the constants; one pair for each gradient was fitted to the points left of the dotted line.
The two panels share their axes: $\nabla_U$ errs more, and falls later.

Alt: Two log-log panels of error against prompt length with common axes, four series of points each. Left, points
lie on solid falling curves, steepest for the smallest scale. Right, the points lie up to a factor of thirty higher
and fall more slowly. Dashed curves run above the points, further above for larger scales, more so on the right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from chapters.gradient_concentration.gradient_errors import BILINEAR, DIMENSION, VALUE, Errors
from chapters.gradient_concentration.marks import MARKERS, SIZE, line
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.concentration import BoundShape, fit_bound, isotropic_error, score_table
from lib.statistics import comparison_quantile

# The wrong theory that the exact curve must be told from: query sizes τ this much too large.
INFLATION = 1.05
# The powers of σ and of ln L in the bound.
POWERS = {VALUE: {"sigma_power": 6, "log_power": 1}, BILINEAR: {"sigma_power": 12, "log_power": 2}}
SYMBOL = {VALUE: "∇_V", BILINEAR: "∇_U"}


@dataclass(frozen=True)
class ValueErrors:
    """By σ, at the simulated lengths: the exact error of ∇_V, and what it were if query sizes τ were too large."""

    right: Mapping[float, Float[np.ndarray, " k"]]
    wrong: Mapping[float, Float[np.ndarray, " k"]]


def value_errors(scales: Sequence[float], gain: float, lengths: Sequence[int]) -> ValueErrors:
    """d times the error of the output, by quadrature."""
    table = score_table(np.log(lengths))

    def exact(inflation):
        return {
            sigma: DIMENSION * sigma**2 * isotropic_error(table, inflation * gain * sigma, DIMENSION)
            for sigma in scales
        }

    return ValueErrors(exact(1.0), exact(INFLATION))


def fit(measured: Mapping[float, Errors]) -> dict[str, BoundShape]:
    """By gradient: the form of the bound, its constants fitted to the shorter half of the lengths."""
    lengths = _lengths(measured)
    half = _half(measured)
    return {
        name: fit_bound(list(measured), lengths[:half], _means(measured, name)[:, :half], **powers)
        for name, powers in POWERS.items()
    }


def numbers(measured: Mapping[float, Errors], exact: ValueErrors, bounds: Mapping[str, BoundShape]) -> Numbers:
    """Both errors beside the exact one of ∇_V and the bounds, which hold where they were not fitted."""
    claims = (_value_claim(measured, exact), *(_bound_claim(name, bound, measured) for name, bound in bounds.items()))
    return Numbers(_table(measured, exact, bounds), claims)


def _lengths(measured: Mapping[float, Errors]) -> np.ndarray:
    return next(iter(measured.values())).value.lengths


def _half(measured: Mapping[float, Errors]) -> int:
    """How many of the lengths the constants of the bounds are fitted to."""
    return len(_lengths(measured)) // 2


def _means(measured: Mapping[float, Errors], name: str) -> Float[np.ndarray, "sigmas k"]:
    """Mean errors by σ and length."""
    return np.stack([errors.curve(name).mean for errors in measured.values()])


def _table(measured: Mapping[float, Errors], exact: ValueErrors, bounds: Mapping[str, BoundShape]) -> Table:
    """Errors of both gradients against length by σ: simulated, exact for ∇_V, and the form of the bound."""
    half = _half(measured)
    frames = []
    for sigma, errors in measured.items():
        lengths = errors.value.lengths.astype(float)
        for name, bound in bounds.items():
            base, curve = {"gradient": SYMBOL[name], "sigma": sigma, "length": lengths}, errors.curve(name)
            kinds = ["fitted"] * half + ["bound"] * (len(lengths) - half)
            frames += [
                pd.DataFrame({**base, "kind": "prompts", "error": curve.mean, "std_error": curve.std_error}),
                pd.DataFrame({**base, "kind": kinds, "error": bound(sigma, lengths)}),
            ]
        known = {"gradient": SYMBOL[VALUE], "sigma": sigma, "length": lengths}
        frames.append(pd.DataFrame({**known, "kind": "exact", "error": exact.right[sigma]}))
    columns = {
        "gradient": Column("The gradient with respect to V or to U", "name"),
        "sigma": Column("Token scale σ"),
        "kind": Column(
            "`prompts`: simulated; `exact`: by quadrature; `fitted`, `bound`: c₁ σ^p (ln L)^q / L^(c₂/σ²), p, q = 6, 1 "
            "for ∇_V and 12, 2 for ∇_U, where its constants were fitted to the simulation, and beyond",
            "name",
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared Hilbert–Schmidt norm of the gradient's error, in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", std_error="std_error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _value_claim(measured: Mapping[float, Errors], exact: ValueErrors) -> Claim:
    """The simulated error of ∇_V against the exact one, worst over σ and L."""

    def worst(expected):
        return max(
            np.max(np.abs(errors.value.mean - expected[sigma]) / errors.value.std_error)
            for sigma, errors in measured.items()
        )

    comparisons = _means(measured, VALUE).size
    return Claim(
        id="gradient-concentration-value",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the simulated error of ∇_V is the number of "
            "outputs times the exact error of the output: the worst deviation, in standard errors."
        ),
        source="derived here",
        measured=worst(exact.right),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        std_error=1.0,
        alternative=Alternative(f"query sizes τ were {INFLATION - 1:.0%} larger", worst(exact.wrong)),
    )


def _bound_claim(name: str, bound: BoundShape, measured: Mapping[float, Errors]) -> Claim:
    """Simulated errors over the bound whose constants were fitted to the shorter half of the lengths."""
    lengths, half = _lengths(measured), _half(measured)
    errors = _means(measured, name)
    shape = bound(np.asarray(list(measured))[:, None], lengths[half:])
    ratio, frozen = float(np.max(errors[:, half:] / shape)), float(np.max(errors[:, :1] / shape))
    return Claim(
        id=f"gradient-concentration-bound-{name}",
        statement=(
            f"With constants fitted up to L = {lengths[half - 1]}, c₁ σ^{bound.sigma_power} (ln L)^{bound.log_power} / "
            f"L^(c₂/σ²) bounds the simulated error of {SYMBOL[name]} for all σ up to L = {lengths[-1]}: the largest "
            "ratio of error to bound on the longer half."
        ),
        source="[BB26, Prop. 3.4]",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(f"errors stayed what they are at L = {lengths[0]}", frozen),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a gradient: simulated and exact errors, and the bound."""
    sigmas = sorted(table["sigma"].unique())
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True, sharey=True)
    for panel, gradient, title in zip(panels, ("∇_V", "∇_U"), (r"$\nabla_V$", r"$\nabla_U$"), strict=True):
        part = table[table["gradient"] == gradient]
        for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), MARKERS, strict=False):
            mine = part[part["sigma"] == sigma]
            prompts, exact = (mine[mine["kind"] == kind] for kind in ("prompts", "exact"))
            bound = mine[mine["kind"].isin(["fitted", "bound"])]
            panel.plot(exact["length"], exact["error"], color=colour, linewidth=2)
            panel.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
            panel.errorbar(
                prompts["length"],
                prompts["error"],
                2 * prompts["std_error"],
                color=colour,
                marker=marker,
                markersize=5.5,
                linestyle="",
                capsize=2,
                label=rf"$\sigma={sigma:g}$",
            )
        fitted, tried = (part[part["kind"] == kind]["length"] for kind in ("fitted", "bound"))
        panel.axvline((fitted.max() * tried.min()) ** 0.5, color=ink(), linestyle=":", linewidth=1.5)
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$", title=title)
        _plain(panel)
    panels[0].set_ylabel("mean squared error of the gradient")
    handles, labels = panels[0].get_legend_handles_labels()
    handles += [line("-"), line("--", 1.4)]
    panels[1].legend(
        handles,
        [*labels, "exact", "form of the bound,\nconstants fitted"],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    return figure


def _plain(axes: Axes) -> None:
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
