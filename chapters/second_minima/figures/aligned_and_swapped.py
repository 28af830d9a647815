r"""An aligned head compares covariates and returns labels; a swapped head scores labels and returns covariates.

Schematic. A token has a covariate $x$ and a label $y$. The square is $U$, with one row per coordinate of a token and
one column per covariate of the query; the bar is $v$, the value of each coordinate of a token. Only shaded blocks are
not zero. On infinite prompts the outputs of both are averages of the products $x_iy_i$, so the swapped head can serve
a direction of covariates as well as the aligned head. Then the score is on the label and the value is the covariate.

Alt: Two block matrices side by side, each with a narrow column next to it. On the left the large upper block A of the
matrix and the small lower block b of the column are shaded. On the right the lower row of the matrix, u transposed, and
the large upper block of the column, a, are shaded.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from companion import no_numbers
from companion.figures.schematics import canvas
from companion.figures.style import WIDE, ink

numbers = no_numbers

SIDE, ROW, GAP = 1.7, 0.5, 0.45
HEADS = (
    (0.75, "aligned", "C0", {"matrix": ("A", ""), "value": ("", "b")}, "score on $x$, return $y$"),
    (4.95, "swapped", "C3", {"matrix": ("", r"u^{\!\top}"), "value": ("a", "")}, "score on $y$, return $x$"),
)


def draw(_) -> Figure:
    """Draw the blocks of both heads."""
    figure, axes = canvas(WIDE, 3.9)
    for left, name, colour, blocks, meaning in HEADS:
        axes.text(left, 3.35, f"{name} head", fontsize=13, fontweight="bold", color=colour)
        axes.text(left, 0.1, meaning, fontsize=12, color=colour)
        value = left + SIDE + GAP
        for x, width, parts in ((left, SIDE, blocks["matrix"]), (value, ROW, blocks["value"])):
            _blocks(axes, x, width, parts, colour)
        axes.text(left + SIDE / 2, 3.0, "$U$", ha="center", fontsize=13)
        axes.text(value + ROW / 2, 3.0, "$v$", ha="center", fontsize=13)
        axes.text(left - 0.15, 0.65 + ROW + SIDE / 2, "$x$", ha="right", va="center", fontsize=13)
        axes.text(left - 0.15, 0.65 + ROW / 2, "$y$", ha="right", va="center", fontsize=13)
    return figure


def _blocks(axes: Axes, x: float, width: float, parts: tuple[str, str], colour: str) -> None:
    """Draw the block of covariates above that of the label; an empty name is a block of zeros."""
    for y, height, part in ((0.65 + ROW, SIDE, parts[0]), (0.65, ROW, parts[1])):
        face = (colour, 0.3) if part else "none"
        axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=ink(), linewidth=1.3))
        text, look = (f"${part}$", {"fontsize": 15}) if part else ("0", {"fontsize": 12, "alpha": 0.5})
        axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", **look)
