"""Program slicing of notebook cells: which statements lead to a figure, and which functions they call."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PUBLISH = "publish"
# Cell magics whose cell is Python; the cell of every other one (`%%bash`, `%%writefile`) is not.
PYTHON_MAGICS = ("%%capture", "%%prun", "%%time", "%%timeit")


@dataclass(frozen=True)
class Steps:
    """The statements that lead to one figure, its `publish(…)` last, and the functions that they name."""

    lines: list[str]
    functions: list[str]


def in_other_language(source: str) -> bool:
    """Return whether a cell begins with a cell magic after which there is no Python, such as `%%bash`."""
    first = next((line.split()[0] for line in source.splitlines() if line.strip()), "")
    return first.startswith("%%") and first not in PYTHON_MAGICS


def without_magics(source: str) -> str:
    """Return a cell without IPython magics, so that it parses as Python; nothing is left of another language."""
    if in_other_language(source):
        return ""
    return "\n".join("" if line.startswith(("%", "!")) else line for line in source.splitlines())


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a cell."""
    return ast.parse(without_magics(source))


def published_figures(cells: Sequence[str]) -> list[str]:
    """Return the figures that the cells publish, in order: the first arguments of `publish(FIGURE, …)`."""
    figures = (_figure(node) for cell in cells if PUBLISH in cell for node in ast.walk(parse(cell)))
    return [figure for figure in figures if figure]


def publishes_claims(cells: Sequence[str]) -> bool:
    """Return whether a cell publishes claims of the notebook, by `publish.claims(…)`."""
    return any(_is_claims(node) for cell in cells if PUBLISH in cell for node in ast.walk(parse(cell)))


def modules(cells: Sequence[str]) -> list[str]:
    """Return all imports of the cells as dotted names, sorted; `from a import b` gives `a.b`."""
    return sorted(set(_imports([node for cell in cells for node in ast.walk(parse(cell))]).values()))


def steps_of(cells: Sequence[str], figure: str, packages: Sequence[str]) -> Steps:
    """Return the statements that lead to the last `publish(figure, …)`, and the functions of `packages` they use.

    Without such a call, both lists are empty. Cells that are not Python are ignored.
    """
    statements = [statement for cell in cells for statement in _statements(cell)]
    imported = _imports(statements)
    last = max((i for i, node in enumerate(statements) if figure in map(_figure, ast.walk(node))), default=None)
    if last is None:
        return Steps([], [])
    steps, needed = [statements[last]], set(_names(statements[last]))
    for statement in reversed(statements[:last]):
        if needed & (bound := set(_bound(statement))):
            if not isinstance(statement, ast.AugAssign):  # an augmented assignment reads the earlier value
                needed -= bound
            needed |= set(_names(statement))
            steps.append(statement)
    steps.reverse()
    used = dict.fromkeys(name for statement in steps for name in _functions(statement, imported))
    functions = [name for name in used if name.split(".")[0] in packages]
    return Steps([ast.unparse(statement) for statement in steps], functions)


def reduced_cells(cells: Sequence[str], figure: str) -> list[str]:
    """Return the cells reduced to the code that `figure` needs; a cell without such code becomes an empty string.

    The function removes assignments that do not lead to the last `publish(figure, …)`, statements that publish other
    figures or claims, and all later statements. It keeps imports and calls for their effect, with everything they need,
    and earlier cells of another language (`%%bash`), whose effect is unknown.
    """
    statements = [(cell, node) for cell, source in enumerate(cells) for node in parse(source).body]
    last = max(i for i, (_, node) in enumerate(statements) if figure in map(_figure, ast.walk(node)))
    kept, needed = {last}, {PUBLISH, *_names(statements[last][1])}
    for i, (_, node) in reversed(list(enumerate(statements[:last]))):
        bound = set(_bound(node))
        if (bound and not needed & bound) or any(_figure(part) or _is_claims(part) for part in ast.walk(node)):
            continue
        if not isinstance(node, ast.AugAssign):
            needed -= bound
        needed |= set(_names(node))
        kept.add(i)
    lines: list[dict[bool, set[int]]] = [{True: set(), False: set()} for _ in cells]
    for i, (cell, node) in enumerate(statements):
        lines[cell][i in kept] |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    last_cell = statements[last][0]
    return [
        source
        if cell < last_cell and in_other_language(source)
        else _without_lines(source, of_cell[False] - of_cell[True])
        if of_cell[True]
        else ""
        for cell, (source, of_cell) in enumerate(zip(cells, lines, strict=True))
    ]


def _without_lines(source: str, lines: set[int]) -> str:
    return "\n".join(line for number, line in enumerate(source.splitlines(), 1) if number not in lines)


def _statements(cell: str) -> list[ast.stmt]:
    """Return the statements of a cell, none if it is not Python."""
    try:
        return parse(cell).body
    except SyntaxError:  # an unfinished cell that a user typed into the notebook
        return []


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
    """Yield the dotted names of the imported functions that the statement mentions, in the order of the text."""
    attributes = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in imported:
                yield f"{imported[name]}.{attribute}"
            case ast.Name(id=name) if name in imported and id(node) not in attributes and name != PUBLISH:
                yield imported[name]
