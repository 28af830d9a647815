"""All contests, several runs of each: ratios with their spread, to `book/benchmarks.csv`, which the book shows.

    python -m benchmarks                    # all, five runs, half an hour; nothing else should run beside
    python -m benchmarks streaming --runs 1 # some, to look at

A run is a process of its own on as many processors as are said, in which every contender has its turns: a ratio is of
two times from one run. Only a whole run of all contests is kept; `--keep` keeps those of the ones that are named.
PyTorch is optional: `.venv/bin/python -m pip install torch==2.13.0`.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import table  # noqa: E402
from benchmarks.contests import megabytes, seconds  # noqa: E402

MODULES = ("finite_prompt", "streaming", "icl_training", "single_location", "pairs", "machine")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for, print the table, keep it."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Ratios against peers, side by side.")
    parser.add_argument("module", nargs="*", help=f"which: {', '.join(MODULES)}; all if none is named")
    parser.add_argument("--runs", type=int, default=5, help="processes a contest is run in (default 5)")
    parser.add_argument("--keep", action="store_true", help="write the rows of what is named into the kept table")
    parser.add_argument("--worker", nargs=3, metavar=("THREADS", "ENVIRONMENT", "ONLY"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    chosen = asked.module or list(MODULES)
    if unknown := set(chosen) - set(MODULES):
        parser.error(f"no such contests: {', '.join(sorted(unknown))}. There are {', '.join(MODULES)}.")
    if asked.worker:
        threads, environment, only = asked.worker
        work(chosen[0], int(threads), json.loads(environment), only)
        return
    measured = []
    with table.progress() as bar:
        turns = [(name, threads, run) for name in chosen for threads in threads_of(name) for run in range(asked.runs)]
        task = bar.add_task("", total=len(turns))
        for name, threads, run in turns:
            bar.update(task, description=f"{name}, on {threads}, run {run + 1} of {asked.runs}")
            measured += in_process(name, threads)
            bar.advance(task)
    rows = table.summary(measured)
    table.show(rows)
    if asked.keep or not asked.module:
        table.keep(rows, ROOT)
        from benchmarks import page  # imports Sphinx, which workers do without

        page.write(ROOT)


def threads_of(name: str) -> tuple[int, ...]:
    """On how many processors the contests of a module are run."""
    return importlib.import_module(f"benchmarks.{name}").THREADS


def in_process(name: str, threads: int) -> Iterator[dict]:
    """One run: contests of time in a process an environment that they ask for, contenders of memory each in its own."""
    processes = {}
    for row in _worker(name, threads, {}, "time"):
        asked = row["environment"]
        if row["of_memory"]:
            held = {}
            for contender in row["contenders"]:
                [each] = _worker(name, threads, {}, json.dumps([row["task"], row["setting"], contender]))
                held |= each["values"]
            yield {**row, "values": held}
        elif asked:
            key = json.dumps(asked)
            if key not in processes:
                processes[key] = list(_worker(name, threads, asked, "time"))
            [there] = [one for one in processes[key] if {**one, "values": None} == row]
            yield there
        else:
            yield row


def _worker(name: str, threads: int, environment: Mapping[str, str], only: str) -> Iterator[dict]:
    command = [sys.executable, "-m", "benchmarks", name, "--worker", str(threads), json.dumps(environment), only]
    # JAX and PyTorch count processors when they start
    held = sorted(os.sched_getaffinity(0))[:threads]
    finished = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, held),
    )
    if finished.returncode:
        raise SystemExit(f"benchmarks.{name} failed:\n{finished.stderr}")
    return map(json.loads, finished.stdout.splitlines())


def work(name: str, threads: int, environment: Mapping[str, str], only: str) -> None:
    """In a process of its own: print a line of JSON a contest; without values where it belongs into another."""
    module = importlib.import_module(f"benchmarks.{name}")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    for contest in module.contests():
        asked = (contest.task, contest.setting)
        row = {
            "task": contest.task,
            "setting": contest.setting,
            "of_memory": contest.of_memory,
            "environment": dict(contest.environment),
            "contenders": list(contest.runs),
            "threads": threads,
        }
        if only == "time":
            here = not contest.of_memory and contest.environment == environment
            print(json.dumps({**row, "values": seconds(contest) if here else None}), flush=True)
        elif contest.of_memory and (task_setting := json.loads(only))[:2] == [*asked]:
            contender = task_setting[2]
            print(json.dumps({**row, "values": {contender: megabytes(contest.runs[contender])}}), flush=True)


if __name__ == "__main__":
    main()
