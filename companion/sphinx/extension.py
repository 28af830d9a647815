"""What happens when the book is assembled: which source is read, what is copied into the site."""

import importlib.metadata
import json
import os
import shutil
from pathlib import Path
from string import Template
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from companion.address import public_address
from companion.atomic import dump_json
from companion.freshness import tree_digests
from companion.house import DEFAULT_PROFILE, MIME, PROFILE, House
from companion.scaffold import TEMPLATES
from companion.sources import MACHINE
from companion.sphinx.claims import forget_page, pages_out_of_date
from companion.sphinx.contents import NotebooksDirective
from companion.sphinx.figures import ClaimRole, FigureDirective
from companion.sphinx.ledger import LEDGER, LedgerDirective, link_theorems
from companion.sphinx.statements import StatementsDirective, mark_boxes, tell_faults

# The style of what hangs under a figure, and the ledger's filter.
ASSETS = Path(__file__).with_name("assets")
logger = logging.getLogger(__name__)
# Anchors that sphinx-proof gives to the inside of every box and to every proof; nothing links to them.
REPEATED = {"proof", "proof-content"}
MATHJAX = ("tex-chtml-full.js", "output/chtml/fonts/woff-v2")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register directive, role and events."""
    app.add_directive("companion-figure", FigureDirective)
    app.add_directive("companion-ledger", LedgerDirective)
    app.add_directive("companion-notebooks", NotebooksDirective)
    app.add_directive("companion-statements", StatementsDirective)
    app.add_role("claim", ClaimRole())
    # pages remember what rendered them: when the code here changes, Sphinx reads them all again
    app.add_config_value("companion_code", dump_json(tree_digests(MACHINE)), "env")
    app.add_css_file("companion.css")
    app.connect("config-inited", _choose_profile)
    app.connect("env-get-outdated", pages_out_of_date)
    app.connect("env-purge-doc", forget_page)
    app.connect("source-read", _read_executed_copy)
    app.connect("doctree-read", mark_boxes)
    app.connect("doctree-read", link_theorems)
    app.connect("doctree-read", name_once)
    app.connect("env-check-consistency", tell_faults)
    app.connect("html-page-context", _mend_page)
    app.connect("build-finished", _complete_site)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def _choose_profile(app: Sphinx, config) -> None:
    config.html_static_path = [*config.html_static_path, str(ASSETS)]
    config.companion_house = House(Path(app.srcdir))
    config.companion_profile = os.environ.get(PROFILE, DEFAULT_PROFILE)


def _mend_page(app: Sphinx, pagename: str, templatename: str, context, doctree) -> None:
    if pagename == f"{app.config.companion_house.book.name}/{LEDGER}":
        app.add_js_file("ledger.js")
    if "body" in context:
        # docutils calls the bibliography a list, whose children then would have to be list items, which they are not
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def name_once(app: Sphinx, doctree: nodes.document) -> None:
    """Every anchor of a page once: those sphinx-proof repeats are numbered, any other repetition is reported."""
    seen: set[str] = set()
    for place, element in enumerate(doctree.findall(nodes.Element)):
        element["ids"] = [f"{anchor}-{place}" if anchor in REPEATED else anchor for anchor in element["ids"]]
        for anchor in seen.intersection(element["ids"]):
            logger.warning(
                "Two things on this page have the anchor %r, a heading and a theorem box perhaps: "
                "a link to it finds only one. Give the box another `:label:`, or the heading other words.",
                anchor, location=element,
            )  # fmt: skip
        seen.update(element["ids"])


def _read_executed_copy(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give Sphinx the woven copy of a notebook, today's prose and the last run's outputs, in place of its source."""
    house, profile = app.config.companion_house, app.config.companion_profile
    folder, _, name = docname.rpartition("/")
    if folder != house.book.name or name not in house.notebooks():
        return
    executed = house.build(profile).notebooks / f"{name}.ipynb"
    app.env.note_dependency(str(executed))
    if not executed.is_file():
        logger.warning(
            "%s has not been run in profile %r: its figures cannot be shown. Run `companion run %s --profile %s`.",
            docname, profile, name, profile, location=docname,
        )  # fmt: skip
        return
    source[0] = json.dumps(show_figures(json.loads(executed.read_text(encoding="utf-8"))))


def show_figures(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with each published output replaced by the directive that shows the figure and its data."""
    cells = []
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        shown = [output["data"][MIME]["figure"] for output in outputs if MIME in output.get("data", {})]
        if not shown:
            cells.append(cell)
            continue
        cells.append({**cell, "outputs": [output for output in outputs if MIME not in output.get("data", {})]})
        for index, figure in enumerate(shown):
            directive = f"```{{companion-figure}} {figure}\n```"
            cells.append({"cell_type": "markdown", "id": f"{cell['id']}-{index}", "metadata": {}, "source": directive})
    return {**notebook, "cells": cells}


def _complete_site(app: Sphinx, error: Exception | None) -> None:
    """Copy MathJax into the site, so that no page asks another host, and tell Pages to serve every file."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    (out / ".nojekyll").touch()
    (out / "404.html").write_text(_not_found(app.config.companion_house), encoding="utf-8")
    origin = Path(str(importlib.metadata.distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline")))
    for part in MATHJAX:
        source, target = origin / "static" / "mathjax" / part, out / "_static" / "mathjax" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)


def _not_found(house: House) -> str:
    """A page that needs no other file, because it is served at whatever address was asked for."""
    owner, name = public_address(house).removeprefix("https://github.com/").split("/")
    return Template((TEMPLATES / "404.html.txt").read_text(encoding="utf-8")).substitute(
        front=f"https://{owner.lower()}.github.io/{name}/"
    )
