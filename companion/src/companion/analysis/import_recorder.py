"""Record which files of the book a kernel reads: copies of its modules, and the paths of all files.

A source may be edited before a kernel imports it and restored afterwards. The copies show which version computed the
numbers. The paths show whether the numbers depend on a file that is in no cache key. This module is an IPython
extension, which the runner loads into a kernel before any module of the book.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from companion.io import startup
from companion.project.paths import OUT

FOLDER = "imported"
# The file with the paths of the files that were read, one per line, relative to the root of the book.
READ = "read.txt"


class ImportRecorder(MetaPathFinder):
    """An import hook that copies every imported module below `root` to `folder`; it finds no module itself."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root, folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Copy the source of the module, and return None so that the next finder imports it."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.has_location and spec.origin and spec.origin.endswith(".py"):
            source = Path(spec.origin)
            in_book = source.is_relative_to(self.root) and not source.is_relative_to(sys.prefix)
            if in_book and self.folder.parent.is_dir():  # a killed runner's folder may have been removed
                copy = self.folder / source.relative_to(self.root)
                with suppress(OSError):  # an unreadable source raises its own error on import
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, copy)
        return None


class ReadRecorder:
    """An audit hook that writes the path of every file below `root` that is opened for reading to the file `log`.

    Files in hidden folders, in `__pycache__`, in the environment and in the folder of `log` are left out.
    """

    def __init__(self, root: Path, log: Path):
        self.root, self.log = f"{root}{os.sep}", log
        self.left_out = (f"{sys.prefix}{os.sep}", f"{sys.base_prefix}{os.sep}", f"{log.parent}{os.sep}")
        self.seen: set[str] = set()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record the file if `event` opens one; an error of this hook must not stop the computation."""
        if event == "open":
            with suppress(Exception):
                self._record(*arguments)

    def _record(self, file: Any, mode: str | None, flags: int) -> None:
        if isinstance(file, int) or flags & (os.O_WRONLY | os.O_RDWR):
            return
        path = os.path.abspath(os.fsdecode(file))
        if path in self.seen or not path.startswith(self.root) or path.startswith(self.left_out):
            return
        self.seen.add(path)
        place = path.removeprefix(self.root)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in place.split(os.sep))
        if not hidden and os.path.isfile(path):
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"{place}\n")


def load_ipython_extension(_shell: Any) -> None:
    """Install the two recorders if a runner started this kernel, and run the garbage collector less often."""
    startup.collect_seldom()
    if out := os.environ.get(OUT):
        sys.meta_path.insert(0, ImportRecorder(Path.cwd(), Path(out) / FOLDER))
        sys.addaudithook(ReadRecorder(Path.cwd(), Path(out) / READ))
