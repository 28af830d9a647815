"""What the first cell of every notebook asks: do the packages that are found, loaded and installed belong together?

It stands on the standard library alone, because it runs where an installation may be half done.
"""

import re
import sys
from importlib import metadata, util
from pathlib import Path

from companion.io.errors import UserError

RESTART = "Restart the kernel (in Colab: Runtime, Restart session), then run the notebook from its top."

# What this kernel began with: the files of the packages, and the versions of what they need.
_files: dict[str, bytes] = {}
_versions: dict[str, str] = {}


def look_around(packages: list[str], distribution: str, *, just_installed: bool = False) -> None:
    """Raise a `UserError` that says what to do where the `packages` of a book would not work.

    That is where a folder or a file beside the notebook bears the name of one of them; where this kernel has loaded one
    from another copy of the book than the one that Python finds now, which is the clone around the notebook if there is
    one; and where it has loaded what was replaced since: their files, or, once `distribution` was `just_installed`,
    older versions of what it needs.
    """
    places = {name: _place(name) for name in packages}
    _require_one_home(places)
    _require_one_copy(places)
    loaded = {str(getattr(module, "__file__", None)): name for name, module in sys.modules.items()}
    replaced = []
    for path, content in _contents(places).items():
        if _files.setdefault(path, content) != content and path in loaded:
            replaced.append(loaded[path])
    for name, version in _versions_needed(distribution).items():
        module = sys.modules.get(name)
        began = getattr(module, "__version__", version) if just_installed else version
        if _versions.setdefault(name, began) != version and module:
            replaced.append(f"{name} {_versions[name]} (now {version})")
    if replaced:
        raise UserError(f"This kernel has loaded what was replaced since: {', '.join(sorted(replaced)[:5])}. {RESTART}")


def _place(name: str) -> Path:
    """Return the file that Python finds for package `name` now, even if it has loaded another; else the loaded file."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    specs = (finder.find_spec(name, None) for finder in finders)
    spec = next((spec for spec in specs if spec and spec.origin), None) or util.find_spec(name)
    if spec is None or spec.origin is None:
        raise UserError(
            f"The package `{name}` is not installed, though others of its book are: install the book again."
        )
    return Path(spec.origin)


def _require_one_home(places: dict[str, Path]) -> None:
    """They are installed together, so what stands alone beside the notebook is something else of the same name."""
    homes = {path.parent.parent if path.stem == "__init__" else path.parent for path in places.values()}
    beside = Path.cwd()
    if len(homes) > 1 and beside in homes:
        names = [name for name in places if (beside / name).is_dir() or (beside / f"{name}.py").is_file()]
        listed = " and ".join(f"`{name}`" for name in names)
        raise UserError(f"Beside this notebook, {listed} hides what its book has installed: rename it. {RESTART}")


def _require_one_copy(places: dict[str, Path]) -> None:
    """Refuse a kernel that has loaded a package from another file than the one that Python finds now."""
    for name, place in places.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and Path(loaded).resolve() != place.resolve():
            folders = f"{Path(loaded).parent}, and this notebook needs the one in {place.parent}"
            raise UserError(f"This kernel has loaded the package `{name}` in {folders}. {RESTART}")


def _contents(places: dict[str, Path]) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for place in places.values() for path in place.parent.rglob("*.py")}


def _versions_needed(distribution: str) -> dict[str, str]:
    """The versions installed of what `distribution` needs, as far as they are."""
    found = {}
    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return found
    for requirement in requirements:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
