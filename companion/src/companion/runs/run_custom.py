"""Make a custom run and write the page that compares its figures with the published ones."""

from collections.abc import Sequence
from pathlib import Path

from companion.build import execution
from companion.build.execution import RunResult
from companion.build.run_spec import RunSpec
from companion.figures.record import Claim
from companion.io import atomic
from companion.io.errors import ClaimsFailed
from companion.project.paths import Project
from companion.runs.custom_runs import Run


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
