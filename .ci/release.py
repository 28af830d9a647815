"""What a release consists of, from a built checkout: `release.py FOLDER` after `make book`.

Archives of the site, the published figures and the executed notebooks, the wheels and the source distributions, a list
of all that is in the environment (CycloneDX), and the digests of them all. Archives of the same files are the same
bytes: names are sorted, owners left out, and times are those of the last commit.
"""

import argparse
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

from companion.project.paths import DEFAULT_PROFILE, Project
from companion.site.jupyter_book import is_built

ROOT = Path(__file__).resolve().parents[1]
DIGESTS = "SHA256SUMS"


def archive(target: Path, root: Path, paths: Iterable[Path], time: int) -> None:
    """Pack files below `root` into `target`, in a folder named like it."""
    folder = target.name.removesuffix(".tar.gz")
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(paths):
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"{folder}/{path.relative_to(root).as_posix()}")
            entry.size, entry.mtime, entry.mode = len(content), time, 0o644
            tar.addfile(entry, io.BytesIO(content))


def files(folder: Path, pattern: str = "*") -> list[Path]:
    """All files below `folder`; it fails where there is none."""
    found = [path for path in folder.rglob(pattern) if path.is_file()]
    if not found:
        raise SystemExit(f"{folder} is empty: run `make book` first.")
    return found


def digests(folder: Path) -> None:
    """Write the digest of every file in `folder`, as `sha256sum --check` reads it."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.name != DIGESTS
    ]
    (folder / DIGESTS).write_text("".join(lines), encoding="utf-8")


def distributions(out: Path, time: int) -> None:
    """The wheels and the source distributions of the book and of its tool."""
    for project in (ROOT, ROOT / "companion"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, project]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def bill_of_materials(program: str, out: Path, time: int) -> None:
    """All that is installed beside the book, by `cyclonedx-py`; without addresses of where it came from."""
    command = [program, "environment", "--short-PURLs", "--output-reproducible", "--pyproject", ROOT / "pyproject.toml"]
    command += ["--output-file", out, sys.executable]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(time)})


def main() -> int:
    """Fill the folder, and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to; made if it is not there, refused if anything is in it")
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="of the site that is packed (the published one)")
    parser.add_argument("--cyclonedx", default="cyclonedx-py", help="the program that lists the environment")
    given = parser.parse_args()
    project, out = Project(ROOT), given.folder
    if not is_built(project, given.profile):
        raise SystemExit("The site is not built, or not as the checkout is now: run `make book` first.")
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise SystemExit(f"{out} is not empty.")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    last = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    time, site = int(last.stdout), project.site(given.profile)
    archive(out / f"site-{version}.tar.gz", site, files(site), time)
    archive(out / f"figures-{version}.tar.gz", project.published, files(project.published), time)
    archive(out / f"notebooks-{version}.tar.gz", site / "notebooks", files(site / "notebooks", "*.ipynb"), time)
    distributions(out, time)
    bill_of_materials(given.cyclonedx, out / f"environment-{version}.cdx.json", time)
    digests(out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
