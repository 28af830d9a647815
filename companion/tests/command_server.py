"""Fork the commands of tests, and their kernels, from processes that have imported what they import.

A command needs up to a second of CPU to import its libraries, its kernel 1.5 seconds, Sphinx two, and the tests run
hundreds. A forked command is a process as well, with its arguments, environment, working folder, standard streams and
exit code. `Clone.python` decides which commands are forked.

As a script, this file is a server, `commands` or `kernels`, or a client. The client is `sys.executable` of forked
commands, so that the processes that they start are forked, too.
"""

import atexit
import gc
import importlib
import importlib.util
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "src"
KINDS = ("commands", "kernels")
# What commands import. The first module changes how others are imported.
MODULES = [
    *("companion.io.startup", "companion.cli", "companion.authoring.tasks", "companion.build.execution"),
    *("companion.build.plan", "companion.build.provisioner", "companion.build.redraw", "companion.build.task_cache"),
    *("companion.figures.comparison", "companion.figures.rendering", "companion.figures.thumbnails"),
    *("companion.runs.run_custom", "companion.runs.sweep", "companion.runs.verify", "companion.site.jupyter_book"),
    *("papermill", "psutil", "jupyter_client.manager", "matplotlib.pyplot", "PIL.Image"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
    *("snakemake.cli", "jupyter_book.cli.main", "jupyter_book.sphinx", "sphinx.cmd.build", "companion.site.sphinx"),
    *("myst_nb", "sphinx_book_theme", "sphinx_design", "sphinx_proof", "sphinxcontrib.bibtex"),
]
# What kernels import: as in a build, no module of `companion`.
PACKAGES = [
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.pyplot"),
    *("numpy", "pandas", "PIL.Image", "pydantic", "seaborn"),
]
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
PROGRAMS = ("companion", "snakemake")
LONGEST = 2**20


# --- in the process of the tests, and in clients ----------------------------------------------------------


@cache
def folder() -> Path:
    """Start the servers; return the folder of their sockets, named `commands` and `kernels`, and of the client."""
    path = Path(tempfile.mkdtemp(prefix="companion-tests-", dir="/tmp"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    client = shlex.join([sys.executable, "-SE", __file__, "client", str(path), sys.executable])
    (path / "python").write_text(f'#!/bin/sh\nexec {client} "$@"\n', encoding="utf-8")
    (path / "python").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"MPLBACKEND": "agg"}
    for kind in KINDS:
        command = [sys.executable, "-P", __file__, kind, str(path)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        atexit.register(server.communicate)  # it ends when its standard input is closed
        while not (path / kind).exists():
            assert server.poll() is None
            time.sleep(0.02)
    return path


def run(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in a forked process, with the result that `subprocess.run` would return."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code = _wait(folder(), arguments, environment, cwd, [output.fileno(), errors.fileno()])
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess([sys.executable, *arguments], code, *texts)


def can_fork(arguments: Sequence[str]) -> bool:
    """Return whether a server can fork `python ARGUMENTS`."""
    first, *others = [*arguments, "", ""]
    return (first == "-m" and others[0] in PROGRAMS) or (first == "-c" and others[0].endswith(JUPYTER_BOOK))


def _wait(place: Path, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, output: list[int]) -> int:
    """Request a forked process, and return its exit code."""
    request = {"arguments": [*arguments], "environment": dict(environment), "folder": str(cwd)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        connection.connect(str(place / "commands"))
        socket.send_fds(connection, [json.dumps(request).encode()], output)
        connection.recv(LONGEST)  # its number
        return int(connection.recv(LONGEST))


def _client(place: str, python: str, *arguments: str) -> None:
    """Run `python ARGUMENTS`: forked, if a server can do it."""
    if not can_fork(arguments):
        os.execv(python, [python, *arguments])
    code = _wait(Path(place), arguments, os.environ, Path.cwd(), [1, 2])
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


# --- server -----------------------------------------------------------------------------------------------


def _server(kind: str, place: str) -> None:
    """Import the modules, then fork for every request; only the forked processes return from `serve`."""
    path = [*sys.path]
    sys.path.insert(0, str(SOURCES))
    package = importlib.util.find_spec("companion")
    assert package is not None
    assert package.origin is not None
    sys.path.append(str(Path(package.origin).with_name("build")))
    # not as a module of `companion`, all of which a kernel imports itself
    fork_server: Any = importlib.import_module("fork_server")
    address, hidden = Path(place, kind), Path(place, f".{kind}")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(hidden))
    listener.listen(64)
    if kind == "commands":
        sys.executable = str(Path(place, "python"))
        importlib.import_module("companion.io.startup").skip_grammar_of_addresses()
    for name in MODULES if kind == "commands" else [*fork_server.KERNEL, *PACKAGES]:
        with suppress(ImportError):  # what needs it reports the error
            importlib.import_module(name)
    gc.freeze()
    hidden.rename(address)
    request = fork_server.serve(listener)
    if request is None:
        return
    searched = request[1]["environment"].get("PYTHONPATH", "")
    sys.path[:] = [*filter(None, searched.split(os.pathsep)), *path]
    if kind == "commands":
        _become(*request)
    else:
        fork_server.become(*request)


def _become(connection: socket.socket, request: Mapping[str, Any], handles: list[int]) -> None:
    """Turn this process into the requested command."""
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate([nothing, *handles]):
        os.dup2(handle, number)
        os.close(handle)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    option, program, *arguments = request["arguments"]
    sys.path.insert(0, request["folder"] if option == "-m" else "")
    sys.argv = [program if option == "-m" else option, *arguments]
    if option == "-c":
        exec(program, {"__name__": "__main__"})
    else:
        importlib.import_module("snakemake.cli" if program == "snakemake" else "companion.__main__").main()


def _end_with(connection: socket.socket) -> None:
    """End this process as soon as the client has ended."""
    connection.recv(1)
    os._exit(1)


if __name__ == "__main__":
    what, *options = sys.argv[1:]
    if what == "client":
        _client(*options)
    else:
        _server(what, *options)
