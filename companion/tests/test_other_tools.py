"""What other tools write into notebooks, sources and names of files is handled, or refused in a sentence."""

import codecs
import json
import shutil
import unicodedata

import pytest

from companion.io.errors import UserError
from companion.project.notebooks import Notebook

INJECTED = {
    "cell_type": "code",
    "execution_count": None,
    "id": "injected",
    "metadata": {"tags": ["injected-parameters"]},
    "outputs": [],
    "source": ["# Parameters\n", "seed = 5\n"],
}


def test_a_mark_before_a_source_changes_nothing(ran_clone):
    """Editors on Windows begin a file with a byte-order mark, which Python ignores."""
    for name in ("clone/toy/parameters.py", "clone/toy/figures/toy_error.py"):
        path = ran_clone.root / name
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    finished = ran_clone.companion("list", "--json")
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["figures"][0]["state"] == "fresh"
    finished = ran_clone.companion("run", "toy", "--isolated")
    assert finished.returncode == 0, finished.stderr


def test_a_source_in_another_encoding_than_its_own_is_named(ran_clone):
    path = ran_clone.root / "clone/toy/figures/toy_error.py"
    path.write_bytes(b"# \xe9\n" + path.read_bytes())
    finished = ran_clone.companion("list")
    assert finished.returncode == 2
    assert f"{path} does not have the encoding that it declares" in finished.stderr


def test_parameters_of_another_run_are_refused(ran_clone):
    """Papermill writes them into its output. Here the output was saved over the notebook."""
    ran_clone.edit_notebook(lambda notebook: notebook["cells"].insert(3, INJECTED))
    before = ran_clone.tree("figures")
    for command in ("run", "list"):
        finished = ran_clone.companion(command, *(["toy"] if command == "run" else []))
        assert finished.returncode == 2
        assert "toy.ipynb has a cell tagged `injected-parameters`" in finished.stderr
    assert ran_clone.tree("figures") == before


@pytest.mark.parametrize("metadata", [None, {"tags": None}, {"tags": "hide-parameters"}])
def test_metadata_of_another_form_is_refused(clone, metadata):
    clone.edit_notebook(lambda notebook: notebook["cells"][3].update(metadata=metadata))
    message = r"The metadata of cell 4 of .*toy\.ipynb must be a mapping, and its `tags` a list\. Got "
    with pytest.raises(UserError, match=message):
        _ = Notebook.named(clone.project, "toy").defaults


def test_a_later_format_of_notebooks_is_refused(clone):
    clone.edit_notebook(lambda notebook: notebook.update(nbformat=5))
    with pytest.raises(UserError, match=r"toy\.ipynb has format 5 of notebooks.*reads format 4"):
        _ = Notebook.named(clone.project, "toy").cells


def test_a_mark_before_a_notebook_is_named(clone):
    path = clone.project.notebook("toy")
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    with pytest.raises(UserError, match=r"toy\.ipynb begins with a byte-order mark"):
        _ = Notebook.named(clone.project, "toy").cells


def test_half_a_character_in_a_notebook_is_refused(clone):
    """A tool that cuts texts leaves half of a pair, which UTF-8 cannot hold."""
    path = clone.project.notebook("toy")
    path.write_text(path.read_text(encoding="utf-8").replace("# setup", "# setup \\ud83d"), encoding="utf-8")
    with pytest.raises(UserError, match="is not a notebook: UnicodeEncodeError"):
        _ = Notebook.named(clone.project, "toy").cells


def test_a_name_with_separate_accents_is_reported(clone):
    """It looks like the name in the table of contents."""
    composed = "notes_\N{LATIN SMALL LETTER E WITH ACUTE}"
    separate = unicodedata.normalize("NFD", composed)
    shutil.copyfile(clone.project.notebook("toy"), clone.project.notebook(separate))
    clone.replace("_toc.yml", "- file: book/toy", f"- file: book/toy\n      - file: book/{composed}")
    assert clone.project.unlisted_notebooks() == [separate]
    assert "other Unicode characters" in clone.project.why_ignored(separate)
    assert r"Rename it to 'notes_\xe9'." in clone.project.why_ignored(separate)
