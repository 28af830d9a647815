"""What must fail the build does: each test breaks one thing in a small clone of the book."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from companion import figure_set
from companion.house import House
from companion.scaffold import figure_of, lay_out

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"index.md": "# Toy\n\nA page.\n", "claims.md": "# Claims\n\n```{companion-ledger}\n```\n"}
CONTENTS = """\
format: jb-book
root: book/index
parts:
  - caption: Toy
    chapters: []
  - caption: Reference
    chapters:
      - file: book/claims
      - file: book/references
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> House:
    """A clone with one scaffolded notebook, run and built."""
    house = House(tmp_path_factory.mktemp("book"))
    for name in ("lib", "companion", "_config.yml", "Snakefile", "requirements.lock", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, house.root / name)
    for package in ("experiments", "plotting"):
        (house.root / "lib" / package / "__init__.py").write_text('"""Contents."""\n')
    house.book.mkdir()
    for name in ("_assets", "_extra", "_images"):
        shutil.copytree(ROOT / "book" / name, house.book / name)
    for name in ("references.bib", "references.md"):
        shutil.copyfile(ROOT / "book" / name, house.book / name)
    for name, text in PAGES.items():
        (house.book / name).write_text(text)
    (house.root / "_toc.yml").write_text(CONTENTS)
    house.profiles.mkdir()
    for profile in ("smoke", "full"):
        (house.profiles / f"{profile}.yml").write_text("# sizes\n")
    lay_out(house, "toy")
    assert companion(house, "build").returncode == 0
    return house


@pytest.fixture
def book(built: House, tmp_path) -> House:
    """A copy of it, to break."""
    shutil.copytree(built.root, tmp_path / "book", ignore=shutil.ignore_patterns(".doctrees", ".snakemake"))
    return House(tmp_path / "book")


def companion(house: House, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "companion", *arguments],
        cwd=house.root,
        env={**os.environ, "PYTHONPATH": str(house.root)},
        capture_output=True,
        text=True,
        check=False,
    )


def edit_record(house: House, change) -> None:
    path = house.published / "toy" / f"{figure_of('toy')}{figure_set.RECORD}"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_unbroken_book_builds_again(book: House):
    """The control: without damage the same command succeeds."""
    finished = companion(book, "book")
    assert finished.returncode == 0, finished.stderr


def test_broken_link_fails(book: House):
    (book.book / "index.md").write_text(PAGES["index.md"] + "\nSee {doc}`nowhere`.\n")
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "nowhere" in finished.stderr


def test_missing_figure_fails(book: House):
    (book.published / "toy" / f"{figure_of('toy')}.dark.svg").unlink()
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert f"{figure_of('toy')}.dark.svg is missing" in finished.stderr


def test_altered_data_fails(book: House):
    """A CSV that is not the one the record names is not shown as if it were."""
    path = book.published / "toy" / f"{figure_of('toy')}.csv"
    path.write_text(path.read_text().replace("10,", "11,", 1))
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "is not the file its record names" in finished.stderr


def test_figure_without_alt_text_fails(book: House):
    edit_record(book, lambda record: record.update(alt=" "))
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "alt text" in finished.stderr


def test_claim_without_source_fails(book: House):
    edit_record(book, lambda record: record["claims"][0].update(source=""))
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "needs a source" in finished.stderr


def test_unknown_claim_in_prose_fails(book: House):
    (book.book / "index.md").write_text(PAGES["index.md"] + "\nMeasured: {claim}`toy-rat`.\n")
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "Did you mean 'toy-rate'" in finished.stderr


def test_notebook_not_run_fails(book: House):
    """A page whose executed copy is missing cannot be shown as if it had been run."""
    (book.build("laptop").notebooks / "toy.ipynb").unlink()
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "has not been run" in finished.stderr


def test_failure_is_not_forgotten(book: House):
    """The same command fails again: Sphinx must not remember the page it warned about as read."""
    (book.book / "index.md").write_text(PAGES["index.md"] + "\nSee {doc}`nowhere`.\n")
    assert companion(book, "book").returncode == 2
    assert companion(book, "book").returncode == 2
