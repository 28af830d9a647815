"""Running one notebook: parameters strict, execution by papermill, results accepted whole or not at all."""

import datetime
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion import atomic, figure_set, freshness, precomputing, provenance, publication, sources
from companion.house import DEFAULT_PROFILE, OUT, PROFILE, Build, House
from companion.mistakes import ClaimsFailed, Mistake
from companion.notebooks import Notebook
from companion.parameters import check, resolve
from companion.pieces import FOLDER


@dataclass(frozen=True)
class Report:
    """What a run left: how long it took, where its files are, which published figures it replaced."""

    name: str
    seconds: float
    figures: list[str]
    claims: int
    replaced: list[str]
    folder: Path


def run(house: House, name: str, profile: str = DEFAULT_PROFILE, overrides: Mapping[str, Any] | None = None) -> Report:
    """Run notebook `name` in `profile`, with `overrides` on top.

    Without overrides its results become those of the profile (`_build/<profile>/`), and, in the default profile,
    the published figures where these moved. With overrides they go to a folder of their own, `_build/runs/…`.
    """
    values = check(house, Notebook.named(house, name), resolve(house, Notebook.named(house, name), profile, overrides))
    build = _own_build(house, name, values.model_dump()) if overrides else house.build(profile)
    with (
        atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"),
        atomic.announced(build.running / name),
    ):
        # again, and the keys now: what was edited while we waited counts, what is edited from here on leaves us stale
        notebook = Notebook.named(house, name)
        values = check(house, notebook, resolve(house, notebook, profile, overrides)).model_dump()
        targets = [name, *freshness.pictures(house, name)]
        stamps = {target: freshness.stamp(house, target, profile) for target in targets}
        started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        with atomic.staging_folder(build.staging, name) as staging:
            changed = {key: value for key, value in values.items() if value != notebook.defaults[key]}
            environment = {OUT: str(staging), PROFILE: profile}
            if not overrides and (pieces := precomputing.folder(house, name, profile)):  # they are those of the profile
                environment[FOLDER] = str(pieces)
            _execute(house, notebook, changed, staging, environment=environment, failed=build.failed)
            claims = _verified_claims(notebook, staging, build)
            for target in targets:
                freshness.forget(build, target)
            _accept(staging, build, name)
            device = json.loads((staging / "device.json").read_text())
        seconds = time.monotonic() - clock
        provenance.record(house, build.provenance / f"{name}.json", started=started, seconds=seconds, device=device)
        if not overrides:
            for target, path in stamps.items():
                if path == freshness.stamp(house, target, profile):
                    freshness.leave_stamp(house, path, _files(build, target))
    replaced = publication.publish_figures(house, name) if profile == DEFAULT_PROFILE and not overrides else []
    return Report(name, seconds, notebook.figures, len(claims), replaced, build.figures / name)


def _own_build(house: House, name: str, values: Mapping[str, Any]) -> Build:
    key = sources.digest(atomic.dump_json(dict(values)).encode())[:8]
    folder = house.generated / "runs" / f"{name}-{key}"
    return Build(folder, folder / "provenance")


def _execute(
    house: House,
    notebook: Notebook,
    changed: Mapping[str, Any],
    staging: Path,
    *,
    environment: Mapping[str, str],
    failed: Path,
) -> None:
    import papermill  # these two take a second to import, and a wrong parameter should be told at once
    from papermill.exceptions import PapermillExecutionError

    executed = staging / f"{notebook.name}.ipynb"
    try:
        visible = {**environment, "PYTHONPATH": str(house.root), "MPLBACKEND": "agg"}
        with _environment(visible), _kernel_manager() as kernel_manager_class:
            papermill.execute_notebook(
                notebook.path,
                executed,
                parameters=dict(changed),
                kernel_name="python3",
                cwd=house.root,
                progress_bar=sys.stderr.isatty(),
                kernel_manager_class=kernel_manager_class,
                extra_arguments=["--log-level=CRITICAL"],  # shutting down under load says "KeyboardInterrupt"
            )
    except PapermillExecutionError as error:
        kept = _keep(executed, failed / executed.name)
        raise Mistake(
            f"{notebook.name}: cell {error.exec_count} failed. The notebook as far as it came: {kept}\n"
            f"{error.ename}: {error.evalue}"
        ) from error


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
    """A kernel manager over UNIX sockets in a short folder of its own, so that parallel runs never race for ports."""
    from jupyter_client.manager import AsyncKernelManager
    from traitlets import CaselessStrEnum, Unicode

    with tempfile.TemporaryDirectory(prefix="lpa-") as folder:

        class SocketFileKernelManager(AsyncKernelManager):
            transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc")
            connection_file = Unicode(os.path.join(folder, "kernel.json"))

        yield SocketFileKernelManager


def _verified_claims(notebook: Notebook, staging: Path, build: Build) -> list[dict[str, Any]]:
    folder = staging / "figures" / notebook.name
    made = set(figure_set.names_in(folder))
    if made != set(notebook.figures):
        raise Mistake(f"{notebook.name} should publish {sorted(notebook.figures)} and published {sorted(made)}.")
    if faults := [fault for figure in sorted(made) for fault in figure_set.faults(folder, figure)]:
        raise Mistake(f"{notebook.name} left a mixed set of files: {'; '.join(faults)}.")
    claims = [claim for figure in notebook.figures for claim in figure_set.read_record(folder, figure)["claims"]]
    broken = [claim for claim in claims if not claim["holds"]] + [
        claim for claim in claims if claim["holds"] and not claim["catches_alternative"]
    ]
    if broken:
        kept = _keep(staging / f"{notebook.name}.ipynb", build.failed / f"{notebook.name}.ipynb")
        raise ClaimsFailed("\n".join([f"{notebook.name}: nothing is published.", *map(_why, broken), f"See {kept}"]))
    return claims


def _why(claim: Mapping[str, Any]) -> str:
    sentence = f"✗ {claim['id']} {claim['source']}: {claim['statement']}"
    numbers = f"measured {claim['measured']}, {claim['relation']} {claim['expected']} within {claim['tolerance']}"
    if not claim["holds"]:
        return f"{sentence}\n  does not hold: {numbers}."
    other = claim["alternative"]
    return f"{sentence}\n  does not catch its alternative, {other['says']} ({other['measured']}): {numbers}."


def _keep(executed: Path, kept: Path) -> Path:
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(executed, kept)
    return kept


def _accept(staging: Path, build: Build, name: str) -> None:
    for kind, target in (("tables", build.tables), ("figures", build.figures)):
        atomic.replace_folder(staging / kind / name, target / name)
    build.executed.mkdir(parents=True, exist_ok=True)
    os.replace(staging / f"{name}.ipynb", build.executed / f"{name}.ipynb")
    (build.failed / f"{name}.ipynb").unlink(missing_ok=True)


def _files(build: Build, target: str) -> list[Path]:
    """What a target, a notebook or a picture of it, consists of."""
    name, _, figure = target.partition("-")
    if figure:
        return figure_set.files(build.figures / name, figure)
    return [build.executed / f"{name}.ipynb", *sorted((build.tables / name).iterdir())]
