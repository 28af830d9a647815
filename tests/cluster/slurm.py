"""Run two notebooks with SLURM on this machine: as root, `.venv/bin/python tests/cluster/slurm.py`.

The script clones the last commit into a temporary folder. It compares four ways to compute the tasks: inside the
notebook, by processes on this machine, by jobs, and by jobs while one is cancelled, the node is drained and the
controller is restarted. The tables must be identical. Debian's slurm-wlm and munge, and Snakemake's plugin, are
installed if they are missing, and remain installed. The script ends all processes that it starts and removes all other
files that it writes.

With `--keep FOLDER` the notebooks are computed only once, by jobs, and each task is stored in FOLDER when it is
complete, and finally the figures. `--profile full --keep FOLDER` takes an hour or two on two cores; an interrupted run
resumes.
"""

import argparse
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


def install() -> None:
    """Install Debian's SLURM, and the plugin from its lock file."""
    if shutil.which("slurmctld") is None:
        subprocess.run(["bash", ROOT / "tools/apt-install", "slurm-wlm", "munge"], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", Path(__file__).with_name("requirements.lock")], check=True)


def log(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def tables(book: Path, profile: str) -> dict[str, str]:
    """Return the digest of each table of the two notebooks."""
    folder = book / "_build" / profile / "tables"
    paths = {path.relative_to(folder).as_posix(): path for name in NOTEBOOKS for path in folder.glob(f"{name}/*.csv")}
    assert paths, f"no tables in {folder}"
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(paths.items())}


def delete_results(book: Path, profile: str) -> None:
    """Delete all computed results; compiled programs are kept."""
    shutil.rmtree(book / "_build" / profile, ignore_errors=True)


def compute_inline(book: Path, profile: str) -> None:
    """Run each notebook without precomputed tasks."""
    for name in NOTEBOOKS:
        subprocess.run([sys.executable, "-m", "companion", "run", name, "--profile", profile], cwd=book, check=True)


def compute_with_snakemake(book: Path, profile: str, *options: str) -> None:
    """Compute the tasks and then the notebooks with the book's build graph."""
    goals = [f"notebook_{name}" for name in NOTEBOOKS]
    command = [*SNAKEMAKE, *options, "--config", f"profile={profile}", "tasks=1", "--", *goals]
    subprocess.run(command, cwd=book, check=True)


def compute_by_jobs(book: Path, profile: str) -> None:
    """Compute the build graph with one SLURM job per rule."""
    compute_with_snakemake(book, profile, "--workflow-profile", "profiles/slurm", "--jobs", "4", *IMPATIENT)


def keep(slurm: Cluster, book: Path, profile: str, folder: Path) -> None:
    """Compute by jobs, and copy the figures to `folder`. The build folder is there too, so that a run can resume."""
    build = folder.resolve() / "_build"
    build.mkdir(parents=True, exist_ok=True)
    (book / "_build").symlink_to(build)
    log(f"{len(list(build.glob('*/tasks/*/*.npz')))} tasks are cached")
    start = time.monotonic()
    compute_by_jobs(book, profile)
    log(f"by jobs: {time.monotonic() - start:.0f} s")
    log_jobs(slurm)
    for name in NOTEBOOKS:
        figures = book / "_build" / profile / "figures" / name
        shutil.copytree(figures, folder / name, dirs_exist_ok=True)
        log(f"{name}: {len(list(figures.glob('*.csv')))} figures, in {folder / name}")


def log_jobs(slurm: Cluster) -> None:
    """Print the number of jobs in each final state."""
    states = list(slurm.jobs().values())
    log("jobs: " + ", ".join(f"{states.count(state)} {state.lower()}" for state in sorted(set(states))))


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
    """Compute four times, or once; the exit status is 0 if all tables are identical."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="smoke", help="smoke (minutes), or full (hours)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="compute by jobs only, and store the figures here")
    options = parser.parse_args()
    profile = options.profile
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended by a signal."))  # cleans up, as after Ctrl-C
    install()
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        book, slurm_folder = Path(folder) / "book", Path(folder) / "slurm"
        slurm_folder.mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, book], check=True)
        with cluster(slurm_folder) as slurm:
            if options.keep:
                keep(slurm, book, profile, options.keep)
                return 0
            events: list[str] = []
            disturbance = threading.Thread(target=disturb, args=(slurm, events))
            ways = {
                "inside the notebooks": lambda: compute_inline(book, profile),
                "by processes": lambda: compute_with_snakemake(book, profile, "--cores", "2"),
                "by jobs": lambda: compute_by_jobs(book, profile),
                "by jobs, disturbed": lambda: (
                    disturbance.start(),
                    compute_by_jobs(book, profile),
                    disturbance.join(),
                ),
            }
            digests = {}
            for name, compute in ways.items():
                delete_results(book, profile)
                start = time.monotonic()
                compute()
                digests[name] = tables(book, profile)
                log(f"{name}: {time.monotonic() - start:.0f} s")
            for line in events:
                log(line)
            log_jobs(slurm)
        equal = [name for name in ways if digests[name] == digests["inside the notebooks"]]
        log(f"{len(digests['by jobs'])} tables, identical in {len(equal)} of {len(digests)} ways")
    return 0 if len(equal) == len(digests) and len(events) == 3 else 1


if __name__ == "__main__":
    sys.exit(main())
