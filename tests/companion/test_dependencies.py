"""The sources of numbers and pictures are found by following imports; edits that cannot change a result are ignored."""

import textwrap
from pathlib import Path

import pytest

from companion.analysis import dependencies
from companion.build import cache_keys
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]

TREE = {
    "lib/__init__.py": "from lib.heart import beat as beat\nfrom lib.lung import breathe as breathe\n",
    "lib/heart.py": "from lib.deep.vein import flow\n",
    "lib/lung.py": "x = 1\n",
    "lib/deep/__init__.py": '"""Not only re-exports: it defines a function."""\ndef depth(): ...\n',
    "lib/deep/vein.py": "from ..shallow import skin\n",
    "lib/deep/lonely.py": "from . import depth\n",
    "lib/shallow.py": "import numpy\n",
    "lib/late.py": "def f():\n    from lib import renamed\n    import lib.lung\n",
    "book/__init__.py": '"""The chapters."""\n',
    "book/one/__init__.py": '"""A chapter."""\n',
}


@pytest.fixture
def book(tmp_path):
    """Return a function that writes the module `book.one.figures.figure` from a source and returns the library."""

    def lay_out(source, **others):
        for path, text in {**TREE, "book/one/figures/figure.py": source, **others}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text), encoding="utf-8")
        return dependencies.Library.at(tmp_path, ["lib", "book"])

    return lay_out


HEART = {"lib/heart.py", "lib/deep/vein.py", "lib/shallow.py"}
# What a figure module imports, other files of the book, and the files that it then depends on.
IMPORTS = {
    "re-exported name": ("from lib import beat\n", {}, HEART),
    "module": ("import lib.heart\n", {}, HEART),
    "relative import": ("from lib.deep import vein\n", {}, {"lib/deep/vein.py", "lib/shallow.py"}),
    "name defined in an init": ("from lib.deep.lonely import x\n", {}, {"lib/deep/lonely.py", "lib/deep/__init__.py"}),
    "import in a function": (
        *("import lib.late\n", {"lib/__init__.py": "from lib.lung import breathe as renamed\n"}),
        {"lib/late.py", "lib/lung.py"},
    ),
    "whole package": (
        *("from lib import organs\n", {"lib/organs/__init__.py": "from lib.lung import x as x\n"}),
        {"lib/organs/__init__.py", "lib/lung.py"},
    ),
    "circle": (
        *("import lib.a\n", {"lib/a.py": "from lib.b import x\n", "lib/b.py": "from lib.a import y\n"}),
        {"lib/a.py", "lib/b.py"},
    ),
    "installed packages and companion": ("import numpy\nfrom companion import Numbers\n", {}, set()),
}


@pytest.mark.parametrize(("source", "others", "expected"), IMPORTS.values(), ids=IMPORTS)
def test_imports_are_followed(book, source, others, expected):
    """A re-exported name leads to the module that defines it, and a whole package to all that it imports."""
    files = set(book(source, **others).files(["book.one.figures.figure"]))
    assert files - {"book/one/figures/figure.py"} == expected


def test_missing_package_is_named(tmp_path):
    (tmp_path / "lib").mkdir()
    with pytest.raises(UserError, match=r"\[tool\.companion\].*'limb'"):
        dependencies.Library.at(tmp_path, ["lib", "limb"])


def test_missing_figure_is_named(book):
    """The user gets a message instead of a traceback."""
    with pytest.raises(UserError, match=r"no module 'book\.one\.other'"):
        book("x = 1\n").picture_digest("book.one.other")


CODE = textwrap.dedent('''
    """A module.

    With a docstring."""
    # why
    x = 1  # and how

    def f(y):
        """Add."""
        # slowly
        return x + y

    z = (  # one
        "a"  # two
        "b # c"  # three
    )
''')
IGNORED = [
    ("# and how", "# or how"),
    ("# why\n", ""),
    ("With a docstring.", "Reworded: ä ∑."),
    ('"""Add."""', "'''Add,\n\n    over lines.'''"),
    ("def f", "\n\n\ndef f"),
    ("# slowly", '# \'slowly\' """'),
    *((word, "four") for word in ("one", "two", "three")),
]
COUNTED = [
    ("x = 1", "x = 2"),
    ("x + y", "x - y"),
    ("def f(y)", "def f(y=2)"),
    ("def f", "@cache\ndef f"),
    ("b # c", "b # d"),
]


@pytest.mark.parametrize(("old", "new"), IGNORED)
def test_edits_of_comments_docstrings_and_blank_lines_are_ignored(old, new):
    """Also next to strings, and after a string that contains `#`."""
    assert old in CODE
    assert dependencies.plain_code(CODE.replace(old, new)) == dependencies.plain_code(CODE)


@pytest.mark.parametrize(
    ("code", "edited"),
    [
        *((CODE, CODE.replace(old, new)) for old, new in COUNTED),
        ("x = '''a\n\nb'''\n", "x = '''a\nb'''\n"),
        ("x = '''a  \nb'''\n", "x = '''a\nb'''\n"),
        ("def f():\n    x = 1\n    'no docstring'\n", "def f():\n    x = 1\n    'nor this'\n"),
        ("def f():\n    'ab'.strip()\n", "def f():\n    'abc'.strip()\n"),
        ("x = 'é'; y = 1  # é\n", "x = 'é'; y = 2  # é\n"),
        ("x = '\x0c'  # a\ny = 1  # b\n", "x = '\x0c'  # a\ny = 2  # b\n"),
    ],
)
def test_edits_that_can_change_a_result_count(code, edited):
    """Strings may contain comment signs, blank lines, multi-byte letters and form feeds."""
    assert dependencies.plain_code(code) != dependencies.plain_code(edited)


FIGURE = '''
    """A caption.

    Alt: A line.
    """
    from lib.heart import beat
    from lib.lung import breathe
    from book.one.marks import dot
    from companion import Numbers, Table
    from companion.figures.style import ink

    COLOUR = "red"
    RATE = 2
    BOTH = 3

    def simulate(n):
        return beat(n * RATE)

    def numbers(outputs):
        return Numbers(_table(outputs * BOTH))

    def _table(outputs):
        return Table(outputs)

    def draw(table):
        """Points."""
        return _axes(table, COLOUR, BOTH, ink())

    def _axes(*what):
        return dot(*what)
'''
MARKS = {"book/one/marks.py": "def dot(*what): ...\n"}


@pytest.fixture
def digests(book):
    """Return a function that edits a figure module and returns its numbers digests (by file) and picture digest."""

    def read(old="", new="", **others):
        source = textwrap.dedent(FIGURE)
        assert old in source
        library = book(source.replace(old, new, 1), **{**MARKS, **others})
        return library.numbers_digests(["book.one.figures.figure"]), library.picture_digest("book.one.figures.figure")

    return read


EDITS = {
    "numbers": [
        ("RATE = 2", "RATE = 4"),
        ("beat(n * RATE)", "beat(n + RATE)"),
        ("Table(outputs)", "Table(-outputs)"),
        ("_table(outputs * BOTH)", "_table(outputs)"),
        ("def simulate(n):", "def simulate(n, m=1):"),
        ("def draw", "def more(n):\n    return n\n\ndef draw"),
    ],
    "picture": [
        ('COLOUR = "red"', 'COLOUR = "blue"'),
        ("dot(*what)", "dot(what)"),
        ("_axes(table, COLOUR", "_axes(table, 1, COLOUR"),
        ("A caption.", "Another caption."),
        ("Alt: A line.", "Alt: Two lines."),
        ("from book.one.marks import dot\n", "from book.one.marks import dot as other\ndot = other\n"),
    ],
    "both": [
        ("BOTH = 3", "BOTH = 4"),
        ("BOTH = 3", "BOTH = 3\nBOTH += 1"),
        ("RATE = 2", "RATE = 2\nprint(RATE)"),
    ],
    "neither": [
        ('"""Points."""', '"""Points, and a line."""'),
        ("RATE = 2", "RATE = 2  # a second"),
        ("def draw", "# the drawing\ndef draw"),
        ("def _axes", "def _unused():\n    return 1\n\ndef _axes"),
        ("COLOUR =", "UNUSED = 1\nCOLOUR ="),
    ],
}


@pytest.mark.parametrize(
    ("affected", "old", "new"),
    [pytest.param(part, *edit, id=f"{part}-{n}") for part, edits in EDITS.items() for n, edit in enumerate(edits)],
)
def test_edits_of_a_figure_module_affect_only_the_part_that_uses_them(digests, affected, old, new):
    """The docstring and the dependencies of `draw` belong to the picture, all other code to the numbers."""
    (numbers, picture), (new_numbers, new_picture) = digests(), digests(old, new)
    changed = {"numbers"} if numbers != new_numbers else set()
    changed |= {"picture"} if picture != new_picture else set()
    assert changed == {"both": {"numbers", "picture"}, "neither": set()}.get(affected, {affected})


def test_each_part_follows_only_its_own_imports(digests):
    """A drawing module is no source of numbers, and a module of the science no source of pictures."""
    numbers, picture = digests()
    assert {"lib/heart.py", "lib/deep/vein.py", "book/one/figures/figure.py"} <= set(numbers)
    assert not {"book/one/marks.py", "lib/lung.py"} & set(numbers)  # nothing uses `breathe`
    assert digests(**{"lib/heart.py": "x = 2\n"})[1] == picture
    assert digests(**{"lib/heart.py": "x = 2\n"})[0] != numbers
    assert digests(**{"book/one/marks.py": "def dot(*what): 1\n"})[1] != picture
    assert digests(**{"book/one/marks.py": "def dot(*what): 1\n"})[0] == numbers


def test_readers_see_the_code_that_computes_and_draws(book):
    """Shared functions of the chapter come first, then those of the figure; science and parameters are left out."""
    shared = {
        "book/one/runs.py": """
            from lib.lung import breathe
            class Run: ...
            def run(n): return _go(n)
            def _go(n) -> Run: return breathe(n)
            def rest(): ...
        """,
        "book/one/parameters.py": "class Parameters: ...\n",
    }
    source = """
        from book.one import runs
        from book.one.parameters import Parameters
        from book.one.runs import Run
        def numbers(outputs: Run): return _table(outputs)
        def _table(outputs): ...
        def unused(): ...
        def draw(table): return Parameters
    """
    shown = book(source, **shared).shown("book.one.figures.figure", ["book.one.runs.run", "lib.lung.breathe"])
    assert shown == [
        *("book.one.runs.Run", "book.one.runs.run", "book.one.runs._go"),
        *("book.one.figures.figure.numbers", "book.one.figures.figure._table", "book.one.figures.figure.draw"),
    ]


def test_gaussian_limit_depends_on_attention_and_measures():
    """Apart from phrases in its claims, it depends on no other chapter, and on no `__init__`."""
    library = dependencies.Library.at(ROOT, Project(ROOT).settings.science)
    files = set(library.numbers_digests(slicing.modules(Notebook.named(Project(ROOT), "gaussian_limit").code)))
    assert {"lib/attention.py", "lib/measures.py", "chapters/gaussian_limit/figures/laplace_domain.py"} <= files
    chapters = {path.split("/")[1] for path in files if path.startswith("chapters/")}
    assert chapters == {"gaussian_limit", "wording.py"}
    assert [path for path in sorted(files) if path.endswith("__init__.py")] == []


def test_a_kernel_may_read_the_fonts_of_pictures():
    fonts = dependencies.FONTS.relative_to(ROOT).as_posix()
    assert cache_keys.may_be_read(Project(ROOT), "measures", f"{fonts}/book-serif-regular.ttf")
