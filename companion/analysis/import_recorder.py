"""Copy the book's modules as a kernel imports them.

A source may be edited before a kernel imports it and restored afterwards. The copies show which version computed the
numbers. This module is an IPython extension, which the runner loads into a kernel before any module of the book.
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


def load_ipython_extension(_shell: Any) -> None:
    """Install the import hook if a runner started this kernel, and run the garbage collector less often."""
    startup.collect_seldom()
    if out := os.environ.get(OUT):
        sys.meta_path.insert(0, ImportRecorder(Path.cwd(), Path(out) / FOLDER))
