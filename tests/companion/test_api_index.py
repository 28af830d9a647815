"""Public names are read from sources as they are written, and the figures that name them are found."""

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
# How far a walk may go.
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
    """A book whose page explains what the given files say."""

    def lay_out(**files):
        (tmp_path / "_config.yml").write_text("title: Walks\n")
        (tmp_path / "pyproject.toml").write_text(
            '[tool.companion]\nchapters = "chapters"\nscience = ["walkers"]\napi = ["walkers"]\n'
        )
        given = {
            "walkers/__init__.py": "from walkers.steps import walk as walk\n",
            "chapters/__init__.py": "",
            "book/api.md": "# All\n\n```{companion-api} walkers.steps\n```\n",
            **files,
        }
        for path, text in given.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text).lstrip())
        return ApiIndex(Project(tmp_path))

    return lay_out


def test_signatures_are_those_of_the_source(library):
    """Annotations as they are written, fields as arguments, nothing that begins with an underscore."""
    found = library(**{"walkers/steps.py": STEPS}).entries
    assert {entry.name: entry.signature for entry in found.values()} == {
        "Law": "Law = dict[int, float]",
        "Step": 'class Step(size: Float[np.ndarray, " d"], law: Law, times: int = 1)',
        "Long": 'class Long(size: Float[np.ndarray, " d"], law: Law, times: int = 1, by: float)',
        "walk": "walk(\n    first: Step,\n    /,\n    *more: Step,\n    start: float = 0.0,\n    stop=None,\n"
        "    **others,\n) -> tuple[Step, ...]",
    }
    step = found["walkers.steps.Step"]
    assert [(member.kind, member.signature) for member in step.members] == [
        ("property", "length -> float"),
        ("method", "classmethod of(size)"),
    ]
    assert step.members[0].doc == "Of it."


def test_values_are_shown_that_others_take(library):
    """With the comment above; those that only their file knows are not."""
    taken = library(**{"walkers/steps.py": STEPS, "chapters/far.py": "from walkers.steps import FARTHEST\n"})
    entry = taken.entries["walkers.steps.FARTHEST"]
    assert (entry.signature, entry.doc) == ("FARTHEST = 30.0", "How far a walk may go.")
    assert "walkers.steps.UNSEEN" not in taken.entries


def test_names_lead_where_they_are_explained(library):
    """By the shortest import; words that are arguments are not taken for names."""
    found = library(**{"walkers/steps.py": STEPS})
    walk = found.entries["walkers.steps.walk"]
    assert found.resolve("walkers.walk") == "walkers.steps.walk"
    assert found.importable(walk) == "from walkers import walk"
    assert found.importable(found.entries["walkers.steps.Step"]) == "from walkers.steps import Step"
    assert found.resolve_word("Step", walk) == "walkers.steps.Step"
    assert found.resolve_word("start", walk) is None
    assert found.resolve_word("walk", found.modules["walkers.steps"]) == "walkers.steps.walk"
    # of another library, whatever else has that name
    assert found.resolve_word("ClassVar", walk) is None
    assert found.inner_users["walkers.steps.Step"] == ["walkers.steps.Long", "walkers.steps.walk"]
    assert found.page_of("walkers.steps.walk") == "api"


def test_modules_on_no_page_are_told(library):
    """By their names; what has no public name, or is hidden, is nothing to explain."""
    more = {"walkers/loose.py": "def lose(): ...\n", "walkers/_own.py": "def own(): ...\n", "walkers/empty.py": ""}
    (fault,) = library(**{"walkers/steps.py": STEPS, **more}).faults()
    assert "walkers.loose is documented on no page" in fault
    page = "```{companion-api} walkers.steps walkers.loose\n```\n```{companion-api} walkers.steps\n```\n"
    (fault,) = library(**{"walkers/steps.py": STEPS, **more, "book/api.md": page}).faults()
    assert "walkers.steps is documented more than once" in fault


def test_module_that_is_not_there_is_told(library):
    """With its name."""
    with pytest.raises(UserError, match=r"names a module 'walkers\.stairs', which is not in"):
        library(**{"book/api.md": "```{companion-api} walkers.stairs\n```\n"})


def test_a_book_without_such_pages_has_no_library(library):
    """And nothing is wrong with it, if its table asks for none."""
    found = library(**{"book/api.md": "# Nothing\n"})
    assert found.entries == {}
    assert documented_modules(found.project) == {}


@pytest.fixture(scope="module")
def own() -> ApiIndex:
    return ApiIndex(Project(ROOT))


def test_every_public_name_of_the_library_is_explained_once(own: ApiIndex):
    """On some page, with words of its own where it is no value."""
    assert own.faults() == []
    explained = {name for name in own.exports.values() if name.startswith(("lib.", "companion."))}
    assert explained - own.entries.keys() == set()
    assert [name for name, entry in own.entries.items() if not entry.doc and entry.kind != "data"] == []


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("lib.attention.attend", "measures/one_prompt_converges"),
        ("lib.single_location.activations.softmax", "softmax_advantage/activation_zoo"),
        ("lib.finite_prompt.participation", "exact_finite_prompt/freezing"),
        ("companion.figures.schema.Claim", "measures/the_tilt"),
    ],
)
def test_a_figure_is_listed_under_what_its_code_names(own: ApiIndex, name: str, figure: str):
    """However the name was imported: from its file, from a table of contents, or by way of the package."""
    assert figure in own.users[name]
    assert name in own.used(*figure.split("/"))
