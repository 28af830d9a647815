"""Index of the public names of a library: signature as written, docstring, and the figures that use the name.

griffe reads the sources without importing them: the site can be built where the library's requirements are not
installed. Public are functions and classes without a leading underscore, their public members, type aliases, and values
that an `__init__.py` exports or other code imports.
"""

import ast
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from types import UnionType
from typing import Any, Literal

import griffe

from companion.analysis import dependencies
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project, visible

Kind = Literal["function", "class", "method", "property", "attribute", "data"]

DIRECTIVE = re.compile(r"^(`{3,}|:{3,})\{companion-api\}([^\n]*)$", re.MULTILINE)
# A longer signature has one line per argument; a value of more than twice this length is not shown.
WIDTH = 84
# Defaults of fields that a signature leaves out, because they only configure the dataclass.
FIELD_FUNCTIONS = ("eqx.field", "field(", "Field(", "dataclasses.field")


@dataclass(frozen=True)
class Entry:
    """A public name with its signature, its docstring, its lines in the file and its public members."""

    module: str
    name: str
    kind: Kind
    signature: str
    doc: str
    first: int
    last: int
    members: tuple["Entry", ...] = ()

    @property
    def full(self) -> str:
        """The dotted name in the module that defines it."""
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Module:
    """One module of a library: its docstring, and its public names in the order of the file."""

    name: str
    path: Path
    doc: str
    entries: tuple[Entry, ...]


class ApiIndex:
    """The public names of the modules that a book documents, and the figures that use them."""

    def __init__(self, project: Project):
        self.project = project
        self.pages = documented_modules(project)
        self._documented = [name for names in self.pages.values() for name in names]
        self._sources = load(project, [*self._documented, *project.settings.api])
        self.modules = {name: read_module(self._sources[name], self._imported) for name in self._documented}

    @cached_property
    def exports(self) -> dict[str, str]:
        """The names that packages of documented modules import, with their full names."""
        parents = {name[: dot.start()] for name in self._documented for dot in re.finditer(r"\.|$", name)}
        packages = [self._sources[name] for name in sorted(parents) if self._sources[name].is_init_module]
        return {f"{package.path}.{name}": origin for package in packages for name, origin in package.imports.items()}

    @cached_property
    def _imported(self) -> set[str]:
        """The full names that a package exports or a file of the book imports."""
        science = self.project.settings.science
        modules = _modules(self._sources[package] for package in science if package in self._sources)
        imports = [module.imports for module in modules]
        for package in science:
            if package not in self._sources:
                trees = map(dependencies.syntax_tree, visible(self.project.root / package, "**/*.py"))
                imports += [slicing.imports(tree.body) for tree in trees]
        return {*self.exports.values(), *(origin for names in imports for origin in names.values())}

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The public names of all modules, without members, by full name."""
        return {entry.full: entry for module in self.modules.values() for entry in module.entries}

    @cached_property
    def _by_name(self) -> dict[str, str | None]:
        """The full name of each entry by its last part, None if several entries share it."""
        full_names: dict[str, str | None] = {}
        for entry in self.entries.values():
            full_names[entry.name] = None if entry.name in full_names else entry.full
        return full_names

    def resolve(self, name: str) -> str | None:
        """Return the full name behind an exported name such as `lib.attend`, or None if no page documents it."""
        while (origin := self.exports.get(name)) and origin != name:
            name = origin
        return name if name in self.entries else None

    def resolve_word(self, word: str, context: Module | Entry) -> str | None:
        """Return the full name that a word in a docstring or a signature refers to, or None.

        The word refers to a name in the scope of the module. Otherwise, if it starts with a capital letter or contains
        a dot, it refers to the only entry with this name. An argument of the function itself refers to no entry.

        Args:
          word: a word in backticks or in a signature.
          context: the module or entry in whose docstring or signature the word occurs.
        """
        module, own = (context.name, "") if isinstance(context, Module) else (context.module, context.full)
        if isinstance(context, Entry) and re.search(rf"(?:\(|, |  ){re.escape(word)}[:=,)]", context.signature):
            return None
        if word in self._sources[module].members:  # or imported from another library, which `resolve` does not know
            full = self.resolve(self._sources[module].resolve(word))
        elif word[:1].isupper() or "." in word:
            full = self.resolve(word) or self._by_name.get(word.rpartition(".")[2])
        else:
            full = None
        return None if full == own else full

    def page_of(self, full: str) -> str:
        """Return the page that documents the entry `full`."""
        return self._pages[self.entries[full].module]

    @cached_property
    def _pages(self) -> dict[str, str]:
        return {name: page for page, names in self.pages.items() for name in names}

    def importable(self, entry: Entry) -> str:
        """Return the shortest statement that imports an entry."""
        packages = [name.rpartition(".")[0] for name, origin in self.exports.items() if origin == entry.full]
        return f"from {min([*packages, entry.module], key=len)} import {entry.name}"

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """The figures, `notebook/figure`, that use each entry, in the order of the book."""
        figures: dict[str, list[str]] = {}
        for target, names in self.used.items():
            for full in names:
                figures.setdefault(full, []).append(target)
        return figures

    @cached_property
    def figures(self) -> list[str]:
        """All figures of the book, as `notebook/figure`."""
        names = self.project.notebooks()
        return [f"{name}/{figure}" for name in names for figure in Notebook.named(self.project, name).figures]

    @cached_property
    def used(self) -> dict[str, list[str]]:
        """The entries that the code of each figure uses, sorted by full name.

        The code is the notebook's steps, the functions of the chapter behind them, and the figure module.
        """
        settings = self.project.settings
        library = dependencies.Library.at(self.project.root, settings.science)
        entries: dict[str, list[str]] = {}
        for target in self.figures:
            notebook, figure = target.split("/")
            cells = Notebook.named(self.project, notebook).code
            functions = slicing.steps_of(cells, figure, [*settings.science, dependencies.MACHINE.name]).functions
            names = library.named(self.project.figure_module(notebook, figure), functions)
            entries[target] = sorted({full for name in names if (full := self.resolve(name))})
        return entries

    def faults(self) -> list[str]:
        """Return one sentence per module, of the packages in `api`, that is not documented on exactly one page."""
        required = [
            module for package in self.project.settings.api for module in public_modules(self._sources[package])
        ]
        missing = [
            f"The module {module.path} is documented on no page. Name it in a `{{companion-api}}`, or start its name "
            "with an underscore."
            for module in required
            if module.path not in self._documented and read_module(module).entries
        ]
        repeated = sorted({name for name in self._documented if self._documented.count(name) > 1})
        return missing + [f"The module {name} is documented more than once. Keep one place." for name in repeated]


def documented_modules(project: Project) -> dict[str, list[str]]:
    """Return the modules that each page with a `{companion-api}` documents, by page."""
    modules = {
        page.stem: [name for _, names in DIRECTIVE.findall(page.read_text(encoding="utf-8")) for name in names.split()]
        for page in visible(project.book, "*.md")
    }
    return {page: names for page, names in modules.items() if names}


def load(project: Project, names: Iterable[str]) -> griffe.ModulesCollection:
    """Return the packages of the modules `names`, with all their modules.

    Raises:
      UserError: if there is no such module in the book or in this package, or if it is not Python.
    """
    places = [project.root, dependencies.MACHINE.parent]
    extensions = griffe.load_extensions(_Spelling())
    loader = griffe.GriffeLoader(search_paths=places, extensions=extensions, allow_inspection=False)
    for name in names:
        package = name.partition(".")[0]
        try:
            if package not in loader.modules_collection:
                loader.load(package, try_relative_path=False)
            loader.modules_collection[name]
        except (ModuleNotFoundError, KeyError, griffe.LoadingError) as error:
            for path in (path for place in places for path in visible(place / package, "**/*.py")):
                dependencies.syntax_tree(path)  # raises an error that tells where the file is not Python
            raise UserError(f"`{{companion-api}}` names a module {name!r}, which is not in {project.root}.") from error
    return loader.modules_collection


class _Spelling(griffe.Extension):
    """Keep constants as written: griffe shows `1_000` as `1000` and the shape `"..."` as an ellipsis."""

    def on_module_node(self, *, node: Any, agent: Any, **_: Any) -> None:
        """Change the tree of a module before griffe reads it, except docstrings and f-strings."""
        lines = [line.encode() for line in agent.code.split("\n")]
        outer = [part for part in ast.walk(node) if isinstance(part, ast.Expr | ast.JoinedStr)]
        excluded = {part for whole in outer for part in ast.walk(whole)}
        for leaf in ast.walk(node):
            if isinstance(leaf, ast.Constant) and leaf not in excluded and leaf.lineno == leaf.end_lineno:
                text = lines[leaf.lineno - 1][leaf.col_offset : leaf.end_col_offset].decode()
                leaf.value = _Spelled(text)  # pyright: ignore[reportAttributeAccessIssue]


@dataclass(frozen=True)
class _Spelled:
    text: str

    def __repr__(self) -> str:
        return self.text


def public_modules(package: griffe.Module) -> list[griffe.Module]:
    """Return the public modules of a package, without `__init__` modules; for a module, the module itself."""
    return [
        module
        for module in _modules([package])
        if not module.is_init_module and "._" not in module.path.removeprefix(package.path)
    ]


def _modules(roots: Iterable[griffe.Object | griffe.Alias]) -> Iterator[griffe.Module]:
    for root in roots:
        if isinstance(root, griffe.Module):
            yield root
            yield from _modules(root.members.values())


def _public(module: griffe.Module | griffe.Class, kinds: type | UnionType) -> Iterator[Any]:
    return (item for name, item in module.members.items() if isinstance(item, kinds) and not name.startswith("_"))


def read_module(module: griffe.Module, imported: Container[str] = ()) -> Module:
    """Return a module with its public names.

    Args:
      module: the module as griffe reads it.
      imported: the full names of the values, not named like a type, that are public because other code imports them.
    """
    entries: list[Entry] = []
    for item in _public(module, griffe.Object):
        if isinstance(item, griffe.Class):
            members = [_member(member) for member in _public(item, griffe.Function | griffe.Attribute)]
            entries.append(_entry(item, "class", f"class {_of_class(item)}", [entry for entry in members if entry]))
        elif isinstance(item, griffe.Function):
            entries.append(_entry(item, "function", _wrapped(item.signature())))
        elif isinstance(item, griffe.Attribute | griffe.TypeAlias) and item.value is not None:
            is_type = item.name[0].isupper() and not item.name.isupper()
            if is_type or item.path in imported:
                value = str(item.value)
                entries.append(_entry(item, "data", f"{item.name} = {value if len(value) <= 2 * WIDTH else '…'}"))
    return Module(module.path, Path(str(module.filepath)), _doc(module), tuple(entries))


def _member(item: griffe.Function | griffe.Attribute) -> Entry | None:
    if isinstance(item, griffe.Function):
        prefix = next((f"{label} " for label in ("classmethod", "staticmethod") if label in item.labels), "")
        return _entry(item, "method", prefix + _wrapped(item.signature()))
    if "property" in item.labels:
        return _entry(item, "property", item.name + (f" -> {item.annotation}" if item.annotation else ""))
    return None


def _entry(item: griffe.Object, kind: Kind, signature: str, members: Iterable[Entry] = ()) -> Entry:
    name = item.path.removeprefix(f"{item.module.path}.")
    doc = _comment_above(item) if kind == "data" else _doc(item)
    return Entry(item.module.path, name, kind, signature, doc, item.lineno or 0, item.endlineno or 0, tuple(members))


def _doc(item: griffe.Object) -> str:
    return item.docstring.value if item.docstring else ""


def _comment_above(item: griffe.Object) -> str:
    lines = reversed(item.module.lines[: (item.lineno or 1) - 1])
    comment = [line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), lines)]
    return "\n".join(reversed(comment))


def _of_class(item: griffe.Class) -> str:
    """Return a class with the arguments of its `__init__`, or else with its fields, those of its bases first."""
    init = item.members.get("__init__")
    if isinstance(init, griffe.Function) and init.lineno:  # griffe adds the `__init__` of a dataclass, without a line
        return _wrapped(init.signature(return_type=False, name=item.name))
    classes = [*reversed(item.mro()), item]
    fields = {field.name: field for of in classes for field in _public(of, griffe.Attribute) if _is_field(field)}
    made = griffe.Function(item.name, parameters=griffe.Parameters(*map(_parameter, fields.values())))
    return _wrapped(made.signature()) if fields else item.name


def _is_field(item: griffe.Attribute) -> bool:
    """Return whether a class declares an attribute of its instances; griffe also lists those that `__init__` sets."""
    declared = ("class-attribute" in item.labels) == (item.value is not None)
    return declared and "instance-attribute" in item.labels and item.annotation is not None


def _parameter(field: griffe.Attribute) -> griffe.Parameter:
    default = None if str(field.value).startswith(FIELD_FUNCTIONS) else field.value
    kind = griffe.ParameterKind.positional_or_keyword
    return griffe.Parameter(field.name, annotation=field.annotation, kind=kind, default=default)


def _wrapped(signature: str) -> str:
    """Return a signature with one line per argument if it is longer than `WIDTH`."""
    if len(signature) <= WIDTH:
        return signature
    name, _, rest = signature.partition("(")
    arguments, depth = [""], 0
    while depth >= 0:
        character, rest = rest[0], rest[1:]
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            arguments.append("")
        elif depth >= 0:
            arguments[-1] += character
    return "\n".join([f"{name}(", *(f"    {argument.strip()}," for argument in arguments), f"){rest}"])
