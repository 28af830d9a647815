"""`companion compare` names the first difference between two builds of a figure, exactly; number format is ignored."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.figures import store
from companion.figures.record import ColumnRecord
from companion.runs.compare_builds import differences
from small_books import figure_record, judged

TABLE = "length,error,law\n10,0.1,a\n100,0.01,b\n"
CLAIM = judged()
OTHER = CLAIM.model_copy(update={"id": "demo-other"})


def build(folder: Path, table=TABLE, *, name="demo/one", rounded="length\n10\n", **changes) -> Path:
    """Write the parts of a build that are compared: unrounded tables, and published tables with records."""
    for kind, text in (("tables", table), ("figures", rounded)):
        path = folder / kind / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    notebook, figure = name.split("/")
    columns = {
        column: ColumnRecord(meaning=column, absolute=0.001, kind="number")
        for column in table.partition("\n")[0].split(",")
    }
    record = figure_record(notebook=notebook, figure=figure, caption=folder.name, columns=columns, **changes)
    store.write_record(folder / "figures" / notebook, record)
    return folder


def claim(**changes):
    return {"claims": (CLAIM.model_copy(update=changes),)}


# What differs in the new build, and the first words about it. Columns are compared first, then the rows, then every
# number exactly, then the claims; captions and rounded numbers are not compared.
DIFFERENCES = {
    "rounded": ({"rounded": "length\n11\n"}, "None"),
    "column": (
        {"table": TABLE.replace("error", "mistake")},
        "its columns are length, mistake, law; published: length, error, law",
    ),
    "rows": ({"table": TABLE + "1000,0.001,c\n"}, "it has 3 rows; published: 2"),
    "text": ({"table": TABLE.replace(",b", ",B")}, "its rows differ: law of row 2 is B; published: b"),
    "no whole number": ({"table": TABLE.replace("10,", ",", 1)}, "its rows differ: length of row 1 is nan"),
    "beyond the last digit": ({"table": TABLE.replace("0.1,", "0.10000000000000001,")}, "None"),
    "last digit": (
        {"table": TABLE.replace("0.1,", "0.10000000000000002,")},
        "row 1, column 'error': 0.1 and 0.10000000000000002",
    ),
    "no number": ({"table": TABLE.replace("0.1,", "nan,")}, "row 1, column 'error': 0.1 and nan"),
    "two numbers": (
        {"table": TABLE.replace("0.1,", "0.101,").replace("0.01", "0.02")},
        "row 1, column 'error': 0.1 and 0.101. Largest: error of row 2 differs by 10 tolerances",
    ),
    "claim gone": ({"claims": ()}, "claim 'demo-rate' is only in the old record"),
    "claim new": ({"claims": (CLAIM, OTHER)}, "claim 'demo-other' is only in the new record"),
    "measured": (claim(measured=1.00001), "claim 'demo-rate', measured: 1.0 and 1.00001"),
    "verdict": (claim(holds=False), "claim 'demo-rate', holds: True and False"),
    "statement": (claim(statement="It stays."), "claim 'demo-rate', statement: 'It falls.' and 'It stays.'"),
    "alternative": ({"claims": (judged(alternative=("it stays", 2.0)),)}, "claim 'demo-rate', alternative: {'theory'"),
}


@pytest.mark.parametrize(("changes", "words"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_the_first_difference_of_a_figure_is_named(tmp_path, changes, words):
    (difference,) = differences(build(tmp_path / "old"), build(tmp_path / "new", **changes)).values()
    assert str(difference).startswith(words)


def test_number_format_is_ignored(tmp_path):
    """Only values are compared; two missing values are equal."""
    rows = {"old": "10,1e-3,0,inf,,nan", "new": "10.0,0.001,-0.0,Infinity,,nan"}
    old, new = (build(tmp_path / name, f"a,b,c,d,e,f\n{row}\n") for name, row in rows.items())
    assert differences(old, new) == {"demo/one": None}


def test_a_figure_in_only_one_build_is_named(tmp_path):
    """The report names its folder; the other figures are still compared."""
    old, new = build(tmp_path / "old"), build(tmp_path / "new")
    build(old, name="demo/older")
    build(new, name="two/newer", claims=(OTHER,))
    expected = {"demo/older": f"only in {old}", "demo/one": None, "two/newer": f"only in {new}"}
    assert differences(old, new) == expected


def test_published_figures_are_compared_like_a_build(tmp_path):
    """A folder of published figures has rounded numbers, which are compared with the other side's rounded numbers."""
    rounded = TABLE.replace("0.1,", "0.100000,")
    old, new = build(tmp_path / "old", rounded=rounded), build(tmp_path / "new", rounded=rounded)
    build(new, TABLE.replace("0.1,", "0.10000001,"), rounded=rounded)
    assert differences(old / "figures", new) == differences(old / "figures", new / "figures") == {"demo/one": None}
    assert "0.10000001" in str(differences(old, new)["demo/one"])
    build(new, rounded=TABLE.replace("0.1,", "0.100001,"))
    assert "0.100001" in str(differences(old / "figures", new)["demo/one"])


COMMANDS = [
    ("same", 0, "= demo/one\n1 of 1 figures are equal.\n"),
    ("new", 1, "≠ demo/one\n  its rows differ: error of row 2 is [bold]; published: 0.01\n0 of 1 figures are equal.\n"),
    ("empty", 2, "empty contains no figures. Name a build, such as _build/laptop"),
]


@pytest.mark.parametrize(("other", "code", "words"), COMMANDS)
def test_the_command_reports_equal_and_different_figures(tmp_path, other, code, words):
    for name, table in {"old": TABLE, "same": TABLE, "new": TABLE.replace("0.01", "[bold]")}.items():
        build(tmp_path / name, table)
    (tmp_path / "empty").mkdir()
    result = CliRunner().invoke(cli.app, ["compare", str(tmp_path / "old"), str(tmp_path / other)])
    assert result.exit_code == code
    assert words in result.output
