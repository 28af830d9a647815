"""Make the fonts of site and pictures from the variable fonts of Source Serif 4 in the npm package `source-serif`.

    npm pack source-serif && tar xzf source-serif-*.tgz
    python tools/subset_font.py package/VAR

This needs `fonttools` and `brotli`. The result is tracked, so a build of the book does not run this. The licence
reserves the name "Source" for the original, so the subset is called "Book Serif". It has three parts; browsers load the
second and the third only for pages that need them. The script prints their ranges for `design.css`.
"""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from fontTools import subset
from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

COMPANION = Path(__file__).resolve().parents[1] / "companion/src/companion"
SITE, PICTURES = COMPANION / "site/sphinx/assets/fonts", COMPANION / "figures/fonts"
FAMILY, VERSION = "Book Serif", "4.5.1"
# Latin with accents, Greek letters, and the symbols in the texts of pages: superscripts, operators, arrows.
CHARACTERS = {
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x391, 0x3CA),
    *map(ord, "\u0302\u0303\u0304–—‘’“”…•‰′″⁰⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉ℓ←→↑↓∂∆∏∑−√∞∫≈≠≤≥"),
}
# The part of the site's fonts that every page needs.
COMMON = {*range(0x20, 0x7F), *map(ord, "\xa0©°±²³·¹¼½¾×áäéöü–—‘’“”…′⁰⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉←→−√≈≤≥")}
# Greek letters and signs, the most frequent of the other characters in running text.
GREEK = {*range(0x391, 0x3CA), *map(ord, "∂∞≠")}
# The second shapes of the letters theta, phi and epsilon, which formulas in pictures use.
LETTERS_OF_FORMULAS = {0x3D1, 0x3D5, 0x3F5}
# A raised dash, to which the font maps no character.
RAISED_MINUS, GLYPH = 0x207B, "endash.sups"
# Formulas in pictures raise a prime and make it smaller, so it has to be large and on the line.
PRIME, PRIME_SIZE = 0x2032, 1.6
COMMON_FEATURES = ["kern", "liga"]
FEATURES = [*COMMON_FEATURES, "ccmp", "mark", "mkmk"]


def main(folder: Path) -> None:
    """Write the fonts of the site, whose weight is variable, and those of pictures, from the fonts of `folder`."""
    for style, slope in (("Roman", "Regular"), ("Italic", "Italic")):
        font = _instance(folder, style, slope, opsz=14, wght=(400, 700))
        target = SITE / f"book-serif-{slope.lower()}"
        write_part(font, COMMON, target.with_suffix(".woff2"), COMMON_FEATURES)
        write_part(font, GREEK, target.with_name(f"{target.name}-greek.woff2"), COMMON_FEATURES)
        write_part(font, CHARACTERS - COMMON - GREEK, target.with_name(f"{target.name}-rest.woff2"), FEATURES)
    for style, slope, weight in (("Roman", "Regular", 400), ("Italic", "Italic", 400), ("Roman", "Bold", 700)):
        font = _instance(folder, style, slope, opsz=12, wght=weight)
        font["OS/2"].usWeightClass = weight
        font["OS/2"].fsSelection = {"Regular": 64, "Italic": 1, "Bold": 32}[slope]
        font["head"].macStyle = {"Regular": 0, "Italic": 2, "Bold": 1}[slope]
        _enlarge_prime(font)
        write_part(font, CHARACTERS | LETTERS_OF_FORMULAS, PICTURES / f"book-serif-{slope.lower()}.ttf", ["kern"])
    print(ranges(COMMON), ranges(GREEK), ranges(CHARACTERS - COMMON - GREEK), sep="\n")


def _instance(folder: Path, style: str, slope: str, **axes: float | tuple[float, float]) -> TTFont:
    """Return a font of the family at some place or range of its axes, under its new name."""
    font = TTFont(folder / f"SourceSerif4Variable-{style}.ttf")
    font = instancer.instantiateVariableFont(font, axes)
    for table in font["cmap"].tables:
        table.cmap[RAISED_MINUS] = GLYPH
    names = {1: FAMILY, 2: slope, 4: f"{FAMILY} {slope}", 5: f"Version {VERSION}, subset", 6: f"BookSerif-{slope}"}
    for name in font["name"].names:
        name.string = names.get(name.nameID, name.toUnicode())
    return font


def write_part(font: TTFont, characters: set[int], target: Path, features: Sequence[str]) -> None:
    """Write the glyphs of some characters, without hints, in the format of the file's ending."""
    copy = io.BytesIO()
    font.save(copy)
    options = subset.Options(
        layout_features=features,
        flavor="woff2" if target.suffix == ".woff2" else None,
        hinting=False,
        name_IDs=[0, 1, 2, 4, 5, 6, 13, 14],
        notdef_outline=True,
    )
    part = TTFont(copy)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(part)
    subset.save_font(part, str(target), options)


def _enlarge_prime(font: TTFont) -> None:
    name, glyphs = font.getBestCmap()[PRIME], font.getGlyphSet()
    lowest = font["glyf"][name].yMin
    pen = TTGlyphPen(glyphs)
    glyphs[name].draw(TransformPen(pen, (PRIME_SIZE, 0, 0, PRIME_SIZE, 0, -PRIME_SIZE * lowest)))
    font["glyf"][name] = pen.glyph()
    width, bearing = font["hmtx"][name]
    font["hmtx"][name] = (round(PRIME_SIZE * width), round(PRIME_SIZE * bearing))


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
