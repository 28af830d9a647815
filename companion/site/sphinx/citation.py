"""The directive `{companion-cite}`: the BibTeX entry of the book, from `CITATION.cff` and the commit of the build."""

import re
import subprocess
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.io import git
from companion.io.yaml import read_yaml
from companion.project import provenance
from companion.project.paths import CITATION, Project
from companion.project.repository import public_address


class CiteDirective(SphinxDirective):
    """`{companion-cite}`: how to cite the book, with its version, and the commit and the date of the last build."""

    def run(self) -> list[nodes.Node]:
        """Return the entry as code, which has a button to copy it. The page is read again in each build."""
        project: Project = self.config.companion_project
        if not (project.root / CITATION).is_file():
            raise self.error(f"`{{companion-cite}}` needs a file {CITATION}.")
        self.env.note_reread()
        text = bibtex(project)
        return [nodes.literal_block(text, text, language="bibtex", classes=["companion-cite"])]


def bibtex(project: Project) -> str:
    """Return the BibTeX entry of the book: authors, title, version, commit and date, and its address if it is known."""
    about: dict[str, Any] = read_yaml(project.root / CITATION)
    commit, date = _commit(project)
    date = str(about.get("date-released") or date)
    fields = {
        "title": f"{{{about['title']}}}",
        "author": " and ".join(map(_author, about["authors"])),
        "version": str(about.get("version", "")),
        "year": date[:4],
        "url": public_address(project) or "",
        "note": ", ".join(filter(None, [commit and f"commit {commit}", date])),
    }
    key = re.sub(r"[^A-Za-z0-9]+", "-", str(project.metadata["name"])).strip("-")
    width = max(map(len, fields))
    lines = [f"  {name:<{width}} = {{{value}}}" for name, value in fields.items() if value]
    return f"@software{{{key},\n" + ",\n".join(lines) + "\n}"


def _author(author: dict[str, str]) -> str:
    """Return a person as `Family, Given`, and the name of a group in braces, which BibTeX does not take apart."""
    if "name" in author:
        return f"{{{author['name']}}}"
    return f"{author['family-names']}, {author['given-names']}"


def _commit(project: Project) -> tuple[str, str]:
    """Return the commit of the book, shortened, and its date; two empty texts outside a git repository."""
    commit = provenance.commit_of(project.root)
    if commit is None:
        return "", ""
    try:
        date = git.output_of(project.root, "show", "--no-patch", "--format=%cs", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return "", ""
    return commit["commit"][:12], date.decode().strip()
