"""Check, in the first cell of every notebook, that the installed and the loaded packages belong to one book.

The module needs only the standard library and `companion.io.errors`, because an installation may be incomplete.
"""

import re
import sys
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path

from companion.io.errors import UserError

RESTART = "Restart the kernel (in Colab: Runtime, Restart session), then run the notebook from its top."

# The state at the first check of this kernel: the files of the packages, and the versions of their requirements.
_files: dict[str, bytes] = {}
_versions: dict[str, str] = {}


def look_around(packages: Mapping[str, str], distribution: str, *, just_installed: bool = False) -> None:
    """Check that the packages of a book work together in this kernel.

    Args:
      packages: the folder of each package in a clone of the book, by package.
      distribution: the name of the book's distribution.
      just_installed: whether the calling cell installed the distribution, which may have replaced loaded packages.

    Raises:
      UserError: if a folder or file next to the notebook hides a package; if this kernel has loaded a package from
        another copy of the book than Python finds now (the clone around the notebook, if there is one); or if a loaded
        file, or a loaded requirement of the distribution, was replaced.
    """
    origins = {name: _origin(name) for name in packages}
    _require_one_folder(origins, packages)
    _require_one_copy(origins)
    loaded = {str(getattr(module, "__file__", None)): name for name, module in sys.modules.items()}
    replaced = []
    for path, content in _contents(origins).items():
        if _files.setdefault(path, content) != content and path in loaded:
            replaced.append(loaded[path])
    for name, version in _versions_needed(distribution).items():
        module = sys.modules.get(name)
        loaded_version = getattr(module, "__version__", version) if just_installed else version
        if _versions.setdefault(name, loaded_version) != version and module:
            replaced.append(f"{name} {_versions[name]} (now {version})")
    if replaced:
        names = ", ".join(sorted(replaced)[:5])
        raise UserError(f"This kernel has loaded modules that were replaced afterwards: {names}. {RESTART}")


def _origin(name: str) -> Path:
    """Return the file that Python would load for package `name` now, or else the file that it has loaded."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    specs = (finder.find_spec(name, None) for finder in finders)
    spec = next((spec for spec in specs if spec and spec.origin), None) or util.find_spec(name)
    if spec is None or spec.origin is None:
        raise UserError(
            f"The package `{name}` is not installed, but other packages of its book are. Install the book again."
        )
    return Path(spec.origin)


def _require_one_folder(origins: dict[str, Path], packages: Mapping[str, str]) -> None:
    """Raise a `UserError` if a folder or file next to the notebook has the name of a package of the book.

    The packages are in one folder or in one clone, so a package that is found next to the notebook is a different one.
    """
    parents = {_home(path, packages[name]) for name, path in origins.items()}
    folder = Path.cwd()
    if len(parents) > 1 and folder in parents:
        names = [name for name in origins if (folder / name).is_dir() or (folder / f"{name}.py").is_file()]
        listed = " and ".join(f"`{name}`" for name in names)
        raise UserError(f"Next to this notebook, {listed} hides an installed package of its book. Rename it. {RESTART}")


def _home(origin: Path, folder: str) -> Path:
    """Return the clone that contains the file of a package, or else the folder in which the package is installed."""
    if origin.stem != "__init__":
        return origin.parent
    parts = Path(folder).parts
    levels = len(parts) if origin.parent.parts[-len(parts) :] == parts else 1
    return origin.parents[levels]


def _require_one_copy(origins: dict[str, Path]) -> None:
    """Raise a `UserError` if this kernel has loaded a package from another file than Python finds now."""
    for name, origin in origins.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and Path(loaded).resolve() != origin.resolve():
            folders = f"{Path(loaded).parent}, but this notebook needs the one in {origin.parent}"
            raise UserError(f"This kernel has loaded the package `{name}` in {folders}. {RESTART}")


def _contents(origins: dict[str, Path]) -> dict[str, bytes]:
    files = [path for origin in origins.values() for path in origin.parent.rglob("*.py")]
    # editors leave hidden files, such as `.#name.py`, a link to nothing
    return {str(path): path.read_bytes() for path in files if path.is_file() and not path.name.startswith(".")}


def _versions_needed(distribution: str) -> dict[str, str]:
    """Return the versions of the installed requirements of `distribution`."""
    versions = {}
    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return versions
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
