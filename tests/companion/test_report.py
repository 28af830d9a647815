"""The page of a run with parameters of one's own: what is mine beside what is published, from disk, for everybody."""

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from companion.figures import store
from companion.runs import report
from companion.runs.custom_runs import Run

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
BROWSER = """#!/bin/sh
printf %s "$1" > "$(dirname "$0")/opened"
"""


class Reader(HTMLParser):
    """What a page says, which tags it has, and what it loads or leads to."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.links, self.alts = "", [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.alts += [value for name, value in attrs if name == "alt"]
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset")]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def disproved(ran, tmp_path_factory):
    """A clone that is published, whose claim was then made to expect what is not true, run with `--open`."""
    folder = tmp_path_factory.mktemp("disproved")
    clone = ran.copy_to(folder / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    (folder / "browser").write_text(BROWSER)
    (folder / "browser").chmod(0o755)
    clone.environment = clone.environment | {"BROWSER": str(folder / "browser")}
    clone.finished = clone.companion("run", "toy", "-p", "seed=1", "--open")
    (clone.own,) = clone.project.runs.iterdir()
    clone.opened = folder / "opened"
    return clone


@pytest.fixture
def page(disproved):
    return Reader((disproved.own / "index.html").read_text(encoding="utf-8"))


def test_page_is_named_and_opened_though_a_claim_fails(disproved):
    """Exit code 3 as ever."""
    assert disproved.finished.returncode == 3
    assert f"Beside what is published: {disproved.own / 'index.html'}" in disproved.finished.stderr
    assert disproved.opened.read_text() == (disproved.own / "index.html").as_uri()


def test_page_says_what_was_changed_and_by_what_it_was_computed(page, disproved):
    """The parameter before and now, and no other; seconds, Python, packages."""
    assert re.search(r"parameterpublishedhere\s*seed01\s*Profile laptop, computed 2\d{3}-", page.text)
    origin = Run(disproved.project, disproved.own.name).origin
    assert origin
    assert f"in {origin['seconds']:.0f} s" in page.text
    assert f"numpy {origin['versions']['numpy']}" in page.text


def test_page_has_both_verdicts_and_both_numbers(page, disproved):
    """Mine fails, the published one held."""
    (mine,) = store.read_record(disproved.own / "figures/toy", FIGURE).claims
    (published,) = store.read_record(disproved.project.published / "toy", FIGURE).claims
    assert f"✗ {mine.statement}" in page.text
    assert f"Measured {mine.measured:.4g}, published {published.measured:.4g} ✓" in page.text
    assert "✗ 0 of 1" in page.text


def test_page_names_what_moved_furthest(page):
    """In tolerances: another seed moves a measured column, and within five standard errors."""
    moved = re.search(r"Furthest moved: squared_error, ([0-9.]+) tolerances\. A rebuild may do so\.", page.text)
    assert moved
    assert 0 < float(moved[1]) < 1


def test_page_shows_both_pictures_in_both_themes(page, disproved):
    """Pairs of pictures that differ; all links lead to files of the run's own folder."""
    pictures = [link for link in page.links if link.endswith(".svg")]
    mine, published = f"figures/toy/{FIGURE}", f"published/{FIGURE}"
    assert {f"{base}{ending}" for base in (mine, published) for ending in (".svg", ".dark.svg")} == set(pictures)
    files = {link: (disproved.own / link).resolve() for link in page.links if not link.startswith("#")}
    assert all(path.is_file() and path.is_relative_to(disproved.own) for path in files.values())
    assert files[f"{mine}.svg"].read_bytes() != files[f"{published}.svg"].read_bytes()
    shown = disproved.project.published / "toy" / f"{FIGURE}.dark.svg"
    assert files[f"{published}.dark.svg"].read_bytes() == shown.read_bytes()


def test_page_is_written_again_though_the_run_is_not(disproved, tmp_path):
    """What is published may have changed since; the numbers stay where they are, and without `--open` nothing opens."""
    clone = disproved.copy_to(tmp_path / "clone")
    (own,) = clone.project.runs.iterdir()
    before = clone.tree("_build/runs")
    for folder in (clone.project.published, own / "published"):
        shutil.rmtree(folder)
    (tmp_path / "browser").write_text(BROWSER)
    finished = clone.companion("run", "toy", "-p", "seed=1")
    assert finished.returncode == 3
    after = clone.tree("_build/runs")
    assert {path for path in before if after.get(path) != before[path]} == {
        f"_build/runs/{own.name}/{path}"
        for path in ("index.html", f"published/{FIGURE}.svg", f"published/{FIGURE}.dark.svg")
    }
    assert "This figure is not published." in (own / "index.html").read_text(encoding="utf-8")
    assert not (tmp_path / "opened").exists()


@pytest.fixture
def own_run(ran_clone):
    """A run whose folder holds what `companion run toy` left, its record and table changed; its page, read."""

    def make(record=lambda record: None, table=lambda text: text):
        build, own = ran_clone.project.build("laptop"), ran_clone.project.own_build("toy-12345678")
        for kind in ("figures", "tables", "executed"):
            shutil.copytree(build.folder / kind, own.folder / kind)
        path = own.figures / "toy" / f"{FIGURE}.json"
        said = json.loads(path.read_text(encoding="utf-8"))
        record(said)
        path.write_text(json.dumps(said), encoding="utf-8")
        path = own.tables / "toy" / f"{FIGURE}.csv"
        path.write_text(table(path.read_text(encoding="utf-8")), encoding="utf-8")
        return Reader(report.write(ran_clone.project, "toy-12345678").read_text(encoding="utf-8"))

    return make


def test_what_records_say_is_text_not_markup(own_run):
    """Whatever signs it has, in every place where a record is shown."""
    odd = 'a*b*c _x_ <script>1</script> & "$\\nu$" \' {seed} <b'

    def record(said):
        said["parameters"]["seed"], said["caption"], said["alt"] = odd, odd, odd
        said["columns"]["squared_error"]["meaning"] = odd
        (claim,) = said["claims"]
        claim["statement"], claim["source"], claim["catches_alternative"] = odd, f"[{odd}]", False
        claim["alternative"]["theory"] = odd

    page = own_run(record, lambda text: re.sub(r"\n(\d+),", r"\n\1,9", text, count=1))
    assert page.text.count(odd) == 4  # meaning, statement, source, alternative
    assert odd.replace("$\\nu$", "ν") in page.text  # the caption, whose formulas are formulas
    assert "math" in page.tags
    assert f"[{odd}]" in page.text
    assert json.dumps(odd, ensure_ascii=False) in page.text
    assert page.alts[0] == odd
    assert "script" not in page.tags


def test_run_that_reproduces_says_so(own_run):
    """No parameter changed, no number moved."""
    page = own_run()
    assert "Every parameter is that of the published figures." in page.text
    assert "No number moved" in page.text
    assert "When and where it ran was not recorded." in page.text


def test_rows_that_are_others_are_said_to_be(own_run):
    """With how many there are."""
    page = own_run(table=lambda text: text.rsplit("\n", 2)[0] + "\n")
    assert re.search(r"not compared number by number: it has \d+ rows; published: \d+\.", page.text)
    assert "other rows" in page.text


def test_page_loads_nothing_from_elsewhere(page):
    """It is read without a network, and runs nothing."""
    assert [link for link in page.links if "://" in link] == []
    assert "script" not in page.tags


def test_open_needs_parameters_of_ones_own(pristine):
    """What is run for the book is shown by the book; nothing starts."""
    finished = pristine.companion("run", "toy", "--open")
    assert finished.returncode == 2
    assert "`companion serve`" in finished.stderr
    assert not pristine.project.generated.exists()
