"""Thumbnails: the first panel of a figure, drawn for a small size and without text."""

# matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

import io
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.analysis import dependencies
from companion.figures import store, table_io
from companion.figures.rendering import fewer_colours
from companion.figures.style import Theme, style
from companion.io import atomic
from companion.project.paths import Project

# In inches, and in pixels of a screen with two dots a pixel.
WIDTH, HEIGHT, DPI = 3.4, 1.9, 200
SIZE = (int(WIDTH * DPI / 2), int(HEIGHT * DPI / 2))


def thumbnail(project: Project, profile: str, place: str, theme: Theme) -> bytes:
    """The picture, PNG, of figure `place`, `notebook/figure`, drawn from its table unless that was done before."""
    name, _, figure = place.partition("/")
    folder = project.shown_figures(profile) / name
    record = folder / f"{figure}{store.RECORD}"
    key = dependencies.digest(record.read_bytes() + Path(__file__).read_bytes())[:16]
    kept = project.cache / "thumbnails" / f"{figure}-{theme}-{key}.png"
    if not kept.is_file():
        atomic.write_bytes(kept, _drawn(project, folder, name, figure, theme))
    return kept.read_bytes()


def _drawn(project: Project, folder: Path, name: str, figure: str, theme: Theme) -> bytes:
    module = project.import_module(project.figure_module(name, figure))
    table = table_io.read_csv(folder / f"{figure}{store.DATA}", store.read_record(folder, figure).columns)
    with style(theme):
        picture = module.draw(table)
        picture.canvas.draw()
        _shrink(picture)
        buffer = io.BytesIO()
        with mpl.rc_context({"savefig.bbox": None}):
            picture.savefig(buffer, dpi=DPI)
        plt.close(picture)
    return fewer_colours(buffer.getvalue())


def _shrink(picture: Figure) -> None:
    """Keep only the first panel, with thicker lines and without text."""
    panels = [axes for axes in picture.axes if axes.axison and axes.has_data()]
    kept = panels[0]
    for axes in picture.axes:
        if axes is not kept:
            axes.remove()
    for text in [*picture.texts, *picture.legends]:
        text.remove()
    if picture._suptitle is not None:  # pyright: ignore
        picture.suptitle("")
    _without_words(kept)
    picture.set_layout_engine("none")
    picture.set_size_inches(WIDTH, HEIGHT)
    if kept.get_aspect() != "auto":  # a plane stays a plane, and shows more of itself
        kept.set_aspect("equal", adjustable="datalim")
    kept.set_position((0.03, 0.05, 0.94, 0.9))


def _without_words(axes: Axes) -> None:
    if legend := axes.get_legend():
        legend.remove()
    for text in list(axes.texts):
        text.remove()
    for place in ("left", "center", "right"):
        axes.set_title("", loc=place)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False, labelright=False, labeltop=False)
