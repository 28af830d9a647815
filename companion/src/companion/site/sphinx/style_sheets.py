"""Join the style sheets of a page in one file: a browser shows nothing before it has read all of them."""

import os
import re
from pathlib import Path

from companion.analysis.dependencies import digest

LINK = re.compile(r'\s*<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"?:]*)[^"]*"[^>]*>')
IMPORT = re.compile(r"""@import *(?:url\()?["']([^"']+)["']\)?;""")
ADDRESS = re.compile(r"""url\((["']?)(?!data:|https?:|#)([^"')]+)\1\)""")


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


def _standing_alone(sheet: Path, folder: Path) -> str:
    """Return a style sheet with the sheets that it imports, and with addresses relative to `folder`."""
    text = IMPORT.sub(
        lambda found: _standing_alone(sheet.parent / found[1], sheet.parent), sheet.read_text(encoding="utf-8")
    )
    return ADDRESS.sub(lambda found: f"url({os.path.relpath(sheet.parent / found[2], folder)})", text)
