"""CPU time of each file of tests: a plugin of pytest, and a command that compares what it measured.

    TEST_TIMES=_build/times PYTHONPATH=tools .venv/bin/python -m pytest -p test_times -n 2 --dist loadfile
    .venv/bin/python tools/test_times.py _build/times [ANOTHER_FOLDER]...

User and system time are those of a test process and of all processes below it, such as kernels and the browser, which
no function of Python adds up while they run. Fixtures of a session, such as the site, have rows of their own.
"""

import csv
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

TICK = os.sysconf("SC_CLK_TCK")
START = "start and collection"


def cpu_seconds(root: int) -> float:
    """Return the CPU seconds of a process and of all processes below it, with those that have ended."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        number = int(path.parent.name)
        parents[number], used[number] = int(fields[1]), sum(map(int, fields[11:15])) / TICK
    total = 0.0
    for number, seconds in used.items():
        above = number
        while above not in (root, 0):
            above = parents.get(above, 0)
        total += seconds if above == root else 0.0
    return total


class Clock:
    """Adds up the CPU time of one process that runs tests."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'gw')}-{os.getpid()}.csv"
        self.spent: dict[str, float] = defaultdict(float)
        self.row, self.cpu = START, 0.0

    def turn_to(self, row: str) -> None:
        """Add the time until now to the present row, write the table, and count for `row` from now on."""
        cpu = cpu_seconds(os.getpid())
        self.spent[self.row] += cpu - self.cpu
        self.row, self.cpu = row, cpu
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(self.spent.items())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item) -> None:
        """The first test of a file begins."""
        if (file := item.nodeid.partition("::")[0]) != self.row:
            self.turn_to(file)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Count what a fixture of the session needs apart."""
        before = self.row
        if fixturedef.scope == "session":
            self.turn_to(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            if fixturedef.scope == "session":
                self.turn_to(before)

    def pytest_sessionfinish(self) -> None:
        """Add the time of the last file."""
        self.turn_to(START)


def pytest_configure(config) -> None:
    """Start the clock of a process that runs tests."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Clock(Path(os.environ["TEST_TIMES"]).absolute()))


def read(folder: Path) -> dict[str, float]:
    """Return the CPU seconds by row, over all processes."""
    rows: dict[str, float] = defaultdict(float)
    for path in folder.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            for row, cpu in csv.reader(file):
                rows[row] += float(cpu)
    return rows


def main(folders: list[Path]) -> None:
    """Print CPU seconds by folder of tests and by file, the longest first, with one column per measurement."""
    measured = [read(folder) for folder in folders]
    sums: dict[str, list[float]] = {}
    files: dict[str, list[float]] = {}
    for place, rows in enumerate(measured):
        for row, cpu in rows.items():
            for table, name in ((files, row), (sums, row.rpartition("/")[0] or row), (sums, "all")):
                table.setdefault(name, [0.0] * len(folders))[place] += cpu
    for table in (sums, files):
        print("| | " + " | ".join(folder.name for folder in folders) + " |\n" + "|---" * (1 + len(folders)) + "|")
        for name, cpu in sorted(table.items(), key=lambda row: -max(row[1])):
            print(f"| {name} | " + " | ".join(f"{seconds:.1f}" if seconds else "" for seconds in cpu) + " |")
        print()


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
