"""What must fail the build does: each test breaks one thing in a small book."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from companion import figure_set
from companion.house import House
from companion.scaffold import figure_of, lay_out_book


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> House:
    """A book of one notebook, as it is laid out, run and built."""
    house = House(tmp_path_factory.mktemp("books") / "paper")
    lay_out_book(house.root, "toy")
    finished = companion(house, "build")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return house


@pytest.fixture
def book(built: House, tmp_path) -> House:
    """A copy of it, to break."""
    shutil.copytree(built.root, tmp_path / "paper", ignore=shutil.ignore_patterns(".doctrees", ".snakemake"))
    return House(tmp_path / "paper")


def companion(house: House, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "companion", *arguments],
        cwd=house.root,
        env={**os.environ, "PYTHONPATH": str(house.root)},
        capture_output=True,
        text=True,
        check=False,
    )


def say(house: House, sentence: str) -> None:
    """Add a sentence to the front page."""
    page = house.book / "index.md"
    page.write_text(f"{page.read_text()}\n{sentence}\n")


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
    say(book, "See {doc}`nowhere`.")
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "nowhere" in finished.stderr


def test_missing_figure_fails(book: House):
    for suffix in (".dark.svg", ".png"):
        (book.published / "toy" / f"{figure_of('toy')}{suffix}").unlink()
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert f"{figure_of('toy')}.dark.svg is missing" in finished.stderr
    assert f"{figure_of('toy')}.png is missing" in finished.stderr


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
    say(book, "Measured: {claim}`toy-rat`.")
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "Did you mean 'toy-rate'" in finished.stderr


def test_anchor_used_twice_fails(book: House):
    """A theorem box labelled as a heading of its page is called: a link to it would find one of the two."""
    say(book, "## Slow words\n\n```{prf:remark}\n:label: slow-words\n\nSlow.\n```")
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "have the anchor 'slow-words'" in finished.stderr


def test_notebook_not_run_fails(book: House):
    """A page whose executed copy is missing cannot be shown as if it had been run, whatever was woven from it."""
    assert (book.build("laptop").notebooks / "toy.ipynb").is_file()
    (book.build("laptop").executed / "toy.ipynb").unlink()
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "has not been run" in finished.stderr


def test_other_code_than_was_run_fails(book: House):
    """Outputs are not shown below code that did not give them."""
    path = book.notebook("toy")
    path.write_text(path.read_text().replace("p.repeats, seed", "p.repeats + 1, seed"))
    finished = companion(book, "book")
    assert finished.returncode == 2
    assert "has other code than when it was run" in finished.stderr


def test_failure_is_not_forgotten(book: House):
    """The same command fails again: Sphinx must not remember the page it warned about as read."""
    say(book, "See {doc}`nowhere`.")
    assert companion(book, "book").returncode == 2
    assert companion(book, "book").returncode == 2
