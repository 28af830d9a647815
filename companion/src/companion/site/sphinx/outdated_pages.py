"""Find the pages whose files changed, by content.

Sphinx compares times: it overlooks a file that was restored or moved into place and is older than the last build.
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.analysis.dependencies import digest
from companion.site.sphinx.domain import BookDomain


def pages_with_other_content(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages of which a file is not the one that was read last."""
    known: dict[str, dict[str, str]] = BookDomain.of(env).data["contents"]
    return sorted(name for name in env.found_docs - added if known.get(name) != _contents(env, name))


def note_contents(app: Sphinx, env: BuildEnvironment) -> None:
    """Store the digests of the files of every page, after all pages were read."""
    BookDomain.of(env).data["contents"] = {name: _contents(env, name) for name in env.all_docs}


def _contents(env: BuildEnvironment, name: str) -> dict[str, str]:
    """Return the digest of each file that a page is made of."""
    source = Path(env.doc2path(name))
    files = [source, *(Path(env.srcdir) / file for file in env.dependencies[name])]
    return {str(file): digest(file.read_bytes()) for file in files if file.is_file()}
