"""The page of a custom run: it compares figures, claims and numbers with the published ones, without a network."""

import json
import re
import shutil
import webbrowser
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from companion.build.run_spec import RunSpec
from companion.figures import store
from companion.figures.plain_math import as_plain_text
from companion.runs import report
from companion.runs.custom_runs import Run, all_runs

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"


def read(text: str) -> SimpleNamespace:
    """Return the text of a page, its tags, its links and its alternative texts."""
    page = BeautifulSoup(text, "html.parser")
    links = [tag[name] for name in ("src", "href", "srcset") for tag in page.find_all(attrs={name: True})]
    tags = [tag.name for tag in page.find_all()]
    return SimpleNamespace(
        text=page.get_text(), tags=tags, links=links, alts=[tag["alt"] for tag in page.select("[alt]")]
    )


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
    return read((disproved.run_folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_is_opened_although_a_claim_fails(disproved):
    """The exit code is 3, and the message has the path of the page."""
    assert disproved.finished.returncode == 3
    assert f"Comparison with the published figures: {disproved.run_folder / 'index.html'}" in disproved.finished.stderr
    assert disproved.opened == [(disproved.run_folder / "index.html").as_uri()]


def test_the_page_has_changed_parameters_and_provenance(page, disproved):
    """Only changed parameters are listed, with duration and versions of packages."""
    assert re.search(r"parameterpublishedthis run\s*seed01\s*Profile laptop, computed 2\d{3}-", page.text)
    (run,) = all_runs(disproved.project)
    origin = run.origin
    assert origin
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
    moved = re.search(
        r"Largest movement: squared_error, ([0-9.]+) tolerances\. A rebuild may move it that far\.", page.text
    )
    assert moved
    assert 0 < float(moved[1]) < 1


def test_the_page_shows_both_pictures(page, disproved):
    """All links lead to files in the folder of the run."""
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
def custom_page(ran_clone):
    """Make a custom run from the results of `companion run toy`, with changed record and table; return its page."""

    def make(record=lambda record: None, table=lambda text: text):
        build, custom = ran_clone.project.build("laptop"), ran_clone.project.custom_build("toy-12345678")
        for kind in ("figures", "tables", "executed"):
            shutil.copytree(build.folder / kind, custom.folder / kind)
        path = custom.figures / "toy" / f"{FIGURE}.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        record(content)
        path.write_text(json.dumps(content), encoding="utf-8")
        path = custom.tables / "toy" / f"{FIGURE}.csv"
        path.write_text(table(path.read_text(encoding="utf-8")), encoding="utf-8")
        run = Run(ran_clone.project, "toy-12345678", RunSpec("toy", isolated=True))
        return read(report.write(run).read_text(encoding="utf-8"))

    return make


def test_texts_of_records_are_escaped(custom_page):
    """This includes every place where a record is shown."""
    odd = 'a*b*c _x_ <script>1</script> & "$\\nu$" \' {seed} <b'

    def record(content):
        content["parameters"]["seed"], content["caption"], content["alt"] = odd, odd, odd
        content["columns"]["squared_error"]["meaning"] = odd
        (claim,) = content["claims"]
        claim["statement"], claim["source"], claim["catches_alternative"] = odd, f"[{odd}]", False
        claim["alternative"]["theory"] = odd

    page = custom_page(record, lambda text: re.sub(r"\n(\d+),", r"\n\1,9", text, count=1))
    assert page.text.count(odd.replace("$\\nu$", "ν")) == 4  # caption, meaning, statement, alternative
    assert f"[{odd}]" in page.text
    assert json.dumps(odd, ensure_ascii=False) in page.text
    assert page.alts[0] == odd
    assert "script" not in page.tags


def test_the_page_of_a_reproduced_run(custom_page):
    """No parameter changed and no number moved."""
    page = custom_page()
    assert "All parameters are those of the published figures." in page.text
    assert "No number moved" in page.text
    assert "Time, machine and versions of this run were not recorded." in page.text


def test_the_page_loads_nothing_from_other_sites(page):
    """It needs no network and contains no script."""
    assert [link for link in page.links if "://" in link] == []
    assert "script" not in page.tags


def test_open_needs_a_custom_run(pristine):
    """Other results are shown by the site; no kernel starts."""
    finished = pristine.companion("run", "toy", "--open")
    assert finished.returncode == 2
    assert "`companion site --open`" in finished.stderr
    assert not pristine.project.generated.exists()
