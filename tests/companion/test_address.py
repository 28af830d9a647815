"""The repository's public address: one definition, equal copies, one command that writes them."""

from pathlib import Path

import pytest

from companion import address
from companion.house import House
from companion.mistakes import Mistake

ROOT = Path(__file__).resolve().parents[2]
NEW = "https://github.com/somebody/attention.book"


def test_every_copy_says_what_the_definition_says():
    """On the real repository: notebooks, README, pyproject.toml, CITATION.cff."""
    assert address.differing(House(ROOT)) == []


def test_one_command_moves_the_definition_and_every_copy(clone):
    """Afterwards the old address stands nowhere, and a second call changes nothing."""
    old = address.public_address(clone.house)
    assert clone.companion("address", NEW).returncode == 0
    assert address.public_address(clone.house) == NEW
    assert address.differing(clone.house) == []
    owner_and_name = NEW.removeprefix("https://github.com/")
    for name in ("_config.yml", "README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb"):
        text = (clone.root / name).read_text()
        assert owner_and_name in text, name
        assert old.removeprefix("https://github.com/") not in text, name
    assert "every copy says so already" in clone.companion("address").stdout


@pytest.mark.parametrize("name", ["README.md", "pyproject.toml", "CITATION.cff", "book/toy.ipynb"])
def test_a_copy_that_differs_is_named(clone, name):
    path = clone.root / name
    path.write_text(path.read_text().replace("OWNER/large-prompt-attention", "nobody/large-prompt-attention"))
    assert address.differing(clone.house) == [name]


def test_a_notebook_without_its_bootstrap_cell_is_named(clone):
    path = clone.house.notebook("toy")
    path.write_text(path.read_text().replace('"bootstrap"\n', '"other"\n'))
    assert address.differing(clone.house) == ["book/toy.ipynb"]


@pytest.mark.parametrize("url", ["github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_what_is_no_address_is_refused(clone, url):
    with pytest.raises(Mistake, match=r"looks like https://github\.com/OWNER/NAME"):
        address.spread(clone.house, url)
