"""Join the style sheets of a page in one file, reduced to the rules that pages of the site can use.

Most rules of the theme are for classes that no page or script of this site has, and a browser shows nothing before it
has read all style sheets.
"""

# tinycss2 has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import tinycss2

from companion.analysis.dependencies import digest

COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
LICENCE = re.compile(r"/\*!.*?\*/", re.DOTALL)
SPACE = re.compile(r"\s+")
CLASSES = re.compile(r"""\bclass=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
WORD = re.compile(r"[\w-]+")
# The address of a script that a page loads.
LOADED = re.compile(r'<script\b[^>]*\bsrc="([^"?]+)')
LINK = re.compile(r'\s*<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"?:]*)[^"]*"[^>]*>')
IMPORT = re.compile(r"""@import *(?:url\()?["']([^"']+)["']\)?;""")
ADDRESS = re.compile(r"""url\((["']?)(?!data:|https?:|#)([^"')]+)\1\)""")
# The beginning of names that a script composes, such as `bs-` of `bs-${placement}-auto`.
COMPOSED = re.compile(r"([a-zA-Z][\w-]*-[\w-]*)\$\{")
# The folder of the theme's scripts, and the beginnings of classes that they use only for components written in a page.
THEME_SCRIPTS = "scripts"
COMPONENTS = (
    *("alert", "bd-header-announcement", "bs-popover", "carousel", "dropdown", "linenos", "list-group"),
    *("margin-caption", "marginnote", "modal", "offcanvas", "popover", "progress", "pst-button-link", "pst-expand"),
    *("pst-squeeze", "sidenote", "toast", "version-switcher"),
)
# The definition of a custom property, its use in a style sheet, and its name in a page.
DEFINITION = re.compile(
    r"""(?<=[{;])\s*(--[\w-]+)\s*:(?:[^;{}"'()]|"[^"]*"|'[^']*'|\((?:[^()"']|"[^"]*"|'[^']*'|\([^()]*\))*\))*(?:;|(?=\}))"""
)
USE, PROPERTY = re.compile(r"var\(\s*(--[\w-]+)"), re.compile(r"--[a-zA-Z][\w-]*")
# Browsers do not use a face of the text that comes late (`font-display: optional`), so a page asks for its faces with
# the sheet. On a slow connection they would delay the sheet: there the page asks for them after it, and the next page
# uses them. On a disk they are there at once, and browsers refuse to preload them.
PRELOAD = """
<script>if (location.protocol !== "file:") {{
  const preload = () => {{
    for (const face of ["regular", "italic"]) document.head.append(Object.assign(document.createElement("link"),
      {{ rel: "preload", as: "font", crossOrigin: "", href: `{static}/fonts/book-serif-${{face}}.woff2` }}));
  }};
  const slow = navigator.connection?.downlink <= 1; // Mbit/s; Chromium says 1.4 where it has no estimate
  if (!slow) preload();
  else document.addEventListener("load", ({{ target }}) => {{ if (target.rel === "stylesheet") preload(); }}, true);
}}</script>"""
# The definition of a font face, and a font family in it.
FACE, FAMILY = re.compile(r"@font-face\s*\{[^}]*\}"), re.compile(r"""font-family:\s*["']?([\w ]+)""")
# At-rules that contain rules.
GROUPS = ("media", "supports", "layer", "container")


@dataclass(frozen=True)
class Used:
    """What pages and scripts use: classes and custom properties, and the `beginnings` of those that scripts compose."""

    names: set[str]
    beginnings: tuple[str, ...] = ()

    @classmethod
    def on_site(cls, out: Path, pages: Iterable[str]) -> "Used":
        """Return what the site in `out` uses, whose pages have these contents."""
        names: set[str] = set()
        loaded: set[str] = set()
        beginnings: set[str] = set()
        for page in pages:
            names.update(name for match in CLASSES.findall(page) for name in " ".join(match).split())
            names.update(PROPERTY.findall(page))
            loaded.update(Path(source).name for source in LOADED.findall(page))
        absent = tuple(beginning for beginning in COMPONENTS if not any(name.startswith(beginning) for name in names))
        # The texts of the search, which `search.js` loads, are words of the book and no classes.
        for script in (script for script in out.rglob("*.js") if script.name in loaded):
            text = script.read_text(encoding="utf-8")
            unseen = absent if script.parent.name == THEME_SCRIPTS else ()
            names.update(word for word in WORD.findall(text) if not word.startswith(unseen))
            beginnings.update(beginning for beginning in COMPOSED.findall(text) if not beginning.startswith(unseen))
        return cls(names, tuple(beginnings))


def join_sheets(out: Path, pages: dict[Path, str]) -> dict[Path, str]:
    """Return the pages of the site in `out` with one style sheet each; write these, and remove all others."""
    used = Used.on_site(out, pages.values())

    @cache
    def joined(sheets: tuple[Path, ...]) -> tuple[Path, str]:
        """Write the file for these sheets, and return its path and the digest of its content."""
        names = "\n".join(sheet.relative_to(out).as_posix() for sheet in sheets)
        target = out / "_static" / f"sheets-{digest(names.encode())[:8]}.css"
        text = reduced([_standing_alone(sheet, target.parent) for sheet in sheets], used)
        target.write_text(text, encoding="utf-8")
        return target, digest(text.encode())[:8]

    def with_one_sheet(path: Path, page: str) -> str:
        head, end, body = page.partition("</head>")
        links = list(LINK.finditer(head))
        sheets = tuple(Path(os.path.normpath(path.parent / link[1])) for link in links)
        if len(links) < 2 or not all(sheet.is_file() for sheet in sheets):  # such as a template of the theme
            return page
        target, version = joined(sheets)
        static = os.path.relpath(target.parent, path.parent)
        first = f'{PRELOAD.format(static=static)}\n<link rel="stylesheet" href="{static}/{target.name}?v={version}" />'
        return "".join([head[: links[0].start()], first, LINK.sub("", head[links[0].start() :]), end, body])

    linking = {path: with_one_sheet(path, page) for path, page in pages.items()}
    heads = (page.partition("</head>")[0] for page in linking.values())
    linked = {Path(match[1]).name for head in heads for match in LINK.finditer(head)}
    for sheet in (out / "_static").rglob("*.css"):
        if sheet.name not in linked:
            sheet.unlink()
    rules = "".join(sheet.read_text(encoding="utf-8") for sheet in (out / "_static").glob("*.css"))
    for font in (out / "_static").rglob("*.woff2"):
        if font.name not in rules:
            font.unlink()
    return linking


def _standing_alone(sheet: Path, folder: Path) -> str:
    """Return a style sheet with the sheets that it imports, and with addresses relative to `folder`."""
    text = IMPORT.sub(
        lambda found: _standing_alone(sheet.parent / found[1], sheet.parent), sheet.read_text(encoding="utf-8")
    )
    return ADDRESS.sub(lambda found: f"url({os.path.relpath(sheet.parent / found[2], folder)})", text)


def reduced(sheets: Sequence[str], used: Used) -> str:
    """Return style sheets as one, without comments and without rules, faces and custom properties that nothing uses."""
    rules = [rule for sheet in sheets for rule in _parsed(sheet)]
    text, before = "".join(_rules(rules, used)), ""
    while text != before:  # a property may be used only by the definition of another
        before, names = text, used.names.union(USE.findall(text))
        text = DEFINITION.sub(lambda found, names=names: found[0] if found[1] in names else "", text)
    others = FACE.sub("", text)
    text = FACE.sub(lambda face: face[0] if (family := FAMILY.search(face[0])) and family[1] in others else "", text)
    return "".join([*(licence for sheet in sheets for licence in LICENCE.findall(sheet)), text])


@lru_cache(maxsize=16)  # pages of two kinds share most of their sheets
def _parsed(sheet: str) -> list[Any]:
    return tinycss2.parse_stylesheet(COMMENT.sub("", LICENCE.sub("", sheet)), skip_whitespace=True)


def _rules(rules: Iterable[Any], used: Used) -> Iterator[str]:
    """Yield the rules that can match."""
    for rule in rules:
        if rule.type == "qualified-rule":
            parts = [list(part) for is_comma, part in groupby(rule.prelude, lambda token: token == ",") if not is_comma]
            if selectors := [_text(part) for part in parts if _can_match(part, used)]:
                yield f"{','.join(selectors)}{{{_text(rule.content)}}}"
        elif rule.type == "at-rule" and rule.lower_at_keyword in GROUPS and rule.content is not None:
            inner = tinycss2.parse_rule_list(rule.content, skip_whitespace=True)
            if text := "".join(_rules(inner, used)):
                yield f"@{rule.at_keyword} {_text(rule.prelude)}{{{text}}}"
        else:
            yield _text([rule])


def _text(tokens: list[Any]) -> str:
    return SPACE.sub(" ", tinycss2.serialize(tokens)).strip()


def _can_match(selector: list[Any], used: Used) -> bool:
    """Return whether all classes of a selector are known; those in brackets, as in `:not(.unknown)`, do not count."""
    names = [name.value for dot, name in pairwise(selector) if dot == "."]
    return all(name in used.names or name.startswith(used.beginnings) for name in names)
