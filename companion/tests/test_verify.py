"""`companion verify`: it accepts figures that were not changed and detects every change of a published figure.

The book is `another_paper`: it is run once, verified once, and compared with many copies of its figures.
"""

import json
import shutil
from pathlib import Path

import pytest

from companion.figures import comparison, store
from companion.figures.record import Claim
from companion.project.paths import Project
from companion.runs.verify import Verification

RECORD, TABLE, PICTURE = "spread.json", "spread.csv", "spread.svg"


@pytest.fixture(scope="module")
def verified(walked, tmp_path_factory):
    """The book after a run and a verification, for reading only; `.finished` is the completed verification."""
    book = walked.copy_to(tmp_path_factory.mktemp("verified") / "a book")
    book.finished = book.companion("verify")
    return book


@pytest.fixture
def figures(verified, tmp_path):
    """A copy of the published figures, to change."""
    return Path(shutil.copytree(verified.project.published, tmp_path / "figures"))


@pytest.fixture
def differences(verified, figures):
    """A function that verifies these figures against the recomputed ones and returns the differences by name."""

    def compare():
        verification = Verification(figures, verified.project)
        verdicts = verification.verdicts(Project(verified.project.verified), "walks")
        return {
            f"{verdict.figure}: {difference.what}": difference
            for verdict in verdicts
            for difference in verdict.differences
        }

    return compare


def edit(path: Path, change) -> None:
    """Change a record and write it in the usual form."""
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def update_checksums(folder: Path, figure: str) -> None:
    """Write the checksums of the present files into the record, so that they do not reveal a change."""
    edit(folder / f"{figure}.json", lambda record: record.update(files=store.digests(folder, figure)))


def multiply(path: Path, column: str, factor: float) -> None:
    """Multiply the first number of a column."""
    header, first, *rest = path.read_text(encoding="utf-8").splitlines()
    values, place = first.split(","), header.split(",").index(column)
    values[place] = f"{float(values[place]) * factor:.6g}"
    path.write_text("\n".join([header, ",".join(values), *rest]) + "\n", encoding="utf-8")


def test_reproduced_figures_are_accepted(verified):
    assert verified.finished.returncode == 0, verified.finished.stdout + verified.finished.stderr
    assert "✓ walks — 1 of 1" in verified.finished.stdout
    assert "All 2 figures are reproduced." in verified.finished.stdout


def test_only_the_copy_is_written(walked, verified):
    after = {path: content for path, content in verified.tree().items() if not path.startswith("_build/verify/")}
    assert after.keys() - walked.tree().keys() == {"_build/.verify.lock"}
    assert walked.tree().items() <= after.items()


def test_unchanged_figures_have_no_differences(differences):
    """The tests below rely on it."""
    assert differences() == {}


def numbers(folder, factor):
    for column in ("mean_square", "std_error"):
        multiply(folder / TABLE, column, factor)


def swapped(folder, suffix):
    shutil.copyfile(folder / f"returns{suffix}", folder / f"spread{suffix}")


def recoloured(folder):
    text = (folder / PICTURE).read_text(encoding="utf-8")
    assert "#0072b2" in text
    (folder / PICTURE).write_text(text.replace("#0072b2", "#d55e00"), encoding="utf-8")


def removed(folder):
    for suffix in store.SUFFIXES:
        (folder / f"spread{suffix}").unlink()


def in_claim(**factors):
    """Return a change that multiplies numbers of the first claim."""

    def change(record):
        claim = record["claims"][0]
        claim.update({part: claim[part] * factor for part, factor in factors.items()})

    return in_record(change)


def in_record(change):
    return lambda folder: edit(folder / RECORD, change)


# A change of the figure, whether its checksums are updated, and the difference that `verify` reports.
DAMAGES = {
    "a number by one percent": (
        lambda folder: multiply(folder / TABLE, "mean_square", 1.01),
        *(False, "files"),
    ),
    "numbers within five standard errors": (lambda folder: numbers(folder, 1.01), True, "spread.svg"),
    "rounding of another machine": (lambda folder: numbers(folder, 1 + 2e-6), True, None),
    **{f"swapped {suffix}": (lambda folder, s=suffix: swapped(folder, s), False, "files") for suffix in store.PICTURES},
    **{
        f"swapped {suffix}, right checksum": (lambda folder, s=suffix: swapped(folder, s), True, f"spread{suffix}")
        for suffix in store.PICTURES
    },
    "no picture": (lambda folder: (folder / PICTURE).write_text("<svg", encoding="utf-8"), True, "spread.svg"),
    "another colour": (recoloured, True, "spread.svg"),
    **{
        f"claim, {part}": (in_claim(**{part: factor}), False, f"claim walks-spread: {part}")
        for part, factor in {"tolerance": 1.5, "measured": 1.01, "expected": 1.01, "std_error": 1.01}.items()
    },
    "bound loosened with its error": (in_claim(tolerance=2, std_error=2), False, "claim walks-spread: std_error"),
    "claim, alternative": (
        in_record(lambda record: record["claims"][0]["alternative"].update(measured=3.0)),
        *(False, "claim walks-spread: alternative"),
    ),
    "verdict": (
        in_record(lambda record: record["claims"][0].update(holds=False)),
        *(False, "claim walks-spread: holds"),
    ),
    "statement": (
        in_record(lambda record: record["claims"][0].update(statement="The distance is n.")),
        *(False, "claims: walks-spread"),
    ),
    "no claims": (in_record(lambda record: record["claims"].clear()), False, "claims"),
    "parameters": (in_record(lambda record: record["parameters"].update(seed=1)), False, "parameters"),
    "caption": (in_record(lambda record: record.update(caption="Another.")), False, "caption"),
    "unknown field": (in_record(lambda record: record.update(note="More.")), False, "files"),
    "missing field": (in_record(lambda record: record.pop("claims")), False, "files"),
    "incomplete claim": (in_record(lambda record: record.update(claims=[{}])), False, "files"),
    "missing figure": (removed, False, "files"),
}


@pytest.mark.parametrize(("damage", "with_checksums", "seen"), DAMAGES.values(), ids=DAMAGES)
def test_a_changed_figure_is_detected(figures, differences, damage, with_checksums, seen):
    damage(figures / "walks")
    if with_checksums:
        update_checksums(figures / "walks", "spread")
    assert (f"walks/spread: {seen}" in differences()) if seen else (differences() == {})


def claim_with_alternative(alternative):
    """Return a claim with zero tolerance and this value of the alternative."""
    return judged("≥", 0.00028, 1e-4, 0.0, alternative=("none", alternative))


def judged(relation, measured, expected, tolerance, alternative=None):
    numbers = {"relation": relation, "measured": measured, "expected": expected, "tolerance": tolerance}
    texts = {"id": "an-excess", "statement": "A number is bounded.", "source": "[ours]"}
    return Claim.judged(**numbers, **texts, alternative=alternative, std_error=None)


@pytest.mark.parametrize(("now", "differs"), [(-7.1e-15, False), (3e-16, False), (-6e-10, True), (2e-5, True)])
def test_the_round_off_of_an_exact_zero_is_no_difference(now, differs):
    """The claim has zero tolerance; a larger change of its alternative is a difference."""
    old, new = claim_with_alternative(-6.98747e-15), claim_with_alternative(now)
    parts = {
        difference.what for difference in comparison.claim_moved(old, new, identical_tables=False) if difference.by > 1
    }
    assert parts == ({"claim an-excess: alternative"} if differs else set())


@pytest.mark.parametrize(("measured", "differs"), [(8.2e-9, False), (2.1e-6, True)])
def test_digits_far_below_a_bound_are_no_difference(measured, differs):
    """A search ends 8e-9 from a formula where a thousandth is allowed: a thousandth of the bound still counts."""
    old, new = (judged("≤", value, 1e-3, 0.0) for value in (1.3e-8, measured))
    moved = [difference.by > 1 for difference in comparison.claim_moved(old, new, identical_tables=True)]
    assert any(moved) == differs


def test_figures_without_a_notebook_are_detected(verified, figures, differences):
    for suffix in store.SUFFIXES:
        shutil.copyfile(figures / f"walks/spread{suffix}", figures / f"walks/spare{suffix}")
    (figures / "runs").mkdir()
    assert list(differences()) == ["walks/spare: the figure"]
    assert Verification(figures, verified.project).orphaned_folders(Project(verified.project.verified)) == ["runs"]


def test_earlier_results_are_not_used(verified, figures, tmp_path):
    """A changed computation is detected although an earlier verification left its copy.

    A loosened tolerance is detected in the record of the given figures. Published files are not changed.
    """
    in_claim(tolerance=1.5)(figures / "walks")
    book = verified.copy_to(tmp_path / "clone")
    book.replace("walkers/line.py", "return 2 * steps_up - steps", "return -2 * (2 * steps_up - steps)")
    finished = book.companion("verify", "walks", "--figures", str(figures))
    assert finished.returncode == 1
    assert "claim walks-spread: tolerance" in finished.stdout
    assert "of 2 figures are not reproduced" in finished.stdout
    assert "mean_square, row" in finished.stdout
    assert "does not hold: measured" in finished.stdout, "which ends no verification"
    assert book.tree("figures") == verified.tree("figures")


def test_a_failing_notebook_is_named(verified, tmp_path):
    book = verified.copy_to(tmp_path / "clone")
    book.replace("walkers/line.py", "return 2 * steps_up - steps", "raise RuntimeError('no walker')")
    finished = book.companion("verify", "walks")
    assert finished.returncode == 2
    assert "✗ walks" in finished.stdout
    assert "walks could not be run." in finished.stderr
    assert "no walker" in finished.stderr


def test_a_missing_folder_of_figures_is_an_error(verified, tmp_path):
    finished = verified.companion("verify", "--figures", str(tmp_path / "nowhere"))
    assert finished.returncode == 2
    assert "There are no published figures" in finished.stderr
