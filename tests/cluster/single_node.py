"""A SLURM cluster of one machine, which exists during a `with` block; its daemons use a separate folder."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The commands of SLURM read this file.
CONFIGURATION = Path("/etc/slurm/slurm.conf")
TEMPLATE = """\
ClusterName=book
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.txt
MpiDefault=none
ReturnToService=2
MinJobAge=3600
SchedulerParameters=batch_sched_delay=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=12000
PartitionName=book Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """The daemons of a one-machine cluster; they are children of this process and end with it."""

    def __init__(self, folder: Path):
        self.folder, self.host = folder, socket.gethostname().partition(".")[0]
        self.running: dict[str, subprocess.Popen] = {}
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir()
        # a key for this cluster; that of the machine is not used
        (folder / "munge/key").write_bytes(os.urandom(128))
        (folder / "munge/key").chmod(0o600)
        text = TEMPLATE.format(host=self.host, ports=[_free_port(), _free_port()], folder=folder)
        (folder / "slurm.conf").write_text(text, encoding="ascii")
        # Snakemake's plugin removes all SLURM variables from the jobs, so that they read the default path
        CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
        CONFIGURATION.symlink_to(folder / "slurm.conf")

    def start(self, name: str) -> None:
        """Start one daemon in the foreground of a new session."""
        commands = {
            "munged": [
                "munged", "--foreground", "--force", f"--key-file={self.folder}/munge/key",
                f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge/pid",
                f"--seed-file={self.folder}/munge/seed", f"--log-file={self.folder}/munge/log",
            ],
            "slurmctld": ["slurmctld", "-D"],
            "slurmd": ["slurmd", "-D", "-N", self.host],
        }  # fmt: skip
        with (self.folder / f"{name}.out").open("ab") as out:
            # Ctrl-C must not end the daemons: they are needed to cancel the jobs
            self.running[name] = subprocess.Popen(commands[name], stdout=out, stderr=out, start_new_session=True)

    def stop(self, name: str) -> None:
        """Terminate one daemon; kill it if it does not end within 20 seconds."""
        daemon = self.running.pop(name)
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def run(self, *command: str) -> str:
        """Run a SLURM command and return its output."""
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def jobs(self) -> dict[str, str]:
        """Return the states of all jobs that the controller knows, by job number."""
        lines = self.run("squeue", "--noheader", "--states=all", "--format=%i %T").split("\n")
        return dict(line.split() for line in lines if line.strip())

    def cancel_all(self) -> None:
        """Cancel every job, and wait until none is left: jobs would outlive the daemons."""
        self.run("scancel", "--partition=book")
        active = ("squeue", "--noheader", "--states=pending,running,completing")
        self.wait_for("the end of all jobs", lambda: not self.run(*active).strip())

    def wait_for(self, what: str, condition: Callable[[], object], seconds: float = 60) -> None:
        """Wait until the condition is true; raise an error that names `what` after `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if condition():
                    return
            except subprocess.CalledProcessError:
                pass
            time.sleep(0.3)
        logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log")))
        raise TimeoutError(f"{what}: did not happen within {seconds:g} seconds\n{logs}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Yield a running cluster, and stop it afterwards. Raise an error if it does not start."""
    if CONFIGURATION.is_symlink() or CONFIGURATION.exists():
        raise FileExistsError(f"{CONFIGURATION} exists: this machine already has a SLURM, which is not changed.")
    slurm = Cluster(folder)
    try:
        for name in ("munged", "slurmctld", "slurmd"):
            slurm.start(name)
            if name == "munged":
                slurm.wait_for("the key daemon", (folder / "munge.socket").exists)
        slurm.wait_for("an idle node", lambda: slurm.run("sinfo", "--noheader", "--format=%T").strip() == "idle")
        yield slurm
    finally:
        try:
            with suppress(subprocess.SubprocessError):  # a controller that does not respond runs none of our jobs
                slurm.cancel_all()
        finally:
            for name in list(slurm.running)[::-1]:
                slurm.stop(name)
            CONFIGURATION.unlink()
