"""Program slicing of notebook cells: which statements lead to a figure, and which functions they call."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from companion.io.errors import UserError

PUBLISH = "publish"


@dataclass(frozen=True)
class Steps:
    """The statements that lead to one figure, its `publish(…)` last, and the functions that they name."""

    lines: list[str]
    functions: list[str]


def without_magics(source: str) -> str:
    """Return a cell with empty lines in place of IPython magics and shell commands, so that it parses as Python."""
    return "\n".join("" if line.startswith(("%", "!")) else line for line in source.splitlines())


@cache
def parse(source: str) -> ast.Module:
    """Return the syntax tree of a cell, which callers must not change. Raise a `UserError` if it is not Python."""
    try:
        return ast.parse(without_magics(source))
    except SyntaxError as error:
        raise UserError(f"A code cell of a notebook is not plain Python ({error}):\n{source}") from error


def published_figures(cells: Sequence[str]) -> list[str]:
    """Return the figures that the cells publish, in order: the first arguments of `publish(FIGURE, …)`."""
    figures = (_figure(node) for cell in cells if PUBLISH in cell for node in ast.walk(parse(cell)))
    return [figure for figure in figures if figure]


def publishes_claims(cells: Sequence[str]) -> bool:
    """Return whether a cell publishes claims of the notebook, by `publish.claims(…)`."""
    return any(_is_claims(node) for cell in cells if PUBLISH in cell for node in ast.walk(parse(cell)))


def modules(cells: Sequence[str]) -> list[str]:
    """Return all imports of the cells as dotted names, sorted; `from a import b` gives `a.b`."""
    return sorted(set(imports([node for cell in cells for node in ast.walk(parse(cell))]).values()))


def steps_of(cells: Sequence[str], figure: str, packages: Sequence[str]) -> Steps:
    """Return the statements that lead to the last `publish(figure, …)`, and the functions of `packages` they use.

    Without such a call, both lists are empty.
    """
    statements = [statement for cell in cells for statement in parse(cell).body]
    imported = imports(statements)
    steps = [statements[i] for i in _leading_to(statements, figure)]
    used = dict.fromkeys(name for statement in steps for name in _functions(statement, imported))
    functions = [name for name in used if name.split(".")[0] in packages]
    return Steps([ast.unparse(statement) for statement in steps], functions)


def reduced_cells(cells: Sequence[str], figure: str) -> list[str]:
    """Return the cells reduced to the code that `figure` needs; a cell without such code becomes an empty string.

    The function removes assignments that do not lead to the last `publish(figure, …)`, statements that publish other
    figures or claims, and all later statements. It keeps imports and calls for their effect, with everything they need.
    """
    statements = [(cell, node) for cell, source in enumerate(cells) for node in parse(source).body]
    needed = set(_leading_to([node for _, node in statements], figure, with_effects=True))
    lines: list[dict[bool, set[int]]] = [{True: set(), False: set()} for _ in cells]
    for i, (cell, node) in enumerate(statements):
        lines[cell][i in needed] |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return [
        _without_lines(source, of_cell[False] - of_cell[True]) if of_cell[True] else ""
        for source, of_cell in zip(cells, lines, strict=True)
    ]


def _leading_to(statements: Sequence[ast.stmt], figure: str, *, with_effects: bool = False) -> list[int]:
    """Return the positions of the last `publish(figure, …)` and of the statements whose values it uses.

    With `with_effects`, those that assign nothing are among them, unless they publish something else.
    """
    last = max((i for i, node in enumerate(statements) if figure in map(_figure, ast.walk(node))), default=None)
    if last is None:
        return []
    kept, needed = [last], {*_names(statements[last]), *([PUBLISH] if with_effects else [])}
    for i, node in reversed(list(enumerate(statements[:last]))):
        bound = set(assigned(node))
        if needed & bound or (with_effects and not bound and not _publishes(node)):
            if not isinstance(node, ast.AugAssign):  # an augmented assignment reads the earlier value
                needed -= bound
            needed |= set(_names(node))
            kept.append(i)
    return kept[::-1]


def _publishes(statement: ast.stmt) -> bool:
    return any(_figure(part) or _is_claims(part) for part in ast.walk(statement))


def _without_lines(source: str, lines: set[int]) -> str:
    return "\n".join(line for number, line in enumerate(source.splitlines(), 1) if number not in lines)


def _figure(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id="publish"), args=[ast.Name(id=figure), *_]):
            return figure
        case ast.Call(func=ast.Name(id="publish"), args=[ast.Attribute(attr=figure), *_]):
            return figure
    return None


def _is_claims(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="publish"), attr="claims")):
            return True
    return False


def imports(statements: Sequence[ast.AST]) -> dict[str, str]:
    """Return the dotted name behind each name that the absolute imports among the statements bind."""
    imported = {}
    for node in statements:
        match node:
            case ast.Import(names=names):
                imported |= {alias.asname or alias.name: alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
    return imported


def assigned(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that an assignment binds."""
    match statement:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            yield name


def _names(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != PUBLISH:
            yield node.id


def _functions(statement: ast.stmt, imported: dict[str, str]) -> Iterator[str]:
    """Yield the dotted names of the imported functions that the statement mentions, in the order of the text."""
    attributes = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in imported:
                yield f"{imported[name]}.{attribute}"
            case ast.Name(id=name) if name in imported and id(node) not in attributes and name != PUBLISH:
                yield imported[name]
