"""Join the scripts of a page: one file for those of every page, and one per chapter for those in its folder `page`.

Each request costs a slow connection more than the bytes of most scripts. A browser asks for scripts after the style
sheet, because it needs the sheet, and no script, to show the page.
"""

import os
import re
from functools import cache
from pathlib import Path

from companion.analysis.dependencies import digest
from companion.site.sphinx.page_scripts import OF_A_CLASS, PLACE, TABLES

# A script of a page, or one that `WRITE` writes.
SCRIPT = re.compile(r'<script defer(?:="defer")? src="([^"?:]+\.js)(?:\?[^"]*)?"><\\?/script>\s*')
# A script in the page waits for the style sheet, and what it writes is not seen before. A browser would ask for the
# deferred scripts of a page at once, and they would share a slow connection with the sheet, whatever their priority.
WRITE = "<script>document.write('{}')</script>\n"
# The beginning of the names of joined files.
JOINED = "scripts-"
# A script may end without a semicolon, or with a comment.
SEPARATOR = "\n;\n"


def join_scripts(out: Path, pages: dict[Path, str]) -> dict[Path, str]:
    """Return the pages of the site in `out` with fewer scripts; write these, and remove those that no page loads now.

    Scripts of one group run in the same order, at the place of the first. All are written where the last one was.
    """
    static = out / "_static"
    replaced: set[Path] = set()

    @cache
    def write(scripts: tuple[Path, ...]) -> tuple[Path, str]:
        """Write the file for these scripts, and return its path and the digest of its content."""
        names = "\n".join(script.relative_to(out).as_posix() for script in scripts)
        target = static / f"{JOINED}{digest(names.encode())[:8]}.js"
        text = SEPARATOR.join(script.read_text(encoding="utf-8").strip() for script in scripts) + "\n"
        target.write_text(text, encoding="utf-8")
        return target, digest(text.encode())[:8]

    def with_fewer(path: Path, page: str) -> str:
        groups: dict[str, list[Path]] = {}
        for source in SCRIPT.findall(page):
            script = _script(path, source)
            if script.is_file() and (group := _group(static, script)) is not None:
                groups.setdefault(group, []).append(script)
        several = [tuple(scripts) for scripts in groups.values() if len(scripts) > 1]
        members = {script for scripts in several for script in scripts}
        replaced.update(members)
        first = {scripts[0]: scripts for scripts in several}

        def tag(found: re.Match[str]) -> str:
            script = _script(path, found[1])
            if (scripts := first.get(script)) is not None:
                target, version = write(scripts)
                return f'<script defer src="{os.path.relpath(target, path.parent)}?v={version}"></script>\n'
            return "" if script in members else found[0]

        return _after_the_sheet(SCRIPT.sub(tag, page))

    linking = {path: with_fewer(path, page) for path, page in pages.items()}
    linked = {_script(path, source) for path, page in linking.items() for source in SCRIPT.findall(page)}
    for script in replaced - linked:
        script.unlink()
    return linking


def _after_the_sheet(page: str) -> str:
    """Return the page with one script that writes all deferred scripts, unless it has one."""
    tags = [found for found in SCRIPT.finditer(page) if "<\\/" not in found[0]]
    if not tags:
        return page
    written = WRITE.format("".join(found[0].strip().replace("</", "<\\/") for found in tags))
    before = SCRIPT.sub("", page[: tags[-1].start()])
    return before + written + page[tags[-1].end() :]


def _script(page: Path, source: str) -> Path:
    """Return the path of a script that a page loads."""
    return Path(os.path.normpath(page.parent / source))


def _group(static: Path, script: Path) -> str | None:
    """Return the chapter of a script, "" for one that every page has, or None for one that stays alone."""
    if not script.is_relative_to(static) or script.name.startswith(JOINED):
        return None
    place = script.relative_to(static).parts
    if place[0] == PLACE:
        return None if TABLES in place else place[1]
    return None if place[-1] in OF_A_CLASS.values() else ""
