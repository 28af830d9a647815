"""A SLURM of one machine, for as long as a `with` lasts: key daemon, controller and node, in a folder of their own."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Where SLURM's own commands look.
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
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}
PartitionName=book Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """The daemons of one machine; every one of them is a child of this process, and ends with it."""

    def __init__(self, folder: Path, cpus: int, memory: int):
        self.folder, self.host = folder, socket.gethostname().partition(".")[0]
        self.running: dict[str, subprocess.Popen] = {}
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir()
        ports = [_free_port(), _free_port()]
        text = TEMPLATE.format(host=self.host, ports=ports, folder=folder, cpus=cpus, memory=memory)
        (folder / "slurm.conf").write_text(text, encoding="ascii")
        # Snakemake's plugin takes every variable of SLURM's from the jobs, so their steps find it nowhere else
        CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
        CONFIGURATION.symlink_to(folder / "slurm.conf")

    def start(self, name: str) -> None:
        """One daemon, in the foreground of its own."""
        commands = {
            "munged": [
                "munged", "--foreground", "--force", f"--key-file={self._key()}",
                f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge/pid",
                f"--seed-file={self.folder}/munge/seed", f"--log-file={self.folder}/munge/log",
            ],
            "slurmctld": ["slurmctld", "-D"],
            "slurmd": ["slurmd", "-D", "-N", self.host],
        }  # fmt: skip
        with (self.folder / f"{name}.out").open("ab") as out:
            # a Ctrl-C is for who waits: the daemons must outlive it, or nobody could cancel what they run
            self.running[name] = subprocess.Popen(commands[name], stdout=out, stderr=out, start_new_session=True)

    def stop(self, name: str) -> None:
        """End one daemon, politely, then not."""
        daemon = self.running.pop(name)
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def ask(self, *command: str) -> str:
        """What a command of SLURM prints."""
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def jobs(self) -> dict[str, str]:
        """The jobs the controller knows, by number: their states."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--format=%i %T").split("\n")
        return dict(line.split() for line in lines if line.strip())

    def cancel_all(self) -> None:
        """End every job, and wait until none is left: daemons that stop leave behind what they run."""
        self.ask("scancel", "--partition=book")
        active = ("squeue", "--noheader", "--states=pending,running,completing")
        self.wait_for("the end of all jobs", lambda: not self.ask(*active).strip())

    def wait_for(self, what: str, so: Callable[[], object], seconds: float = 60) -> None:
        """Ask until it is so, or say what was waited for."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if so():
                    return
            except subprocess.CalledProcessError:
                pass
            time.sleep(0.3)
        logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log")))
        raise TimeoutError(f"{what}: not so after {seconds:g} seconds\n{logs}")

    def _key(self) -> Path:
        """A key of our own: the machine's, if it has one, is left alone."""
        path = self.folder / "munge/key"
        if not path.exists():
            path.write_bytes(os.urandom(128))
            path.chmod(0o600)
        return path


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def cluster(folder: Path, cpus: int = 2, memory: int = 12000) -> Iterator[Cluster]:
    """A cluster that answers; its daemons end with it. Raises if SLURM is not installed or does not come up."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing:
        raise FileNotFoundError(
            f"{', '.join(missing)}: not installed. Debian has them: "
            "apt-get install -y --no-install-recommends slurm-wlm munge"
        )
    if CONFIGURATION.is_symlink() or CONFIGURATION.exists():
        raise FileExistsError(f"{CONFIGURATION} is there: this machine has a SLURM of its own, which is left alone.")
    one = Cluster(folder, cpus, memory)
    try:
        for name in ("munged", "slurmctld", "slurmd"):
            one.start(name)
            if name == "munged":
                one.wait_for("the key daemon", (folder / "munge.socket").exists)
        one.wait_for("an idle node", lambda: one.ask("sinfo", "--noheader", "--format=%T").strip() == "idle")
        yield one
    finally:
        try:
            with suppress(subprocess.SubprocessError):  # a controller that does not answer runs no job of ours
                one.cancel_all()
        finally:
            for name in list(one.running)[::-1]:
                one.stop(name)
            CONFIGURATION.unlink()
