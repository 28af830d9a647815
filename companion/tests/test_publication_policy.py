"""When a rebuild replaces a published figure, and that a kill at any moment leaves complete figures."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from companion.build import publication_policy
from companion.figures import store
from companion.figures.record import ColumnRecord
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import Project
from small_books import commit_all, figure_record, judged

COLUMNS = {
    "length": ColumnRecord(meaning="length", kind="integer"),
    "x": ColumnRecord(meaning="x", kind="number", std_error="se"),
    "se": ColumnRecord(meaning="se", kind="number", std_error="se"),
    "exact": ColumnRecord(meaning="exact", kind="number"),
}
TABLE = "length,x,se,exact\n10,{x},0.1,{exact}\n"
CLAIM = judged(std_error=0.1)


def write_set(folder: Path, figure: str, csv: str, pixels="<svg/>", **changes) -> None:
    """Write the four files of a figure; `changes` go into the record."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in store.PICTURES:
        (folder / f"{figure}{suffix}").write_text(pixels, encoding="utf-8")
    (folder / f"{figure}{store.DATA}").write_text(csv, encoding="utf-8")
    parts = {"figure": figure, "columns": COLUMNS, "claims": (CLAIM,), "files": store.digests(folder, figure)}
    store.write_record(folder, figure_record(**parts | changes))


class Desk:
    """A project in which the figures `one` and `two` of `demo` are published, with a newer build."""

    def __init__(self, root: Path):
        self.project = Project(root)
        self.published = self.project.published / "demo"
        self.built = self.project.build("laptop").figures / "demo"
        self.tables = self.project.build("laptop").tables / "demo"
        for figure in ("one", "two"):
            self.build(figure)
        shutil.copytree(self.built, self.published)

    def build(self, figure: str, x=2.0, exact=9.5, **changes) -> None:
        write_set(self.built, figure, TABLE.format(x=f"{x:g}", exact=f"{exact:.6g}"), **changes)
        self.tables.mkdir(parents=True, exist_ok=True)
        (self.tables / f"{figure}.csv").write_text(TABLE.format(x=x, exact=repr(exact)), encoding="utf-8")

    def publish(self) -> list[str]:
        return publication_policy.publish_figures(self.project, "demo").sentences("figures")

    def bytes(self, folder: Path, figure: str = "") -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{figure}*"))}


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


REPLACED = ["replaced in figures: one"]
WITHIN = judged(measured=1.01, tolerance=0.33, std_error=0.11, alternative=("it rises", 2.02))
# Other rounding and other fonts, as on another machine.
ELSEWHERE = {"exact": 9.5 * (1 + 4e-7), "pixels": "<svg>other fonts</svg>"}
# What differs in the build, and what is reported.
CHANGES = [
    ({}, []),
    ({"x": 2.3, "claims": (WITHIN,), **ELSEWHERE}, []),
    ({"x": 2.6}, REPLACED),
    ({"exact": 9.5 * (1 + 3e-6)}, REPLACED),
    ({"parameters": {"seed": 1}}, REPLACED),
    ({"sources": ("lib/more.py",)}, REPLACED),
    ({"steps": ("publish(one, y)",)}, REPLACED),
    ({"columns": COLUMNS | {"x": COLUMNS["x"].model_copy(update={"meaning": "y"})}}, REPLACED),
    ({"claims": (CLAIM.model_copy(update={"statement": "It falls fast."}),)}, REPLACED),
    ({"claims": (CLAIM.model_copy(update={"reason": "measured on other draws"}),)}, REPLACED),
    ({"claims": (judged(std_error=0.1, alternative=("it stays", 2.0)),)}, REPLACED),
    ({"claims": (judged(std_error=0.1, tolerance=0.4),)}, REPLACED),
    ({"claims": (judged(),)}, REPLACED),
    ({"claims": ()}, REPLACED),
    ({"caption": "Reworded."}, REPLACED),
    ({"picture": "5678"}, REPLACED),
]


@pytest.mark.parametrize(("change", "reported"), CHANGES)
def test_a_figure_is_replaced_if_it_changed(desk, change, reported):
    """All four files are replaced, or none, and no file of the other figure."""
    before = desk.bytes(desk.published)
    desk.build("one", **{"pixels": "<svg>new</svg>", **change})
    assert desk.publish() == reported
    assert desk.bytes(desk.published) == before | (desk.bytes(desk.built, "one") if reported else {})


@pytest.mark.parametrize("hook", [False, True], ids=["", "in a hook"])
@pytest.mark.parametrize("change", [{"parameters": {"seed": 1}}, {"caption": "Reworded."}, {"x": 2.6}])
def test_an_undone_change_restores_the_committed_bytes(desk, tmp_path, monkeypatch, change, hook):
    """It does so on any machine, although a new computation may differ within tolerance; another change does not."""
    commit_all(desk.project.root)
    if hook:
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    before = desk.bytes(desk.published)
    for build in ({"pixels": "<svg>new</svg>", **change}, {"parameters": {"seed": 2}}):
        desk.build("one", **build)
        assert desk.publish() == REPLACED
        assert desk.bytes(desk.published, "one") == desk.bytes(desk.built, "one")
    desk.build("one", claims=(judged(measured=1.000001, std_error=0.1),), **ELSEWHERE)
    assert desk.publish() == REPLACED
    assert desk.bytes(desk.published) == before


def test_an_undone_change_needs_no_git(desk):
    """Without git, the built files are published."""
    desk.build("one", parameters={"seed": 1})
    desk.publish()
    desk.build("one", **ELSEWHERE)
    assert desk.publish() == REPLACED
    assert desk.bytes(desk.published, "one") == desk.bytes(desk.built, "one")


@pytest.mark.parametrize("bound", [{"expected": 0.1}, {"tolerance": 0.4}])
def test_a_changed_bound_of_an_exact_claim_is_published(desk, bound):
    for change, reported in ({}, REPLACED), ({"tolerance": 0.3 * (1 + 1e-9)}, []), (bound, REPLACED):
        desk.build("one", claims=(judged().model_copy(update=change),))
        assert desk.publish() == reported


@pytest.mark.parametrize("suffix", store.SUFFIXES)
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("{}")], ids=["removed", "altered"])
def test_a_damaged_figure_is_repaired(desk, suffix, harm):
    """It is replaced although its numbers are the same."""
    harm(desk.published / f"one{suffix}")
    assert desk.publish() == REPLACED
    assert store.faults(desk.published, "one") == []


def not_built(desk):
    for suffix in store.SUFFIXES:
        (desk.built / f"two{suffix}").unlink()
    (desk.published / "two.svg").unlink()


FOLDERS = {
    "added": (lambda desk: desk.build("three"), "replaced in figures: three"),
    "first": (lambda desk: shutil.rmtree(desk.project.published), "replaced in figures: one, two"),
    "stray": (lambda desk: (desk.published / "stray.svg").touch(), "removed from figures: stray"),
    "not built": (not_built, "removed from figures: two"),
}


@pytest.mark.parametrize(("change", "reported"), FOLDERS.values(), ids=FOLDERS)
def test_the_folder_contains_the_figures_of_the_build(desk, change, reported):
    """All files of a figure are removed, even if some are missing."""
    change(desk)
    assert desk.publish() == [reported]
    assert desk.bytes(desk.published) == desk.bytes(desk.built)


def test_publishing_leaves_no_staging_folder_and_the_modes_of_git(desk):
    """Staging folders of killed processes are removed, too."""
    staging = desk.project.build("laptop").staging
    (staging / "publish-demo-deadbeef" / "demo").mkdir(parents=True)
    desk.build("one", parameters={"seed": 1})
    desk.publish()
    assert list(staging.iterdir()) == []
    assert {path.stat().st_mode & 0o777 for path in desk.published.iterdir()} == {0o644}
    assert desk.published.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("step", range(2 * len(store.SUFFIXES) - 1))
def test_an_interrupted_exchange_is_detected(desk, monkeypatch, step):
    """Records are renamed last, so the first figure has a fault unless nothing was renamed."""
    desk.build("one", x=3.0, pixels="<svg>new</svg>")
    renames, replace = iter(range(99)), os.replace

    def cut_off(source, target):
        if next(renames) == step:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        atomic.replace_folder(desk.built, desk.published)
    assert bool(store.faults(desk.published, "one")) == (step > 0)


def test_figures_are_published_from_another_file_system(desk, monkeypatch):
    """`_build` and `figures/` are on different disks; figures replace published ones or are the first."""

    def on_one_disk(rename):
        def checked(source, target):
            if len({Path(path).is_relative_to(desk.project.generated) for path in (source, target)}) == 2:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            rename(source, target)

        return checked

    for name in ("rename", "replace"):
        monkeypatch.setattr(atomic.os, name, on_one_disk(getattr(os, name)))
    for _ in range(2):
        desk.build("one", parameters={"seed": 1})
        desk.publish()
        assert desk.bytes(desk.published) == desk.bytes(desk.built)
        assert [path.name for path in desk.project.published.iterdir()] == ["demo"]
        assert list(desk.project.build("laptop").staging.iterdir()) == []
        assert desk.published.stat().st_mode & 0o777 == 0o755
        shutil.rmtree(desk.project.published)


@pytest.mark.parametrize("file", ["csv", "svg"])
def test_a_file_too_large_is_named_and_nothing_is_published(desk, file):
    """The limit applies to tracked files; figures of custom runs may be larger."""
    before, large = desk.bytes(desk.published), "x" * store.LARGEST
    texts = {"csv": TABLE.format(x=2, exact=9.5), "pixels": "<svg/>"}
    texts["csv" if file == "csv" else "pixels"] += large
    write_set(desk.built, "one", **texts, parameters={"seed": 1})
    with pytest.raises(UserError, match=f"one[.].*{file} has .* at most 300,000"):
        desk.publish()
    assert desk.bytes(desk.published) == before


def test_publication_waits_for_another(desk, monkeypatch):
    """Only one process at a time replaces a folder."""

    def wait(path, waiting):
        raise UserError(f"{path}: {waiting}")

    monkeypatch.setattr(publication_policy, "locked", wait)
    with pytest.raises(UserError, match="publish-demo: demo: waiting for another process to publish it"):
        desk.publish()
