"""What is stale: `companion list`, Snakemake and the keys themselves say the same."""

import os

import pytest

from companion import freshness
from companion.house import House


def verdicts(clone):
    """Is `toy` fresh, as the key, the list and the build graph say?"""
    listed = clone.companion("list")
    assert listed.returncode == 0, listed.stderr
    (row,) = [line for line in listed.stdout.splitlines() if "toy_error" in line]
    planned = clone.python(
        *("-m", "snakemake", "figures", "--dry-run", "--cores", "1", "--nolock", "--rerun-incomplete"),
        *("--rerun-triggers", "mtime"),
    )
    assert planned.returncode == 0, planned.stderr
    return {
        "key": freshness.is_fresh(clone.house, "toy", "laptop"),
        "list": "fresh" in row,
        "graph": "rule notebook_toy:" not in planned.stdout + planned.stderr,
    }


def nothing(clone):
    pass


def touched(clone):
    for path in clone.root.rglob("*"):
        if path.is_file():
            os.utime(path)


def reworded_docstring(clone):
    clone.replace("lib/measures.py", '"""', '"""Reworded. ')


def edited_parameter(clone):
    clone.replace("book/toy.ipynb", "prompts = 500", "prompts = 501")


def unrelated_module(clone):
    clone.replace("lib/attention.py", '"""', '"""Reworded. ')


def removed_picture(clone):
    (clone.house.build("laptop").figures / "toy/toy_error.png").unlink()


def altered_data(clone):
    path = clone.house.build("laptop").figures / "toy/toy_error.csv"
    path.write_text(path.read_text().replace("10,", "11,", 1))


STATES = {
    nothing: True,
    touched: True,
    unrelated_module: True,
    reworded_docstring: False,
    edited_parameter: False,
    removed_picture: False,
    altered_data: False,
}


@pytest.mark.parametrize(("change", "fresh"), STATES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_all_agree_on_what_is_fresh(ran_clone, change, fresh):
    """After each change: content counts, times do not; what the notebook uses counts, the rest does not."""
    change(ran_clone)
    assert verdicts(ran_clone) == {"key": fresh, "list": fresh, "graph": fresh}


def key_of(house: House, profile="laptop") -> str:
    return freshness.notebook_key(house, "toy", profile)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("book/toy.ipynb", None),
        ("lib/experiments/toy.py", None),
        ("lib/plotting/toy.py", None),
        ("lib/plotting/style.py", None),
        ("lib/experiments/registry.py", None),
        ("companion/publishing.py", None),
        ("requirements.lock", None),
        ("data/toy/long.csv", "x\n1\n"),
    ],
    ids=lambda value: value,
)
def test_key_changes_with_everything_a_figure_is_made_from(clone, path, content):
    """A byte more in any of them is another key."""
    before = key_of(clone.house)
    target = clone.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text((content or target.read_text(encoding="utf-8")) + "\n", encoding="utf-8")
    assert key_of(clone.house) != before


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "lib/attention.py",
        "lib/__init__.py",
        "lib/experiments/__init__.py",
        "book/references.md",
        "_toc.yml",
    ],
)
def test_key_stays_with_everything_else(clone, path):
    """Pages, tables of contents and other modules are not what it is made from."""
    before = key_of(clone.house)
    target = clone.root / path
    target.write_text(target.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert key_of(clone.house) == before


def test_profile_changes_its_own_key_alone(clone):
    """Editing smoke.yml leaves the default profile and the full one fresh."""
    before = {profile: key_of(clone.house, profile) for profile in ("laptop", "smoke", "full")}
    clone.replace("profiles/smoke.yml", "prompts: ", "prompts: 1")
    after = {profile: key_of(clone.house, profile) for profile in before}
    assert [profile for profile in before if after[profile] != before[profile]] == ["smoke"]


def test_comment_in_a_profile_changes_no_key(clone):
    """Nor does what it overrides elsewhere: the values count."""
    before = key_of(clone.house, "smoke")
    clone.replace("profiles/smoke.yml", "toy:", "# why\ntoy:")
    assert key_of(clone.house, "smoke") == before


@pytest.fixture
def assembled(clone):
    """A clone whose site counts as built."""
    freshness.leave_stamp(clone.house, freshness.stamp(clone.house, freshness.BOOK, "laptop"), [])
    assert freshness.is_fresh(clone.house, freshness.BOOK, "laptop")
    return clone


@pytest.mark.parametrize(
    "path",
    [
        "book/references.md",
        "book/references.bib",
        "book/toy.ipynb",
        "_toc.yml",
        "_config.yml",
        "book/_assets/companion.css",
        "companion/sphinx/figures.py",
        "lib/attention.py",
    ],
)
def test_book_is_stale_whenever_a_page_changes(assembled, path):
    """Or anything a page shows, or is shown by."""
    target = assembled.root / path
    target.write_text(target.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert not freshness.is_fresh(assembled.house, freshness.BOOK, "laptop")


def test_book_is_stale_when_a_page_is_added(assembled):
    """And fresh again when it is gone."""
    page = assembled.root / "book/added.md"
    page.write_text("# Added\n", encoding="utf-8")
    assert not freshness.is_fresh(assembled.house, freshness.BOOK, "laptop")
    page.unlink()
    assert freshness.is_fresh(assembled.house, freshness.BOOK, "laptop")


def test_book_stays_fresh_when_no_page_changes(assembled):
    """What an editor or Python leaves behind is no page."""
    for path in ("book/.ipynb_checkpoints/toy.ipynb", "lib/__pycache__/attention.pyc", "tests/test_x.py", "notes.md"):
        (assembled.root / path).parent.mkdir(parents=True, exist_ok=True)
        (assembled.root / path).write_text("x", encoding="utf-8")
    assert freshness.is_fresh(assembled.house, freshness.BOOK, "laptop")


def test_forgetting_one_target_keeps_the_others(clone):
    """Also one whose name begins alike."""
    build = clone.house.build("laptop")
    for stamp in ("toy.0123.json", "toy_two.0123.json", "book.0123.json"):
        freshness.leave_stamp(clone.house, build.stamps / stamp, [])
    freshness.forget(build, "toy")
    assert sorted(path.name for path in build.stamps.iterdir()) == ["book.0123.json", "toy_two.0123.json"]
