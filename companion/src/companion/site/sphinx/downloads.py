"""Files that the site offers for download: those of every figure, the schema of records, executed notebooks.

`figures/<notebook>/<figure>.csv`, `figures/<notebook>/<notebook>-data.zip` (the tables and records of a chapter),
`figures/record.schema.json` and `notebooks/<notebook>.ipynb` have the same address in every build. A PNG is made by the
browser (`png.js`); the site has only those that link previews show.
"""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.figures import record, store
from companion.figures.record import FigureRecord
from companion.io.atomic import dump_json, write_text
from companion.project.paths import Project
from companion.site.sphinx.nodes import picture, size_of

FIGURES, NOTEBOOKS, SVG, PNG = "figures", "notebooks", ".svg", ".png"
SCHEMA = "record.schema.json"
SCHEMA_OF_CLAIMS = "claims.schema.json"
# The PNG of a figure in the metadata of a page.
PREVIEWED = re.compile(rf'property="og:image" content="[^"]*/{FIGURES}/([^"/]+/[^"/]+\.png)"')


def place_of(docname: str, file: str) -> str:
    """Return the link on page `docname` to a file of a figure, `notebook/figure.csv`, or to an executed notebook."""
    folder = NOTEBOOKS if file.endswith(".ipynb") else FIGURES
    return "../" * docname.count("/") + f"{folder}/{file}"


def folder_of(config: Any, notebook: str) -> Path:
    """Return the folder of the figures of a notebook that the site shows."""
    return config.companion_project.shown_figures(config.companion_profile) / notebook


def record_of(directive: SphinxDirective, target: str) -> FigureRecord:
    """Return the record of a figure, `notebook/figure`, on whose files the page of the directive depends.

    A damaged figure is an error, which fails a strict build.
    """
    notebook, _, figure = target.partition("/")
    folder = folder_of(directive.config, notebook)
    for path in store.files(folder, figure):
        directive.env.note_dependency(str(path))
    if faults := store.faults(folder, figure):
        raise directive.error(f"Figure {target!r} cannot be shown: {'; '.join(faults)}.")
    return store.read_record(folder, figure)


def picture_of(directive: SphinxDirective, record: FigureRecord, *, within_link: bool = False) -> nodes.Node:
    """Return the picture of a figure for the page of a directive."""
    file = f"{record.notebook}/{record.figure}{SVG}"
    alt, size = " ".join(record.alt.split()), size_of(folder_of(directive.config, record.notebook) / Path(file).name)
    return picture(file=place_of(directive.env.docname, file), alt=alt, size=size, within_link=within_link)


def archive_of(notebook: str) -> str:
    """Return the file with the tables and the records of all figures of a notebook, in the form for `place_of`."""
    return f"{notebook}/{notebook}-data.zip"


class FileRole(SphinxRole):
    """`` {companion-file}`notebook/figure.csv` `` or `` {companion-file}`title <NAME.ipynb>` ``: a link to a file.

    A link to a PNG must be below its figure, and needs scripts; without them it is hidden.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link. Its text is the title, or else the name of the file."""
        title, _, target = self.text.rpartition("<")
        file = target.rstrip(">")
        name = title.strip() or Path(file).name
        classes = ["download"]
        if file.endswith(PNG):
            file = f"{file.removesuffix(PNG)}{SVG}"
            classes += ["companion-png", "pst-js-only"]
        uri = place_of(self.env.docname, file)
        return [nodes.reference("", name, refuri=uri, internal=True, classes=classes)], []


def copy_files(project: Project, profile: str, out: Path) -> None:
    """Copy the files that `place_of` links to; files of figures that no longer exist are removed."""
    previewed = {file for page in out.rglob("*.html") for file in PREVIEWED.findall(page.read_text(encoding="utf-8"))}
    for folder in (FIGURES, NOTEBOOKS):
        shutil.rmtree(out / folder, ignore_errors=True)
        (out / folder).mkdir(parents=True)
    write_text(out / FIGURES / SCHEMA, dump_json(record.json_schema()))
    write_text(out / FIGURES / SCHEMA_OF_CLAIMS, dump_json(record.json_schema(record.NotebookClaims)))
    for name in project.notebooks():
        folder, target = project.shown_figures(profile) / name, out / FIGURES / name
        files = [path for figure in store.parts_in(folder) for path in store.files(folder, figure) if path.is_file()]
        for path in files:
            if path.suffix != PNG or f"{name}/{path.name}" in previewed:
                target.mkdir(exist_ok=True)
                shutil.copyfile(path, target / path.name)
        if files:
            _archive(files, out / FIGURES / archive_of(name))
        executed = project.build(profile).notebooks / f"{name}.ipynb"
        if executed.is_file():
            shutil.copyfile(executed, out / NOTEBOOKS / executed.name)


def _archive(files: list[Path], target: Path) -> None:
    """Write an archive of the tables and records of a chapter, without times, so that it changes only with them."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in files:
            if path.suffix in (store.DATA, store.RECORD):
                entry = zipfile.ZipInfo(f"{path.parent.name}/{path.name}")
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
