"""The reading time of a page counts what a reader reads without opening a fold."""

import pytest

from companion.site.reading_time import ReadingTime, of_text

PAGES = {
    "Two words": (2, 0, 0, 0),
    "# A title of five words": (6, 0, 0, 0),
    "The weight $p_i = w_i / S$ of {doc}`measures`.": (5, 0, 0, 0),
    "Before\n\n$$\na = b + c\n$$ (label)\n\nafter": (2, 0, 1, 0),
    "```{prf:theorem} Long prompts\n:label: long\n\nThey converge.\n```": (0, 4, 0, 0),
    "```{prf:proof}\nBy the law of large numbers.\n```\n\nDone": (1, 0, 0, 0),
    "```{dropdown} Solution\nIt is four.\n```": (0, 0, 0, 0),
    "````{note}\n:class: dropdown\n\nHidden.\n```{prf:lemma} Also\nhidden\n```\n````\nShown": (1, 0, 0, 0),
    "```python\nx = 1\n```": (0, 0, 0, 0),
    ":::{companion-picture} toy/figure\nA headline.\n:::": (3, 0, 0, 1),
}


@pytest.mark.parametrize("text", PAGES)
def test_words_formulas_and_pictures_are_counted(text):
    read = of_text(text)
    assert (read.prose, read.mathematics, read.formulas, read.figures) == PAGES[text]


def test_minutes_depend_on_the_kind_of_the_words():
    """180 words of prose, 90 of mathematics, six formulas and one figure take a minute each."""
    assert ReadingTime(prose=180, mathematics=90, formulas=6, figures=1).minutes == 4
    assert ReadingTime().minutes == 0
