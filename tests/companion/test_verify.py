"""`companion verify`: it passes where nothing was touched, and sees every change of what is published.

The book is `another_paper`: it is run once, verified once, and compared with many copies of its figures.
"""

import json
import shutil
from pathlib import Path

import pytest

from companion.figures import store
from companion.figures.record import ClaimRecord
from companion.figures.schema import Alternative, Claim
from companion.project.paths import Project
from companion.runs import verify
from companion.runs.verify import Verification

RECORD, TABLE, PICTURE = "spread.json", "spread.csv", "spread.svg"


@pytest.fixture(scope="module")
def verified(walked, tmp_path_factory):
    """The book, run and then verified by the command, for reading only; `.finished` is what that said."""
    book = walked.copy_to(tmp_path_factory.mktemp("verified") / "a book")
    book.finished = book.companion("verify")
    return book


@pytest.fixture
def figures(verified, tmp_path):
    """A copy of the published figures, to change."""
    return Path(shutil.copytree(verified.project.published, tmp_path / "figures"))


@pytest.fixture
def told(verified, figures):
    """What a verification says of these figures, `figure: what`, from the numbers that the one above computed."""

    def tell():
        verification = Verification({}, figures, verified.project)
        verdicts = verification.verdicts(Project(verified.project.verified), "walks")
        return {f"{verdict.figure}: {found.what}": found for verdict in verdicts for found in verdict.differences}

    return tell


def edit(path: Path, change) -> None:
    """Change a record, and leave it as a record is written."""
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def name_anew(folder: Path, figure: str) -> None:
    """Let the record name the files that are there, as somebody would who wants a change to go unnoticed."""
    edit(folder / f"{figure}.json", lambda record: record.update(files=store.digests(folder, figure)))


def multiply(path: Path, column: str, factor: float) -> None:
    """Change the first number of a column."""
    header, first, *rest = path.read_text(encoding="utf-8").splitlines()
    values, place = first.split(","), header.split(",").index(column)
    values[place] = f"{float(values[place]) * factor:.6g}"
    path.write_text("\n".join([header, ",".join(values), *rest]) + "\n", encoding="utf-8")


def test_what_is_published_is_what_the_code_gives(verified):
    assert verified.finished.returncode == 0, verified.finished.stdout + verified.finished.stderr
    assert "✓ walks — 1 of 1" in verified.finished.stdout
    assert "All 2 figures are reproduced." in verified.finished.stdout


def test_nothing_but_a_copy_is_written(walked, verified):
    after = {path: content for path, content in verified.tree().items() if not path.startswith("_build/verify/")}
    assert after.keys() - walked.tree().keys() == {"_build/.verify.lock"}
    assert walked.tree().items() <= after.items()


def test_untouched_figures_differ_in_nothing(told):
    """Or the tests below would see what is always there."""
    assert told() == {}


def test_one_number_changed_by_a_hundredth_is_seen(verified, figures, tmp_path):
    """By the command, which says in which file, and ends with 1."""
    multiply(figures / "walks" / TABLE, "mean_square", 1.01)
    finished = verified.copy_to(tmp_path / "clone").companion("verify", "--figures", str(figures))
    assert finished.returncode == 1
    assert "spread.csv is not the file its record names" in finished.stdout
    assert "1 of 2 figures are not reproduced" in finished.stdout


def test_a_swapped_picture_ends_it(verified, figures, tmp_path):
    """With 1, though its digest is in the record."""
    shutil.copyfile(figures / "walks/returns.svg", figures / "walks" / PICTURE)
    name_anew(figures / "walks", "spread")
    finished = verified.copy_to(tmp_path / "clone").companion("verify", "--figures", str(figures))
    assert finished.returncode == 1
    assert "1 of 2 figures are not reproduced" in finished.stdout
    assert PICTURE in finished.stdout


@pytest.mark.parametrize("loosened", ["in the record", "in the code"])
def test_a_loosened_tolerance_ends_it(verified, tmp_path, loosened):
    """With 1, on whichever side it was loosened; published stays what was."""
    book = verified.copy_to(tmp_path / "clone")
    if loosened == "in the code":
        book.replace(
            "episodes/walks/figures/spread.py", "tolerance=quantile * error", "tolerance=1.5 * quantile * error"
        )
    else:
        record = book.project.published / "walks" / RECORD
        edit(record, lambda record: record["claims"][0].update(tolerance=1.5 * record["claims"][0]["tolerance"]))
    before = book.tree("figures")
    finished = book.companion("verify")
    assert finished.returncode == 1
    assert "claim walks-spread: tolerance" in finished.stdout
    assert "1 of 2 figures are not reproduced" in finished.stdout
    assert book.tree("figures") == before


@pytest.mark.parametrize("column", ["law", "mean_square", "std_error"])
def test_one_number_changed_together_with_its_digest_is_seen(figures, told, column):
    """Within five standard errors too: no other number moved."""
    multiply(figures / "walks" / TABLE, column, 1.01)
    name_anew(figures / "walks", "spread")
    assert f"walks/spread: {column}, row 1, alone" in told()


def test_numbers_that_the_picture_does_not_show_are_seen(figures, told):
    """Several, each within five standard errors."""
    for column in ("mean_square", "std_error"):
        multiply(figures / "walks" / TABLE, column, 1.01)
    name_anew(figures / "walks", "spread")
    assert "walks/spread: spread.svg" in told()


def test_what_rounding_moves_is_no_difference(figures, told):
    """The last of six digits of two numbers, as on another machine: claims and pictures are the same to an eye."""
    for column in ("mean_square", "std_error"):
        multiply(figures / "walks" / TABLE, column, 1 + 2e-6)
    name_anew(figures / "walks", "spread")
    assert told() == {}


@pytest.mark.parametrize("suffix", store.PICTURES)
def test_a_swapped_picture_is_seen(figures, told, suffix):
    """The sister's, under its name; with its digest in the record too."""
    shutil.copyfile(figures / f"walks/returns{suffix}", figures / f"walks/spread{suffix}")
    assert list(told()) == ["walks/spread: files"]
    name_anew(figures / "walks", "spread")
    assert list(told()) == [f"walks/spread: spread{suffix}"]


def test_a_picture_that_is_none_is_seen(figures, told):
    (figures / "walks" / PICTURE).write_text("<svg", encoding="utf-8")
    name_anew(figures / "walks", "spread")
    assert told()["walks/spread: spread.svg"].published == "it is no picture"


def test_a_picture_of_other_colours_is_seen(figures, told):
    picture = figures / "walks" / PICTURE
    text = picture.read_text(encoding="utf-8")
    assert "#0072b2" in text
    picture.write_text(text.replace("#0072b2", "#d55e00"), encoding="utf-8")
    name_anew(figures / "walks", "spread")
    assert "walks/spread: spread.svg" in told()


@pytest.mark.parametrize(
    ("part", "factor"), [("tolerance", 1.5), ("measured", 1.01), ("expected", 1.01), ("std_error", 1.01)]
)
def test_a_number_of_a_claim_is_seen(figures, told, part, factor):
    """A loosened bound among them."""
    edit(
        figures / "walks" / RECORD,
        lambda record: record["claims"][0].update({part: record["claims"][0][part] * factor}),
    )
    assert f"walks/spread: claim walks-spread: {part}" in told()


def test_a_bound_loosened_with_its_error_is_seen(figures, told):
    def loosen(record):
        for part in ("tolerance", "std_error"):
            record["claims"][0][part] *= 2

    edit(figures / "walks" / RECORD, loosen)
    assert "walks/spread: claim walks-spread: std_error" in told()


# What a claim with a bound of no tolerance says of an alternative that is zero but for rounding.
def of_a_zero(alternative):
    return ClaimRecord.of(
        Claim(
            "an-excess",
            "A number is above another.",
            "[ours]",
            0.00028,
            1e-4,
            0.0,
            Alternative("none", alternative),
            "≥",
        )
    )


@pytest.mark.parametrize(("now", "differs"), [(-7.1e-15, False), (3e-16, False), (-6e-10, True), (2e-5, True)])
def test_the_rounding_of_a_zero_is_no_difference(now, differs):
    """Of a claim whose bound allows nothing; what is more than rounding is one."""
    old, new = of_a_zero(-6.98747e-15), of_a_zero(now)
    found = {one.what for one in verify.claim_moved(old, new, to_the_digit=False) if one.by > 1}
    assert found == ({"claim an-excess: alternative"} if differs else set())


def test_the_number_of_an_alternative_is_seen(figures, told):
    edit(figures / "walks" / RECORD, lambda record: record["claims"][0]["alternative"].update(measured=3.0))
    assert "walks/spread: claim walks-spread: alternative" in told()


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda record: record["claims"][0].update(holds=False), "claim walks-spread: holds"),
        (lambda record: record["claims"][0].update(statement="The distance is n."), "claims: walks-spread"),
        (lambda record: record["claims"].clear(), "claims"),
        (lambda record: record["parameters"].update(seed=1), "parameters"),
        (lambda record: record.update(caption="Another."), "caption"),
        (lambda record: record.update(note="More."), "files"),
        (lambda record: record.pop("claims"), "files"),
        (lambda record: record.update(claims=[{}]), "files"),
    ],
)
def test_a_tampered_record_is_seen(figures, told, change, seen):
    edit(figures / "walks" / RECORD, change)
    assert f"walks/spread: {seen}" in told()


def test_a_record_of_the_earlier_form_is_verified(figures, told):
    """Its numbers and words are compared as those of a record of today."""

    def convert(record):
        del record["schema_version"]
        for claim in record["claims"]:
            claim["alternative"] = {"says": claim["alternative"]["theory"], **claim["alternative"]}
            del claim["alternative"]["theory"], claim["reason"], claim["comparisons"]

    edit(figures / "walks" / RECORD, convert)
    assert told() == {}
    edit(figures / "walks" / RECORD, lambda record: record["claims"][0].update(statement="The distance is n."))
    assert list(told()) == ["walks/spread: claims: walks-spread"]


def test_a_table_that_cannot_be_read_is_seen(figures, told):
    (figures / "walks" / TABLE).write_text('a,b\n1,2\n1,2,3\n"', encoding="utf-8")
    name_anew(figures / "walks", "spread")
    assert "walks/spread: the table" in told()


def test_figures_that_nobody_computes_are_seen(verified, figures, told):
    for suffix in store.SUFFIXES:
        shutil.copyfile(figures / f"walks/spread{suffix}", figures / f"walks/spare{suffix}")
    (figures / "runs").mkdir()
    assert list(told()) == ["walks/spare: the figure"]
    assert Verification({}, figures, verified.project).strangers(Project(verified.project.verified)) == ["runs"]


def test_a_missing_figure_is_seen(figures, told):
    for suffix in store.SUFFIXES:
        (figures / f"walks/spread{suffix}").unlink()
    assert list(told()) == ["walks/spread: files"]


def test_results_of_before_are_not_trusted(verified, tmp_path):
    """A number that the code no longer gives is computed again, though a copy of the book was verified here before."""
    book = verified.copy_to(tmp_path / "clone")
    book.replace("walkers/line.py", "return 2 * steps_up - steps", "return -2 * (2 * steps_up - steps)")
    finished = book.companion("verify", "walks")
    assert finished.returncode == 1
    assert "mean_square, row" in finished.stdout
    assert "does not hold: measured" in finished.stdout, "which ends no verification"
    assert book.tree("figures") == verified.tree("figures")


def test_a_notebook_that_fails_is_named(verified, tmp_path):
    book = verified.copy_to(tmp_path / "clone")
    book.replace("walkers/line.py", "return 2 * steps_up - steps", "raise RuntimeError('no walker')")
    finished = book.companion("verify", "walks")
    assert finished.returncode == 2
    assert "✗ walks" in finished.stdout
    assert "walks could not be run." in finished.stderr
    assert "no walker" in finished.stderr


def test_what_cannot_be_verified_is_named(verified, tmp_path):
    finished = verified.companion("verify", "--figures", str(tmp_path / "nowhere"))
    assert finished.returncode == 2
    assert "There are no published figures" in finished.stderr
