"""Notebooks on the site: the current prose, the outputs of the last run, and the pictures as published."""

import json
import re
import shutil
import sys

import pytest

from companion.build import cache_keys
from companion.build.status import listing
from companion.figures import store
from companion.io.errors import UserError
from companion.project.paths import MIME
from companion.site.jupyter_book import is_built
from companion.site.notebook_pages import weave, weave_published

NOTEBOOK, FIGURE = "book/toy.ipynb", "clone/toy/figures/toy_error.py"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def woven(ran_clone):
    """Return a function that reads the woven copy of `toy`."""
    return lambda profile="laptop": read(weave(ran_clone.project, "toy", profile))


def published(clone):
    """Return the copy of `toy` that shows the published figures, in a clone without a run."""
    shutil.rmtree(clone.project.generated)
    return read(weave_published(clone.project, "toy"))


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def tagged(notebook, tag):
    """Return the numbers of the cells with this tag."""
    return [number for number, cell in enumerate(notebook["cells"]) if tag in cell["metadata"].get("tags", [])]


def shown(notebook):
    """Return the output that shows the figure, as text by MIME type."""
    (data,) = [out["data"] for cell in code(notebook) for out in cell["outputs"] if MIME in out.get("data", {})]
    return {kind: "".join(text) for kind, text in data.items()}


def executed(clone):
    return clone.project.build("laptop").executed / "toy.ipynb"


def edit_executed(clone, change):
    notebook = read(executed(clone))
    change(notebook)
    executed(clone).write_text(json.dumps(notebook), encoding="utf-8")


def edit_shown(folder, **changes):
    """Change the record of the figure."""
    store.write_record(folder, store.read_record(folder, "toy_error").model_copy(update=changes))


def test_an_unchanged_notebook_is_woven_unchanged(ran_clone, woven):
    """The woven file has the sources and outputs of the last run, in order, and links to the pictures."""
    notebook, last = woven(), read(executed(ran_clone))
    sources, expected = (["".join(cell["source"]) for cell in each["cells"]] for each in (notebook, last))
    assert sources == expected
    assert [len(cell["outputs"]) for cell in code(notebook)] == [0, 0, 0, 1]
    assert {**shown(notebook), "text/html": ""} == {**shown(last), "text/html": ""}
    assert [cell["execution_count"] for cell in code(notebook)] == [1, 2, 3, 4]


def test_markdown_cells_may_be_added_and_deleted(ran_clone, woven):
    """Outputs are matched to steps, not to positions."""
    added = {"cell_type": "markdown", "id": "added", "metadata": {}, "source": ["In between."]}

    def change(notebook):
        notebook["cells"] = [*notebook["cells"][1:-1], added, notebook["cells"][-1]]

    ran_clone.edit_notebook(change)
    cells = woven()["cells"]
    assert [cell["source"] for cell in cells] == [cell["source"] for cell in read(ran_clone.root / NOTEBOOK)["cells"]]
    assert MIME in cells[-1]["outputs"][0]["data"]


def test_claims_and_alt_text_are_the_published_ones_and_the_picture_is_linked(ran_clone, woven):
    """The notebook does not contain the picture; the address leads to the file of the site next to the notebook."""
    folder = ran_clone.project.published / "toy"
    (claim,) = store.read_record(folder, "toy_error").claims
    reworded = claim.model_copy(update={"statement": "Reworded & <short>."})
    edit_shown(folder, alt="A line, redrawn.", claims=(reworded,))
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


def test_cells_of_papermill_and_the_bootstrap_cell_are_no_steps(ran_clone, woven):
    """The first are shown after the parameters; the second may be added after the run. Outputs stay in place."""
    injected = {"cell_type": "code", "id": "injected", "metadata": {"tags": ["injected-parameters"]}}
    injected |= {"source": ["# Parameters\n", "seed = 1\n"], "outputs": [], "execution_count": 9}

    def change(notebook):
        notebook["cells"].insert(3, injected)
        (bootstrap,) = tagged(notebook, "bootstrap")
        del notebook["cells"][bootstrap]

    edit_executed(ran_clone, change)
    notebook = woven()
    (defaults,) = tagged(notebook, "parameters")
    assert tagged(notebook, "injected-parameters") == [defaults + 1]
    assert len(tagged(notebook, "bootstrap")) == 1
    assert MIME in notebook["cells"][-1]["outputs"][0]["data"]


EDITED = "# means\nerrors = toy_error.simulate_squared_errors(p.lengths, 7, seed=p.seed)\npublish(toy_error, errors)\n"


@pytest.mark.parametrize("source", [EDITED, "# nothing\n"], ids=["edited", "gone"])
def test_outputs_of_edited_code_are_refused(ran_clone, woven, source):
    """The error names the command to run."""
    ran_clone.rewrite_cell("# means", source)
    words = "The code of toy has changed since its run .*`companion run toy --profile laptop`"
    with pytest.raises(UserError, match=words):
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
    assert "papermill" in read(executed(ran_clone))["metadata"]
    notebook = woven()
    text, image = code(notebook)[2]["outputs"]
    assert text["text"] == ["clone/toy/figures/toy_error.py:3: UserWarning\n", "lib/numpy.py and ~:\n", "~/notes.txt\n"]
    assert image["data"] == image_data | {"text/plain": "~/a"}
    assert "papermill" not in notebook["metadata"]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert str(ran_clone.root) not in json.dumps(notebook)


def test_published_figures_are_shown_in_place_of_outputs(ran_clone, woven):
    """Each is in the cell where a run shows it, and no other output is shown."""
    ran, notebook = woven(), published(ran_clone)
    assert shown(notebook) == shown(ran)
    assert [len(cell["outputs"]) for cell in code(notebook)] == [len(cell["outputs"]) for cell in code(ran)]
    assert [cell["source"] for cell in notebook["cells"]] == [cell["source"] for cell in ran["cells"]]


RUN_FIRST = "`companion run toy` first"


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (NOTEBOOK, "repeats = 500", "repeats = 501", f"different parameters.* {RUN_FIRST}"),
        (NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats", f"statements .* differ.* {RUN_FIRST}"),
        (FIGURE, 'fmt="o"', 'fmt="s"', "different code.* `companion redraw toy/toy_error` first"),
        ("figures/toy/toy_error.svg", None, None, r"toy_error\.svg is missing"),
    ],
)
def test_published_figures_of_older_sources_are_refused(ran_clone, path, old, new, message):
    """So are incomplete ones. The error names the command to run."""
    ran_clone.replace(path, old, new) if new else (ran_clone.root / path).unlink()
    with pytest.raises(UserError, match=f"figures/toy/toy_error: .*{message}"):
        published(ran_clone)


def test_site_of_published_figures(ran_clone):
    """It is built strictly and without a kernel; the status calls it `published`, and a later build replaces it."""
    shutil.rmtree(ran_clone.project.generated)
    ran_clone.replace(NOTEBOOK, "measures the", "is about the")
    ran_clone.succeed("site", "--published")
    page = (ran_clone.project.site("laptop") / "book/toy.html").read_text(encoding="utf-8")
    assert "is about the" in page
    assert "✓ 1 claim holds" in page
    assert not ran_clone.project.build("laptop").executed.exists()
    assert is_built(ran_clone.project, "laptop")
    assert not cache_keys.is_fresh(ran_clone.project, cache_keys.Site.BUILT, "laptop")
    assert listing(ran_clone.project, "laptop")["site"] == "published"
    ran_clone.replace("book/index.md", "Every figure", "Each {ref}`nowhere` figure")
    assert listing(ran_clone.project, "laptop")["site"] == "stale"
    broken = ran_clone.companion("site", "--published")
    assert broken.returncode == 2
    assert "nowhere" in broken.stderr
    assert not is_built(ran_clone.project, "laptop")


def test_only_the_default_profile_is_published(ran_clone):
    """`--published` with another profile is refused."""
    finished = ran_clone.companion("site", "--published", "--profile", "smoke")
    assert finished.returncode == 2
    assert "leave out `--profile smoke`" in finished.stderr
