"""Remove files and markup that no reader needs: source maps, unused icons, redundant highlighting, translations.

All of it is the theme's or the typesetter's. A page asks for the theme's icon font with the icons of this site alone
in it.
"""

# fontTools has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import re
from collections.abc import Iterable
from pathlib import Path

# The theme loads all icons of the world as a script, and again as fonts; its style sheet shows them from the fonts.
ICON_SCRIPT = re.compile(r'\s*<script[^>]*\bsrc="[^"]*scripts/fontawesome\.js[^"]*"[^>]*></script>')
ICON_CLASS = re.compile(r"\bfa-[a-z0-9-]+")
ICON_RULE = re.compile(r"((?:\.fa-[a-z0-9-]+:before,?)+)\{content:\"\\([0-9a-f]+)\"\}")
# Icons are signs of the private area, U+E000 to U+F8FF; sheets spell them out or hold them.
SPELLED_OUT, HELD = re.compile(r"\\([ef][0-9a-f]{3})\b"), re.compile("[\ue000-\uf8ff]")
FONT_SOURCES = re.compile(
    r'url\((\.\./vendor/fontawesome/webfonts/[\w-]+)\.woff2\) format\("woff2"\),url\(\1\.ttf\) format\("truetype"\)'
)
# Rules of the highlighter's style sheet, for a block of code and for the marks in it.
STYLE_RULE = re.compile(r'(html\[data-theme="\w+"\])? *\.highlight ?(?:\.(\w+))? *\{([^}]*)\}')
MARK = re.compile(r'<span class="(\w+)">([^<>]*)</span>')
BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)
# Marks of one kind beside each other.
NEIGHBOURS = re.compile(r'(<span class="(\w+)">[^<>]*)</span>(\s*)<span class="\2">')
# Marks within a line of text, and classes of links and cells, that no style sheet knows.
WORDS = re.compile(r'<span class="(?:pre|std-numref|std std-numref)">([^<>]*)</span>')
CODE = re.compile(r'<code class="[^"]*\bliteral notranslate">')
CELL = re.compile(r'(<t[rh]) class="(?:row-odd|row-even|head)"')
LINK = re.compile(r'<a class="reference internal"|(?<=<a class=")reference internal (?=nav-link")')
# Marks of operators, dots, numbers and built-in names, most of all, whose colour helps nobody: they get that of the
# code around them, and what is left, keywords, strings, comments and what is defined, is seen the better.
DULL = {"o", "nb", "bp", "mi", "mf"}
SHORT = re.compile(r'<span class="(\w+)">')
# Alphabets that the typesetter asks for when a formula names them, and that few books do.
ALPHABETS = {
    "Fraktur": re.compile(r"\\(math)?frak\b"),
    "SansSerif": re.compile(r"\\(mathsf|textsf|sf)\b"),
    "Script": re.compile(r"\\(mathscr|scr)\b"),
    "Typewriter": re.compile(r"\\(mathtt|texttt|tt)\b"),
}
UNUSED = (
    "**/*.map",
    "_static/scripts/fontawesome.js*",
    "_static/vendor/fontawesome/webfonts/*",
    "_static/locales/*/*/*",
)


def slim(out: Path) -> None:
    """Take away from the built site in `out` what its pages do not use. Doing it twice changes nothing."""
    pages = sorted(out.rglob("*.html"))
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    looks = _looks(_read(out / "_static" / "pygments.css"))
    for page, text in texts.items():
        slimmer = BLOCK.sub(lambda block: _marked(looks, block[0]), ICON_SCRIPT.sub("", text))
        slimmer = CODE.sub('<code class="literal notranslate">', WORDS.sub(r"\1", slimmer))
        slimmer = CELL.sub(r"\1", slimmer.replace("<pre><span></span>", "<pre>"))
        slimmer = LINK.sub(lambda link: "<a" if link[0].startswith("<") else "", slimmer)
        if slimmer != text:
            page.write_text(slimmer, encoding="utf-8")
    icons = {icon for text in texts.values() for icon in ICON_CLASS.findall(text)}
    _keep_icons(out / "_static", icons)
    _keep_alphabets(out / "_static" / "mathjax", texts.values())
    for pattern in UNUSED:
        for path in out.glob(pattern):
            if path.suffix != ".woff":
                path.unlink()


def _keep_alphabets(typesetter: Path, texts: Iterable[str]) -> None:
    """Take away the fonts of alphabets that no formula of the site names."""
    named = {alphabet for text in texts for alphabet, command in ALPHABETS.items() if command.search(text)}
    for alphabet in ALPHABETS.keys() - named:
        for path in typesetter.rglob(f"MathJax_{alphabet}-*.woff"):
            path.unlink()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _looks(sheet: str) -> dict[str, str]:
    """For each mark of code the first that looks as it does, in all themes; nothing for what looks as code without."""
    rules = [
        (theme, name, dict(re.findall(r"([\w-]+): *([^;]+?) *(?:;|$)", style)))
        for theme, name, style in STYLE_RULE.findall(sheet)
    ]
    own = {theme: style.get("color") for theme, name, style in rules if not name}
    looks: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for theme, name, style in rules:
        if name and name not in DULL and style != {"color": own.get(theme)}:
            looks.setdefault(name, []).append((theme, style))
    first = {name: next(other for other in looks if looks[other] == look) for name, look in looks.items()}
    return {name: first.get(name, "") for name in (*DULL, *(name for _, name, _ in rules if name))}


def _marked(looks: dict[str, str], block: str) -> str:
    """Code with as few marks as its colours need."""

    def mark(found: re.Match[str]) -> str:
        look = looks.get(found[1], found[1])
        return f'<span class="{look}">{found[2]}</span>' if look else found[2]

    return SHORT.sub(r"<span class=\1>", _together(MARK.sub(mark, block)))


def _together(block: str) -> str:
    while (fewer := NEIGHBOURS.sub(r"\1\3", block)) != block:
        block = fewer
    return block


def _keep_icons(static: Path, icons: set[str]) -> None:
    """Leave in the theme's style sheet, and in its fonts, those icons that pages name and that style sheets draw."""
    sheet = static / "styles" / "pydata-sphinx-theme.css"
    text = _read(sheet)
    if not FONT_SOURCES.search(text):
        return

    def rule(found: re.Match[str]) -> str:
        return found[0] if icons.intersection(re.findall(r"fa-[a-z0-9-]+", found[1])) else ""

    text = ICON_RULE.sub(rule, text)
    sheets = [text, *(_read(path) for path in static.rglob("*.css") if path != sheet)]
    shown = {int(drawn, 16) for one in sheets for drawn in SPELLED_OUT.findall(one)}
    shown |= {ord(drawn) for one in sheets for drawn in HELD.findall(one)}
    for font in dict.fromkeys(FONT_SOURCES.findall(text)):
        _subset((sheet.parent / f"{font}.ttf").resolve(), shown)
    sheet.write_text(FONT_SOURCES.sub(r'url(\1.woff) format("woff")', text), encoding="utf-8")


def _subset(font: Path, shown: set[int]) -> None:
    from fontTools import subset  # comes with matplotlib, and takes long to import

    options = subset.Options(flavor="woff", notdef_outline=True)
    opened = subset.load_font(str(font), options)
    kept = subset.Subsetter(options)
    kept.populate(unicodes=sorted(shown))
    kept.subset(opened)
    subset.save_font(opened, str(font.with_suffix(".woff")), options)
