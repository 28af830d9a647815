"""The style of all pictures: two widths, one face, a palette for colour-blind readers, and helpers."""

# matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from cycler import cycler
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.typing import ColorType, LineStyleType

from companion.analysis.dependencies import FONTS

# The two widths of pictures, in inches. On a desktop the site shows a picture at its own size, so its text has the size
# of text on the page: `COLUMN` is as wide as a column of text, `WIDE` as wide as the page (96 pixels to the inch).
COLUMN, WIDE = 640 / 96, 8.2
# The face of pages and pictures (made by `tools/subset_font.py`).
FACE = "Book Serif"

# Okabe & Ito's colours, safe for the common colour blindnesses.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
INK, PAPER, FAINT = "#1b1f24", "#ffffff", "#d5d9de"


@contextmanager
def style() -> Generator[None]:
    """Apply the settings of pictures inside the block; the previous settings of matplotlib are restored on exit.

    Settings that are not named here are matplotlib's defaults, whatever the user's `matplotlibrc` says.
    """
    _load_fonts()
    settings: dict[Any, Any] = {
        **sns.axes_style("ticks"),
        **sns.plotting_context("notebook"),
        "axes.edgecolor": INK,
        "axes.facecolor": PAPER,
        "axes.grid": True,
        "axes.labelcolor": INK,
        "axes.prop_cycle": cycler(color=PALETTE),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": "medium",
        "figure.constrained_layout.use": True,
        "figure.dpi": 110,
        "figure.facecolor": PAPER,
        "font.family": [FACE, "STIXGeneral"],
        "font.size": 11,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "mathtext.bf": f"{FACE}:bold",
        "mathtext.cal": "STIXGeneral:italic",
        "mathtext.fallback": "stix",
        "mathtext.fontset": "custom",
        "mathtext.it": f"{FACE}:italic",
        "mathtext.rm": FACE,
        "savefig.facecolor": PAPER,
        "svg.fonttype": "path",
        "svg.hashsalt": "companion",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        yield


@cache
def _load_fonts() -> None:
    for path in sorted(FONTS.glob("*.ttf")):
        font_manager.fontManager.addfont(path)


def ink() -> str:
    """Return the colour of text."""
    return INK


def background() -> dict[str, Any]:
    """Return the `bbox` of a text that hides what is behind it by the colour of the background."""
    return {"facecolor": mpl.rcParams["axes.facecolor"], "edgecolor": "none", "pad": 1}


def sequence(n: int) -> list[tuple[float, float, float, float]]:
    """Return `n` colours for an ordered quantity, readable in greyscale, too."""
    lightest, darkest = 0.78, 0.15
    ramp = mpl.colormaps["viridis"]
    return [ramp(lightest - (lightest - darkest) * (i / max(n - 1, 1))) for i in range(n)]


# The contrast of text that WCAG asks for at level AA.
LEAST = 4.5
# Distinguishable in print and by colour-blind readers.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def markers(n: int) -> list[str]:
    """Return `n` markers; they repeat after the last of `MARKERS`."""
    return [MARKERS[i % len(MARKERS)] for i in range(n)]


def power_of_ten(number: float) -> str:
    """Return `10^{4}` for a power of ten, and the plain number otherwise; for mathematical text."""
    exponent = round(np.log10(number))
    return f"10^{{{exponent}}}" if number == 10.0**exponent else f"{number:g}"


def label(axes: Axes, x: float, y: float, text: str, colour: ColorType, **look: Any) -> None:
    """Write `text` next to a point of a curve, in the curve's colour, made `legible`.

    The text is to the right of the point unless `look`, as in `axes.annotate`, moves it.
    """
    look = {"xytext": (6, 0), "ha": "left", "va": "center", "fontsize": 11} | look
    axes.annotate(text, (x, y), textcoords="offset points", color=legible(colour), annotation_clip=False, **look)


def legible(colour: ColorType) -> tuple[float, float, float]:
    """Return the colour, mixed with as much of the text colour as its contrast against the paper needs."""
    paper, text = mpl.rcParams["axes.facecolor"], to_rgb(ink())
    for share in np.linspace(0, 1, 21):
        red, green, blue = ((1 - share) * part + share * end for part, end in zip(to_rgb(colour), text, strict=True))
        if contrast((red, green, blue), paper) >= LEAST:
            return red, green, blue
    return text


def contrast(one: ColorType, other: ColorType) -> float:
    """Return the contrast ratio of two colours by the Web Content Accessibility Guidelines (WCAG), from 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: ColorType) -> float:
    part = np.asarray(to_rgb(colour))
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def legend_line(linestyle: LineStyleType, linewidth: float = 2.0) -> Line2D:
    """Return a line in the text colour, for a legend."""
    return Line2D([], [], color=ink(), linestyle=linestyle, linewidth=linewidth)


def legend_point() -> Line2D:
    """Return a point in the text colour, for a legend."""
    return Line2D([], [], color=ink(), marker="o", linestyle="", markersize=5.5)


def few_decades(axes: Axes) -> None:
    """Set the ticks of logarithmic axes to powers of ten, at most ten per axis."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=10))
        axis.set_minor_locator(NullLocator())


def ticks_at(axis: Axis, values: Iterable[float]) -> None:
    """Put the ticks of one axis at these values and nowhere else, labelled as plain numbers."""
    values = list(values)
    axis.set_ticks(values, labels=[f"{value:g}" for value in values])
    axis.set_minor_locator(NullLocator())


def error_bars(axes: Axes, x: Any, y: Any, std_error: Any, *, linestyle: str = "", **look: Any) -> None:
    """Draw simulated values with error bars of two standard errors; `look` as in `axes.plot`.

    If the y axis is already logarithmic, a bar that would reach zero is drawn upwards only.
    """
    look = {"markersize": 5.5, "elinewidth": 1.5, "capsize": 2} | look
    up = 2 * np.asarray(std_error)
    down = np.where(up < np.asarray(y), up, 0.0) if axes.get_yscale() == "log" else up
    axes.errorbar(x, y, (down, up), linestyle=linestyle, **look)


def legend_with(axes: Axes, lines: Mapping[str, Line2D], **where: Any) -> None:
    """Draw a legend of the labelled artists, then of `lines` by name; `where` as in `axes.legend`."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([*handles, *lines.values()], [*labels, *lines], **where)
