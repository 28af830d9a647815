"""How far a build is: told from the seconds of the last runs, where they are known."""

import pytest

from companion.build.progress import Progress, known_seconds, time_needed


@pytest.mark.parametrize(
    ("seconds", "cores", "said"),
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
def test_time_needed_is_said_where_it_is_known(seconds, cores, said):
    """Runs share the cores; none is shorter than the longest."""
    assert time_needed(seconds, cores) == said


def test_a_line_that_ends_a_notebook_says_how_far_the_build_is():
    """The time of what is running counts; other lines are as they were."""
    progress = Progress({"one": 100.0, "two": 200.0, "three": 60.0}, 1)
    assert progress.told("▸ one (laptop)", 0) == "▸ one (laptop)"
    assert progress.told("▸ two (laptop)", 0) == "▸ two (laptop)"
    one = "✓ one: 1 figure, 1 claim holds, 90 s. _build"
    assert progress.told(one, 80) == f"{one} — 1 of 3, about 3 min left"
    assert progress.told("  replaced in figures/one: a", 80) == "  replaced in figures/one: a"
    assert progress.told("✓ one/figure drawn", 80) == "✓ one/figure drawn"
    assert progress.told("✓ two: done", 200) == "✓ two: done — 2 of 3, about 1 min left"
    assert progress.told("✓ three: done", 300) == "✓ three: done — 3 of 3"
    assert progress.told("✓ the site: here", 400) == "✓ the site: here"


def test_nothing_is_said_of_time_where_it_is_not_known():
    """How many have ended is, on the first build too."""
    progress = Progress({"one": None, "two": None}, 2)
    assert progress.told("✓ one: done", 5) == "✓ one: done — 1 of 2"


def test_known_seconds_are_those_of_the_last_run(ran_clone):
    """In the profile that is asked for."""
    (seconds,) = known_seconds(ran_clone.project, "laptop", ["toy"]).values()
    assert 0 < seconds < 600
    assert known_seconds(ran_clone.project, "smoke", ["toy"]) == {"toy": None}


def test_a_build_says_how_far_it_is(ran_clone):
    """Where a notebook has ended."""
    ran_clone.replace("book/toy.ipynb", "repeats = 500", "repeats = 501")
    finished = ran_clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stderr
    (ended,) = [line for line in finished.stdout.splitlines() if line.startswith("✓ toy:")]
    assert ended.endswith(" — 1 of 1")
