"""Metadata of the pages for search engines and link previews."""

import html
import re
from collections.abc import MutableMapping
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from companion.project.repository import site_address
from companion.site.sphinx.chapter_head import LEAD, NEEDS
from companion.site.sphinx.nodes import picture

# Largest length of a description, in characters; search engines show about as many.
LONGEST = 200
TAG = re.compile(r"<[^>]*>")


def add_metadata(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: Any
) -> None:
    """Add title, description and, if the address of the site is known, address and picture to the head of a page."""
    if doctree is None:
        return
    metadata = {
        "og:type": "article",
        "og:site_name": app.config.html_title,
        "og:title": html.unescape(TAG.sub("", context["title"])),
    }
    if description := summary_of(doctree):
        metadata |= {"description": description, "og:description": description}
    if address := site_address(app.config.companion_project):
        metadata["og:url"] = f"{address}{pagename}.html"
        # other pictures are thumbnails
        if image := next((image for image in doctree.findall(picture) if image["file"].endswith(".svg")), None):
            path = image["file"].replace("../", "").removesuffix(".svg")
            metadata |= {"og:image": f"{address}{path}.png", "og:image:alt": image["alt"]}
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<meta {"property" if name.startswith("og:") else "name"}="{name}" content="{html.escape(text)}">'
        for name, text in metadata.items()
    )


def summary_of(doctree: nodes.document) -> str:
    """Return the first sentences of the first paragraph that has a sentence without formulas."""
    text = ""
    for paragraph in doctree.findall(nodes.paragraph):
        if LEAD in paragraph["classes"] or NEEDS in paragraph.parent["classes"]:
            continue
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
