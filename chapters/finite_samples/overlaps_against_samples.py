r"""Inside the trained heads: overlaps and training loss at the best ridges.

Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: $m_k=k\cdot k^\star/D$, $q_k=|k|^2/D$, the same for
the value vector, and half the mean square error on the training prompts. Lines: replica theory. Marks: training
runs at three dimensions, taken to $D\to\infty$ by a straight line in $1/D$, with standard errors. The jumps of
slope come from the ridges, which change with $\alpha$. Crosses in place of a line: the replica iteration found no
fixed point.

Alt: Five panels of curves for softmax and linear attention against prompts per dimension, with marks of simulated
training near every curve, closer than about two error bars. The overlaps of softmax with both hidden directions
grow to about one; linear attention keeps a large key and a small value vector.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.marks import COLOURS, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import QUANTITIES, Trained
from chapters.finite_samples.training import HEADS
from companion import Alternative, Claim, Column, Numbers, Table
from lib.statistics import comparison_quantile

LABELS = {"m_k": "$m_k$", "q_k": "$q_k$", "m_v": "$m_v$", "q_v": "$q_v$", "train_loss": "training loss"}


def numbers(curves: Trained, limits: Trained, compared: Sequence[float]) -> Numbers:
    """Theory beside the runs at D → ∞; they agree, for each head, at the sample ratios `compared`."""
    return Numbers(_table(curves, limits), [_agreement_claim(curves, limits, compared, name) for name in HEADS])


def _table(curves: Trained, limits: Trained) -> Table:
    """Overlaps and training loss against the sample ratio: replica, and runs taken to D → ∞."""
    rows = [
        {"head": head, "kind": kind, "quantity": quantity, "alpha": alpha, **these[quantity]._asdict()}
        for kind, trained in {"theory": curves, "runs": limits}.items()
        for quantity in QUANTITIES[1:]
        for (head, alpha), these in trained.items()
    ]
    columns = {
        "head": Column("`softmax` or `linear`, at its best ridges", "name"),
        "kind": Column("`theory`: replica; `runs`: simulated at three dimensions and extrapolated in 1/D", "name"),
        "quantity": Column(
            "`m_k`, `q_k`, `m_v`, `q_v`: overlaps; `train_loss`: half the mean square on the prompts", "name"
        ),
        "alpha": Column("Sample ratio α = n/D"),
        "value": Column("The quantity", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="value"),
        "converged": Column("False where the replica iteration found no fixed point", "yes or no"),
    }
    return Table(pd.DataFrame(rows), columns)


def _agreement_claim(curves: Trained, limits: Trained, compared: Sequence[float], name: str) -> Claim:
    """The worst deviation between simulation and replica for one head."""
    right, wrong = (np.abs(each) for each in _deviations(curves, limits, compared, name))
    return Claim(
        id=f"finite-samples-{name}",
        statement=(
            f"Risk, four overlaps and training loss of {name} training runs, taken to D → ∞, are those of the replica "
            f"fixed point: the worst of {len(right)} deviations, in combined standard errors."
        ),
        source="[D26]",
        box="replica-prediction",
        measured=float(right.max()),
        expected=0.0,
        tolerance=comparison_quantile(len(right)),
        relation="≤",
        alternative=Alternative("the runs followed the theory of the next sample ratio", float(wrong.max())),
    )


def _deviations(
    curves: Trained, limits: Trained, compared: Sequence[float], name: str
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Simulation minus replica in combined standard errors; then the same against the neighbouring ratio."""
    ratios, right, wrong = np.asarray(compared), [], []
    for alpha in compared:
        others = ratios[ratios != alpha]
        nearest = float(others[np.argmin(np.abs(np.log(others / alpha)))])
        for quantity in QUANTITIES:
            run, own, other = limits[name, alpha], curves[name, alpha], curves[name, nearest]
            error = np.hypot(run[quantity].std_error, own[quantity].std_error)
            right.append((run[quantity].value - own[quantity].known) / error)
            wrong.append((run[quantity].value - other[quantity].known) / error)
    return np.asarray(right), np.asarray(wrong)


def draw(table: pd.DataFrame) -> Figure:
    """A panel a quantity: curves of theory, marks of runs."""
    figure, panels = plt.subplots(2, 3, figsize=(9.0, 5.0), sharex=True)
    for panel, (quantity, label) in zip(panels.flat, LABELS.items(), strict=False):
        for head in ("softmax", "linear"):
            mine = table[(table["head"] == head) & (table["quantity"] == quantity)]
            curve, runs = mine[mine["kind"] == "theory"], mine[mine["kind"] == "runs"]
            draw_theory(panel, curve, "value", COLOURS[head])
            style = {"color": COLOURS[head], "marker": "o", "markersize": 4, "capsize": 3}
            draw_runs(panel, runs["alpha"], runs["value"], runs["std_error"], **style)
        panel.set(xscale="log", title=label, ylim=(0, None))
        plain_ticks(panel, table["alpha"])
    for panel in (*panels[1, :2], panels[0, 2]):
        panel.set_xlabel(r"$\alpha=n/D$")
    panels[0, 2].tick_params(labelbottom=True)
    handles = [
        Line2D([], [], color=COLOURS[head], marker="o", markersize=4, fillstyle="none")
        for head in ("softmax", "linear")
    ]
    panels[1, 2].set_axis_off()
    panels[1, 2].legend(handles, ["softmax", "linear"], loc="center")
    return figure
