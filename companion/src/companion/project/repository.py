"""The public URL of the repository: defined in `_config.yml` and copied to the files that need it spelled out.

While the URL is unset, the definition is empty and no file names an account. A placeholder would be unsafe: an account
of that name may exist, and a notebook would install its code.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from companion.io.atomic import write_text
from companion.io.errors import UserError
from companion.io.yaml import read_yaml
from companion.project.configuration import FILE
from companion.project.notebooks import BOOTSTRAP_TAG
from companion.project.paths import MARK, SOURCES, Project, relative

# Plain Python. An error is one sentence: `SystemExit` has no traceback in a notebook. The clone comes first because a
# notebook belongs to the code of the clone that contains it.
BOOTSTRAP = """\
# bootstrap: find this book's packages, in the clone around the working folder or among the installed packages
{imports}from importlib.util import find_spec
from pathlib import Path

packages = {packages}
parts = ["{mark}", "{file}", *(f"{{folder}}/__init__.py" for folder in packages.values())]
clones = [folder for folder in [Path.cwd(), *Path.cwd().parents] if all((folder / part).is_file() for part in parts)]
for clone in clones[:1]:
    sys.path[:0] = [] if sys.path[0] == str(clone) else {folders}
if not all((spec := find_spec(package)) and spec.origin for package in packages):
{otherwise}
"""
INSTALL = """\
    wanted = {wanted}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *wanted]
    installed = subprocess.run(pip, check=False, capture_output=True, text=True)
    if installed.returncode:
        raise SystemExit(f"pip could not install this book, and nothing below can run. It says:\\n{installed.stderr}")
    importlib.invalidate_caches()
"""
# While the URL is unset, the cell has no code that installs anything.
REFUSE = """\
    raise SystemExit(
        "This book is not installed here: open the notebook in a folder of a clone of the book, or run "
        "`pip install {editable}` in a clone."
    )
"""
# The extra of a book that installs the requirements of its notebooks, if the book has one.
NOTEBOOK = "notebook"
# The distribution of this package, and the folder of its project if a book's repository contains it.
OWN, OWN_PROJECT = "paper-companion", SOURCES.parts[0]
FORM = "https://github.com/<account>/<repository>"
_URL = r"https://github\.com/[\w.-]+/[\w.-]+"
_DEFINITION = r'(?m)^(repository:[ \t]*\n(?:[ \t]+.*\n|[ \t]*#.*\n|\n)*?[ \t]+url:)[ \t]*(?:""|\'\'|[^\s#]*)'
# The comment line of a README above the badges.
_BADGES_BELOW = r"(?m)^(<!-- `companion set-url` .*-->\n)"
_BADGE = r"\[!\[(?:Binder|Open In Colab)\]\([^)]*\)\]\([^)]*\)\n"


def public_address(project: Project) -> str | None:
    """Return the public URL of the repository, `repository: url:` of `_config.yml`, or None while it is unset."""
    url = (read_yaml(project.root / MARK).get("repository") or {}).get("url")
    return _checked(str(url)) if url else None


def site_address(project: Project) -> str | None:
    """Return the URL of the site, or None while it is unknown.

    It is `html: baseurl:` of `_config.yml`, if set, and else the GitHub Pages URL of the repository.
    """
    if base := (read_yaml(project.root / MARK).get("html") or {}).get("baseurl"):
        return base.rstrip("/") + "/"
    if not (url := public_address(project)):
        return None
    owner, name = _account_and_name(url).split("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def write_copies(project: Project, url: str | None = None) -> list[str]:
    """Write the public URL to every file that repeats it, and return the files that changed.

    Args:
      project: the book.
      url: a new URL, which is written to `_config.yml` first; an empty text unsets the URL and restores the files.
    """
    if url is not None:
        _define(project.root / MARK, _checked(url.rstrip("/").removesuffix(".git")) if url else "")
    texts = _rewritten(project)
    for path, text in texts.items():
        write_text(path, text)
    return [relative(path, project.root) for path in texts]


def outdated_copies(project: Project) -> list[str]:
    """Return the files whose copy of the public URL differs from `_config.yml`."""
    return [relative(path, project.root) for path in _rewritten(project)]


def bootstrap_cell(project: Project) -> dict:
    """Return the hidden first code cell of every notebook of the book."""
    name, url = project.metadata["name"], public_address(project)
    extra = f"[{NOTEBOOK}]" if NOTEBOOK in project.metadata.get("optional-dependencies", {}) else ""
    places = {package: relative(folder, project.root) for package, folder in project.packages.items()}
    folders = [relative(Path(folder), project.root) for folder in project.search_path]
    # the projects of this repository
    own = (project.root / OWN_PROJECT / FILE).is_file()
    wanted = [f"{name}{extra} @ git+{url}", *([f"{OWN} @ git+{url}#subdirectory={OWN_PROJECT}"] if own else [])]
    otherwise = (
        INSTALL.replace("{wanted}", json.dumps(wanted))
        if url
        else REFUSE.replace("{editable}", f"-e ./{OWN_PROJECT} -e ." if own else "-e .")
    )
    source = BOOTSTRAP.format(
        imports="import importlib\nimport subprocess\nimport sys\n" if url else "import sys\n",
        packages=json.dumps(places),
        mark=MARK,
        file=FILE,
        folders="[{}]".format(", ".join("str(clone)" if at == "." else f'str(clone / "{at}")' for at in folders)),
        otherwise=otherwise,
    )
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": BOOTSTRAP_TAG,
        "metadata": {"jupyter": {"source_hidden": True}, "tags": ["remove-cell", BOOTSTRAP_TAG]},
        "outputs": [],
        "source": source.rstrip().splitlines(keepends=True),
    }


def _checked(url: str) -> str:
    if not re.fullmatch(_URL, url):
        raise UserError(f"The URL must have the form {FORM}. Got {url!r}.")
    return url


def _account_and_name(url: str) -> str:
    return url.removeprefix("https://github.com/")


def _define(path: Path, url: str) -> None:
    value = url or '""'
    text, count = re.subn(_DEFINITION, lambda match: f"{match[1]} {value}", path.read_text(encoding="utf-8"))
    if count != 1:
        raise UserError(f'{path} needs a line `repository:` and below it an indented line `url: ""` for the URL.')
    write_text(path, text)


def _rewritten(project: Project) -> dict[Path, str]:
    """Return the new texts of the files whose copy of the public URL differs from `_config.yml`."""
    url = public_address(project)

    def in_citation(text: str) -> str:
        line = f'repository-code: "{url}"\n' if url else ""
        text = re.sub(r"(?m)^repository-code:.*\n", "", text)
        return re.sub(r"(?m)^cff-version:.*\n", lambda match: match[0] + line, text)

    def in_project(text: str) -> str:
        line = f'Repository = "{url}"\n' if url else ""
        table = r"(?m)^(\[project\.urls\].*\n)((?:(?!\[).*\n)*)"
        return re.sub(table, lambda match: match[1] + line + re.sub(r"(?m)^Repository *=.*\n", "", match[2]), text)

    def in_readme(text: str) -> str:
        badges = _badges(project, url) if url else ""
        return re.sub(rf"{_BADGES_BELOW}(?:{_BADGE})*", lambda match: match[1] + badges, text)

    def in_notebook(text: str) -> str:
        notebook = json.loads(text)
        cells = [cell for cell in notebook["cells"] if BOOTSTRAP_TAG not in (cell["metadata"].get("tags") or [])]
        bootstrap = bootstrap_cell(project)
        if (notebook.get("nbformat"), notebook.get("nbformat_minor", 0)) < (4, 5):  # cells have no ids there
            del bootstrap["id"]
        notebook["cells"] = [*cells[:1], bootstrap, *cells[1:]]
        return dump_notebook(notebook)

    files = {"CITATION.cff": in_citation, FILE: in_project, "README.md": in_readme}
    rewrites = {project.root / name: rewrite for name, rewrite in files.items() if (project.root / name).is_file()}
    rewrites |= {project.notebook(name): in_notebook for name in project.notebooks()}
    old = {path: path.read_text(encoding="utf-8") for path in rewrites}
    return {path: new for path, rewrite in rewrites.items() if (new := rewrite(old[path])) != old[path]}


def _badges(project: Project, url: str) -> str:
    """Return the badges of a README, which open the first notebook in the services that `launch_buttons:` names."""
    configuration = read_yaml(project.root / MARK)
    services, branch = configuration.get("launch_buttons") or {}, configuration["repository"].get("branch", "main")
    badges = ""
    for notebook in project.notebooks()[:1]:
        path, repository = relative(project.notebook(notebook), project.root), _account_and_name(url)
        if binder := services.get("binderhub_url"):
            target = f"{binder}/v2/gh/{repository}/{branch}?urlpath=lab/tree/{path}"
            badges += f"[![Binder]({binder}/badge_logo.svg)]({target})\n"
        if colab := services.get("colab_url"):
            target = f"{colab}/github/{repository}/blob/{branch}/{path}"
            badges += f"[![Open In Colab]({colab}/assets/colab-badge.svg)]({target})\n"
    return badges


def dump_notebook(notebook: Mapping[str, Any]) -> str:
    """Return a notebook as JSON text, in the form that nbstripout writes."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
