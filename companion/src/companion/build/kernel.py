"""How papermill runs a notebook: with a forked kernel if a build has a fork server, and writing the result once."""

import os
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from traitlets import Dict, Unicode

from companion.build import fork_server
from companion.io import processes


class RunKernel(AsyncKernelManager):
    """The kernel of one run, which writes its output to the file `log_file`; if it died, the last line says how."""

    log_file = Unicode().tag(config=True)
    variables = Dict().tag(config=True)

    async def start_kernel(self, **kwargs: Any) -> None:
        """Start the kernel `python3` of this interpreter with the variables of this process and `variables`."""
        self.kernel_spec_manager = KernelSpecManager(kernel_dirs=[])  # a user may have installed another `python3`
        with open(self.log_file, "wb") as log:
            await super().start_kernel(**kwargs, env={**os.environ, **self.variables}, stdout=log, stderr=log)

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Return the command that starts or forks the kernel."""
        return fork_server.forked(super().format_kernel_cmd(extra_arguments))

    async def cleanup_resources(self, restart: bool = False) -> None:
        """Write how the kernel ended if it ended by itself, and remove its sockets."""
        if self.provisioner is not None and self.provisioner.has_process:
            end = processes.how_it_ended(await self.provisioner.poll() or 0)
            with open(self.log_file, "a", encoding="utf-8") as log:
                log.write(f"\nThe kernel {end}.\n")
        await super().cleanup_resources(restart)


class RunEngine(NBClientEngine):
    """Papermill's engine, but it writes the notebook only when the run ends, and not before and after each cell.

    With `request_save_on_cell_execute=False`, papermill writes nothing if the kernel dies or a cell takes too long.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man: NotebookExecutionManager, *arguments: Any, **options: Any) -> Any:
        """Execute the cells while papermill has no path to write to."""
        path, nb_man.output_path = nb_man.output_path, None
        try:
            return super().execute_managed_notebook(nb_man, *arguments, **options)
        finally:
            nb_man.output_path = path


papermill_engines.register(RunEngine.__name__, RunEngine)
