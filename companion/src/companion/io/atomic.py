"""Atomic writes and locks: a process killed at any moment leaves the old file or the new one, never a mixture."""

import errno
import glob
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically, in UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a hidden file that is renamed to `path` on exit.

    If an exception leaves the block, the hidden file is removed and `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # the permissions are those of any new file, which the umask decides; `tempfile` would let only its owner read it
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.replace(hidden, path)
    except BaseException:
        os.unlink(hidden)
        raise


def dump_json(value: Any) -> str:
    """Return `value` as JSON: indented, without NaN and infinities, keys in the given order, final newline."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def replace_folder(new: Path, target: Path) -> None:
    """Move folder `new` to `target`, replacing what exists there.

    Files are renamed one by one, every `.json` last, so that an interrupted exchange is visible: the checksums in the
    JSON do not match its siblings. A folder on another file system is first copied into a hidden folder next to
    `target`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _move_folder(new, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with staging_folder(target.parent, f".{target.name}") as staging:
            _move_folder(Path(shutil.copytree(new, staging / target.name)), target)
        shutil.rmtree(new)


def _move_folder(new: Path, target: Path) -> None:
    if not target.is_dir():
        os.rename(new, target)
        return
    added = sorted(new.iterdir(), key=lambda path: (path.suffix == ".json", path.name))
    removed = {path.name for path in target.iterdir()} - {path.name for path in added}
    for path in added:
        os.replace(path, target / path.name)
    for name in sorted(removed, key=lambda name: not name.endswith(".json")):
        (target / name).unlink()
    new.rmdir()


@contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Hold an exclusive lock on `path`; print `waiting` if another process holds it.

    The operating system releases the lock however the process ends.
    """
    from filelock import FileLock  # imported here: a notebook run by hand needs no lock

    path.parent.mkdir(parents=True, exist_ok=True)
    with if_free(path) as free:
        if free:
            yield
            return
    print(waiting, flush=True)
    with FileLock(path, fallback_to_soft=False):  # a soft lock would survive a killed process
        yield


@contextmanager
def if_free(path: Path) -> Iterator[bool]:
    """Try to hold the lock file `path`; yield whether it was free.

    If it was free, the process that held it last has ended.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, fallback_to_soft=False)
    with suppress(Timeout):
        lock.acquire(blocking=False)
    try:
        yield lock.is_locked
    finally:
        lock.release()


@contextmanager
def staging_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a temporary folder below `parent` and remove it on exit.

    Folders of the same `prefix` that killed processes left are removed first. The caller holds the lock of `prefix`,
    so no running process uses them.
    """
    parent.mkdir(parents=True, exist_ok=True)
    # the rest of the name has eight characters without a hyphen: the folders of the prefix `a-b` do not match `a`
    pattern = f"{glob.escape(prefix)}-{'[a-z0-9_]' * 8}"
    for unfinished in (*parent.glob(pattern), *parent.glob(f".{pattern}")):
        remove_folder(unfinished)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=parent))
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(path: Path) -> None:
    """Remove a folder, even if a terminating kernel still writes into it: rename the folder, then remove it."""
    renamed = path if path.name.startswith(".") else path.with_name(f".{path.name}")
    with suppress(OSError):
        path.rename(renamed)
    shutil.rmtree(renamed, ignore_errors=True)
