"""What is held against what. A contest is one task done by ours and by a peer, in turns, in one process."""

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

TURNS, TURN = 3, 0.1  # each contender's turns in a run, and the least seconds of one


@dataclass(frozen=True)
class Contest:
    """One task at one setting, done by the first of `runs`, which is ours, and by the others.

    A run returns when its work is done. Where it does more of the task than once, or less, `work` says how much. What
    has to be in the environment before JAX is loaded is in `environment`.
    """

    task: str
    setting: str
    runs: Mapping[str, Callable[[], object]]
    work: Mapping[str, float] = field(default_factory=dict)
    of_memory: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    warm: bool = True


def seconds(contest: Contest) -> dict[str, float]:
    """Seconds of each contender's fastest, after a turn that is not counted if `warm`; in turns, so load hits all."""
    if contest.warm:
        for run in contest.runs.values():
            run()
    fastest = dict.fromkeys(contest.runs, float("inf"))
    for _ in range(TURNS if contest.warm else 1):
        for name, run in contest.runs.items():
            turn = time.perf_counter()
            while (begun := time.perf_counter()) < turn + TURN:
                run()
                fastest[name] = min(fastest[name], time.perf_counter() - begun)
    return {name: least / contest.work.get(name, 1.0) for name, least in fastest.items()}


def megabytes(run: Callable[[], object]) -> float:
    """How much higher the memory of this process ever was when `run` has ended than it was before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
