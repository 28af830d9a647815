"""Build the site with Jupyter Book, with warnings as errors.

The pages show the executed notebooks of a profile, or, if nothing was run, the published figures.
"""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from companion.analysis.dependencies import MACHINE
from companion.build import cache_keys
from companion.build.cache_keys import Site
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, PROFILE, Build, Project
from companion.site import notebook_pages

QUICKLY = "from companion.io import startup; startup.collect_seldom(); startup.skip_grammar_of_addresses()"
JUPYTER_BOOK = (sys.executable, "-c", f"{QUICKLY}; from jupyter_book.cli.main import main; main()")
STRICT = ("-W", "-n", "--keep-going")
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# The lines before a traceback, and between two tracebacks.
TRACEBACK = "Traceback (most recent call last):"
CHAINED = ("The above exception was", "During handling of the above")
# With fewer free bytes, a failure of Sphinx is reported as a full disk, whatever its log contains.
FULL = 2**20


def build_site(project: Project, profile: str) -> Path:
    """Build the pages of `profile` and return the folder of the site.

    After a build that failed or was killed, all pages are read and written again. Otherwise Sphinx would reuse an
    incomplete page and would not repeat the warnings about pages that it has already read.

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


def explain_log(text: str, root: Path) -> list[str]:
    """Return the lines of a log that say why Sphinx failed: its warnings, and the exception that ended the build.

    Of an exception, the lines are the step that raised it, the innermost line of this package or of the book, and the
    exception itself. The frames of Sphinx and of Jupyter Book, which follow in the log, are left out. If the log has
    neither warnings nor an exception, its last lines are returned.
    """
    lines = re.split(r"[\r\n]+", COLOUR.sub("", text))
    end = lines.index(TRACEBACK) if TRACEBACK in lines else len(lines)
    warnings = [line for line in lines[:end] if "WARNING" in line or "ERROR" in line]
    return [*warnings, *_exception(lines, end, root)] or lines[-20:]


def _exception(lines: list[str], start: int, root: Path) -> list[str]:
    """Return the lines about the exception whose traceback begins at line `start`; none if there is no such line."""
    steps = [line for line in lines[:start] if re.search(r"\.\.\. \[ *\d+%\]", line)]
    frames: list[list[str]] = []
    exception: list[str] = []
    for line in lines[start + 1 :]:
        if line == TRACEBACK or line.startswith(CHAINED):
            break
        if line.startswith('  File "'):
            frames.append([line])
        elif line.startswith("  ") and frames and not exception:
            frames[-1].append(line)
        elif line.strip():
            exception.append(line)
    own = [frame for frame in frames if _is_own(frame[0], root)]
    innermost = (own or frames or [[]])[-1]
    return [*steps[-1:], *innermost[:2], *exception]


def _is_own(frame: str, root: Path) -> bool:
    """Return whether a line `File "PATH", line N` names a file of this package or of the book."""
    path = Path(frame.split('"')[1])
    in_book = path.is_relative_to(root) and "site-packages" not in path.relative_to(root).parts
    return in_book or path.is_relative_to(MACHINE)


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
    # settings of the user that would make warnings of Python errors, or the log undecodable, do not count
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    path = os.pathsep.join(project.search_path)
    environment |= {PROFILE: profile, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    with log.open("w", encoding="utf-8") as file:
        finished = subprocess.run(
            [*JUPYTER_BOOK, "build", ".", *STRICT, "--path-output", str(project.site_output(profile))],
            check=False,
            cwd=project.root,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    if finished.returncode != 0:
        if shutil.disk_usage(log.parent).free < FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(project.site_output(profile)))
        reasons = explain_log(log.read_text(encoding="utf-8"), project.root)
        raise UserError("\n".join(["The site was not built:", *reasons, f"The whole log: {log}"]))
    build.site_begun.unlink()
    cache_keys.leave_stamp_of(project, target, profile, content, _pages(project, site))
    return site


def offer_pdf(project: Project, profile: str, pdf: Path) -> None:
    """Copy the PDF of a built site to the site, and link it on the pages of chapters."""
    from companion.site.sphinx.citations import fill_marks, pdf_name  # Sphinx is slow to import

    build, site = project.build(profile), project.site(profile)
    stamps = [stamp for target in Site for stamp in cache_keys.stamps_in(build, target)]
    shutil.copyfile(pdf, site / pdf_name(project))
    fill_marks(project, site)
    for stamp in stamps:
        cache_keys.leave_stamp(project, stamp, _pages(project, site))


def _pages(project: Project, site: Path) -> list[Path]:
    return sorted(site.glob("*.html")) + sorted(site.glob(f"{project.book.name}/*.html"))
