"""Two builds side by side: the first difference of each figure is named, to the last digit; spelling does not count."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.figures.comparison import differences
from companion.io import atomic
from companion.io.errors import UserError

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


def build(folder: Path, table=TABLE, claims=(CLAIM,), name="toy/toy_error", rounded="length\n10\n") -> Path:
    """What a run leaves, as far as it is compared: unrounded numbers, and what is shown with the claims."""
    for kind, text in (("tables", table), ("figures", rounded)):
        path = folder / kind / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    record = atomic.dump_json({**RECORD, "claims": list(claims), "caption": folder.name})
    (folder / "figures" / f"{name}.json").write_text(record, encoding="utf-8")
    return folder


@pytest.fixture
def compared(tmp_path):
    """The difference between a build and a changed one."""

    def compare(**changes):
        (difference,) = differences(build(tmp_path / "old"), build(tmp_path / "new", **changes)).values()
        return difference

    return compare


def test_equal_builds_differ_in_nothing(compared):
    """Whatever their captions, and their numbers once they were rounded."""
    assert compared(rounded="length\n11\n") is None


TABLES = {
    "another column": (TABLE.replace("error", "mistake"), "column 2: 'error' and 'mistake'"),
    "no column": (TABLE.replace(",law", "").replace(",a", "").replace(",b", ""), "column 3: 'law' and None"),
    "another order": ("length,law,error\n10,a,0.1\n100,b,0.01\n", "column 2: 'error' and 'law'"),
    "more rows": (TABLE + "1000,0.001,c\n", "2 rows and 3"),
    "fewer rows": (TABLE.removesuffix("100,0.01,b\n"), "2 rows and 1"),
    "a whole number": (TABLE.replace("100,", "101,"), "row 2, column 'length': 100 and 101"),
    "beyond the last digit": (TABLE.replace("0.1,", "0.10000000000000001,"), None),
    "the last digit": (
        TABLE.replace("0.1,", "0.10000000000000002,"),
        "row 1, column 'error': 0.1 and 0.10000000000000002",
    ),
    "no number": (TABLE.replace("0.1,", "nan,"), "row 1, column 'error': 0.1 and nan"),
    "text": (TABLE.replace(",b", ",a"), "row 2, column 'law': b and a"),
    "two differences": (TABLE.replace("0.1,", "0.2,").replace(",b", ",a"), "row 1, column 'error': 0.1 and 0.2"),
}


@pytest.mark.parametrize(("table", "difference"), TABLES.values(), ids=TABLES)
def test_first_difference_of_a_table_is_named(compared, table, difference):
    """Columns, then rows, then every number to its last digit, in the order of reading."""
    assert compared(table=table) == difference


@pytest.mark.parametrize(
    ("one", "other"), [("10", "10.0"), ("1e-3", "0.001"), ("0", "-0.0"), ("inf", "Infinity"), ("", ""), ("nan", "nan")]
)
def test_spelling_of_a_number_does_not_count(tmp_path, one, other):
    """The value does; what is missing on both sides is the same."""
    old, new = (build(tmp_path / name, f"x,y\n{text},1\n") for name, text in [("old", one), ("new", other)])
    assert differences(old, new) == {"toy/toy_error": None}


@pytest.mark.parametrize(("one", "other"), [("", "nan"), ("", "0"), ("True", "1"), ("a", "A")])
def test_spelling_of_what_is_no_number_counts(tmp_path, one, other):
    """A gap is not a number, a flag is not one, and text is compared as text."""
    old, new = (build(tmp_path / name, f"x,y\n{text},1\n") for name, text in [("old", one), ("new", other)])
    assert differences(old, new) == {"toy/toy_error": f"row 1, column 'x': {one} and {other}"}


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
def test_difference_of_claims_is_named(compared, claims, difference):
    """Where the tables are equal: which claim, which part, both values."""
    assert compared(claims=claims).startswith(difference)


def test_order_of_claims_counts(tmp_path):
    """Pages show them in it."""
    old, new = build(tmp_path / "old", claims=[CLAIM, OTHER]), build(tmp_path / "new", claims=[OTHER, CLAIM])
    order = "order of claims: ['toy-rate', 'toy-other'] and ['toy-other', 'toy-rate']"
    assert differences(old, new) == {"toy/toy_error": order}


def test_a_record_of_the_earlier_form_is_compared(tmp_path):
    """Records had no version, and named the theory of an alternative `says`."""
    old, new = build(tmp_path / "old"), build(tmp_path / "new")
    path = old / "figures/toy/toy_error.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    del record["schema_version"]
    (claim,) = record["claims"]
    claim["alternative"] = {"says": "it rises", "measured": 2.0}
    path.write_text(json.dumps(record), encoding="utf-8")
    assert differences(old, new) == {"toy/toy_error": None}
    claim["measured"] = 1.5
    path.write_text(json.dumps(record), encoding="utf-8")
    assert differences(old, new) == {"toy/toy_error": "claim 'toy-rate', measured: 1.5 and 1.0"}


def test_figure_of_one_build_alone_is_named(tmp_path):
    """On either side, and where it is; the others are compared all the same."""
    old, new = build(tmp_path / "old"), build(tmp_path / "new")
    build(old, name="toy/older")
    build(new, name="two/newer")
    found = differences(old, new)
    assert found == {"toy/older": f"only in {old}", "toy/toy_error": None, "two/newer": f"only in {new}"}


def test_published_figures_are_a_build_too(tmp_path):
    """Compared with another such folder, or with the rounded numbers of a run: what they do not say cannot differ."""
    rounded = TABLE.replace("0.1,", "0.100000,")
    old, new = build(tmp_path / "old", rounded=rounded), build(tmp_path / "new", rounded=rounded)
    assert differences(old / "figures", new / "figures") == {"toy/toy_error": None}
    build(new, rounded=rounded, table=TABLE.replace("0.1,", "0.10000001,"))
    assert differences(old / "figures", new) == {"toy/toy_error": None}
    assert "0.10000001" in str(differences(old, new)["toy/toy_error"])
    build(new, rounded=TABLE.replace("0.1,", "0.100001,"))
    assert "0.100001" in str(differences(old / "figures", new)["toy/toy_error"])


def test_folder_without_figures_is_no_build(tmp_path):
    """The answer says what is one."""
    build(tmp_path / "old")
    with pytest.raises(UserError, match=r"nowhere contains no figures\. Name a build, such as _build/laptop"):
        differences(tmp_path / "old", tmp_path / "nowhere")


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(cli.app, list(map(str, arguments)))


def test_command_says_what_is_equal(tmp_path):
    """And ends with 0."""
    said = invoke("compare", build(tmp_path / "old"), build(tmp_path / "new"))
    assert said.exit_code == 0
    assert said.output.splitlines() == ["= toy/toy_error", "1 of 1 figures are equal."]


def test_command_says_what_differs(tmp_path):
    """And ends with 1; with 2 if there is nothing to compare."""
    new = build(tmp_path / "new", TABLE.replace("0.01", "[bold]"))
    said = invoke("compare", build(tmp_path / "old"), new)
    assert said.exit_code == 1
    assert "≠ toy/toy_error" in said.output
    assert "row 2, column 'error': 0.01 and [bold]" in said.output
    assert "0 of 1 figures are equal." in said.output
    assert invoke("compare", new, tmp_path / "nowhere").exit_code == 2


def test_two_runs_of_a_book_are_equal(ran, tmp_path):
    """With a run of its own, and with a copy in which the last digit of one number was changed."""
    build = ran.project.build("laptop").folder
    assert differences(build, build) == {"toy/toy_error": None}
    other = ran.copy_to(tmp_path / "clone")
    path = other.project.build("laptop").tables / "toy/toy_error.csv"
    lines = path.read_text().splitlines()
    row = lines[1].split(",")
    row[1] = row[1][:-1] + ("1" if row[1][-1] != "1" else "2")
    path.write_text("\n".join([lines[0], ",".join(row), *lines[2:]]) + "\n")
    assert "row 1, column 'squared_error'" in str(differences(build, other.project.build("laptop").folder))
