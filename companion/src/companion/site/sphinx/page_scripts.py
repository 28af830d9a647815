"""Scripts and styles of a chapter, from its folder `page`, for interactive figures.

Only the page of the chapter loads them. It also loads the published table of each of its figures, by a script that
stores the text of the CSV under the figure's name in `window.companionTables`. This works for pages that are opened
from a disk, and pages that show the same figure share the file.

The table `live` of the book's configuration embeds such a figure, folded, under a figure of another chapter.
`{companion-live}` shows one on any page.
"""

import json
import shutil
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from companion.analysis.dependencies import digest
from companion.figures import store
from companion.io.atomic import write_text
from companion.io.errors import did_you_mean
from companion.project.configuration import FILE
from companion.project.paths import Project
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import picture_of
from companion.site.sphinx.figure_numbers import figure_link
from companion.site.sphinx.inline_text import figure_anchor
from companion.site.sphinx.nodes import details, summary

# The folder below `_static` of the site with one folder per chapter.
PLACE = "chapters"
# The folder of a chapter with the tables of its figures.
TABLES = "tables"
# By a class of its nodes, the script that a page loads.
OF_A_CLASS = {"companion-gallery": "gallery.js", "companion-map-place": "map.js", "companion-png": "png.js"}


def copy_scripts(app: Sphinx) -> None:
    """Copy scripts, styles and tables to the site before the pages are written, which contain digests of them."""
    if app.builder.format != "html":
        return
    project, scripts = app.config.companion_project, Path(app.outdir) / "_static" / PLACE
    shutil.rmtree(scripts, ignore_errors=True)
    for name in project.notebooks():
        for path in project.page_files(name):
            target = scripts / name / path.relative_to(project.page_folder(name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        folder = project.shown_figures(app.config.companion_profile) / name
        for figure in store.names_in(folder) if project.page_files(name) else ():
            if (folder / f"{figure}{store.DATA}").is_file():
                write_text(scripts / name / TABLES / f"{figure}.js", _table(folder, figure))


def load_scripts(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: Any
) -> None:
    """Load the scripts and styles of a chapter on its page and on pages that embed one of its figures.

    A page with a gallery, the map of chapters or links to PNGs loads the script of these.
    """
    project: Project = app.config.companion_project
    folder, _, name = pagename.rpartition("/")
    own = [name] if folder == project.book.name and name in project.notebooks() else []
    page = BookDomain.of(app.env).pages.get(pagename)
    for chapter in [*own, *sorted(page.embedded if page else ())]:
        for path in project.page_files(chapter):
            file = f"{PLACE}/{chapter}/{path.relative_to(project.page_folder(chapter)).as_posix()}"
            if path.suffix == ".js":
                app.add_js_file(file, loading_method="defer")
            elif path.suffix == ".css":
                app.add_css_file(file)
    elements = doctree.findall(nodes.Element) if doctree else ()
    shown: set[str] = {name for node in elements for name in node.get("classes", ())}
    for name, script in OF_A_CLASS.items():
        if name in shown:
            app.add_js_file(script, loading_method="defer")


def note_scripts(app: Sphinx, docname: str, source: list[str]) -> None:
    """Note the scripts of a page as dependencies, so that Sphinx writes the page again when one changes."""
    project: Project = app.config.companion_project
    folder, _, name = docname.rpartition("/")
    if folder == project.book.name and name in project.notebooks():
        for path in project.page_files(name):
            app.env.note_dependency(str(path))


def table_script(project: Project, docname: str, folder: Path, figure: str) -> list[nodes.Node]:
    """Return the element that loads the table of a figure, or nothing if its chapter has no scripts."""
    if not project.page_files(folder.name):
        return []
    version = digest(_table(folder, figure).encode())[:8]
    uri = "../" * docname.count("/") + f"_static/{PLACE}/{folder.name}/{TABLES}/{figure}.js?v={version}"
    return [nodes.raw("", f'<script defer src="{uri}"></script>\n', format="html")]


def _table(folder: Path, figure: str) -> str:
    text = json.dumps((folder / f"{figure}{store.DATA}").read_text(encoding="utf-8"), ensure_ascii=False)
    return f"(window.companionTables ??= {{}}).{figure} = {text};\n"


def embedded_figure(directive: SphinxDirective) -> list[nodes.Node]:
    """Return the folded interactive figure that the book embeds under the figure of `directive`, if there is one."""
    project: Project = directive.config.companion_project
    directive.env.note_dependency(str(project.root / FILE))
    interactive = project.settings.live.get(directive.arguments[0])
    if interactive is None:
        return []
    folded = details(classes=["companion-live"])
    number = figure_link(directive.env, interactive.partition("/")[2])
    which = nodes.paragraph(
        "", "", nodes.Text("This is "), number, nodes.Text(", not the figure above."), classes=["companion-live-number"]
    )
    folded += [summary("", "Move it yourself"), which, *_interactive(directive, interactive, f"`live` in {FILE}")]
    return [folded]


class LiveDirective(SphinxDirective):
    """`{companion-live} notebook/figure`: an interactive figure of a chapter on another page, with text below it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the figure, the link to its page, and the text."""
        shown = nodes.container(classes=["companion-shown-live"])
        shown += _interactive(self, self.arguments[0], "`{companion-live}`")
        shown += self.parse_content_to_nodes()
        return [shown]


def _interactive(directive: SphinxDirective, interactive: str, asked_by: str) -> list[nodes.Node]:
    """Return an interactive figure and a link to its page. Without scripts, the figure is the picture.

    Args:
      directive: the directive that shows the figure.
      interactive: the figure, as `notebook/figure`.
      asked_by: what names the figure, for the message if there is no such figure.
    """
    env, project = directive.env, directive.config.companion_project
    chapter, _, figure = interactive.partition("/")
    if chapter not in project.notebooks() or not project.page_files(chapter):
        guess = did_you_mean(chapter, project.notebooks())
        raise directive.error(f"{asked_by} needs a chapter with scripts. Got {interactive!r}. {guess}")
    folder = project.shown_figures(directive.config.companion_profile) / chapter
    for path in (folder / f"{figure}{store.DATA}", folder / f"{figure}.svg", *project.page_files(chapter)):
        env.note_dependency(str(path))
    if faults := store.faults(folder, figure):
        raise directive.error(f"Figure {interactive!r} cannot be shown: {'; '.join(faults)}.")
    BookDomain.of(env).current.embedded.add(chapter)
    record = store.read_record(folder, figure)
    container = nodes.container(classes=["companion-live-place"], ids=[f"live-{figure.replace('_', '-')}"])
    container += picture_of(env.docname, folder, record)
    page = env.app.builder.get_relative_uri(env.docname, f"{project.book.name}/{chapter}")
    link = nodes.paragraph("", "", *table_script(project, env.docname, folder, figure))
    link += nodes.reference(
        "", "What it shows, and its claims", refuri=f"{page}#{figure_anchor(figure)}", internal=True
    )
    return [container, link]
