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


def test_the_line_of_a_finished_notebook_gets_the_progress():
    """The elapsed time of running notebooks counts; other lines stay the same."""
    progress = Progress({"one": 100.0, "two": 200.0, "three": 60.0}, 1)
    assert progress.annotate("▸ one (laptop)", 0) == "▸ one (laptop)"
    assert progress.annotate("▸ two (laptop)", 0) == "▸ two (laptop)"
    line = "✓ one: 1 figure, 1 claim holds, 90 s. _build"
    assert progress.annotate(line, 80) == f"{line} — 1 of 3, about 3 min left"
    assert progress.annotate("  replaced in figures/one: a", 80) == "  replaced in figures/one: a"
    assert progress.annotate("✓ one/figure drawn", 80) == "✓ one/figure drawn"
    assert progress.annotate("✓ two: done", 200) == "✓ two: done — 2 of 3, about 1 min left"
    assert progress.annotate("✓ three: done", 300) == "✓ three: done — 3 of 3"
    assert progress.annotate("✓ the site: here", 400) == "✓ the site: here"


def test_unknown_times_are_left_out():
    """The number of finished notebooks is shown on the first build, too."""
    progress = Progress({"one": None, "two": None}, 2)
    assert progress.annotate("✓ one: done", 5) == "✓ one: done — 1 of 2"


def test_known_seconds_are_those_of_the_last_run(ran_clone):
    """Each profile has its own."""
    (seconds,) = known_seconds(ran_clone.project, "laptop", ["toy"]).values()
    assert 0 < seconds < 600
    assert known_seconds(ran_clone.project, "smoke", ["toy"]) == {"toy": None}


def test_a_build_prints_its_progress(ran_clone):
    """The line of a finished notebook has it."""
    ran_clone.replace("book/toy.ipynb", "repeats = 500", "repeats = 501")
    finished = ran_clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stderr
    (ended,) = [line for line in finished.stdout.splitlines() if line.startswith("✓ toy:")]
    assert ended.endswith(" — 1 of 1")
