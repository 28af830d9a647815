"""The repository's public address: one definition, its copies in other files, and the command that sets them."""

import subprocess
from pathlib import Path

import pytest

from companion.project import repository
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
# GitHub allows no account name with two consecutive hyphens.
NAME = "some--body/attention.book"
URL = f"https://github.com/{NAME}"
OTHER = "https://github.com/other--body/code"
FILES = {"_config.yml", "README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb"}
README = f"""\
# Clone

<!-- `companion set-url` writes the badges below this line -->

[Somebody else's code]({OTHER}), [a page](https://example.org/a/b).
"""
BUTTONS = """
launch_buttons:
  binderhub_url: https://mybinder.org
  colab_url: https://colab.research.google.com

execute:
"""


@pytest.fixture
def book(clone):
    """A clone with a citation file, a README and launch buttons, and without a public address."""
    clone.write("CITATION.cff", 'cff-version: 1.2.0\ntitle: "Clone"\n')
    clone.write("README.md", README)
    clone.replace("_config.yml", "\nexecute:\n", BUTTONS)
    assert repository.outdated_copies(clone.project) == []
    return clone


def test_every_copy_equals_the_definition():
    """This checks notebooks, README, pyproject.toml and CITATION.cff of the repository."""
    assert repository.outdated_copies(Project(ROOT)) == []


def test_no_file_names_an_account_while_the_address_is_unset():
    """Links to other projects are allowed, and so are the tests that set an address."""
    project = Project(ROOT)
    if repository.public_address(project):
        pytest.skip("the address is set")
    name, account = project.metadata["name"], "[[:alnum:]_-]+"
    links = rf"github\.com/{account}/{name}|github\.io/{name}|v2/gh/{account}|google\.com/github/{account}"
    pattern = rf"\bO[W]NER\b|{links}|[[:alnum:]_-]/{name}:"  # a search for the whole account takes seconds
    command = ["git", "grep", "-nIE", pattern, "--", ".", ":!companion/tests/test_broken_books.py"]
    assert subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout == ""


def test_a_new_book_names_no_account(pristine):
    """Its address is unset, and its bootstrap cell installs nothing."""
    assert repository.public_address(pristine.project) is None
    assert repository.site_address(pristine.project) is None
    texts = [path.read_text(encoding="utf-8") for path in pristine.root.rglob("*") if path.is_file()]
    assert not any("github.com/" in text for text in texts)
    assert '"pip"' not in "".join(repository.bootstrap_cell(pristine.project)["source"])


@pytest.mark.parametrize("unset", ["--unset", ""], ids=["option", "empty"])
def test_set_url_writes_every_copy_and_unset_restores_every_byte(book, unset):
    """A second call changes nothing; links to other projects stay."""
    before = book.tree()
    book.succeed("set-url", URL)
    after = book.tree()
    assert {path for path in before if before[path] != after[path]} == FILES
    assert repository.public_address(book.project) == URL
    assert repository.outdated_copies(book.project) == []
    assert book.project.metadata["urls"] == {"Repository": URL}
    assert NAME in (book.root / "CITATION.cff").read_text()
    readme = (book.root / "README.md").read_text()
    assert f"(https://mybinder.org/v2/gh/{NAME}/main?urlpath=lab/tree/book/toy.ipynb)\n" in readme
    assert f"(https://colab.research.google.com/github/{NAME}/blob/main/book/toy.ipynb)\n" in readme
    assert OTHER in readme
    assert "Changed: no file" in book.succeed("set-url")
    assert "Address: none\n" in book.succeed("set-url", unset)
    assert book.tree() == before
    book.succeed("set-url", URL)
    assert book.tree() == after


FORM = "must have the form https://github.com/<account>/<repository>"


@pytest.mark.parametrize(
    ("definition", "arguments", "message"),
    [
        ('  url: ""\n', [URL, "--unset"], "not both"),
        ("", [URL], "_config.yml needs a line `repository:`"),
        *(('  url: ""\n', [text], FORM) for text in ("github.com/a/b", "https://example.org/a/b")),
        ("  url: https://github.com/a\n", [], FORM),
    ],
)
def test_a_wrong_address_is_refused(book, definition, arguments, message):
    """As an argument and in `_config.yml`; no file is changed."""
    book.replace("_config.yml", '  url: ""\n', definition)
    before, finished = book.tree(), book.companion("set-url", *arguments)
    assert finished.returncode == 2
    assert message in " ".join(finished.stderr.split())
    assert book.tree() == before


def test_a_notebook_without_bootstrap_cell_is_named(clone):
    clone.replace("book/toy.ipynb", '"bootstrap"\n', '"other"\n')
    assert repository.outdated_copies(clone.project) == ["book/toy.ipynb"]


def test_bootstrap_installs_this_book(book):
    """It installs the distribution, with the extras of its notebooks, unless the chapters can be imported."""
    repository.write_copies(book.project, URL)
    source = "".join(repository.bootstrap_cell(book.project)["source"])
    assert 'packages = {"clone": "clone"}' in source
    assert f'"clone @ git+{URL}"' in source
    book.replace("pyproject.toml", 'name = "clone"', 'name = "a-paper"')
    heading = "[project.optional-dependencies]\n"
    book.replace("pyproject.toml", heading, f"{heading}notebook = []\n")
    assert f'"a-paper[notebook] @ git+{URL}"' in "".join(repository.bootstrap_cell(book.project)["source"])
