"""`begin` and `publish` in a notebook run by hand: parameter checks, published files, and the verdicts of claims."""

import importlib
import json
import shutil
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion import begin
from companion.figures import store
from companion.figures.record import Alternative, ColumnRecord
from companion.figures.rendering import caption_and_alt
from companion.project.paths import MIME, NOTEBOOK, OUT, PROFILE

VALUES = {"seed": 7, "steps": [2, 4], "walkers": 10, "quantile": 4.0}
# Final positions of walkers by number of steps; the standard error at 2 steps is 1.1547005…
ENDS = {2: np.array([2, 0, 0, -2]), 4: np.array([4, 0, 2, -2])}
STATEMENT, ODD = "The mean square distance after", "The <b>mean</b> & square distance after"
FOLDER = Path("figures-scratch/walks")


class Walks:
    """The notebook of `another_paper`."""

    def __init__(self):
        self.parameters, self.spread = map(self.module, ("parameters", "figures.spread"))

    def module(self, name):
        return importlib.import_module(f"episodes.walks.{name}")

    def begin(self, **values):
        return begin(self.parameters.Parameters, values)

    def publish(self, figure=None, **named):
        _, publish = self.begin(**VALUES)
        return publish(figure or self.spread, ENDS, **{"quantile": 4.0, **named})


@pytest.fixture
def walks(tmp_path, monkeypatch):
    """The notebook in a working folder outside of its book; no build sets the environment variables of `companion`."""
    paper, generated = Path(__file__).with_name("another_paper"), shutil.ignore_patterns("_build", "__pycache__")
    book = Path(shutil.copytree(paper, tmp_path / "book", ignore=generated))
    code = book / "episodes/walks/figures/spread.py"
    assert STATEMENT in code.read_text(encoding="utf-8")
    code.write_text(code.read_text(encoding="utf-8").replace(STATEMENT, ODD), encoding="utf-8")
    for name in (OUT, PROFILE, NOTEBOOK):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.syspath_prepend(str(book))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    with np.errstate():  # the context of this book changes it
        yield Walks()


def test_begin_returns_the_parameters_and_opens_the_context(walks):
    """Only the names of parameters are read from the notebook."""
    p, publish = walks.begin(**VALUES, plot=3, np=np)
    assert p.model_dump() == VALUES
    assert callable(publish)
    assert np.geterr()["under"] == "raise"


REFUSED = {
    "none": ({}, r"must give a value to every parameter\. Run it first\. Missing: seed, steps, walkers"),
    "missing": ({"seed": 1, "steps": [2], "walkers": 10}, r"'walks' must give a value.* Missing: quantile\."),
    "range": (VALUES | {"seed": -1}, r"'walks'.*\n.*`seed`.*greater than.*Got -1.*Seed of all random numbers\."),
    "types": (VALUES | {"seed": True, "steps": ["a"]}, r"`seed`.*\n.*`steps\[0\]`.*Got 'a'"),
}


@pytest.mark.parametrize(("cell", "words"), REFUSED.values(), ids=REFUSED)
def test_begin_refuses_invalid_parameters(walks, cell, words):
    """The error names each invalid parameter, its rule and its meaning; the context is not opened."""
    with pytest.raises(ValueError, match=words):
        walks.begin(**cell)
    assert np.geterr()["under"] != "raise"


def test_one_set_of_files_is_written_to_the_working_folder(walks, tmp_path):
    """Publishing twice gives identical files, without a date and without a path."""

    def contents():
        walks.publish()
        return {path.as_posix(): path.read_bytes() for path in Path().rglob("*") if path.is_file()}

    first = contents()
    assert set(first) == {f"{FOLDER.as_posix()}/spread{suffix}" for suffix in store.SUFFIXES}
    assert store.faults(FOLDER, "spread") == []
    assert not any(str(tmp_path).encode() in content or b"<dc:date>" in content for content in first.values())
    assert contents() == first


def test_the_record_has_columns_and_claims(walks):
    """Readers can interpret the data without the code. Each claim has its alternative and its verdict."""
    record = walks.publish().record
    header = (FOLDER / "spread.csv").read_text().splitlines()[0]
    assert header.split(",") == list(record.columns)
    assert record.columns["steps"] == ColumnRecord(meaning="Steps of the walk, n", unit="steps", kind="integer")
    (claim,) = record.claims
    assert (claim.id, claim.source) == ("walks-spread", "derived here")
    assert claim.alternative == Alternative(theory="walkers that never turn", measured=6.0)
    assert claim.holds
    assert claim.catches_alternative


@pytest.mark.parametrize(("quantile", "sign", "other"), [(4.0, "✓", "✗"), (0.1, "✗", "✓")])
def test_a_claim_is_shown_with_its_verdict(walks, quantile, sign, other):
    """It is next to the picture, which has its alt text. Keyword arguments of `publish` are passed to `numbers`."""
    shown = walks.publish(quantile=quantile)._repr_mimebundle_()
    assert shown[MIME] == {"figure": "walks/spread"}
    assert f"{sign} walks-spread" in shown["text/plain"]
    assert sign in shown["text/html"]
    assert other not in shown["text/html"]
    assert 'alt="Log-log plot of the mean square distance' in shown["text/html"]
    assert "The &lt;b&gt;mean&lt;/b&gt; &amp; square" in shown["text/html"]
    assert "<code>walks-spread</code>" in shown["text/html"]


@pytest.fixture
def built(walks, tmp_path, monkeypatch):
    """The output folder of a build."""
    monkeypatch.setenv(NOTEBOOK, str(tmp_path / "book/book/walks.ipynb"))
    monkeypatch.setenv(OUT, str(tmp_path / "out"))
    monkeypatch.setenv(PROFILE, "smoke")
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_a_build_has_another_folder(walks, built):
    """Figures, unrounded numbers and the device go there, and nothing to the working folder."""
    assert walks.publish().record.profile == "smoke"
    assert store.faults(built / "figures/walks", "spread") == []
    assert "1.1547005" in (built / "tables/walks/spread.csv").read_text()
    assert json.loads((built / "device.json").read_text()) == "NumPy"
    assert list(Path().iterdir()) == []


WRONG_DOCSTRINGS = {
    "none": None,
    "no alt text": "A caption alone.",
    "no caption": "Alt: A description alone.",
    "two alt texts": "A caption.\n\nAlt: One.\n\nAlt: Two.",
}


@pytest.mark.parametrize("docstring", WRONG_DOCSTRINGS.values(), ids=WRONG_DOCSTRINGS)
def test_figure_needs_a_caption_and_one_alt_text(docstring):
    """The error names the figure."""
    with pytest.raises(ValueError, match=r"papers\.demo\.bare"):
        caption_and_alt(ModuleType("papers.demo.bare", docstring))


@pytest.mark.parametrize("part", ["numbers", "draw"])
def test_publish_refuses_an_incomplete_figure(walks, part):
    """The argument must be a module with `numbers` and `draw`; the error states that."""
    figure = ModuleType("episodes.walks.half")
    setattr(figure, part, print)
    for argument in (figure, "spread", walks.spread.draw):
        with pytest.raises(TypeError, match=r"`publish\(FIGURE, …\)` needs a figure module.*Got "):
            walks.publish(figure=argument)


def test_numbers_must_return_numbers(walks, monkeypatch):
    """A plain table is refused, and no file is written."""
    monkeypatch.setattr(walks.spread, "numbers", lambda ends, quantile: ends)
    with pytest.raises(TypeError, match=r"`episodes\.walks\.figures\.spread\.numbers` must return `Numbers\("):
        walks.publish()
    assert list(Path().iterdir()) == []


def test_picture_is_drawn_from_the_published_data(walks, monkeypatch):
    """`draw` gets the published, rounded CSV read back; settings and open figures of matplotlib stay as they were."""
    settings, pictures = dict(plt.rcParams), plt.get_fignums()
    tables, draw = [], walks.spread.draw

    def draw_and_modify(table):
        tables.append(table.copy())
        picture = draw(table)
        table["std_error"] = 0.0
        return picture

    monkeypatch.setattr(walks.spread, "draw", draw_and_modify)
    walks.publish()
    (table,) = tables
    assert table["std_error"].tolist() == [1.1547, 3.4641]
    assert "2,2,1.1547,2\n" in (FOLDER / "spread.csv").read_text()
    assert dict(plt.rcParams) == settings
    assert plt.get_fignums() == pictures
