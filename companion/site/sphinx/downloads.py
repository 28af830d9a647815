"""The files that the site offers: the five of every figure, and the executed notebooks, each once, under its own name.

`figures/<notebook>/<figure>.csv` and `notebooks/<notebook>.ipynb` stay what they are called from build to build.
"""

import shutil
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from companion.figures import store
from companion.project.paths import Project

FIGURES, NOTEBOOKS = "figures", "notebooks"


def place_of(docname: str, file: str) -> str:
    """A file of a figure, `notebook/figure.csv`, or an executed notebook, as the page `docname` links to it."""
    folder = NOTEBOOKS if file.endswith(".ipynb") else FIGURES
    return "../" * docname.count("/") + f"{folder}/{file}"


class FileRole(SphinxRole):
    """`` {companion-file}`notebook/figure.csv` ``: a link to the file; one to a notebook may say something else."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A link that is called like the file; a title in front of `<file>` is used instead."""
        title, _, target = self.text.rpartition("<")
        file = target.rstrip(">")
        name = title.strip() or Path(file).name
        uri = place_of(self.env.docname, file)
        return [nodes.reference("", name, refuri=uri, internal=True, classes=["download"])], []


def copy_files(project: Project, profile: str, out: Path) -> None:
    """Give the site what `place_of` promises, and nothing that was there before and no figure has any more."""
    wanted: set[Path] = set()
    for name in project.notebooks():
        folder = project.shown_figures(profile) / name
        for figure in store.names_in(folder):
            for origin in store.files(folder, figure):
                target = out / FIGURES / name / origin.name
                wanted.add(target)
                if origin.is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(origin, target)
        executed = project.build(profile).notebooks / f"{name}.ipynb"
        if executed.is_file():
            wanted.add(out / NOTEBOOKS / executed.name)
            (out / NOTEBOOKS).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(executed, out / NOTEBOOKS / executed.name)
    for folder in (out / FIGURES, out / NOTEBOOKS):
        for path in folder.rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()
