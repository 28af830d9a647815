"""Draw one figure: call the `draw` of its module, and read caption and alt text from its docstring."""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import ast
import inspect
import io
import shutil
import textwrap
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from companion.analysis.dependencies import Library
from companion.figures import store, table_io
from companion.figures.plain_math import caption_as_plain_text
from companion.figures.plain_svg import plain
from companion.figures.record import SIGNIFICANT_DIGITS, FigureRecord, RunRecord, headline
from companion.figures.style import style

# Number of colours of a PNG: a quarter of the bytes, without a visible difference.
COLOURS = 64
# Pixels of a PNG to the inch.
RESOLUTION = 144


def write_set(
    folder: Path,
    figure: ModuleType,
    table: pd.DataFrame,
    run: RunRecord,
    library: Library,
    *,
    drawn: Path | None = None,
) -> FigureRecord:
    """Write the four files of a figure, and return its record.

    Args:
      folder: where to write the files.
      figure: the figure module.
      table: the unrounded numbers. The picture shows the rounded numbers of the CSV, so that the published files
        alone give the same picture, byte by byte.
      run: the part of the record that the run provides: parameters, columns, claims, steps.
      library: the packages whose sources decide the picture.
      drawn: a folder whose pictures are copied if the same code drew them from the same numbers.
    """
    name = figure.__name__.rpartition(".")[2]
    caption, alt = caption_and_alt(figure)
    folder.mkdir(parents=True, exist_ok=True)
    published = folder / f"{name}{store.DATA}"
    table_io.write_csv(table, published, SIGNIFICANT_DIGITS)
    code = library.picture_digest(figure.__name__)
    if drawn is not None and _shows(drawn, name, run, code, published.read_bytes()):
        for suffix in store.PICTURES:
            shutil.copyfile(drawn / f"{name}{suffix}", folder / f"{name}{suffix}")
    else:
        for suffix, content in pictures(figure, table_io.read_csv(published, run.columns)).items():
            (folder / f"{name}{suffix}").write_bytes(content)
    record = FigureRecord.of_run(run, caption=caption, alt=alt, picture=code, files=store.digests(folder, name))
    store.write_record(folder, record)
    return record


def _shows(folder: Path, name: str, run: RunRecord, code: str, table: bytes) -> bool:
    """Return whether the intact pictures of a figure in `folder` were drawn by `code` from the rounded `table`."""
    if store.faults(folder, name):
        return False
    record, shown = store.read_record(folder, name), (folder / f"{name}{store.DATA}").read_bytes()
    return (record.picture, record.columns, shown) == (code, run.columns, table)


def pictures(figure: ModuleType, table: pd.DataFrame) -> dict[str, bytes]:
    """Return the contents of the picture files by ending; the same table gives the same bytes.

    The title of an SVG is the headline of the figure, as plain text.
    """
    title = caption_as_plain_text(headline(caption_and_alt(figure)[0]))
    with style():
        picture = figure.draw(table.copy())
        if not isinstance(picture, Figure):
            raise TypeError(
                f"`{figure.__name__}.draw` must return the matplotlib figure that it draws. Got {picture!r}. Does "
                "it end with `return`?"
            )
        svg, png = io.BytesIO(), io.BytesIO()
        picture.savefig(svg, format="svg", metadata={"Date": None, "Title": title})
        picture.savefig(png, format="png", dpi=RESOLUTION)
        plt.close(picture)
    return {".svg": plain(svg.getvalue(), figure.__name__), ".png": fewer_colours(png.getvalue())}


def caption_and_alt(figure: ModuleType) -> tuple[str, str]:
    """Return the caption and the alternative text in the docstring of a figure module.

    Raises:
      ValueError: if either is missing.
    """
    paragraphs = [paragraph.strip() for paragraph in _docstring(figure).split("\n\n")]
    alts = [paragraph for paragraph in paragraphs if paragraph.startswith("Alt:")]
    captions = [paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("Alt:")]
    if not captions or len(alts) != 1:
        raise ValueError(
            f"The docstring of `{figure.__name__}` is published: it needs a caption that says what to see, then one "
            "paragraph `Alt: …` that describes the picture to those who cannot see it. "
            f"Got {len(captions)} caption paragraphs and {len(alts)} alt texts."
        )
    return "\n\n".join(captions), " ".join(textwrap.dedent(alts[0][len("Alt:") :]).split())


def _docstring(module: ModuleType) -> str:
    """Return the docstring of a module; from its source if the interpreter removed it (`PYTHONOPTIMIZE=2`)."""
    if module.__doc__ is None and (file := getattr(module, "__file__", None)):
        return ast.get_docstring(ast.parse(Path(file).read_text(encoding="utf-8"))) or ""
    return inspect.getdoc(module) or ""


def fewer_colours(picture: bytes) -> bytes:
    """Return a PNG reduced to `COLOURS` colours, with its resolution."""
    from PIL import Image  # installed with matplotlib; slow to import

    lighter = io.BytesIO()
    found = Image.open(io.BytesIO(picture))
    few = found.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(lighter, "PNG", optimize=True, dpi=found.info["dpi"])
    return lighter.getvalue()
