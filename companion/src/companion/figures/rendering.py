"""Draw one figure: call the `draw` of its module in both themes, and read caption and alt text from its docstring."""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import ast
import inspect
import io
import re
import textwrap
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from companion.analysis.dependencies import Library
from companion.figures import store, table_io
from companion.figures.plain_math import caption_as_plain_text
from companion.figures.record import SIGNIFICANT_DIGITS, FigureRecord, RunRecord, headline
from companion.figures.style import Theme, style

# Number of colours of a PNG: a quarter of the bytes, without a visible difference.
COLOURS = 64
# Attributes of an SVG that contain lengths, in points except for glyphs; `DIGITS` are numbers with too many decimals.
PLACES = re.compile(rb' (?:d|points|x|y|width|height)="[^"]*"|translate\([^)]*\)')
USES = re.compile(rb'(href="#|url\(#)([^")]+)')
# Comments (the text of drawn letters), metadata (the program and the date) and document type.
SAID = re.compile(rb"\s*(?:<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>)", re.DOTALL)
# A row of marks with the same style, which can be written once, for a group.
MARK = rb'<use href="#\w+"(?: (?:x|y|transform)="[^"]*")* style="%b"/>\n'
LOOK = rb"(?:(?:fill|stroke)(?:-[a-z]+)?:[^;\"]*;?)+"
ROW = re.compile(MARK % rb"(%b)" % LOOK + rb"(?:" + MARK % rb"\1" + rb")+")
DIGITS = re.compile(rb"-?\d+\.\d{3,}")
FORMATS: dict[Theme, tuple[str, ...]] = {"light": ("svg", "png"), "dark": ("svg",)}


def write_set(folder: Path, figure: ModuleType, table: pd.DataFrame, run: RunRecord, library: Library) -> FigureRecord:
    """Write the five files of a figure, and return its record.

    Args:
      folder: where to write the files.
      figure: the figure module.
      table: the unrounded numbers. The picture shows the rounded numbers of the CSV, so that the published files
        alone give the same picture, byte by byte.
      run: the part of the record that the run provides: parameters, columns, claims, steps.
      library: the packages whose sources decide the picture.
    """
    name = figure.__name__.rpartition(".")[2]
    caption, alt = caption_and_alt(figure)
    folder.mkdir(parents=True, exist_ok=True)
    published = folder / f"{name}{store.DATA}"
    table_io.write_csv(table, published, SIGNIFICANT_DIGITS)
    for suffix, content in pictures(figure, table_io.read_csv(published, run.columns)).items():
        (folder / f"{name}{suffix}").write_bytes(content)
    record = FigureRecord.of_run(
        run,
        caption=caption,
        alt=alt,
        picture=library.picture_digest(figure.__name__),
        files=store.digests(folder, name),
    )
    store.write_record(folder, record)
    return record


def pictures(figure: ModuleType, table: pd.DataFrame) -> dict[str, bytes]:
    """Return the contents of the picture files by ending; the same table gives the same bytes.

    The title of an SVG is the headline of the figure, as plain text.
    """
    title = caption_as_plain_text(headline(caption_and_alt(figure)[0]))
    files: dict[str, bytes] = {}
    for theme, formats in FORMATS.items():
        with style(theme):
            picture = figure.draw(table.copy())
            if not isinstance(picture, Figure):
                raise TypeError(
                    f"`{figure.__name__}.draw` must return the matplotlib figure that it draws. Got {picture!r}. Does "
                    "it end with `return`?"
                )
            for kind in formats:
                buffer = io.BytesIO()
                metadata = {"Date": None, "Title": title} if kind == "svg" else {}
                picture.savefig(buffer, format=kind, metadata=metadata, dpi=144)
                content = (fewer_colours if kind == "png" else fewer_digits)(buffer.getvalue())
                files[f".{kind}" if theme == "light" else f".{theme}.{kind}"] = content
            plt.close(picture)
    return files


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
    """Return a PNG reduced to `COLOURS` colours."""
    from PIL import Image  # installed with matplotlib; slow to import

    lighter = io.BytesIO()
    found = Image.open(io.BytesIO(picture)).convert("RGB")
    found.quantize(COLOURS, dither=Image.Dither.NONE).save(lighter, "PNG", optimize=True)
    return lighter.getvalue()


def fewer_digits(picture: bytes) -> bytes:
    """Return an SVG that looks the same and has a third fewer bytes.

    Lengths are rounded to a hundredth of a point. Elements that are used again get short names in the order of use;
    other names are removed. The style of a row of equal marks is written once. Links are written as in SVG 2. Comments
    and insignificant white space are removed.
    """

    def shorter(number: re.Match[bytes]) -> bytes:
        return np.format_float_positional(round(float(number[0]), 2) + 0.0, trim="-").encode()

    def tight(path: re.Match[bytes]) -> bytes:
        return path[1] + re.sub(rb"\s*([A-Za-z])\s*", rb"\1", path[2]).strip() + b'"'

    def close(look: re.Match[bytes]) -> bytes:
        return look[1] + re.sub(rb"([:;]) ", rb"\1", look[2]) + b'"'

    def together(row: re.Match[bytes]) -> bytes:
        return b'<g style="' + row[1] + b'">\n' + row[0].replace(b' style="' + row[1] + b'"', b"") + b"</g>\n"

    picture = SAID.sub(b"", picture).replace(b'<use xlink:href="#', b'<use href="#')
    uses = dict.fromkeys(use[2] for use in USES.finditer(picture))
    names = {name: b"i%d" % place for place, name in enumerate(uses)}
    used = USES.sub(lambda use: use[1] + names[use[2]], picture)
    named = re.sub(rb' id="([^"]*)"', lambda own: b' id="%b"' % names[own[1]] if own[1] in names else b"", used)
    rounded = PLACES.sub(lambda place: DIGITS.sub(shorter, place[0]), named)
    plain = re.sub(rb'( style=")([^"]*)"', close, re.sub(rb'( d=")([^"]*)"', tight, rounded))
    return ROW.sub(together, re.sub(rb">\s+<", b">\n<", plain))
