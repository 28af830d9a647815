"""The Sphinx extension: registers directives and roles, selects the sources of pages, and completes the site."""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import json
import os
import re
from pathlib import Path
from string import Template
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from companion.analysis.dependencies import MACHINE
from companion.build.cache_keys import tree_digests
from companion.io.atomic import dump_json, write_text
from companion.project.notebooks import BOOTSTRAP_TAG, BY_HAND_TAG, INJECTED_TAG, TECHNICAL_TAG
from companion.project.paths import DEFAULT_PROFILE, PROFILE, Project
from companion.project.repository import public_address, site_address
from companion.site import notebook_content, tokens
from companion.site.notebook_content import Cell, Content, figure_shown
from companion.site.sphinx import statement_index
from companion.site.sphinx.api_pages import ApiDirective, find_work, warn_of_undocumented_modules
from companion.site.sphinx.cards import CardDirective, ChaptersDirective, PictureDirective, draw_thumbnails
from companion.site.sphinx.chapter_head import add_head
from companion.site.sphinx.chapter_numbers import chapter_on
from companion.site.sphinx.citations import FOOTER, CiteDirective, fill_marks, pdf_name
from companion.site.sphinx.claim_index import note_contents, outdated_pages
from companion.site.sphinx.claim_roles import FORMS, ClaimRole
from companion.site.sphinx.docstrings import fold_docstrings
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import FileRole, copy_files
from companion.site.sphinx.figure_directive import FigureDirective
from companion.site.sphinx.figure_numbers import FigureRole, NumberedRole, find_figure, register_numbers
from companion.site.sphinx.formulas import RENDERER, is_short, register_formulas
from companion.site.sphinx.front_page import CountRole, MapDirective
from companion.site.sphinx.gallery import GalleryDirective
from companion.site.sphinx.highlighting import FewColoursLexer
from companion.site.sphinx.inline_text import FORMULA_ROLE, FormulaRole
from companion.site.sphinx.ledger import LedgerDirective, link_theorems
from companion.site.sphinx.link_previews import add_metadata
from companion.site.sphinx.nodes import add_nodes
from companion.site.sphinx.notebook_table import NotebooksDirective
from companion.site.sphinx.page_scripts import LiveDirective, copy_scripts, load_scripts
from companion.site.sphinx.postprocess import slim
from companion.site.sphinx.reading_times import MinutesRole, RouteDirective
from companion.site.sphinx.references import list_cited, register
from companion.site.sphinx.search_index import collect_entries, keep_texts, write_index
from companion.site.sphinx.terms import link_terms

# Style sheets and scripts of all pages, and the style sheet that the build writes.
ASSETS, TOKENS = Path(__file__).with_name("assets"), "tokens.css"
TEMPLATES = Path(__file__).resolve().parents[1] / "templates"
logger = logging.getLogger(__name__)
# Anchors that sphinx-proof gives to the inside of every box and to every proof; nothing links to them.
REPEATED = {"proof", "proof-content"}
PUNCTUATION, OPENING = re.compile(r"[.,;:!?)\]’”]+"), re.compile(r"[(\[‘“]+$")
DIRECTIVES = {
    "companion-api": ApiDirective,
    "companion-card": CardDirective,
    "companion-chapters": ChaptersDirective,
    "companion-cite": CiteDirective,
    "companion-comparisons": statement_index.ComparisonsDirective,
    "companion-figure": FigureDirective,
    "companion-gallery": GalleryDirective,
    "companion-ledger": LedgerDirective,
    "companion-live": LiveDirective,
    "companion-map": MapDirective,
    "companion-notebooks": NotebooksDirective,
    "companion-picture": PictureDirective,
    "companion-route": RouteDirective,
    "companion-statements": statement_index.StatementsDirective,
}
ROLES = {
    "companion-count": CountRole(),
    "companion-file": FileRole(),
    FORMULA_ROLE: FormulaRole(),
    "companion-minutes": MinutesRole(),
    "companion-number": FigureRole(),
    **{name: ClaimRole(form) for name, form in FORMS.items()},
}


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives, roles and event handlers."""
    register()
    register_formulas(app)
    register_numbers()
    add_nodes(app)
    app.add_domain(BookDomain)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    for name, role in ROLES.items():
        app.add_role(name, role)
    app.add_role_to_domain("std", "numref", NumberedRole(lowercase=True, warn_dangling=True), override=True)
    app.add_lexer("python", FewColoursLexer)
    # the digests of this package are part of the environment: when the code changes, Sphinx reads all pages again
    app.add_config_value("companion_code", dump_json(tree_digests(MACHINE)), "env")
    # pages contain the address, in entries of BibTeX
    app.add_config_value("companion_address", "", "env")
    for script in ("companion.js", "previews.js", "contents.js", "search.js"):
        app.add_js_file(script, loading_method="defer")
    for sheet in ("companion.css", "katex.css", "navigation.css"):
        app.add_css_file(sheet)
    app.add_css_file(TOKENS, priority=600)
    app.add_css_file("design.css", priority=700)
    on_page = [fold_docstrings, statement_index.mark_boxes, link_theorems, list_cited, statement_index.number_boxes]
    on_page += [make_anchors_unique, warn_of_empty_sections]
    on_page += [collect_entries, link_terms, keep_punctuation, add_head]  # after the boxes have numbers and lines
    for event, handlers in {
        "config-inited": [_configure],
        "builder-inited": [_prepare],
        "env-get-outdated": [outdated_pages],
        "env-updated": [note_contents],
        "source-read": [_read_executed_copy],
        "doctree-read": on_page,
        "env-check-consistency": [statement_index.warn_of_faults, warn_of_undocumented_modules],
        "missing-reference": [find_work, find_figure],
        "html-page-context": [add_metadata, load_scripts, keep_texts],
    }.items():
        for handler in handlers:
            app.connect(event, handler)
    app.connect("build-finished", _complete_site, priority=900)  # after the theme has written its files
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def _configure(app: Sphinx, config: Any) -> None:
    """Add to the configuration what all books share; hide links to the repository while its address is unset."""
    project = config.companion_project = Project(Path(app.srcdir))
    config.companion_profile = os.environ.get(PROFILE, DEFAULT_PROFILE)
    config.companion_address = site_address(project) or ""
    config.html_math_renderer = RENDERER
    config.html_static_path = [*config.html_static_path, str(ASSETS)]
    config.templates_path = [*config.templates_path, str(TEMPLATES)]
    config.html_additional_pages = {**config.html_additional_pages, "search": "search.html"}
    # the name of the book above the text is for screens on which the list of pages is folded
    options = {"extra_footer": FOOTER, "article_header_start": ["toggle-primary-sidebar.html", "book-name.html"]}
    if public_address(project) is None:
        options |= {"repository_url": "", "use_repository_button": False, "launch_buttons": {}}
    config.html_theme_options = {**config.html_theme_options, **options}


def _prepare(app: Sphinx) -> None:
    """Write what pages contain digests of, and keep Sphinx from writing an index of its own for the search."""
    app.builder.search = False  # pyright: ignore[reportAttributeAccessIssue]
    copy_scripts(app)
    write_text(Path(app.outdir) / "_static" / TOKENS, tokens.css())


def make_anchors_unique(app: Sphinx, doctree: nodes.document) -> None:
    """Number the anchors that sphinx-proof repeats on a page, and warn of any other repeated anchor."""
    seen: set[str] = set()
    for index, element in enumerate(doctree.findall(nodes.Element)):
        element["ids"] = [f"{anchor}-{index}" if anchor in REPEATED else anchor for anchor in element["ids"]]
        for anchor in seen.intersection(element["ids"]):
            logger.warning(
                "Two elements on this page have the anchor %r, for example a heading and a theorem box: "
                "a link to it finds only one. Give the box another `:label:`, or the heading another title.",
                anchor, location=element,
            )  # fmt: skip
        seen.update(element["ids"])


def warn_of_empty_sections(app: Sphinx, doctree: nodes.document) -> None:
    """Warn of each heading that has neither content nor headings below it."""
    for section in doctree.findall(nodes.section):
        if all(isinstance(child, (nodes.title, nodes.comment, nodes.target)) for child in section.children):
            logger.warning(
                "The heading %r has no content. Remove it, or move the text and figures that belong to it below it.",
                section.astext(), location=section,
            )  # fmt: skip


def keep_punctuation(app: Sphinx, doctree: nodes.document) -> None:
    """Keep each formula and the punctuation around it together.

    So no line begins with a comma, and none ends with an opening bracket. A short formula and its punctuation are one
    element without line breaks. A longer one, which may break at its relations, has the punctuation in its source.
    """
    for formula in list(doctree.findall(nodes.math)):
        parent = formula.parent
        position = parent.index(formula)
        before = parent[position - 1] if position else None
        after = parent[position + 1] if position + 1 < len(parent) else None
        opening = OPENING.search(before.astext()) if isinstance(before, nodes.Text) else None
        mark = PUNCTUATION.match(after.astext()) if isinstance(after, nodes.Text) else None
        if not (opening or mark) or isinstance(parent, nodes.title):
            continue
        left = right = ""
        # by position: texts are equal if their words are, and the same punctuation can follow several formulas
        if opening:
            left, parent[position - 1] = opening[0], nodes.Text(opening.string[: opening.start()])
        if mark:
            right, parent[position + 1] = mark[0], nodes.Text(mark.string[mark.end() :])
        if is_short(formula.astext()):
            together = nodes.inline(classes=["companion-unbroken"])
            formula.replace_self(together)
            together += [nodes.Text(left), formula, nodes.Text(right)]
        else:
            formula[:] = [nodes.Text(rf"\text{{{left}}}{formula.astext()}\text{{{right}}}".replace(r"\text{}", ""))]


def _read_executed_copy(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the source of a notebook by its woven copy; its page also depends on the scripts of the chapter."""
    project, profile = app.config.companion_project, app.config.companion_profile
    if not (name := chapter_on(app.config, docname)):
        return
    for path in project.page_files(name):
        app.env.note_dependency(str(path))
    executed = project.build(profile).notebooks / f"{name}.ipynb"
    app.env.note_dependency(str(executed))
    if not executed.is_file():
        logger.warning(
            "%s has not been run in profile %r: its figures cannot be shown. Run `companion run %s --profile %s`.",
            docname, profile, name, profile, location=docname,
        )  # fmt: skip
        return
    source[0] = json.dumps(for_page(notebook_content.read(executed)))


def for_page(notebook: Content) -> Content:
    """Return the notebook as its page shows it: code is folded, and directives show the published figures."""
    return {**notebook, "cells": [part for cell in notebook["cells"] for part in _shown(cell)]}


def _shown(cell: Cell) -> list[Cell]:
    """Return a cell and the directives of its figures; those of a cell with the tag `technical` are folded."""
    if cell["cell_type"] != "code":
        return [cell]
    outputs = cell["outputs"]
    option = ":technical:\n" if TECHNICAL_TAG in notebook_content.tags(cell) else ""
    figures: list[Cell] = [
        {"cell_type": "markdown", "metadata": {}, "source": f"```{{companion-figure}} {figure}\n{option}```"}
        for figure in map(figure_shown, outputs)
        if figure
    ]
    return [_folded({**cell, "outputs": [output for output in outputs if not figure_shown(output)]}), *figures]


def _folded(cell: Cell) -> Cell:
    """Return a code cell with a fold; its first line, a comment, is the title of the fold."""
    tags = notebook_content.tags(cell)
    if BOOTSTRAP_TAG in tags:
        return cell
    if BY_HAND_TAG in tags:  # the page quotes its number by the role of a claim
        return {**cell, "metadata": {**cell["metadata"], "tags": [*tags, "remove-output"]}}
    first = "".join(cell["source"]).partition("\n")[0]
    summary = first.lstrip("# ").strip() if first.startswith("#") else "code"
    if INJECTED_TAG in tags:
        summary = "parameters of this run"
    title = summary[:1].upper() + summary[1:]
    folding = {"tags": [*tags, "hide-input"], "mystnb": {"code_prompt_show": title, "code_prompt_hide": title}}
    return {**cell, "metadata": {**cell["metadata"], **folding}}


def _complete_site(app: Sphinx, error: Exception | None) -> None:
    """Copy all files that the pages need, so that no page needs another host, and remove unused ones."""
    if error is not None or app.builder.format != "html":
        return
    out, project = Path(app.outdir), app.config.companion_project
    (out / ".nojekyll").touch()
    (out / "404.html").write_text(_not_found(project), encoding="utf-8")
    copy_files(project, app.config.companion_profile, out)
    write_index(app, out)
    draw_thumbnails(app, out)
    slim(out)
    (out / pdf_name(project)).unlink(missing_ok=True)  # it shows an earlier state of the pages
    fill_marks(project, out)


def _not_found(project: Project) -> str:
    """Return the page for unknown addresses, which needs no other file because it is served at any address."""
    front = site_address(project) or f"{project.book.name}/index.html"
    return Template((TEMPLATES / "404.html.txt").read_text(encoding="utf-8")).substitute(front=front)
