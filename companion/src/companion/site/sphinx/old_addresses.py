"""Old addresses of figures that moved: their pages lead to the new pages, and their files stay at the old address too.

`[tool.companion.moved]` gives the new `notebook/figure` of an old one. Servers never see the part of an address after
`#`, so a script on the old page looks it up. Without scripts, the old page has a link.
"""

import json
import shutil
from collections import Counter
from collections.abc import Mapping, MutableMapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from companion.figures import store
from companion.io.atomic import write_text
from companion.io.errors import did_you_mean
from companion.project.paths import Project
from companion.site.sphinx.downloads import FIGURES
from companion.site.sphinx.inline_text import figure_anchor

logger = logging.getLogger(__name__)
TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "moved.html.txt"
SCRIPT = """<script>(() => {
  const moved = $moved;
  const page = moved[decodeURIComponent(location.hash.slice(1))] ?? $otherwise;
  if (page) location.replace(page.includes('#') ? page : page + location.hash);
})();</script>"""


def warn_of_wrong_entries(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each entry of `[tool.companion.moved]` whose new figure does not exist."""
    project: Project = app.config.companion_project
    shown = project.shown_figures(app.config.companion_profile)
    for old, new in project.settings.moved.items():
        notebook, _, figure = new.partition("/")
        names = store.names_in(shown / notebook)
        if figure not in names:
            logger.warning(
                "[tool.companion.moved] says that the figure %s is now %s, which does not exist. %s",
                old, new, did_you_mean(figure, names),
            )  # fmt: skip


def new_pages(project: Project) -> dict[str, Counter[str]]:
    """Return, for each notebook that lost figures to other notebooks, these with the numbers of figures."""
    pages: dict[str, Counter[str]] = {}
    for old, new in project.settings.moved.items():
        before, after = old.partition("/")[0], new.partition("/")[0]
        if before != after:
            pages.setdefault(before, Counter())[after] += 1
    return pages


def lead_to_new_pages(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: nodes.document | None
) -> None:
    """Add a script to a page that lost figures: it opens the new page of an anchor that moved there."""
    project: Project = app.config.companion_project
    folder, _, name = pagename.rpartition("/")
    pages = new_pages(project).get(name)
    if doctree is not None and pages and folder == project.book.name:
        context["body"] += script(_moved(app, name, pages, _anchors(doctree)))


def write_pages(app: Sphinx, out: Path) -> None:
    """Write the pages of notebooks that no longer exist, and copy the files of moved figures to their old places."""
    project: Project = app.config.companion_project
    for name, pages in new_pages(project).items():
        if name not in project.notebooks():
            ((target, _),) = pages.most_common(1)
            write_text(
                out / project.book.name / f"{name}.html", old_page(f"{target}.html", _moved(app, name, pages, set()))
            )
    for old, new in project.settings.moved.items():
        folder, _, figure = new.partition("/")
        notebook, _, old_figure = old.partition("/")
        for origin in filter(Path.is_file, store.files(out / FIGURES / folder, figure)):
            target = out / FIGURES / notebook / f"{old_figure}{origin.name.removeprefix(figure)}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, target)


def script(moved: Mapping[str, str], otherwise: str | None = None) -> str:
    """Return a script that opens the new page of the anchor in the address, or `otherwise` if the anchor is unknown.

    A value of `moved` may contain a new anchor, after `#`; without one the anchor stays the same.
    """
    return Template(SCRIPT).substitute(moved=json.dumps(moved), otherwise=json.dumps(otherwise))


def old_page(target: str, moved: Mapping[str, str]) -> str:
    """Return the page of a notebook that no longer exists; anchors that are not in `moved` lead to `target`."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(target=escape(target), script=script(moved, target))


def _moved(app: Sphinx, old_name: str, pages: Counter[str], present: set[str]) -> dict[str, str]:
    """Return the new page of each anchor of `pages` that is not `present` on the old page `old_name`.

    Figures that also have a new name come with their new anchor.
    """
    project: Project = app.config.companion_project
    book = project.book.name
    renamed: dict[str, str] = {}
    for old, new in project.settings.moved.items():
        (before, old_figure), (after, new_figure) = old.split("/"), new.split("/")
        if before == old_name and old_figure != new_figure:
            renamed[figure_anchor(old_figure)] = f"{after}.html#{figure_anchor(new_figure)}"
    return renamed | {
        anchor: f"{name}.html"
        for name, _ in reversed(pages.most_common())
        if f"{book}/{name}" in app.env.found_docs
        for anchor in sorted(_anchors(app.env.get_doctree(f"{book}/{name}")) - present)
    }


def _anchors(doctree: nodes.document) -> set[str]:
    return {anchor for element in doctree.findall(nodes.Element) for anchor in element["ids"]}
