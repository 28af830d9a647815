"""Two notebooks by way of a SLURM on this machine: as root, `.venv/bin/python tests/cluster/slurm.py`.

It works in a clone of what is committed, in a temporary folder. The tables must be the same bytes whether tasks are
computed inside the notebook, by processes on this machine, by jobs, or by jobs while one is cancelled, the node is
drained and the controller restarted. Debian's slurm-wlm and munge, and Snakemake's plugin, are installed where they are
missing. What it starts it ends, and what it writes it removes; the two packages and the plugin stay.

With `--keep FOLDER` they are computed once, by jobs, and every task is kept there as soon as it is done, then the
figures: `--profile full --keep FOLDER` takes an hour or two on two cores, and goes on where it was stopped.
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
# what an administrator of a real cluster has no need to say: this one has no accounting and is asked in a hurry
IMPATIENT = ("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2")
IMPATIENT += ("--seconds-between-status-checks", "2", "--latency-wait", "5")


def install() -> None:
    """Debian's SLURM, and the plugin by its hashes."""
    if shutil.which("slurmctld") is None:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "slurm-wlm", "munge"], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", Path(__file__).with_name("requirements.lock")], check=True)


def say(text: str) -> None:
    """A line of the log, with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def tables(book: Path, profile: str) -> dict[str, str]:
    """The digest of each table of the two notebooks."""
    folder = book / "_build" / profile / "tables"
    found = {path.relative_to(folder).as_posix(): path for name in NOTEBOOKS for path in folder.glob(f"{name}/*.csv")}
    assert found, f"no tables in {folder}"
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(found.items())}


def afresh(book: Path, profile: str) -> None:
    """Forget what was computed, not what was compiled."""
    shutil.rmtree(book / "_build" / profile, ignore_errors=True)


def inline(book: Path, profile: str) -> None:
    """Each notebook computes its own tasks."""
    for name in NOTEBOOKS:
        subprocess.run([sys.executable, "-m", "companion", "run", name, "--profile", profile], cwd=book, check=True)


def snakemake(book: Path, profile: str, *how: str) -> None:
    """Compute the tasks, then the notebooks, with the build graph."""
    goals = [f"notebook_{name}" for name in NOTEBOOKS]
    subprocess.run([*SNAKEMAKE, *how, "--config", f"profile={profile}", "tasks=1", "--", *goals], cwd=book, check=True)


def by_jobs(book: Path, profile: str) -> None:
    """The same, each a job."""
    snakemake(book, profile, "--workflow-profile", "profiles/slurm", "--jobs", "4", *IMPATIENT)


def keep(one: Cluster, book: Path, profile: str, folder: Path) -> None:
    """Compute by jobs, and copy the figures. What is built lies there and not in the clone, so it outlives a stop."""
    build = folder.resolve() / "_build"
    build.mkdir(parents=True, exist_ok=True)
    (book / "_build").symlink_to(build)
    say(f"{len(list(build.glob('*/tasks/*/*.npz')))} tasks are cached")
    start = time.monotonic()
    by_jobs(book, profile)
    say(f"by jobs: {time.monotonic() - start:.0f} s")
    say_jobs(one)
    for name in NOTEBOOKS:
        made = book / "_build" / profile / "figures" / name
        shutil.copytree(made, folder / name, dirs_exist_ok=True)
        say(f"{name}: {len(list(made.glob('*.csv')))} figures, in {folder / name}")


def say_jobs(one: Cluster) -> None:
    """How many there were, and how they ended."""
    states = list(one.jobs().values())
    say("jobs: " + ", ".join(f"{states.count(state)} {state.lower()}" for state in sorted(set(states))))


def disturb(one: Cluster, log: list[str]) -> None:
    """Cancel a job that runs, drain the node while others wait, and restart the controller."""

    def running() -> list[str]:
        return [number for number, state in one.jobs().items() if state == "RUNNING"]

    one.wait_for("a job that runs", running, 300)
    victim = running()[-1]
    one.ask("scancel", victim)
    log.append(f"job {victim} cancelled while it ran")
    one.ask("scontrol", "update", f"nodename={one.host}", "state=drain", "reason=test")
    time.sleep(5)
    one.ask("scontrol", "update", f"nodename={one.host}", "state=resume")
    log.append("node drained for five seconds, then resumed")
    one.wait_for("a job that runs again", running, 300)
    before = running()
    one.stop("slurmctld")
    time.sleep(2)
    one.start("slurmctld")
    one.wait_for("the controller", lambda: one.ask("sinfo", "--noheader"))
    kept = set(before) & set(one.jobs())
    log.append(f"controller restarted; of {len(before)} jobs that ran, it still knows {len(kept)}")


def main() -> int:
    """Compute four times, or once; the exit code says whether the bytes agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="smoke", help="smoke (minutes), or full (hours)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="compute by jobs only, and keep the figures here")
    asked = parser.parse_args()
    profile = asked.profile
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended by a signal."))  # cleans up, as after Ctrl-C
    install()
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        book, place = Path(folder) / "book", Path(folder) / "slurm"
        place.mkdir()
        subprocess.run(["git", "clone", "--quiet", ROOT, book], check=True)
        with cluster(place) as one:
            if asked.keep:
                keep(one, book, profile, asked.keep)
                return 0
            log: list[str] = []
            trouble = threading.Thread(target=disturb, args=(one, log))
            ways = {
                "inside the notebooks": lambda: inline(book, profile),
                "by processes": lambda: snakemake(book, profile, "--cores", "2"),
                "by jobs": lambda: by_jobs(book, profile),
                "by jobs, disturbed": lambda: (trouble.start(), by_jobs(book, profile), trouble.join()),
            }
            found = {}
            for name, compute in ways.items():
                afresh(book, profile)
                start = time.monotonic()
                compute()
                found[name] = tables(book, profile)
                say(f"{name}: {time.monotonic() - start:.0f} s")
            for line in log:
                say(line)
            say_jobs(one)
        same = [name for name, digests in found.items() if digests == found["inside the notebooks"]]
        say(f"{len(found['by jobs'])} tables, the same bytes in {len(same)} of {len(found)} ways")
    return 0 if len(same) == len(found) and len(log) == 3 else 1


if __name__ == "__main__":
    sys.exit(main())
