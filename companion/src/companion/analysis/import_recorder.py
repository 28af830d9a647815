"""Record which files of the book a kernel reads, which shows whether its numbers depend on a file in no cache key.

This module is an IPython extension, which the runner loads into a kernel before any module of the book.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from companion.io import startup
from companion.project.paths import OUT

# The file with the paths of the files that were read, one per line, relative to the root of the book.
READ = "read.txt"


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
    """Install the recorder if a runner started this kernel, and run the garbage collector less often."""
    startup.collect_seldom()
    if out := os.environ.get(OUT):
        sys.addaudithook(ReadRecorder(Path.cwd(), Path(out) / READ))
