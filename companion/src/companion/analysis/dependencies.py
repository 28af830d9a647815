"""Find the sources that numbers and pictures depend on, by reading imports, and compute their digests.

A digest covers the code that can change a result: comments, docstrings and blank lines are left out. A figure module
has two parts: the code that `draw` needs belongs to the picture, all other code to the numbers. An `__init__` file that
re-exports names is not a dependency itself: `from lib import attend` leads to `lib/attention.py` only. An import of a
whole package, `from lib import icl`, leads to everything that the package imports.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from companion.io.errors import UserError
from companion.io.sources import read_source
from companion.project import slicing

Part = Literal["numbers", "picture", "whole"]

# The modules of this package on which every task, all numbers and every picture depend.
TASK_MODULES = ("companion.authoring.tasks",)
NUMBERS_MODULES = (
    "companion.figures.table_io",
    "companion.authoring.tasks",
    "companion.authoring.publish",
    "companion.figures.schema",
    "companion.figures.record",
    "companion.figures.claims",
)
PICTURE_MODULES = ("companion.figures.rendering", "companion.figures.plain_svg", "companion.figures.style")
# The module of this package that only some pictures need: those whose drawing code imports it.
SCHEMATICS = "companion.figures.schematics"
MACHINE = Path(__file__).resolve().parents[1]
# The fonts of all pictures.
FONTS = MACHINE / "figures" / "fonts"


@dataclass(frozen=True)
class Library:
    """The packages whose sources decide results, and the folder that contains them."""

    root: Path
    packages: tuple[str, ...]

    @classmethod
    def at(cls, root: Path, packages: Iterable[str]) -> "Library":
        """Return the packages of a checkout. Raise a `UserError` if one is missing."""
        for package in packages:
            if not (root / package).is_dir():
                raise UserError(
                    f"[tool.companion] of {root / 'pyproject.toml'} names the package {package!r}, but there is no "
                    f"folder {root / package}."
                )
        return cls(root, tuple(packages))

    def numbers_digests(self, modules: Iterable[str], own_modules: Sequence[str] = NUMBERS_MODULES) -> dict[str, str]:
        """Return the digests of the sources that decide the numbers of a notebook, by file name.

        Args:
          modules: the modules that the notebook imports.
          own_modules: the modules of this package that count as sources.
        """
        return self._digests(self._closure([*modules, *own_modules], "numbers", own_modules))

    def picture_digest(self, figure: str) -> str:
        """Return the digest of the sources that draw a figure, given the name of its module.

        The sources are `draw`, its imports, the docstring, the style and the fonts.
        """
        own_modules = (*PICTURE_MODULES, SCHEMATICS)
        parts = self._digests(self._closure([figure, *PICTURE_MODULES], "picture", own_modules))
        text = ast.get_docstring(syntax_tree(self._file(figure))) or ""
        parts |= {font.name: digest(font.read_bytes()) for font in sorted(FONTS.glob("*.ttf"))}
        return digest("\n".join([*(f"{name} {value}" for name, value in parts.items()), text]).encode())[:16]

    def files(self, names: Iterable[str]) -> list[str]:
        """Return the source files that modules or functions depend on, without those of this package, sorted."""
        closure = self._closure(names, "whole", own_modules=())
        return sorted({self._name(path) for path, _ in closure if not path.is_relative_to(MACHINE)})

    def shown(self, figure: str, functions: Sequence[str]) -> list[str]:
        """Return the functions and classes that the site shows as the code of a figure.

        Args:
          figure: the figure module.
          functions: the functions that the notebook calls for it.

        Returns:
          Dotted names: first those of the chapter that several figures may share, then those of the figure module.
        """
        definitions = {
            (module, name): node.lineno
            for (module, name), node in self._names_reached(figure, functions)[0].items()
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not module.endswith(".parameters")
        }
        ordered = sorted(definitions, key=lambda place: (place[0] == figure, place[0], definitions[place]))
        return [f"{module}.{name}" for module, name in ordered]

    def named(self, figure: str, functions: Sequence[str]) -> set[str]:
        """Return the names from outside the chapter that the code of a figure uses, such as `lib.attend`.

        The arguments are those of `shown`.
        """
        return {f"{module}.{name}" for module, name in self._names_reached(figure, functions)[1]}

    def _names_reached(
        self, figure: str, functions: Sequence[str]
    ) -> tuple[dict[tuple[str, str], ast.stmt], set[tuple[str, str]]]:
        """Return the names that the code of a figure reaches, with their modules.

        Those inside its chapter have their definitions; those outside follow.
        """
        chapter = figure.rpartition(".figures.")[0]
        inside: dict[tuple[str, str], ast.stmt] = {}
        outside: set[tuple[str, str]] = set()
        pending = [(figure, name) for name in ("numbers", "draw")]
        pending += [_split(name) for name in functions]
        while pending:
            module, name = pending.pop()
            if not module.startswith(f"{chapter}."):
                outside.add((module, name))
            elif (module, name) not in inside and (path := self._find(module)):
                tree = syntax_tree(path)
                if name in _bindings(tree):
                    inside[module, name] = _bindings(tree)[name]
                    pending += [(module, used) for used in _uses(tree, name)]
                    pending += _used_elsewhere(tree, name)
        return inside, outside

    def _closure(self, names: Iterable[str], part: Part, own_modules: Sequence[str]) -> list[tuple[Path, Part]]:
        """Return the files reached from `names`, each with the part of it that counts.

        The modules `own_modules` of this package count, but their imports are not followed; its other modules do not.
        """
        own_files = {self._file(module) for module in own_modules}
        seen: dict[Path, Part] = {}
        pending = [path for name in names for path in self._of_dotted(name)]
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            if path.is_relative_to(MACHINE):
                if path in own_files:
                    seen[path] = "whole"
                continue
            seen[path] = part if _is_figure(syntax_tree(path)) else "whole"
            pending.extend(self._imports(path, seen[path]))
        return sorted(seen.items())

    def _digests(self, closure: list[tuple[Path, Part]]) -> dict[str, str]:
        # keyed by name, so that the digests do not depend on the folder of the checkout
        return dict(sorted((self._name(path), _part_digest(syntax_tree(path), path, part)) for path, part in closure))

    def _imports(self, path: Path, part: Part) -> Iterator[Path]:
        for node in _import_statements(syntax_tree(path), part):
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        yield from self._files_of(alias.name, None)
                case ast.ImportFrom(module=module, names=names, level=level):
                    if level:
                        package = Path(self._name(path)).parts[:-level]
                        module = ".".join((*package, *([module] if module else [])))
                    for alias in names:
                        yield from self._files_of(module or "", alias.name)

    def _of_dotted(self, name: str) -> Iterator[Path]:
        """Yield the files of `a.b`, read as a module or else as the name `b` of module `a`."""
        return self._files_of(name, None) if self._find(name) else self._files_of(*_split(name))

    def _files_of(self, module: str, name: str | None) -> Iterator[Path]:
        """Yield the files that define what `import module`, or `from module import name`, imports."""
        path = self._find(module)
        if path is None:
            return
        if name is None or path.name != "__init__.py":
            yield path
        elif origin := slicing.imports(syntax_tree(path).body).get(name):
            yield from self._files_of(*_split(origin))
        else:
            yield self._find(f"{module}.{name}") or path

    def _find(self, module: str) -> Path | None:
        package = module.partition(".")[0]
        if package not in (*self.packages, MACHINE.name):
            return None
        place = (self.root if package in self.packages else MACHINE.parent) / module.replace(".", "/")
        candidates = (place.with_suffix(".py"), place / "__init__.py")
        return next((path for path in candidates if path.is_file()), None)

    def _file(self, module: str) -> Path:
        path = self._find(module)
        if path is None:
            raise UserError(f"There is no module {module!r} in {self.root}.")
        return path

    def _name(self, path: Path) -> str:
        return path.relative_to(MACHINE.parent if path.is_relative_to(MACHINE) else self.root).as_posix()


def digest(content: bytes) -> str:
    """Return the SHA-256 of `content`, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file; it is cached until the file changes."""
    return _parsed(path, path.stat().st_mtime_ns)


def lines_of(path: Path, name: str) -> tuple[int, int] | None:
    """Return the first and the last line of the top-level definition of `name`, with decorators, or None."""
    node = _bindings(syntax_tree(path)).get(name) if path.is_file() else None
    return (_first_line(node), node.end_lineno or 0) if node else None


def plain_code(source: str) -> str:
    """Return a source without comments, docstrings and blank lines.

    The function cuts lines by position. `ast.unparse` would not do: its output differs between versions of Python.
    """
    return _of_lines(_plain_lines(source))


# A changed file has a new tree, so results that depend on a tree only can be cached.
@cache
def _part_digest(tree: ast.Module, path: Path, part: Part) -> str:
    statements = None if part == "whole" else _statements(tree, part)
    return digest(_of_lines(_plain_file(tree, path), statements).encode())[:16]


@cache
def _plain_file(_tree: ast.Module, path: Path) -> list[str | None]:
    return _plain_lines(read_source(path))


@cache
def _import_statements(tree: ast.Module, part: Part) -> list[ast.AST]:
    return [node for node in _with_inner(_statements(tree, part)) if isinstance(node, ast.Import | ast.ImportFrom)]


def _with_inner(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield statements with those inside them."""
    for statement in statements:
        yield statement
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _with_inner(getattr(statement, field, ()))


def _is_figure(tree: ast.Module) -> bool:
    return {"numbers", "draw"} <= set(_bindings(tree))


@cache
def _statements(tree: ast.Module, part: Part) -> list[ast.stmt]:
    """Return the top-level statements of one part of a file; the two parts of a figure module may overlap."""
    if part == "whole":
        return tree.body
    always = [node for node in tree.body if not list(_bound(node))]
    roots = ["draw"] if part == "picture" else _public(tree) - {"draw"}
    reached = _reached(tree, {*roots, *_mentioned(tree, always)})
    return [node for node in tree.body if node in always or reached & set(_bound(node))]


def _public(tree: ast.Module) -> set[str]:
    """Return the public functions and classes of a file, which the cells of a notebook may call."""
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {node.name for node in definitions if not node.name.startswith("_")}


def _reached(tree: ast.Module, names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += _uses(tree, name)
    return seen


@cache
def _used_elsewhere(tree: ast.Module, name: str) -> list[tuple[str, str]]:
    """Return the names from other modules, with their modules, that the definition of `name` uses."""
    imported, used = slicing.imports(tree.body), []
    for node in ast.walk(_bindings(tree)[name]):
        match node:
            case ast.Attribute(value=ast.Name(id=alias), attr=attribute) if alias in imported:
                used.append((imported[alias], attribute))
            case ast.Name(id=alias) if alias in imported:
                used.append(_split(imported[alias]))
    return used


def _split(name: str) -> tuple[str, str]:
    """Return the module and the last part of a dotted name."""
    module, _, attribute = name.rpartition(".")
    return module, attribute


@cache
def _uses(tree: ast.Module, name: str) -> list[str]:
    """Return the top-level names of a file that the definition of `name` mentions, sorted."""
    return sorted(_mentioned(tree, [node for node in tree.body if name in _bound(node)]) - {name})


def _mentioned(tree: ast.Module, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the top-level names of a file that `nodes` mention."""
    names = {leaf.id for node in nodes for leaf in ast.walk(node) if isinstance(leaf, ast.Name)}
    return names & set(_bindings(tree))


@cache
def _bindings(tree: ast.Module) -> dict[str, ast.stmt]:
    return {name: node for node in tree.body for name in _bound(node)}


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in names)
        case _:
            yield from slicing.assigned(node)


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _plain_lines(source: str) -> list[str | None]:
    """Return the lines of a source without comments and docstrings; a line that becomes empty is None."""
    lines = source.split("\n")
    removed: list[tuple[tuple[int, int], tuple[int, int]]] = []
    # lines that end inside a string, in which spaces and blank lines are content
    verbatim: set[int] = set()
    before = tokenize.INDENT
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        # a string that begins an expression is followed by an operator
        is_statement = after.type in (tokenize.NEWLINE, tokenize.COMMENT)
        is_docstring = token.type == tokenize.STRING and before == tokenize.INDENT and is_statement
        if is_docstring or token.type == tokenize.COMMENT:
            removed.append((token.start, token.end))
        else:
            verbatim.update(range(token.start[0], token.end[0]))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    for (first, left), (last, right) in reversed(removed):
        rest = lines[first - 1][:left] + lines[last - 1][right:]
        lines[first - 1 : last] = [rest, *[""] * (last - first)]
    return [line if number in verbatim else line.rstrip() or None for number, line in enumerate(lines, 1)]


def _of_lines(lines: Sequence[str | None], keep: Sequence[ast.stmt] | None = None) -> str:
    """Return the text of the lines of the statements `keep`, by default of all lines."""
    numbers = range(1, len(lines) + 1)
    if keep is not None:
        numbers = sorted({number for node in keep for number in range(_first_line(node), (node.end_lineno or 0) + 1)})
    return "\n".join(line for number in numbers if (line := lines[number - 1]) is not None)


@cache
def _parsed(path: Path, _modified: int) -> ast.Module:
    try:
        return ast.parse(read_source(path))
    except SyntaxError as error:
        raise UserError(f"{path} is not Python: {error}.") from error
