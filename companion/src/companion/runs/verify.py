"""Verification: recompute the published figures in a copy of the book and compare.

The notebooks run in the copy with the published parameters. The verified files are not changed, and no earlier result
is used.

The comparison is that of a rebuild (`companion.figures.comparison`) and covers also the numbers of claims, and whether
a picture shows its table.
"""

import json
import math
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion.analysis.dependencies import MACHINE
from companion.build import execution
from companion.build.run_spec import RunSpec, Target, pictures_of
from companion.figures import rendering, store, table_io
from companion.figures.comparison import Difference, compare, compare_claims
from companion.figures.image_comparison import visible_difference
from companion.figures.record import SIGNIFICANT_DIGITS, Claim, FigureRecord
from companion.io.errors import UserError
from companion.project.configuration import FILE
from companion.project.paths import CONTENTS, MARK, SOURCES, Build, Project
from companion.runs.run_custom import run_in_processes

# The most characters of a value that a difference shows.
LONGEST = 60


@dataclass(frozen=True)
class Verdict:
    """The verdict on one figure: the largest deviation of a number, its name, and all differences above tolerance.

    If no number deviates, `furthest` is 0 and `name` is empty.
    """

    figure: str
    furthest: float
    name: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Verification:
    """A book to verify: its published figures, and the project in which the copy is made."""

    published: Path
    home: Project

    @classmethod
    def of(cls, published: Path | None) -> "Verification":
        """Return the verification of the book around the working folder.

        `published` is the folder of the figures (default: those of the book).
        """
        home = Project.here()
        published = (published or home.published).absolute()
        if not published.is_dir():
            raise UserError(f"There are no published figures in {published}. Give their folder: `--figures FOLDER`.")
        return cls(published, home)

    def lay_out(self) -> Project:
        """Remove the copy of the last verification, and copy what decides the numbers and pictures of the book."""
        home, copy = self.home, self.home.verified
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)
        parts = [MARK, CONTENTS, FILE, home.lock.name, home.book.name, home.profiles.name]
        parts += [*home.settings.science, *home.settings.inputs]
        if home.root / SOURCES == MACHINE.parent:
            parts.append(f"{SOURCES.as_posix()}/{MACHINE.name}")
        for name in parts:
            path = home.root / name
            if path.is_dir():
                shutil.copytree(path, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            elif path.is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy / name)
        return Project(copy)

    def run(
        self, names: Sequence[str], cores: int, begun: Callable[[str], None]
    ) -> Generator[tuple[str, str | None], None, None]:
        """Run notebooks in the copy; yield each as it ends, with the error message if it has no results."""
        return run_in_processes({name: [name, "--isolated"] for name in names}, cores, self.home.verified, begun)

    def orphaned_folders(self, project: Project) -> list[str]:
        """Return the folders of published figures that belong to no notebook."""
        folders = {path.name for path in self.published.glob("*/") if not path.name.startswith(".")}
        return sorted(folders - set(project.notebooks()))

    def verdicts(self, project: Project, name: str) -> list[Verdict]:
        """Return the verdicts on all figures that notebook `name` publishes or that are in its folder."""
        targets = pictures_of(project, name)
        build = RunSpec(name, isolated=True).check(project).build(project)
        orphans = {Target(name, figure) for figure in store.names_in(self.published / name)}.difference(targets)
        unknown = Difference("the figure", math.inf, "exists", "no notebook publishes it")
        return [
            *(self._verdict(project, build, target) for target in targets),
            *(Verdict(str(target), math.inf, "", (unknown,)) for target in sorted(orphans, key=str)),
            *self._verdict_on_claims(build, name),
        ]

    def _verdict_on_claims(self, build: Build, name: str) -> Iterator[Verdict]:
        """Yield the verdict on the claims of the notebook, if it published claims or publishes them now."""
        old, new = (store.read_claims(folder / name) for folder in (self.published, build.figures))
        if old and new:
            yield _of_differences(f"{name}/{store.CLAIMS}", [*compare_claims(old, new), *_broken(new.claims)])
        elif old or new:
            published, computed = ("exist" if claims else "do not exist" for claims in (old, new))
            missing = Difference("the claims", math.inf, published, computed)
            yield Verdict(f"{name}/{store.CLAIMS}", math.inf, "", (missing,))

    def _verdict(self, project: Project, build: Build, target: Target) -> Verdict:
        if faults := store.faults(self.published / target.notebook, target.figure or ""):
            damages = tuple(Difference("files", math.inf, fault, "") for fault in faults)
            return Verdict(str(target), math.inf, "", damages)
        return _of_differences(str(target), list(self._compared(project, build, target)))

    def _compared(self, project: Project, build: Build, target: Target) -> Iterator[Difference]:
        """Yield a difference for everything that was compared, whether or not it moved."""
        name, figure, published = target.notebook, target.figure or "", self.published / target.notebook
        old, new = (store.read_record(folder, figure) for folder in (published, build.figures / name))
        table = f"{figure}{store.DATA}"
        identical = (published / table).read_bytes() == (build.figures / name / table).read_bytes()
        tables = published / table, build.tables / name / table
        compared = compare(old, new, tables, identical_tables=identical)
        yield from compared.all()
        yield from _broken(new.claims)
        if not compared.table.other_rows:
            yield from self._pictures(project, build, target, new)

    def _pictures(self, project: Project, build: Build, target: Target, record: FigureRecord) -> Iterator[Difference]:
        """Yield a difference for each published picture that does not show the published table."""
        name, figure, published = target.notebook, target.figure or "", self.published / target.notebook
        redrawn = None
        for suffix in store.PICTURES:
            files = [f"{figure}{ending}" for ending in (suffix, store.DATA)]
            if all((published / file).read_bytes() == (build.figures / name / file).read_bytes() for file in files):
                continue
            if redrawn is None:
                frame = table_io.read_csv(published / files[1], record.columns)
                module = project.import_module(project.figure_module(name, figure))
                redrawn = rendering.pictures(module, frame)
            if fault := visible_difference((published / files[0]).read_bytes(), redrawn[suffix], suffix):
                yield Difference(files[0], math.inf, fault, "drawn from the published table")


def _of_differences(name: str, compared: Sequence[Difference]) -> Verdict:
    """Return the verdict of everything that was compared, whether or not it moved."""
    largest = max(compared, key=lambda difference: difference.by, default=Difference("", 0.0, "", ""))
    differing = tuple(difference for difference in compared if difference.by > 1)
    return Verdict(name, largest.by, largest.what if largest.by else "", differing)


def _broken(claims: Iterable[Claim]) -> Iterator[Difference]:
    for claim in execution.broken_claims(claims):
        fault = "does not hold" if not claim.holds else "does not catch its alternative"
        yield Difference(f"claim {claim.id}", math.inf, "", f"{fault}: measured {claim.measured}")


def short(value: Any) -> str:
    """Return a value of a difference as text of limited length."""
    if isinstance(value, float):
        return f"{value:.{SIGNIFICANT_DIGITS}g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
