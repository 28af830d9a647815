"""The page of a custom run: it compares figures, claims and numbers with the published ones, without a network."""

import json
import re
import shutil
import webbrowser

import pytest
from bs4 import BeautifulSoup

from companion.build.run_spec import RunSpec
from companion.figures import store
from companion.figures.plain_math import as_plain_text
from companion.runs import report
from companion.runs.custom_runs import Run, all_runs

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"


class Page:
    """The text of a page, its tags and its links."""

    def __init__(self, text: str):
        page = BeautifulSoup(text, "html.parser")
        self.text, self.alts = page.get_text(), [tag["alt"] for tag in page.select("[alt]")]
        self.tags = {tag.name for tag in page.find_all()}
        self.links = [tag[name] for name in ("src", "href", "srcset") for tag in page.find_all(attrs={name: True})]


@pytest.fixture(scope="module")
def disproved(ran, tmp_path_factory):
    """A published clone whose claim was then changed to a false one, run with `--open`."""
    clone = ran.copy_to(tmp_path_factory.mktemp("disproved") / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    with pytest.MonkeyPatch.context() as patch:
        clone.opened = []
        patch.setattr(webbrowser, "open", lambda address: clone.opened.append(address) or True)
        clone.finished = clone.companion("run", "toy", "-p", "seed=1", "--open")
    (clone.run_folder,) = clone.project.runs.iterdir()
    return clone


@pytest.fixture
def page(disproved):
    return Page((disproved.run_folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_is_opened_although_a_claim_fails(disproved):
    """The exit code is 3, and the message has the path of the page."""
    assert disproved.finished.returncode == 3
    assert f"Comparison with the published figures: {disproved.run_folder / 'index.html'}" in disproved.finished.stderr
    assert disproved.opened == [(disproved.run_folder / "index.html").as_uri()]


def test_the_page_has_changed_parameters_and_provenance(page, disproved):
    """Only changed parameters are listed, with duration and versions of packages."""
    assert re.search(r"parameterpublishedthis run\s*seed01\s*Profile laptop, computed 2\d{3}-", page.text)
    (origin,) = [run.origin for run in all_runs(disproved.project)]
    assert f"in {origin['seconds']:.0f} s" in page.text
    assert f"numpy {origin['versions']['numpy']}" in page.text


def test_the_page_compares_claims(page, disproved):
    """The claim of the run fails, the published one holds."""
    (claim,) = store.read_record(disproved.run_folder / "figures/toy", FIGURE).claims
    (published,) = store.read_record(disproved.project.published / "toy", FIGURE).claims
    assert f"✗ {as_plain_text(claim.statement)}" in page.text
    assert f"Measured {claim.measured:.4g}, published {published.measured:.4g} ✓" in page.text
    assert "✗ 0 of 1" in page.text


def test_the_page_names_the_largest_movement(page):
    """Another seed moves a measured column by less than one tolerance."""
    words = r"Largest movement: squared_error, (0\.\d+) tolerances\. A rebuild may move it that far\."
    assert float(re.search(words, page.text)[1]) > 0


def test_the_page_shows_both_pictures(page, disproved):
    """All links lead to files in the folder of the run; nothing is loaded from other sites, and there is no script."""
    assert "script" not in page.tags
    pictures = [link for link in page.links if link.endswith(".svg")]
    custom, published = f"figures/toy/{FIGURE}", f"published/{FIGURE}"
    assert {f"{base}.svg" for base in (custom, published)} == set(pictures)
    files = {link: (disproved.run_folder / link).resolve() for link in page.links if not link.startswith("#")}
    assert all(path.is_file() and path.is_relative_to(disproved.run_folder) for path in files.values())
    assert files[f"{custom}.svg"].read_bytes() != files[f"{published}.svg"].read_bytes()
    shown = disproved.project.published / "toy" / f"{FIGURE}.svg"
    assert files[f"{published}.svg"].read_bytes() == shown.read_bytes()


def test_the_page_of_a_fresh_run_is_written_again(disproved, tmp_path, monkeypatch):
    """Published figures may have changed; the numbers of the run stay the same, and without `--open` nothing opens."""
    clone = disproved.copy_to(tmp_path / "clone")
    (run_folder,) = clone.project.runs.iterdir()
    before = clone.tree("_build/runs")
    for folder in (clone.project.published, run_folder / "published"):
        shutil.rmtree(folder)
    monkeypatch.setattr(webbrowser, "open", disproved.opened.append)
    finished = clone.companion("run", "toy", "-p", "seed=1")
    assert finished.returncode == 3
    after = clone.tree("_build/runs")
    assert {path for path in before if after.get(path) != before[path]} == {
        f"_build/runs/{run_folder.name}/{path}" for path in ("index.html", f"published/{FIGURE}.svg")
    }
    assert "This figure is not published." in (run_folder / "index.html").read_text(encoding="utf-8")
    assert len(disproved.opened) == 1


@pytest.fixture
def custom_run(ran_clone):
    """A custom run with the results of `companion run toy`."""
    run = Run(ran_clone.project, "toy-12345678", RunSpec("toy", isolated=True))
    for kind in ("figures", "tables", "executed"):
        shutil.copytree(ran_clone.project.build("laptop").folder / kind, run.build.folder / kind)
    return run


def page_of(run):
    return Page(report.write(run).read_text(encoding="utf-8"))


def test_texts_of_records_are_escaped(custom_run):
    """This includes every place where a record is shown."""
    odd = 'a*b*c _x_ <script>1</script> & "$\\nu$" \' {seed} <b'
    path, table = custom_run.build.figures / f"toy/{FIGURE}.json", custom_run.build.tables / f"toy/{FIGURE}.csv"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["parameters"]["seed"] = content["caption"] = content["alt"] = odd
    content["columns"]["squared_error"]["meaning"] = odd
    content["claims"][0] |= {"statement": odd, "source": f"[{odd}]", "catches_alternative": False}
    content["claims"][0]["alternative"]["theory"] = odd
    path.write_text(json.dumps(content), encoding="utf-8")
    table.write_text(re.sub(r"\n(\d+),", r"\n\1,9", table.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    page = page_of(custom_run)
    assert page.text.count(odd.replace("$\\nu$", "ν")) == 4  # caption, meaning, statement, alternative
    assert f"[{odd}]" in page.text
    assert json.dumps(odd, ensure_ascii=False) in page.text
    assert page.alts[0] == odd
    assert "script" not in page.tags


def test_the_page_of_a_reproduced_run(custom_run):
    """No parameter changed and no number moved."""
    text = page_of(custom_run).text
    assert "All parameters are those of the published figures." in text
    assert "No number moved" in text
    assert "Time, machine and versions of this run were not recorded." in text


def test_open_needs_a_custom_run(pristine):
    """Other results are shown by the site; no kernel starts."""
    finished = pristine.companion("run", "toy", "--open")
    assert finished.returncode == 2
    assert "`companion site --open`" in finished.stderr
    assert not pristine.project.generated.exists()
