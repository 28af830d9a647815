"""The look of the pages: tokens as a style sheet, and the lines at the head of chapters and the foot of pages."""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from companion.io.atomic import write_text
from companion.site import tokens
from companion.site.sphinx.chapter_head import add_head
from companion.site.sphinx.citations import add_footer

TOKENS = "tokens.css"
TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


def register_design(app: Sphinx) -> None:
    """Register the style sheets and the event handlers of the design."""
    # pages contain the address, in entries of BibTeX
    app.add_config_value("companion_address", "", "env")
    app.add_css_file("companion.css")
    app.add_css_file(TOKENS, priority=600)
    app.add_css_file("design.css", priority=700)
    app.connect("config-inited", add_name)
    app.connect("config-inited", add_footer, priority=600)  # after the book is read
    app.connect("builder-inited", write_tokens)
    app.connect("doctree-read", add_head, priority=900)  # after the boxes have their lines


def add_name(app: Sphinx, config: Any) -> None:
    """Add the name of the book to the bar above the text, for screens on which the list of pages is folded."""
    bar = {"article_header_start": ["toggle-primary-sidebar.html", "book-name.html"]}
    config.templates_path = [*config.templates_path, str(TEMPLATES)]
    config.html_theme_options = {**config.html_theme_options, **bar}


def write_tokens(app: Sphinx) -> None:
    """Write the style sheet of tokens before the pages are written, which contain its digest."""
    if app.builder.format == "html":
        write_text(Path(app.outdir) / "_static" / TOKENS, tokens.css())
