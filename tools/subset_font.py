"""Make the fonts of the site from the variable fonts of Source Serif 4, which the npm package `source-serif` contains.

    npm pack source-serif && tar xzf source-serif-*.tgz
    python tools/subset_font.py package/VAR

This needs `fonttools` and `brotli`. The result is tracked, so a build of the book does not run this. The licence
reserves the name "Source" for the original, so the subset is called "Book Serif".
"""

import sys
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
# A raised dash, to which the font maps no character.
RAISED_MINUS, GLYPH = 0x207B, "endash.sups"
FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "mkmk"]


def main(folder: Path) -> None:
    """Write the two fonts of `folder`, upright and italic, to the assets of the site."""
    for style in ("Roman", "Italic"):
        font = TTFont(folder / f"SourceSerif4Variable-{style}.ttf")
        font = instancer.instantiateVariableFont(font, {"opsz": 14, "wght": (400, 700)})
        for table in font["cmap"].tables:
            table.cmap[RAISED_MINUS] = GLYPH
        options = subset.Options(
            layout_features=FEATURES, flavor="woff2", hinting=False, name_IDs=[0, 1, 2, 4, 5, 6, 13, 14]
        )
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=CHARACTERS)
        subsetter.subset(font)
        slope = "Italic" if style == "Italic" else "Regular"
        names = {1: FAMILY, 2: slope, 4: f"{FAMILY} {slope}", 5: f"Version {VERSION}, subset", 6: f"BookSerif-{slope}"}
        for name in font["name"].names:
            name.string = names.get(name.nameID, name.toUnicode())
        subset.save_font(font, str(TARGET / f"book-serif-{slope.lower()}.woff2"), options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
