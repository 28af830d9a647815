"""A provisioner of Jupyter kernels: it forks them from the fork server if there is one, and otherwise starts them."""

import os
from importlib.metadata import EntryPoint
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from companion.build import fork_server

NAME = "companion-fork-server"


class ForkingProvisioner(LocalProvisioner):
    """A provisioner whose parent, a kernel manager, has the file `output` of its kernels and the list `kernels`."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork or start the kernel, with its standard output and standard error in the file `output`."""
        manager: Any = self.parent
        folder = str(kwargs.get("cwd") or os.getcwd())
        forked: Any = fork_server.kernel(cmd, kwargs.get("env") or os.environ, folder, manager.output.fileno())
        if forked is None:
            await super().launch_kernel(cmd, **kwargs, stdout=manager.output, stderr=manager.output)
        else:
            self.process, self.pid, self.pgid, self.cwd = forked, forked.pid, forked.pid, folder
        manager.kernels.append(self.process)
        return self.connection_info


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
