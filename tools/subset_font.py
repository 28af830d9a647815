"""Make the fonts of the site from the variable fonts of Source Serif 4, which the npm package `source-serif` contains.

    npm pack source-serif && tar xzf source-serif-*.tgz
    python tools/subset_font.py package/VAR

This needs `fonttools` and `brotli`. The result is tracked, so a build of the book does not run this. The licence
reserves the name "Source" for the original, so the subset is called "Book Serif". It has two parts; browsers load the
second only for pages that need it. The script prints the ranges of both for `design.css`.
"""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

TARGET = Path(__file__).resolve().parents[1] / "companion/site/sphinx/assets/fonts"
FAMILY, VERSION = "Book Serif", "4.5.1"
# Latin with accents, Greek letters, and the symbols in the texts of pages: superscripts, operators, arrows.
CHARACTERS = {
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x391, 0x3CA),
    *map(ord, "\u0302\u0303\u0304–—‘’“”…•‰′″⁰⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉ℓ←→↑↓∂∆∏∑−√∞∫≈≠≤≥"),
}
# The part that every page needs.
COMMON = {*range(0x20, 0x7F), *map(ord, "\xa0©°±²³·¹¼½¾×áäéöü–—‘’“”…′⁰⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉←→−√≈≤≥")}
# A raised dash, to which the font maps no character.
RAISED_MINUS, GLYPH = 0x207B, "endash.sups"
COMMON_FEATURES = ["kern", "liga"]
FEATURES = [*COMMON_FEATURES, "ccmp", "locl", "mark", "mkmk"]


def main(folder: Path) -> None:
    """Write the two fonts of `folder`, upright and italic, to the assets of the site."""
    for style in ("Roman", "Italic"):
        font = TTFont(folder / f"SourceSerif4Variable-{style}.ttf")
        font = instancer.instantiateVariableFont(font, {"opsz": 14, "wght": (400, 700)})
        slope = "Italic" if style == "Italic" else "Regular"
        for table in font["cmap"].tables:
            table.cmap[RAISED_MINUS] = GLYPH
        names = {1: FAMILY, 2: slope, 4: f"{FAMILY} {slope}", 5: f"Version {VERSION}, subset", 6: f"BookSerif-{slope}"}
        for name in font["name"].names:
            name.string = names.get(name.nameID, name.toUnicode())
        target = f"book-serif-{slope.lower()}"
        write_part(font, COMMON, TARGET / f"{target}.woff2", COMMON_FEATURES)
        write_part(font, CHARACTERS - COMMON, TARGET / f"{target}-rest.woff2", FEATURES)
    print(ranges(COMMON), ranges(CHARACTERS - COMMON), sep="\n")


def write_part(font: TTFont, characters: set[int], target: Path, features: Sequence[str]) -> None:
    """Write the glyphs of some characters, without hints."""
    copy = io.BytesIO()
    font.save(copy)
    options = subset.Options(
        layout_features=features,
        flavor="woff2",
        hinting=False,
        name_IDs=[0, 1, 2, 4, 5, 6],
        notdef_outline=True,
    )
    part = TTFont(copy)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(part)
    subset.save_font(part, str(target), options)


def ranges(characters: set[int]) -> str:
    """Return characters as a value of `unicode-range` in a style sheet."""
    runs: list[list[int]] = []
    for character in sorted(characters):
        if runs and runs[-1][1] == character - 1:
            runs[-1][1] = character
        else:
            runs.append([character, character])
    return ",".join(f"U+{first:x}" + (f"-{last:x}" if last > first else "") for first, last in runs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
