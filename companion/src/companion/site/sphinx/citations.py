"""BibTeX entries of the book, its figures and chapters, and the version, commit and date at the foot of every page.

Pages contain empty marks. `fill_marks` fills them in after every build, also in pages that Sphinx does not write again,
so that all pages of a site name the same commit.
"""

import datetime
import html
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.io import git
from companion.io.atomic import write_text
from companion.io.yaml import read_yaml
from companion.project import provenance
from companion.project.paths import CITATION, MARK, Project
from companion.project.repository import site_address

# A mark, by its name: `state` and `note` are commit and date after a version, `pdf` is the link to the PDF of the book.
MARKED = re.compile(r'(<span data-book="(version|state|note|year|pdf)">)(?:[^<]|<a[^>]*>[^<]*</a>)*(</span>)')
VERSION, STATE, NOTE, YEAR, PDF = (
    f'<span data-book="{name}"></span>' for name in ("version", "state", "note", "year", "pdf")
)
# In the note of an entry, while the site has no address.
NO_ADDRESS = ", not yet at a public address"
FOOTER = f'<p class="companion-version">Version {VERSION}{STATE}</p>'


def citation(project: Project, key: str, title: str, kind: str, target: str) -> nodes.Node:
    """Return the BibTeX entry of a part of the book, with a button that copies it if the browser runs scripts.

    Args:
      project: the book.
      key: the citation key.
      title: the title of the part; it may contain TeX between dollar signs.
      kind: what the part is, such as `Figure response`.
      target: the address of the part below the address of the site, which is used only if that is known.
    """
    about = read_yaml(project.root / MARK)
    fields = {
        "title": html.escape(" ".join(title.split()).rstrip(".")),
        "howpublished": html.escape(f'{kind} in "{about.get("title", "")}"'.replace("_", r"\_")),
    }
    return _entry(project, "misc", key, fields, target)


class CiteDirective(SphinxDirective):
    """`{companion-cite}`: the BibTeX entry of the book, with the authors and the title in `CITATION.cff`."""

    def run(self) -> list[nodes.Node]:
        """Return the entry."""
        project: Project = self.config.companion_project
        if not (project.root / CITATION).is_file():
            raise self.error(f"`{{companion-cite}}` needs a file {CITATION}.")
        self.env.note_dependency(str(project.root / CITATION))
        about: dict[str, Any] = read_yaml(project.root / CITATION)
        title = html.escape(f"{{{about['title']}}}")
        key = re.sub(r"[^A-Za-z0-9]+", "-", str(project.metadata["name"])).strip("-")
        entry = _entry(project, "software", key, {"title": title})
        return [nodes.container("", entry, classes=["companion-book-entry"])]


def _entry(project: Project, kind: str, key: str, fields: dict[str, str], target: str = "") -> nodes.Node:
    """Return a BibTeX entry, whose values are HTML, with a button that copies it if the browser runs scripts."""
    address = site_address(project)
    fields = {
        "author": html.escape(_authors(project)),
        **fields,
        "year": YEAR,
        "note": f"Version {VERSION}{NOTE}{'' if address else NO_ADDRESS}",
        **({"url": html.escape(address + target)} if address else {}),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    entry = "\n".join([f"@{kind}{{{html.escape(key)},", *lines, "}"])
    block = f'<div class="highlight-bibtex notranslate"><div class="highlight"><pre>{entry}\n</pre></div></div>\n'
    return nodes.raw("", block, format="html")


def _authors(project: Project) -> str:
    """Return the authors as in `CITATION.cff`, or, without this file, the author in the configuration.

    A person is `Family, Given`; the name of a group is in braces, so that BibTeX does not take it apart.
    """
    if not (project.root / CITATION).is_file():
        return f"{{{read_yaml(project.root / MARK).get('author', '')}}}"
    authors: list[dict[str, str]] = read_yaml(project.root / CITATION)["authors"]
    return " and ".join(
        f"{{{one['name']}}}" if "name" in one else f"{one['family-names']}, {one['given-names']}" for one in authors
    )


def pdf_name(project: Project) -> str:
    """Return the name of the PDF of the book."""
    return f"{project.metadata['name']}.pdf"


def fill_marks(project: Project, out: Path) -> None:
    """Write version, commit and date, and the link to the PDF if there is one, into all pages of the site in `out`."""
    values = {"version": project.metadata["version"], **_state(project)}
    pdf = out / pdf_name(project)
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(out).parts) - 1)
        values["pdf"] = f'<a class="download" href="{up}{pdf.name}">PDF of the book</a>' if pdf.is_file() else ""
        filled = MARKED.sub(lambda mark: f"{mark[1]}{values[mark[2]]}{mark[3]}", text)
        if filled != text:
            write_text(page, filled)


def _state(project: Project) -> dict[str, str]:
    """Return the marks about the checkout. Outside a git repository, commit and date are empty."""
    state = provenance.commit_of(project.root)
    if state is None:
        return {"state": "", "note": "", "year": str(read_yaml(project.root / MARK).get("copyright", ""))}
    moment = git.output_of(project.root, "log", "-1", "--format=%cs", state["commit"])
    day = datetime.date.fromisoformat(moment.decode().strip())
    commit = f"commit {state['commit'][:8]}{' with local changes' if state['modified'] else ''}"
    date = f"{day.day} {day:%B %Y}"
    return {"state": f" · {commit} · {date}", "note": f", {commit}, {date}", "year": str(day.year)}
