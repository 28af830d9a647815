"""Running one notebook: parameters strict, execution by papermill, results accepted whole or not at all."""

import datetime
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from companion.analysis import dependencies, import_recorder
from companion.authoring.tasks import FOLDER
from companion.build import cache_keys, fork_server, publication_policy, task_cache
from companion.figures import store
from companion.figures.record import ClaimRecord
from companion.io import atomic, signals, startup
from companion.io.errors import ClaimsFailed, UserError
from companion.project import provenance
from companion.project.configuration import FILE, TABLE
from companion.project.notebooks import Notebook
from companion.project.parameters import check, resolve
from companion.project.paths import CACHE, DEFAULT_PROFILE, OUT, PROFILE, Build, Project

# How the folders of sockets are called, below that of temporary files.
SOCKETS = "lpa-"


@dataclass(frozen=True)
class Report:
    """The outcome of a run: its duration, the folder of its files, and the published figures that it replaced.

    A custom run has a page that compares its figures with the published ones. A result whose sources were `edited`
    during the run is stale and not published.
    """

    name: str
    seconds: float
    figures: list[str]
    claims: int
    replaced: list[str]
    folder: Path
    page: Path | None
    edited: bool


def run(
    project: Project,
    name: str,
    profile: str = DEFAULT_PROFILE,
    overrides: Mapping[str, Any] | None = None,
    figure: str | None = None,
    *,
    apart: bool = False,
) -> Report:
    """Run notebook `name` in `profile`, with `overrides` on top. Raises `ClaimsFailed` if a claim fails.

    With `figure`, only the steps that lead to that figure are run.

    Without overrides, figure and `apart`, its results become those of the profile (`_build/<profile>/`), and, in the
    default profile, the published figures where these moved; if a claim fails, nothing changes. Else they go to a
    folder of their own, `_build/runs/…`, whatever its claims say, with a page that compares them with what is
    published; what is there already is not computed again.
    """
    mine, clock = overrides or figure or apart, time.monotonic()

    def place() -> Build:
        return own_build(project, name, profile, overrides, figure) if mine else project.build(profile)

    replaced = []
    _clear(project, project.build(profile))
    with _locked(name, place) as build, atomic.announced(build.running / name):
        # parameters and keys are read only now: what was edited while we waited counts
        if mine:
            claims = _run_for_oneself(project, name, profile, overrides or {}, build, figure=figure)
        else:
            claims = _run_for_the_profile(project, name, profile, build)
    targets = [name, *cache_keys.pictures(project, name)]
    edited = not mine and not all(cache_keys.is_fresh(project, target, profile) for target in targets)
    if not mine and not edited and profile == DEFAULT_PROFILE:
        replaced = publication_policy.publish_figures(project, name)
    figures = [figure] if figure else Notebook.named(project, name).figures
    page = build.page if mine else None
    return Report(name, time.monotonic() - clock, figures, len(claims), replaced, build.figures / name, page, edited)


@contextmanager
def _locked(name: str, place: Callable[[], Build]) -> Iterator[Build]:
    """Hold the lock of notebook `name` in the folder that `place` says, still when the lock is held.

    The folder of a custom run follows from its values, and a profile may be edited while this process waits.
    """
    while True:
        build = place()
        with atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"):
            if place() == build:
                yield build
                return


def _clear(project: Project, build: Build) -> None:
    """Remove the unfinished results of killed runs, in `build` and in the folders of custom runs."""
    folders = project.runs.iterdir() if project.runs.is_dir() else ()
    for place in (build, *(project.own_build(folder.name) for folder in folders)):
        for staging in place.staging.glob("*"):
            lock = staging.name.lstrip(".").rpartition("-")[0].removeprefix("draw-")
            with atomic.if_free(place.locks / lock) as dead:
                if dead:
                    atomic.remove_folder(staging)


def own_build(
    project: Project, name: str, profile: str, overrides: Mapping[str, Any] | None, figure: str | None = None
) -> Build:
    """Where a run with these parameters leaves its results: their values decide the folder, not how they were given."""
    values = _checked(project, name, profile, overrides or {})
    digest = dependencies.digest(atomic.dump_json(values).encode())[:8]
    return project.own_build("-".join([name, *([figure] if figure else []), digest]))


def _checked(project: Project, name: str, profile: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    notebook = Notebook.named(project, name)
    return check(project, notebook, resolve(project, notebook, profile, overrides)).model_dump()


def _run_for_the_profile(project: Project, name: str, profile: str, build: Build) -> list[ClaimRecord]:
    """Accepted only if every claim holds; its claims."""
    targets = [name, *cache_keys.pictures(project, name)]
    stamps = {target: cache_keys.stamp(project, target, profile) for target in targets}
    data = cache_keys.traces(project, name)
    with _results(project, name, profile, {}, build) as staging:
        claims = _claims(staging / "figures" / name)
        if broken := broken_claims(claims):
            kept = _keep(staging / f"{name}.ipynb", build.failed / f"{name}.ipynb")
            raise ClaimsFailed("\n".join([f"{name}: nothing is published.", *map(_why, broken), f"See {kept}"]))
        _accept(staging, build, name, targets)
        kept = (
            _still(project, targets, staging / import_recorder.FOLDER)
            if cache_keys.traces(project, name) == data
            else []
        )
    for target in kept:
        path, content = stamps[target], cache_keys.made_of(project, target, profile)
        if path == cache_keys.stamp_of(project, target, profile, content):  # else it was edited meanwhile, and is stale
            cache_keys.leave_stamp(project, path, _files(build, target), content)
    return claims


def _run_for_oneself(
    project: Project, name: str, profile: str, overrides: Mapping[str, Any], build: Build, *, figure: str | None
) -> list[ClaimRecord]:
    """Accept the results whether or not the claims hold; report the claims after the page of the run is written."""
    from companion.runs import report

    stamp, data = (
        cache_keys.run_stamp(project, build, name, profile, overrides, figure=figure),
        cache_keys.traces(project, name),
    )
    if not cache_keys.intact(project, stamp):
        with _results(project, name, profile, overrides, build, figure=figure) as staging:
            _accept(staging, build, name, [name])
            pictures = [cache_keys.picture_target(name, figure or "")]
            still = (
                _still(project, pictures, staging / import_recorder.FOLDER) and cache_keys.traces(project, name) == data
            )
        if still and stamp == cache_keys.run_stamp(project, build, name, profile, overrides, figure=figure):
            figures = sorted((build.figures / name).iterdir())
            cache_keys.leave_stamp(project, stamp, [*_files(build, name), *figures])
    page = report.write(project, build.folder.name)
    claims = _claims(build.figures / name)
    if broken := broken_claims(claims):
        kept = f"The results are kept. Beside what is published: {page}"
        raise ClaimsFailed("\n".join([f"{name}: a run of your own.", *map(_why, broken), kept]))
    return claims


def _still(project: Project, targets: list[str], kept: Path) -> list[str]:
    """Those of `targets`, notebooks and pictures, that the sources here decide as those that the kernel imported did.

    A source that was edited and put back meanwhile left its numbers; its key would not tell.
    """
    files = [(path, project.root / path.relative_to(kept)) for path in kept.rglob("*.py")]
    same: dict[Literal["numbers", "picture"], bool] = {
        part: all(now.is_file() and dependencies.same_code(then, now, part) for then, now in files)
        for part in ("numbers", "picture")
    }
    return [target for target in targets if same["numbers"] and (same["picture"] or "-" not in target)]


@contextmanager
def _results(
    project: Project, name: str, profile: str, overrides: Mapping[str, Any], build: Build, *, figure: str | None = None
) -> Iterator[Path]:
    """A folder with what the notebook leaves, whole sets of files, to be accepted inside; its provenance at the end."""
    notebook, values = Notebook.named(project, name), _checked(project, name, profile, overrides)
    changed = {key: value for key, value in values.items() if value != notebook.defaults[key]}
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    with atomic.staging_folder(build.staging, name) as staging:
        environment = {OUT: str(staging), PROFILE: profile, CACHE: str(project.cache)}
        if not overrides and (tasks := task_cache.folder(project, name, profile)):  # they are those of the profile
            environment[FOLDER] = str(tasks)
        if figure:
            notebook = _leave_only(notebook, figure, staging)
        _execute(project, notebook, changed, staging, environment=environment, failed=build.failed)
        _require_whole(notebook, staging / "figures" / name)
        device = json.loads((staging / "device.json").read_text())
        yield staging
    seconds = time.monotonic() - clock
    provenance.record(project, build.provenance / f"{name}.json", started=started, seconds=seconds, device=device)


def _leave_only(notebook: Notebook, figure: str, staging: Path) -> Notebook:
    """A copy of the notebook that computes one figure."""
    path = staging / "steps" / notebook.path.name
    atomic.write_text(path, atomic.dump_json(notebook.only(figure)))
    return Notebook(path)


def _execute(
    project: Project,
    notebook: Notebook,
    changed: Mapping[str, Any],
    staging: Path,
    *,
    environment: Mapping[str, str],
    failed: Path,
) -> None:
    startup.leave_out_grammars()
    import papermill  # these take a second to import, and a wrong parameter should be told at once
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    executed, hours = staging / f"{notebook.name}.ipynb", project.settings.hours_a_step
    try:
        visible = {**environment, "PYTHONPATH": str(project.root), "MPLBACKEND": "agg"}
        with _environment(visible), _kernel_manager() as kernel_manager_class:
            papermill.execute_notebook(
                _literally(notebook.path),
                _literally(executed),
                parameters=dict(changed),
                kernel_name="python3",
                cwd=project.root,
                progress_bar=sys.stderr.isatty(),
                kernel_manager_class=kernel_manager_class,
                execution_timeout=math.ceil(3600 * hours),
                extra_arguments=[
                    "--log-level=CRITICAL",  # shutting down under load says "KeyboardInterrupt"
                    f"--IPKernelApp.extra_extensions={import_recorder.__name__}",
                ],
            )
    except PapermillExecutionError as error:
        kept = _keep(executed, failed / executed.name)
        raise UserError(
            f"{notebook.name}: cell {error.exec_count} failed. The notebook as far as it came: {kept}\n"
            f"{error.ename}: {error.evalue}"
        ) from error
    except DeadKernelError as error:
        raise UserError(
            f"{notebook.name}: its kernel died, without an error of its own. Did the machine run out of memory? "
            f"Smaller parameters need less (`-p NAME=VALUE`, `--profile smoke`).{_as_far(executed, failed)}"
        ) from error
    except CellTimeoutError as error:
        raise UserError(
            f"{notebook.name}: a step took longer than {hours:g} hours, and was ended. If it does not hang, allow "
            f"more: `hours_a_step` in {TABLE} of {project.root / FILE}.{_as_far(executed, failed)}"
        ) from error


def _as_far(executed: Path, failed: Path) -> str:
    """Return a sentence with the path of the partly executed notebook, if it exists."""
    if not executed.exists():
        return ""
    return f" The notebook as far as it came: {_keep(executed, failed / executed.name)}"


def _literally(path: Path) -> str:
    """Return `path` with doubled braces, because papermill formats its paths."""
    return str(path).replace("{", "{{").replace("}", "}}")


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _kernel_manager() -> Iterator[type]:
    """Return a kernel manager over UNIX sockets in a short temporary folder; parallel runs never race for ports.

    Its kernels end at once where a signal ends this process.
    """
    import psutil
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import CaselessStrEnum, Unicode

    managers: list[AsyncKernelManager] = []
    before = {child.pid for child in psutil.Process().children()}

    def kill() -> None:
        for manager in managers:
            if pid := getattr(manager.provisioner, "pid", None):  # its kernel leads a group of its own
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)

    with socket_folder() as folder, signals.at_once(kill):

        class SocketFileKernelManager(AsyncKernelManager):
            transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc")
            connection_file = Unicode(os.path.join(folder, "kernel.json"))

            def __init__(self, *args: Any, **kwargs: Any):
                super().__init__(*args, **kwargs)
                managers.append(self)

            async def _async_launch_kernel(self, kernel_cmd: list[str], **kw: Any) -> None:
                folder = str(kw.get("cwd") or os.getcwd())
                forked = fork_server.kernel(kernel_cmd, kw.get("env") or os.environ, folder)
                if forked is None:
                    await super()._async_launch_kernel(kernel_cmd, **kw)
                    return
                provisioner: Any = self.provisioner
                provisioner.process, provisioner.pid, provisioner.pgid = forked, forked.pid, forked.pid
                provisioner.cwd = folder

            _launch_kernel = _async_launch_kernel

        try:
            yield SocketFileKernelManager
        except KeyboardInterrupt:
            kill()  # one may have started since
            # and one may have been starting, so that nobody knew its number: it would put its sockets back
            starting = [child for child in psutil.Process().children() if child.pid not in before]
            for child in starting:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(starting, timeout=1)
            raise


@contextmanager
def socket_folder() -> Iterator[Path]:
    """A folder with a name short enough for sockets, removed at the end; those of killed runs are removed now."""
    temporary = Path(tempfile.gettempdir())
    for other in temporary.glob(f"{SOCKETS}*"):
        with atomic.if_free(other / "lock") as dead:
            if dead:
                shutil.rmtree(other, ignore_errors=True)
    hidden = Path(tempfile.mkdtemp(prefix=f".{SOCKETS}"))
    folder = hidden.with_name(hidden.name.removeprefix("."))
    try:
        with atomic.locked(hidden / "lock", ""):
            hidden.rename(folder)  # nobody looks at it before it is locked
            yield folder
    finally:
        with suppress(OSError):
            folder.rename(hidden)  # a kernel that is only starting would put its sockets there
        shutil.rmtree(hidden, ignore_errors=True)


def _require_whole(notebook: Notebook, folder: Path) -> None:
    made = set(store.names_in(folder))
    if made != set(notebook.figures):
        raise UserError(f"{notebook.name} should publish {sorted(notebook.figures)} and published {sorted(made)}.")
    if faults := [fault for figure in sorted(made) for fault in store.faults(folder, figure)]:
        raise UserError(f"{notebook.name} left a mixed set of files: {'; '.join(faults)}.")


def _claims(folder: Path) -> list[ClaimRecord]:
    return [claim for figure in store.names_in(folder) for claim in store.read_record(folder, figure).claims]


def broken_claims(claims: Iterable[ClaimRecord]) -> list[ClaimRecord]:
    """Return the claims that do not hold, then those that could not fail."""
    return sorted((claim for claim in claims if claim.is_broken), key=lambda claim: claim.holds)


def _why(claim: ClaimRecord) -> str:
    sentence = f"✗ {claim.id} {claim.source}: {claim.statement}"
    numbers = f"measured {claim.measured}, {claim.relation} {claim.expected} within {claim.tolerance}"
    if not claim.holds:
        return f"{sentence}\n  does not hold: {numbers}."
    other = claim.alternative
    words = f", {other.theory} ({other.measured})" if other else ""
    return f"{sentence}\n  does not catch its alternative{words}: {numbers}."


def _keep(executed: Path, kept: Path) -> Path:
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(executed, kept)
    return kept


def _accept(staging: Path, build: Build, name: str, targets: list[str]) -> None:
    for target in targets:
        cache_keys.forget(build, target)
    for kind, target in (("tables", build.tables), ("figures", build.figures)):
        atomic.replace_folder(staging / kind / name, target / name)
    build.executed.mkdir(parents=True, exist_ok=True)
    os.replace(staging / f"{name}.ipynb", build.executed / f"{name}.ipynb")
    (build.failed / f"{name}.ipynb").unlink(missing_ok=True)


def _files(build: Build, target: str) -> list[Path]:
    """What a target, a notebook or a picture of it, consists of."""
    name, _, figure = target.partition("-")
    if figure:
        return store.files(build.figures / name, figure)
    return [build.executed / f"{name}.ipynb", *sorted((build.tables / name).iterdir())]
