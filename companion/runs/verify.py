"""Proof that the published figures are what the code gives: each is computed again, elsewhere, and compared.

The book is copied to another folder, and its notebooks run there with the published parameters: the verified files
are not written to, and no earlier result is used.

The comparison covers what a rebuild compares (`companion.figures.tolerances`, `companion.build.publication_policy`),
and also the numbers of claims and whether a picture shows its table. Deviations are given in units of the tolerance.
"""

import csv
import json
import math
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion.analysis.dependencies import MACHINE
from companion.build import execution
from companion.build.publication_policy import apart, bounds_moved
from companion.figures import rendering, store, table_io
from companion.figures.image_comparison import unlike
from companion.figures.record import SIGNIFICANT_DIGITS, ClaimRecord, ColumnRecord, FigureRecord
from companion.figures.tolerances import movement
from companion.io import processes
from companion.io.errors import UserError
from companion.project.configuration import FILE, Settings, has_table
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, MARK, Project

# What `companion run` ends with when its results are there: every claim holds, or some do not.
RAN = (0, 3)
# Where a wheel carries the pages, notebooks and profiles of its book: below the package of its chapters.
CARRIED = "project"
# Longer values bury what they are there to tell.
LONGEST = 60


@dataclass(frozen=True)
class Difference:
    """One thing that is other than published; `by` is above 1, in units of what is allowed."""

    what: str
    by: float
    published: str
    here: str


@dataclass(frozen=True)
class Verdict:
    """The verdict on one figure: the number that is furthest from the published one, and every difference.

    `furthest` is 0 and its name empty where every number is the published one.
    """

    figure: str
    furthest: float
    name: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Verification:
    """The book, by its parts and where each stands; what is published of it; a place where it may be run."""

    parts: Mapping[str, Path]
    published: Path
    home: Project

    @classmethod
    def of(cls, published: Path | None) -> "Verification":
        """Return the verification of the book around the working folder, else of the installed one.

        It verifies the figures in `published`, by default those of the book.

        Without a checkout, `figures/` and `_build/` are those of the working folder.
        """
        try:
            home = Project.here()
            parts = _checkout(home)
        except UserError:
            home, parts = Project(Path.cwd()), _carried()
            if not parts:
                raise
        published = (published or home.published).absolute()
        if not published.is_dir():
            raise UserError(f"There are no published figures in {published}: name their folder, `--figures FOLDER`.")
        return cls(parts, published, home)

    def lay_out(self) -> Project:
        """Copy the book, after removing what the last verification left."""
        copy = self.home.verified
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)
        for name, path in self.parts.items():
            if path.is_dir():
                shutil.copytree(path, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            elif path.is_file():
                shutil.copyfile(path, copy / name)
        return Project(copy)

    def run(
        self, names: Sequence[str], cores: int, begun: Callable[[str], None]
    ) -> Generator[tuple[str, str | None], None, None]:
        """Run these notebooks in the copy; each as it ends, and why it left nothing, if it did not."""
        command = [sys.executable, "-m", "companion", "run", "--isolated"]
        commands = {name: [*command, name] for name in names}
        with closing(processes.run_all(commands, cores, self.home.verified, begun)) as ended:
            for name, finished in ended:
                yield name, None if finished.returncode in RAN else finished.stderr.strip() or "it was killed"

    def strangers(self, project: Project) -> list[str]:
        """The folders of published figures that belong to no notebook."""
        return sorted({path.name for path in self.published.glob("*/")} - set(project.notebooks()))

    def verdicts(self, project: Project, name: str) -> list[Verdict]:
        """Yield the verdict on every figure that notebook `name` publishes or that is published under its name."""
        figures = Notebook.named(project, name).figures
        published = self.published / name
        strangers = [figure for figure in store.names_in(published) if figure not in figures]
        unknown = Difference("the figure", math.inf, "there", "no notebook publishes it")
        return [
            *(self._verdict(project, name, figure) for figure in figures),
            *(Verdict(f"{name}/{figure}", math.inf, "", (unknown,)) for figure in strangers),
        ]

    def _verdict(self, project: Project, name: str, figure: str) -> Verdict:
        published = self.published / name
        if faults := store.faults(published, figure):
            found = tuple(Difference("files", math.inf, fault, "") for fault in faults)
            return Verdict(f"{name}/{figure}", math.inf, "", found)
        try:
            moved = list(self._moved(project, name, figure))
        except ValueError as error:
            moved = [Difference("the table", math.inf, f"cannot be read ({error})", "")]
        worst = max(moved, key=lambda found: found.by, default=Difference("", 0.0, "", ""))
        differing = tuple(found for found in moved if found.by > 1)
        return Verdict(f"{name}/{figure}", worst.by, worst.what if worst.by else "", differing)

    def _moved(self, project: Project, name: str, figure: str) -> Iterator[Difference]:
        """All that could be compared, moved or not."""
        build, published = execution.own_build(project, name, DEFAULT_PROFILE, {}), self.published / name
        old = store.read_record(published, figure)
        new = store.read_record(build.figures / name, figure)
        yield from _words_moved(old, new)
        table = f"{figure}{store.DATA}"
        moved = movement(published / table, build.tables / name / table, new.columns)
        if moved.other_rows:
            yield Difference("the table", math.inf, "", moved.other_rows)
        for column in moved.columns:
            yield Difference(f"{column.name}, row {column.row}", column.by, _short(column.old), _short(column.new))
        if not moved.other_rows:
            yield from _lone(published / table, build.figures / name / table, new.columns)
        to_the_digit = (published / table).read_bytes() == (build.figures / name / table).read_bytes()
        was = {claim.id: claim for claim in old.claims}
        for claim in new.claims:
            if claim.id in was:
                yield from claim_moved(was[claim.id], claim, to_the_digit=to_the_digit)
        for claim in execution.broken_claims(new.claims):
            fault = "does not hold" if not claim.holds else "does not catch its alternative"
            yield Difference(f"claim {claim.id}", math.inf, "", f"{fault}: measured {claim.measured}")
        if not moved.other_rows:
            yield from self._pictures(project, name, figure, new)

    def _pictures(self, project: Project, name: str, figure: str, record: FigureRecord) -> Iterator[Difference]:
        """The published pictures that do not show the published table."""
        build, published = execution.own_build(project, name, DEFAULT_PROFILE, {}), self.published / name
        redrawn = None
        for suffix in store.PICTURES:
            files = [f"{figure}{ending}" for ending in (suffix, store.DATA)]
            if all((published / file).read_bytes() == (build.figures / name / file).read_bytes() for file in files):
                continue
            if redrawn is None:
                frame = table_io.read_csv(published / files[1], record.columns)
                module = project.import_module(project.figure_module(name, figure))
                redrawn = rendering.pictures(module, frame)
            if fault := unlike((published / files[0]).read_bytes(), redrawn[suffix], suffix):
                yield Difference(files[0], math.inf, fault, "drawn from the published table")


def _lone(published: Path, here: Path, columns: Mapping[str, ColumnRecord]) -> Iterator[Difference]:
    """The number that alone is another where all others of the table are the published ones to the last digit.

    The same draws give the same numbers, so five standard errors are no excuse for one.
    """
    (names, *old), (_, *new) = (list(csv.reader(path.open(newline="", encoding="utf-8"))) for path in (published, here))
    others = [
        (name, row, was, now)
        for row, (before, after) in enumerate(zip(old, new, strict=False), 1)
        for name, was, now in zip(names, before, after, strict=False)
        if was != now
    ]
    if len(others) == 1 and len(old) == len(new) and columns[others[0][0]].kind in ("number", "integer"):
        name, row, was, now = others[0]
        by = apart(float(was or "nan"), float(now or "nan"), max(1e-12, columns[name].absolute))
        yield Difference(f"{name}, row {row}, alone", by, was, now)


def claim_moved(old: ClaimRecord, new: ClaimRecord, *, to_the_digit: bool) -> Iterator[Difference]:
    """Yield the distance of every number of a claim from the published one.

    If its table equals the published one to the last digit (`to_the_digit`), the claim's numbers must do so, too,
    except for rounding. Otherwise they may move by five of their standard errors, as the numbers of a table may.
    """
    error = 0.0
    if new.std_error is not None and math.isfinite(new.std_error) and not to_the_digit:
        error = 5 * new.std_error
    # where the bound allows nothing, the round-off of an exact zero is allowed
    floor = min(1e-6, new.tolerance or 1e-12) if math.isfinite(new.tolerance) else 1e-6
    allowed = max(floor, error)
    one, other = (claim.alternative.measured if claim.alternative else None for claim in (old, new))
    scale = 1.0
    if other is not None and math.isfinite(other) and math.isfinite(new.measured):
        scale = max(1.0, abs(other / (new.measured or 1.0)))
    bounds = bounds_moved(old, new)
    expected = max(apart(old.expected, new.expected, allowed), bounds.expected)
    std_error = max(apart(old.std_error, new.std_error) if to_the_digit else 0.0, bounds.std_error)
    # the published verdict must follow from the published numbers
    holds = 0.0 if old.holds == old.accepts(old.measured) else math.inf
    must_catch = None if one is None else not old.accepts(one)
    catches = 0.0 if old.catches_alternative == must_catch else math.inf
    for part, by, was, now in (
        ("measured", apart(old.measured, new.measured, allowed), old.measured, new.measured),
        ("expected", expected, old.expected, new.expected),
        ("alternative", apart(one, other, max(floor, scale * error)), one, other),
        ("std_error", std_error, old.std_error, new.std_error),
        ("tolerance", bounds.tolerance, old.tolerance, new.tolerance),
        ("holds", holds, old.holds, new.holds),
        ("catches_alternative", catches, old.catches_alternative, new.catches_alternative),
    ):
        yield Difference(f"claim {new.id}: {part}", by, _short(was), _short(now))


def _words_moved(old: FigureRecord, new: FigureRecord) -> Iterator[Difference]:
    """Yield the parts of two records that differ in more than computed numbers; of claims, their identifiers."""
    one, other = old.without_numbers(), new.without_numbers()
    for part, was, now in one.differences(other):
        if was and now and one.claims != other.claims and part == "claims":
            both = (*one.claims, *other.claims)
            names = {claim.id for claim in both if (claim in one.claims) != (claim in other.claims)}
            yield Difference(f"claims: {', '.join(sorted(names)) or 'their order'}", math.inf, "other words", "")
        else:
            yield Difference(part, math.inf, _short(was), _short(now))


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{SIGNIFICANT_DIGITS}g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _checkout(project: Project) -> dict[str, Path]:
    """The parts of a checkout that its numbers and its pictures come from, by where they belong."""
    parts = [
        MARK,
        "_toc.yml",
        FILE,
        project.lock.name,
        project.book.name,
        project.profiles.name,
        *project.settings.science,
    ]
    if project.root == MACHINE.parent:
        parts.append(MACHINE.name)
    return {part: project.root / part for part in parts}


def _carried() -> dict[str, Path]:
    """The same of the book that came in one wheel with this package; empty if none did."""
    for table in sorted(MACHINE.parent.glob(f"*/{FILE}")):
        carried = table.parent / CARRIED
        if has_table(table) and carried.is_dir():
            # together, as a notebook's first cell wants them: one beside it alone would hide what is installed
            packages = {package: MACHINE.parent / package for package in (*Settings.read(table).science, MACHINE.name)}
            return {FILE: table, **{path.name: path for path in carried.iterdir()}, **packages}
    return {}
