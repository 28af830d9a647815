"""The repository's public address: one definition, equal copies, one command that writes them and takes them out."""

import re
import subprocess
from pathlib import Path

import pytest

from companion.io.errors import UserError
from companion.project import repository
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
# No account of GitHub has a name with two hyphens in a row.
OLD, NEW = "no--body/clone", "some--body/attention.book"
FILES = ("_config.yml", "README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb")

# What a book that is about to be public says of itself, besides what is laid out.
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


def url(place):
    return f"https://github.com/{place}"


@pytest.fixture
def private(clone):
    """The clone with a citation, a README and buttons, while its address is unset."""
    for path, text in PUBLIC.items():
        clone.write(path, text)
    clone.replace("_config.yml", "\nexecute:\n", BUTTONS)
    assert repository.outdated_copies(clone.project) == []
    return clone


@pytest.fixture
def public(private):
    """The same, once its address is set."""
    assert private.companion("set-url", url(OLD)).returncode == 0
    return private


def test_every_copy_says_what_the_definition_says():
    """On the real repository: notebooks, README, pyproject.toml, CITATION.cff."""
    assert repository.outdated_copies(Project(ROOT)) == []


def test_while_the_address_is_unset_no_file_names_an_account_for_this_book():
    """Neither in a link nor as the name of an image; links to the code of others stay, and so do tests that set it."""
    project = Project(ROOT)
    if repository.public_address(project):
        pytest.skip("the address is set")
    listed = subprocess.run(["git", "grep", "-lI", ""], cwd=ROOT, check=True, capture_output=True, text=True)
    name = re.escape(project.metadata["name"])
    links = [rf"github\.com/[\w-]+/{name}", rf"github\.io/{name}", r"v2/gh/\w", r"google\.com/github/\w"]
    names_an_account = re.compile("|".join([r"\bO[W]NER\b", *links, rf"[\w-]+/{name}:"]))
    setting_it = {"tests/companion/test_address.py", "tests/site/test_broken.py"}
    faults = [
        f"{path}: {found[0]}"
        for path in listed.stdout.splitlines()
        if path not in setting_it
        for found in names_an_account.finditer((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_new_book_names_no_account(pristine):
    """Its address is unset, and its first cell has no code that could install anything."""
    assert repository.public_address(pristine.project) is None
    assert repository.site_address(pristine.project) is None
    for path in pristine.root.rglob("*"):
        if path.is_file():
            assert "github.com/" not in path.read_text(encoding="utf-8"), path
    assert '"pip"' not in "".join(repository.bootstrap_cell(pristine.project)["source"])


def test_one_command_writes_the_definition_and_every_copy(private):
    """A second call changes nothing, and links to the code of others stay."""
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


def test_another_address_leaves_nothing_of_the_first(public):
    assert public.companion("set-url", url(NEW) + ".git").returncode == 0
    for name in FILES:
        text = (public.root / name).read_text()
        assert NEW in text, name
        assert OLD not in text, name


@pytest.mark.parametrize("arguments", [["--unset"], [""]], ids=["option", "empty"])
def test_unset_restores_every_byte(private, arguments):
    """And set again, every byte of the set state."""
    before = private.tree()
    assert private.companion("set-url", url(OLD)).returncode == 0
    between = private.tree()
    assert {name for name in before if before[name] != between[name]} == set(FILES)
    finished = private.companion("set-url", *arguments)
    assert finished.returncode == 0
    assert "Address: none\n" in finished.stdout
    assert private.tree() == before
    assert private.companion("set-url", url(OLD)).returncode == 0
    assert private.tree() == between


def test_the_real_files_make_the_round_trip(tmp_path):
    """Those of this repository, in a copy: each names the address once it is set, and then is as it was."""
    names = ["_config.yml", "_toc.yml", "pyproject.toml", "README.md", "CITATION.cff", "book/measures.ipynb"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    project = Project(tmp_path)
    repository.write_copies(project, "")
    before = {name: (tmp_path / name).read_bytes() for name in names}
    repository.write_copies(project, url(NEW))
    for name in names:
        assert (NEW.encode() in (tmp_path / name).read_bytes()) == (name != "_toc.yml"), name
    repository.write_copies(project, "")
    assert {name: (tmp_path / name).read_bytes() for name in names} == before


def test_an_address_and_unset_contradict_each_other(private):
    before = private.tree()
    finished = private.companion("set-url", url(OLD), "--unset")
    assert finished.returncode == 2
    assert "not both" in finished.stderr
    assert private.tree() == before


def test_a_configuration_without_a_place_for_the_address_is_named(private):
    """Nothing is written."""
    private.replace("_config.yml", '  url: ""\n', "")
    before = private.tree()
    finished = private.companion("set-url", url(OLD))
    assert finished.returncode == 2
    assert "_config.yml needs a line `repository:`" in " ".join(finished.stderr.split())
    assert private.tree() == before


@pytest.mark.parametrize("name", ["README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb"])
def test_a_copy_that_differs_is_named(public, name):
    path = public.root / name
    path.write_text(path.read_text().replace(OLD, "any--body/clone"))
    assert repository.outdated_copies(public.project) == [name]


def test_files_that_a_book_has_not_are_no_copies(clone):
    """A new book has no citation."""
    for name in ("CITATION.cff", "README.md"):
        (clone.root / name).unlink(missing_ok=True)
    assert repository.outdated_copies(clone.project) == []


def test_a_notebook_without_its_bootstrap_cell_is_named(clone):
    path = clone.project.notebook("toy")
    path.write_text(path.read_text().replace('"bootstrap"\n', '"other"\n'))
    assert repository.outdated_copies(clone.project) == ["book/toy.ipynb"]


def test_bootstrap_installs_this_book(public):
    """Its distribution, from its address, with what its notebooks ask for, where its chapters are not found."""
    source = "".join(repository.bootstrap_cell(public.project)["source"])
    assert 'find_spec("clone")' in source
    assert f'"clone @ git+{url(OLD)}"' in source
    public.replace("pyproject.toml", 'name = "clone"', 'name = "a-paper"')
    assert '"a-paper @ git+' in "".join(repository.bootstrap_cell(public.project)["source"])
    heading = "[tool.hatch.build.targets.wheel]\n"
    public.replace("pyproject.toml", heading, f"[project.optional-dependencies]\nnotebook = []\n\n{heading}")
    assert '"a-paper[notebook] @ git+' in "".join(repository.bootstrap_cell(public.project)["source"])


@pytest.mark.parametrize("text", ["github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_what_is_no_address_is_refused(clone, text):
    """As an argument, and where somebody wrote it into the definition."""
    with pytest.raises(UserError, match=r"must have the form https://github\.com/<account>/<repository>"):
        repository.write_copies(clone.project, text)
    clone.replace("_config.yml", 'url: ""', f"url: {text}")
    with pytest.raises(UserError, match=r"must have the form https://github\.com/<account>/<repository>"):
        repository.public_address(clone.project)
