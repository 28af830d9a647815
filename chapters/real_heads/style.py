"""How the pictures of this chapter draw what they share: one colour for the text, one for Gaussian tokens."""

from matplotlib.axes import Axes

from chapters.real_heads.regimes import FROZEN, LINEAR
from companion.figures.style import ink

SIZE = (8.5, 4.5)
# Other draws and other prompts than the text's, each exact up to sums in float32.
ROUNDING = 1e-3
TEXT, GAUSSIAN = "C0", "C1"


def borders(axes: Axes) -> None:
    """Where the linear regime ends and where softmax freezes, across a picture whose x is τ̂/√(2 ln L)."""
    for border, look in zip((LINEAR, FROZEN), (":", "--"), strict=True):
        axes.axvline(border, color=ink(), linestyle=look, linewidth=1.2, alpha=0.7)
