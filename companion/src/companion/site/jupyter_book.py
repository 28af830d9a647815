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

from companion.build import cache_keys
from companion.build.cache_keys import Site
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import PROFILE, Project
from companion.site import notebook_pages

# Sphinx keeps its trees: the garbage collector would take a tenth of the time and free little.
QUICKLY = "import gc; gc.disable(); from companion.io import startup; startup.skip_unused_formats()"
JUPYTER_BOOK = (sys.executable, "-c", f"{QUICKLY}; from jupyter_book.cli.main import main; main()")
STRICT = ("-W", "-n", "--keep-going")
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# The line before a traceback, the line after it if another follows, and a step of the build.
TRACEBACK = "Traceback (most recent call last):"
CHAINED = re.compile(r"^(?:The above exception was|During handling of the above|Traceback \().*", re.MULTILINE)
STEP = re.compile(r"\.\.\. \[ *\d+%\]")
# With fewer free bytes, a failure of Sphinx is reported as a full disk, whatever its log contains.
FULL = 2**20


def build_site(project: Project, profile: str, *, published: bool = False) -> Path:
    """Build the pages of `profile` and return the folder of the site.

    After a build that failed or was killed, all pages are read and written again. Otherwise Sphinx would reuse an
    incomplete page and would not repeat the warnings about pages that it has already read.

    Args:
      project: the book.
      profile: the profile whose runs the pages show.
      published: whether the pages are made of the sources of the notebooks and the published figures, without a run.

    Raises:
      UserError: if Sphinx warns; the message contains the warnings.
    """
    build, target = project.build(profile), Site.PUBLISHED if published else Site.BUILT
    content = cache_keys.made_of(project, target, profile)
    for earlier in Site:
        cache_keys.forget(build, earlier)
    for name in project.notebooks():
        if published:
            notebook_pages.weave_published(project, name)
        elif (build.executed / f"{name}.ipynb").is_file():
            notebook_pages.weave(project, name, profile)
        else:  # the extension warns of a notebook that was not run
            (build.notebooks / f"{name}.ipynb").unlink(missing_ok=True)
    if build.site_begun.exists():
        for folder in (project.site(profile), project.site(profile).parent / ".doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    atomic.write_text(build.site_begun, "")
    _run_jupyter_book(project, profile)
    build.site_begun.unlink()
    cache_keys.leave_stamp_of(project, target, profile, content, _pages(project, profile))
    return project.site(profile)


def explain_log(text: str) -> list[str]:
    """Return the lines of a log that say why Sphinx failed: its warnings, and the exception that ended the build.

    Of an exception, the lines are the step that raised it, its innermost frame, and the exception itself. The other
    frames and the exceptions that follow from it, which are those of Sphinx and of Jupyter Book, are left out. If the
    log has neither warnings nor an exception, its last lines are returned.
    """
    text = re.sub(r"[\r\n]+", "\n", COLOUR.sub("", text))
    before, _, traceback = text.partition(TRACEBACK)
    lines = before.splitlines()
    reasons = [line for line in lines if "WARNING" in line or "ERROR" in line]
    if traceback:
        innermost = CHAINED.split(traceback)[0].rpartition("\n  File ")
        reasons += [line for line in lines if STEP.search(line)][-1:]
        reasons += "".join(innermost[1:]).strip("\n").splitlines()
    return reasons or lines[-20:]


def is_built(project: Project, profile: str) -> bool:
    """Return whether the site of `profile` exists and its last build succeeded. It may be out of date."""
    build = project.build(profile)
    succeeded = any(cache_keys.stamps_in(build, target) for target in Site)
    return succeeded and (project.site(profile) / "index.html").is_file()


def _run_jupyter_book(project: Project, profile: str) -> None:
    """Build the pages from the woven notebooks."""
    log = project.build(profile).folder / "book.log"
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
        reasons = explain_log(log.read_text(encoding="utf-8"))
        raise UserError("\n".join(["The site was not built:", *reasons, f"The whole log: {log}"]))


def offer_pdf(project: Project, profile: str, pdf: Path) -> None:
    """Copy the PDF of a built site to the site, and link it on the pages of chapters."""
    from companion.site.sphinx.citations import fill_marks, pdf_name  # Sphinx is slow to import

    build, site = project.build(profile), project.site(profile)
    stamps = [stamp for target in Site for stamp in cache_keys.stamps_in(build, target)]
    shutil.copyfile(pdf, site / pdf_name(project))
    fill_marks(project, site)
    for stamp in stamps:
        cache_keys.leave_stamp(project, stamp, _pages(project, profile))


def _pages(project: Project, profile: str) -> list[Path]:
    site = project.site(profile)
    return sorted(site.glob("*.html")) + sorted(site.glob(f"{project.book.name}/*.html"))
