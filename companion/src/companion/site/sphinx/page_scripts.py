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
from companion.figures.record import FigureRecord
from companion.io.atomic import write_text
from companion.io.errors import did_you_mean
from companion.project.configuration import FILE
from companion.project.paths import Project
from companion.site.sphinx.chapter_numbers import chapter_on
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import folder_of, picture_of, record_of
from companion.site.sphinx.figure_numbers import figure_link
from companion.site.sphinx.inline_text import figure_anchor, page_link
from companion.site.sphinx.nodes import details, summary

# The folder below `_static` of the site with one folder per chapter.
PLACE = "chapters"
# The folder of a chapter with the tables of its figures.
TABLES = "tables"
# By a class of its nodes, the script that a page loads.
OF_A_CLASS = {
    "companion-gallery": "gallery.js",
    "companion-ledger": "ledger.js",
    "companion-map-place": "map.js",
    "companion-png": "png.js",
}


def copy_scripts(app: Sphinx) -> None:
    """Copy scripts, styles and tables to the site before the pages are written, which contain digests of them."""
    project, scripts = app.config.companion_project, Path(app.outdir) / "_static" / PLACE
    shutil.rmtree(scripts, ignore_errors=True)
    for name in filter(project.page_files, project.notebooks()):
        shutil.copytree(project.page_folder(name), scripts / name, ignore=shutil.ignore_patterns(".*"))
        folder = folder_of(app.config, name)
        for figure in store.names_in(folder):
            if (folder / f"{figure}{store.DATA}").is_file():
                write_text(scripts / name / TABLES / f"{figure}.js", _table(folder, figure))


def load_scripts(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: Any
) -> None:
    """Load the scripts and styles of a chapter on its page and on pages that embed one of its figures.

    A page with a gallery, the ledger, a map or links to PNGs loads the script of these.
    """
    project: Project = app.config.companion_project
    page = BookDomain.of(app.env).pages.get(pagename)
    for chapter in filter(None, [chapter_on(app.config, pagename), *sorted(page.embedded if page else ())]):
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


def table_script(directive: SphinxDirective, record: FigureRecord) -> list[nodes.Node]:
    """Return the element that loads the table of a figure, or nothing if its chapter has no scripts."""
    if not directive.config.companion_project.page_files(record.notebook):
        return []
    version = digest(_table(folder_of(directive.config, record.notebook), record.figure).encode())[:8]
    file = f"_static/{PLACE}/{record.notebook}/{TABLES}/{record.figure}.js?v={version}"
    up = "../" * directive.env.docname.count("/")
    return [nodes.raw("", f'<script defer src="{up}{file}"></script>\n', format="html")]


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
    text = nodes.paragraph("", "This is ", classes=["companion-live-number"])
    text += [figure_link(directive.env, interactive.partition("/")[2]), nodes.Text(", not the figure above.")]
    shown = _interactive(directive, interactive)
    return [details("", summary("", "Move it yourself"), text, *shown, classes=["companion-live"])]


class LiveDirective(SphinxDirective):
    """`{companion-live} notebook/figure`: an interactive figure of a chapter on another page, with text below it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the figure, the link to its page, and the text."""
        shown = [*_interactive(self, self.arguments[0]), *self.parse_content_to_nodes()]
        return [nodes.container("", *shown, classes=["companion-shown-live"])]


def _interactive(directive: SphinxDirective, interactive: str) -> list[nodes.Node]:
    """Return an interactive figure, `notebook/figure`, and a link to its page. Without scripts, it is the picture."""
    env, project = directive.env, directive.config.companion_project
    chapter, _, figure = interactive.partition("/")
    if chapter not in project.notebooks() or not project.page_files(chapter):
        raise directive.error(
            f"`{{companion-live}}`, and `live` in {FILE}, need a chapter with scripts. Got {interactive!r}. "
            f"{did_you_mean(chapter, project.notebooks())}"
        )
    for path in project.page_files(chapter):
        env.note_dependency(str(path))
    record = record_of(directive, interactive)
    BookDomain.of(env).current.embedded.add(chapter)
    about: dict[str, Any] = {"classes": ["companion-live-place"], "ids": [f"live-{figure.replace('_', '-')}"]}
    container = nodes.container("", picture_of(directive, record), **about)
    link = page_link(env, chapter, figure_anchor(figure), "What it shows, and its claims")
    return [container, nodes.paragraph("", "", *table_script(directive, record), link)]
