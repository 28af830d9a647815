"""What the notebooks of a profile cost on another machine: a table of the book, for users who have not run it yet."""

import csv
from dataclasses import dataclass

from companion.io.errors import UserError
from companion.project.configuration import FILE, TABLE, has_table
from companion.project.paths import Project

NOTEBOOK, TIME, MEMORY, UNIT = "notebook", "core minutes", "memory", " GB"


@dataclass(frozen=True)
class Cost:
    """The seconds that one core needs for a notebook, and the megabytes of its largest process."""

    seconds: float
    megabytes: int


def read(project: Project, profile: str) -> dict[str, Cost]:
    """Return what notebooks cost, by name, from the table that `costs` names.

    It is empty if there is no such entry, or no configuration, as where `companion verify` runs from the wheel.

    Raises:
      UserError: if there is no such table, or a column is missing or contains something else.
    """
    name = project.settings.costs.get(profile) if has_table(project.root / FILE) else None
    if name is None:
        return {}
    try:
        with (project.root / name).open(encoding="utf-8", newline="") as lines:
            return {
                row[NOTEBOOK]: Cost(60 * float(row[TIME]), round(1000 * float(row[MEMORY].removesuffix(UNIT))))
                for row in csv.DictReader(lines)
            }
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"`costs` in {TABLE} names {name} for the profile {profile!r}. It must be a CSV file with the columns "
            f"{NOTEBOOK!r}, {TIME!r} and {MEMORY!r}, such as 2.5{UNIT}. Got {error!r}."
        ) from error
