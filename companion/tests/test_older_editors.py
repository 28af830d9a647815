"""Notebooks as older editors write them, without ids; and the message about an exception in an extension."""

import json
import shutil

import nbformat
import pytest

from companion.io.errors import UserError
from companion.project import repository
from companion.site import jupyter_book
from companion.site.notebook_pages import weave, weave_published

BROKEN = """\
def setup(app):
    app.connect("source-read", fail)


def fail(app, page, source):
    if page == "book/toy":
        raise ValueError("this is the cause")
"""


def save_with_an_older_editor(notebook):
    """Format 4.4 has no ids. Some editors write neither the kernel nor the language."""
    notebook["nbformat_minor"], notebook["metadata"] = 4, {}
    for cell in notebook["cells"]:
        del cell["id"]


def test_notebook_without_ids_is_run_and_shown(clone):
    """It is run with other parameters than its own, and the site of the published figures is built."""
    clone.edit_notebook(save_with_an_older_editor)
    clone.succeed("run", "toy")
    clone.succeed("run", "toy", "-p", "repeats=300")
    woven = weave(clone.project, "toy", "laptop")
    nbformat.validate(nbformat.read(woven, as_version=nbformat.NO_CONVERT))
    clone.succeed("site", "--published")
    page = (clone.project.site("laptop") / "book/toy.html").read_text(encoding="utf-8")
    assert "✓ 1 claim holds" in page


def test_repeated_ids_do_not_matter(ran_clone):
    """The woven notebook has none, so it is valid, and an unchanged page is not built again."""
    for cell in (2, 3):
        ran_clone.edit_notebook(lambda notebook, cell=cell: notebook["cells"][cell].update(id="same"))
    woven = weave_published(ran_clone.project, "toy")
    first = woven.read_bytes()
    nbformat.validate(nbformat.read(woven, as_version=nbformat.NO_CONVERT))
    assert weave_published(ran_clone.project, "toy").read_bytes() == first


def test_a_notebook_without_ids_gets_a_first_cell_without_id(clone):
    """Format 4.4 allows no ids, and Jupyter would report an invalid notebook."""
    clone.edit_notebook(save_with_an_older_editor)
    repository.write_copies(clone.project)
    cells = json.loads(clone.project.notebook("toy").read_text(encoding="utf-8"))["cells"]
    assert not any("id" in cell for cell in cells)
    assert repository.outdated_copies(clone.project) == []


def test_an_exception_in_an_extension_is_reported_with_its_line(ran_clone):
    """The message names the page, the line of the extension and the exception, and no line of Jupyter Book.

    Warnings before the exception are reported, too.
    """
    shutil.rmtree(ran_clone.project.generated)
    ran_clone.write("broken.py", BROKEN)
    ran_clone.replace("book/index.md", "Every figure", "```{unknown}\n```\n\nEvery figure")
    ran_clone.replace(
        "_config.yml", "      - companion.site.sphinx\n", "      - companion.site.sphinx\n      - broken\n"
    )
    with pytest.raises(UserError) as caught:
        jupyter_book.build_site(ran_clone.project, "laptop", published=True)
    message = str(caught.value)
    assert "WARNING: Unknown directive type: 'unknown'" in message
    assert "book/toy\n" in message
    assert f'File "{ran_clone.root / "broken.py"}", line 7, in fail\n' in message
    assert "\nValueError: this is the cause\n" in message
    assert "click" not in message
    assert "There was an error in building your book" not in message


def test_the_last_lines_of_a_log_without_warning_and_exception_are_reported():
    lines = [str(number) for number in range(30)]
    assert jupyter_book.explain_log("\n".join(lines)) == lines[10:]
