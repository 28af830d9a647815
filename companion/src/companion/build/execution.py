"""Run one notebook with papermill; accept its results completely or not at all."""

import datetime
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion.analysis import import_recorder
from companion.build import cache_keys, publication_policy, run_warnings, task_cache
from companion.build.run_spec import CheckedRun, RunSpec, Target
from companion.figures import store
from companion.figures.plain_math import as_plain_text, withheld_because
from companion.figures.record import Claim, WithheldClaim
from companion.io import atomic
from companion.io.errors import ClaimsFailed, UserError
from companion.project import provenance, slicing
from companion.project.configuration import FILE, TABLE
from companion.project.notebooks import Notebook
from companion.project.paths import (
    CACHE,
    DEFAULT_PROFILE,
    DRAWN,
    NOTEBOOK,
    OUT,
    PROFILE,
    Build,
    Project,
    relative,
    visible,
)
from companion.project.theorem_blocks import pages_quoting

# The prefix of the folders of sockets among the temporary files.
SOCKETS = "cpn-"
# The most lines that an error message shows of what a kernel that died wrote last.
LAST_LINES = 10


@dataclass(frozen=True)
class RunResult:
    """The result of a run: its files, duration, figures and claims, and the published figures that it changed.

    If the sources were `edited` during the run, the result is stale and not published. `warnings` are sentences about
    results that are probably not intended.
    """

    build: Build
    seconds: float
    figures: list[str]
    claims: list[Claim]
    withheld: list[WithheldClaim]
    published: publication_policy.Changes
    edited: bool
    warnings: list[str]


def run(project: Project, spec: RunSpec) -> RunResult:
    """Run a notebook; parameters are resolved and checked once, before a kernel starts.

    The results of a custom run go to a separate folder, `_build/runs/...`, whether or not its claims hold; a fresh
    result is not computed again. The results of any other run become those of the profile, and in the default profile
    they replace the published figures that changed.

    Raises:
      UserError: if a parameter is refused, or the notebook cannot be run.
      ClaimsFailed: if a claim fails and this is no custom run, or if the published figures would withhold a claim that
        a page quotes; nothing has changed then.
    """
    start = time.monotonic()
    with _locked(project, spec) as checked:
        build = checked.build(project)
        if spec.is_custom:
            claims, edited = _run_custom(project, checked, build), False
        else:
            claims, edited = _run_for_the_profile(project, checked, build)
    published = publication_policy.Changes([], [])
    if not spec.is_custom and not edited and spec.profile == DEFAULT_PROFILE:
        published = publication_policy.publish_figures(project, spec.notebook)
    figures = [spec.figure] if spec.figure else Notebook.named(project, spec.notebook).figures
    warnings = run_warnings.of_run(build, spec.notebook, figures)
    withheld = _withheld(build.figures / spec.notebook)
    return RunResult(build, time.monotonic() - start, figures, claims, withheld, published, edited, warnings)


@contextmanager
def _locked(project: Project, spec: RunSpec) -> Iterator[CheckedRun]:
    """Hold the lock of the run's notebook in the folder of its results; yield the run with checked parameters.

    The values decide the folder of a custom run, so they are checked before the folder can be locked, and again
    afterwards, because a profile may have been edited while another process had the lock.
    """
    waiting = f"{spec.notebook}: waiting for another process that runs it"
    while True:
        build = spec.check(project).build(project)
        with atomic.locked(build.locks / spec.notebook, waiting):
            checked = spec.check(project)
            if checked.build(project) == build:
                yield checked
                return


def _run_for_the_profile(project: Project, run: CheckedRun, build: Build) -> tuple[list[Claim], bool]:
    """Run a notebook and accept its results if every claim holds; return the claims and whether sources were edited."""
    name, profile = run.spec.notebook, run.spec.profile
    before = cache_keys.contents_of_notebook(project, name, run.resolved)
    with _results(project, run, build) as staging:
        claims = _claims(staging / "figures" / name)
        if broken := broken_claims(claims):
            executed = _keep(staging / f"{name}.ipynb", build.failed / f"{name}.ipynb")
            raise ClaimsFailed("\n".join([f"{name}: nothing is published.", *map(explain, broken), f"See {executed}"]))
        if profile == DEFAULT_PROFILE:
            _require_unquoted(project, name, _withheld(staging / "figures" / name))
        _accept(staging, build, name, list(before))
    after = cache_keys.contents_of_profile(project, name, profile)
    fresh = [target for target in before if after.get(target) == before[target]]
    for target in fresh:
        cache_keys.leave_stamp_of(project, target, profile, before[target], _files(build, target))
    return claims, set(fresh) != set(after)


def _run_custom(project: Project, run: CheckedRun, build: Build) -> list[Claim]:
    """Run a notebook unless its result is fresh, and accept the results; return the claims, which may fail."""
    spec, name = run.spec, run.spec.notebook
    spec.write(build)
    stamp = cache_keys.custom_stamp(project, run)
    if not cache_keys.intact(project, stamp):
        with _results(project, run, build) as staging:
            _accept(staging, build, name, [Target(name)])
        if stamp == cache_keys.custom_stamp(project, run):
            figures = sorted((build.figures / name).iterdir())
            cache_keys.leave_stamp(project, stamp, [*_files(build, Target(name)), *figures])
    return _claims(build.figures / name)


@contextmanager
def _results(project: Project, run: CheckedRun, build: Build) -> Iterator[Path]:
    """Run a notebook; yield a folder with its complete results, to be accepted inside; then record the provenance."""
    spec, notebook = run.spec, Notebook.named(project, run.spec.notebook)
    changed = {key: value for key, value in run.values.items() if value != notebook.defaults[key]}
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    with atomic.staging_folder(build.staging, spec.notebook) as staging:
        environment = {OUT: str(staging), PROFILE: spec.profile, CACHE: str(project.cache)}
        # the cached results of tasks are those of the profile's own parameters
        if not spec.parameters and (tasks := task_cache.folder(project, run)):
            from companion.authoring.tasks import FOLDER  # imports NumPy

            environment[FOLDER] = str(tasks)
        if spec.figure:
            steps = staging / "steps" / notebook.path.name
            atomic.write_text(steps, atomic.dump_json(notebook.only(spec.figure)))
            notebook = Notebook(steps)
        environment[NOTEBOOK] = str(notebook.path)
        (staging / DRAWN).mkdir()
        for path in filter(Path.is_file, visible(project.published / spec.notebook, "*")):
            shutil.copyfile(path, staging / DRAWN / path.name)
        _execute(project, notebook, changed, staging, environment=environment, failed=build.failed)
        _require_known_inputs(project, spec.notebook, staging / import_recorder.READ)
        _require_complete(notebook, staging / "figures" / spec.notebook)
        for kind in ("tables", "figures"):  # a notebook that publishes nothing makes neither
            (staging / kind / spec.notebook).mkdir(parents=True, exist_ok=True)
        device = json.loads((staging / "device.json").read_text()) if (staging / "device.json").is_file() else None
        yield staging
    seconds = time.monotonic() - clock
    provenance.record(
        project, build.provenance / f"{spec.notebook}.json", started=started, seconds=seconds, device=device
    )


def _execute(
    project: Project,
    notebook: Notebook,
    changed: Mapping[str, Any],
    staging: Path,
    *,
    environment: Mapping[str, str],
    failed: Path,
) -> None:
    import papermill  # these take a second to import, and a wrong parameter should be reported at once
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    from companion.build.kernel import RunEngine, RunKernel

    executed, hours = staging / f"{notebook.name}.ipynb", project.settings.hours_a_step
    log, path = staging / "kernel.log", os.pathsep.join(project.search_path)
    # with PYTHONSAFEPATH, the launcher of kernels would take the first folder of PYTHONPATH for the working folder
    # and remove it
    visible = {**environment, "PYTHONPATH": path, "PYTHONSAFEPATH": "", "MPLBACKEND": "agg"}
    try:
        with socket_folder() as folder:
            # parallel runs could choose the same ports, and have different files
            sockets = {"transport": "ipc", "connection_file": str(folder / "kernel.json")}
            papermill.execute_notebook(
                _literally(notebook.path),
                _literally(executed),
                parameters=dict(changed),
                engine_name=RunEngine.__name__,
                kernel_name="python3",
                language="python",
                cwd=project.root,
                progress_bar=sys.stderr.isatty(),
                kernel_manager_class=RunKernel,
                config=Config({RunKernel.__name__: {**sockets, "log_file": str(log), "variables": visible}}),
                shutdown_kernel="immediate",
                execution_timeout=math.ceil(3600 * hours),
                extra_arguments=[
                    "--log-level=CRITICAL",  # otherwise the log has more than what libraries write
                    # otherwise a thread of the kernel forwards what libraries write, and dies with the kernel
                    "--IPKernelApp.capture_fd_output=False",
                    f"--IPKernelApp.extra_extensions={import_recorder.__name__}",
                ],
            )
        return
    except PapermillExecutionError as error:
        reason, details = f"cell {error.exec_count} failed.", f"{error.ename}: {error.evalue}"
    except CellTimeoutError:
        reason = f"a step took longer than {hours:g} hours and was stopped."
        details = f"If it does not hang, allow more: `hours_a_step` in {TABLE} of {project.root / FILE}."
    except RuntimeError as error:  # in a cell, or before the first one
        if not str(error).startswith("Kernel"):
            raise
        reason, details = f"{error}.", _last_words(log)
    kept = f" The partly executed notebook: {_keep(executed, failed / executed.name)}" if executed.exists() else ""
    raise UserError(f"{notebook.name}: {reason}{kept}\n{details}")


def _literally(path: Path) -> str:
    """Return `path` with doubled braces, because papermill formats its paths."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _last_words(log: Path) -> str:
    """Return the end of what a kernel wrote to the file `log`, with how it ended."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    words = ["It wrote last:", *lines[-LAST_LINES:]]
    if "SIGKILL" in words[-1]:
        advice = "Smaller parameters need less (`-p NAME=VALUE`, `--profile smoke`)."
        words.append(f"Did the machine run out of memory? {advice}")
    return "\n  ".join(words)


@contextmanager
def socket_folder() -> Iterator[Path]:
    """Make a folder for sockets, and remove it on exit; $TMPDIR may be longer than the path of a socket can be."""
    with tempfile.TemporaryDirectory(prefix=SOCKETS, dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _require_known_inputs(project: Project, name: str, log: Path) -> None:
    """Raise a `UserError` if the kernel read a file of the book that is in no cache key."""
    read = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    if unknown := sorted(file for file in read if not cache_keys.may_be_read(project, name, file)):
        listed = ", ".join(json.dumps(file) for file in unknown)
        raise UserError(
            f"{name} reads {', '.join(unknown)}, and no cache key contains it: a change would go unnoticed. Move data "
            f"of this notebook to {relative(project.data(name), project.root)}, or list what the book reads under "
            f"`inputs` in {TABLE} of {project.root / FILE}: inputs = [{listed}]"
        )


def _require_complete(notebook: Notebook, folder: Path) -> None:
    published = set(store.names_in(folder))
    if published != set(notebook.figures):
        raise UserError(f"{notebook.name} should publish {sorted(notebook.figures)} and published {sorted(published)}.")
    if slicing.publishes_claims(notebook.code) != (store.read_claims(folder) is not None):
        raise UserError(f"{notebook.name}: every `publish.claims(…)` must be a statement that the notebook reaches.")


def _claims(folder: Path) -> list[Claim]:
    return [claim for record in store.records_in(folder) for claim in record.claims]


def _withheld(folder: Path) -> list[WithheldClaim]:
    return [claim for record in store.records_in(folder) for claim in record.withheld]


def _require_unquoted(project: Project, name: str, withheld: Iterable[WithheldClaim]) -> None:
    """Raise `ClaimsFailed` if a page quotes a claim that the published figures would withhold."""
    faults = [
        f"{page} quotes the claim {claim.id!r} by a role, but it is {as_plain_text(withheld_because(claim))}. Remove "
        "the quotation, or choose parameters at which it can be claimed."
        for claim in withheld
        for page in pages_quoting(project, claim.id)
    ]
    if faults:
        raise ClaimsFailed("\n".join([f"{name}: nothing is published.", *faults]))


def broken_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims that do not hold, then those that their alternative would pass."""
    return sorted((claim for claim in claims if claim.is_broken), key=lambda claim: claim.holds)


def explain(claim: Claim) -> str:
    """Return why a claim is broken, with its numbers."""
    sentence = f"✗ {claim.id} {claim.source}: {as_plain_text(claim.statement)}"
    numbers = f"measured {claim.measured}, {claim.relation} {claim.expected} within {claim.tolerance}"
    if not claim.holds:
        return f"{sentence}\n  does not hold: {numbers}."
    alternative = claim.alternative
    theory = f", {as_plain_text(alternative.theory)} ({alternative.measured})" if alternative else ""
    return f"{sentence}\n  does not catch its alternative{theory}: {numbers}."


def _keep(executed: Path, path: Path) -> Path:
    """Copy an executed notebook to `path`, which is returned."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(executed, path)
    return path


def _accept(staging: Path, build: Build, name: str, targets: list[Target]) -> None:
    for target in targets:
        cache_keys.forget(build, target)
    for kind, target in (("tables", build.tables), ("figures", build.figures)):
        atomic.replace_folder(staging / kind / name, target / name)
    build.executed.mkdir(parents=True, exist_ok=True)
    os.replace(staging / f"{name}.ipynb", build.executed / f"{name}.ipynb")
    (build.failed / f"{name}.ipynb").unlink(missing_ok=True)


def _files(build: Build, target: Target) -> list[Path]:
    """Return the files of a target."""
    if target.figure:
        return store.files(build.figures / target.notebook, target.figure)
    claims = store.files(build.figures / target.notebook, store.CLAIMS)
    tables = sorted((build.tables / target.notebook).iterdir())
    return [build.executed / f"{target.notebook}.ipynb", *tables, *(path for path in claims if path.is_file())]
