"""What the site says to the world: descriptions for search engines and link previews, and links that lead somewhere."""

import html
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from companion.project.paths import Project
from companion.project.repository import public_address, site_address
from companion.site.sphinx.nodes import picture

# About as much as search engines show.
LONGEST = 200


def hide_dead_ends(app: Sphinx, config: Any) -> None:
    """Hide the buttons that lead to the repository while its address is unset."""
    if public_address(config.companion_project) is None:
        dead: dict[str, Any] = {"repository_url": "", "use_repository_button": False, "launch_buttons": {}}
        config.html_theme_options = {**config.html_theme_options, **dead}


def describe(app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: Any) -> None:
    """Tell search engines and previews what the page is about, and where it is if that is known."""
    if doctree is None:
        return
    said = {"og:type": "article", "og:site_name": app.config.project, "og:title": _plain(context["title"])}
    if words := summary_of(doctree):
        said |= {"description": words, "og:description": words}
    if address := site_address(app.config.companion_project):
        said["og:url"] = f"{address}{pagename}.html"
        for shown in doctree.findall(picture):
            path = shown["light"].replace("../", "").removesuffix(".svg")
            said |= {"og:image": f"{address}{path}.png", "og:image:alt": shown["alt"]}
            break
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{html.escape(text)}">'
        for name, text in said.items()
    )


def summary_of(doctree: nodes.document) -> str:
    """The first sentences of the first paragraph, those with formulas left out."""
    text = ""
    for paragraph in doctree.findall(nodes.paragraph):
        for sentence in " ".join(_words(paragraph).split()).split(". "):
            longer = f"{text} {sentence.rstrip('.')}.".strip()
            if "\\" in sentence or (text and len(longer) > LONGEST):
                break
            text = longer
        if text:
            break
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"


def _words(node: nodes.Node) -> str:
    if isinstance(node, nodes.math):
        return node.astext() if node.astext().isalnum() else "\\"
    return node.astext() if isinstance(node, nodes.Text) else "".join(map(_words, node.children))


def _plain(title: str) -> str:
    """A title without the marks that its heading has."""
    return html.unescape(
        "".join(part.partition(">")[2] if place else part for place, part in enumerate(title.split("<")))
    )


def announce(project: Project, out: Path) -> None:
    """Leave a map of the site for search engines, which need whole addresses, if there is one."""
    target, address = out / "sitemap.xml", site_address(project)
    if address is None:
        target.unlink(missing_ok=True)
        return
    pages = sorted(path.relative_to(out).as_posix() for path in (out / project.book.name).glob("*.html"))
    places = "".join(f"<url><loc>{html.escape(address + page)}</loc></url>\n" for page in pages)
    target.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{places}</urlset>\n",
        encoding="utf-8",
    )
