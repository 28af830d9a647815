"""What a library offers, read from its sources: every public name with its signature as written, docstring and users.

Nothing is imported, so that a site is built where the library's own needs are not met, and annotations stay as people
wrote them. Public is what has no underscore: functions and classes, their public members, aliases of types, and those
values that a table of contents (`__init__.py`) offers or other code takes.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from companion.analysis import dependencies
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project

Kind = Literal["function", "class", "method", "property", "attribute", "data"]

DIRECTIVE = re.compile(r"^(`{3,}|:{3,})\{companion-api\}([^\n]*)$", re.MULTILINE)
# A longer signature has one line per argument.
WIDTH = 84
# Of fields, defaults that only say how a class is made.
MAKING = ("eqx.field", "field(", "Field(", "dataclasses.field")


@dataclass(frozen=True)
class Entry:
    """A public name. `signature` is what a reader must type; `mentions` are names of other code in its definition."""

    module: str
    name: str
    kind: Kind
    signature: str
    doc: str
    first: int
    last: int
    members: tuple["Entry", ...] = ()
    mentions: frozenset[str] = frozenset()

    @property
    def full(self) -> str:
        """The dotted name by which it can always be imported."""
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Module:
    """One file of a library: what it says of itself, and its public names in the order of the file."""

    name: str
    path: Path
    doc: str
    entries: tuple[Entry, ...]
    # what names of the file mean, as dotted names
    scope: Mapping[str, str] = field(default_factory=dict)


class Library:
    """The modules that a book explains, and where the book uses what they offer."""

    def __init__(self, project: Project):
        self.project = project
        self.pages = listed(project)
        self.exports = {name: home for package in self._packages() for name, home in _exported(project, package)}
        self.modules = {name: read(project, name, self._wanted) for names in self.pages.values() for name in names}

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All public names by their full names, members left out."""
        return {entry.full: entry for module in self.modules.values() for entry in module.entries}

    @cached_property
    def _by_name(self) -> dict[str, str | None]:
        """By the last part of its name the one entry that has it, None where several do."""
        found: dict[str, str | None] = {}
        for entry in self.entries.values():
            found[entry.name] = None if entry.name in found else entry.full
        return found

    def resolve(self, name: str) -> str | None:
        """The full name of what `lib.attend` stands for; None for what no page explains."""
        while (home := self.exports.get(name)) and home != name:
            name = home
        return name if name in self.entries else None

    def meant_by(self, word: str, of: Module | Entry) -> str | None:
        """The full name of what a word stands for in a docstring or a signature; None for what no page explains.

        What the file knows by that word; else, if it is a class or has a dot, the only entry of that name. An argument
        of the function itself is none of these.
        """
        module, own = (of.name, "") if isinstance(of, Module) else (of.module, of.full)
        if isinstance(of, Entry) and re.search(rf"(?:\(|, |  ){re.escape(word)}[:=,)]", of.signature):
            return None
        scope = self.modules[module].scope
        if word in scope:  # which may be somebody else's
            full = self.resolve(scope[word])
        elif word[:1].isupper() or "." in word:
            full = self.resolve(word) or self._by_name.get(word.rpartition(".")[2])
        else:
            full = None
        return None if full == own else full

    def page_of(self, full: str) -> str:
        """The page that explains an entry."""
        return self._pages[self.entries[full].module]

    @cached_property
    def _pages(self) -> dict[str, str]:
        return {name: page for page, names in self.pages.items() for name in names}

    def importable(self, entry: Entry) -> str:
        """The line that imports it, by the shortest way."""
        homes = [name.rpartition(".")[0] for name, home in self.exports.items() if home == entry.full]
        return f"from {min([*homes, entry.module], key=len)} import {entry.name}"

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """For each name the figures, `notebook/figure`, whose own code names it, in the order of the book."""
        found: dict[str, list[str]] = {}
        for place in self.figures:
            for full in self.used(*place.split("/")):
                found.setdefault(full, []).append(place)
        return found

    @cached_property
    def figures(self) -> list[str]:
        """All figures of the book, as `notebook/figure`."""
        names = self.project.notebooks()
        return [f"{name}/{figure}" for name in names for figure in Notebook.named(self.project, name).figures]

    def used(self, notebook: str, figure: str) -> list[str]:
        """The names that the code of a figure takes from the library: the notebook's steps, the chapter, its file."""
        settings = self.project.settings
        cells = Notebook.named(self.project, notebook).code
        called = slicing.behind(cells, figure, [*settings.science, dependencies.MACHINE.name]).functions
        library = dependencies.Library.at(self.project.root, settings.science)
        named = library.named(self.project.figure_module(notebook, figure), called)
        return sorted({full for name in named if (full := self.resolve(name))})

    @cached_property
    def inner_users(self) -> dict[str, list[str]]:
        """For each name the other names of the library whose definitions mention it."""
        found: dict[str, list[str]] = {}
        for entry in self.entries.values():
            for full in sorted({full for name in entry.mentions if (full := self.resolve(name))} - {entry.full}):
                found.setdefault(full, []).append(entry.full)
        return found

    def faults(self) -> list[str]:
        """Modules of the packages in `api` of the book's table that no page, or more than one, explains."""
        told = [name for names in self.pages.values() for name in names]
        wanted = [name for package in self.project.settings.api for name in modules_of(self.project, package)]
        missing = [
            f"The module {name} is explained on no page: name it in a `{{companion-api}}`, or begin its name with an "
            "underscore."
            for name in wanted
            if name not in told and read(self.project, name, lambda _: False).entries
        ]
        twice = sorted({name for name in told if told.count(name) > 1})
        return missing + [f"The module {name} is explained more than once." for name in twice]

    def _packages(self) -> list[str]:
        packages = {".".join(name.split(".")[:depth]) for names in self.pages.values() for name in names
                    for depth in range(1, name.count(".") + 2)}  # fmt: skip
        return sorted(name for name in packages if home(self.project, name).name == "__init__.py")

    @cached_property
    def _taken(self) -> set[str]:
        """Everything that some file of the book imports by name."""
        folders = [self.project.root / package for package in self.project.settings.science]
        taken: set[str] = set(self.exports.values())
        for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
            tree = dependencies.tree(path)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    taken |= {f"{node.module}.{alias.name}" for alias in node.names}
        return taken

    def _wanted(self, full: str) -> bool:
        return full in self._taken


def listed(project: Project) -> dict[str, list[str]]:
    """Return the modules that each page with a `{companion-api}` explains."""
    found = {
        page.stem: [name for _, names in DIRECTIVE.findall(page.read_text(encoding="utf-8")) for name in names.split()]
        for page in sorted(project.book.glob("*.md"))
    }
    return {page: names for page, names in found.items() if names}


def home(project: Project, module: str) -> Path:
    """The file of a module of the book, or of this package."""
    first, *rest = module.split(".")
    for root in (project.root, dependencies.MACHINE.parent):
        place = root.joinpath(first, *rest)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    raise UserError(f"`{{companion-api}}` names a module {module!r}, which is not in {project.root}.")


def modules_of(project: Project, package: str) -> list[str]:
    """The public modules of a package, tables of contents left out; a module is its own only one."""
    start = home(project, package)
    if start.name != "__init__.py":
        return [package]
    files = [path for path in sorted(start.parent.rglob("*.py")) if path.name != "__init__.py"]
    parts = [path.relative_to(start.parent).with_suffix("").parts for path in files]
    return [".".join((package, *part)) for part in parts if not any(one.startswith("_") for one in part)]


def read(project: Project, name: str, wanted: Callable[[str], bool]) -> Module:
    """A module as its file has it; `wanted` says of a value, by its full name, whether it is for others."""
    path = home(project, name)
    tree, text = dependencies.tree(path), path.read_text(encoding="utf-8")
    scope = {**dependencies.imported_names(tree), **{own: f"{name}.{own}" for own in dependencies.own_names(tree)}}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    reader = _Reader(name, text.split("\n"), scope, classes)
    entries = tuple(entry for node in tree.body for entry in reader.entries(node, wanted))
    return Module(name, path, ast.get_docstring(tree) or "", entries, scope)


def _exported(project: Project, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(dependencies.tree(home(project, package))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{package}.{alias.asname or alias.name}", f"{node.module}.{alias.name}"


@dataclass(frozen=True)
class _Reader:
    module: str
    lines: Sequence[str]
    scope: Mapping[str, str]
    classes: Mapping[str, ast.ClassDef]

    def entries(self, node: ast.stmt, wanted: Callable[[str], bool]) -> Iterator[Entry]:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_public(name):
                yield self._entry(node, name, "function", self.call(name, node, bound=False))
            case ast.ClassDef(name=name) if _is_public(name):
                members = tuple(self._members(node))
                yield self._entry(node, name, "class", self.made(node), members=members)
            case ast.Assign(targets=[target], value=value):
                for name, given in _bindings(target, value):
                    if _is_public(name) and (_is_alias(name) or wanted(f"{self.module}.{name}")):
                        yield self._value(node, name, given)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if _is_public(name):
                if value is not None and (_is_alias(name) or wanted(f"{self.module}.{name}")):
                    yield self._value(node, name, value)

    def _entry(self, node, name: str, kind: Kind, signature: str, *, members=(), owner: str = "") -> Entry:
        mentions = frozenset(self._mentions(node))
        doc = ast.get_docstring(node) or ""
        last = node.end_lineno or node.lineno
        return Entry(self.module, f"{owner}{name}", kind, signature, doc, _first(node), last, tuple(members), mentions)

    def _value(self, node: ast.stmt, name: str, value: ast.expr | None) -> Entry:
        said = self._source(value) if value is not None else ""
        signature = f"{name} = {said if len(said) <= 2 * WIDTH else '…'}"
        mentions = frozenset(self._mentions(node))
        last = node.end_lineno or node.lineno
        return Entry(self.module, name, "data", signature, self._above(node), node.lineno, last, (), mentions)

    def _members(self, node: ast.ClassDef) -> Iterator[Entry]:
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and _is_public(inner.name):
                made_by = {ast.unparse(decorator) for decorator in inner.decorator_list}
                a_value = made_by & {"property", "cached_property", "functools.cached_property"}
                signature = self.call(inner.name, inner, bound="staticmethod" not in made_by)
                if a_value:
                    signature = inner.name + signature[signature.index(")") + 1 :]
                kind: Kind = "property" if a_value else "method"
                prefix = next((f"{kind} " for kind in ("classmethod", "staticmethod") if kind in made_by), "")
                owner = f"{node.name}."
                yield self._entry(inner, inner.name, kind, prefix + signature, owner=owner)

    def call(self, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> str:
        """The head of a function, its arguments as they are written."""
        returns = f" -> {self._source(node.returns)}" if node.returns else ""
        return _wrapped(name, list(self._arguments(node.args))[bound:], returns)

    def made(self, node: ast.ClassDef) -> str:
        """A class with what it is made from: its own `__init__`, else its fields, those of its bases first."""
        own = {inner.name: inner for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if "__init__" in own:
            return "class " + _wrapped(node.name, list(self._arguments(own["__init__"].args))[1:], "")
        fields = dict(self._fields(node))
        return "class " + (_wrapped(node.name, list(fields.values()), "") if fields else node.name)

    def _fields(self, node: ast.ClassDef) -> Iterator[tuple[str, str]]:
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self._fields(self.classes[base.id])
        for inner in node.body:
            match inner:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if _is_public(name):
                    kind = self._source(annotation)
                    if kind.startswith("ClassVar"):
                        continue
                    given = self._source(value) if value is not None else ""
                    yield name, f"{name}: {kind}" + (f" = {given}" if given and not given.startswith(MAKING) else "")

    def _arguments(self, arguments: ast.arguments) -> Iterator[str]:
        plain = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
        for place, (argument, default) in enumerate(zip(plain, defaults, strict=True), 1):
            yield self._argument(argument, default)
            if place == len(arguments.posonlyargs):
                yield "/"
        if arguments.vararg:
            yield "*" + self._argument(arguments.vararg, None)
        elif arguments.kwonlyargs:
            yield "*"
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            yield self._argument(argument, default)
        if arguments.kwarg:
            yield "**" + self._argument(arguments.kwarg, None)

    def _argument(self, argument: ast.arg, default: ast.expr | None) -> str:
        kind = f": {self._source(argument.annotation)}" if argument.annotation else ""
        equals = " = " if kind else "="
        return argument.arg + kind + (f"{equals}{self._source(default)}" if default is not None else "")

    def _source(self, node: ast.expr) -> str:
        """As it is written; over several lines, in one."""
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        lines = [line.encode() for line in self.lines[first:last]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        written = b"\n".join(lines).decode()
        if "\n" not in written:
            return written
        return re.sub(r"(?<=[(\[{]) |,? (?=[)\]}])", "", re.sub(r"\s*\n\s*", " ", written))

    def _above(self, node: ast.stmt) -> str:
        """The comment that stands right above a value."""
        said: list[str] = []
        for line in reversed(self.lines[: node.lineno - 1]):
            if not line.startswith("# "):
                break
            said.append(line[2:])
        return "\n".join(reversed(said))

    def _mentions(self, node: ast.AST) -> Iterator[str]:
        for leaf in ast.walk(node):
            match leaf:
                case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.scope:
                    yield f"{self.scope[name]}.{attribute}"
                case ast.Name(id=name) if name in self.scope:
                    yield self.scope[name]


def _bindings(target: ast.expr, value: ast.expr) -> Iterable[tuple[str, ast.expr | None]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            yield from (
                (name.id, given) for name, given in zip(names, values, strict=True) if isinstance(name, ast.Name)
            )
        case ast.Tuple(elts=names), _:
            yield from ((name.id, None) for name in names if isinstance(name, ast.Name))


def _wrapped(name: str, arguments: list[str], returns: str) -> str:
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){returns}"])


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_alias(name: str) -> bool:
    """Whether a value is called as types are."""
    return name[0].isupper() and not name.isupper()
