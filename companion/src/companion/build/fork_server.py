"""Fork server: start kernels by forking a process that has already imported the heavy packages.

A kernel needs two seconds to import JAX, matplotlib and the rest, and a build of twenty notebooks needs them twenty
times. Therefore a build starts this file as a separate process, which imports the packages that the book lists under
`preload`, and no module of the book. A run of a notebook starts this file as a client in place of a kernel: it requests
a forked kernel, ends as the kernel ends, and the kernel ends if the client does.

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
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

# Environment variable: the socket of the fork server.
FORK_SERVER = "COMPANION_FORK_SERVER"
# Environment variable of Jupyter: the process that starts a kernel.
PARENT = "JPY_PARENT_PID"
# Modules that every kernel imports.
KERNEL = ["ipykernel.kernelapp", "ipykernel.zmqshell", "matplotlib_inline.backend_inline"]
LONGEST = 2**20


def can_be() -> bool:
    """Return whether this system supports a fork server."""
    return sys.platform == "linux"


def command(address: str, packages: Sequence[str]) -> list[str]:
    """Return the command of a fork server that listens at `address`; it ends when its standard input is closed."""
    return [sys.executable, "-P", __file__, "serve", address, *packages]


def forked(kernel: Sequence[str]) -> list[str]:
    """Return the command that forks the kernel that the command `kernel` starts; without a fork server, `kernel`."""
    address = os.environ.get(FORK_SERVER)
    return [sys.executable, "-I", __file__, "fork", address, *kernel] if address else [*kernel]


def fork(address: str, *kernel: str) -> NoReturn:
    """Let the fork server fork the kernel, and end as it ends; start the kernel if the server cannot be reached."""
    environment = {**os.environ}
    parent = int(environment.pop(PARENT))
    arguments = kernel[kernel.index("-f") :]
    request = json.dumps({"arguments": arguments, "environment": environment, "folder": os.getcwd()}).encode()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        server.connect(address)
        socket.send_fds(server, [request], [1, 2])
    except OSError:
        os.execv(kernel[0], kernel)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter sends it before it ends a kernel
    while not select.select([server], [], [], 0.5)[0]:
        if os.getppid() != parent:
            sys.exit(1)
    code = int(server.recv(LONGEST) or -signal.SIGKILL)
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


def serve(address: str, *packages: str) -> None:
    """Import the packages, then fork for every request until standard input is closed; a kernel returns, too."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    for package in [*KERNEL, *packages]:
        with suppress(ImportError):  # a kernel that needs the package reports the error
            importlib.import_module(package)
    gc.freeze()  # the garbage collectors of the kernels skip the present objects
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no child waits to be asked for its exit code
    while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return answer(client)
        client.close()


def answer(client: socket.socket) -> None:
    """Fork the requested kernel, in which this function returns; report its exit code in the other process."""
    request, outputs, _, _ = socket.recv_fds(client, LONGEST, 2)
    if kernel := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(kernel, 0)[1])
        with suppress(OSError):
            client.send(str(code).encode())
        os._exit(0)
    os.setsid()
    threading.Thread(target=_end_with, args=(client,), daemon=True).start()
    for number, output in zip((1, 2), outputs, strict=True):
        os.dup2(output, number)
        os.close(output)
    become(**json.loads(request))


def become(arguments: Sequence[str], environment: dict[str, str], folder: str) -> None:
    """Turn this process into a kernel, as if it had been started by its command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    searched = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in searched if folder and folder not in sys.path]
    sys.argv = ["ipykernel_launcher", *arguments]
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


def _end_with(client: socket.socket) -> None:
    """End this process with its children as soon as the client has ended."""
    with suppress(OSError):
        client.recv(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    {"serve": serve, "fork": fork}[sys.argv[1]](*sys.argv[2:])
