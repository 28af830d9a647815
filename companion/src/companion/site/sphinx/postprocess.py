"""Remove what no reader needs: source maps, unused icons and styles, translations, spans, indents, an unused index.

Scripts move from the head of a page to its end, so that the text is shown before they are loaded.
The files come from the theme. The theme's icon font is reduced to the icons of this site.
"""

# fontTools has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import re
from pathlib import Path

from companion.site.sphinx.script_files import join_scripts
from companion.site.sphinx.style_sheets import join_sheets

# The theme's icons, which its style sheet shows by fonts; and the search of Sphinx with the marks that it makes in the
# pages it finds, which `search.js` replaces.
UNUSED_SCRIPT = re.compile(
    r'<script[^>]*\bsrc="[^"]*(?:scripts/fontawesome|searchtools|language_data|searchindex|sphinx_highlight)\.js[^"]*"'
    r"[^>]*></script>\s*"
)
# Tags of the scripts of components, and what only pages with such a component contain.
COMPONENT_SCRIPTS = {
    re.compile(r'<script[^>]*\bsrc="[^"]*/design-tabs\.js[^"]*"[^>]*></script>\s*'): re.compile(r"sd-tab-set\b"),
    re.compile(r'<script[^>]*\bsrc="[^"]*/togglebutton\.js[^"]*"[^>]*></script>\s*'): re.compile(
        r'class="(?:[^"]* )?(?:toggle|admonition (?:[^"]* )?dropdown|dropdown (?:[^"]* )?admonition)[ "]'
    ),
}
# All scripts in the head except the one that chooses the theme, and the theme's requests to load scripts before styles.
HEAD_SCRIPT = re.compile(r"\s*<script(?! data-cfasync)[^>]*>.*?</script>", re.DOTALL)
UNDEFERRED = re.compile(r"<script(?=[^>]*\bsrc=)(?![^>]*\bdefer\b)")
# Inline scripts that need a script before them; as modules, they run after it.
OPTIONS = re.compile(r"<script>(?=DOCUMENTATION_OPTIONS\.)")
LAST_SCRIPTS = re.compile(r'\s*<script defer src="[^"]*scripts/bootstrap\.js')
# The theme of the system is known before the page is drawn; the script of the theme, which runs later, would set it and
# make the browser compute all styles again.
AUTOMATIC = 'document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";'
SYSTEM = AUTOMATIC.replace('"auto"', '(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")')
# A page that a link opens is laid out as it is read (`data-lazy` in `design.css`); one that is reloaded or opened again
# by the back button is laid out as a whole, so that the browser finds the reader's place.
LAZY = """
    if (performance.getEntriesByType("navigation")[0]?.type === "navigate")
      document.documentElement.dataset.lazy = "";"""
# The theme asks each listing for its width, and a browser must then lay out every section; `companion.js` does not.
THEME_SCRIPT = "scripts/pydata-sphinx-theme.js"
MEASURED = """\
document.querySelectorAll(["pre",".nboutput > .output_area",".cell_output > .output",".jp-RenderedHTMLCommon",\
".pst-scrollable-table-container"].join(", "))"""
SCRIPT_PRELOAD = re.compile(r'\s*<link rel="preload" as="script"[^>]*>')
# Spans that docutils puts around the words of code. They add half a megabyte, and no style needs them.
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
# The quotes around the classes of words in listings, and a class of docutils on every name in a page, which no style of
# code needs, each add a tenth of a megabyte.
TOKEN = re.compile(r'<span class="([a-z]{1,2}\d?)">')
NAME, SHORT_NAME = '<code class="docutils literal', '<code class="literal'
# The icon at the end of the title of a dropdown; the style sheet has a triangle before the title, as in other folds.
STATE_MARKER = re.compile(r'<span class="sd-summary-state-marker[^"]*"><svg\b.*?</svg></span>', re.DOTALL)
# docutils marks the bibliography as a list, but its children are not list items.
LIST_OF_WORKS, WORKS = '<div role="list" class="citation-list">', '<div class="citation-list">'
# Preformatted text and signatures, in which indents are visible, or the indent of a line of the theme's templates.
KEPT_OR_INDENT = re.compile(r"(<(pre|textarea|script|dt)\b.*?</\2>)|\n[ \t\n]+(?=<)", re.DOTALL)
# Icons are characters of the private use area.
ICON = re.compile("[\ue000-\uf8ff]")
FONT_SOURCES = re.compile(
    r'url\((vendor/fontawesome/webfonts/[\w-]+)\.woff2\) format\("woff2"\),url\(\1\.ttf\) format\("truetype"\)'
)
UNUSED = (
    "**/*.map",
    "_static/language_data.js",
    "_static/scripts/fontawesome.js*",
    "_static/searchtools.js",
    "_static/sphinx_highlight.js",
    "_static/locales/*/*/*",
    "searchindex.js",
)


def slim(out: Path) -> None:
    """Remove the files and the scripts that the pages of the site in `out` do not use. The function is idempotent."""
    before = {page: page.read_text(encoding="utf-8") for page in sorted(out.rglob("*.html"))}
    for pattern in UNUSED:
        for path in out.glob(pattern):
            path.unlink()
    theme = out / "_static" / THEME_SCRIPT
    theme.write_text(theme.read_text(encoding="utf-8").replace(MEASURED, "[]"), encoding="utf-8")
    pages = join_scripts(out, join_sheets(out, {page: _slimmer(text) for page, text in before.items()}))
    _reduce_icon_fonts(out / "_static")
    for page, text in pages.items():
        if text != before[page]:
            page.write_text(text, encoding="utf-8")


def _slimmer(page: str) -> str:
    for script, component in COMPONENT_SCRIPTS.items():
        if not component.search(page):
            page = script.sub("", page)
    page = (
        STATE_MARKER.sub("", UNUSED_SCRIPT.sub("", page))
        .replace(AUTOMATIC, SYSTEM + LAZY)
        .replace(LIST_OF_WORKS, WORKS)
    )
    return without_indents(
        TOKEN.sub(r"<span class=\1>", _scripts_last(WORD.sub(r"\1", page).replace(NAME, SHORT_NAME)))
    )


def _scripts_last(page: str) -> str:
    """Move the scripts in the head of a page to its end, to run in the same order when the page is read."""
    head, end, rest = page.partition("</head>")
    scripts = UNDEFERRED.sub("<script defer", "".join(HEAD_SCRIPT.findall(head)))
    scripts = OPTIONS.sub('<script type="module">', scripts)
    head = SCRIPT_PRELOAD.sub("", HEAD_SCRIPT.sub("", head))
    last = LAST_SCRIPTS.search(rest) or re.search("</body>", rest)
    if last is None:
        return page
    return "".join([head, end, rest[: last.start()], scripts, rest[last.start() :]])


def without_indents(page: str) -> str:
    """Remove the spaces before tags that begin a line, except in preformatted text."""
    return KEPT_OR_INDENT.sub(lambda found: found[1] or "\n", page)


def _reduce_icon_fonts(static: Path) -> None:
    """Reduce the theme's fonts to the icons that the style sheets of the site show."""
    sheets = {sheet: sheet.read_text(encoding="utf-8") for sheet in static.glob("*.css")}
    shown = {ord(icon) for text in sheets.values() for icon in ICON.findall(text)}
    for font in {font for text in sheets.values() for font in FONT_SOURCES.findall(text)}:
        _subset(static / f"{font}.ttf", shown)
    for path in (static / "vendor/fontawesome/webfonts").iterdir():
        if path.suffix != ".woff":
            path.unlink()
    for sheet, text in sheets.items():
        sheet.write_text(FONT_SOURCES.sub(r'url(\1.woff) format("woff")', text), encoding="utf-8")


def _subset(font: Path, shown: set[int]) -> None:
    """Write the font, reduced to the characters `shown`, as WOFF next to `font`."""
    from fontTools import subset  # installed with matplotlib; slow to import

    options = subset.Options(flavor="woff", notdef_outline=True)
    loaded = subset.load_font(str(font), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=sorted(shown))
    subsetter.subset(loaded)
    subset.save_font(loaded, str(font.with_suffix(".woff")), options)
