"""Read the versions of the packages that can change a number or a picture from a lock file.

A lock file written by `uv pip compile` or `pip-compile` names under each package the packages that need it (`# via`).
These notes determine the locked packages that a computation can reach. A new version of any other package, for example
of a documentation tool, changes no number.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)\s*(?:;\s*([^\\]*?))?\s*\\?$")


def locked_versions(lock: Path, roots: Iterable[str]) -> dict[str, str]:
    """Return the locked versions of the packages `roots` and of all packages that they need.

    Args:
      lock: a lock file with one `name==version` per package. Pins whose environment marker does not hold for the
        running Python are left out.
      roots: names of distributions. A name that the lock does not pin is ignored.

    Returns:
      Versions by canonical name, sorted by name. If the lock has no `# via` notes, the packages that compute are
      unknown, and all pinned versions are returned.
    """
    versions, needed_by = _read(lock, lock.stat().st_mtime_ns)
    if not needed_by:
        return dict(sorted(versions.items()))
    reached: set[str] = {canonicalize_name(name) for name in roots}
    while pending := [name for name, users in needed_by.items() if name not in reached and users & reached]:
        reached.update(pending)
    return {name: version for name, version in sorted(versions.items()) if name in reached}


@cache
def _read(lock: Path, _modified: int) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the pinned versions by package, and for each package the packages under its `# via`."""
    versions: dict[str, str] = {}
    needed_by: dict[str, set[str]] = {}
    name = None
    for line in lock.read_text(encoding="utf-8").splitlines():
        if pin := _PIN.match(line):
            name = canonicalize_name(pin[1])
            if not pin[3] or Marker(pin[3]).evaluate():
                versions[name] = pin[2]
        elif name and line[:1].isspace() and line.lstrip().startswith("#"):
            user = line.strip().removeprefix("#").strip().removeprefix("via").strip()
            if user and "(" not in user and not user.startswith("-"):  # not the project itself, nor a file
                needed_by.setdefault(name, set()).add(canonicalize_name(user))
    return versions, needed_by
