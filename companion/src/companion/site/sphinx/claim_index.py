"""Index of the claims on the site, and of the pages that show each claim.

The claims are read once per build. When a claim changes, only the pages that show it are read again.
"""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.build.publication_policy import published_claims, withheld_claims
from companion.figures.record import PublishedClaim, PublishedWithheld
from companion.project.paths import Project
from companion.site.sphinx.domain import BookDomain

# By identifier: the box of a claim, and its content.
Known = dict[str, tuple[str | None, str]]
# Marks a page that shows all claims.
ALL = "*"


def all_claims(app: Sphinx) -> list[PublishedClaim]:
    """Return every claim of the figures on the site."""
    if not hasattr(app, "companion_claims"):
        project: Project = app.config.companion_project
        app.companion_claims = published_claims(project, app.config.companion_profile)  # pyright: ignore
    return app.companion_claims  # pyright: ignore


def all_withheld(app: Sphinx) -> list[PublishedWithheld]:
    """Return every claim that the figures on the site withhold."""
    if not hasattr(app, "companion_withheld"):
        project: Project = app.config.companion_project
        app.companion_withheld = withheld_claims(project, app.config.companion_profile)  # pyright: ignore
    return app.companion_withheld  # pyright: ignore


def note_shown(env: BuildEnvironment, shown: str) -> None:
    """Note what the current page shows: a claim (its id), the claims of a theorem box (its label), or `ALL`."""
    BookDomain.of(env).current.shown.add(shown)


def pages_out_of_date(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages that show a changed claim, or all pages if the index of statements changed."""
    project: Project = app.config.companion_project
    statements = (
        (project.root / project.settings.statements).read_text(encoding="utf-8") if project.settings.statements else ""
    )
    every_claim = [*all_claims(app), *all_withheld(app)]
    claims: Known = {claim.id: (claim.box, claim.model_dump_json()) for claim in every_claim}
    domain = BookDomain.of(env)
    last_claims: Known = domain.data["claims"]
    last_statements: str | None = domain.data["statements"]
    domain.data |= {"claims": claims, "statements": statements}
    known_pages = env.found_docs - set(added)
    if statements != last_statements:
        return sorted(known_pages)
    stale = {name for name in {*claims, *last_claims} if claims.get(name) != last_claims.get(name)}
    boxes = {version[name][0] for name in stale for version in (claims, last_claims) if name in version}
    affected = {*stale, *boxes, *({ALL} if stale else ())}
    return sorted(page for page, data in domain.pages.items() if data.shown & affected and page in known_pages)
