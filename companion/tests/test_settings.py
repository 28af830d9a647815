"""The settings of a book are its table `[tool.companion]`, in a checkout and in a wheel."""

import sys

import pytest

from companion.io.errors import UserError
from companion.project.configuration import Settings

FULL = """\
[project]
name = "walks"

[tool.companion]
chapters = "episodes"
science = ["walkers", "episodes"]
context = "episodes:quiet"
device = "episodes:device"
report = ["numpy"]
"""


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a pyproject.toml and returns its settings."""

    def read(text):
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        return Settings.read(tmp_path / "pyproject.toml")

    return read


def test_table_is_read(table):
    """`science` contains the chapters package exactly once, whether the table lists it or not."""
    names = {"context": "episodes:quiet", "device": "episodes:device", "report": ("numpy",)}
    assert table(FULL) == Settings(chapters="episodes", science=("walkers", "episodes"), **names)
    assert table('[tool.companion]\nchapters = "episodes"\n') == Settings(chapters="episodes", science=("episodes",))
    assert table(f'{FULL}statements = "book/list.yml"\n').statements == "book/list.yml"
    assert table(f'{FULL}api = ["walkers"]\n').api == ("walkers",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[project]\n", r"needs a table \[tool\.companion\]"),
        ("[tool.companion\n", r"needs a table \[tool\.companion\]"),
        ("[tool.companion]\nscience = []\n", r"`chapters` .* required\. It is the package with one folder"),
        ('[tool.companion]\nchapter = "a"\nchapters = "b"\n', r"no entry 'chapter'\. Did you mean 'chapters'\?"),
        ('[tool.companion]\nchapters = 1\nsciense = ["b"]\n', r"no entry 'sciense'\. Did you mean 'science'\?"),
        ("[tool.companion]\nchapters = 1\n", r"`chapters` in \[tool\.companion\] is wrong: .*valid string.*\. Got 1"),
        ('[tool.companion]\nchapters = "a"\nscience = ["b", 1]\n', r"`science` .*valid string.*\. Got 1"),
        ('[tool.companion]\nchapters = "a"\nhours_a_step = 0\n', r"greater than 0.*hang.*\. Got 0"),
    ],
)
def test_wrong_table_is_an_error(table, text, words):
    """The message names the file, the entry and the rule."""
    with pytest.raises(UserError, match=r"pyproject\.toml.*" + words):
        table(text)


@pytest.fixture
def episodes(tmp_path, monkeypatch):
    """Import a chapters package and return its folder."""
    package = tmp_path / "somewhere/episodes"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "opened = []\ndef quiet(): opened.append(1)\ndef device(): return 17\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    __import__("episodes")
    return package


@pytest.mark.parametrize("place", ["..", "."], ids=["checkout", "wheel"])
def test_notebook_finds_the_table_of_its_book(episodes, place):
    """It is next to the package or in it."""
    (episodes / place / "pyproject.toml").write_text(FULL)
    assert Settings.of_package("episodes").chapters == "episodes"


def test_package_without_a_table_is_an_error(episodes):
    """The message names the package and its folder; a pyproject.toml without the table does not count."""
    (episodes / "../pyproject.toml").write_text("[project]\n")
    with pytest.raises(UserError, match=r"`episodes` has no table \[tool\.companion\].* in .*somewhere"):
        Settings.of_package("episodes")


def test_functions_of_the_table_are_called(episodes, table):
    """`context` is called; the result of `device` becomes text."""
    settings = table(FULL)
    settings.open_context()
    assert sys.modules["episodes"].opened == [1]
    assert settings.device_in_words() == "17"
