"""Assembling the site: Jupyter Book, strict, on top of executed notebooks and published figures."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from companion import atomic, freshness, weaving
from companion.house import PROFILE, House
from companion.mistakes import Mistake

JUPYTER_BOOK = (sys.executable, "-c", "from jupyter_book.cli.main import main; main()")
STRICT = ("-W", "-n", "--keep-going")


def build_site(house: House, profile: str) -> Path:
    """Build the pages of `profile` with every warning an error; the folder of the site.

    After a build that did not end well, killed or refused, every page is read and written anew: Sphinx trusts what it
    finds, a search index of which half was written, pages already read that it warned of.
    """
    house.require_configuration()
    build, site = house.build(profile), house.site(profile)
    stamp = freshness.stamp(house, freshness.BOOK, profile)
    freshness.forget(build, freshness.BOOK)
    for name in house.notebooks():
        if (build.executed / f"{name}.ipynb").is_file():
            weaving.weave(house, name, profile)
        else:  # Sphinx names those that were not run
            (build.notebooks / f"{name}.ipynb").unlink(missing_ok=True)
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
        lines = log.read_text(encoding="utf-8").splitlines()
        faults = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-20:]
        raise Mistake("\n".join(["The site was not built:", *faults, f"The whole log: {log}"]))
    build.site_begun.unlink()
    freshness.leave_stamp(house, stamp, sorted(site.glob("*.html")) + sorted(site.glob(f"{house.book.name}/*.html")))
    return site
