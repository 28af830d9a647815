"""`begin` and `publish` by hand: parameters checked, five files as the builder's, a cross in place of a stop."""

import base64
import dataclasses
import hashlib
import importlib
import io
import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from companion import begin
from companion.figures import store
from companion.figures.record import AlternativeRecord, ClaimRecord, ColumnRecord, FigureRecord
from companion.figures.rendering import caption_and_alt
from companion.figures.schema import Claim
from companion.io.errors import UserError
from companion.project.paths import MIME, OUT, PROFILE

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
    "papers/demo/falling_line.py": """\
        r'''A line that falls as $1/L$.

        It has a second paragraph.

        Alt: One straight line,
            falling.
        '''
        import matplotlib.pyplot as plt
        import pandas as pd
        from companion import Alternative, Claim, Column, Numbers, Table

        def numbers(length, measured=1.0):
            frame = pd.DataFrame({"length": length, "error": 1 / length})
            columns = {"length": Column("prompt length", "tokens"), "error": Column("squared error", absolute=1e-9)}
            return Numbers(Table(frame, columns), (_claim(measured),))

        def _claim(measured):
            return Claim(
                id="demo-rate",
                statement="The error < 1/L & falls.",
                source="[BB26, Lemma 2.1]",
                measured=measured,
                expected=1.0,
                tolerance=0.01,
                alternative=Alternative("the rate were twice as large", 2.0),
            )

        def draw(table):
            figure, axes = plt.subplots(figsize=(3, 2))
            axes.plot(table["length"], table["error"])
            return figure
        """,
}
CELLS = [
    "",
    "from papers.demo import falling_line, lengths",
    "# lengths, from one up\nup = lengths.up_to(3)",
    "publish(falling_line, up)",
]
FIGURE = Path("papers/demo/falling_line.py")


@pytest.fixture
def by_hand(tmp_path, monkeypatch):
    """A working folder of one's own, a book beside it, and no builder."""
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
def edit(by_hand):
    """Change a text in the figure's file, before it is imported."""

    def replace(old, new):
        text = (by_hand.parent / "book" / FIGURE).read_text(encoding="utf-8")
        assert old in text
        (by_hand.parent / "book" / FIGURE).write_text(text.replace(old, new), encoding="utf-8")

    return replace


@pytest.fixture
def demo(by_hand):
    """The notebook's imports, made when they are asked for; its parameters cell and its `publish`."""

    def module(name):
        return importlib.import_module(f"papers.demo.{name}")

    def publish(rows=3, figure=None, cells=(), **named):
        parameters = {"seed": 7, "lengths": [1, 2]}
        _, publish = begin(module("parameters").Parameters, {**parameters, "In": list(cells)})
        return publish(figure or module("falling_line"), np.arange(1, rows + 1), **named)

    folder = by_hand / "figures-scratch" / "demo"
    return SimpleNamespace(module=module, publish=publish, folder=folder)


def opened():
    return importlib.import_module("papers").opened


def test_begin_hands_out_the_parameters_and_opens_the_context(demo):
    """The values of the cell; whatever else the notebook has named is left alone."""
    p, publish = begin(demo.module("parameters").Parameters, {"seed": 7, "lengths": [1], "plot": 3, "np": np})
    assert p.model_dump() == {"seed": 7, "lengths": [1]}
    assert callable(publish)
    assert opened() == ["quiet"]


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
def test_begin_refuses_what_the_parameters_do_not_say(demo, cell, words):
    """Each parameter, its rule and its meaning; nothing is opened then."""
    with pytest.raises(ValueError, match=words):
        begin(demo.module("parameters").Parameters, cell)
    assert opened() == []


def test_five_files_are_written_to_the_working_folder(demo, by_hand):
    """`figures-scratch/<notebook>/`, one whole set and nothing else."""
    demo.publish()
    files = {path.relative_to(by_hand) for path in by_hand.rglob("*") if path.is_file()}
    assert files == {(demo.folder / f"falling_line{suffix}").relative_to(by_hand) for suffix in store.SUFFIXES}
    assert store.faults(demo.folder, "falling_line") == []


def test_same_numbers_are_the_same_bytes(demo):
    """All five files, drawn twice."""

    def contents():
        demo.publish()
        return {path.name: path.read_bytes() for path in demo.folder.iterdir()}

    first = contents()
    assert len(first) == 5
    assert contents() == first


def test_dark_picture_is_another_picture_of_the_same_size(demo):
    """Light and dark differ in colour alone."""
    demo.publish()
    light, dark = (
        (demo.folder / f"falling_line{suffix}").read_text().partition("<defs>") for suffix in (".svg", ".dark.svg")
    )
    assert light[0] == dark[0]
    assert light[2] != dark[2]


def test_record_says_everything(demo):
    """Where it comes from, with what, what the columns mean, what is claimed, how it reads aloud."""
    demo.publish()
    record = json.loads((demo.folder / "falling_line.json").read_text())
    assert set(record) == {
        *("schema_version", "figure", "notebook", "profile", "parameters", "seed", "caption", "alt"),
        *("columns", "claims", "steps", "functions", "sources", "picture", "files"),
    }
    assert (record["figure"], record["notebook"], record["profile"]) == ("falling_line", "demo", "by hand")
    assert record["parameters"] == {"seed": 7, "lengths": [1, 2]}
    assert record["seed"] == 7
    assert record["caption"] == "A line that falls as $1/L$.\n\nIt has a second paragraph."
    assert record["alt"] == "One straight line, falling."


def test_record_says_how_the_notebook_got_there(demo):
    """The steps, the functions behind them and the figure's own, the files of both."""
    record = demo.publish(cells=[*CELLS, "%timeit up", "nonsense ("]).record
    assert list(record.steps) == ["up = lengths.up_to(3)", "publish(falling_line, up)"]
    own = [f"papers.demo.falling_line.{name}" for name in ("numbers", "_claim", "draw")]
    assert list(record.functions) == ["papers.demo.lengths.up_to", *own]
    assert list(record.sources) == ["papers/demo/falling_line.py", "papers/demo/lengths.py"]


def test_record_says_its_own_functions_without_a_notebook(demo):
    """Where no cells are known there are no steps."""
    record = demo.publish().record
    assert record.steps == ()
    assert record.functions[0] == "papers.demo.falling_line.numbers"


def test_record_says_what_columns_mean(demo):
    """Each one, so that the data is read without the code."""
    columns = demo.publish().record.columns
    header = (demo.folder / "falling_line.csv").read_text().splitlines()[0]
    assert header.split(",") == list(columns)
    assert columns["error"] == ColumnRecord(meaning="squared error", kind="number", absolute=1e-9)
    assert columns["length"].kind == "integer"


def test_record_says_what_is_claimed(demo):
    """With the alternative it would catch and the verdict."""
    (claim,) = demo.publish().record.claims
    assert set(ClaimRecord.model_fields) == {
        *("holds", "catches_alternative"),
        *(part.name for part in dataclasses.fields(Claim)),
    }
    assert (claim.id, claim.source) == ("demo-rate", "[BB26, Lemma 2.1]")
    assert claim.alternative == AlternativeRecord(theory="the rate were twice as large", measured=2.0)
    assert claim.holds
    assert claim.catches_alternative


def test_record_names_its_siblings_by_sha256(demo):
    """So that a mixed set is seen."""
    record = demo.publish().record
    assert record.files == {
        suffix: hashlib.sha256((demo.folder / f"falling_line{suffix}").read_bytes()).hexdigest()
        for suffix in (".svg", ".dark.svg", ".png", ".csv")
    }


def test_nothing_volatile_is_in_the_files(demo, by_hand):
    """No time, no folder, no name of this machine."""
    demo.publish(cells=CELLS)
    for path in demo.folder.iterdir():
        content = path.read_bytes()
        assert str(by_hand.parent).encode() not in content
        assert b"<dc:date>" not in content


def test_claim_that_holds_is_shown_with_a_tick(demo):
    """Inline, beside the picture and its alt text."""
    shown = demo.publish()._repr_mimebundle_()
    assert shown[MIME] == {"figure": "demo/falling_line"}
    assert "✓" in shown["text/html"]
    assert "✗" not in shown["text/html"]
    assert 'alt="One straight line, falling."' in shown["text/html"]
    assert "The error &lt; 1/L &amp; falls." in shown["text/html"]
    # which is what prose names it by, where it cannot say what was measured
    assert f"<code>{shown['text/plain'].split()[2].removesuffix(':')}</code>" in shown["text/html"]


def test_picture_in_a_notebook_has_the_pixels_of_the_file(demo):
    """In fewer bytes."""
    published = demo.publish()
    png = (published.folder / "falling_line.png").read_bytes()
    (embedded,) = re.findall(r'src="data:image/webp;base64,([^"]*)"', published.bundle()["text/html"])
    picture = base64.b64decode(embedded)
    assert len(picture) < len(png)
    same, file = (np.asarray(Image.open(io.BytesIO(each)).convert("RGB")) for each in (picture, png))
    np.testing.assert_array_equal(same, file)


@pytest.mark.parametrize("measured", [1.2, np.nan])
def test_claim_that_fails_is_shown_with_a_cross(demo, measured):
    """By hand it does not stop the notebook. What is named goes to `numbers` by name."""
    shown = demo.publish(measured=measured)._repr_mimebundle_()
    assert "✗" in shown["text/html"]
    assert "✗ demo-rate" in shown["text/plain"]


def test_builder_says_where_to_publish(demo, by_hand, monkeypatch):
    """`COMPANION_OUT` gets the figures, the unrounded numbers and the device; the working folder nothing."""
    out = by_hand / "elsewhere"
    out.mkdir()
    monkeypatch.setenv(OUT, str(out))
    monkeypatch.setenv(PROFILE, "smoke")
    record = demo.publish().record
    assert record.profile == "smoke"
    assert store.faults(out / "figures/demo", "falling_line") == []
    assert "0.33333333333333331" in (out / "tables/demo/falling_line.csv").read_text()
    assert json.loads((out / "device.json").read_text()) == "an abacus"
    assert not (by_hand / "figures-scratch").exists()


def test_a_kernel_whose_runner_is_gone_leaves_nothing(demo, by_hand, monkeypatch):
    """It would put back a folder that the next run has removed."""
    monkeypatch.setenv(OUT, str(by_hand / "removed"))
    with pytest.raises(FileNotFoundError, match="no longer exists"):
        demo.publish()
    assert list(by_hand.iterdir()) == []


def test_what_was_said_of_the_unrounded_numbers_lies_beside_them(demo, by_hand, monkeypatch):
    """All but what pictures and captions add, so that these can be made anew."""
    (by_hand / "elsewhere").mkdir()
    monkeypatch.setenv(OUT, str(by_hand / "elsewhere"))
    record = demo.publish(cells=CELLS).record
    run = store.read_run_record(by_hand / "elsewhere/tables/demo", "falling_line")
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
    """Both are published; the error names the figure."""
    with pytest.raises(ValueError, match=r"papers\.demo\.bare"):
        caption_and_alt(ModuleType("papers.demo.bare", docstring))


def test_figure_without_alt_publishes_nothing(demo, edit, by_hand):
    """The refusal comes before the first file."""
    edit("Alt: One", "One")
    with pytest.raises(ValueError, match="Alt:"):
        demo.publish()
    assert list(by_hand.rglob("*")) == []


def test_file_over_300_kb_is_drawn_and_refused_where_it_would_be_tracked(demo):
    """By hand, or in another profile, a table may be long; what refuses it says which file and what to do."""
    demo.publish(20_000)
    assert store.faults(demo.folder, "falling_line") == []
    with pytest.raises(UserError, match=r"falling_line\.(csv|svg) has .* 300,000.*rasterize"):
        store.require_small(demo.folder, "falling_line")


@pytest.mark.parametrize("part", ["numbers", "draw"])
def test_what_is_no_figure_is_refused(demo, part):
    """A file without `numbers` or `draw`, or no file at all; the error says what is taken."""
    figure = ModuleType("papers.demo.half")
    setattr(figure, part, print)
    for wrong in (figure, "falling_line", demo.module("falling_line").draw):
        with pytest.raises(TypeError, match=r"`publish\(FIGURE, …\)` needs a figure module.*Got "):
            demo.publish(figure=wrong)


def test_numbers_are_numbers(demo, edit, by_hand):
    """A table alone says neither what it means nor what it claims; nothing is written."""
    edit("return Numbers(Table(frame, columns), (_claim(measured),))", "return frame")
    with pytest.raises(TypeError, match=r"`papers\.demo\.falling_line\.numbers` must return `Numbers\("):
        demo.publish()
    assert list(by_hand.rglob("*")) == []


def test_picture_is_drawn_from_what_a_reader_downloads(demo, edit, monkeypatch):
    """Not from the frame that `numbers` made, but from what its CSV says at full precision; a copy for each theme."""
    edit('"error": 1 / length}', '"error": 1 / length, "law": pd.Categorical(["a"] * len(length))}')
    edit("absolute=1e-9)}", 'absolute=1e-9), "law": Column("law")}')
    figure, seen = demo.module("falling_line"), []
    draw = figure.draw

    def spoiling(table):
        seen.append(table.copy())
        picture = draw(table)
        table["error"] = 0.0
        return picture

    monkeypatch.setattr(figure, "draw", spoiling)
    demo.publish()
    light, dark = seen
    pd.testing.assert_frame_equal(light, dark)
    assert light["law"].dtype == object
    assert "0.333333" in (demo.folder / "falling_line.csv").read_text()


def test_settings_and_pictures_do_not_leak(demo):
    """After publishing, matplotlib is as before."""
    settings, pictures = dict(plt.rcParams), plt.get_fignums()
    demo.publish()
    assert dict(plt.rcParams) == settings
    assert plt.get_fignums() == pictures
