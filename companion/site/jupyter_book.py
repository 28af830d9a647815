"""Assembling the site: Jupyter Book, strict, on top of executed notebooks and published figures.

Or of published figures alone, where nothing was run.
"""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from companion.build import cache_keys
from companion.io import atomic
from companion.io.errors import Mistake
from companion.project.paths import DEFAULT_PROFILE, PROFILE, Build, House
from companion.site import executed_notebooks

QUICKLY = "from companion import haste; haste.leave_out_grammars(); haste.collect_seldom()"
JUPYTER_BOOK = (sys.executable, "-c", f"{QUICKLY}; from jupyter_book.cli.main import main; main()")
STRICT = ("-W", "-n", "--keep-going")
# Bytes. With less, it is the disk that ended Sphinx, whatever its last words are.
FULL = 2**20


def build_site(house: House, profile: str) -> Path:
    """Build the pages of `profile` with every warning an error; the folder of the site.

    After a build that did not end well, killed or refused, every page is read and written anew: Sphinx trusts what it
    finds, a search index of which half was written, pages already read that it warned of.
    """
    build = house.build(profile)
    content = cache_keys.made_of(house, cache_keys.BOOK, profile)
    _forget(build)
    for name in house.notebooks():
        if (build.executed / f"{name}.ipynb").is_file():
            executed_notebooks.weave(house, name, profile)
        else:  # Sphinx names those that were not run
            (build.notebooks / f"{name}.ipynb").unlink(missing_ok=True)
    return _assemble(house, profile, cache_keys.BOOK, content)


def build_published_site(house: House) -> Path:
    """The same from the notebooks as they are stored and the published figures: nothing was run, nothing need be."""
    content = cache_keys.published_book(house)
    _forget(house.build(DEFAULT_PROFILE))
    for name in house.notebooks():
        executed_notebooks.weave_published(house, name)
    return _assemble(house, DEFAULT_PROFILE, cache_keys.PUBLISHED_BOOK, content)


def is_built(house: House, profile: str) -> bool:
    """Whether there is a site, and the last attempt at one ended well. It may be out of date."""
    stamps = house.build(profile).stamps
    ended = any(any(stamps.glob(f"{target}.*.json")) for target in (cache_keys.BOOK, cache_keys.PUBLISHED_BOOK))
    return ended and (house.site(profile) / "index.html").is_file()


def _forget(build: Build) -> None:
    for target in (cache_keys.BOOK, cache_keys.PUBLISHED_BOOK):
        cache_keys.forget(build, target)


def _assemble(house: House, profile: str, target: str, content: dict[str, Any]) -> Path:
    """Run Jupyter Book on the woven notebooks, and leave the stamp of `target`, which is made of `content`."""
    house.require_configuration()
    build, site = house.build(profile), house.site(profile)
    log = build.folder / "book.log"
    if build.site_begun.exists():
        for folder in (site, site.parent / ".doctrees"):
            shutil.rmtree(folder, ignore_errors=True)
    atomic.write_text(build.site_begun, "")
    with log.open("w", encoding="utf-8") as file:
        finished = subprocess.run(
            [*JUPYTER_BOOK, "build", ".", *STRICT, "--path-output", str(house.site_output(profile))],
            check=False,
            cwd=house.root,
            env={**os.environ, PROFILE: profile, "PYTHONPATH": str(house.root), "NO_COLOR": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    if finished.returncode != 0:
        if shutil.disk_usage(log.parent).free < FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(house.site_output(profile)))
        lines = log.read_text(encoding="utf-8").splitlines()
        faults = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-20:]
        raise Mistake("\n".join(["The site was not built:", *faults, f"The whole log: {log}"]))
    build.site_begun.unlink()
    pages = sorted(site.glob("*.html")) + sorted(site.glob(f"{house.book.name}/*.html"))
    cache_keys.leave_stamp(house, cache_keys.stamp_of(house, target, profile, content), pages, content)
    return site
