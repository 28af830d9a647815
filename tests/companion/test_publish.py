"""`publish(plot, result)` by hand: the same five files as the builder's, a cross in place of a stop."""

import hashlib
import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from companion import figure_set
from companion.house import MIME, OUT, PROFILE
from companion.publishing import caption_and_alt, publish
from lib.experiments.result import Alternative, Claim, Column, Result, Table


def falling_line(result):
    r"""A line that falls as $1/L$.

    It has a second paragraph.

    Alt: One straight line,
        falling.
    """
    frame = result.tables["falling_line"].frame
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.plot(frame["length"], frame["error"])
    return figure


def result_of(rows=3, measured=1.0):
    """What an experiment `demo` would hand over."""
    length = np.arange(1, rows + 1)
    frame = pd.DataFrame({"length": length, "error": 1 / length})
    columns = {"length": Column("prompt length", "tokens"), "error": Column("squared error", absolute=1e-9)}
    claim = Claim(
        id="demo-rate",
        statement="The error < 1/L & falls.",
        source="[BB26, Lemma 2.1]",
        figure="falling_line",
        measured=measured,
        expected=1.0,
        tolerance=0.01,
        alternative=Alternative("the rate were twice as large", 2.0),
    )
    return Result({"falling_line": Table(frame, columns)}, (claim,), "demo", {"seed": 7, "lengths": [1, 2]})


@pytest.fixture
def by_hand(tmp_path, monkeypatch):
    """A working folder of one's own, and no builder."""
    monkeypatch.delenv(OUT, raising=False)
    monkeypatch.delenv(PROFILE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_five_files_are_written_to_the_working_folder(by_hand):
    """`figures-scratch/<experiment>/`, one whole set and nothing else."""
    publish(falling_line, result_of())
    folder = by_hand / "figures-scratch" / "demo"
    files = {path.relative_to(by_hand) for path in by_hand.rglob("*") if path.is_file()}
    assert files == {(folder / f"falling_line{suffix}").relative_to(by_hand) for suffix in figure_set.SUFFIXES}
    assert figure_set.faults(folder, "falling_line") == []


def test_same_numbers_are_the_same_bytes(by_hand):
    """All five files, drawn twice."""
    folder = by_hand / "figures-scratch" / "demo"

    def contents():
        publish(falling_line, result_of())
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first = contents()
    assert len(first) == 5
    assert contents() == first


def test_dark_picture_is_another_picture_of_the_same_size(by_hand):
    """Light and dark differ in colour alone."""
    publish(falling_line, result_of())
    light, dark = (
        (by_hand / "figures-scratch/demo" / f"falling_line{suffix}").read_text().partition("<defs>")
        for suffix in (".svg", ".dark.svg")
    )
    assert light[0] == dark[0]
    assert light[2] != dark[2]


def test_record_says_everything(by_hand):
    """Where it comes from, with what, what the columns mean, what is claimed, how it reads aloud."""
    publish(falling_line, result_of())
    record = json.loads((by_hand / "figures-scratch/demo/falling_line.json").read_text())
    assert set(record) == {
        *("figure", "notebook", "profile", "parameters", "seed", "caption", "alt"),
        *("columns", "claims", "functions", "sources", "files"),
    }
    assert (record["figure"], record["notebook"], record["profile"]) == ("falling_line", "demo", "by hand")
    assert record["parameters"] == {"seed": 7, "lengths": [1, 2]}
    assert record["seed"] == 7
    assert record["caption"] == "A line that falls as $1/L$.\n\nIt has a second paragraph."
    assert record["alt"] == "One straight line, falling."
    assert record["functions"][0] == "lib.experiments.demo.demo"
    assert record["functions"][1].endswith(".falling_line")


def test_record_says_what_columns_mean(by_hand):
    """Each one, so that the data is read without the code."""
    columns = publish(falling_line, result_of()).record["columns"]
    header = (by_hand / "figures-scratch/demo/falling_line.csv").read_text().splitlines()[0]
    assert set(header.split(",")) == set(columns)
    assert columns["error"] == {"meaning": "squared error", "unit": "1", "std_error": None, "absolute": 1e-9}


def test_record_says_what_is_claimed(by_hand):
    """With the alternative it would catch and the verdict."""
    (claim,) = publish(falling_line, result_of()).record["claims"]
    assert set(claim) == {
        *("id", "statement", "source", "measured", "expected", "tolerance", "relation", "std_error"),
        *("alternative", "holds", "catches_alternative"),
    }
    assert claim["alternative"] == {"says": "the rate were twice as large", "measured": 2.0}
    assert claim["holds"]
    assert claim["catches_alternative"]


def test_record_names_its_siblings_by_sha256(by_hand):
    """So that a mixed set is seen."""
    record = publish(falling_line, result_of()).record
    folder = by_hand / "figures-scratch/demo"
    assert record["files"] == {
        suffix: hashlib.sha256((folder / f"falling_line{suffix}").read_bytes()).hexdigest()
        for suffix in (".svg", ".dark.svg", ".png", ".csv")
    }


def test_nothing_volatile_is_in_the_files(by_hand):
    """No time, no folder, no name of this machine."""
    publish(falling_line, result_of())
    for path in (by_hand / "figures-scratch/demo").iterdir():
        content = path.read_bytes()
        assert str(by_hand).encode() not in content
        assert b"<dc:date>" not in content


def test_claim_that_holds_is_shown_with_a_tick(by_hand):
    """Inline, beside the picture and its alt text."""
    shown = publish(falling_line, result_of())._repr_mimebundle_()
    assert shown[MIME] == {"figure": "demo/falling_line"}
    assert "✓" in shown["text/html"]
    assert "✗" not in shown["text/html"]
    assert 'alt="One straight line, falling."' in shown["text/html"]
    assert "The error &lt; 1/L &amp; falls." in shown["text/html"]


@pytest.mark.parametrize("measured", [1.2, np.nan])
def test_claim_that_fails_is_shown_with_a_cross(by_hand, measured):
    """By hand it does not stop the notebook."""
    shown = publish(falling_line, result_of(measured=measured))._repr_mimebundle_()
    assert "✗" in shown["text/html"]
    assert "✗ demo-rate" in shown["text/plain"]


def test_builder_says_where_to_publish(by_hand, monkeypatch):
    """`COMPANION_OUT` gets the figures and the unrounded numbers; the working folder nothing."""
    out = by_hand / "elsewhere"
    monkeypatch.setenv(OUT, str(out))
    monkeypatch.setenv(PROFILE, "smoke")
    record = publish(falling_line, result_of()).record
    assert record["profile"] == "smoke"
    assert figure_set.faults(out / "figures/demo", "falling_line") == []
    assert "0.33333333333333331" in (out / "tables/demo/falling_line.csv").read_text()
    assert not (by_hand / "figures-scratch").exists()


def drawn_without_text(result):
    return falling_line(result)


def drawn_without_alt(result):
    """A caption alone."""
    return falling_line(result)


def drawn_without_caption(result):
    """Alt: A description alone."""
    return falling_line(result)


def drawn_with_two_alts(result):
    """A caption.

    Alt: One.

    Alt: Two.
    """
    return falling_line(result)


@pytest.mark.parametrize("plot", [drawn_without_text, drawn_without_alt, drawn_without_caption, drawn_with_two_alts])
def test_plot_needs_a_caption_and_one_alt_text(plot):
    """Both are published; the error names the plot."""
    with pytest.raises(ValueError, match=plot.__name__):
        caption_and_alt(plot)


def test_plot_without_alt_publishes_nothing(by_hand):
    """The refusal comes before the first file."""
    result = result_of()
    renamed = Result({"drawn_without_alt": result.tables["falling_line"]}, (), "demo")
    with pytest.raises(ValueError, match="Alt:"):
        publish(drawn_without_alt, renamed)
    assert list(by_hand.rglob("*.*")) == []


@pytest.mark.parametrize("rows", [20_000])
def test_file_over_300_kb_is_refused(by_hand, rows):
    """A table too long to publish; the error says which file and what to do."""
    with pytest.raises(ValueError, match=r"falling_line\.(csv|svg) has .* 300,000 .*rasterize"):
        publish(falling_line, result_of(rows))
    assert figure_set.faults(by_hand / "figures-scratch/demo", "falling_line")


def test_picture_is_drawn_from_the_table_of_its_name(by_hand):
    """Another name is a KeyError that lists the tables there are."""
    with pytest.raises(KeyError, match=r"no table 'drawn_without_alt'.*\['falling_line'\]"):
        publish(drawn_without_alt, result_of())


def test_settings_and_pictures_do_not_leak(by_hand):
    """After publishing, matplotlib is as before."""
    settings, pictures = dict(plt.rcParams), plt.get_fignums()
    publish(falling_line, result_of())
    assert dict(plt.rcParams) == settings
    assert plt.get_fignums() == pictures
