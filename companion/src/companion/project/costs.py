"""What the notebooks of a profile cost on another machine: a table of the book, for users who have not run it yet."""

import csv
from dataclasses import dataclass

from companion.io.errors import UserError
from companion.project.configuration import TABLE
from companion.project.paths import Project

NOTEBOOK, TIME, MEMORY, UNIT = "notebook", "core minutes", "memory", " GB"


@dataclass(frozen=True)
class Cost:
    """The seconds that one core needs for a notebook, and the megabytes of its largest process, where it is known."""

    seconds: float
    megabytes: int | None


def read(project: Project, profile: str) -> dict[str, Cost]:
    """Return what notebooks cost, by name, from the table that `costs` names.

    It is empty if there is no such entry.

    Raises:
      UserError: if there is no such table, or a column contains something else or, unless it is the memory, is missing.
    """
    name = project.settings.costs.get(profile)
    if name is None:
        return {}
    try:
        with (project.root / name).open(encoding="utf-8", newline="") as lines:
            return {row[NOTEBOOK]: Cost(60 * float(row[TIME]), _megabytes(row)) for row in csv.DictReader(lines)}
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"`costs` in {TABLE} names {name} for the profile {profile!r}. It must be a CSV file with the columns "
            f"{NOTEBOOK!r}, {TIME!r} and perhaps {MEMORY!r}, such as 2.5{UNIT}. Got {error!r}."
        ) from error


def _megabytes(row: dict[str, str]) -> int | None:
    return round(1000 * float(row[MEMORY].removesuffix(UNIT))) if MEMORY in row else None
