"""Build the site with Jupyter Book, with warnings as errors.

The pages show the executed notebooks of a profile, or, if nothing was run, the published figures.
"""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from companion.build import cache_keys
from companion.build.cache_keys import Site
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, PROFILE, Build, Project
from companion.site import notebook_pages

QUICKLY = "from companion.io import startup; startup.leave_out_grammars(); startup.collect_seldom()"
JUPYTER_BOOK = (sys.executable, "-c", f"{QUICKLY}; from jupyter_book.cli.main import main; main()")
STRICT = ("-W", "-n", "--keep-going")
# With fewer free bytes, a failure of Sphinx is reported as a full disk, whatever its log contains.
FULL = 2**20


def build_site(project: Project, profile: str) -> Path:
    """Build the pages of `profile` and return the folder of the site.

    After a build that failed or was killed, all pages are read and written again. Otherwise Sphinx would reuse an
    incomplete search index and would not repeat the warnings about pages that it has already read.

    Raises:
      UserError: if Sphinx warns; the message contains the warnings.
    """
    build = project.build(profile)
    content = cache_keys.made_of(project, Site.BUILT, profile)
    _forget(build)
    for name in project.notebooks():
        if (build.executed / f"{name}.ipynb").is_file():
            notebook_pages.weave(project, name, profile)
        else:  # the extension warns of a notebook that was not run
            (build.notebooks / f"{name}.ipynb").unlink(missing_ok=True)
    return _assemble(project, profile, Site.BUILT, content)


def build_published_site(project: Project) -> Path:
    """Build the pages from the sources of the notebooks and the published figures, without a run.

    The function returns the folder of the site, and raises the errors of `build_site`.
    """
    content = cache_keys.made_of(project, Site.PUBLISHED, DEFAULT_PROFILE)
    _forget(project.build(DEFAULT_PROFILE))
    for name in project.notebooks():
        notebook_pages.weave_published(project, name)
    return _assemble(project, DEFAULT_PROFILE, Site.PUBLISHED, content)


def is_built(project: Project, profile: str) -> bool:
    """Return whether the site of `profile` exists and its last build succeeded. It may be out of date."""
    build = project.build(profile)
    succeeded = any(cache_keys.stamps_in(build, target) for target in Site)
    return succeeded and (project.site(profile) / "index.html").is_file()


def _forget(build: Build) -> None:
    for target in Site:
        cache_keys.forget(build, target)


def _assemble(project: Project, profile: str, target: Site, content: dict[str, Any]) -> Path:
    """Run Jupyter Book on the woven notebooks, and write the stamp file of `target` with the key of `content`."""
    project.require_configuration()
    build, site = project.build(profile), project.site(profile)
    log = build.folder / "book.log"
    if build.site_begun.exists():
        for folder in (site, site.parent / ".doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    atomic.write_text(build.site_begun, "")
    with log.open("w", encoding="utf-8") as file:
        finished = subprocess.run(
            [*JUPYTER_BOOK, "build", ".", *STRICT, "--path-output", str(project.site_output(profile))],
            check=False,
            cwd=project.root,
            env={**os.environ, PROFILE: profile, "PYTHONPATH": str(project.root), "NO_COLOR": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    if finished.returncode != 0:
        if shutil.disk_usage(log.parent).free < FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(project.site_output(profile)))
        lines = log.read_text(encoding="utf-8").splitlines()
        faults = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-20:]
        raise UserError("\n".join(["The site was not built:", *faults, f"The whole log: {log}"]))
    build.site_begun.unlink()
    pages = sorted(site.glob("*.html")) + sorted(site.glob(f"{project.book.name}/*.html"))
    cache_keys.remember(build, target, content)
    cache_keys.leave_stamp(project, cache_keys.stamp_of(project, target, profile, content), pages)
    return site
