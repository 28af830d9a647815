"""What a notebook's cells do, read as a program: which steps lead to a figure, and which functions they call."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PUBLISH = "publish"


@dataclass(frozen=True)
class Steps:
    """The statements behind one figure, in order, its `publish(…)` last, and the functions that they name."""

    lines: list[str]
    functions: list[str]


def without_magics(source: str) -> str:
    """A cell without its magics, which are no Python."""
    return "\n".join("" if line.startswith(("%", "!")) else line for line in source.splitlines())


def parse(source: str) -> ast.Module:
    """A cell as a program."""
    return ast.parse(without_magics(source))


def published(cells: Sequence[str]) -> list[str]:
    """The figures that the cells publish, in order: the first arguments of `publish(FIGURE, …)`."""
    found = (_figure(node) for cell in cells if PUBLISH in cell for node in ast.walk(parse(cell)))
    return [name for name in found if name]


def modules(cells: Sequence[str]) -> list[str]:
    """Everything that the cells import, as dotted names: `from a import b` may be the module or the name `a.b`."""
    return sorted(set(_imports([node for cell in cells for node in ast.walk(parse(cell))]).values()))


def behind(cells: Sequence[str], figure: str, packages: Sequence[str]) -> Steps:
    """The steps that lead to the last `publish(figure, …)`; of the functions those that belong to `packages`."""
    statements = [statement for cell in cells for statement in _tolerant(cell)]
    imported = _imports(statements)
    last = max((i for i, node in enumerate(statements) if figure in map(_figure, ast.walk(node))), default=None)
    if last is None:
        return Steps([], [])
    kept, needed = [statements[last]], set(_names(statements[last]))
    for statement in reversed(statements[:last]):
        if needed & (bound := set(_bound(statement))):
            if not isinstance(statement, ast.AugAssign):  # which adds to what was there
                needed -= bound
            needed |= set(_names(statement))
            kept.append(statement)
    kept.reverse()
    functions = [name for statement in kept for name in _functions(statement, imported)]
    mine = [name for name in dict.fromkeys(functions) if name.split(".")[0] in packages]
    return Steps([ast.unparse(statement) for statement in kept], mine)


def only(cells: Sequence[str], figure: str) -> list[str]:
    """The cells with nothing that `figure` does not need, empty where nothing is left.

    Left out are assignments that do not lead to its last `publish(figure, …)`, what publishes other figures, and all
    that comes later. What is neither (imports, calls for their effect) stays, with what it needs.
    """
    places = [(cell, node) for cell, source in enumerate(cells) for node in parse(source).body]
    last = max(i for i, (_, node) in enumerate(places) if figure in map(_figure, ast.walk(node)))
    kept, needed = {last}, {PUBLISH, *_names(places[last][1])}
    for i, (_, node) in reversed(list(enumerate(places[:last]))):
        bound = set(_bound(node))
        if (bound and not needed & bound) or any(map(_figure, ast.walk(node))):
            continue
        if not isinstance(node, ast.AugAssign):
            needed -= bound
        needed |= set(_names(node))
        kept.add(i)
    lines: list[dict[bool, set[int]]] = [{True: set(), False: set()} for _ in cells]
    for i, (cell, node) in enumerate(places):
        lines[cell][i in kept] |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return [
        _without(source, found[False] - found[True]) if found[True] else ""
        for source, found in zip(cells, lines, strict=True)
    ]


def _without(source: str, lines: set[int]) -> str:
    return "\n".join(line for number, line in enumerate(source.splitlines(), 1) if number not in lines)


def _tolerant(cell: str) -> list[ast.stmt]:
    try:
        return parse(cell).body
    except SyntaxError:  # what somebody typed beside the notebook's own cells is not ours to read
        return []


def _figure(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id="publish"), args=[ast.Name(id=figure), *_]):
            return figure
        case ast.Call(func=ast.Name(id="publish"), args=[ast.Attribute(attr=figure), *_]):
            return figure
    return None


def _imports(statements: Sequence[ast.AST]) -> dict[str, str]:
    imported = {}
    for node in statements:
        match node:
            case ast.Import(names=names):
                imported |= {alias.asname or alias.name: alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
    return imported


def _bound(statement: ast.stmt) -> Iterator[str]:
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
    """Dotted names of what is called or named by way of an import, in order of the text."""
    attributes = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in imported:
                yield f"{imported[name]}.{attribute}"
            case ast.Name(id=name) if name in imported and id(node) not in attributes and name != PUBLISH:
                yield imported[name]
