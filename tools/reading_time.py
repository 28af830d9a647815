"""Print words, unfolded figures and minutes of the pages of the book, without proofs, folded parts and code.

Example: `python tools/reading_time.py measures gaussian_limit`, or without arguments for every chapter.
"""

import sys
from pathlib import Path

from companion.project.paths import Project
from companion.site.reading_time import of_page


def main() -> None:
    """Print one line per page, then the sums."""
    project = Project(Path(__file__).resolve().parents[1])
    names = sys.argv[1:] or project.notebooks()
    times = {name: of_page(project, name) for name in names}
    rows = [(name, time.words, time.captions, time.figures, round(time.minutes)) for name, time in times.items()]
    sums = tuple(sum(row[column] for row in rows) for column in range(1, 5))
    print(f"{'page':30} {'words':>7} {'captions':>9} {'figures':>8} {'minutes':>8}")
    for name, *numbers in [*rows, ("all", *sums)]:
        print(f"{name:30} {numbers[0]:7} {numbers[1]:9} {numbers[2]:8} {numbers[3]:8}")


if __name__ == "__main__":
    main()
