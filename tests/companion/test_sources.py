"""The files a notebook's figures come from are found by reading imports, through re-exporting `__init__`s."""

from pathlib import Path

import pytest

from companion import sources
from companion.house import House
from companion.mistakes import Mistake

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
    "lib/experiments/__init__.py": "from lib.experiments.one import one as one\n",
    "lib/plotting/__init__.py": "",
    "companion/publishing.py": "import lib\n",
}


@pytest.fixture
def package(tmp_path):
    """Lay out the tree with an experiment `one` of the given source; the function that lists its files."""

    def science_files(source, **others):
        tree = {**TREE, "lib/experiments/one.py": source, **others}
        for path, text in tree.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        return set(sources.science_files(tmp_path, "one")) - {"lib/experiments/one.py"}

    return science_files


@pytest.mark.parametrize("source", ["from lib import beat\n", "import lib.heart\n", "from lib.heart import beat\n"])
def test_reexport_leads_to_the_module_alone(package, source):
    """Every way to import `beat` leads to its file and what that imports: not to `lung`, not to `__init__`."""
    assert package(source) == {"lib/heart.py", "lib/deep/vein.py", "lib/shallow.py"}


def test_relative_imports_are_followed(package):
    """`from ..shallow import skin` inside lib/deep is lib/shallow.py."""
    assert package("from lib.deep import vein\n") == {"lib/deep/vein.py", "lib/shallow.py"}


def test_name_defined_in_an_init_leads_to_it(package):
    """An `__init__` that is more than a table of contents counts as source."""
    assert package("from lib.deep.lonely import x\n") == {"lib/deep/lonely.py", "lib/deep/__init__.py"}


def test_imports_inside_functions_are_followed(package):
    """A late import is an import."""
    init = "from lib.lung import breathe as renamed\n"
    assert package("import lib.late\n", **{"lib/__init__.py": init}) == {"lib/late.py", "lib/lung.py"}


def test_renamed_reexport_is_found(package):
    """`import a as b` is found under `b`."""
    assert package("from lib import b\n", **{"lib/__init__.py": "from lib.lung import a as b\n"}) == {"lib/lung.py"}


def test_imports_in_a_circle_end(package):
    """Two modules that import each other are both listed, once."""
    circle = {"lib/a.py": "from lib.b import x\n", "lib/b.py": "from lib.a import y\n"}
    assert package("import lib.a\n", **circle) == {"lib/a.py", "lib/b.py"}


def test_plot_is_science_and_publishing_is_not(package, tmp_path):
    """The plotting module decides what a figure says; the machine around it only how it is written."""
    package("x = 1\n", **{"lib/plotting/one.py": "import lib.lung\n"})
    science = {"lib/experiments/one.py", "lib/plotting/one.py", "lib/lung.py"}
    assert set(sources.science_files(tmp_path, "one")) == science
    assert set(sources.source_files(tmp_path, "one")) == science | {"companion/publishing.py"}


def test_file_that_is_not_python_is_named(package):
    """A typing slip in a module is told in a sentence, not in a traceback."""
    with pytest.raises(Mistake, match=r"lung\.py"):
        package("import lib.lung\n", **{"lib/lung.py": "def breathe(:\n"})


def test_edited_file_is_read_again(package, tmp_path):
    """Within one process, too."""
    assert package("import lib.lung\n") == {"lib/lung.py"}
    assert package("import lib.shallow, lib.lung\n") == {"lib/lung.py", "lib/shallow.py"}


def test_first_chapter_stands_on_attention_and_measures():
    """`gaussian_limit` of this repository: its science, and neither the machine nor another notebook's science."""
    science = sources.science_files(ROOT, "gaussian_limit")
    needed = {"experiments/gaussian_limit", "plotting/gaussian_limit", "attention", "measures", "plotting/style"}
    assert {f"lib/{module}.py" for module in needed} <= set(science)
    assert not [path for path in science if path.startswith("companion/") or path.endswith("__init__.py")]


def test_publishing_is_a_source_of_every_notebook():
    """A change of how figures are written makes all of them stale."""
    machine = {"companion/publishing.py", "companion/numbers.py", "companion/figure_set.py", "companion/sources.py"}
    for name in House(ROOT).notebooks():
        assert machine <= set(sources.source_files(ROOT, name))


def test_every_listed_file_exists():
    """Of every notebook of this repository."""
    listed = {path for name in House(ROOT).notebooks() for path in sources.source_files(ROOT, name)}
    assert listed
    assert [path for path in sorted(listed) if not (ROOT / path).is_file()] == []
