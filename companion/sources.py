"""Which source files a notebook's numbers and pictures come from, found by reading imports.

Re-exporting `__init__` files are looked through, not followed: `from lib import attend` leads to
`lib/attention.py` and to nothing else, so that editing one module leaves the notebooks of others fresh.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from companion.house import relative
from companion.mistakes import Mistake

PACKAGES = ("lib", "companion")
PUBLISHING = "companion.publishing"


def source_files(root: Path, name: str) -> list[str]:
    """The files behind notebook `name`, relative to `root`: its experiment, its plots, publishing, all they import."""
    return sorted({*science_files(root, name), *_closure(root, [PUBLISHING])})


def science_files(root: Path, name: str) -> list[str]:
    """Those of `source_files` that decide what a figure says: its experiment, its plots, and all they import."""
    return _closure(root, [f"lib.experiments.{name}", f"lib.plotting.{name}"])


def digests(root: Path, files: list[str]) -> dict[str, str]:
    """For every one of `files`, the start of its sha256."""
    return {path: digest((root / path).read_bytes())[:16] for path in files}


def digest(content: bytes) -> str:
    """sha256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _closure(root: Path, roots: list[str]) -> list[str]:
    seen: set[str] = set()
    pending = [path for module in roots for path in _files_of(root, module, None)]
    while pending:
        path = pending.pop()
        if (key := relative(path, root)) not in seen:
            seen.add(key)
            pending.extend(_imports(root, path))
    return sorted(seen)


def _imports(root: Path, path: Path) -> Iterator[Path]:
    for node in ast.walk(_tree(path, path.stat().st_mtime_ns)):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _files_of(root, alias.name, None)
            case ast.ImportFrom(module=module, names=names, level=level):
                if level:
                    package = path.relative_to(root).parts[:-level]
                    module = ".".join((*package, *([module] if module else [])))
                for alias in names:
                    yield from _files_of(root, module or "", alias.name)


def _files_of(root: Path, module: str, name: str | None) -> Iterator[Path]:
    """The files that `import module`, or `from module import name`, takes its content from."""
    if module.split(".", maxsplit=1)[0] not in PACKAGES:
        return
    place = root.joinpath(*module.split("."))
    if place.with_suffix(".py").is_file():
        yield place.with_suffix(".py")
    elif (init := place / "__init__.py").is_file():
        if name is None:
            return
        for node in _tree(init, init.stat().st_mtime_ns).body:
            if isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        yield from _files_of(root, node.module or "", alias.name)
                        return
        if (place / f"{name}.py").is_file() or (place / name).is_dir():
            yield from _files_of(root, f"{module}.{name}", None)
        else:
            yield init


@cache
def _tree(path: Path, _modified: int) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise Mistake(f"{path} is not Python: {error}.") from error
