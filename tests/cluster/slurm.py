"""Run two notebooks with SLURM on this machine: as root, `.venv/bin/python tests/cluster/slurm.py`.

The script clones the last commit into a temporary folder. It compares four ways to compute the tasks: inside the
notebook, by processes on this machine, by jobs, and by jobs while one is cancelled, the node is drained and the
controller is restarted. The tables must be identical. Debian's slurm-wlm and munge, and Snakemake's plugin, are
installed if they are missing, and remain installed. The script ends all processes that it starts and removes all other
files that it writes.
"""

import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from single_node import Cluster, cluster

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ("trajectory_stability", "published_experiment")
SNAKEMAKE = (sys.executable, "-m", "snakemake", "--quiet", "rules", "progress")
# This cluster has no accounting, and its short jobs need frequent status checks; a real one needs no such options.
IMPATIENT = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2")
IMPATIENT += ("--seconds-between-status-checks", "2", "--latency-wait", "5")
JOBS = ("--workflow-profile", "profiles/slurm", "--jobs", "4", *IMPATIENT)
PROFILE = "smoke"


def install() -> None:
    """Install Debian's SLURM, and the plugin from its lock file."""
    if shutil.which("slurmctld") is None:
        subprocess.run(["bash", ROOT / "tools/apt-install", "slurm-wlm", "munge"], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", Path(__file__).with_name("requirements.lock")], check=True)


def log(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def compute_inline(book: Path) -> None:
    """Run each notebook without precomputed tasks."""
    for name in NOTEBOOKS:
        subprocess.run([sys.executable, "-m", "companion", "run", name, "--profile", PROFILE], cwd=book, check=True)


def compute_with_snakemake(book: Path, *options: str) -> None:
    """Compute the tasks and then the notebooks with the book's build graph."""
    goals = [f"notebook_{name}" for name in NOTEBOOKS]
    command = [*SNAKEMAKE, *options, "--config", f"profile={PROFILE}", "tasks=1", "--", *goals]
    subprocess.run(command, cwd=book, check=True)


def compute_disturbed(book: Path, slurm: Cluster, events: list[str]) -> None:
    """Compute with one job per rule while the cluster is disturbed."""
    disturbance = threading.Thread(target=disturb, args=(slurm, events))
    disturbance.start()
    compute_with_snakemake(book, *JOBS)
    disturbance.join()


def disturb(slurm: Cluster, events: list[str]) -> None:
    """Cancel a running job, drain the node while other jobs wait, and restart the controller; append to `events`."""

    def running() -> list[str]:
        return [number for number, state in slurm.jobs().items() if state == "RUNNING"]

    slurm.wait_for("a running job", running, 300)
    victim = running()[-1]
    slurm.run("scancel", victim)
    events.append(f"job {victim} cancelled while it ran")
    slurm.run("scontrol", "update", f"nodename={slurm.host}", "state=drain", "reason=test")
    time.sleep(5)
    slurm.run("scontrol", "update", f"nodename={slurm.host}", "state=resume")
    events.append("node drained for five seconds, then resumed")
    slurm.wait_for("another running job", running, 300)
    before = running()
    slurm.stop("slurmctld")
    time.sleep(2)
    slurm.start("slurmctld")
    slurm.wait_for("the controller", lambda: slurm.run("sinfo", "--noheader"))
    known = set(before) & set(slurm.jobs())
    events.append(f"controller restarted; it still knows {len(known)} of {len(before)} running jobs")


def main() -> int:
    """Compute four times; the exit status is 0 if all tables are identical."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended by a signal."))  # cleans up, as after Ctrl-C
    install()
    events: list[str] = []
    digests: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        book, slurm_folder = Path(folder) / "book", Path(folder) / "slurm"
        slurm_folder.mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, book], check=True)
        results = book / "_build" / PROFILE
        with cluster(slurm_folder) as slurm:
            ways = {
                "inside the notebooks": lambda: compute_inline(book),
                "by processes": lambda: compute_with_snakemake(book, "--cores", "2"),
                "by jobs": lambda: compute_with_snakemake(book, *JOBS),
                "by jobs, disturbed": lambda: compute_disturbed(book, slurm, events),
            }
            for name, compute in ways.items():
                shutil.rmtree(results, ignore_errors=True)  # compiled programs are kept
                start = time.monotonic()
                compute()
                paths = [path for notebook in NOTEBOOKS for path in (results / "tables").glob(f"{notebook}/*.csv")]
                digests[name] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
                log(f"{name}: {len(paths)} tables, {time.monotonic() - start:.0f} s")
            states = list(slurm.jobs().values())
            log(f"jobs: {', '.join(f'{states.count(state)} {state.lower()}' for state in sorted(set(states)))}")
    for line in events:
        log(line)
    equal = [name for name in digests if digests[name] and digests[name] == digests["inside the notebooks"]]
    log(f"identical in {len(equal)} of {len(digests)} ways")
    return 0 if len(equal) == len(digests) and len(events) == 3 else 1


if __name__ == "__main__":
    sys.exit(main())
