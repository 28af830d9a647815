"""The index of public names reads signatures from sources, and maps each name to the figures that use it."""

import textwrap
from pathlib import Path

import pytest

from companion.analysis.api_index import ApiIndex, documented_modules
from companion.io.errors import UserError
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
STEPS = '''
"""Steps, as in `walk`."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

Law = dict[int, float]
# The largest distance of a walk.
FARTHEST = 30.0
UNSEEN = 1
_HIDDEN = 2


@dataclass(frozen=True)
class Step:
    """One step."""

    size: Float[np.ndarray, " d"]
    law: Law = field(default_factory=dict)
    times: int = 1
    kinds: ClassVar[int] = 2
    _memory: int = 0

    @property
    def length(self) -> float:
        """Of it."""

    @classmethod
    def of(cls, size):
        """From its size."""

    def _secret(self):
        """Nobody's."""


class Long(Step):
    """A long one, of no `Path`."""

    by: float


def walk(first: Step, /, *more: Step, start: float = 0.0, stop=None, **others) -> tuple[
    Step,
    ...,
]:
    """See `Step`, not `start`."""
    return _helper(first)


def _helper(step): ...
'''


@pytest.fixture
def library(tmp_path):
    """Return a function that writes a book with the given files and returns its index."""

    def lay_out(**files):
        contents = {
            "_config.yml": "title: Walks\n",
            "pyproject.toml": '[tool.companion]\nchapters = "chapters"\nscience = ["walkers"]\napi = ["walkers"]\n',
            "walkers/__init__.py": "from walkers.steps import walk as walk\n",
            "walkers/steps.py": STEPS,
            "chapters/__init__.py": "",
            "book/api.md": "# All\n\n```{companion-api} walkers.steps\n```\n",
            **files,
        }
        for path, text in contents.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text).lstrip())
        return ApiIndex(Project(tmp_path))

    return lay_out


def test_signatures_are_copied_from_the_source(library):
    """Annotations are verbatim, dataclass fields become arguments, and names with an underscore are left out."""
    entries = library().entries
    assert {entry.name: entry.signature for entry in entries.values()} == {
        "Law": "Law = dict[int, float]",
        "Step": 'class Step(size: Float[np.ndarray, " d"], law: Law, times: int = 1)',
        "Long": 'class Long(size: Float[np.ndarray, " d"], law: Law, times: int = 1, by: float)',
        "walk": "walk(\n    first: Step,\n    /,\n    *more: Step,\n    start: float = 0.0,\n    stop=None,\n"
        "    **others,\n) -> tuple[Step, ...]",
    }
    step = entries["walkers.steps.Step"]
    assert [(member.kind, member.signature) for member in step.members] == [
        ("property", "length -> float"),
        ("method", "classmethod of(size)"),
    ]
    assert step.members[0].doc == "Of it."


UNUSUAL = '''
"""Steps of other kinds."""

__all__ = ["Far", "leap", "hop"]

import sys
from walkers.steps import Step

FASTEST = 1e-5
SLOWEST = 2_000


class Far(Step):
    """One from another module."""

    wind: Float[Array, "..."] = 1_000


def leap(far: Float[Array, "4"], step: "Step" = 'one') -> Float[Array, "..."]:
    """Leap."""


if sys.platform:

    def hop(*, high=2**18, text="""two
lines"""):
        """Hop."""
'''


def test_definitions_that_griffe_reads_in_its_own_way_are_shown_as_written(library):
    """Numbers and strings keep their spelling, and shapes are no types."""
    users = "from walkers.unusual import FASTEST, SLOWEST\n"
    page = "```{companion-api} walkers.steps walkers.unusual\n```\n"
    index = library(**{"walkers/unusual.py": UNUSUAL, "chapters/far.py": users, "book/api.md": page})
    entries = {entry.name: entry for entry in index.modules["walkers.unusual"].entries}
    assert {name: entry.signature for name, entry in entries.items()} == {
        "FASTEST": "FASTEST = 1e-5",
        "SLOWEST": "SLOWEST = 2_000",
        "Far": 'class Far(\n    size: Float[np.ndarray, " d"],\n    law: Law,\n    times: int = 1,\n'
        '    wind: Float[Array, "..."] = 1_000,\n)',
        "leap": 'leap(far: Float[Array, "4"], step: "Step" = \'one\') -> Float[Array, "..."]',
        "hop": "hop(*, high=2 ** 18, text='two\\nlines')",
    }


def test_a_name_is_found_although_its_module_has_the_same_name(library):
    """As where a package exports the function `steps` of its module `steps`."""
    package = {"walkers/__init__.py": "from .steps import steps\n", "walkers/steps.py": "def steps(): ...\n"}
    index = library(**package)
    assert index.resolve("walkers.steps") == "walkers.steps.steps"
    assert index.importable(index.entries["walkers.steps.steps"]) == "from walkers import steps"


def test_constants_are_listed_if_another_file_uses_them(library):
    """The comment above the constant becomes its description; constants used in their own file only are left out."""
    index = library(**{"chapters/far.py": "from walkers.steps import FARTHEST\n"})
    entry = index.entries["walkers.steps.FARTHEST"]
    assert (entry.signature, entry.doc) == ("FARTHEST = 30.0", "The largest distance of a walk.")
    assert "walkers.steps.UNSEEN" not in index.entries


def test_names_are_resolved_to_their_entries(library):
    """The index gives the shortest import of a name; a word that is an argument is not resolved."""
    index = library()
    walk = index.entries["walkers.steps.walk"]
    assert index.resolve("walkers.walk") == "walkers.steps.walk"
    assert index.importable(walk) == "from walkers import walk"
    assert index.importable(index.entries["walkers.steps.Step"]) == "from walkers.steps import Step"
    assert index.resolve_word("Step", walk) == "walkers.steps.Step"
    assert index.resolve_word("start", walk) is None
    assert index.resolve_word("walk", index.modules["walkers.steps"]) == "walkers.steps.walk"
    # a name imported from another library
    assert index.resolve_word("ClassVar", walk) is None
    assert index.page_of("walkers.steps.walk") == "api"


def test_undocumented_and_twice_documented_modules_are_reported(library):
    """Private modules and modules without a public name need no documentation."""
    more = {"walkers/loose.py": "def lose(): ...\n", "walkers/_own.py": "def own(): ...\n", "walkers/empty.py": ""}
    (fault,) = library(**more).faults()
    assert "walkers.loose is documented on no page" in fault
    page = "```{companion-api} walkers.steps walkers.loose\n```\n```{companion-api} walkers.steps\n```\n"
    (fault,) = library(**more, **{"book/api.md": page}).faults()
    assert "walkers.steps is documented more than once" in fault


def test_a_missing_module_is_reported_by_name(library):
    """The error names the module."""
    with pytest.raises(UserError, match=r"names a module 'walkers\.stairs', which is not in"):
        library(**{"book/api.md": "```{companion-api} walkers.stairs\n```\n"})


@pytest.mark.parametrize("file", ["__init__", "steps"])
def test_a_file_that_is_not_python_is_reported(library, file):
    with pytest.raises(UserError, match=rf"{file}\.py is not Python.*line 1"):
        library(**{f"walkers/{file}.py": "def walk(:\n"})


def test_a_book_without_api_pages_has_an_empty_index(library):
    """Such a book is valid: its index has no entries, and its figures list no names."""
    index = library(**{"book/api.md": "# Nothing\n"})
    assert index.entries == {}
    assert documented_modules(index.project) == {}


@pytest.fixture(scope="module")
def repository_index() -> ApiIndex:
    return ApiIndex(Project(ROOT))


def test_every_public_name_is_documented_once(repository_index: ApiIndex):
    """Every public name of `lib` and `companion` is on one page, and has a description unless it is a constant."""
    assert repository_index.faults() == []
    exported = {name for name in repository_index.exports.values() if name.startswith(("lib.", "companion."))}
    assert exported - repository_index.entries.keys() == set()
    assert [name for name, entry in repository_index.entries.items() if not entry.doc and entry.kind != "data"] == []


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("lib.attention.attend", "measures/one_prompt_converges"),
        ("lib.single_location.activations.softmax", "softmax_advantage/activation_zoo"),
        ("lib.finite_prompt.participation", "exact_finite_prompt/freezing"),
        ("companion.figures.schema.Column", "measures/the_tilt"),
    ],
)
def test_a_figure_is_listed_under_the_names_that_it_uses(repository_index: ApiIndex, name: str, figure: str):
    """This holds for names imported from their module, from an `__init__`, and as attributes of the package."""
    assert figure in repository_index.users[name]
    assert name in repository_index.used[figure]
