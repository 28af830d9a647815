"""`companion verify`: it accepts figures that were not changed and detects every change of a published figure.

The book is `another_paper`: it is run once, verified once, and compared with many copies of its figures.
"""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from companion.figures import comparison, store
from companion.project.paths import Project
from companion.runs.verify import Verification
from small_books import judged

RECORD, TABLE, PICTURE = "spread.json", "spread.csv", "spread.svg"


@pytest.fixture(scope="module")
def verified(walked, tmp_path_factory):
    """The book after a run and a verification, for reading only; `.output` is that of the verification."""
    book = walked.copy_to(tmp_path_factory.mktemp("verified") / "a book")
    book.output = book.succeed("verify")
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


def multiply(path: Path, column: str, factor: float) -> None:
    """Multiply the first number of a column."""
    header, first, *rest = path.read_text(encoding="utf-8").splitlines()
    values, place = first.split(","), header.split(",").index(column)
    values[place] = f"{float(values[place]) * factor:.6g}"
    path.write_text("\n".join([header, ",".join(values), *rest]) + "\n", encoding="utf-8")


def test_unchanged_figures_are_accepted(walked, verified, differences):
    """Only the copy is written."""
    assert "✓ walks — 1 of 1" in verified.output
    assert "All 2 figures are reproduced." in verified.output
    after = {path: content for path, content in verified.tree().items() if not path.startswith("_build/verify/")}
    assert after.keys() - walked.tree().keys() == {"_build/.verify.lock"}
    assert walked.tree().items() <= after.items()
    assert differences() == {}


def numbers(folder, factor):
    for column in ("mean_square", "std_error"):
        multiply(folder / TABLE, column, factor)


def swapped(folder, *, suffix):
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


CLAIM = "claim walks-spread"
# A change of the figure, whether its checksums are updated, and the difference that `verify` reports.
DAMAGES = {
    "a number by one percent": (lambda folder: multiply(folder / TABLE, "mean_square", 1.01), False, "files"),
    "rounding of another machine": (lambda folder: numbers(folder, 1 + 2e-6), True, None),
    **{f"swapped {suffix}": (partial(swapped, suffix=suffix), False, "files") for suffix in store.PICTURES},
    **{
        f"swapped {suffix}, right checksum": (partial(swapped, suffix=suffix), True, f"spread{suffix}")
        for suffix in store.PICTURES
    },
    "another colour": (recoloured, True, "spread.svg"),
    **{
        f"claim, {part}": (in_claim(**{part: factor}), False, f"{CLAIM}: {part}")
        for part, factor in {"tolerance": 1.5, "measured": 1.01, "expected": 1.01, "std_error": 1.01}.items()
    },
    "bound loosened with its error": (in_claim(tolerance=2, std_error=2), False, f"{CLAIM}: std_error"),
    "alternative": (
        in_record(lambda record: record["claims"][0]["alternative"].update(measured=3.0)),
        *(False, f"{CLAIM}: alternative"),
    ),
    "verdict": (in_record(lambda record: record["claims"][0].update(holds=False)), False, f"{CLAIM}: holds"),
    "statement": (
        in_record(lambda record: record["claims"][0].update(statement="The distance is n.")),
        *(False, "claims: walks-spread"),
    ),
    "no claims": (in_record(lambda record: record["claims"].clear()), False, "claims"),
    "parameters": (in_record(lambda record: record["parameters"].update(seed=1)), False, "parameters"),
    "caption": (in_record(lambda record: record.update(caption="Another.")), False, "caption"),
    "no record": (in_record(lambda record: record.pop("claims")), False, "files"),
    "missing figure": (removed, False, "files"),
}


@pytest.mark.parametrize(("damage", "with_checksums", "seen"), DAMAGES.values(), ids=DAMAGES)
def test_a_changed_figure_is_detected(figures, differences, damage, with_checksums, seen):
    folder = figures / "walks"
    damage(folder)
    if with_checksums:
        edit(folder / RECORD, lambda record: record.update(files=store.digests(folder, "spread")))
    assert (f"walks/spread: {seen}" in differences()) if seen else (differences() == {})


def excess(alternative):
    """Return a claim with zero tolerance and this value of the alternative."""
    return judged("≥", 0.00028, 1e-4, 0.0, alternative=("none", alternative))


def bounded(measured):
    """Return a claim of a search that ends near a formula, where a thousandth is allowed."""
    return judged("≤", measured, 1e-3, 0.0, alternative=None)


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        (excess(-6.98747e-15), excess(-7.1e-15), []),
        (excess(-6.98747e-15), excess(3e-16), []),
        (excess(-6.98747e-15), excess(-6e-10), ["claim demo-rate: alternative"]),
        (excess(-6.98747e-15), excess(2e-5), ["claim demo-rate: alternative"]),
        (bounded(1.3e-8), bounded(8.2e-9), []),
        (bounded(1.3e-8), bounded(2.1e-6), ["claim demo-rate: measured"]),
    ],
)
def test_round_off_of_an_exact_zero_and_far_below_a_bound_is_no_difference(old, new, moved):
    compared = comparison.claim_moved(old, new, identical_tables=True)
    assert [difference.what for difference in compared if difference.by > 1] == moved


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
