"""Find the sources that numbers and pictures depend on, by reading imports, and compute their digests.

A digest covers the code that can change a result: comments, docstrings and blank lines are left out. A figure module
has two parts: the code that `draw` needs belongs to the picture, all other code to the numbers. An `__init__` file that
re-exports names is not a dependency itself: `from lib import attend` leads to `lib/attention.py` only. An import of a
whole package, `from lib import icl`, leads to everything that the package imports.
"""

import ast
import hashlib
import importlib.util
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeGuard

from companion.io.errors import UserError
from companion.io.sources import read_source

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
    """The packages whose sources decide results, each with its parent folder."""

    places: tuple[tuple[str, Path], ...]

    @classmethod
    def at(cls, root: Path, packages: Iterable[str]) -> "Library":
        """Return the packages of a checkout. Raise a `UserError` if one is missing."""
        for package in packages:
            if not (root / package).is_dir():
                raise UserError(
                    f"[tool.companion] of {root / 'pyproject.toml'} names the package {package!r}, but there is no "
                    f"folder {root / package}."
                )
        return cls((*((package, root) for package in packages), (MACHINE.name, MACHINE.parent)))

    @classmethod
    def installed(cls, packages: Iterable[str]) -> "Library":
        """Return the packages that Python imports in this environment."""
        return cls((*((package, _home(package)) for package in packages), (MACHINE.name, MACHINE.parent)))

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
        text = ast.get_docstring(_tree(self._file(figure))) or ""
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
        return [
            f"{module}.{name}" for module, name in self._in_order(self._names_reached(figure, functions)[0], figure)
        ]

    def named(self, figure: str, functions: Sequence[str]) -> set[str]:
        """Return the names from outside the chapter that the code of a figure uses, such as `lib.attend`.

        The arguments are those of `shown`.
        """
        return {f"{module}.{name}" for module, name in self._names_reached(figure, functions)[1]}

    def _names_reached(
        self, figure: str, functions: Sequence[str]
    ) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """Return the names that the code of a figure reaches, with their modules: inside and outside its chapter."""
        chapter = figure.rpartition(".figures.")[0]
        inside: set[tuple[str, str]] = set()
        outside: set[tuple[str, str]] = set()
        pending = [(figure, name) for name in ("numbers", "draw")]
        pending += [tuple(name.rpartition(".")[::2]) for name in functions]
        while pending:
            module, name = pending.pop()
            if not module.startswith(f"{chapter}."):
                outside.add((module, name))
                continue
            if (module, name) in inside or (path := self._find(module)) is None:
                continue
            tree = _tree(path)
            if name not in _bindings(tree):
                continue
            inside.add((module, name))
            pending += [(module, used) for used in _uses(tree, name)]
            pending += _used_elsewhere(tree, name)
        return inside, outside

    def _in_order(self, names: set[tuple[str, str]], figure: str) -> list[tuple[str, str]]:
        """Return the functions and classes among `names`, sorted by module and line, those of the figure last."""

        def position(definition: tuple[str, str]) -> tuple[bool, str, int]:
            module, name = definition
            return module == figure, module, _bindings(_tree(self._file(module)))[name].lineno

        definitions = [
            (module, name)
            for module, name in names
            if self._is_definition(module, name) and not module.endswith(".parameters")
        ]
        return sorted(definitions, key=position)

    def _is_definition(self, module: str, name: str) -> bool:
        node = _bindings(_tree(self._file(module)))[name]
        return isinstance(node, ast.FunctionDef | ast.ClassDef)

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
            seen[path] = part if _is_figure(_tree(path)) else "whole"
            pending.extend(self._imports(path, seen[path]))
        return sorted(seen.items())

    def _digests(self, closure: list[tuple[Path, Part]]) -> dict[str, str]:
        # keyed by name, so that the digests do not depend on the folder of the checkout
        return dict(sorted((self._name(path), _part_digest(_tree(path), path, part)) for path, part in closure))

    def _imports(self, path: Path, part: Part) -> Iterator[Path]:
        for node in _import_statements(_tree(path), part):
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
        if self._find(name) is not None:
            yield from self._files_of(name, None)
        else:
            module, _, attribute = name.rpartition(".")
            yield from self._files_of(module, attribute)

    def _files_of(self, module: str, name: str | None) -> Iterator[Path]:
        """Yield the files that define what `import module`, or `from module import name`, imports."""
        place = self._place(module)
        if place is None:
            return
        if place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")
        elif (init := place / "__init__.py").is_file():
            if name is None:
                yield init
                return
            for node in _tree(init).body:
                if isinstance(node, ast.ImportFrom) and not node.level:
                    for alias in node.names:
                        if (alias.asname or alias.name) == name:
                            yield from self._files_of(node.module or "", alias.name)
                            return
            if (place / f"{name}.py").is_file() or (place / name).is_dir():
                yield from self._files_of(f"{module}.{name}", None)
            else:
                yield init

    def _place(self, module: str) -> Path | None:
        package, *rest = module.split(".")
        folder = dict(self.places).get(package)
        return None if folder is None else folder.joinpath(package, *rest)

    def _find(self, module: str) -> Path | None:
        place = self._place(module)
        if place is None:
            return None
        candidates = (place.with_suffix(".py"), place / "__init__.py")
        return next((path for path in candidates if path.is_file()), None)

    def _file(self, module: str) -> Path:
        path = self._find(module)
        if path is None:
            raise UserError(f"There is no module {module!r} in {', '.join(str(folder) for _, folder in self.places)}.")
        return path

    def _name(self, path: Path) -> str:
        for package, folder in self.places:
            if path.is_relative_to(folder / package):
                return path.relative_to(folder).as_posix()
        raise ValueError(f"{path} belongs to none of the packages.")


def digest(content: bytes) -> str:
    """Return the SHA-256 of `content`, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def same_but_for_line_ends(content: bytes, expected: str) -> bool:
    """Return whether `content` has the digest `expected` after all its line ends are made LF, or all CRLF."""
    unix = content.replace(b"\r\n", b"\n")
    return expected in (digest(unix), digest(unix.replace(b"\n", b"\r\n")))


def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file; it is cached until the file changes."""
    return _tree(path)


def mentioned(path: Path, module: str, name: str) -> set[str]:
    """Return the dotted names of other code that the definition of `name` in the file of `module` mentions."""
    program = _tree(path)
    if name not in _bindings(program):  # it is defined inside an `if`
        return set()
    imported = {f"{origin}.{used}" for origin, used in _used_elsewhere(program, name)}
    return imported | {f"{module}.{used}" for used in _uses(program, name)}


def plain_code(source: str, keep: Sequence[ast.stmt] | None = None) -> str:
    """Return a source without comments, docstrings and blank lines; only the statements `keep`, by default all.

    The function cuts lines by position. `ast.unparse` would not do: its output differs between versions of Python.
    """
    return _of_lines(_cleaned(source, ast.parse(source)), keep)


def _home(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"[tool.companion] names the package {package!r}, which is not installed here.")
    return Path(next(iter(spec.submodule_search_locations))).resolve().parent


# A changed file has a new tree, so results that depend on a tree only can be cached.
@cache
def _part_digest(tree: ast.Module, path: Path, part: Part) -> str:
    statements = None if part == "whole" else _statements(tree, part)
    return digest(_of_lines(_cleaned_file(tree, path), statements).encode())[:16]


@cache
def _cleaned_file(tree: ast.Module, path: Path) -> list[str | None]:
    return _cleaned(read_source(path), tree)


@cache
def _import_statements(tree: ast.Module, part: Part) -> list[ast.AST]:
    nodes = (node for statement in _statements(tree, part) for node in ast.walk(statement))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


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
    imported, used = _imported(tree), []
    for node in ast.walk(_bindings(tree)[name]):
        match node:
            case ast.Attribute(value=ast.Name(id=alias), attr=attribute) if alias in imported:
                used.append((imported[alias], attribute))
            case ast.Name(id=alias) if alias in imported:
                module, _, attribute = imported[alias].rpartition(".")
                used.append((module, attribute))
    return used


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
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in names)


@cache
def _imported(tree: ast.Module) -> dict[str, str]:
    imported = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return imported


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


Position = tuple[int, int]


def _cleaned(source: str, tree: ast.Module) -> list[str | None]:
    """Return the lines of a source without comments and docstrings; a line that becomes empty is None."""
    lines = source.split("\n")
    nodes = list(ast.walk(tree))
    strings = [node for node in nodes if _is_string(node)]
    docstrings = list(_docstrings(nodes, lines))
    # lines that end inside a string, in which spaces and blank lines are content
    verbatim = {line for node in strings for line in range(node.lineno, node.end_lineno or node.lineno)}
    verbatim -= {line for (first, _), (last, _) in docstrings for line in range(first, last)}
    for start, end in sorted([*_comments(source, strings), *docstrings], reverse=True):
        _cut(lines, start, end)
    stripped = ((line if number in verbatim else line.rstrip(), number) for number, line in enumerate(lines, 1))
    return [line if line or number in verbatim else None for line, number in stripped]


def _of_lines(cleaned: Sequence[str | None], keep: Sequence[ast.stmt] | None) -> str:
    """Return the text of the lines of the statements `keep`, by default of all lines."""
    numbers = range(1, len(cleaned) + 1)
    if keep is not None:
        numbers = sorted({number for node in keep for number in range(_first_line(node), (node.end_lineno or 0) + 1)})
    return "\n".join(line for number in numbers if (line := cleaned[number - 1]) is not None)


def _is_string(node: ast.AST) -> TypeGuard[ast.JoinedStr | ast.Constant]:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _comments(source: str, strings: Iterable[ast.AST]) -> Iterator[tuple[Position, Position]]:
    """Yield the start and the end of each comment.

    A source is tokenized, which takes ten times as long, only if a `#` is inside a string.
    """
    lines = source.split("\n")
    hashes = {number: line.index("#") for number, line in enumerate(lines, 1) if "#" in line}
    if hashes and any(_contains_hash(node, lines, hashes) for node in strings):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start, token.end
    else:
        yield from (((number, column), (number, len(lines[number - 1]))) for number, column in hashes.items())


def _contains_hash(node: Any, lines: list[str], hashes: Mapping[int, int]) -> bool:
    """Return whether a string contains the first `#` of a line; `hashes` gives their columns by line."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    inside = (number for number in range(start[0], end[0] + 1) if number in hashes)
    first, end = _in_characters(lines, *start), _in_characters(lines, *end)
    return any(first <= (number, hashes[number]) < end for number in inside)


def _docstrings(nodes: Iterable[ast.AST], lines: list[str]) -> Iterator[tuple[Position, Position]]:
    for node in nodes:
        if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not node.body:
            continue
        match node.body[0]:
            case ast.Expr(value=ast.Constant(value=str())) as first:
                start, end = (first.lineno, first.col_offset), (first.end_lineno, first.end_col_offset)
                yield _in_characters(lines, *start), _in_characters(lines, *end)  # pyright: ignore


def _in_characters(lines: list[str], line: int, offset: int) -> Position:
    """Return a position of `ast`, which counts bytes, in characters, as `tokenize` counts."""
    return line, len(lines[line - 1].encode()[:offset].decode())


def _cut(lines: list[str], start: Position, end: Position) -> None:
    (first, left), (last, right) = start, end
    head, tail = lines[first - 1][:left], lines[last - 1][right:]
    lines[first - 1] = head + (tail if first == last else "")
    for number in range(first + 1, last):
        lines[number - 1] = ""
    if last > first:
        lines[last - 1] = tail


def _tree(path: Path) -> ast.Module:
    return _parsed(path, path.stat().st_mtime_ns)


@cache
def _parsed(path: Path, _modified: int) -> ast.Module:
    try:
        return ast.parse(read_source(path))
    except SyntaxError as error:
        raise UserError(f"{path} is not Python: {error}.") from error
