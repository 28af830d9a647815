"""What a chapter brings for its own page: the scripts and styles in its folder `page`, which no other page loads.

Such a page loads the table of each of its figures, as it is published, by a script that puts its text under the
figure's name into `window.companionTables`: so it works where pages are opened from a disk, and pages that show the
same figure share the file.

One of its figures may stand a second time, folded, under a figure of another chapter: the book's table `live` says
where.
"""

import json
import shutil
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from companion.analysis.dependencies import digest
from companion.figures import store
from companion.io.atomic import write_text
from companion.io.errors import did_you_mean
from companion.project.configuration import FILE
from companion.project.paths import Project
from companion.site.sphinx.downloads import place_of
from companion.site.sphinx.inline_text import figure_anchor
from companion.site.sphinx.nodes import details, picture, size_of, summary

# Below `_static` of the site, a folder a chapter.
PLACE = "chapters"
# Below that, the tables of a chapter's figures.
TABLES = "tables"


def copy_scripts(app: Sphinx) -> None:
    """Before pages are written, which name scripts by a digest of what is in the site."""
    if app.builder.format != "html":
        return
    project, place = app.config.companion_project, Path(app.outdir) / "_static" / PLACE
    shutil.rmtree(place, ignore_errors=True)
    for name in project.notebooks():
        for path in project.page_files(name):
            target = place / name / path.relative_to(project.page_folder(name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        folder = project.shown_figures(app.config.companion_profile) / name
        for figure in store.names_in(folder) if project.page_files(name) else ():
            if (folder / f"{figure}{store.DATA}").is_file():
                write_text(place / name / TABLES / f"{figure}.js", _table(folder, figure))


def load_scripts(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: Any
) -> None:
    """On the chapter's own page, and where a figure of it is shown, deferred: in the order of their names."""
    project: Project = app.config.companion_project
    folder, _, name = pagename.rpartition("/")
    if folder != project.book.name or name not in project.notebooks():
        return
    for chapter in [name, *sorted(_lent(app.env).get(pagename, ()))]:
        for path in project.page_files(chapter):
            place = f"{PLACE}/{chapter}/{path.relative_to(project.page_folder(chapter)).as_posix()}"
            if path.suffix == ".js":
                app.add_js_file(place, loading_method="defer")
            elif path.suffix == ".css":
                app.add_css_file(place)


def note_scripts(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write the page again when one of its scripts has changed."""
    project: Project = app.config.companion_project
    folder, _, name = docname.rpartition("/")
    if folder == project.book.name and name in project.notebooks():
        for path in project.page_files(name):
            app.env.note_dependency(str(path))


def carried_table(project: Project, docname: str, folder: Path, figure: str) -> list[nodes.Node]:
    """What loads the table of a figure for the scripts of its page, if its chapter brings any."""
    if not project.page_files(folder.name):
        return []
    mark = digest(_table(folder, figure).encode())[:8]
    place = "../" * docname.count("/") + f"_static/{PLACE}/{folder.name}/{TABLES}/{figure}.js?v={mark}"
    return [nodes.raw("", f'<script defer src="{place}"></script>\n', format="html")]


def _table(folder: Path, figure: str) -> str:
    text = json.dumps((folder / f"{figure}{store.DATA}").read_text(encoding="utf-8"), ensure_ascii=False)
    return f"(window.companionTables ??= {{}}).{figure} = {text};\n"


def lent(directive: SphinxDirective, shown: Path) -> list[nodes.Node]:
    """The figure that moves, if the book's settings want one under the figure that `directive` shows; folded.

    Without scripts it is that figure's picture, and a link to where it stands.
    """
    env, project = directive.env, directive.config.companion_project
    env.note_dependency(str(project.root / FILE))
    moving = project.settings.live.get(directive.arguments[0])
    if moving is None:
        return []
    chapter, _, figure = moving.partition("/")
    if chapter not in project.notebooks() or not project.page_files(chapter):
        meant = did_you_mean(chapter, project.notebooks())
        raise directive.error(f"`live` in {FILE} wants {moving!r}, of a chapter without scripts. {meant}")
    folder = shown / chapter
    for path in (folder / f"{figure}{store.DATA}", folder / f"{figure}.svg", *project.page_files(chapter)):
        env.note_dependency(str(path))
    if faults := store.faults(folder, figure):
        raise directive.error(f"Figure {moving!r} cannot be shown: {'; '.join(faults)}.")
    _lent(env).setdefault(env.docname, set()).add(chapter)
    record = store.read_record(folder, figure)
    files = {
        theme: place_of(env.docname, f"{moving}{suffix}")
        for theme, suffix in (("light", ".svg"), ("dark", ".dark.svg"))
    }
    place = nodes.container(classes=["companion-live-place"], ids=[f"live-{figure.replace('_', '-')}"])
    place += picture(alt=" ".join(record.alt.split()), size=size_of(folder / f"{figure}.svg"), **files)
    page = env.app.builder.get_relative_uri(env.docname, f"{project.book.name}/{chapter}")
    whole = nodes.paragraph("", "", *carried_table(project, env.docname, folder, figure))
    whole += nodes.reference(
        "", "What it shows, and its claims", refuri=f"{page}#{figure_anchor(figure)}", internal=True
    )
    folded = details(classes=["companion-live"])
    folded += [summary("", "Move it yourself"), place, whole]
    return [folded]


def forget_lent(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """The page is gone, or about to be read again."""
    _lent(env).pop(docname, None)


def _lent(env: BuildEnvironment) -> dict[str, set[str]]:
    """By page, the chapters whose scripts it needs though it is another's."""
    if not hasattr(env, "companion_lent"):
        env.companion_lent = {}  # pyright: ignore
    return env.companion_lent  # pyright: ignore
