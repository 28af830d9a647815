"""Executed notebooks for readers: the prose of today, what the last run gave, the pictures as they are shown."""

import base64
import io
import json
import os
import re
import shutil
import sys

import pytest
from PIL import Image

from companion.build import cache_keys
from companion.build.status import Listing
from companion.figures import store
from companion.io.errors import UserError
from companion.project.paths import MIME
from companion.site.jupyter_book import is_built
from companion.site.notebook_pages import weave, weave_published

TODAY = (24, 11, 26)
NOTEBOOK, FIGURE = "book/toy.ipynb", "clone/toy/figures/toy_error.py"


@pytest.fixture
def woven(ran_clone):
    """The woven copy of `toy`, read."""
    return lambda profile="laptop": json.loads(weave(ran_clone.project, "toy", profile).read_text(encoding="utf-8"))


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(notebook):
    """What the output says in which the figure is shown, its lines joined."""
    (data,) = [out["data"] for cell in code(notebook) for out in cell["outputs"] if MIME in out.get("data", {})]
    return {kind: "".join(text) for kind, text in data.items()}


def executed(clone):
    return clone.project.build("laptop").executed / "toy.ipynb"


def edit_executed(clone, change):
    notebook = json.loads(executed(clone).read_text(encoding="utf-8"))
    change(notebook)
    executed(clone).write_text(json.dumps(notebook), encoding="utf-8")


def edit_shown(folder, **changes):
    """Other words in the record of the figure, and another picture, in the one colour of today."""
    Image.new("RGB", (3, 2), TODAY).save(folder / "toy_error.png")
    record = store.read_record(folder, "toy_error")
    files = record.files | {".png": store.digest((folder / "toy_error.png").read_bytes())}
    store.write_record(folder, record.model_copy(update={**changes, "files": files}))


def test_what_was_run_is_woven_as_it_is(ran_clone, woven):
    """Where readers find it: sources, outputs and their order."""
    notebook, last = woven(), json.loads(executed(ran_clone).read_text(encoding="utf-8"))
    assert weave(ran_clone.project, "toy", "laptop") == ran_clone.project.build("laptop").notebooks / "toy.ipynb"
    assert ["".join(cell["source"]) for cell in notebook["cells"]] == [
        "".join(cell["source"]) for cell in last["cells"]
    ]
    assert [len(cell["outputs"]) for cell in code(notebook)] == [0, 0, 0, 1]
    assert shown(notebook) == shown(last)
    assert [cell["execution_count"] for cell in code(notebook)] == [1, 2, 3, 4]


def test_prose_is_that_of_today(ran_clone, woven):
    """And so are comments; what came out stays, though nothing was run again."""
    before = woven()
    ran_clone.replace(NOTEBOOK, "measures the", "is about the")
    ran_clone.replace(NOTEBOOK, "# means of", "# averages of")
    after = woven()
    assert "is about the" in "".join(after["cells"][0]["source"])
    assert "# averages of" in "".join(after["cells"][-1]["source"])
    assert [cell["outputs"] for cell in code(after)] == [cell["outputs"] for cell in code(before)]


def test_pages_of_prose_come_and_go(ran_clone, woven):
    """Outputs belong to steps, not to places."""
    path = ran_clone.root / NOTEBOOK
    notebook = json.loads(path.read_text(encoding="utf-8"))
    said = {"cell_type": "markdown", "id": "said", "metadata": {}, "source": ["In between."]}
    notebook["cells"] = [*notebook["cells"][1:-1], said, notebook["cells"][-1]]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    after = woven()
    assert [cell["id"] for cell in after["cells"]] == [cell["id"] for cell in notebook["cells"]]
    assert MIME in after["cells"][-1]["outputs"][0]["data"]


def test_picture_claims_and_alt_text_are_those_shown_today(ran_clone, woven):
    """As published; what the kernel drew is in no page."""
    published = ran_clone.project.published / "toy"
    (claim,) = store.read_record(published, "toy_error").claims
    edit_shown(
        published, alt="A line, redrawn.", claims=(claim.model_copy(update={"statement": "Reworded & <short>."}),)
    )
    html = shown(woven())["text/html"]
    (embedded,) = re.findall(r'src="data:image/webp;base64,([^"]*)"', html)
    assert Image.open(io.BytesIO(base64.b64decode(embedded))).getcolors() == [(6, TODAY)]
    assert 'alt="A line, redrawn."' in html
    assert "Reworded &amp; &lt;short&gt;." in html


def test_other_profile_shows_what_it_built(ran_clone, woven):
    """Not what is published, which is the default profile's."""
    build = ran_clone.project.build("smoke")
    ran_clone.project.build("laptop").folder.rename(build.folder)
    edit_shown(ran_clone.project.published / "toy", alt="Published.")
    edit_shown(build.figures / "toy", alt="Built.")
    assert 'alt="Built."' in shown(woven("smoke"))["text/html"]


@pytest.mark.parametrize("suffix", store.SUFFIXES)
def test_figure_that_is_not_whole_is_left_as_it_came_out(ran_clone, woven, suffix):
    """No page shows half of one: that is said when the site is built, and not here by a traceback."""
    before = shown(woven())
    (ran_clone.project.published / f"toy/toy_error{suffix}").unlink()
    assert shown(woven()) == before


def test_parameters_of_a_profile_are_shown_after_those_of_the_notebook(ran_clone, woven):
    """Where papermill put them; they are no step, and take nobody's output."""
    injected = {"cell_type": "code", "id": "injected", "metadata": {"tags": ["injected-parameters"]}}
    injected |= {"source": ["# Parameters\n", "seed = 1\n"], "outputs": [], "execution_count": 9}
    edit_executed(ran_clone, lambda notebook: notebook["cells"].insert(3, injected))
    cells = woven()["cells"]
    tags = [cell["metadata"].get("tags", []) for cell in cells]
    assert tags.index(["injected-parameters"]) == tags.index(["parameters"]) + 1
    assert MIME in cells[-1]["outputs"][0]["data"]


def test_cell_that_only_installs_is_no_step(ran_clone, woven):
    """It may be mended, or come later, and takes nobody's output."""

    def without_bootstrap(notebook):
        tagged = [cell for cell in notebook["cells"] if "bootstrap" not in cell["metadata"].get("tags", [])]
        notebook["cells"] = tagged

    edit_executed(ran_clone, without_bootstrap)
    notebook = woven()
    assert len([cell for cell in notebook["cells"] if "bootstrap" in cell["metadata"].get("tags", [])]) == 1
    assert MIME in notebook["cells"][-1]["outputs"][0]["data"]


@pytest.mark.parametrize(
    "source",
    [
        "# means\nerrors = toy_error.simulate(p.lengths, 7, seed=p.seed)\npublish(toy_error, errors)\n",
        "# nothing\n",
    ],
    ids=["edited", "gone"],
)
def test_other_code_is_not_shown_with_outputs_it_did_not_give(ran_clone, woven, source):
    """The answer says what to run."""
    ran_clone.rewrite_cell("# means", source)
    with pytest.raises(
        UserError, match=r"The code of toy has changed since its run .*`companion run toy --profile laptop`"
    ):
        woven()


def test_step_that_was_added_is_not_shown_without_its_outputs(ran_clone, woven):
    """Nor are the outputs of the others moved to it."""
    path = ran_clone.root / NOTEBOOK
    notebook = json.loads(path.read_text(encoding="utf-8"))
    step = {"cell_type": "code", "id": "step", "metadata": {}, "source": ["1"], "outputs": [], "execution_count": None}
    notebook["cells"].append(step)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    with pytest.raises(UserError, match="other code"):
        woven()


def test_no_output_names_a_folder_of_the_builder(ran_clone, woven, monkeypatch):
    """A warning says in which file of the book, or of which package; papermill's own notes are left out."""
    monkeypatch.setattr(sys, "prefix", "/opt/builder/venv")
    monkeypatch.setenv("HOME", "/home/builder")
    said = [
        f"{ran_clone.root}/clone/toy/figures/toy_error.py:3: UserWarning\n",
        "/opt/builder/venv/lib/numpy.py and ~:\n",
    ]
    stream = {"output_type": "stream", "name": "stderr", "text": [*said, "/home/builder/notes.txt\n"]}
    letters = {"image/png": "/home/builder/"}
    picture = {"output_type": "display_data", "metadata": {}, "data": letters | {"text/plain": "/home/builder/a"}}
    edit_executed(ran_clone, lambda notebook: code(notebook)[2]["outputs"].extend([stream, picture]))
    assert "papermill" in json.loads(executed(ran_clone).read_text(encoding="utf-8"))["metadata"]
    notebook = woven()
    text, image = code(notebook)[2]["outputs"]
    assert text["text"] == ["clone/toy/figures/toy_error.py:3: UserWarning\n", "lib/numpy.py and ~:\n", "~/notes.txt\n"]
    assert image["data"] == letters | {"text/plain": "~/a"}
    assert "papermill" not in notebook["metadata"]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert str(ran_clone.root) not in json.dumps(notebook)


def test_nothing_is_written_if_nothing_changed(ran_clone, woven):
    """So that Sphinx reads no page again."""
    woven()
    path = ran_clone.project.build("laptop").notebooks / "toy.ipynb"
    os.utime(path, ns=(1, 1))
    woven()
    assert path.stat().st_mtime_ns == 1
    ran_clone.replace(NOTEBOOK, "measures the", "is about the")
    woven()
    assert path.stat().st_mtime_ns != 1


def test_last_run_is_left_as_it_was(ran_clone, woven):
    """It is what fresh numbers are known by."""
    before = executed(ran_clone).read_bytes()
    edit_shown(ran_clone.project.published / "toy", alt="Another.")
    woven()
    assert executed(ran_clone).read_bytes() == before


@pytest.fixture
def fresh_clone(ran_clone):
    """A clone with published figures, in which nothing was run."""
    shutil.rmtree(ran_clone.project.generated)
    return ran_clone


def published(clone):
    return json.loads(weave_published(clone.project, "toy").read_text(encoding="utf-8"))


def test_published_figures_stand_for_outputs(ran_clone, woven):
    """In the cells where a run shows them, and as a run shows them; nothing else came out."""
    ran = woven()
    shutil.rmtree(ran_clone.project.generated)
    notebook = published(ran_clone)
    assert shown(notebook) == shown(ran)
    assert [len(cell["outputs"]) for cell in code(notebook)] == [len(cell["outputs"]) for cell in code(ran)]
    assert [cell["source"] for cell in notebook["cells"]] == [cell["source"] for cell in ran["cells"]]


def test_prose_of_published_figures_is_that_of_today(fresh_clone):
    """Which is what one fixes in a fresh clone; the source is left without outputs."""
    fresh_clone.replace(NOTEBOOK, "measures the", "is about the")
    assert "is about the" in "".join(published(fresh_clone)["cells"][0]["source"])
    source = json.loads((fresh_clone.root / NOTEBOOK).read_text(encoding="utf-8"))
    assert [cell["outputs"] for cell in code(source)] == [[]] * len(code(source))


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        (NOTEBOOK, "repeats = 500", "repeats = 501", "other parameters.* `companion run toy` first"),
        (NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats", "other steps.* `companion run toy` first"),
        (FIGURE, 'fmt="o"', 'fmt="s"', "other code.* `companion redraw toy/toy_error` first"),
    ],
)
def test_published_figures_of_something_else_are_not_shown(fresh_clone, path, old, new, said):
    """The answer says what to run."""
    fresh_clone.replace(path, old, new)
    with pytest.raises(UserError, match=f"figures/toy/toy_error: .*{said}"):
        published(fresh_clone)


def test_published_figure_that_is_not_whole_is_not_shown(fresh_clone):
    """Its file is named."""
    (fresh_clone.project.published / "toy/toy_error.svg").unlink()
    with pytest.raises(UserError, match=r"toy_error\.svg is missing"):
        published(fresh_clone)


def test_site_of_published_figures(fresh_clone):
    """Strict, without a kernel; it is no site of results, is told apart from one, and a build makes that."""
    fresh_clone.replace(NOTEBOOK, "measures the", "is about the")
    finished = fresh_clone.companion("site", "--published")
    assert finished.returncode == 0, finished.stderr
    page = (fresh_clone.project.site("laptop") / "book/toy.html").read_text(encoding="utf-8")
    assert "is about the" in page
    assert "1 of 1 claims hold" in page
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
    """Another one is refused."""
    finished = ran_clone.companion("site", "--published", "--profile", "smoke")
    assert finished.returncode == 2
    assert "leave out `--profile smoke`" in finished.stderr
