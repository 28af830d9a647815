"""Commands work where standard streams are not UTF-8, or closed, and where warnings of Python are errors."""

import subprocess
import sys

import pytest

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    "settings", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, C_LOCALE], ids=["ascii", "latin", "c"]
)
def test_signs_that_a_terminal_lacks_have_substitutes(ran_clone, settings):
    ran_clone.environment |= settings
    finished = ran_clone.companion("run", "toy", "--isolated")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("> toy (laptop)\nok toy: 1 figure, 1 claim holds")
    assert "(a whole number, >= 2)" in ran_clone.companion("run", "toy", "--parameters").stdout


def test_other_characters_are_shown_by_their_code_points(ran_clone):
    ran_clone.environment["PYTHONIOENCODING"] = "ascii"
    finished = ran_clone.companion("run", "toi\N{LATIN SMALL LETTER E WITH DIAERESIS}")
    assert finished.returncode == 2
    assert "There is no notebook 'toi\\xeb'" in finished.stderr


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_stop_no_run(ran_clone, closed):
    """Some services start commands in this way."""
    command = ["sh", "-c", f'"$0" -m companion run toy -p seed=1 {closed}', sys.executable]
    finished = subprocess.run(command, cwd=ran_clone.root, env=ran_clone.environment, check=False, capture_output=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert len(list(ran_clone.project.runs.glob("toy-*/figures/toy/toy_error.json"))) == 1


def test_python_warnings_of_a_user_are_no_errors_of_the_site(ran_clone):
    ran_clone.environment["PYTHONWARNINGS"] = "error"
    finished = ran_clone.companion("site", "--published")
    assert finished.returncode == 0, finished.stderr
