"""Files that the site offers for download: those of every figure, the schema of records, executed notebooks.

`figures/<notebook>/<figure>.csv`, `figures/<notebook>/<notebook>-data.zip` (the tables and records of a chapter),
`figures/record.schema.json` and `notebooks/<notebook>.ipynb` have the same address in every build. A PNG is made by the
browser (`png.js`); the site has only those that link previews show.
"""

import io
import re
import shutil
import zipfile
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from companion.figures import record, store
from companion.figures.record import FigureRecord
from companion.io.atomic import dump_json, write_bytes, write_text
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


def picture_of(docname: str, folder: Path, record: FigureRecord, *, within_link: bool = False) -> nodes.Node:
    """Return the picture of a figure, whose published files are in `folder`, for page `docname`."""
    place = place_of(docname, f"{folder.name}/{record.figure}")
    alt, size = " ".join(record.alt.split()), size_of(folder / f"{record.figure}{SVG}")
    return picture(file=f"{place}{SVG}", alt=alt, size=size, within_link=within_link)


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
    """Copy the files that `place_of` links to, and remove files of figures that no longer exist."""
    wanted = {out / FIGURES / SCHEMA, out / FIGURES / SCHEMA_OF_CLAIMS}
    previewed = {file for page in out.rglob("*.html") for file in PREVIEWED.findall(page.read_text(encoding="utf-8"))}
    write_text(out / FIGURES / SCHEMA, dump_json(record.json_schema()))
    write_text(out / FIGURES / SCHEMA_OF_CLAIMS, dump_json(record.json_schema(record.NotebookClaims)))
    for name in project.notebooks():
        folder = project.shown_figures(profile) / name
        for path in (path for figure in store.parts_in(folder) for path in store.files(folder, figure)):
            file = f"{name}/{path.name}"
            if path.is_file() and (path.suffix != PNG or file in previewed):
                wanted.add(out / FIGURES / file)
                write_bytes(out / FIGURES / file, path.read_bytes())
        if archive := _archive(folder):
            wanted.add(out / FIGURES / archive_of(name))
            write_bytes(out / FIGURES / archive_of(name), archive)
        executed = project.build(profile).notebooks / f"{name}.ipynb"
        if executed.is_file():
            wanted.add(out / NOTEBOOKS / executed.name)
            (out / NOTEBOOKS).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(executed, out / NOTEBOOKS / executed.name)
    for folder in (out / FIGURES, out / NOTEBOOKS):
        for path in folder.rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()


def _archive(folder: Path) -> bytes:
    """Return an archive of the tables and records of a chapter, without times, so that it changes only with them."""
    files = [path for figure in store.parts_in(folder) for path in store.files(folder, figure) if path.is_file()]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in files:
            if path.suffix in (store.DATA, store.RECORD):
                entry = zipfile.ZipInfo(f"{folder.name}/{path.name}")
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue() if files else b""
