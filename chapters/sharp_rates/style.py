"""Axes that the figures of this chapter share."""

from matplotlib.axes import Axes

from companion.figures.style import ticks_at


def slope_axes(axes: Axes, top: float) -> None:
    """Set the axes of local slope against ln L, with plain numbers on a logarithmic axis."""
    axes.set(xscale="log", xlabel=r"$\ln L$", ylabel="local slope of the error", ylim=(0, top))
    ticks_at(axes.xaxis, [5, 10, 20, 50, 100, 200, 330])
