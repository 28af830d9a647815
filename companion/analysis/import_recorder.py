"""Copies of the book's modules as a kernel imports them.

A source that is edited before a kernel imports it, and put back after, leaves its numbers and no other trace. This is
an extension of IPython, which the runner loads into its kernels before anything of the book.
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
    """Finds nothing itself; of each module that is found below `root` it leaves a copy in `folder`, as below `root`."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root, folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None, so that others find the module."""
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and found.has_location and found.origin and found.origin.endswith(".py"):
            source = Path(found.origin)
            ours = source.is_relative_to(self.root) and not source.is_relative_to(sys.prefix)
            if ours and self.folder.parent.is_dir():  # else the runner was killed, and the next one has cleaned up
                kept = self.folder / source.relative_to(self.root)
                with suppress(OSError):  # whoever imports the module will say so
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, kept)
        return None


def load_ipython_extension(_shell: Any) -> None:
    """Keep what is imported from here on where the runner asked for results; traces of programs are kept, too."""
    startup.collect_seldom()
    if out := os.environ.get(OUT):
        sys.meta_path.insert(0, ImportRecorder(Path.cwd(), Path(out) / FOLDER))
