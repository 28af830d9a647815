"""Draw thumbnails: the first panel of a figure, small and without text."""

# matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

import io
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.analysis import dependencies
from companion.figures import store, table_io
from companion.figures.rendering import fewer_colours
from companion.figures.style import style
from companion.io import atomic
from companion.project.paths import Project

# Size in inches, resolution, and size in CSS pixels on a screen with two device pixels per CSS pixel.
WIDTH, HEIGHT, DPI = 3.4, 1.9, 200
SIZE = (int(WIDTH * DPI / 2), int(HEIGHT * DPI / 2))


def thumbnail(project: Project, profile: str, target: str) -> bytes:
    """Return the thumbnail of a figure as PNG, drawn from its table or read from the cache.

    Args:
      project: the book.
      profile: the profile of the site that shows the thumbnail.
      target: the figure, as `notebook/figure`.
    """
    name, _, figure = target.partition("/")
    folder = project.shown_figures(profile) / name
    record = folder / f"{figure}{store.RECORD}"
    key = dependencies.digest(record.read_bytes() + Path(__file__).read_bytes())[:16]
    cached = project.cache / "thumbnails" / f"{figure}-{key}.png"
    if not cached.is_file():
        atomic.write_bytes(cached, _draw(project, folder, name, figure))
    return cached.read_bytes()


def _draw(project: Project, folder: Path, name: str, figure: str) -> bytes:
    module = project.import_module(project.figure_module(name, figure))
    table = table_io.read_csv(folder / f"{figure}{store.DATA}", store.read_record(folder, figure).columns)
    with style():
        picture = module.draw(table)
        _shrink(picture)
        buffer = io.BytesIO()
        picture.savefig(buffer, dpi=DPI)
        plt.close(picture)
    return fewer_colours(buffer.getvalue())


def _shrink(picture: Figure) -> None:
    """Keep only the first panel, with thicker lines and without text."""
    drawn = [axes for axes in picture.axes if axes.has_data()]
    panel = next((axes for axes in drawn if axes.axison), drawn[0])  # a schematic may have no axis
    for axes in picture.axes:
        if axes is not panel:
            axes.remove()
    for text in [*picture.texts, *picture.legends]:
        text.remove()
    _remove_text(panel)
    picture.set_layout_engine("none")
    picture.set_size_inches(WIDTH, HEIGHT)
    if panel.get_aspect() != "auto":  # a panel with equal scales keeps them, and shows a larger range where it can
        shared = panel in panel.get_shared_x_axes() and panel in panel.get_shared_y_axes()
        panel.set_aspect("equal", adjustable="box" if shared else "datalim")
    panel.set_position((0.03, 0.05, 0.94, 0.9))


def _remove_text(axes: Axes) -> None:
    if legend := axes.get_legend():
        legend.remove()
    for text in list(axes.texts):
        text.remove()
    for location in ("left", "center", "right"):
        axes.set_title("", loc=location)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False, labelright=False, labeltop=False)
