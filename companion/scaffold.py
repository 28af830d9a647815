"""`companion new NAME`: a notebook that runs, in every room where one has something; then make it yours."""

import keyword
import re
from pathlib import Path
from string import Template

from ruamel.yaml import YAML

from companion.address import bootstrap_cell, dump_notebook, public_address
from companion.atomic import write_text
from companion.freshness import BOOK
from companion.house import House, relative
from companion.mistakes import Mistake

TEMPLATES = Path(__file__).parent / "templates"
REFERENCE_PART = "Reference"


def lay_out(house: House, name: str) -> list[str]:
    """Write notebook, experiment, plot, profile entries and the rows that name them; the files touched."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Mistake(
            f"A notebook's name is also a Python name: lower case, words joined by underscores. Got {name!r}."
        )
    if keyword.iskeyword(name) or name == BOOK:
        raise Mistake(f"{name!r} is a word of {'the build' if name == BOOK else 'Python'}. Choose another name.")
    homes = {
        house.notebook(name): _notebook(name, public_address(house)),
        house.root / "lib" / "experiments" / f"{name}.py": _fill("experiment.py.txt", name),
        house.root / "lib" / "plotting" / f"{name}.py": _fill("plotting.py.txt", name),
    }
    if taken := [relative(path, house.root) for path in (*homes, house.book / f"{name}.md") if path.exists()]:
        raise Mistake(f"{name!r} is taken: {', '.join(taken)}. Choose another name, or edit what is there.")
    for path, text in homes.items():
        write_text(path, text)
    rows = {
        house.root / "lib" / "experiments" / "__init__.py": f"from lib.experiments.{name} import {name} as {name}\n",
        house.root / "lib" / "plotting" / "__init__.py": (
            f"from lib.plotting.{name} import {figure_of(name)} as {figure_of(name)}\n"
        ),
        house.profiles / "smoke.yml": f"\n{name}:\n  prompts: 200\n",
        house.profiles / "full.yml": f"\n{name}:\n  prompts: 5000\n",
    }
    for path, row in rows.items():
        write_text(path, path.read_text(encoding="utf-8") + row)
    _add_to_contents(house.root / "_toc.yml", f"{house.book.name}/{name}")
    return [relative(path, house.root) for path in (*homes, *rows, house.root / "_toc.yml")]


def figure_of(name: str) -> str:
    """The figure of a new notebook."""
    return f"{name}_error"


def _fill(template: str, name: str) -> str:
    words = name.replace("_", " ")
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return Template(text).substitute(
        name=name,
        figure=figure_of(name),
        words=words,
        Words=words.capitalize(),
        dashes=name.replace("_", "-"),
    )


def _notebook(name: str, url: str) -> str:
    cells: list[dict] = []
    for index, block in enumerate(_fill("notebook.md.txt", name).split("\n%%%\n")):
        kind, _, source = block.partition("\n")
        words = kind.split()
        cell = {
            "cell_type": words[0],
            "id": f"{words[0]}-{index}",
            "metadata": {"tags": words[1:]} if words[1:] else {},
            "source": source.strip().splitlines(keepends=True),
        }
        cells.append(cell | ({"execution_count": None, "outputs": []} if words[0] == "code" else {}))
    cells.insert(1, bootstrap_cell(url))
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return dump_notebook({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _add_to_contents(path: Path, page: str) -> None:
    """A row at the end of the last part before the reference pages."""
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    contents = yaml.load(path.read_text(encoding="utf-8"))
    parts = [part for part in contents["parts"] if part["caption"] != REFERENCE_PART]
    parts[-1]["chapters"].append({"file": page})
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(contents, file)
