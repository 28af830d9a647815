"""Reduce style sheets to the rules that pages of the site can use, and join those of a page in one file.

Most rules of the theme are for classes that no page or script of this site has, and a browser shows nothing before it
has read all style sheets.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from companion.analysis.dependencies import digest

COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
LICENCE = re.compile(r"/\*!.*?\*/", re.DOTALL)
SPACE = re.compile(r"\s+")
CLASSES = re.compile(r"""\bclass=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
WORD = re.compile(r"[\w-]+")
# A name of a class in a selector; characters after a backslash belong to it.
CLASS = re.compile(r"\.((?:[\w-]|\\.)+)")
# Arguments of these may name classes that no page has, such as `:not(.unknown)`.
ARGUMENTS = re.compile(r":(?:not|is|where|has)\([^()]*\)")
LINK = re.compile(r'\s*<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"?:]*)[^"]*"[^>]*>')
IMPORT = re.compile(r"""@import *(?:url\()?["']([^"']+)["']\)?;""")
ADDRESS = re.compile(r"""url\((["']?)(?!data:|https?:|#)([^"')]+)\1\)""")
# The beginning of names that a script composes, such as `bs-` of `bs-${placement}-auto`.
COMPOSED = re.compile(r"([a-zA-Z][\w-]*-[\w-]*)\$\{")
# The folder of the theme's scripts, and the beginnings of classes that they use only for components written in a page.
THEME_SCRIPTS = "scripts"
COMPONENTS = (
    "bs-popover",
    "carousel",
    "dropdown-",
    "list-group",
    "modal",
    "offcanvas",
    "popover",
    "toast",
    "version-switcher",
)
# The definition of a custom property, its use in a style sheet, and its name in a script or page.
DEFINITION = re.compile(
    r"""(?<=[{;])\s*(--[\w-]+)\s*:(?:[^;{}"'()]|"[^"]*"|'[^']*'|\((?:[^()"']|"[^"]*"|'[^']*'|\([^()]*\))*\))*(?:;|(?=\}))"""
)
USE, NAME = re.compile(r"var\(\s*(--[\w-]+)"), re.compile(r"--[a-zA-Z][\w-]*")
# At-rules that contain rules.
GROUPS = ("@media", "@supports", "@layer", "@container")


def slim_sheets(out: Path, pages: Iterable[str]) -> None:
    """Remove from the style sheets of the site in `out` what no page or script uses: rules and custom properties."""
    classes: set[str] = set()
    properties: set[str] = set()
    for page in pages:
        classes.update(name for match in CLASSES.findall(page) for name in " ".join(match).split())
        properties.update(NAME.findall(page))
    absent = tuple(beginning for beginning in COMPONENTS if not any(name.startswith(beginning) for name in classes))
    beginnings: set[str] = set()
    for script in out.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        unseen = absent if script.parent.name == THEME_SCRIPTS else ()
        classes.update(word for word in WORD.findall(text) if not word.startswith(unseen))
        beginnings.update(beginning for beginning in COMPOSED.findall(text) if not beginning.startswith(unseen))
        properties.update(NAME.findall(text))
    texts = {sheet: sheet.read_text(encoding="utf-8") for sheet in (out / "_static").rglob("*.css")}
    slimmer: dict[Path, str] = {}
    for sheet, text in texts.items():
        licences = LICENCE.findall(text)
        slimmer[sheet] = "".join([*licences, reduced(LICENCE.sub("", text), classes, tuple(beginnings))])
    slimmer = _without_unused(slimmer, properties)
    for sheet, text in slimmer.items():
        if text != texts[sheet]:
            sheet.write_text(text, encoding="utf-8")


def _without_unused(sheets: dict[Path, str], used: set[str]) -> dict[Path, str]:
    """Return style sheets without the custom properties that neither they nor the names `used` refer to."""
    while True:
        names = used.union(*(USE.findall(text) for text in sheets.values()))

        def definition(found: re.Match[str], names: set[str] = names) -> str:
            return found[0] if found[1] in names else ""

        fewer = {sheet: DEFINITION.sub(definition, text) for sheet, text in sheets.items()}
        if fewer == sheets:
            return sheets
        sheets = fewer


def join_sheets(out: Path, path: Path, page: str) -> str:
    """Return a page, stored at `path`, whose style sheets are joined in one file; write the file."""
    links = list(LINK.finditer(page))
    sheets = [Path(os.path.normpath(path.parent / link[1])) for link in links]
    if len(links) < 2 or not all(sheet.is_file() for sheet in sheets):  # such as a template of the theme
        return page
    names = "\n".join(sheet.relative_to(out).as_posix() for sheet in sheets)
    target = out / "_static" / f"sheets-{digest(names.encode())[:8]}.css"
    text = "".join(_standing_alone(sheet, target.parent) for sheet in sheets)
    target.write_text(text, encoding="utf-8")
    address = f"{os.path.relpath(target, path.parent)}?v={digest(text.encode())[:8]}"
    first = f'\n<link rel="stylesheet" href="{address}" />'
    return page[: links[0].start()] + first + LINK.sub("", page[links[0].start() :])


def remove_unlinked_sheets(out: Path, pages: Iterable[str]) -> None:
    """Remove the style sheets of the site in `out` that no page links, such as those that were joined."""
    linked = {Path(match[1]).name for page in pages for match in LINK.finditer(page)}
    for sheet in (out / "_static").rglob("*.css"):
        if sheet.name not in linked:
            sheet.unlink()


def _standing_alone(sheet: Path, folder: Path) -> str:
    """Return a style sheet with the sheets that it imports, and with addresses relative to `folder`."""
    text = IMPORT.sub(
        lambda found: _standing_alone(sheet.parent / found[1], sheet.parent), sheet.read_text(encoding="utf-8")
    )
    return ADDRESS.sub(lambda found: f"url({os.path.relpath(sheet.parent / found[2], folder)})", text)


def reduced(sheet: str, words: set[str], beginnings: tuple[str, ...] = ()) -> str:
    """Return a style sheet without comments and without the rules for unknown classes.

    Args:
      sheet: the style sheet.
      words: the known classes.
      beginnings: the beginnings of further known classes, whose names scripts compose.
    """
    parts: list[str] = []
    for prelude, body in _rules(COMMENT.sub("", sheet)):
        if body is None:
            parts.append(f"{prelude};")
        elif prelude.startswith(GROUPS):
            if inner := reduced(body, words, beginnings):
                parts.append(f"{prelude}{{{inner}}}")
        elif prelude.startswith("@"):
            parts.append(f"{prelude}{{{body}}}")
        elif selectors := [selector for selector in _selectors(prelude) if _can_match(selector, words, beginnings)]:
            parts.append(f"{','.join(selectors)}{{{body}}}")
    return "".join(parts)


def _rules(sheet: str) -> Iterator[tuple[str, str | None]]:
    """Yield the prelude and the body of each rule; the body of a statement such as `@import` is None."""
    start = 0
    while match := re.compile(r"[{;]").search(sheet, start):
        prelude = SPACE.sub(" ", sheet[start : match.start()]).strip()
        if match[0] == ";":
            yield prelude, None
            start = match.end()
            continue
        end = _closing(sheet, match.end())
        yield prelude, SPACE.sub(" ", sheet[match.end() : end - 1]).strip()
        start = end


def _closing(sheet: str, start: int) -> int:
    """Return the position after the brace that closes the one before `start`; braces in strings do not count."""
    depth = 1
    for match in re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}]").finditer(sheet, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    return len(sheet) + 1


def _selectors(prelude: str) -> list[str]:
    """Split a list of selectors at its commas, except those in brackets."""
    parts, depth = [""], 0
    for character in prelude:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _can_match(selector: str, words: set[str], beginnings: tuple[str, ...]) -> bool:
    while (plain := ARGUMENTS.sub("", selector)) != selector:
        selector = plain
    names = [name.replace("\\", "") for name in CLASS.findall(re.sub(r"\[[^\]]*\]", "", selector))]
    return all(name in words or name.startswith(beginnings) for name in names)
