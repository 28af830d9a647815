"""Make a custom run and write the page that compares its figures with the published ones."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from companion.build import execution
from companion.build.execution import RunResult
from companion.build.run_spec import RunSpec
from companion.figures.record import Claim
from companion.io import atomic, processes
from companion.io.errors import ClaimsFailed
from companion.project.paths import Project
from companion.runs.custom_runs import Run

# The exit codes of `companion run` with complete results: every claim holds, or some do not.
COMPLETE = (0, 3)


def run_custom(project: Project, spec: RunSpec) -> RunResult:
    """Make a custom run and write its page, whether or not its claims hold.

    The page is written even if the result is fresh, because the published figures may have changed.
    """
    result = execution.run(project, spec)
    from companion.runs import report  # imports pandas, and a wrong parameter should be reported at once

    build = result.build
    waiting = f"{spec.notebook}: waiting for another process that runs it"
    with atomic.locked(build.locks / spec.notebook, waiting):
        report.write(Run(project, build.folder.name, spec))
    return result


def require_claims(name: str, claims: Sequence[Claim], page: Path) -> None:
    """Raise `ClaimsFailed`, with the reasons, if a claim of a custom run is broken."""
    if broken := execution.broken_claims(claims):
        reasons = map(execution.explain, broken)
        comparison = f"Comparison with the published figures: {page}"
        raise ClaimsFailed("\n".join([f"{name}: the results of this custom run are kept.", *reasons, comparison]))


def run_in_processes(
    runs: Mapping[str, Sequence[str]], cores: int, folder: Path, begun: Callable[[str], None] = lambda _: None
) -> Generator[tuple[str, str | None], None, None]:
    """Make custom runs in separate processes; yield each as it ends, with the error message if it has no results.

    Args:
      runs: the arguments of `companion run`, by the name of the run.
      cores: how many run at the same time.
      folder: the folder of the book.
      begun: called with the name of each run that starts.
    """
    commands = {name: [sys.executable, "-m", "companion", "run", *arguments] for name, arguments in runs.items()}
    with closing(processes.run_all(commands, cores, folder, begun)) as ended:
        for name, finished in ended:
            yield name, None if finished.returncode in COMPLETE else processes.error_of(finished)
