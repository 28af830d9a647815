"""Kernels that need not import what they share: a process that has imported it forks them.

Importing JAX, matplotlib and the rest takes a kernel two seconds, and a build of twenty notebooks pays them twenty
times. So a build starts this file as a separate process. It imports the packages that the book lists under `preload`,
and nothing of the book; a run of a notebook then asks it for a forked kernel instead of starting one.

It uses the standard library alone and imports no module of `companion`: each kernel imports those itself, as they are
when it runs. It exists on Linux only: elsewhere the state of an imported library may not survive a fork.
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

# How a build tells its runs where the fork server listens.
FORK_SERVER = "COMPANION_FORK_SERVER"
LAUNCHER = ["-m", "ipykernel_launcher"]
# What every kernel imports.
KERNEL = ["ipykernel.kernelapp", "ipykernel.zmqshell", "matplotlib_inline.backend_inline"]
LONGEST = 2**20


# --- who asks ---------------------------------------------------------------------------------------------


class Kernel:
    """A forked kernel with the part of the interface of `subprocess.Popen` that is needed.

    It ends with this process at the latest.
    """

    stdin = stdout = stderr = None

    def __init__(self, connection: socket.socket, pid: int):
        self.connection, self.pid = connection, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        if self.returncode is None and select.select([self.connection], [], [], 0)[0]:
            return self.wait()
        return self.returncode

    def wait(self, _timeout: float | None = None) -> int:
        """Its exit code, when it has ended; -9 if its fork server has ended before."""
        if self.returncode is None:
            with suppress(OSError):
                told = self.connection.recv(LONGEST)
                self.returncode = int(told or -signal.SIGKILL)
            if self.returncode is None:
                self.returncode = -signal.SIGKILL
            self.connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To the kernel alone."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """By SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """By SIGKILL."""
        self.send_signal(signal.SIGKILL)


def kernel(command: Sequence[str], environment: Mapping[str, str], folder: str) -> Kernel | None:
    """Fork what `command` would start, or None where there is no fork server, or none that can."""
    place = environment.get(FORK_SERVER)
    if not place or command[:3] != [sys.executable, *LAUNCHER]:
        return None
    request = json.dumps({"arguments": command[3:], "environment": dict(environment), "folder": folder}).encode()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        connection.connect(place)
        socket.send_fds(connection, [request], [1, 2])
        told = connection.recv(LONGEST)
    except OSError:
        told = b""
    except KeyboardInterrupt:
        connection.close()
        raise
    if not told:
        connection.close()
        return None
    return Kernel(connection, int(told))


# --- who is asked -----------------------------------------------------------------------------------------


def can_be() -> bool:
    """Whether this machine can have one."""
    return sys.platform == "linux"


def command(where: str, packages: Sequence[str]) -> list[str]:
    """Return the command of a fork server that listens at `where`; it ends when its standard input is closed."""
    return [sys.executable, "-P", __file__, where, *packages]


def main() -> None:
    """Import the packages, then fork for every request; only the forked kernels return from this function."""
    where, *packages = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(where)
    listener.listen(64)
    for package in [*KERNEL, *packages]:
        with suppress(ImportError):  # the kernel that needs it will say so
            importlib.import_module(package)
    gc.freeze()  # no kernel looks for cycles among what is here
    asked = serve(listener)
    if asked is not None:
        become(*asked)


Asked = tuple[socket.socket, dict[str, Any], list[int]]


def serve(listener: socket.socket) -> Asked | None:
    """Until nobody holds our standard input. Returns in every child, with what was asked for, and None at the end."""
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
        if len(handles) < 2:  # whoever asked has ended
            connection.close()
            continue
        pid = os.fork()
        if pid == 0:
            listener.close()
            for other in children.values():
                other.close()
            return connection, json.loads(request), list(handles)
        for handle in handles:
            os.close(handle)
        with suppress(OSError):
            connection.send(str(pid).encode())
        children[pid] = connection


def become(connection: socket.socket, request: Mapping[str, Any], handles: list[int]) -> None:
    """Be the kernel that was asked for, as if it had been started."""
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    os.setsid()
    for number, handle in zip((1, 2), handles, strict=True):
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["ipykernel_launcher", *request["arguments"]]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


def _end_with(connection: socket.socket) -> None:
    """End as soon as the requesting process has ended."""
    with suppress(OSError):
        connection.recv(1)
    os._exit(1)


if __name__ == "__main__":
    main()
