"""Writing so that a kill at any moment leaves the old file or the new one, and a folder wholly old or wholly new."""

import ctypes
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def write_text(path: Path, text: str) -> None:
    """`write_bytes`, in UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, in one step."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A hidden file to write into, renamed to `path` on leaving; removed, and `path` left alone, if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, hidden = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.chmod(hidden, 0o644)
        os.replace(hidden, path)
    except BaseException:
        os.unlink(hidden)
        raise


def dump_json(value: Any) -> str:
    """The one way JSON is written here: indented, strict, in the order given, ending in a newline."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def replace_folder(new: Path, target: Path) -> None:
    """Put folder `new` in the place of `target`, whatever that is, in one step; `new` is gone afterwards.

    Linux exchanges two folders in one system call. Elsewhere files are renamed one by one, every `.json` last, so
    that a set whose JSON does not match its siblings is seen to be mixed. From another file system `new` is copied
    first, into a hidden folder beside `target`. Where `target` is a link, what it leads to is left alone.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _rename_folder(new, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with staging_folder(target.parent, f".{target.name}") as staging:
            _rename_folder(Path(shutil.copytree(new, staging / target.name)), target)
        shutil.rmtree(new)


def _rename_folder(new: Path, target: Path) -> None:
    if not os.path.lexists(target):
        os.rename(new, target)
    elif _exchange(new, target):
        _remove(new)
    elif target.is_dir() and not target.is_symlink():
        _replace_one_by_one(new, target)
        shutil.rmtree(new)
    else:
        target.unlink()
        os.rename(new, target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _exchange(one: Path, other: Path) -> bool:
    """Whether the two could change places; raises where they never can, being on two file systems."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done = renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0
    if not done and ctypes.get_errno() == errno.EXDEV:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(one), None, str(other))
    return done


def _replace_one_by_one(new: Path, target: Path) -> None:
    arriving = sorted(new.iterdir(), key=lambda path: (path.suffix == ".json", path.name))
    leaving = {path.name for path in target.iterdir()} - {path.name for path in arriving}
    for name in sorted(leaving, key=lambda name: not name.endswith(".json")):
        (target / name).unlink()
    for path in arriving:
        os.replace(path, target / path.name)


@contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Hold an exclusive lock on `path`, released by the kernel however the process ends; say `waiting` if taken."""
    from filelock import FileLock, Timeout  # a notebook run by hand locks nothing

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)  # a lock that only its file marks would outlive a kill
    try:
        lock.acquire(blocking=False)
    except Timeout:
        print(waiting, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def if_free(path: Path) -> Iterator[bool]:
    """Hold the lock `path` if it is there and nobody holds it: whether that is so. Who held it last is dead or done."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, fallback_to_soft=False)
    try:
        free = path.is_file()
        if free:
            lock.acquire(blocking=False)
    except (Timeout, OSError):
        free = False
    try:
        yield free
    finally:
        lock.release()


@contextmanager
def announced(path: Path) -> Iterator[None]:
    """While inside, `path` exists and names this process: how others learn what is running."""
    write_text(path, dump_json({"pid": os.getpid()}))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def alive(folder: Path) -> list[str]:
    """What processes of this machine have announced in `folder` and are still at."""
    found = []
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        try:
            os.kill(json.loads(path.read_text(encoding="utf-8"))["pid"], 0)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found.append(path.name)
    return found


@contextmanager
def staging_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A fresh folder below `parent`, removed at the end, after removing what killed runs of `prefix` left.

    Callers hold the lock of `prefix`, so whatever bears it is dead.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for dead in parent.glob(f"{prefix}-*"):
        remove_folder(dead)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=parent))
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_folder(path: Path) -> None:
    """Remove a folder into which a killed run's kernel may write for another second: it goes by a name nobody knows."""
    gone = path.with_name(f".{path.name}")
    with suppress(OSError):
        path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
