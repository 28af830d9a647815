"""Index of the public names of a library: signature as written, docstring, and the figures that use the name.

The index is read from the sources without importing them: the site can be built where the library's requirements are
not installed, and annotations keep their spelling. Public are functions and classes without a leading underscore, their
public members, type aliases, and values that an `__init__.py` exports or other code imports.
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
from companion.io.sources import read_source
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project, visible

Kind = Literal["function", "class", "method", "property", "attribute", "data"]

DIRECTIVE = re.compile(r"^(`{3,}|:{3,})\{companion-api\}([^\n]*)$", re.MULTILINE)
# A longer signature has one line per argument.
WIDTH = 84
# Defaults of fields that a signature leaves out, because they only configure the dataclass.
FIELD_FUNCTIONS = ("eqx.field", "field(", "Field(", "dataclasses.field")


@dataclass(frozen=True)
class Entry:
    """A public name with its signature, its docstring, its lines in the file and its public members.

    `mentions` are the dotted names of other code in the definition.
    """

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
        """The dotted name in the module that defines it."""
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Module:
    """One module of a library: its docstring, and its public names in the order of the file.

    `scope` maps the names that the module imports or defines to dotted names.
    """

    name: str
    path: Path
    doc: str
    entries: tuple[Entry, ...]
    scope: Mapping[str, str] = field(default_factory=dict)


class ApiIndex:
    """The public names of the modules that a book documents, and the figures that use them."""

    def __init__(self, project: Project):
        self.project = project
        self.pages = documented_modules(project)
        self.exports = {name: origin for package in self._packages() for name, origin in _exported(project, package)}
        self.modules = {
            name: read_module(project, name, self._is_imported) for names in self.pages.values() for name in names
        }

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
        scope = self.modules[module].scope
        if word in scope:  # the scope also contains names of other libraries, which `resolve` does not know
            full = self.resolve(scope[word])
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
        for target in self.figures:
            for full in self.used(*target.split("/")):
                figures.setdefault(full, []).append(target)
        return figures

    @cached_property
    def figures(self) -> list[str]:
        """All figures of the book, as `notebook/figure`."""
        names = self.project.notebooks()
        return [f"{name}/{figure}" for name in names for figure in Notebook.named(self.project, name).figures]

    def used(self, notebook: str, figure: str) -> list[str]:
        """Return the entries that the code of a figure uses, sorted by full name.

        The code is the notebook's steps, the functions of the chapter behind them, and the figure module.
        """
        settings = self.project.settings
        cells = Notebook.named(self.project, notebook).code
        functions = slicing.steps_of(cells, figure, [*settings.science, dependencies.MACHINE.name]).functions
        library = dependencies.Library.at(self.project.root, settings.science)
        names = library.named(self.project.figure_module(notebook, figure), functions)
        return sorted({full for name in names if (full := self.resolve(name))})

    @cached_property
    def inner_users(self) -> dict[str, list[str]]:
        """The other entries whose definitions mention each entry."""
        users: dict[str, list[str]] = {}
        for entry in self.entries.values():
            for full in sorted({full for name in entry.mentions if (full := self.resolve(name))} - {entry.full}):
                users.setdefault(full, []).append(entry.full)
        return users

    def faults(self) -> list[str]:
        """Return one sentence per module, of the packages in `api`, that is not documented on exactly one page."""
        documented = [name for names in self.pages.values() for name in names]
        required = [name for package in self.project.settings.api for name in modules_of(self.project, package)]
        missing = [
            f"The module {name} is documented on no page. Name it in a `{{companion-api}}`, or start its name with an "
            "underscore."
            for name in required
            if name not in documented and read_module(self.project, name, lambda _: False).entries
        ]
        repeated = sorted({name for name in documented if documented.count(name) > 1})
        return missing + [f"The module {name} is documented more than once. Keep one place." for name in repeated]

    def _packages(self) -> list[str]:
        packages = {".".join(name.split(".")[:depth]) for names in self.pages.values() for name in names
                    for depth in range(1, name.count(".") + 2)}  # fmt: skip
        return sorted(name for name in packages if module_file(self.project, name).name == "__init__.py")

    @cached_property
    def _imported(self) -> set[str]:
        """The full names that a package of the library exports or a file of the book imports."""
        folders = [self.project.root / package for package in self.project.settings.science]
        names: set[str] = set(self.exports.values())
        for path in (path for folder in folders for path in visible(folder, "**/*.py")):
            tree = dependencies.tree(path)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    names |= {f"{node.module}.{alias.name}" for alias in node.names}
        return names

    def _is_imported(self, full: str) -> bool:
        return full in self._imported


def documented_modules(project: Project) -> dict[str, list[str]]:
    """Return the modules that each page with a `{companion-api}` documents, by page."""
    modules = {
        page.stem: [name for _, names in DIRECTIVE.findall(page.read_text(encoding="utf-8")) for name in names.split()]
        for page in visible(project.book, "*.md")
    }
    return {page: names for page, names in modules.items() if names}


def module_file(project: Project, module: str) -> Path:
    """Return the file of a module of the book, or of this package. Raise a `UserError` if there is none."""
    first, *rest = module.split(".")
    for root in (project.root, dependencies.MACHINE.parent):
        stem = root.joinpath(first, *rest)
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.is_file():
                return path
    raise UserError(f"`{{companion-api}}` names a module {module!r}, which is not in {project.root}.")


def modules_of(project: Project, package: str) -> list[str]:
    """Return the public modules of a package, without `__init__` modules; for a module, the module itself."""
    start = module_file(project, package)
    if start.name != "__init__.py":
        return [package]
    files = [path for path in visible(start.parent, "**/*.py") if path.name != "__init__.py"]
    names = [path.relative_to(start.parent).with_suffix("").parts for path in files]
    return [".".join((package, *parts)) for parts in names if not any(part.startswith("_") for part in parts)]


def read_module(project: Project, name: str, is_public_value: Callable[[str], bool]) -> Module:
    """Return the module `name` as written in its file.

    Args:
      project: the book.
      name: the dotted name of the module.
      is_public_value: decides from the full name of a value, which is not a type alias, whether it is public.
    """
    path = module_file(project, name)
    tree, text = dependencies.tree(path), read_source(path)
    scope = {**dependencies.imported_names(tree), **{own: f"{name}.{own}" for own in dependencies.own_names(tree)}}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    reader = _Reader(name, text.split("\n"), scope, classes)
    entries = tuple(entry for node in tree.body for entry in reader.entries(node, is_public_value))
    return Module(name, path, ast.get_docstring(tree) or "", entries, scope)


def _exported(project: Project, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(dependencies.tree(module_file(project, package))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{package}.{alias.asname or alias.name}", f"{node.module}.{alias.name}"


@dataclass(frozen=True)
class _Reader:
    module: str
    lines: Sequence[str]
    scope: Mapping[str, str]
    classes: Mapping[str, ast.ClassDef]

    def entries(self, node: ast.stmt, is_public_value: Callable[[str], bool]) -> Iterator[Entry]:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_public(name):
                yield self._entry(node, name, "function", self.function_signature(name, node, bound=False))
            case ast.ClassDef(name=name) if _is_public(name):
                members = tuple(self._members(node))
                yield self._entry(node, name, "class", self.class_signature(node), members=members)
            case ast.Assign(targets=[target], value=value):
                for name, given in _bindings(target, value):
                    if _is_public(name) and (_is_alias(name) or is_public_value(f"{self.module}.{name}")):
                        yield self._value(node, name, given)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if _is_public(name):
                if value is not None and (_is_alias(name) or is_public_value(f"{self.module}.{name}")):
                    yield self._value(node, name, value)

    def _entry(self, node, name: str, kind: Kind, signature: str, *, members=(), owner: str = "") -> Entry:
        mentions = frozenset(self._mentions(node))
        doc = ast.get_docstring(node) or ""
        last = node.end_lineno or node.lineno
        return Entry(self.module, f"{owner}{name}", kind, signature, doc, _first(node), last, tuple(members), mentions)

    def _value(self, node: ast.stmt, name: str, value: ast.expr | None) -> Entry:
        source = self._source(value) if value is not None else ""
        signature = f"{name} = {source if len(source) <= 2 * WIDTH else '…'}"
        mentions = frozenset(self._mentions(node))
        last = node.end_lineno or node.lineno
        return Entry(self.module, name, "data", signature, self._above(node), node.lineno, last, (), mentions)

    def _members(self, node: ast.ClassDef) -> Iterator[Entry]:
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and _is_public(inner.name):
                decorators = {ast.unparse(decorator) for decorator in inner.decorator_list}
                is_property = decorators & {"property", "cached_property", "functools.cached_property"}
                signature = self.function_signature(inner.name, inner, bound="staticmethod" not in decorators)
                if is_property:
                    signature = inner.name + signature[signature.index(")") + 1 :]
                kind: Kind = "property" if is_property else "method"
                prefix = next((f"{kind} " for kind in ("classmethod", "staticmethod") if kind in decorators), "")
                owner = f"{node.name}."
                yield self._entry(inner, inner.name, kind, prefix + signature, owner=owner)

    def function_signature(self, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> str:
        """Return the signature of a function as written; without its first argument if it is `bound`."""
        returns = f" -> {self._source(node.returns)}" if node.returns else ""
        return _wrapped(name, list(self._arguments(node.args))[bound:], returns)

    def class_signature(self, node: ast.ClassDef) -> str:
        """Return a class with the arguments of its `__init__`, or else with its fields, those of its bases first."""
        methods = {inner.name: inner for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if "__init__" in methods:
            return "class " + _wrapped(node.name, list(self._arguments(methods["__init__"].args))[1:], "")
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
                    yield (
                        name,
                        f"{name}: {kind}" + (f" = {given}" if given and not given.startswith(FIELD_FUNCTIONS) else ""),
                    )

    def _arguments(self, arguments: ast.arguments) -> Iterator[str]:
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
        for number, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
            yield self._argument(argument, default)
            if number == len(arguments.posonlyargs):
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
        """Return the source of an expression as written, on one line."""
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        lines = [line.encode() for line in self.lines[first:last]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        written = b"\n".join(lines).decode()
        if "\n" not in written:
            return written
        return re.sub(r"(?<=[(\[{]) |,? (?=[)\]}])", "", re.sub(r"\s*\n\s*", " ", written))

    def _above(self, node: ast.stmt) -> str:
        """Return the comment directly above a statement."""
        comment: list[str] = []
        for line in reversed(self.lines[: node.lineno - 1]):
            if not line.startswith("# "):
                break
            comment.append(line[2:])
        return "\n".join(reversed(comment))

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
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_alias(name: str) -> bool:
    """Return whether a value is named like a type."""
    return name[0].isupper() and not name.isupper()
