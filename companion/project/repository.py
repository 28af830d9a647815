"""The repository's public address: defined in `_config.yml`, copied to wherever a tool needs it spelled out."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from companion.io.atomic import write_text
from companion.io.errors import UserError
from companion.io.yaml import read_yaml
from companion.project.notebooks import BOOTSTRAP_TAG
from companion.project.paths import Project, relative

# Plain Python, and what it says where something is wrong is one sentence: `SystemExit` has no traceback in a notebook.
BOOTSTRAP = """\
# bootstrap: where this book is not installed, as on Colab, it is installed here; elsewhere nothing changes
import importlib.util
import subprocess
import sys

spec = importlib.util.find_spec("{chapters}")
missing = spec is None or spec.origin is None
if missing:
    wanted = "{wanted}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", wanted]
    installed = subprocess.run(pip, check=False, capture_output=True, text=True)
    if installed.returncode:
        raise SystemExit(f"pip could not install this book, and nothing below can run. It says:\\n{{installed.stderr}}")
    importlib.invalidate_caches()
try:
    from companion.authoring.bootstrap import look_around
except ImportError as error:
    raise SystemExit(f"`companion` cannot be used: {{error}}. If one lies beside the notebook, rename it.") from error
look_around({packages}, "{name}", just_installed=missing)
"""
# What stands for the owner's name as long as nobody knows it.
PLACEHOLDER = "OWNER"
# The extra of a book that asks for what its notebooks need, where it has one.
NOTEBOOK = "notebook"
_URL = r"https://github\.com/[\w.-]+/[\w.-]+?"


def public_address(project: Project) -> str:
    """The one definition: `repository: url:` in `_config.yml`."""
    return read_yaml(project.root / "_config.yml")["repository"]["url"]


def is_known(project: Project) -> bool:
    """Whether the address is more than a placeholder, so that links to it lead somewhere."""
    return public_address(project).split("/")[-2] != PLACEHOLDER


def site_address(project: Project) -> str | None:
    """Where GitHub Pages serves the site, or what `html: baseurl:` says; None while the address is not known."""
    if base := (read_yaml(project.root / "_config.yml").get("html") or {}).get("baseurl"):
        return base.rstrip("/") + "/"
    if not is_known(project):
        return None
    owner, name = public_address(project).removeprefix("https://github.com/").split("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def spread(project: Project, url: str | None = None) -> list[str]:
    """Write the address (first the definition, if a new `url` is given) to every copy; the files that changed."""
    if url is not None:
        url = url.rstrip("/").removesuffix(".git")
        if not re.fullmatch(_URL, url):
            raise UserError(f"The address looks like https://github.com/OWNER/NAME. Got {url!r}.")
        _rewrite(project.root / "_config.yml", lambda text: re.sub(rf"(?m)^(  url: ){_URL}$", rf"\g<1>{url}", text))
    return [relative(path, project.root) for path, rewrite in _copies(project) if _rewrite(path, rewrite)]


def differing(project: Project) -> list[str]:
    """The copies that do not say what `_config.yml` says."""
    return [
        relative(path, project.root)
        for path, rewrite in _copies(project)
        if rewrite(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")
    ]


def bootstrap_cell(project: Project) -> dict:
    """The hidden cell that every notebook has, the same in all."""
    name = project.metadata["name"]
    extra = f"[{NOTEBOOK}]" if NOTEBOOK in project.metadata.get("optional-dependencies", {}) else ""
    source = BOOTSTRAP.format(
        chapters=project.settings.chapters,
        wanted=f"{name}{extra} @ git+{public_address(project)}",
        packages=json.dumps(project.packages),
        name=name,
    )
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": BOOTSTRAP_TAG,
        "metadata": {"jupyter": {"source_hidden": True}, "tags": ["remove-cell", BOOTSTRAP_TAG]},
        "outputs": [],
        "source": source.rstrip().splitlines(keepends=True),
    }


def _copies(project: Project) -> list[tuple[Path, Callable[[str], str]]]:
    url = public_address(project)
    owner_and_name = url.removeprefix("https://github.com/")

    def in_citation(text: str) -> str:
        return re.sub(r'(?m)^(repository-code: ")[^"]*(")$', rf"\g<1>{url}\g<2>", text)

    def in_project(text: str) -> str:
        return re.sub(r'(?m)^(Repository = ")[^"]*(")$', rf"\g<1>{url}\g<2>", text)

    def in_readme(text: str) -> str:
        text = re.sub(rf"{_URL}(?=\.git\b|[\s)>\"`])", url, text)
        return re.sub(
            r"((?:v2/gh|colab\.research\.google\.com/github)/)[\w.-]+/[\w.-]+", rf"\g<1>{owner_and_name}", text
        )

    def in_notebook(text: str) -> str:
        notebook = json.loads(text)
        cells = [cell for cell in notebook["cells"] if BOOTSTRAP_TAG not in cell["metadata"].get("tags", [])]
        notebook["cells"] = [*cells[:1], bootstrap_cell(project), *cells[1:]]
        return dump_notebook(notebook)

    files = {"CITATION.cff": in_citation, "pyproject.toml": in_project, "README.md": in_readme}
    return [
        *((project.root / name, rewrite) for name, rewrite in files.items() if (project.root / name).is_file()),
        *((project.notebook(name), in_notebook) for name in project.notebooks()),
    ]


def dump_notebook(notebook: dict) -> str:
    """The one way notebook sources are written here, which is also nbstripout's."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _rewrite(path: Path, rewrite: Callable[[str], str]) -> bool:
    text = path.read_text(encoding="utf-8")
    if (changed := rewrite(text)) == text:
        return False
    write_text(path, changed)
    return True
