"""Notebooks that publish no figure, with and without parameters: pages that are run and show their outputs."""

import shutil

import pytest

from companion.build.status import Listing
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
    finished = with_page.companion("run", "page")
    assert finished.returncode == 0, finished.stderr
    assert "0 figures, 0 claims hold" in finished.stdout
    assert not (with_page.project.published / "page").exists()
    finished = with_page.companion("site")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    folder = with_page.project.site("laptop") / "book"
    assert "the sum is 4.14159" in (folder / "page.html").read_text(encoding="utf-8")
    front = (folder / "index.html").read_text(encoding="utf-8")
    assert "A page" in front
    assert "It has no parameters." in front


def test_a_page_stops_no_command(with_page):
    for command in ("list", "build --dry-run", "run page --parameters", "verify page", "site --published"):
        finished = with_page.companion(*command.split())
        assert finished.returncode == 0, finished.stdout + finished.stderr
    finished = with_page.companion("run", "page", "-p", "base=2")
    assert finished.returncode == 2
    assert "has no parameter 'base'" in finished.stderr
    finished = with_page.companion("run", "page", "--isolated")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "page-" in with_page.companion("list", "--runs").stdout
    assert [row.notebook for row in Listing.of(with_page.project, "laptop").rows] == ["toy"]


def test_a_notebook_with_parameters_and_no_figure_is_run(ran_clone):
    """It gets the values of the profile or of the command line."""
    ran_clone.write("book/toy.ipynb", page_notebook(parameters=True))
    ran_clone.write(
        "clone/toy/parameters.py",
        '"""P."""\n\nimport companion\n\n\nclass Parameters(companion.Parameters):\n    """P."""\n\n    base: int\n',
    )
    ran_clone.write("profiles/smoke.yml", "toy: {base: 3}\n")
    shutil.rmtree(ran_clone.root / "clone/toy/figures")
    finished = ran_clone.companion("run", "toy", "--profile", "smoke")
    assert finished.returncode == 0, finished.stderr
    executed = ran_clone.project.build("smoke").executed / "toy.ipynb"
    assert "the sum is 6.14159" in executed.read_text(encoding="utf-8")
    finished = ran_clone.companion("run", "toy")  # the published figure of the earlier version is removed
    assert finished.returncode == 0, finished.stderr
    assert "removed from figures/toy: toy_error" in finished.stdout


def test_a_notebook_whose_cell_lost_its_tag_stops_only_its_own_run(with_page):
    """Its chapter has parameters, so it is no page: papermill would keep the values of the notebook."""
    with_page.rewrite_cell("# parameters", "seed = 0\n", tags=[])
    toy = Notebook.named(with_page.project, "toy")
    with pytest.raises(UserError, match=r"exactly one cell tagged `parameters`.*Got 0"):
        check(with_page.project, toy, resolve(with_page.project, toy, "laptop"))
    finished = with_page.companion("run", "page")
    assert finished.returncode == 0, finished.stderr
    finished = with_page.companion("list")
    assert finished.returncode == 0, finished.stderr
