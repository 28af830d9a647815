"""The kernel of a run: forked from the fork server if there is one, and otherwise started. Jupyter loads these classes.

The provisioner owns the process and the file of its output; it kills the process as soon as a signal stops the run.
"""

import os
import signal
from contextlib import ExitStack, suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import CaselessStrEnum, Dict, Unicode, default
from traitlets.config import Config

from companion.build import fork_server
from companion.io import signals

NAME = "companion-fork-server"
# The file next to the log that has the exit code of the kernel.
CODE = ".code"


class ForkingProvisioner(LocalProvisioner):
    """A provisioner that writes the output of the kernel to `log_file`, and its exit code to a file next to it."""

    log_file = Unicode().tag(config=True)

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._until_stopped = ExitStack()

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork or start the kernel."""
        folder = str(kwargs.get("cwd") or os.getcwd())
        with open(self.log_file, "wb") as output:
            forked: Any = fork_server.kernel(cmd, kwargs["env"], folder, output.fileno())
            if forked is None:
                await super().launch_kernel(cmd, **kwargs, stdout=output, stderr=output)
            else:
                self.process, self.pid, self.pgid, self.cwd = forked, forked.pid, forked.pid, folder
        self._until_stopped.enter_context(signals.at_once(self._kill_now))
        return self.connection_info

    async def poll(self) -> int | None:
        """Return the exit code, or None while the kernel runs."""
        code = await super().poll()
        if self.process is not None and code is not None:
            Path(self.log_file + CODE).write_text(str(code), encoding="utf-8")
        return code

    async def cleanup(self, restart: bool = False) -> None:
        """Forget the ended kernel."""
        self._until_stopped.close()
        await super().cleanup(restart)

    def _kill_now(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):  # the kernel leads its process group
                os.killpg(self.pid, signal.SIGKILL)


class ForkingKernelSpecManager(KernelSpecManager):
    """The kernel `python3` of this interpreter, with this provisioner: a user may have installed another `python3`."""

    def __init__(self, **kwargs: Any):
        super().__init__(kernel_dirs=[], **kwargs)
        entry = EntryPoint(NAME, f"{__name__}:{ForkingProvisioner.__name__}", KernelProvisionerFactory.GROUP_NAME)
        KernelProvisionerFactory.provisioners[NAME] = entry

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return the specification of the kernel; Jupyter creates the provisioner that it names."""
        spec = super().get_kernel_spec(kernel_name)
        spec.metadata = {**spec.metadata, "kernel_provisioner": {"provisioner_name": NAME}}
        return spec


class SocketFileKernelManager(AsyncKernelManager):
    """A manager of a kernel with `environment` that uses UNIX sockets in files: parallel runs share no ports."""

    transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc")
    environment = Dict().tag(config=True)

    @default("kernel_spec_manager")
    def _forking(self) -> ForkingKernelSpecManager:
        return ForkingKernelSpecManager(parent=self)

    async def start_kernel(self, **kwargs: Any) -> None:
        """Start the kernel with the variables of this process and those of `environment`."""
        await super().start_kernel(**kwargs, env={**os.environ, **self.environment})


def configuration(sockets: Path, log: Path, environment: dict[str, str]) -> Config:
    """Return the configuration of both classes: the folder of the sockets, the log, the kernel's variables."""
    manager = {"connection_file": str(sockets / "kernel.json"), "environment": environment}
    return Config({"SocketFileKernelManager": manager, "ForkingProvisioner": {"log_file": str(log)}})
