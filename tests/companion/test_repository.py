"""The repository's public address: one definition, its copies in other files, and the command that sets them."""

import re
import subprocess
from pathlib import Path

import pytest

from companion.io.errors import UserError
from companion.project import repository
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
# GitHub allows no account name with two consecutive hyphens.
OLD, NEW = "no--body/clone", "some--body/attention.book"
FILES = ("_config.yml", "README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb")

# Files of a public book that a new book lacks.
PUBLIC = {
    "CITATION.cff": 'cff-version: 1.2.0\ntitle: "Clone"\n',
    "README.md": """\
# Clone

<!-- `companion set-url` writes the badges below this line -->

[Somebody else's code](https://github.com/other--body/code), [a page](https://example.org/a/b).
""",
}
BUTTONS = """
launch_buttons:
  binderhub_url: https://mybinder.org
  colab_url: https://colab.research.google.com

execute:
"""


def url(repository_name):
    return f"https://github.com/{repository_name}"


@pytest.fixture
def private(clone):
    """A clone with a citation file, a README and launch buttons, and without a public address."""
    for path, text in PUBLIC.items():
        clone.write(path, text)
    clone.replace("_config.yml", "\nexecute:\n", BUTTONS)
    assert repository.outdated_copies(clone.project) == []
    return clone


@pytest.fixture
def public(private):
    """The same clone after its address is set."""
    assert private.companion("set-url", url(OLD)).returncode == 0
    return private


def test_every_copy_equals_the_definition():
    """This checks notebooks, README, pyproject.toml and CITATION.cff of the repository."""
    assert repository.outdated_copies(Project(ROOT)) == []


def test_no_file_names_an_account_while_the_address_is_unset():
    """Links to other projects are allowed, and so are the tests that set an address."""
    project = Project(ROOT)
    if repository.public_address(project):
        pytest.skip("the address is set")
    listed = subprocess.run(["git", "grep", "-lI", ""], cwd=ROOT, check=True, capture_output=True, text=True)
    name = re.escape(project.metadata["name"])
    links = [rf"github\.com/[\w-]+/{name}", rf"github\.io/{name}", r"v2/gh/\w", r"google\.com/github/\w"]
    names_an_account = re.compile("|".join([r"\bO[W]NER\b", *links, rf"[\w-]+/{name}:"]))
    tests_with_addresses = {"companion/tests/test_broken_books.py"}
    faults = [
        f"{path}: {match[0]}"
        for path in listed.stdout.splitlines()
        if path not in tests_with_addresses
        for match in names_an_account.finditer((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_new_book_names_no_account(pristine):
    """Its address is unset, and its bootstrap cell installs nothing."""
    assert repository.public_address(pristine.project) is None
    assert repository.site_address(pristine.project) is None
    for path in pristine.root.rglob("*"):
        if path.is_file():
            assert "github.com/" not in path.read_text(encoding="utf-8"), path
    assert '"pip"' not in "".join(repository.bootstrap_cell(pristine.project)["source"])


def test_set_url_writes_the_definition_and_every_copy(private):
    """A second call changes nothing; links to other projects stay."""
    assert private.companion("set-url", url(NEW)).returncode == 0
    assert repository.public_address(private.project) == url(NEW)
    assert repository.outdated_copies(private.project) == []
    for name in FILES:
        assert NEW in (private.root / name).read_text(), name
    assert private.project.metadata["urls"] == {"Repository": url(NEW)}
    readme = (private.root / "README.md").read_text()
    assert f"(https://mybinder.org/v2/gh/{NEW}/main?urlpath=lab/tree/book/toy.ipynb)\n" in readme
    assert f"(https://colab.research.google.com/github/{NEW}/blob/main/book/toy.ipynb)\n" in readme
    assert url("other--body/code") in readme
    assert "Changed: no file" in private.companion("set-url").stdout


@pytest.mark.parametrize("arguments", [["--unset"], [""]], ids=["option", "empty"])
def test_unset_restores_every_byte(private, arguments):
    """Setting the address again restores the second state too."""
    before = private.tree()
    assert private.companion("set-url", url(OLD)).returncode == 0
    with_address = private.tree()
    assert {name for name in before if before[name] != with_address[name]} == set(FILES)
    finished = private.companion("set-url", *arguments)
    assert finished.returncode == 0
    assert "Address: none\n" in finished.stdout
    assert private.tree() == before
    assert private.companion("set-url", url(OLD)).returncode == 0
    assert private.tree() == with_address


def test_an_address_with_unset_is_refused(private):
    before = private.tree()
    finished = private.companion("set-url", url(OLD), "--unset")
    assert finished.returncode == 2
    assert "not both" in finished.stderr
    assert private.tree() == before


def test_a_configuration_without_an_address_field_is_refused(private):
    """No file is changed."""
    private.replace("_config.yml", '  url: ""\n', "")
    before = private.tree()
    finished = private.companion("set-url", url(OLD))
    assert finished.returncode == 2
    assert "_config.yml needs a line `repository:`" in " ".join(finished.stderr.split())
    assert private.tree() == before


def test_a_notebook_without_bootstrap_cell_is_named(clone):
    path = clone.project.notebook("toy")
    path.write_text(path.read_text().replace('"bootstrap"\n', '"other"\n'))
    assert repository.outdated_copies(clone.project) == ["book/toy.ipynb"]


def test_bootstrap_installs_this_book(public):
    """It installs the distribution, with the extras of its notebooks, unless the chapters can be imported."""
    source = "".join(repository.bootstrap_cell(public.project)["source"])
    assert 'packages = {"clone": "clone"}' in source
    assert f'"clone @ git+{url(OLD)}"' in source
    public.replace("pyproject.toml", 'name = "clone"', 'name = "a-paper"')
    assert '"a-paper @ git+' in "".join(repository.bootstrap_cell(public.project)["source"])
    heading = "[project.optional-dependencies]\n"
    public.replace("pyproject.toml", heading, f"{heading}notebook = []\n")
    assert '"a-paper[notebook] @ git+' in "".join(repository.bootstrap_cell(public.project)["source"])


@pytest.mark.parametrize("text", ["github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_an_invalid_address_is_refused(clone, text):
    """It is refused as an argument and in `_config.yml`."""
    with pytest.raises(UserError, match=r"must have the form https://github\.com/<account>/<repository>"):
        repository.write_copies(clone.project, text)
    clone.replace("_config.yml", 'url: ""', f"url: {text}")
    with pytest.raises(UserError, match=r"must have the form https://github\.com/<account>/<repository>"):
        repository.public_address(clone.project)
