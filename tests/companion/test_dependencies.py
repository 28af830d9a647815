"""The sources of numbers and of pictures are found by reading imports; what cannot change a result does not count."""

import io
import shutil
import textwrap
import tokenize
from pathlib import Path

import pytest

from companion.analysis import dependencies
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]

TREE = {
    "lib/__init__.py": "from lib.heart import beat as beat\nfrom lib.lung import breathe as breathe\n",
    "lib/heart.py": "from lib.deep.vein import flow\n",
    "lib/lung.py": "x = 1\n",
    "lib/deep/__init__.py": '"""Not a table of contents: a function of its own."""\ndef depth(): ...\n',
    "lib/deep/vein.py": "from ..shallow import skin\n",
    "lib/deep/lonely.py": "from . import depth\n",
    "lib/shallow.py": "import numpy\n",
    "lib/late.py": "def f():\n    from lib import renamed\n    import lib.lung\n",
    "book/__init__.py": '"""The chapters."""\n',
    "book/one/__init__.py": '"""A chapter."""\n',
}


@pytest.fixture
def book(tmp_path):
    """Lay out the tree with a module `book.one.figure` of the given source, and others; its library."""

    def lay_out(source, **others):
        for path, text in {**TREE, "book/one/figure.py": source, **others}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text), encoding="utf-8")
        return dependencies.Library.at(tmp_path, ["lib", "book"])

    return lay_out


@pytest.fixture
def files(book):
    """The files that a module of the given source leads to, without its own."""
    return lambda source, **others: set(book(source, **others).files(["book.one.figure"])) - {"book/one/figure.py"}


@pytest.mark.parametrize("source", ["from lib import beat\n", "import lib.heart\n", "from lib.heart import beat\n"])
def test_reexport_leads_to_the_module_alone(files, source):
    """Every way to import `beat` leads to its file and what that imports: not to `lung`, not to `__init__`."""
    assert files(source) == {"lib/heart.py", "lib/deep/vein.py", "lib/shallow.py"}


def test_relative_imports_are_followed(files):
    """`from ..shallow import skin` inside lib/deep is lib/shallow.py."""
    assert files("from lib.deep import vein\n") == {"lib/deep/vein.py", "lib/shallow.py"}


def test_name_defined_in_an_init_leads_to_it(files):
    """An `__init__` that is more than a table of contents counts as source."""
    assert files("from lib.deep.lonely import x\n") == {"lib/deep/lonely.py", "lib/deep/__init__.py"}


def test_imports_inside_functions_are_followed(files):
    """A late import is an import."""
    init = "from lib.lung import breathe as renamed\n"
    assert files("import lib.late\n", **{"lib/__init__.py": init}) == {"lib/late.py", "lib/lung.py"}


def test_renamed_reexport_is_found(files):
    """`import a as b` is found under `b`."""
    assert files("from lib import b\n", **{"lib/__init__.py": "from lib.lung import a as b\n"}) == {"lib/lung.py"}


@pytest.mark.parametrize("source", ["import lib\n", "from lib import organs as o\n", "import lib.organs\n"])
def test_package_as_a_whole_leads_to_all_it_imports(files, source):
    """`o.lung` may follow, or `o.heart`: nobody can tell."""
    whole = {"lib/organs/__init__.py": "from lib.lung import x as x\nfrom lib.heart import beat as beat\n"}
    assert {"lib/lung.py", "lib/heart.py", "lib/deep/vein.py"} <= files(source, **whole)


def test_imports_in_a_circle_end(files):
    """Two modules that import each other are both listed, once."""
    circle = {"lib/a.py": "from lib.b import x\n", "lib/b.py": "from lib.a import y\n"}
    assert files("import lib.a\n", **circle) == {"lib/a.py", "lib/b.py"}


def test_other_peoples_packages_are_not_followed(files):
    """The lock pins them."""
    assert files("import numpy\nfrom scipy.stats import norm\n") == set()


def test_machine_is_no_source_of_a_figure(files):
    """The science decides what a figure says; the machine around it only how it is written."""
    assert files("import lib.lung\nfrom companion import Numbers\nfrom companion.figures.style import ink\n") == {
        "lib/lung.py"
    }


def test_file_that_is_not_python_is_named(files):
    """A typing slip in a module is told in a sentence, not in a traceback."""
    with pytest.raises(UserError, match=r"lung\.py"):
        files("import lib.lung\n", **{"lib/lung.py": "def breathe(:\n"})


def test_edited_file_is_read_again(files):
    """Within one process, too."""
    assert files("import lib.lung\n") == {"lib/lung.py"}
    assert files("import lib.shallow, lib.lung\n") == {"lib/lung.py", "lib/shallow.py"}


def test_package_that_is_not_there_is_named(tmp_path):
    """In a checkout, and where packages are installed."""
    (tmp_path / "lib").mkdir()
    with pytest.raises(UserError, match=r"\[tool\.companion\].*'limb'"):
        dependencies.Library.at(tmp_path, ["lib", "limb"])
    with pytest.raises(UserError, match=r"'limb_of_nobody', which is not installed here"):
        dependencies.Library.installed(["limb_of_nobody"])


def test_figure_that_is_not_there_is_named(book):
    """In a sentence."""
    with pytest.raises(UserError, match=r"no module 'book\.one\.other'"):
        book("x = 1\n").picture_digest("book.one.other")


CODE = '''
    """A module.

    With a docstring."""
    # why
    x = 1  # and how

    def f(y):
        """Add."""
        # slowly
        return x + y
'''


@pytest.mark.parametrize(
    "edit",
    [
        lambda code: code.replace("# and how", "# or how"),
        lambda code: code.replace("# why\n", ""),
        lambda code: code.replace("With a docstring.", "Reworded: ä ∑."),
        lambda code: code.replace('"""Add."""', "'''Add,\n\n    over lines.'''"),
        lambda code: code.replace("def f", "\n\n\ndef f"),
        lambda code: code.replace("# slowly", '# \'slowly\' """'),
    ],
    ids=["comment", "no comment", "module", "function", "blank lines", "quotes"],
)
def test_what_cannot_change_a_result_is_no_code(edit):
    """Comments, docstrings and blank lines."""
    code = textwrap.dedent(CODE)
    assert edit(code) != code
    assert dependencies.plain_code(edit(code)) == dependencies.plain_code(code)


@pytest.mark.parametrize(
    "edit",
    [
        lambda code: code.replace("x = 1", "x = 2"),
        lambda code: code.replace("x + y", "x - y"),
        lambda code: code.replace("def f(y)", "def f(y=2)"),
        lambda code: code.replace("def f", "@cache\ndef f"),
        lambda code: code + "f(1)\n",
    ],
    ids=["value", "operator", "default", "decorator", "call"],
)
def test_what_can_change_a_result_is_code(edit):
    """To the character."""
    code = textwrap.dedent(CODE)
    assert dependencies.plain_code(edit(code)) != dependencies.plain_code(code)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 'a # b'\n", "x = 'a # c'\n"),
        ("x = '''a\n\nb'''\n", "x = '''a\nb'''\n"),
        ("x = '''a  \nb'''\n", "x = '''a\nb'''\n"),
        ("def f():\n    x = 1\n    'no docstring'\n", "def f():\n    x = 1\n    'nor this'\n"),
        ("x = 'é'; y = 1  # é\n", "x = 'é'; y = 2  # é\n"),
        ("x = '\x0c'  # a\ny = 1  # b\n", "x = '\x0c'  # a\ny = 2  # b\n"),
    ],
    ids=["comment", "blank line", "space", "no docstring", "bytes", "page"],
)
def test_strings_are_code(one, other):
    """Whatever is in them: marks of comments, blank lines, letters of more than a byte, ends of pages."""
    assert dependencies.plain_code(one) != dependencies.plain_code(other)


def test_comments_beside_strings_are_no_code():
    """Between the parts of a string, and after one that holds a # itself."""
    code = "x = (  # {0}\n    'a'  # {0}\n    'b # c'  # {0}\n)\ny = '#'  # {0}\n"
    assert dependencies.plain_code(code.format("why")) == dependencies.plain_code(code.format("how"))


def words(code):
    """The tokens of a program, in order, without comments and without strings that stand alone."""
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING, tokenize.NEWLINE)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type in kinds]
    found = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        ends = [neighbour is None or neighbour.type == tokenize.NEWLINE for neighbour in (before, after)]
        if not (token.type == tokenize.STRING and all(ends)):
            found.append(token.string)
    return [word for word in found if word.strip()]


@pytest.mark.parametrize("package", ["companion", "lib", "chapters"])
def test_plain_code_loses_nothing_else(package):
    """Of every file of this repository: the words of the program stay, in their order."""
    for path in (ROOT / package).rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        assert words(dependencies.plain_code(code)) == words(code), path


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
def parts(book):
    """Of a figure file, the digests of its numbers and of its picture after an edit, and the files of each."""

    def read(old="", new="", **others):
        source = textwrap.dedent(FIGURE)
        assert old in source
        library = book(source.replace(old, new, 1), **{**MARKS, **others})
        return library.numbers_digests(["book.one.figure"]), library.picture_digest("book.one.figure")

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
        ("def draw", "# what follows draws\ndef draw"),
        ("def _axes", "def _forgotten():\n    return 1\n\ndef _axes"),
        ("COLOUR =", "UNUSED = 1\nCOLOUR ="),
    ],
}


@pytest.mark.parametrize(
    ("moves", "old", "new"),
    [pytest.param(moves, *edit, id=f"{moves}-{n}") for moves, edits in EDITS.items() for n, edit in enumerate(edits)],
)
def test_a_figure_file_is_two_parts(parts, moves, old, new):
    """What `draw` needs is the picture's, with the docstring; everything else the numbers'; some is of both."""
    (numbers, picture), (other_numbers, other_picture) = parts(), parts(old, new)
    changed = {"numbers"} if numbers != other_numbers else set()
    changed |= {"picture"} if picture != other_picture else set()
    assert changed == {"both": {"numbers", "picture"}, "neither": set()}.get(moves, {moves})


def test_assigning_twice_counts_twice(parts):
    """Each of the two assignments decides the value."""
    twice = ("RATE = 2", "RATE = 2\nRATE = RATE * 2")
    numbers, _ = parts(*twice)
    other, _ = parts(twice[0], twice[1].replace("RATE = 2", "RATE = 3", 1))
    assert numbers != other


def test_function_that_draws_may_be_a_step_too(parts):
    """If it is public a notebook may call it, so that it decides numbers, whoever else draws with it."""
    public = ("def draw(table):", "def grid(n):\n    return n\n\ndef draw(table):\n    grid(3)")
    (numbers, picture), (other_numbers, other_picture) = (
        parts(*public),
        parts(public[0], public[1].replace("n\n", "-n\n")),
    )
    assert numbers != other_numbers
    assert picture != other_picture


def test_each_part_follows_its_own_imports(parts):
    """The drawing of the chapter is no source of numbers, the science none of pictures."""
    numbers, picture = parts()
    assert {"lib/heart.py", "lib/deep/vein.py", "book/one/figure.py"} <= set(numbers)
    assert not {"book/one/marks.py", "lib/lung.py"} & set(numbers)  # nothing uses `breathe`
    assert parts(**{"lib/heart.py": "x = 2\n"})[1] == picture
    assert parts(**{"lib/heart.py": "x = 2\n"})[0] != numbers
    assert parts(**{"book/one/marks.py": "def dot(*what): 1\n"})[1] != picture
    assert parts(**{"book/one/marks.py": "def dot(*what): 1\n"})[0] == numbers


def test_shared_file_counts_as_a_whole(book):
    """It has no picture of its own; nor has what merely has a `draw`."""
    shared = {"book/one/runs.py": "x = 1\ndef draw(): ...\n"}
    source = "from book.one.runs import x\ndef numbers(): return x\ndef draw(): ...\n"
    before = book(source, **shared).numbers_digests(["book.one.figure"])
    after = book(source, **{"book/one/runs.py": "x = 1\ndef draw(): 1\n"}).numbers_digests(["book.one.figure"])
    assert before != after


@pytest.fixture
def machine(tmp_path_factory, monkeypatch):
    """A copy of this machine to edit, in place of the one that runs."""
    copy = tmp_path_factory.mktemp("machine") / "companion"
    shutil.copytree(dependencies.MACHINE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(dependencies, "MACHINE", copy)
    return copy


@pytest.mark.parametrize(
    ("module", "changed"),
    [(name, {"numbers"}) for name in dependencies.NUMBERS_MODULES]
    + [(name, {"picture"}) for name in dependencies.PICTURE_MODULES]
    + [("companion.cli.run", set()), ("companion.site.jupyter_book", set())],
)
def test_machine_decides_what_passes_through_it(parts, machine, module, changed):
    """Numbers pass through some of its files, pictures through others, the rest only moves them about."""
    numbers, picture = parts()
    path = machine.parent / f"{module.replace('.', '/')}.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n# a comment\n", encoding="utf-8")
    assert parts() == (numbers, picture)
    path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = 1\n", encoding="utf-8")
    other_numbers, other_picture = parts()
    assert (numbers != other_numbers) == ("numbers" in changed)
    assert (picture != other_picture) == ("picture" in changed)


def test_reader_is_shown_what_computes_and_draws(book):
    """The chapter's shared functions behind a figure, then its own in their order; no science, no parameters."""
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
    shown = book(source, **shared).shown("book.one.figure", ["book.one.runs.run", "lib.lung.breathe"])
    assert shown == [
        *("book.one.runs.Run", "book.one.runs.run", "book.one.runs._go"),
        *("book.one.figure.numbers", "book.one.figure._table", "book.one.figure.draw"),
    ]


def test_first_chapter_stands_on_attention_and_measures():
    """`gaussian_limit` of this repository: its science, and neither another chapter nor any `__init__`."""
    library = dependencies.Library.at(ROOT, Project(ROOT).settings.science)
    found = set(library.numbers_digests(slicing.modules(Notebook.named(Project(ROOT), "gaussian_limit").code)))
    assert {"lib/attention.py", "lib/measures.py", "chapters/gaussian_limit/figures/laplace_domain.py"} <= found
    chapters = {path.split("/")[1] for path in found if path.startswith("chapters/")}
    assert chapters == {"gaussian_limit"}
    assert [path for path in sorted(found) if path.endswith("__init__.py")] == []


def test_machine_is_a_source_of_all_numbers():
    """A change of how they are written makes all of them stale. And every file that is listed exists."""
    project = Project(ROOT)
    library = dependencies.Library.at(ROOT, project.settings.science)
    for name in project.notebooks():
        found = set(library.numbers_digests(slicing.modules(Notebook.named(project, name).code)))
        assert {f"{module.replace('.', '/')}.py" for module in dependencies.NUMBERS_MODULES} <= found
        assert [path for path in sorted(found) if not (ROOT / path).is_file()] == []
