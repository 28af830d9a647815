"""Every public name of `lib` documents its arguments and its result, with types; read from the sources.

Public is what has no underscore: functions and classes, and the methods and properties of public classes. A method that
overrides one of a base class in `lib` may leave its arguments and its result to the docstring of the base class.
"""

import ast
import inspect
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Modules, or folders of modules, whose docstrings do not have this form yet.
NOT_YET: tuple[str, ...] = ()


@dataclass(frozen=True)
class Public:
    """A public function, method, property or class with its docstring and, for a method, the class that has it."""

    name: str
    node: ast.FunctionDef | ast.ClassDef
    owner: ast.ClassDef | None = None

    @property
    def doc(self) -> str:
        return inspect.cleandoc(ast.get_docstring(self.node) or "")

    @property
    def is_property(self) -> bool:
        return isinstance(self.node, ast.FunctionDef) and bool(_decorators(self.node) & {"property", "cached_property"})

    @property
    def overridden(self) -> "Public | None":
        """The method of the same name of the nearest base class in `lib`."""
        return None if self.owner is None else _inherited(self.owner, self.node.name)

    def section(self, *titles: str) -> set[str]:
        """Names that the sections with these titles explain, those of the overridden method included."""
        return _explained(self.doc, titles) | (self.overridden.section(*titles) if self.overridden else set())


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__call__"


def _functions(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {inner.name: inner for inner in node.body if isinstance(inner, ast.FunctionDef)}


def _fields(node: ast.ClassDef) -> list[str]:
    """Names of the fields of a class."""
    return [inner.target.id for inner in node.body if isinstance(inner, ast.AnnAssign)]


def _parameters(node: ast.FunctionDef, *, bound: bool) -> list[ast.arg]:
    arguments = node.args
    starred = [each for each in (arguments.vararg, arguments.kwarg) if each]
    positional = [*arguments.posonlyargs, *arguments.args]
    return [*positional[bound:], *arguments.kwonlyargs, *starred]


def _explained(doc: str, titles: tuple[str, ...]) -> set[str]:
    names, inside = set(), False
    for line in doc.split("\n"):
        if line and not line.startswith(" "):
            inside = line.rstrip(":") in titles and line.endswith(":")
        elif inside and (match := re.match(r"  (\*{0,2}\w+(?:, \*{0,2}\w+)*): \S", line)):
            names |= {name.strip("* ") for name in match[1].split(",")}
    return names


def _modules() -> dict[str, ast.Module]:
    paths = [path for path in sorted((ROOT / "lib").rglob("*.py")) if path.name != "__init__.py"]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text()) for path in paths}


MODULES = _modules()
CLASSES = {
    node.name: (module, node)
    for module, tree in MODULES.items()
    for node in tree.body
    if isinstance(node, ast.ClassDef)
}


def _inherited(owner: ast.ClassDef, method: str) -> Public | None:
    for base in owner.bases:
        if isinstance(base, ast.Name) and base.id in CLASSES:
            module, node = CLASSES[base.id]
            if method in _functions(node):
                return Public(f"{module}.{base.id}.{method}", _functions(node)[method], node)
            if further := _inherited(node, method):
                return further
    return None


def _publics(module: str) -> list[Public]:
    publics = []
    for node in MODULES[module].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and _is_public(node.name):
            publics.append(Public(f"{module}.{node.name}", node))
            if isinstance(node, ast.ClassDef):
                methods = [inner for name, inner in _functions(node).items() if _is_public(name)]
                publics += [Public(f"{module}.{node.name}.{inner.name}", inner, node) for inner in methods]
    return publics


def _converted(module: str) -> bool:
    is_private = any(part.startswith("_") for part in module.split("."))
    return not is_private and not any(f"{module}.".startswith(f"{name}.") for name in NOT_YET)


PUBLICS = [public for module in MODULES if _converted(module) for public in _publics(module)]
FUNCTIONS = [public for public in PUBLICS if isinstance(public.node, ast.FunctionDef)]
CLASS_LIST = [public for public in PUBLICS if isinstance(public.node, ast.ClassDef)]


def _is_bound(public: Public) -> bool:
    return public.owner is not None and "staticmethod" not in _decorators(public.node)


def _names(publics) -> list[str]:
    return [public.name for public in publics]


def test_docstrings_begin_with_a_sentence():
    firsts = {public.name: public.doc.split("\n\n")[0] for public in PUBLICS}
    assert [name for name, first in firsts.items() if len(first.split()) < 3 or first[-1] not in ".:"] == []


def _unexplained(public) -> set[str]:
    """Arguments that the docstring does not explain, and explained ones that do not exist."""
    names = {argument.arg for argument in _parameters(public.node, bound=_is_bound(public))}
    return (names - public.section("Args")) | (_explained(public.doc, ("Args",)) - names)


def test_arguments_are_explained_and_those_explained_exist():
    assert {public.name: names for public in FUNCTIONS if (names := _unexplained(public))} == {}


def _is_annotated(public) -> bool:
    arguments = _parameters(public.node, bound=_is_bound(public))
    return public.node.returns is not None and all(argument.annotation is not None for argument in arguments)


def test_types_are_annotated():
    assert _names(public for public in FUNCTIONS if not _is_annotated(public)) == []


def _explains_its_result(public) -> bool:
    docs = [public.doc, *([public.overridden.doc] if public.overridden else [])]
    nothing = public.node.returns is not None and ast.unparse(public.node.returns) == "None"
    return public.is_property or nothing or any(re.search(r"^(Returns|Yields):\n", doc, re.M) for doc in docs)


def test_results_are_explained():
    """A property's first line does it; a function that returns None has nothing to explain."""
    assert _names(public for public in FUNCTIONS if not _explains_its_result(public)) == []


def _explains_its_fields(public) -> bool:
    init = _functions(public.node).get("__init__")
    arguments = {argument.arg for argument in _parameters(init, bound=True)} if init else set()
    fields = {name for name in _fields(public.node) if _is_public(name)}
    explained = public.section("Args", "Attributes")
    inherited = {name for base in public.node.bases if isinstance(base, ast.Name) and base.id in CLASSES
                 for name in _fields(CLASSES[base.id][1])}  # fmt: skip
    return (arguments | fields) <= explained <= (arguments | fields | inherited)


def test_fields_and_constructor_arguments_are_explained():
    assert _names(public for public in CLASS_LIST if not _explains_its_fields(public)) == []


def _names_its_transformations(public) -> bool:
    returns = ast.unparse(public.node.returns) if public.node.returns else ""
    docs = public.doc + (public.overridden.doc if public.overridden else "")
    return not re.search(r"\bArray\b", returns) or bool(re.search(r"^(.*\. )?Transformations: ", docs, re.M))


def test_functions_of_jax_arrays_name_their_transformations():
    """Required of functions and methods that return JAX arrays; `test_transformations.py` tries what they list."""
    assert _names(each for each in FUNCTIONS if not each.is_property and not _names_its_transformations(each)) == []


@pytest.mark.parametrize("page", ["lib_attention", "lib_icl", "lib_single_location"])
def test_the_example_at_the_top_of_a_reference_runs(page, float64, capsys):
    """Without its line that sets float64 for the rest of the process."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / f"book/{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(code.replace('jax.config.update("jax_enable_x64", True)\n', ""), {})
    printed = capsys.readouterr().out
    assert re.search(r"\d", printed)
    assert "nan" not in printed
