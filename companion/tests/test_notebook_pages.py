"""Notebooks on the site: the current prose, the outputs of the last run, and the pictures as published."""

import json
import re
import shutil
import sys

import pytest

from companion.build import cache_keys
from companion.build.status import Listing
from companion.figures import store
from companion.io.errors import UserError
from companion.project.paths import MIME
from companion.site.jupyter_book import is_built
from companion.site.notebook_pages import weave, weave_published

NOTEBOOK, FIGURE = "book/toy.ipynb", "clone/toy/figures/toy_error.py"


@pytest.fixture
def woven(ran_clone):
    """Return a function that reads the woven copy of `toy`."""
    return lambda profile="laptop": json.loads(weave(ran_clone.project, "toy", profile).read_text(encoding="utf-8"))


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(notebook):
    """Return the output that shows the figure, as text by MIME type."""
    (data,) = [out["data"] for cell in code(notebook) for out in cell["outputs"] if MIME in out.get("data", {})]
    return {kind: "".join(text) for kind, text in data.items()}


def executed(clone):
    return clone.project.build("laptop").executed / "toy.ipynb"


def edit_executed(clone, change):
    notebook = json.loads(executed(clone).read_text(encoding="utf-8"))
    change(notebook)
    executed(clone).write_text(json.dumps(notebook), encoding="utf-8")


def edit_shown(folder, **changes):
    """Change the record of the figure."""
    store.write_record(folder, store.read_record(folder, "toy_error").model_copy(update=changes))


def test_an_unchanged_notebook_is_woven_unchanged(ran_clone, woven):
    """The woven file has the sources and outputs of the last run, in order, and links to the pictures."""
    notebook, last = woven(), json.loads(executed(ran_clone).read_text(encoding="utf-8"))
    assert weave(ran_clone.project, "toy", "laptop") == ran_clone.project.build("laptop").notebooks / "toy.ipynb"
    assert ["".join(cell["source"]) for cell in notebook["cells"]] == [
        "".join(cell["source"]) for cell in last["cells"]
    ]
    assert [len(cell["outputs"]) for cell in code(notebook)] == [0, 0, 0, 1]
    assert {**shown(notebook), "text/html": ""} == {**shown(last), "text/html": ""}
    assert [cell["execution_count"] for cell in code(notebook)] == [1, 2, 3, 4]


def test_markdown_cells_may_be_added_and_deleted(ran_clone, woven):
    """Outputs are matched to steps, not to positions."""
    path = ran_clone.root / NOTEBOOK
    notebook = json.loads(path.read_text(encoding="utf-8"))
    added = {"cell_type": "markdown", "id": "added", "metadata": {}, "source": ["In between."]}
    notebook["cells"] = [*notebook["cells"][1:-1], added, notebook["cells"][-1]]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    after = woven()
    assert [cell["id"] for cell in after["cells"]] == [cell["id"] for cell in notebook["cells"]]
    assert MIME in after["cells"][-1]["outputs"][0]["data"]


def test_claims_and_alt_text_are_the_published_ones_and_the_picture_is_linked(ran_clone, woven):
    """The notebook does not contain the picture; the address leads to the file of the site next to the notebook."""
    published = ran_clone.project.published / "toy"
    (claim,) = store.read_record(published, "toy_error").claims
    edit_shown(
        published, alt="A line, redrawn.", claims=(claim.model_copy(update={"statement": "Reworded & <short>."}),)
    )
    html = shown(woven())["text/html"]
    assert re.findall(r'(?:src|href)="([^"]*)"', html) == ["../figures/toy/toy_error.svg"] * 2
    assert 'alt="A line, redrawn."' in html
    assert "Reworded &amp; &lt;short&gt;." in html


def test_another_profile_shows_its_own_figures(ran_clone, woven):
    """Published figures belong to the default profile."""
    build = ran_clone.project.build("smoke")
    ran_clone.project.build("laptop").folder.rename(build.folder)
    edit_shown(ran_clone.project.published / "toy", alt="Published.")
    edit_shown(build.figures / "toy", alt="Built.")
    assert 'alt="Built."' in shown(woven("smoke"))["text/html"]


def test_injected_parameters_are_shown_after_those_of_the_notebook(ran_clone, woven):
    """papermill's cell is no step: the outputs of the other cells stay with their steps."""
    injected = {"cell_type": "code", "id": "injected", "metadata": {"tags": ["injected-parameters"]}}
    injected |= {"source": ["# Parameters\n", "seed = 1\n"], "outputs": [], "execution_count": 9}
    edit_executed(ran_clone, lambda notebook: notebook["cells"].insert(3, injected))
    cells = woven()["cells"]
    tags = [cell["metadata"].get("tags", []) for cell in cells]
    assert tags.index(["injected-parameters"]) == tags.index(["parameters"]) + 1
    assert MIME in cells[-1]["outputs"][0]["data"]


def test_bootstrap_cell_is_no_step(ran_clone, woven):
    """It may change or be added after the run, and the outputs of the other cells stay with their steps."""

    def without_bootstrap(notebook):
        cells = [cell for cell in notebook["cells"] if "bootstrap" not in cell["metadata"].get("tags", [])]
        notebook["cells"] = cells

    edit_executed(ran_clone, without_bootstrap)
    notebook = woven()
    assert len([cell for cell in notebook["cells"] if "bootstrap" in cell["metadata"].get("tags", [])]) == 1
    assert MIME in notebook["cells"][-1]["outputs"][0]["data"]


@pytest.mark.parametrize(
    "source",
    [
        "# means\nerrors = toy_error.simulate_squared_errors(p.lengths, 7, seed=p.seed)\npublish(toy_error, errors)\n",
        "# nothing\n",
    ],
    ids=["edited", "gone"],
)
def test_outputs_of_edited_code_are_refused(ran_clone, woven, source):
    """The error names the command to run."""
    ran_clone.rewrite_cell("# means", source)
    with pytest.raises(
        UserError, match=r"The code of toy has changed since its run .*`companion run toy --profile laptop`"
    ):
        woven()


def test_no_output_contains_a_path_of_the_builder(ran_clone, woven, monkeypatch):
    """Paths become relative to the book or to their package; papermill's metadata are removed."""
    monkeypatch.setattr(sys, "prefix", "/opt/builder/venv")
    monkeypatch.setenv("HOME", "/home/builder")
    lines = [
        f"{ran_clone.root}/clone/toy/figures/toy_error.py:3: UserWarning\n",
        "/opt/builder/venv/lib/numpy.py and ~:\n",
    ]
    stream = {"output_type": "stream", "name": "stderr", "text": [*lines, "/home/builder/notes.txt\n"]}
    image_data = {"image/png": "/home/builder/"}
    picture = {"output_type": "display_data", "metadata": {}, "data": image_data | {"text/plain": "/home/builder/a"}}
    edit_executed(ran_clone, lambda notebook: code(notebook)[2]["outputs"].extend([stream, picture]))
    assert "papermill" in json.loads(executed(ran_clone).read_text(encoding="utf-8"))["metadata"]
    notebook = woven()
    text, image = code(notebook)[2]["outputs"]
    assert text["text"] == ["clone/toy/figures/toy_error.py:3: UserWarning\n", "lib/numpy.py and ~:\n", "~/notes.txt\n"]
    assert image["data"] == image_data | {"text/plain": "~/a"}
    assert "papermill" not in notebook["metadata"]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert str(ran_clone.root) not in json.dumps(notebook)


@pytest.fixture
def fresh_clone(ran_clone):
    """A clone with published figures and without a run."""
    shutil.rmtree(ran_clone.project.generated)
    return ran_clone


def published(clone):
    return json.loads(weave_published(clone.project, "toy").read_text(encoding="utf-8"))


def test_published_figures_are_shown_in_place_of_outputs(ran_clone, woven):
    """Each is in the cell where a run shows it, and no other output is shown."""
    ran = woven()
    shutil.rmtree(ran_clone.project.generated)
    notebook = published(ran_clone)
    assert shown(notebook) == shown(ran)
    assert [len(cell["outputs"]) for cell in code(notebook)] == [len(cell["outputs"]) for cell in code(ran)]
    assert [cell["source"] for cell in notebook["cells"]] == [cell["source"] for cell in ran["cells"]]


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (NOTEBOOK, "repeats = 500", "repeats = 501", "different parameters.* `companion run toy` first"),
        (
            NOTEBOOK,
            "p.lengths, p.repeats",
            "p.lengths[:2], p.repeats",
            "statements .* differ.* `companion run toy` first",
        ),
        (FIGURE, 'fmt="o"', 'fmt="s"', "different code.* `companion redraw toy/toy_error` first"),
    ],
)
def test_published_figures_of_older_sources_are_refused(fresh_clone, path, old, new, message):
    """The error names the command to run."""
    fresh_clone.replace(path, old, new)
    with pytest.raises(UserError, match=f"figures/toy/toy_error: .*{message}"):
        published(fresh_clone)


def test_an_incomplete_published_figure_is_refused(fresh_clone):
    """The error names the missing file."""
    (fresh_clone.project.published / "toy/toy_error.svg").unlink()
    with pytest.raises(UserError, match=r"toy_error\.svg is missing"):
        published(fresh_clone)


def test_site_of_published_figures(fresh_clone):
    """It is built strictly and without a kernel; the status calls it `published`, and a later build replaces it."""
    fresh_clone.replace(NOTEBOOK, "measures the", "is about the")
    finished = fresh_clone.companion("site", "--published")
    assert finished.returncode == 0, finished.stderr
    page = (fresh_clone.project.site("laptop") / "book/toy.html").read_text(encoding="utf-8")
    assert "is about the" in page
    assert "✓ 1 claim holds" in page
    assert not fresh_clone.project.build("laptop").executed.exists()
    assert is_built(fresh_clone.project, "laptop")
    assert not cache_keys.is_fresh(fresh_clone.project, cache_keys.Site.BUILT, "laptop")
    assert Listing.of(fresh_clone.project, "laptop").site == "published"
    fresh_clone.replace("book/index.md", "Every figure", "Each {ref}`nowhere` figure")
    assert Listing.of(fresh_clone.project, "laptop").site == "stale"
    broken = fresh_clone.companion("site", "--published")
    assert broken.returncode == 2
    assert "nowhere" in broken.stderr
    assert not is_built(fresh_clone.project, "laptop")


def test_only_the_default_profile_is_published(ran_clone):
    """`--published` with another profile is refused."""
    finished = ran_clone.companion("site", "--published", "--profile", "smoke")
    assert finished.returncode == 2
    assert "leave out `--profile smoke`" in finished.stderr
