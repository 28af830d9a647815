"""Shared style of the figures of this chapter."""

from matplotlib.axes import Axes

from chapters.real_heads.regimes import FROZEN, LINEAR
from companion.figures.style import ink

# Accuracy of R² on simulated or changed prompts, which is limited by sums in float32.
ROUNDING = 1e-3
# Colours of the text and of Gaussian tokens.
TEXT, GAUSSIAN = "C0", "C1"


def borders(axes: Axes) -> None:
    """Draw vertical lines at the end of the small-spread regime and at freezing, if x is τ̂/√(2 ln L)."""
    for border, look in zip((LINEAR, FROZEN), (":", "--"), strict=True):
        axes.axvline(border, color=ink(), linestyle=look, linewidth=1.2, alpha=0.7)
