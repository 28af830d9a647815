"""`begin` and `publish` in a notebook run by hand: parameter checks, published files, and the verdicts of claims."""

import importlib
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion import begin
from companion.figures import store
from companion.figures.record import Alternative, ColumnRecord, FigureRecord
from companion.figures.rendering import caption_and_alt
from companion.project.paths import MIME, NOTEBOOK, OUT, PROFILE

BOOK = {
    "pyproject.toml": """\
        [tool.companion]
        chapters = "papers"
        context = "papers:quiet"
        device = "papers:device"
        """,
    "papers/__init__.py": """\
        opened = []
        def quiet(): opened.append("quiet")
        def device(): return "an abacus"
        """,
    "papers/demo/__init__.py": "",
    "papers/demo/parameters.py": """\
        from typing import Annotated
        from pydantic import Field
        import companion

        class Parameters(companion.Parameters):
            seed: Annotated[int, Field(ge=0, description="All follows from it.")]
            lengths: list[int]
        """,
    "papers/demo/lengths.py": """\
        import numpy as np
        def up_to(rows): return np.arange(1, rows + 1)
        """,
    "papers/demo/figures/__init__.py": "",
    "papers/demo/figures/falling_line.py": """\
        r'''A line that falls as $1/L$.

        It has a second paragraph.

        Alt: One straight line,
            falling.
        '''
        import matplotlib.pyplot as plt
        import pandas as pd
        from companion import Claims, Column, Numbers, Table

        def numbers(length, measured=1.0):
            frame = pd.DataFrame({"length": length, "error": 1 / length})
            columns = {"length": Column("prompt length", "tokens"), "error": Column("squared error", absolute=1e-9)}
            claim = Claims("demo", source="[BB26, Lemma 2.1]")
            twice = ("the rate were twice as large", 2.0)
            claim.equal("rate", "The error < 1/L & falls.", measured, 1.0, within=0.01, because="so", rejects=twice)
            return Numbers(Table(frame, columns), claim)

        def draw(table):
            figure, axes = plt.subplots(figsize=(3, 2))
            axes.plot(table["length"], table["error"])
            return figure
        """,
}
CELLS = [
    "",
    "from papers.demo import lengths",
    "from papers.demo.figures import falling_line",
    "# lengths, from one up\nup = lengths.up_to(3)",
    "publish(falling_line, up)",
]
FIGURE = Path("papers/demo/figures/falling_line.py")


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    """A working folder outside of the book; no build sets the environment variables of `companion`."""
    for path, text in BOOK.items():
        lines = [line.removeprefix("        ") for line in text.splitlines()]
        (tmp_path / "book" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "book" / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.delenv(OUT, raising=False)
    monkeypatch.delenv(PROFILE, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "book"))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


@pytest.fixture
def edit(working_folder):
    """Return a function that edits the figure's module before it is imported."""

    def replace(old, new):
        text = (working_folder.parent / "book" / FIGURE).read_text(encoding="utf-8")
        assert old in text
        (working_folder.parent / "book" / FIGURE).write_text(text.replace(old, new), encoding="utf-8")

    return replace


@pytest.fixture
def demo(working_folder):
    """The demo notebook: a function that imports its modules, one that publishes its figure, and the output folder."""

    def module(name):
        return importlib.import_module(f"papers.demo.{name}")

    def publish(rows=3, figure=None, **named):
        _, publish = begin(module("parameters").Parameters, {"seed": 7, "lengths": [1, 2]})
        return publish(figure or module("figures.falling_line"), np.arange(1, rows + 1), **named)

    folder = working_folder / "figures-scratch" / "demo"
    return SimpleNamespace(module=module, publish=publish, folder=folder)


def opened_contexts():
    return importlib.import_module("papers").opened


def test_begin_returns_the_parameters_and_opens_the_context(demo):
    """Only the names of parameters are read from the notebook."""
    p, publish = begin(demo.module("parameters").Parameters, {"seed": 7, "lengths": [1], "plot": 3, "np": np})
    assert p.model_dump() == {"seed": 7, "lengths": [1]}
    assert callable(publish)
    assert opened_contexts() == ["quiet"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({}, r"must give a value to every parameter\. Run it first\. Missing: seed, lengths"),
        ({"seed": 1}, r"'demo' must give a value.* Missing: lengths\."),
        ({"seed": -1, "lengths": [1]}, r"'demo'.*\n.*`seed`.*greater than.*Got -1.*All follows from it\."),
        ({"seed": True, "lengths": ["a"]}, r"`seed`.*\n.*`lengths\[0\]`.*Got 'a'"),
        ({"seed": 1, "lengths": np}, r"import after the parameters cell of 'demo' must not use.*lengths.*another name"),
    ],
    ids=["none", "missing", "range", "types", "shadowed"],
)
def test_begin_refuses_invalid_parameters(demo, cell, words):
    """The error names each invalid parameter, its rule and its meaning; the context is not opened."""
    with pytest.raises(ValueError, match=words):
        begin(demo.module("parameters").Parameters, cell)
    assert opened_contexts() == []


def test_five_files_are_written_to_the_working_folder(demo, working_folder):
    """`figures-scratch/<notebook>/` contains one complete set of files and nothing else."""
    demo.publish()
    files = {path.relative_to(working_folder) for path in working_folder.rglob("*") if path.is_file()}
    assert files == {(demo.folder / f"falling_line{suffix}").relative_to(working_folder) for suffix in store.SUFFIXES}
    assert store.faults(demo.folder, "falling_line") == []


def test_publishing_twice_gives_identical_files(demo):
    """This holds for all four files."""

    def contents():
        demo.publish()
        return {path.name: path.read_bytes() for path in demo.folder.iterdir()}

    first = contents()
    assert len(first) == 4
    assert contents() == first


@pytest.fixture
def built(working_folder, monkeypatch):
    """The folder of a build whose notebook has `CELLS`."""
    cells = [{"cell_type": "code", "metadata": {}, "source": source} for source in (*CELLS, "%timeit up", "nonsense (")]
    path, out = working_folder / "demo.ipynb", working_folder / "out"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    out.mkdir()
    monkeypatch.setenv(NOTEBOOK, str(path))
    monkeypatch.setenv(OUT, str(out))
    return out


@pytest.mark.usefixtures("built")
def test_record_contains_the_steps_of_the_notebook(demo):
    """It lists the steps that lead to the figure, their functions and those of the figure, and the files of both."""
    record = demo.publish().record
    assert list(record.steps) == ["up = lengths.up_to(3)", "publish(falling_line, up)"]
    figure_functions = [f"papers.demo.figures.falling_line.{name}" for name in ("numbers", "draw")]
    assert list(record.functions) == ["papers.demo.lengths.up_to", *figure_functions]
    assert list(record.sources) == ["papers/demo/figures/falling_line.py", "papers/demo/lengths.py"]


def test_record_describes_every_column(demo):
    """Readers can interpret the data without the code."""
    columns = demo.publish().record.columns
    header = (demo.folder / "falling_line.csv").read_text().splitlines()[0]
    assert header.split(",") == list(columns)
    assert columns["error"] == ColumnRecord(meaning="squared error", kind="number", absolute=1e-9)
    assert columns["length"].kind == "integer"


def test_record_contains_the_claims(demo):
    """Each claim has its alternative and its verdict."""
    (claim,) = demo.publish().record.claims
    assert (claim.id, claim.source) == ("demo-rate", "[BB26, Lemma 2.1]")
    assert claim.alternative == Alternative(theory="the rate were twice as large", measured=2.0)
    assert claim.holds
    assert claim.catches_alternative


def test_files_contain_no_date_and_no_path(demo, working_folder):
    """Equal runs on different machines give equal files."""
    demo.publish()
    for path in demo.folder.iterdir():
        content = path.read_bytes()
        assert str(working_folder.parent).encode() not in content
        assert b"<dc:date>" not in content


def test_claim_that_holds_is_shown_with_a_tick(demo):
    """The output shows it next to the picture, which has its alt text."""
    shown = demo.publish()._repr_mimebundle_()
    assert shown[MIME] == {"figure": "demo/falling_line"}
    assert "✓" in shown["text/html"]
    assert "✗" not in shown["text/html"]
    assert 'alt="One straight line, falling."' in shown["text/html"]
    assert "The error &lt; 1/L &amp; falls." in shown["text/html"]
    # the id by which prose refers to the claim
    assert f"<code>{shown['text/plain'].split()[2].removesuffix(':')}</code>" in shown["text/html"]


@pytest.mark.parametrize("measured", [1.2, np.nan])
def test_claim_that_fails_is_shown_with_a_cross(demo, measured):
    """The notebook does not stop; keyword arguments of `publish` are passed to `numbers`."""
    shown = demo.publish(measured=measured)._repr_mimebundle_()
    assert "✗" in shown["text/html"]
    assert "✗ demo-rate" in shown["text/plain"]


def test_build_sets_the_output_folder(demo, built, working_folder, monkeypatch):
    """Figures, unrounded numbers and the device go to `COMPANION_OUT`, and nothing to the working folder."""
    monkeypatch.setenv(PROFILE, "smoke")
    record = demo.publish().record
    assert record.profile == "smoke"
    assert store.faults(built / "figures/demo", "falling_line") == []
    assert "0.33333333333333331" in (built / "tables/demo/falling_line.csv").read_text()
    assert json.loads((built / "device.json").read_text()) == "an abacus"
    assert not (working_folder / "figures-scratch").exists()


def test_a_kernel_whose_output_folder_was_removed_writes_nothing(demo, built):
    """Otherwise it would restore a folder that the next run has removed."""
    built.rmdir()
    with pytest.raises(FileNotFoundError, match="no longer exists"):
        demo.publish()
    assert not built.exists()


def test_unrounded_numbers_have_the_record_of_the_run(demo, built):
    """With caption, alt text and picture it becomes the published record, so that figures can be redrawn."""
    record = demo.publish().record
    run = store.read_run_record(built / "tables/demo", "falling_line")
    added = {"caption": record.caption, "alt": record.alt, "picture": record.picture, "files": record.files}
    assert FigureRecord.of_run(run, **added) == record


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
def test_publish_refuses_an_incomplete_figure(demo, part):
    """The argument must be a module with `numbers` and `draw`; the error states that."""
    figure = ModuleType("papers.demo.half")
    setattr(figure, part, print)
    for argument in (figure, "falling_line", demo.module("figures.falling_line").draw):
        with pytest.raises(TypeError, match=r"`publish\(FIGURE, …\)` needs a figure module.*Got "):
            demo.publish(figure=argument)


def test_numbers_must_return_numbers(demo, edit, working_folder):
    """A plain table is refused, and no file is written."""
    edit("return Numbers(Table(frame, columns), claim)", "return frame")
    with pytest.raises(TypeError, match=r"`papers\.demo\.figures\.falling_line\.numbers` must return `Numbers\("):
        demo.publish()
    assert list(working_folder.rglob("*")) == []


def test_picture_is_drawn_from_the_published_data(demo, edit, monkeypatch):
    """`draw` gets the published, rounded CSV read back."""
    edit('"error": 1 / length}', '"error": 1 / length, "law": pd.Categorical(["a"] * len(length))}')
    edit("absolute=1e-9)}", 'absolute=1e-9), "law": Column("law")}')
    figure, tables = demo.module("figures.falling_line"), []
    draw = figure.draw

    def draw_and_modify(table):
        tables.append(table.copy())
        picture = draw(table)
        table["error"] = 0.0
        return picture

    monkeypatch.setattr(figure, "draw", draw_and_modify)
    demo.publish()
    (table,) = tables
    assert table["law"].dtype == object
    assert 0.333333 in set(table["error"])
    assert "0.333333" in (demo.folder / "falling_line.csv").read_text()


def test_publishing_keeps_matplotlib_settings_and_figures(demo):
    """After publishing, the settings and open figures are as before."""
    settings, pictures = dict(plt.rcParams), plt.get_fignums()
    demo.publish()
    assert dict(plt.rcParams) == settings
    assert plt.get_fignums() == pictures
