"""The repository's public address: one definition, equal copies, one command that writes them."""

from pathlib import Path

import pytest

from companion.io.errors import UserError
from companion.project import repository
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
NEW = "https://github.com/somebody/attention.book"
OLD = "OWNER/clone"

# What a book that is about to be public says of itself, besides what is laid out.
PUBLIC = {
    "CITATION.cff": f'cff-version: 1.2.0\nrepository-code: "https://github.com/{OLD}"\n',
    "README.md": f"""\
# Clone

git clone https://github.com/{OLD}.git, or see [its pages](https://github.com/{OLD}) (https://github.com/{OLD}).
[Binder](https://mybinder.org/v2/gh/{OLD}/HEAD), [Colab](https://colab.research.google.com/github/{OLD}/blob/main/x).
[Somebody else's](https://example.org/a/b).
""",
}


@pytest.fixture
def public(clone):
    """The clone with a citation, a README and a project that spell its address out."""
    for path, text in PUBLIC.items():
        clone.write(path, text)
    clone.replace("pyproject.toml", "\n# What", f'\n[project.urls]\nRepository = "https://github.com/{OLD}"\n\n# What')
    assert repository.differing(clone.project) == []
    return clone


def test_every_copy_says_what_the_definition_says():
    """On the real repository: notebooks, README, pyproject.toml, CITATION.cff."""
    assert repository.differing(Project(ROOT)) == []


def test_one_command_moves_the_definition_and_every_copy(public):
    """Afterwards the old address stands nowhere, and a second call changes nothing."""
    assert public.companion("address", NEW).returncode == 0
    assert repository.public_address(public.project) == NEW
    assert repository.differing(public.project) == []
    owner_and_name = NEW.removeprefix("https://github.com/")
    for name in ("_config.yml", "README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb"):
        text = (public.root / name).read_text()
        assert owner_and_name in text, name
        assert OLD not in text, name
    assert "every copy says so already" in public.companion("address").stdout


@pytest.mark.parametrize("name", ["README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb"])
def test_a_copy_that_differs_is_named(public, name):
    path = public.root / name
    path.write_text(path.read_text().replace(OLD, "nobody/clone"))
    assert repository.differing(public.project) == [name]


def test_files_that_a_book_has_not_are_no_copies(clone):
    """A new book has neither citation nor links."""
    for name in ("CITATION.cff", "README.md"):
        (clone.root / name).unlink(missing_ok=True)
    assert repository.differing(clone.project) == []


def test_a_notebook_without_its_bootstrap_cell_is_named(clone):
    path = clone.project.notebook("toy")
    path.write_text(path.read_text().replace('"bootstrap"\n', '"other"\n'))
    assert repository.differing(clone.project) == ["book/toy.ipynb"]


def test_bootstrap_installs_this_book(clone):
    """Its distribution, from its address, with what its notebooks ask for, where its chapters are not found."""
    source = "".join(repository.bootstrap_cell(clone.project)["source"])
    assert 'find_spec("clone")' in source
    assert f'"clone @ git+https://github.com/{OLD}"' in source
    clone.replace("pyproject.toml", 'name = "clone"', 'name = "a-paper"')
    assert '"a-paper @ git+' in "".join(repository.bootstrap_cell(clone.project)["source"])
    clone.replace("pyproject.toml", "\n# What", "\n[project.optional-dependencies]\nnotebook = []\n\n# What")
    assert '"a-paper[notebook] @ git+' in "".join(repository.bootstrap_cell(clone.project)["source"])


@pytest.mark.parametrize("url", ["github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_what_is_no_address_is_refused(clone, url):
    with pytest.raises(UserError, match=r"looks like https://github\.com/OWNER/NAME"):
        repository.spread(clone.project, url)
