"""Create a notebook with its chapter, or a book of one notebook, from the templates."""

import datetime
import keyword
import re
import sys
from importlib import metadata
from pathlib import Path
from string import Template

from ruamel.yaml import YAML

from companion.io.atomic import write_text
from companion.io.errors import UserError
from companion.project.paths import CONTENTS, Project, relative
from companion.project.repository import bootstrap_cell, dump_notebook

TEMPLATES = Path(__file__).parent / "templates"
REFERENCE_PART = "Reference"
FIRST_NOTEBOOK = "first_figure"
# An import line contains the name of a chapter twice and that of its package; it must fit the line length of ruff.
LONGEST_NAME = 30
# Folders of every book, and this package: the chapters package can have none of these names.
RESERVED_FOLDERS = ("book", "companion", "figures", "profiles", "tests")


def create_notebook(project: Project, name: str) -> list[str]:
    """Create a notebook and its chapter, add it to profiles and table of contents; return the paths of all files."""
    chapters = project.settings.chapters
    _require_name(name)
    figure = figure_of(name)
    texts = {
        project.notebook(name): _notebook(project, name),
        project.chapter(name) / "__init__.py": _fill("chapter/__init__.py.txt", name, chapters),
        project.chapter(name) / "parameters.py": _fill("chapter/parameters.py.txt", name, chapters),
        project.figure_file(name, figure).with_name("__init__.py"): _fill("chapter/figures.py.txt", name, chapters),
        project.figure_file(name, figure): _fill("chapter/figure.py.txt", name, chapters),
    }
    if existing := [relative(path, project.root) for path in (*texts, project.book / f"{name}.md") if path.exists()]:
        raise UserError(
            f"{name!r} cannot be created because these files exist: {', '.join(existing)}. Choose another name."
        )
    for path, text in texts.items():
        write_text(path, text)
    repeats, contents = {"smoke": 200, "full": 5000}, project.root / CONTENTS
    profiles = {project.profiles / f"{profile}.yml": number for profile, number in repeats.items()}
    for path, number in profiles.items():
        write_text(path, f"{path.read_text(encoding='utf-8').rstrip()}\n{name}:\n  repeats: {number}\n")
    _add_to_contents(contents, f"{project.book.name}/{name}")
    return [relative(path, project.root) for path in (*texts, *profiles, contents)]


def create_book(folder: Path, notebook: str = FIRST_NOTEBOOK) -> list[str]:
    """Create a book with one notebook in `folder`, which must be empty or missing; return the paths of all files."""
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty. A book is created in a new or empty folder.")
    package = re.sub(r"\W+", "_", folder.resolve().name.lower()).strip("_")
    _require_name(package)
    taken = {*RESERVED_FOLDERS, *sys.stdlib_module_names}
    if package in taken or package in metadata.packages_distributions():  # takes a second
        raise UserError(
            f"A package of the book is named after its folder, and {package!r} is the name of another folder of every "
            "book, of a module of Python or of an installed package. Choose another name."
        )
    templates = TEMPLATES / "book"
    for template in sorted(path for path in templates.rglob("*") if path.is_file()):
        name = template.relative_to(templates).as_posix().removesuffix(".txt").replace("__package__", package)
        text = Template(template.read_text(encoding="utf-8"))
        words, year = package.replace("_", " ").capitalize(), datetime.date.today().year
        write_text(folder / name, text.substitute(package=package, words=words, year=year))
    create_notebook(Project(folder.resolve()), notebook)
    return sorted(relative(path, folder) for path in folder.rglob("*") if path.is_file())


def figure_of(name: str) -> str:
    """Return the name of the figure of a new notebook."""
    return f"{name}_error"


def _require_name(name: str) -> None:
    is_name = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) and not keyword.iskeyword(name)
    if not is_name or len(name) > LONGEST_NAME:
        raise UserError(
            f"A name must be a Python name in lower case, words joined by underscores, such as `my_notebook`, and has "
            f"at most {LONGEST_NAME} characters, so that import lines stay short. Got {name!r}."
        )


def _fill(template: str, name: str, chapters: str) -> str:
    words = name.replace("_", " ")
    figure = figure_of(name)
    imports = [
        f"from {chapters}.{name}.figures import {figure}",
        f"from {chapters}.{name}.parameters import Parameters",
    ]
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(
        name=name,
        chapters=chapters,
        figure=figure,
        imports="\n".join(sorted([*imports, "from companion import begin"])),
        figure_dashes=figure.replace("_", "-"),
        words=words,
        Words=words.capitalize(),
        dashes=name.replace("_", "-"),
    )


def _notebook(project: Project, name: str) -> str:
    cells: list[dict] = []
    for index, block in enumerate(_fill("chapter/notebook.md.txt", name, project.settings.chapters).split("\n%%%\n")):
        kind, _, source = block.partition("\n")
        words = kind.split()
        cell = {
            "cell_type": words[0],
            "id": f"{words[0]}-{index}",
            "metadata": {"tags": words[1:]} if words[1:] else {},
            "source": source.strip().splitlines(keepends=True),
        }
        cells.append(cell | ({"execution_count": None, "outputs": []} if words[0] == "code" else {}))
    cells.insert(1, bootstrap_cell(project))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return dump_notebook({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _add_to_contents(path: Path, page: str) -> None:
    """Add `page` at the end of the last part that is not the reference part."""
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    contents = yaml.load(path.read_text(encoding="utf-8"))
    parts = [part for part in contents["parts"] if part["caption"] != REFERENCE_PART]
    parts[-1]["chapters"] = [*(parts[-1].get("chapters") or []), {"file": page}]
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(contents, file)
