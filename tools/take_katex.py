"""Take KaTeX, which typesets the formulas of the site, from its npm package.

    npm pack katex && tar xzf katex-*.tgz
    python tools/take_katex.py package

This needs `fonttools` and `brotli`. The result is tracked, so a build of the book does not run this. The fonts lose
their hints, and a font of which most formulas use a few characters is split: browsers load the second part only for
pages that need it.
"""

import re
import shutil
import sys
from pathlib import Path

from fontTools.ttLib import TTFont
from subset_font import ranges, write_part

SITE = Path(__file__).resolve().parents[1] / "companion/src/companion/site"
ASSETS = SITE / "sphinx/assets"
FACE = re.compile(r"@font-face\{([^}]*)\}")
FILE = re.compile(r"fonts/KaTeX_([\w-]+)\.woff2")
# By font: the characters of the part that most pages need.
COMMON = {
    "AMS-Regular": {*range(ord("A"), ord("Z") + 1)},  # blackboard letters
    "Main-Regular": {
        *range(0x20, 0x7F),
        *map(ord, "\xa0¬±×÷ˆ˜ˉ˙ΓΔΘΛΞΠΣΥΦΨΩ\u200b–—‘’“”…′ℓ←→↔↦⇒⇔∀∂∃∅∇∈∉−∓∗∘∝∞∣∥∧∨∩∪∼≃≈≠≡≤≥≪≫≺≻⊂⊆⊕⊗⊤⊥⋅⋆⋮⋯⋱⎧⎨⎩⌈⌉⌊⌋⟨⟩⟵⟶⟹⟺"),
    },
}


def main(package: Path) -> None:
    """Write the program, its licence, its style sheet and its fonts to the folders of the site."""
    program, fonts = SITE / "katex", ASSETS / "fonts"
    program.mkdir(exist_ok=True)
    shutil.copyfile(package / "dist/katex.min.js", program / "katex.min.js")
    shutil.copyfile(package / "LICENSE", program / "LICENSE")
    for old in fonts.glob("katex-*"):
        old.unlink()
    sheet = (package / "dist/katex.min.css").read_text(encoding="utf-8")
    faces = [face for match in FACE.finditer(sheet) for face in _faces(match[1], package / "dist/fonts", fonts)]
    licence = "/*! KaTeX, MIT licence, https://katex.org; made by tools/take_katex.py */"
    (ASSETS / "katex.css").write_text("\n".join([licence, *faces, FACE.sub("", sheet), ""]), encoding="utf-8")


def _faces(rule: str, source: Path, fonts: Path) -> list[str]:
    """Write the parts of a font and return the rules that load them."""
    found = FILE.search(rule)
    assert found
    name = found[1]
    path = source / f"KaTeX_{name}.woff2"
    style = ";".join(part for part in rule.split(";") if not part.startswith("src:"))
    font = TTFont(path)
    every = set(font.getBestCmap())
    common = every & COMMON.get(name, every)
    parts = {"": common, "-rest": every - common} if every - common else {"": every}
    rules: list[str] = []
    for suffix, characters in parts.items():
        target = fonts / f"katex-{name.lower()}{suffix}.woff2"
        write_part(font, characters, target, ["*"])
        only = f";unicode-range:{ranges(characters)}" if len(parts) > 1 else ""
        rules.append(f'@font-face{{{style};src:url(fonts/{target.name}) format("woff2"){only}}}')
    return rules


if __name__ == "__main__":
    main(Path(sys.argv[1]))
