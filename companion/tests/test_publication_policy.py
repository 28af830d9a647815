"""When a rebuild replaces a published figure, and that a kill at any moment leaves complete figures."""

import errno
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from companion.build import publication_policy
from companion.figures import store
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import Project

COLUMNS = {
    name: {"meaning": name, "unit": "1", "std_error": error, "absolute": 0.0, "moves_with": None, "kind": kind}
    for name, error, kind in [
        ("length", None, "integer"),
        ("x", "se", "number"),
        ("se", "se", "number"),
        ("exact", None, "number"),
    ]
}
CLAIM = {
    "id": "demo-rate",
    "statement": "It falls.",
    "source": "derived here",
    "relation": "=",
    "measured": 1.0,
    "expected": 1.0,
    "tolerance": 0.3,
    "std_error": 0.1,
    "alternative": {"theory": "it rises", "measured": 2.0},
    "holds": True,
    "catches_alternative": True,
}


def write_set(folder: Path, figure: str, pixels="<svg/>", **changes) -> None:
    """Write the four files of a figure; `changes` go into the record."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in store.PICTURES:
        (folder / f"{figure}{suffix}").write_text(pixels, encoding="utf-8")
    (folder / f"{figure}.csv").write_text(changes.pop("csv", CSV), encoding="utf-8")
    record = {
        "schema_version": 1,
        "figure": figure,
        "notebook": "demo",
        "profile": "laptop",
        "parameters": {"seed": 0},
        "sources": ["lib/demo.py"],
        "functions": ["papers.demo.one.numbers"],
        "steps": ["publish(one, x)"],
        "columns": COLUMNS,
        "claims": [CLAIM],
        "caption": "A caption.",
        "alt": "A line.",
        "picture": "1234",
        **changes,
        "files": {s: store.digest((folder / f"{figure}{s}").read_bytes()) for s in store.SUFFIXES[:-1]},
    }
    (folder / f"{figure}.json").write_text(atomic.dump_json(record), encoding="utf-8")


CSV = "length,x,se,exact\n10,2,0.1,9.5\n"
UNROUNDED = "length,x,se,exact\n10,{x},0.1,{exact}\n"


class Desk:
    """A project in which the figures `one` and `two` of `demo` are published, with a newer build."""

    def __init__(self, root: Path):
        self.project = Project(root)
        self.published = self.project.published / "demo"
        self.built = self.project.build("laptop").figures / "demo"
        self.tables = self.project.build("laptop").tables / "demo"
        for figure in ("one", "two"):
            self.build(figure)
            write_set(self.published, figure)

    def build(self, figure: str, x=2.0, exact=9.5, **changes) -> None:
        write_set(self.built, figure, csv=f"length,x,se,exact\n10,{x:g},0.1,{exact:.6g}\n", **changes)
        self.tables.mkdir(parents=True, exist_ok=True)
        (self.tables / f"{figure}.csv").write_text(UNROUNDED.format(x=x, exact=repr(exact)), encoding="utf-8")

    def publish(self) -> list[str]:
        changes = publication_policy.publish_figures(self.project, "demo")
        return changes.replaced + changes.removed

    def bytes(self, folder: Path, figure: str = "") -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(folder.glob(f"{figure}*"))}


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


EXACT = CLAIM | {"std_error": None}
WITHIN = CLAIM | {"measured": 1.01, "tolerance": 0.33, "std_error": 0.11}
WITHIN |= {"alternative": CLAIM["alternative"] | {"measured": 2.02}}
# What differs in the build, and whether the published figure is replaced.
CHANGES = [
    ({}, False),
    ({"x": 2.3, "exact": 9.5 * (1 + 4e-7), "pixels": "<svg>other fonts</svg>", "claims": [WITHIN]}, False),
    *(
        (change, True)
        for change in (
            {"x": 2.6},
            {"exact": 9.5 * (1 + 3e-6)},
            {"parameters": {"seed": 1}},
            {"sources": ["lib/demo.py", "lib/more.py"]},
            {"steps": ["publish(one, y)"]},
            {"columns": COLUMNS | {"x": COLUMNS["x"] | {"meaning": "y"}}},
            {"claims": [CLAIM | {"statement": "It falls fast."}]},
            {"claims": [CLAIM | {"alternative": {"theory": "it stays", "measured": 2.0}}]},
            {"claims": [CLAIM | {"tolerance": 0.4}]},
            {"claims": [CLAIM | {"std_error": None}]},
            {"claims": []},
            {"caption": "Reworded."},
            {"picture": "5678"},
            {"claims": [CLAIM | {"reason": "measured on other draws"}]},
        )
    ),
]


@pytest.mark.parametrize(
    ("change", "is_replaced"), CHANGES, ids=lambda value: str(next(iter(value), "")) if isinstance(value, dict) else ""
)
def test_a_figure_is_replaced_if_it_changed(desk, change, is_replaced):
    """All four files are replaced, or none, and no file of the other figure."""
    before = desk.bytes(desk.published)
    desk.build("one", **{"pixels": "<svg>new</svg>", **change})
    assert desk.publish() == (["one"] if is_replaced else [])
    expected = before | (desk.bytes(desk.built, "one") if is_replaced else {})
    assert desk.bytes(desk.published) == expected


# Changes of the same figure that another machine may cause.
ELSEWHERE = {"exact": 9.5 * (1 + 4e-7), "pixels": "<svg>other fonts</svg>", "claims": [CLAIM | {"measured": 1.000001}]}


@pytest.fixture
def committed(desk):
    """A project whose published figures are committed to git."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "figures"], [*identity, "commit", "-qm", "Figures"]):
        subprocess.run(["git", *command], cwd=desk.project.root, check=True)
    return desk


@pytest.mark.parametrize("hook", [False, True], ids=["", "in a hook"])
@pytest.mark.parametrize("change", [{"parameters": {"seed": 1}}, {"caption": "Reworded."}, {"x": 2.6}])
def test_an_undone_change_restores_the_committed_bytes(committed, tmp_path, monkeypatch, change, hook):
    """It does so on any machine, although a new computation may differ within tolerance; another change does not."""
    if hook:
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    before = committed.bytes(committed.published)
    for build in ({"pixels": "<svg>new</svg>", **change}, {"parameters": {"seed": 2}}):
        committed.build("one", **build)
        assert committed.publish() == ["one"]
        assert committed.bytes(committed.published, "one") == committed.bytes(committed.built, "one")
    committed.build("one", **ELSEWHERE)
    assert committed.publish() == ["one"]
    assert committed.bytes(committed.published) == before


def test_an_undone_change_needs_no_git(desk):
    """Without git, the built files are published."""
    desk.build("one", parameters={"seed": 1})
    desk.publish()
    desk.build("one", **ELSEWHERE)
    assert desk.publish() == ["one"]
    assert desk.bytes(desk.published, "one") == desk.bytes(desk.built, "one")


@pytest.mark.parametrize("bound", [{"expected": 0.1}, {"tolerance": 0.4}])
def test_a_changed_bound_of_an_exact_claim_is_published(desk, bound):
    for change, replaced in ({}, ["one"]), ({"tolerance": 0.3 * (1 + 1e-9)}, []), (bound, ["one"]):
        desk.build("one", claims=[EXACT | change])
        assert desk.publish() == replaced


@pytest.mark.parametrize("suffix", store.SUFFIXES)
@pytest.mark.parametrize("harm", ["removed", "altered"])
def test_a_damaged_figure_is_repaired(desk, suffix, harm):
    """It is replaced although its numbers are the same."""
    path = desk.published / f"one{suffix}"
    path.unlink() if harm == "removed" else path.write_text("{}", encoding="utf-8")
    assert desk.publish() == ["one"]
    assert store.faults(desk.published, "one") == []


def test_a_figure_that_is_no_longer_built_is_removed(desk):
    """All its files are removed, even if some are missing."""
    for suffix in store.SUFFIXES:
        (desk.built / f"two{suffix}").unlink()
    (desk.published / "two.svg").unlink()
    changes = publication_policy.publish_figures(desk.project, "demo")
    assert changes.sentences("figures/demo") == ["removed from figures/demo: two"]
    assert sorted(desk.bytes(desk.published)) == sorted(f"one{suffix}" for suffix in store.SUFFIXES)


def added(desk):
    desk.build("three")


def first(desk):
    shutil.rmtree(desk.project.published)


def stray(desk):
    (desk.published / "stray.svg").write_text("of a figure that is gone", encoding="utf-8")


@pytest.mark.parametrize(("change", "names"), [(added, ["three"]), (first, ["one", "two"]), (stray, ["stray"])])
def test_the_folder_contains_the_figures_of_the_build(desk, change, names):
    change(desk)
    assert sorted(desk.publish()) == names
    assert sorted(desk.bytes(desk.published)) == sorted(desk.bytes(desk.built))
    assert all(store.faults(desk.published, figure) == [] for figure in store.names_in(desk.published))


def test_publishing_leaves_no_staging_folder_and_the_modes_of_git(desk):
    """Staging folders of killed processes are removed, too."""
    staging = desk.project.build("laptop").staging
    (staging / "publish-demo-deadbeef" / "demo").mkdir(parents=True)
    desk.build("one", parameters={"seed": 1})
    desk.publish()
    assert list(staging.iterdir()) == []
    assert {path.stat().st_mode & 0o777 for path in desk.published.iterdir()} == {0o644}
    assert desk.published.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("step", range(6))
def test_an_interrupted_exchange_is_detected(tmp_path, monkeypatch, step):
    """After a stop before the rename of the record, the figure has a fault unless nothing was renamed."""
    write_set(tmp_path / "old", "a", "<old/>", csv="x\n1\n")
    write_set(tmp_path / "new", "a", "<new/>", csv="x\n2\n")
    renames, replace = iter(range(99)), os.replace

    def cut_off(source, target):
        if next(renames) == step:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", cut_off)
    whole = step in (0, 4, 5)
    if step < 4:
        with pytest.raises(KeyboardInterrupt):
            atomic.replace_folder(tmp_path / "new", tmp_path / "old")
    else:
        atomic.replace_folder(tmp_path / "new", tmp_path / "old")
    assert bool(store.faults(tmp_path / "old", "a")) != whole


@pytest.fixture
def two_disks(desk, monkeypatch):
    """`_build` and `figures/` are on different file systems: no file can be renamed from one to the other."""

    def on_one_disk(source, target):
        if len({Path(path).is_relative_to(desk.project.generated) for path in (source, target)}) == 2:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def kept_apart(rename):
        return lambda source, target: (on_one_disk(source, target), rename(source, target))[1]

    for name in ("rename", "replace"):
        monkeypatch.setattr(atomic.os, name, kept_apart(getattr(os, name)))


@pytest.mark.usefixtures("two_disks")
def test_figures_are_published_from_another_file_system(desk):
    """They replace published ones or are the first; no temporary file is left."""
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
    large = "<svg>" + "x" * store.LARGEST + "</svg>" if file == "svg" else "<svg/>"
    before = desk.bytes(desk.published)
    desk.build("one", parameters={"seed": 1}, pixels=large)
    if file == "csv":
        write_set(desk.built, "one", csv=CSV + "10,2,0.1,9.5\n" * 30_000, parameters={"seed": 1})
    with pytest.raises(UserError, match=f"one[.].*{file} has .* at most 300,000"):
        desk.publish()
    assert desk.bytes(desk.published) == before


@pytest.mark.parametrize("leads", ["to a folder", "nowhere"])
def test_a_link_in_place_of_the_folder_is_replaced(desk, tmp_path, leads):
    """The target of a link is not changed."""
    elsewhere = tmp_path / "elsewhere"
    shutil.rmtree(desk.published)
    desk.published.symlink_to(elsewhere)
    if leads == "to a folder":
        write_set(elsewhere, "one", parameters={"seed": 2})
    before = desk.bytes(elsewhere)
    assert sorted(desk.publish()) == ["one", "two"]
    assert not desk.published.is_symlink()
    assert desk.bytes(desk.published) == desk.bytes(desk.built)
    assert before == desk.bytes(elsewhere)


def test_publication_waits_for_another(tmp_path, capsys):
    """Only one process at a time replaces a folder; a second one publishes after it."""
    project = Project(tmp_path)
    build = project.build("laptop")
    write_set(build.figures / "demo", "one")
    (build.tables / "demo").mkdir(parents=True)
    replaced = []
    with atomic.locked(build.locks / "publish-demo", "not expected"):
        waiter = threading.Thread(
            target=lambda: replaced.extend(publication_policy.publish_figures(project, "demo").replaced), daemon=True
        )
        waiter.start()
        output = ""
        while "demo: waiting for another process to publish it" not in output:
            assert waiter.is_alive()
            output += capsys.readouterr().out
            time.sleep(0.01)
        assert not project.published.exists()
    waiter.join()
    assert replaced == ["one"]
    assert store.faults(project.published / "demo", "one") == []
