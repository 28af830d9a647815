"""Code in a text keeps the first line of each docstring."""

from companion.site.sphinx.docstrings import shortened

LONG = '''def mean(values):
    r"""Return the mean.

    Args:
      values: numbers.
    """
    return sum(values) / len(values)


class Walk:
    """A walk."""

    def step(self):
        """Take a step.

        Raises:
          ValueError: at the end.
        """
'''
SHORT = '''def mean(values):
    r"""Return the mean."""
    return sum(values) / len(values)


class Walk:
    """A walk."""

    def step(self):
        """Take a step."""'''


def test_long_docstrings_are_shortened_and_returned():
    code, docstrings = shortened(LONG)
    assert code == SHORT
    assert list(docstrings) == ["mean", "step"]
    assert docstrings["mean"] == "Return the mean.\n\nArgs:\n  values: numbers."


def test_other_code_stays():
    """Parts of a function cannot be parsed."""
    for code in (SHORT, "x = 1", "    return x\nelse:"):
        assert shortened(code) == (code, {})
