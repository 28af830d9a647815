"""Notebooks that publish no figure, with and without parameters: pages that are run and show their outputs."""

import shutil

import pytest

from companion.build.status import listing
from companion.io.errors import UserError
from companion.project.notebooks import Notebook
from companion.project.parameters import check, resolve
from small_books import page_notebook


@pytest.fixture
def with_page(ran_clone):
    """A book with a notebook `page` that has no parameters cell and no chapter."""
    ran_clone.add_page("page")
    return ran_clone


def test_a_page_is_run_and_shown(with_page):
    """Its outputs are on the site; there is no figure, no claim and, as the table of notebooks says, no parameter."""
    with_page.replace("book/index.md", "Every figure", "```{companion-notebooks}\n```\n\nEvery figure")
    assert "0 figures, 0 claims hold" in with_page.succeed("run", "page")
    assert not (with_page.project.published / "page").exists()
    with_page.succeed("site")
    folder = with_page.project.site("laptop") / "book"
    assert "the sum is 4.14159" in (folder / "page.html").read_text(encoding="utf-8")
    front = (folder / "index.html").read_text(encoding="utf-8")
    assert "A page" in front
    assert "It has no parameters." in front


def test_a_page_stops_no_command(with_page):
    for command in ("list", "build --dry-run", "run page --parameters", "verify page", "site --published"):
        with_page.succeed(*command.split())
    finished = with_page.companion("run", "page", "-p", "base=2")
    assert finished.returncode == 2
    assert "has no parameter 'base'" in finished.stderr
    with_page.succeed("run", "page", "--isolated")
    assert "page-" in with_page.succeed("list", "--runs")
    assert [row["notebook"] for row in listing(with_page.project, "laptop")["figures"]] == ["toy"]


def test_a_notebook_with_parameters_and_no_figure_is_run(ran_clone):
    """It gets the values of the profile or of the command line; a figure of an earlier version is removed."""
    ran_clone.write("book/toy.ipynb", page_notebook(parameters=True))
    parameters = "import companion\n\n\nclass Parameters(companion.Parameters):\n    base: int\n"
    ran_clone.write("clone/toy/parameters.py", parameters)
    ran_clone.write("profiles/smoke.yml", "toy: {base: 3}\n")
    shutil.rmtree(ran_clone.root / "clone/toy/figures")
    ran_clone.succeed("run", "toy", "--profile", "smoke")
    executed = ran_clone.project.build("smoke").executed / "toy.ipynb"
    assert "the sum is 6.14159" in executed.read_text(encoding="utf-8")
    assert "removed from figures/toy: toy_error" in ran_clone.succeed("run", "toy")


def test_a_notebook_whose_cell_lost_its_tag_stops_only_its_own_run(with_page):
    """Its chapter has parameters, so it is no page: papermill would keep the values of the notebook."""
    with_page.rewrite_cell("# parameters", "seed = 0\n", tags=[])
    toy = Notebook.named(with_page.project, "toy")
    with pytest.raises(UserError, match=r"tagged `parameters`.*Missing in the cell"):
        check(with_page.project, toy, resolve(with_page.project, toy, "laptop"))
    with_page.succeed("run", "page")
    with_page.succeed("list")
