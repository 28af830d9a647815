"""How every picture looks: one light and one dark sheet, one colour-blind-safe palette, one way to draw a law."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
import seaborn as sns
from cycler import cycler

Theme = Literal["light", "dark"]

# Okabe & Ito's colours, safe for the common colour blindnesses; the dark sheet lightens the two that vanish.
PALETTES = {
    "light": ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"],
    "dark": ["#4FA8DC", "#FF8A47", "#2FC79A", "#E39AC6", "#F2B632", "#8FD0F5"],
}
INK = {"light": "#1b1f24", "dark": "#e6e8eb"}
PAPER = {"light": "#ffffff", "dark": "#121212"}
FAINT = {"light": "#d5d9de", "dark": "#3a3f45"}


@contextmanager
def style(theme: Theme) -> Iterator[None]:
    """Draw inside in `theme`. Global settings of matplotlib are restored on leaving."""
    ink, paper, faint = INK[theme], PAPER[theme], FAINT[theme]
    settings: dict[Any, Any] = {
        **sns.axes_style("ticks"),
        **sns.plotting_context("notebook"),
        "axes.edgecolor": ink,
        "axes.facecolor": paper,
        "axes.grid": True,
        "axes.labelcolor": ink,
        "axes.prop_cycle": cycler(color=PALETTES[theme]),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": "medium",
        "figure.constrained_layout.use": True,
        "figure.dpi": 110,
        "figure.facecolor": paper,
        "font.family": "DejaVu Sans",
        "font.size": 11,
        "grid.color": faint,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "mathtext.fontset": "dejavusans",
        "savefig.bbox": "tight",
        "savefig.facecolor": paper,
        "svg.fonttype": "path",
        "svg.hashsalt": "large-prompt-attention",
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
    }
    with mpl.rc_context(settings):
        yield


def ink() -> str:
    """The text colour of the sheet in use."""
    return mpl.rcParams["text.color"]


def sequence(n: int) -> list:
    """`n` colours for an ordered quantity, readable on the sheet in use and in grey."""
    dark = mpl.rcParams["axes.facecolor"] == PAPER["dark"]
    lightest, darkest = (0.92, 0.35) if dark else (0.78, 0.15)
    ramp = mpl.colormaps["viridis"]
    positions = [lightest - (lightest - darkest) * (i / max(n - 1, 1)) for i in range(n)]
    return [ramp(position) for position in (positions[::-1] if dark else positions)]
