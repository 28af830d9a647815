"""The claims on the site, and the pages to read again because a file of theirs or a claim that they show has changed.

The claims are read once per build. Files are compared by content: Sphinx compares times, and overlooks a file that was
restored or moved into place and is older than the last build.
"""

from functools import lru_cache
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.analysis.dependencies import digest
from companion.build.publication_policy import published_claims, withheld_claims
from companion.figures.record import PublishedClaim, PublishedWithheld
from companion.project.paths import Project
from companion.site.sphinx.domain import BookDomain

# Marks a page that shows all claims.
ALL = "*"


@lru_cache(maxsize=1)
def all_claims(app: Sphinx) -> list[PublishedClaim]:
    """Return every claim of the figures on the site."""
    return published_claims(app.config.companion_project, app.config.companion_profile)


@lru_cache(maxsize=1)
def all_withheld(app: Sphinx) -> list[PublishedWithheld]:
    """Return every claim that the figures on the site withhold."""
    return withheld_claims(app.config.companion_project, app.config.companion_profile)


def note_shown(env: BuildEnvironment, shown: str) -> None:
    """Note what the current page shows: a claim (its id), the claims of a theorem box (its label), or `ALL`."""
    BookDomain.of(env).current.shown.add(shown)


def outdated_pages(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages of which a file or a claim is not the one that was read last."""
    known = BookDomain.of(env).data["contents"]
    return sorted(name for name in env.found_docs - added if known.get(name) != _contents(app, env, name))


def note_contents(app: Sphinx, env: BuildEnvironment) -> None:
    """Store what every page is made of, after all pages were read."""
    BookDomain.of(env).data["contents"] = {name: _contents(app, env, name) for name in env.all_docs}


def _contents(app: Sphinx, env: BuildEnvironment, name: str) -> dict[str, str]:
    """Return the digest of each file that a page is made of, the index of statements included, and its claims."""
    project: Project = app.config.companion_project
    names = (env.doc2path(name), *env.dependencies[name], project.settings.statements or "")
    files = [Path(env.srcdir) / file for file in names]
    page = BookDomain.of(env).pages.get(name)
    shown = page.shown if page else set[str]()
    claims = {
        claim.id: claim.model_dump_json()
        for claim in (*all_claims(app), *all_withheld(app))
        if not shown.isdisjoint((ALL, claim.id, claim.box))
    }
    return {str(file): digest(file.read_bytes()) for file in files if file.is_file()} | claims
