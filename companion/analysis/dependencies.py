"""Which sources numbers and pictures come from, found by reading imports, and their digests.

Only what can change a result counts: comments, docstrings and blank lines do not. A figure file is read as two parts:
what `draw` needs is the picture's, everything else the numbers'. Re-exporting `__init__` files are looked through, not
followed: `from lib import attend` leads to `lib/attention.py` and to nothing else. An import of a whole package, `from
lib import icl`, counts everything that the package imports.
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

Part = Literal["numbers", "picture", "whole"]

# The modules of this package that can change the result of a task, a number, or a picture.
OF_TASKS = ("companion.authoring.tasks",)
OF_NUMBERS = (
    "companion.figures.table_io",
    "companion.authoring.tasks",
    "companion.authoring.publish",
    "companion.figures.schema",
    "companion.figures.record",
)
OF_PICTURES = ("companion.figures.rendering", "companion.figures.style")
MACHINE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Library:
    """The packages whose sources decide results, each with the folder that holds it."""

    places: tuple[tuple[str, Path], ...]

    @classmethod
    def at(cls, root: Path, packages: Iterable[str]) -> "Library":
        """The packages of a checkout. Raises a `UserError` if one is not there."""
        for package in packages:
            if not (root / package).is_dir():
                raise UserError(
                    f"[tool.companion] of {root / 'pyproject.toml'} names the package {package!r}, and there is no "
                    f"folder {root / package}."
                )
        return cls((*((package, root) for package in packages), (MACHINE.name, MACHINE.parent)))

    @classmethod
    def installed(cls, packages: Iterable[str]) -> "Library":
        """The packages as Python would import them here."""
        return cls((*((package, _home(package)) for package in packages), (MACHINE.name, MACHINE.parent)))

    def numbers_digests(self, modules: Iterable[str], machine: Sequence[str] = OF_NUMBERS) -> dict[str, str]:
        """For every source file that numbers computed by way of `modules` come from, the digest of its part.

        `machine` lists the files of this package that count.
        """
        return self._digests(self._closure([*modules, *machine], "numbers", machine))

    def picture_digest(self, figure: str) -> str:
        """Return the digest of everything that draws `figure`, a module.

        Its `draw`, its docstring, their imports, the style.
        """
        parts = self._digests(self._closure([figure, *OF_PICTURES], "picture", machine=OF_PICTURES))
        text = ast.get_docstring(_tree(self._file(figure))) or ""
        return digest("\n".join([*(f"{name} {value}" for name, value in parts.items()), text]).encode())[:16]

    def files(self, names: Iterable[str]) -> list[str]:
        """The source files behind modules or functions, this package's left out, as paths below their packages."""
        found = self._closure(names, "whole", machine=())
        return sorted({self._name(path) for path, _ in found if not path.is_relative_to(MACHINE)})

    def shown(self, figure: str, functions: Sequence[str]) -> list[str]:
        """What a reader is shown as the code of `figure`: the chapter's shared functions behind it, then its own.

        `functions` are those that the notebook calls. Both as dotted names, in the order of their files.
        """
        return [f"{module}.{name}" for module, name in self._in_order(self._behind(figure, functions)[0], figure)]

    def named(self, figure: str, functions: Sequence[str]) -> set[str]:
        """What that code takes from elsewhere, as it was imported: `lib.attend`, and whatever is below a module."""
        return {f"{module}.{name}" for module, name in self._behind(figure, functions)[1]}

    def _behind(self, figure: str, functions: Sequence[str]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """The chapter's own names that the code of a figure leads to, by module, and those of others it names."""
        chapter = figure.rpartition(".")[0]
        seen: set[tuple[str, str]] = set()
        beyond: set[tuple[str, str]] = set()
        pending = [(figure, own) for own in ("simulate", "numbers", "draw")]
        pending += [tuple(name.rpartition(".")[::2]) for name in functions]
        while pending:
            module, name = pending.pop()
            if not module.startswith(chapter):
                beyond.add((module, name))
                continue
            if (module, name) in seen or (path := self._find(module)) is None:
                continue
            tree = _tree(path)
            if name not in _bindings(tree):
                continue
            seen.add((module, name))
            pending += [(module, other) for other in _uses(tree, name)]
            pending += _used_elsewhere(tree, name)
        return seen, beyond

    def _in_order(self, seen: set[tuple[str, str]], figure: str) -> list[tuple[str, str]]:
        def place(found: tuple[str, str]) -> tuple[bool, str, int]:
            module, name = found
            return module == figure, module, _bindings(_tree(self._file(module)))[name].lineno

        shown = [found for found in seen if self._is_definition(*found) and not found[0].endswith(".parameters")]
        return sorted(shown, key=place)

    def _is_definition(self, module: str, name: str) -> bool:
        node = _bindings(_tree(self._file(module)))[name]
        return isinstance(node, ast.FunctionDef | ast.ClassDef)

    def _closure(self, names: Iterable[str], part: Part, machine: Sequence[str]) -> list[tuple[Path, Part]]:
        """Files and which part of each, reached from `names`; of this package those in `machine`, not followed."""
        machinery = {self._file(module) for module in machine}
        seen: dict[Path, Part] = {}
        pending = [path for name in names for path in self._of_dotted(name)]
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            if path.is_relative_to(MACHINE):
                if path in machinery:
                    seen[path] = "whole"
                continue
            seen[path] = part if _is_figure(_tree(path)) else "whole"
            pending.extend(self._imports(path, seen[path]))
        return sorted(seen.items())

    def _digests(self, found: list[tuple[Path, Part]]) -> dict[str, str]:
        # by name: the folders of this machine must not matter
        return dict(sorted((self._name(path), _part_digest(_tree(path), path, part)) for path, part in found))

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
        """`a.b` as a module, else as the name b of module a."""
        if self._find(name) is not None:
            yield from self._files_of(name, None)
        else:
            module, _, own = name.rpartition(".")
            yield from self._files_of(module, own)

    def _files_of(self, module: str, name: str | None) -> Iterator[Path]:
        """The files that `import module`, or `from module import name`, takes its content from."""
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
        found = (place.with_suffix(".py"), place / "__init__.py")
        return next((path for path in found if path.is_file()), None)

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
    """sha256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def tree(path: Path) -> ast.Module:
    """The program in a file, read once as long as the file stays as it is."""
    return _tree(path)


def imported_names(program: ast.Module) -> dict[str, str]:
    """What names that a file imports mean, as dotted names."""
    return _imported(program)


def own_names(program: ast.Module) -> set[str]:
    """The functions and classes that a file defines, and the values that it gives names to."""
    imports = {
        alias for node in program.body for alias in _bound(node) if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return set(_bindings(program)) - imports


def same_code(one: Path, other: Path, part: Part) -> bool:
    """Return whether two versions of a source are the same code: `part` of a figure's file, or all of another file."""
    if one.read_bytes() == other.read_bytes():
        return True
    trees = [_tree(path) for path in (one, other)]
    parts = [part if _is_figure(tree) else "whole" for tree in trees]
    if _part_digest(trees[0], one, parts[0]) != _part_digest(trees[1], other, parts[1]):
        return False
    return part == "numbers" or ast.get_docstring(trees[0]) == ast.get_docstring(trees[1])


def plain_code(source: str, keep: Sequence[ast.stmt] | None = None) -> str:
    """Python without comments, docstrings and blank lines; of the statements only those to `keep`.

    Positions decide, not `ast.unparse`, whose spelling differs between versions of Python.
    """
    return _of_lines(_cleaned(source, ast.parse(source)), keep)


def _home(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"[tool.companion] names the package {package!r}, which is not installed here.")
    return Path(next(iter(spec.submodule_search_locations))).resolve().parent


# Trees are read anew when their file changes, so what follows from one is remembered with it.
@cache
def _part_digest(tree: ast.Module, path: Path, part: Part) -> str:
    kept = None if part == "whole" else _statements(tree, part)
    return digest(_of_lines(_cleaned_file(tree, path), kept).encode())[:16]


@cache
def _cleaned_file(tree: ast.Module, path: Path) -> list[str | None]:
    return _cleaned(path.read_text(encoding="utf-8"), tree)


@cache
def _import_statements(tree: ast.Module, part: Part) -> list[ast.AST]:
    nodes = (node for statement in _statements(tree, part) for node in ast.walk(statement))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def _is_figure(tree: ast.Module) -> bool:
    return {"numbers", "draw"} <= set(_bindings(tree))


@cache
def _statements(tree: ast.Module, part: Part) -> list[ast.stmt]:
    """The top-level statements of one part of a file; a figure's parts share what both need."""
    if part == "whole":
        return tree.body
    always = [node for node in tree.body if not list(_bound(node))]
    roots = ["draw"] if part == "picture" else _public(tree) - {"draw"}
    kept = _reached(tree, {*roots, *_mentioned(tree, always)})
    return [node for node in tree.body if node in always or kept & set(_bound(node))]


def _public(tree: ast.Module) -> set[str]:
    """The functions and classes of a file that others may use, so that a notebook's steps may."""
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
    """Names of other modules that the definition of `name` uses, by way of the imports of its file."""
    imported, found = _imported(tree), []
    for node in ast.walk(_bindings(tree)[name]):
        match node:
            case ast.Attribute(value=ast.Name(id=alias), attr=attribute) if alias in imported:
                found.append((imported[alias], attribute))
            case ast.Name(id=alias) if alias in imported:
                module, _, own = imported[alias].rpartition(".")
                found.append((module, own))
    return found


@cache
def _uses(tree: ast.Module, name: str) -> list[str]:
    """The top-level names of a file that the definition of `name` mentions."""
    return sorted(_mentioned(tree, [node for node in tree.body if name in _bound(node)]) - {name})


def _mentioned(tree: ast.Module, nodes: Iterable[ast.AST]) -> set[str]:
    """The top-level names of a file that some of its statements mention."""
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
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


Position = tuple[int, int]


def _cleaned(source: str, tree: ast.Module) -> list[str | None]:
    """Return the lines of a source without comments and docstrings; None for a line of which nothing is left."""
    lines = source.split("\n")
    nodes = list(ast.walk(tree))
    strings = [node for node in nodes if _is_string(node)]
    docstrings = list(_docstrings(nodes, lines))
    # lines that end inside a string, where spaces and blank lines are content
    verbatim = {line for node in strings for line in range(node.lineno, node.end_lineno or node.lineno)}
    verbatim -= {line for (first, _), (last, _) in docstrings for line in range(first, last)}
    for start, end in sorted([*_comments(source, strings), *docstrings], reverse=True):
        _cut(lines, start, end)
    left = ((line if number in verbatim else line.rstrip(), number) for number, line in enumerate(lines, 1))
    return [line if line or number in verbatim else None for line, number in left]


def _of_lines(cleaned: Sequence[str | None], keep: Sequence[ast.stmt] | None) -> str:
    """The lines of the statements to keep, by default all."""
    kept = range(1, len(cleaned) + 1)
    if keep is not None:
        kept = sorted({number for node in keep for number in range(_first_line(node), (node.end_lineno or 0) + 1)})
    return "\n".join(line for number in kept if (line := cleaned[number - 1]) is not None)


def _is_string(node: ast.AST) -> TypeGuard[ast.JoinedStr | ast.Constant]:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _comments(source: str, strings: Iterable[ast.AST]) -> Iterator[tuple[Position, Position]]:
    """Each from its # to the end of the line.

    Token by token, which takes ten times as long, only where a # stands between the ends of a string.
    """
    lines = source.split("\n")
    found = {number: line.index("#") for number, line in enumerate(lines, 1) if "#" in line}
    if found and any(_may_hold(node, lines, found) for node in strings):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start, token.end
    else:
        yield from (((number, column), (number, len(lines[number - 1]))) for number, column in found.items())


def _may_hold(node: Any, lines: list[str], found: Mapping[int, int]) -> bool:
    """Whether one of the places `found`, columns by line, is where this string stands."""
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    inside = (number for number in range(start[0], end[0] + 1) if number in found)
    first, end = _in_characters(lines, *start), _in_characters(lines, *end)
    return any(first <= (number, found[number]) < end for number in inside)


def _docstrings(nodes: Iterable[ast.AST], lines: list[str]) -> Iterator[tuple[Position, Position]]:
    for node in nodes:
        if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not node.body:
            continue
        match node.body[0]:
            case ast.Expr(value=ast.Constant(value=str())) as first:
                start, end = (first.lineno, first.col_offset), (first.end_lineno, first.end_col_offset)
                yield _in_characters(lines, *start), _in_characters(lines, *end)  # pyright: ignore


def _in_characters(lines: list[str], line: int, offset: int) -> Position:
    """ast counts bytes, tokenize characters."""
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
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise UserError(f"{path} is not Python: {error}.") from error
