"""The sources of numbers and pictures are found by following imports; edits that cannot change a result are ignored."""

import io
import shutil
import textwrap
import tokenize
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


@pytest.fixture
def files(book):
    """Return a function that lists the files which a figure module with the given source depends on."""
    return lambda source, **others: (
        set(book(source, **others).files(["book.one.figures.figure"])) - {"book/one/figures/figure.py"}
    )


@pytest.mark.parametrize("source", ["from lib import beat\n", "import lib.heart\n", "from lib.heart import beat\n"])
def test_reexport_leads_only_to_the_defining_module(files, source):
    """Every import of `beat` leads to its module and the imports of that, but not to `lung` or to `__init__`."""
    assert files(source) == {"lib/heart.py", "lib/deep/vein.py", "lib/shallow.py"}


def test_relative_imports_are_followed(files):
    """`from ..shallow import skin` inside lib/deep is lib/shallow.py."""
    assert files("from lib.deep import vein\n") == {"lib/deep/vein.py", "lib/shallow.py"}


def test_name_defined_in_an_init_leads_to_it(files):
    """An `__init__` that defines something, besides re-exports, counts as source."""
    assert files("from lib.deep.lonely import x\n") == {"lib/deep/lonely.py", "lib/deep/__init__.py"}


def test_imports_inside_functions_are_followed(files):
    """An import inside a function body counts as well."""
    init = "from lib.lung import breathe as renamed\n"
    assert files("import lib.late\n", **{"lib/__init__.py": init}) == {"lib/late.py", "lib/lung.py"}


def test_renamed_reexport_is_found(files):
    """`from lib.lung import a as b` in an `__init__` makes `b` lead to `lung`."""
    assert files("from lib import b\n", **{"lib/__init__.py": "from lib.lung import a as b\n"}) == {"lib/lung.py"}


@pytest.mark.parametrize("source", ["import lib\n", "from lib import organs as o\n", "import lib.organs\n"])
def test_package_imported_as_a_whole_leads_to_all_its_imports(files, source):
    """Any attribute of the package may be used, so all of its imports count."""
    whole = {"lib/organs/__init__.py": "from lib.lung import x as x\nfrom lib.heart import beat as beat\n"}
    assert {"lib/lung.py", "lib/heart.py", "lib/deep/vein.py"} <= files(source, **whole)


def test_imports_in_a_circle_end(files):
    """Two modules that import each other are both listed, once."""
    circle = {"lib/a.py": "from lib.b import x\n", "lib/b.py": "from lib.a import y\n"}
    assert files("import lib.a\n", **circle) == {"lib/a.py", "lib/b.py"}


def test_installed_packages_are_not_followed(files):
    """Their versions are pinned by the lock file."""
    assert files("import numpy\nfrom scipy.stats import norm\n") == set()


def test_companion_modules_are_no_sources_of_a_figure(files):
    """Imports do not lead to them; the modules that process numbers or pictures are added separately."""
    assert files("import lib.lung\nfrom companion import Numbers\nfrom companion.figures.style import ink\n") == {
        "lib/lung.py"
    }


def test_file_with_a_syntax_error_is_named(files):
    """The user gets a message instead of a traceback."""
    with pytest.raises(UserError, match=r"lung\.py"):
        files("import lib.lung\n", **{"lib/lung.py": "def breathe(:\n"})


def test_edited_file_is_read_again(files):
    """A second query in the same process uses the new source."""
    assert files("import lib.lung\n") == {"lib/lung.py"}
    assert files("import lib.shallow, lib.lung\n") == {"lib/lung.py", "lib/shallow.py"}


def test_missing_package_is_named(tmp_path):
    """This holds in a checkout and for installed packages."""
    (tmp_path / "lib").mkdir()
    with pytest.raises(UserError, match=r"\[tool\.companion\].*'limb'"):
        dependencies.Library.at(tmp_path, ["lib", "limb"])
    with pytest.raises(UserError, match=r"'limb_of_nobody', which is not installed here"):
        dependencies.Library.installed(["limb_of_nobody"])


def test_missing_figure_is_named(book):
    """The user gets a message instead of a traceback."""
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
def test_edits_of_comments_docstrings_and_blank_lines_are_ignored(edit):
    """The normalised code stays the same."""
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
def test_edits_that_can_change_a_result_count(edit):
    """The normalised code changes."""
    code = textwrap.dedent(CODE)
    assert dependencies.plain_code(edit(code)) != dependencies.plain_code(code)


@pytest.mark.parametrize(
    ("code", "edited"),
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
def test_edits_of_strings_count(code, edited):
    """Strings may contain comment signs, blank lines, multi-byte letters and form feeds."""
    assert dependencies.plain_code(code) != dependencies.plain_code(edited)


def test_comments_next_to_strings_are_ignored():
    """This holds between the parts of a string, and after a string that contains `#`."""
    code = "x = (  # {0}\n    'a'  # {0}\n    'b # c'  # {0}\n)\ny = '#'  # {0}\n"
    assert dependencies.plain_code(code.format("why")) == dependencies.plain_code(code.format("how"))


def words(code):
    """Return the tokens of a program in order, without comments and docstrings."""
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING, tokenize.NEWLINE)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type in kinds]
    strings = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        ends = [neighbour is None or neighbour.type == tokenize.NEWLINE for neighbour in (before, after)]
        if not (token.type == tokenize.STRING and all(ends)):
            strings.append(token.string)
    return [string for string in strings if string.strip()]


@pytest.mark.parametrize("package", ["companion", "lib", "chapters"])
def test_normalised_code_keeps_all_tokens(package):
    """For every file of this repository, only comments and docstrings are removed."""
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


def test_both_assignments_to_a_name_count(digests):
    """An edit of the first assignment changes the digest, although a second one follows."""
    twice = ("RATE = 2", "RATE = 2\nRATE = RATE * 2")
    numbers, _ = digests(*twice)
    edited_numbers, _ = digests(twice[0], twice[1].replace("RATE = 2", "RATE = 3", 1))
    assert numbers != edited_numbers


def test_public_function_used_by_draw_counts_for_numbers_too(digests):
    """A notebook may call any public function as a step."""
    public = ("def draw(table):", "def grid(n):\n    return n\n\ndef draw(table):\n    grid(3)")
    (numbers, picture), (new_numbers, new_picture) = (
        digests(*public),
        digests(public[0], public[1].replace("n\n", "-n\n")),
    )
    assert numbers != new_numbers
    assert picture != new_picture


def test_each_part_follows_only_its_own_imports(digests):
    """A drawing module is no source of numbers, and a module of the science no source of pictures."""
    numbers, picture = digests()
    assert {"lib/heart.py", "lib/deep/vein.py", "book/one/figures/figure.py"} <= set(numbers)
    assert not {"book/one/marks.py", "lib/lung.py"} & set(numbers)  # nothing uses `breathe`
    assert digests(**{"lib/heart.py": "x = 2\n"})[1] == picture
    assert digests(**{"lib/heart.py": "x = 2\n"})[0] != numbers
    assert digests(**{"book/one/marks.py": "def dot(*what): 1\n"})[1] != picture
    assert digests(**{"book/one/marks.py": "def dot(*what): 1\n"})[0] == numbers


def test_shared_module_counts_as_a_whole(book):
    """A module without `numbers` is no figure, even if it defines `draw`."""
    shared = {"book/one/runs.py": "x = 1\ndef draw(): ...\n"}
    source = "from book.one.runs import x\ndef numbers(): return x\ndef draw(): ...\n"
    before = book(source, **shared).numbers_digests(["book.one.figures.figure"])
    after = book(source, **{"book/one/runs.py": "x = 1\ndef draw(): 1\n"}).numbers_digests(["book.one.figures.figure"])
    assert before != after


@pytest.fixture
def tool_copy(tmp_path_factory, monkeypatch):
    """A writable copy of `companion`, which replaces the running one in the digests."""
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
def test_companion_modules_affect_only_what_they_process(digests, tool_copy, module, changed):
    """Some modules process numbers, some pictures; edits of all others leave both digests unchanged."""
    numbers, picture = digests()
    path = tool_copy.parent / f"{module.replace('.', '/')}.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n# a comment\n", encoding="utf-8")
    assert digests() == (numbers, picture)
    path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = 1\n", encoding="utf-8")
    new_numbers, new_picture = digests()
    assert (numbers != new_numbers) == ("numbers" in changed)
    assert (picture != new_picture) == ("picture" in changed)


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


def test_companion_is_a_source_of_all_numbers():
    """A change to the modules that write numbers makes all numbers stale; every listed file exists."""
    project = Project(ROOT)
    library = dependencies.Library.at(ROOT, project.settings.science)
    for name in project.notebooks():
        files = set(library.numbers_digests(slicing.modules(Notebook.named(project, name).code)))
        assert {f"{module.replace('.', '/')}.py" for module in dependencies.NUMBERS_MODULES} <= files
        assert [
            path
            for path in sorted(files)
            if not any((folder / path).is_file() for folder in (ROOT, ROOT / "companion/src"))
        ] == []


def test_a_changed_font_changes_the_digest_of_a_picture(digests, tmp_path, monkeypatch):
    numbers, picture = digests()
    (tmp_path / "text.ttf").write_bytes(b"other letters")
    monkeypatch.setattr(dependencies, "FONTS", tmp_path)
    changed_numbers, changed_picture = digests()
    assert changed_numbers == numbers
    assert changed_picture != picture


def test_a_kernel_may_read_the_fonts_of_pictures():
    fonts = dependencies.FONTS.relative_to(ROOT).as_posix()
    assert cache_keys.may_be_read(Project(ROOT), "measures", f"{fonts}/book-serif-regular.ttf")
