"""Fork server: start kernels by forking a process that has already imported the heavy packages.

A kernel needs two seconds to import JAX, matplotlib and the rest, and a build of twenty notebooks needs them twenty
times. Therefore a build starts this file as a separate process, which imports the packages that the book lists under
`preload`, and no module of the book. A run of a notebook then requests a forked kernel instead of starting one.

This file uses only the standard library and imports no module of `companion`: each kernel imports the present version
of those itself. Fork servers exist only on Linux: elsewhere the state of an imported library may not survive a fork.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

# Environment variable: the socket of the fork server.
FORK_SERVER = "COMPANION_FORK_SERVER"
LAUNCHER = ["-m", "ipykernel_launcher"]
# Modules that every kernel imports.
KERNEL = ["ipykernel.kernelapp", "ipykernel.zmqshell", "matplotlib_inline.backend_inline"]
LONGEST = 2**20


# --- client -----------------------------------------------------------------------------------------------


class Kernel:
    """A forked kernel with the part of the interface of `subprocess.Popen` that Jupyter uses.

    The kernel ends when this process ends, or earlier.
    """

    stdin = stdout = stderr = None

    def __init__(self, connection: socket.socket, pid: int):
        self.connection, self.pid = connection, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while the kernel runs."""
        if self.returncode is None and select.select([self.connection], [], [], 0)[0]:
            return self.wait()
        return self.returncode

    def wait(self, _timeout: float | None = None) -> int:
        """Wait for the end of the kernel and return its exit code; -9 if the fork server ended first."""
        if self.returncode is None:
            with suppress(OSError):
                reply = self.connection.recv(LONGEST)
                self.returncode = int(reply or -signal.SIGKILL)
            if self.returncode is None:
                self.returncode = -signal.SIGKILL
            self.connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the kernel process only."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def kernel(command: Sequence[str], environment: Mapping[str, str], folder: str, output: int) -> Kernel | None:
    """Fork the kernel that `command` would start; return None if no fork server can do it.

    The kernel writes its standard output and its standard error to the file descriptor `output`.
    """
    address = environment.get(FORK_SERVER)
    if not address or command[:3] != [sys.executable, *LAUNCHER]:
        return None
    request = json.dumps({"arguments": command[3:], "environment": dict(environment), "folder": folder}).encode()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        connection.connect(address)
        socket.send_fds(connection, [request], [output, output])
        reply = connection.recv(LONGEST)
    except OSError:
        reply = b""
    except KeyboardInterrupt:
        connection.close()
        raise
    if not reply:
        connection.close()
        return None
    return Kernel(connection, int(reply))


# --- server -----------------------------------------------------------------------------------------------


def can_be() -> bool:
    """Return whether this system supports a fork server."""
    return sys.platform == "linux"


def command(address: str, packages: Sequence[str]) -> list[str]:
    """Return the command of a fork server that listens at `address`; it ends when its standard input is closed."""
    return [sys.executable, "-P", __file__, address, *packages]


def main() -> None:
    """Import the packages, then fork for every request; only the forked kernels return from this function."""
    address, *packages = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    for package in [*KERNEL, *packages]:
        with suppress(ImportError):  # a kernel that needs the package reports the error
            importlib.import_module(package)
    gc.freeze()  # the garbage collectors of the kernels skip the present objects
    request = serve(listener)
    if request is not None:
        become(*request)


# The connection to the client, its request, and the file descriptors of the kernel's output.
Request = tuple[socket.socket, dict[str, Any], list[int]]


def serve(listener: socket.socket) -> Request | None:
    """Fork a child per request until standard input is closed. Return the request in a child, None in the server."""
    children: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([sys.stdin, listener], [], [], 0.1 if children else None)
        while children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with children.pop(pid) as connection, suppress(OSError):
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())
        if sys.stdin in ready:
            return None
        if listener not in ready:
            continue
        connection, _ = listener.accept()
        request, handles, _, _ = socket.recv_fds(connection, LONGEST, 2)
        if len(handles) < 2:  # the client has ended
            connection.close()
            continue
        pid = os.fork()
        if pid == 0:
            listener.close()
            for child in children.values():
                child.close()
            return connection, json.loads(request), list(handles)
        for handle in handles:
            os.close(handle)
        with suppress(OSError):
            connection.send(str(pid).encode())
        children[pid] = connection


def become(connection: socket.socket, request: Mapping[str, Any], handles: list[int]) -> None:
    """Turn this process into the requested kernel, as if it had been started by its command."""
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    os.setsid()
    for number, handle in zip((1, 2), handles, strict=True):
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    searched = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in searched if folder and folder not in sys.path]
    sys.argv = ["ipykernel_launcher", *request["arguments"]]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


def _end_with(connection: socket.socket) -> None:
    """End this process as soon as the client has ended."""
    with suppress(OSError):
        connection.recv(1)
    os._exit(1)


if __name__ == "__main__":
    main()
