"""The progress of a build, estimated from earlier durations and from those of this build."""

import pytest

from companion.build.progress import Progress, known_seconds, time_needed
from companion.io.errors import UserError
from companion.project import costs


@pytest.mark.parametrize(
    ("seconds", "cores", "words"),
    [
        ([30.0, 10.0], 2, "about 30 s"),
        ([30.0, 30.0, 30.0, 30.0], 2, "about 1 min"),
        ([0.0], 1, "about 1 s"),
        ([600.0, 600.0], 1, "about 20 min"),
        ([5400.0, 5400.0], 1, "about 3.0 h"),
        ([], 2, ""),
        ([30.0, None], 2, ""),
    ],
)
def test_time_needed_is_in_words(seconds, cores, words):
    """Runs share the cores, and the total is at least the longest run; it is empty if a duration is unknown."""
    assert time_needed(seconds, cores) == words


def test_progress_counts_the_elapsed_time_of_running_notebooks():
    progress = Progress({"one": 100.0, "two": 200.0, "three": 60.0}, 1)
    progress.start("one", 0)
    progress.start("two", 0)
    assert progress.end("one", 100) == "1 of 3, about 3 min left"
    progress.start("three", 200)
    assert progress.end("two", 200) == "2 of 3, about 1 min left"
    assert progress.end("three", 300) == "3 of 3"


@pytest.mark.parametrize(("slower", "left"), [(1, ("4", "2")), (5, ("20", "10")), (0.5, ("2", "1"))])
def test_the_remaining_time_is_scaled_by_the_durations_of_this_build(slower, left):
    """A machine that is slower than the one of the table by a factor of five needs five times as long."""
    progress = Progress(dict.fromkeys(["one", "two", "three"], 120.0), 1)
    for number, (name, minutes) in enumerate(zip(progress.seconds, left, strict=False), start=1):
        progress.start(name, 120 * slower * (number - 1))
        assert progress.end(name, 120 * slower * number) == f"{number} of 3, about {minutes} min left"


def test_costs_elsewhere_are_used_before_the_first_run(ran_clone):
    """They are in a table of the book, one for each profile; a run on this machine counts more."""
    ran_clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\ncosts.smoke = "costs.csv"\n')
    table = ran_clone.root / "costs.csv"
    table.write_text("notebook,core minutes,memory,ended\ntoy,2.5,1.2 GB,well\n")
    assert costs.read(ran_clone.project, "smoke") == {"toy": costs.Cost(150.0, 1200)}
    assert costs.read(ran_clone.project, "laptop") == {}
    assert known_seconds(ran_clone.project, "smoke", ["toy"]) == {"toy": 150.0}
    plan = ran_clone.companion("build", "--profile", "smoke", "--dry-run")
    assert "1 notebook to run: about 2 min with 2 at a time." in plan.stdout
    table.write_text("notebook,core minutes\ntoy,2.5\n")
    assert costs.read(ran_clone.project, "smoke") == {"toy": costs.Cost(150.0, None)}
    table.write_text("notebook,minutes\ntoy,2.5\n")
    with pytest.raises(UserError, match="with the columns 'notebook', 'core minutes' and perhaps 'memory'"):
        costs.read(ran_clone.project, "smoke")
