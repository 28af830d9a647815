"""The Sphinx extension: registers directives and roles, selects the sources of pages, and completes the site."""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import json
import os
import re
from collections.abc import MutableMapping
from pathlib import Path
from string import Template
from typing import Any

from docutils import nodes
from pydantic import JsonValue
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.typing import ExtensionMetadata

from companion.analysis.dependencies import MACHINE
from companion.build.cache_keys import tree_digests
from companion.io.atomic import dump_json
from companion.project.notebooks import BOOTSTRAP_TAG, BY_HAND_TAG, INJECTED_TAG, TECHNICAL_TAG
from companion.project.paths import DEFAULT_PROFILE, PROFILE, Project
from companion.project.repository import site_address
from companion.site import notebook_content
from companion.site.notebook_content import Cell, Content, figure_shown
from companion.site.sphinx.api_pages import ApiDirective, UsedDirective, find_work, warn_of_undocumented_modules
from companion.site.sphinx.cards import (
    CardDirective,
    ChaptersDirective,
    PictureDirective,
    draw_thumbnails,
    figures_of_cards,
)
from companion.site.sphinx.citations import CiteDirective, fill_marks, pdf_name
from companion.site.sphinx.claim_index import pages_out_of_date
from companion.site.sphinx.claim_roles import FORMS, ClaimRole
from companion.site.sphinx.design import register_design
from companion.site.sphinx.docstrings import fold_docstrings
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import FileRole, copy_files
from companion.site.sphinx.figure_directive import FigureClaims, FigureDirective
from companion.site.sphinx.figure_numbers import FigureRole, NumberedRole, find_figure, register_numbers
from companion.site.sphinx.formulas import is_short, register_formulas
from companion.site.sphinx.front_page import CountRole, MapDirective
from companion.site.sphinx.gallery import GalleryDirective
from companion.site.sphinx.highlighting import FewColoursLexer
from companion.site.sphinx.inline_text import FORMULA_ROLE, LEDGER, FormulaRole
from companion.site.sphinx.ledger import LedgerDirective, link_theorems
from companion.site.sphinx.link_previews import add_metadata, hide_repository_buttons
from companion.site.sphinx.nodes import add_nodes
from companion.site.sphinx.notebook_table import NotebooksDirective
from companion.site.sphinx.outdated_pages import note_contents, pages_with_other_content
from companion.site.sphinx.page_scripts import LiveDirective, copy_scripts, load_scripts, note_scripts
from companion.site.sphinx.postprocess import slim
from companion.site.sphinx.reading_times import MinutesRole, RouteDirective
from companion.site.sphinx.references import list_cited, register
from companion.site.sphinx.search_index import add_search, write_index
from companion.site.sphinx.statement_index import (
    ComparisonsDirective,
    StatementsDirective,
    mark_boxes,
    number_boxes,
    warn_of_faults,
)
from companion.site.sphinx.terms import link_terms

# Style sheets and scripts of all pages.
ASSETS = Path(__file__).with_name("assets")
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
    "companion-claims": FigureClaims,
    "companion-comparisons": ComparisonsDirective,
    "companion-figure": FigureDirective,
    "companion-gallery": GalleryDirective,
    "companion-ledger": LedgerDirective,
    "companion-live": LiveDirective,
    "companion-map": MapDirective,
    "companion-notebooks": NotebooksDirective,
    "companion-picture": PictureDirective,
    "companion-route": RouteDirective,
    "companion-statements": StatementsDirective,
    "companion-used": UsedDirective,
}


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives, roles and event handlers."""
    register()
    register_design(app)
    register_formulas(app)
    register_numbers()
    add_nodes(app)
    app.add_domain(BookDomain)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    for name, form in FORMS.items():
        app.add_role(name, ClaimRole(form))
    app.add_lexer("python", FewColoursLexer)
    app.add_role("companion-count", CountRole())
    app.add_role("companion-file", FileRole())
    app.add_role(FORMULA_ROLE, FormulaRole())
    app.add_role("companion-minutes", MinutesRole())
    app.add_role("companion-number", FigureRole())
    app.add_role_to_domain("std", "numref", NumberedRole(lowercase=True, warn_dangling=True), override=True)
    # the digests of this package are part of the environment: when the code changes, Sphinx reads all pages again
    app.add_config_value("companion_code", dump_json(tree_digests(MACHINE)), "env")
    # chapters show the figures of their cards
    app.add_config_value("companion_cards", {}, "env")
    app.add_js_file("companion.js", loading_method="defer")
    app.add_js_file("previews.js", loading_method="defer")
    app.add_css_file("navigation.css")
    app.add_js_file("contents.js", loading_method="defer")
    app.connect("config-inited", _choose_profile)
    app.connect("config-inited", hide_repository_buttons)
    app.connect("builder-inited", copy_scripts)
    app.connect("env-get-outdated", pages_out_of_date)
    app.connect("env-get-outdated", pages_with_other_content)
    app.connect("env-updated", note_contents)
    app.connect("source-read", _read_executed_copy)
    app.connect("source-read", note_scripts)
    app.connect("doctree-read", fold_docstrings)
    app.connect("doctree-read", mark_boxes)
    app.connect("doctree-read", link_theorems)
    app.connect("doctree-read", list_cited)
    app.connect("doctree-read", number_boxes)
    app.connect("doctree-read", make_anchors_unique)
    app.connect("doctree-read", warn_of_empty_sections)
    add_search(app)  # after the boxes have their numbers
    app.connect("doctree-read", link_terms)
    app.connect("doctree-read", keep_punctuation)
    app.connect("env-check-consistency", warn_of_faults)
    app.connect("env-check-consistency", warn_of_undocumented_modules)
    app.connect("missing-reference", find_work)
    app.connect("missing-reference", find_figure)
    app.connect("html-page-context", _mend_page)
    app.connect("html-page-context", add_metadata)
    app.connect("html-page-context", load_scripts)
    app.connect("build-finished", _complete_site, priority=900)  # after the theme has written its files
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def _choose_profile(app: Sphinx, config: Any) -> None:
    config.html_static_path = [*config.html_static_path, str(ASSETS)]
    config.companion_project = Project(Path(app.srcdir))
    config.companion_profile = os.environ.get(PROFILE, DEFAULT_PROFILE)
    config.companion_cards = figures_of_cards(config.companion_project)


def _mend_page(
    app: Sphinx, pagename: str, templatename: str, context: MutableMapping[str, Any], doctree: nodes.document | None
) -> None:
    if pagename == f"{app.config.companion_project.book.name}/{LEDGER}":
        app.add_js_file("ledger.js")
    if "body" in context:
        # docutils marks the bibliography as a list, but its children are not list items
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


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
    """Replace the source of a notebook by its woven copy, with the outputs of the last run."""
    project, profile = app.config.companion_project, app.config.companion_profile
    folder, _, name = docname.rpartition("/")
    if folder != project.book.name or name not in project.notebooks():
        return
    executed = project.build(profile).notebooks / f"{name}.ipynb"
    app.env.note_dependency(str(executed))
    if not executed.is_file():
        logger.warning(
            "%s has not been run in profile %r: its figures cannot be shown. Run `companion run %s --profile %s`.",
            docname, profile, name, profile, location=docname,
        )  # fmt: skip
        return
    source[0] = json.dumps(fold_code(show_figures(notebook_content.read(executed))))


def fold_code(notebook: Content) -> Content:
    """Return the notebook with every code cell folded; its first line, a comment, is the title of the fold."""
    return {**notebook, "cells": [_folded(cell) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]}


def _folded(cell: Cell) -> Cell:
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
    prompts: JsonValue = {"code_prompt_show": title, "code_prompt_hide": title}
    return {**cell, "metadata": {**cell["metadata"], "tags": [*tags, "hide-input"], "mystnb": prompts}}


def show_figures(notebook: Content) -> Content:
    """Return the notebook with each published output replaced by a `{companion-figure}` directive.

    The figures of a cell with the tag `technical` are folded.
    """
    cells: list[Cell] = []
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        figures = [figure for figure in map(figure_shown, outputs) if figure is not None]
        if not figures:
            cells.append(cell)
            continue
        cells.append({**cell, "outputs": [output for output in outputs if figure_shown(output) is None]})
        for index, figure in enumerate(figures):
            option = ":technical:\n" if TECHNICAL_TAG in notebook_content.tags(cell) else ""
            directive = f"```{{companion-figure}} {figure}\n{option}```"
            cells.append({"cell_type": "markdown", "id": f"{cell['id']}-{index}", "metadata": {}, "source": directive})
    return {**notebook, "cells": cells}


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
