"""The progress of a build, estimated from the durations of the last runs."""

import pytest

from companion.build.progress import Progress, known_seconds, time_needed


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
    assert progress.end("one", 80) == "1 of 3, about 3 min left"
    assert progress.end("two", 200) == "2 of 3, about 1 min left"
    assert progress.end("three", 300) == "3 of 3"


def test_unknown_times_are_left_out():
    """The number of finished notebooks is shown on the first build, too."""
    assert Progress({"one": None, "two": None}, 2).end("one", 5) == "1 of 2"


def test_known_seconds_are_those_of_the_last_run(ran_clone):
    """Each profile has its own."""
    (seconds,) = known_seconds(ran_clone.project, "laptop", ["toy"]).values()
    assert 0 < seconds < 600
    assert known_seconds(ran_clone.project, "smoke", ["toy"]) == {"toy": None}


def test_a_build_prints_its_progress(ran_clone):
    """After the line of a notebook that ended."""
    ran_clone.replace("book/toy.ipynb", "repeats = 500", "repeats = 501")
    finished = ran_clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert lines.index("  notebooks: 1 of 1") > next(i for i, line in enumerate(lines) if line.startswith("✓ toy:"))
