"""Each chapter has the sections of the template, in order, and says what it needs, takes and extends."""

import re
from pathlib import Path

import pytest

from companion.figures import store
from companion.io.yaml import read_yaml
from companion.project.notebooks import Notebook
from companion.project.paths import CONTENTS, Project
from companion.site.reading_time import of_page, unfolded_figures

PROJECT = Project(Path(__file__).parents[1])
OPENING = ["The question", "Findings"]
# A chapter has this section after the question only where a guess is common.
GUESS = "A first guess"
CLOSING = ["Limits", "Sources", "Try it"]
# A collection of interactive figures, not a chapter with a question of its own.
COLLECTIONS = {"laboratory"}
CHAPTERS = [name for name in PROJECT.notebooks() if name not in COLLECTIONS]
# Largest number of published figures that a page shows unfolded. Schematics and interactive figures do not count.
MOST_UNFOLDED = 5
# Largest numbers of words and of unfolded figures of the core, without proofs, folded parts and code.
MOST_WORDS, MOST_FIGURES = 26_000, 48
PARTS = {part["caption"]: part["chapters"] for part in read_yaml(PROJECT.root / CONTENTS)["parts"]}
CORE = [Path(chapter["file"]).name for chapter in PARTS["Core"]]
LEVELS = {"introduction", "theory", "experiment"}
NEEDS = re.compile(
    r"# .*\n\n:::\{container\} companion-needs\n(?P<line>.*) "
    r"\*\*Takes\*\* \{companion-minutes\}`(?P<name>\w+)` minutes\. \*\*Level\*\*: (?P<level>\w+)\.\n:::\n"
)
EXTENDS = re.compile(r"This supplement \*\*extends\*\* \{doc\}`(\w+)`")
SUPPLEMENTS = re.compile(r"^\*\*Supplements?\*\* to this chapter: (.*)$", re.MULTILINE)
LINK = re.compile(r"\{doc\}`(\w+)`")


def prose(name):
    """Return the Markdown cells of a notebook as one text."""
    return "\n\n".join(
        cell["source"] for cell in Notebook.named(PROJECT, name).cells if cell["cell_type"] == "markdown"
    )


def extended(name):
    """Return the chapter that the first line of a supplement names, or None."""
    found = EXTENDS.match(NEEDS.match(prose(name))["line"])
    return found and found[1]


def sections(name):
    """Return the second-level headings of a notebook, in order."""
    return [line[3:].strip() for line in prose(name).splitlines() if line.startswith("## ")]


@pytest.mark.parametrize("name", CHAPTERS)
def test_sections_of_the_template_are_in_order(name):
    headings = sections(name)
    if headings[1] == GUESS:
        del headings[1]
    assert headings[: len(OPENING)] == OPENING
    assert headings[-len(CLOSING) :] == CLOSING
    assert len(headings) > len(OPENING) + len(CLOSING)


@pytest.mark.parametrize("name", CHAPTERS)
def test_there_are_three_findings_that_name_their_figures(name):
    findings = prose(name).split("## Findings\n")[1].split("\n## ")[0]
    bullets = [bullet for bullet in findings.split("\n- ")[1:]]
    assert len(bullets) == 3
    assert all("{numref}`fig-" in bullet for bullet in bullets)


@pytest.mark.parametrize("name", CHAPTERS)
def test_exercises_are_marked_with_their_difficulty(name):
    exercises = prose(name).split("## Try it\n")[1]
    assert re.findall(r"^\*\*\d\. (\w+)[,.]", exercises, re.MULTILINE) == ["Easy", "Medium", "Hard"]


def unfolded(name):
    """Return the published figures of a notebook with data that its page does not fold, in order."""
    folder = PROJECT.published / name
    return [one for one in unfolded_figures(PROJECT, name) if not store.read_record(folder, one).is_schematic]


@pytest.mark.parametrize("name", CHAPTERS)
def test_at_most_five_published_figures_are_unfolded(name):
    assert 0 < len(unfolded(name)) <= MOST_UNFOLDED, unfolded(name)


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_line_below_the_title_names_earlier_chapters_minutes_and_level(name):
    line = NEEDS.match(prose(name))
    assert line is not None
    assert line["name"] == name
    assert line["level"] in LEVELS
    earlier = PROJECT.notebooks()[: PROJECT.notebooks().index(name)]
    assert set(LINK.findall(line["line"])) <= set(earlier)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_supplement_extends_a_chapter_of_the_core(name):
    assert (extended(name) in CORE) == (name not in CORE)


@pytest.mark.parametrize("name", CORE)
def test_a_chapter_of_the_core_links_its_supplements_at_its_end(name):
    supplements = [other for other in CHAPTERS if other not in CORE and extended(other) == name]
    listed = SUPPLEMENTS.findall(prose(name).rstrip().splitlines()[-1])
    assert [LINK.findall(line) for line in listed] == ([supplements] if supplements else [])


def test_the_core_is_short():
    times = {name: of_page(PROJECT, name) for name in CORE}
    assert sum(time.words for time in times.values()) <= MOST_WORDS, times
    assert sum(time.figures for time in times.values()) <= MOST_FIGURES, times
