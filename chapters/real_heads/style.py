"""Shared style of the figures of this chapter."""

from matplotlib.axes import Axes

from chapters.real_heads.regimes import FROZEN, LINEAR
from companion.figures.style import ink

# Accuracy of R² on simulated or changed prompts, which is limited by sums in float32.
ROUNDING = 1e-3
# Colours of the text and of Gaussian tokens.
TEXT, GAUSSIAN = "C0", "C1"


def spread_axis(axes: Axes) -> None:
    """Make the x axis that of τ̂/√(2 ln L), with both borders and the names of the regimes above them."""
    borders(axes)
    for border, name, side, shift in ((LINEAR, "small spread", "right", -4), (FROZEN, "freezes", "left", 4)):
        look = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "fontsize": 10}
        axes.annotate(name, (border, 1.0), xytext=(shift, 3), ha=side, **look)
    axes.set_xscale("log")
    spread_ticks(axes)


def spread_ticks(axes: Axes) -> None:
    """Set the ticks of a logarithmic x axis of τ̂/√(2 ln L)."""
    axes.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    axes.minorticks_off()


def borders(axes: Axes) -> None:
    """Draw vertical lines at the end of the small-spread regime and at freezing, if x is τ̂/√(2 ln L)."""
    for border, look in zip((LINEAR, FROZEN), (":", "--"), strict=True):
        axes.axvline(border, color=ink(), linestyle=look, linewidth=1.2, alpha=0.7)
