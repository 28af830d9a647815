"""One content key decides what is stale, for `companion list` and for Snakemake alike.

A target's key is the digest of everything it is made from. Building it leaves a stamp file that bears the key in
its name; the target is fresh exactly when the stamp of the present key exists and the files it lists are intact.
"""

import json
from pathlib import Path
from typing import Any

from companion import sources
from companion.atomic import dump_json, write_text
from companion.house import Build, House, relative
from companion.notebooks import Notebook
from companion.parameters import resolve

BOOK = "book"


def notebook_key(house: House, name: str, profile: str) -> str:
    """Parameters, the notebook, the source files it uses, its tracked data, the lock."""
    notebook = Notebook.named(house, name)
    return _key(
        {
            "parameters": resolve(house, notebook, profile),
            "notebook": sources.digest(notebook.path.read_bytes()),
            "sources": sources.digests(house.root, sources.source_files(house.root, name)),
            "data": tree_digests(house.data(name), house.root),
            "lock": sources.digest(house.lock.read_bytes()),
        }
    )


def book_key(house: House, profile: str) -> str:
    """Every notebook's key, every page, the configuration, the extension that renders figures."""
    pages = [
        house.root / "_config.yml",
        house.root / "_toc.yml",
        *_files(house.book),
        *_files(house.machine),
    ]
    return _key(
        {
            "notebooks": {name: notebook_key(house, name, profile) for name in house.notebooks()},
            "pages": {relative(page, house.root): sources.digest(page.read_bytes()) for page in pages},
            # every lib file may be shown on a page, also those no notebook computes with
            "shown": tree_digests(house.root / "lib", house.root),
        }
    )


def stamp(house: House, target: str, profile: str) -> Path:
    """The file that exists exactly when `target`, a notebook or `BOOK`, was built from what is there now."""
    key = book_key(house, profile) if target == BOOK else notebook_key(house, target, profile)
    return house.build(profile).stamps / f"{target}.{key}.json"


def is_fresh(house: House, target: str, profile: str) -> bool:
    """Whether building `target` would change nothing."""
    return _intact(house, stamp(house, target, profile))


def discard_damaged(house: House, profile: str) -> None:
    """Remove the stamps of targets whose files were removed or altered, so that they are built again."""
    for path in house.build(profile).stamps.glob("*.json"):
        if not _intact(house, path):
            path.unlink(missing_ok=True)


def forget(build: Build, target: str) -> None:
    """Remove every stamp of `target`: its files are about to change."""
    for path in build.stamps.glob(f"{target}.*.json"):
        path.unlink(missing_ok=True)


def leave_stamp(house: House, path: Path, files: list[Path]) -> None:
    """Write the stamp of a target that consists of `files`, and nothing after it."""
    contents = {relative(file, house.root): sources.digest(file.read_bytes()) for file in files}
    write_text(path, dump_json(contents))


def _intact(house: House, path: Path) -> bool:
    try:
        contents: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        return all(sources.digest((house.root / name).read_bytes()) == digest for name, digest in contents.items())
    except (OSError, json.JSONDecodeError):
        return False


def _key(content: dict[str, Any]) -> str:
    return sources.digest(dump_json(content).encode())[:16]


def tree_digests(folder: Path, root: Path) -> dict[str, str]:
    """For every file below `folder`, its sha256."""
    return {relative(path, root): sources.digest(path.read_bytes()) for path in _files(folder)}


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
    )
