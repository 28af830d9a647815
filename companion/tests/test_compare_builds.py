"""`companion compare` names the first difference between two builds of a figure, exactly; number format is ignored."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.io import atomic
from companion.io.errors import UserError
from companion.runs.compare_builds import differences

TABLE = "length,error,law\n10,0.1,a\n100,0.01,b\n"
CLAIM = {
    "id": "toy-rate",
    "statement": "It falls.",
    "source": "derived here",
    "measured": 1.0,
    "expected": 1.0,
    "tolerance": 0.3,
    "relation": "=",
    "alternative": {"theory": "it rises", "measured": 2.0},
    "holds": True,
    "catches_alternative": True,
}
RECORD = {
    "schema_version": 1,
    "figure": "toy_error",
    "notebook": "toy",
    "profile": "laptop",
    "parameters": {},
    "columns": {},
    "steps": [],
    "functions": [],
    "sources": [],
    "alt": "A line.",
    "picture": "1234",
    "files": {},
}
OTHER = CLAIM | {"id": "toy-other"}
KINDS = {"length": "integer", "error": "number", "law": "text"}


def build(
    folder: Path, table=TABLE, claims=(CLAIM,), name="toy/toy_error", *, rounded="length\n10\n", columns=None
) -> Path:
    """Write the parts of a build that are compared: unrounded tables, and published tables with records."""
    for kind, text in (("tables", table), ("figures", rounded)):
        path = folder / kind / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    names = table.partition("\n")[0].split(",")
    columns = columns or {column: {"meaning": column, "kind": "number"} for column in names}
    parts = {"claims": list(claims), "caption": folder.name, "columns": columns}
    record = atomic.dump_json({**RECORD, **parts})
    (folder / "figures" / f"{name}.json").write_text(record, encoding="utf-8")
    return folder


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares a build with a changed one."""

    def compare(**changes):
        (difference,) = differences(build(tmp_path / "old"), build(tmp_path / "new", **changes)).values()
        return difference

    return compare


def test_equal_builds_have_no_differences(compared):
    """Captions and rounded numbers are not compared."""
    assert compared(rounded="length\n11\n") is None


COLUMNS = "its columns are {}; published: length, error, law"
TABLES = {
    "another column": (TABLE.replace("error", "mistake"), COLUMNS.format("length, mistake, law")),
    "no column": (TABLE.replace(",law", "").replace(",a", "").replace(",b", ""), COLUMNS.format("length, error")),
    "another order": ("length,law,error\n10,a,0.1\n100,b,0.01\n", COLUMNS.format("length, law, error")),
    "more rows": (TABLE + "1000,0.001,c\n", "it has 3 rows; published: 2"),
    "fewer rows": (TABLE.removesuffix("100,0.01,b\n"), "it has 1 rows; published: 2"),
    "a whole number": (TABLE.replace("100,", "101,"), "its rows differ: length of row 2 is 101.0; published: 100.0"),
    "beyond the last digit": (TABLE.replace("0.1,", "0.10000000000000001,"), "None"),
    "the last digit": (
        TABLE.replace("0.1,", "0.10000000000000002,"),
        "row 1, column 'error': 0.1 and 0.10000000000000002",
    ),
    "no number": (TABLE.replace("0.1,", "nan,"), "row 1, column 'error': 0.1 and nan"),
    "text": (TABLE.replace(",b", ",a"), "its rows differ: law of row 2 is a; published: b"),
    "two numbers": (TABLE.replace("0.1,", "0.2,").replace("0.01", "0.03"), "row 1, column 'error': 0.1 and 0.2"),
}


@pytest.mark.parametrize(("table", "difference"), TABLES.values(), ids=TABLES)
def test_first_difference_of_a_table_is_named(compared, table, difference):
    """Columns are compared first, then the rows, then every number exactly."""
    assert str(compared(table=table)).startswith(difference)


@pytest.mark.parametrize(
    ("left", "right"), [("10", "10.0"), ("1e-3", "0.001"), ("0", "-0.0"), ("inf", "Infinity"), ("", ""), ("nan", "nan")]
)
def test_number_format_is_ignored(tmp_path, left, right):
    """Only values are compared; two missing values are equal."""
    old, new = (build(tmp_path / name, f"x,y\n{text},1\n") for name, text in [("old", left), ("new", right)])
    assert differences(old, new) == {"toy/toy_error": None}


@pytest.mark.parametrize(("left", "right"), [("", "0"), ("a", "A")])
def test_a_missing_value_and_text_are_no_numbers(tmp_path, left, right):
    old, new = (build(tmp_path / name, f"x,y\n{text},1\n") for name, text in [("old", left), ("new", right)])
    assert differences(old, new)["toy/toy_error"].startswith("its rows differ: x of row 1 is")


@pytest.mark.parametrize(
    ("claims", "difference"),
    [
        ([], "claim 'toy-rate' is only in the old record"),
        ([CLAIM, OTHER], "claim 'toy-other' is only in the new record"),
        ([CLAIM | {"measured": 1.00001}], "claim 'toy-rate', measured: 1.0 and 1.00001"),
        ([CLAIM | {"holds": False}], "claim 'toy-rate', holds: True and False"),
        ([CLAIM | {"statement": "It stays."}], "claim 'toy-rate', statement: 'It falls.' and 'It stays.'"),
        (
            [CLAIM | {"alternative": {"theory": "it rises", "measured": 3.0}}],
            "claim 'toy-rate', alternative: {'theory'",
        ),
    ],
    ids=["gone", "new", "measured", "verdict", "statement", "alternative"],
)
def test_first_difference_of_claims_is_named(compared, claims, difference):
    """If the tables are equal, the difference names the claim, its field, and both values."""
    assert compared(claims=claims).startswith(difference)


def test_figure_in_only_one_build_is_named(tmp_path):
    """The report names its folder; the other figures are still compared."""
    old, new = build(tmp_path / "old"), build(tmp_path / "new")
    build(old, name="toy/older")
    build(new, name="two/newer", claims=(OTHER,))
    assert differences(old, new) == {
        "toy/older": f"only in {old}",
        "toy/toy_error": None,
        "two/newer": f"only in {new}",
    }


def test_published_figures_are_compared_like_a_build(tmp_path):
    """A folder of published figures has rounded numbers, which are compared with the other side's rounded numbers."""
    rounded = TABLE.replace("0.1,", "0.100000,")
    old, new = build(tmp_path / "old", rounded=rounded), build(tmp_path / "new", rounded=rounded)
    assert differences(old / "figures", new / "figures") == {"toy/toy_error": None}
    build(new, rounded=rounded, table=TABLE.replace("0.1,", "0.10000001,"))
    assert differences(old / "figures", new) == {"toy/toy_error": None}
    assert "0.10000001" in str(differences(old, new)["toy/toy_error"])
    build(new, rounded=TABLE.replace("0.1,", "0.100001,"))
    assert "0.100001" in str(differences(old / "figures", new)["toy/toy_error"])


def test_folder_without_figures_is_refused(tmp_path):
    """The error explains what a build is."""
    build(tmp_path / "old")
    with pytest.raises(UserError, match=r"nowhere contains no figures\. Name a build, such as _build/laptop"):
        differences(tmp_path / "old", tmp_path / "nowhere")


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(cli.app, list(map(str, arguments)))


def test_command_reports_differences(tmp_path):
    """The exit status is 1, or 2 if there is nothing to compare."""
    new = build(tmp_path / "new", TABLE.replace("0.01", "[bold]"))
    result = invoke("compare", build(tmp_path / "old"), new)
    assert result.exit_code == 1
    assert "≠ toy/toy_error" in result.output
    assert "its rows differ: error of row 2 is [bold]; published: 0.01" in result.output
    assert "0 of 1 figures are equal." in result.output
    assert invoke("compare", new, tmp_path / "nowhere").exit_code == 2


def test_the_largest_difference_is_given_in_tolerances(tmp_path):
    """A tolerance is `absolute`, and 1e-6 of the value, and half a unit of the sixth digit."""
    columns = {
        name: {"meaning": name, "unit": "1", "absolute": 0.001, "kind": KINDS[name]}
        for name in ("length", "error", "law")
    }
    old = build(tmp_path / "old", columns=columns)
    new = build(tmp_path / "new", columns=columns, table=TABLE.replace("100,0.01", "100,0.02"))
    (difference,) = differences(old, new).values()
    assert difference == "row 2, column 'error': 0.01 and 0.02. Largest: error of row 2 differs by 10 tolerances"
