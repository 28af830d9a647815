"""The claims that this site shows: read once a build; and which page shows which, so that only those are read again."""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.build.publication_policy import published_claims
from companion.figures.record import PublishedClaim
from companion.project.paths import Project

# By identifier: the box of a claim, and its content.
Known = dict[str, tuple[str | None, str]]
# A page that shows all claims there are.
ALL = "*"


def all_claims(app: Sphinx) -> list[PublishedClaim]:
    """Every claim of the figures this site shows."""
    if not hasattr(app, "companion_claims"):
        project: Project = app.config.companion_project
        app.companion_claims = published_claims(project, app.config.companion_profile)  # pyright: ignore
    return app.companion_claims  # pyright: ignore


def note_shown(env: BuildEnvironment, shown: str) -> None:
    """Remember what the page being read shows: a claim, by its id, those of a theorem box, by its label, or `ALL`."""
    _shown(env).setdefault(env.docname, set()).add(shown)


def forget_page(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """The page is gone, or about to be read again."""
    _shown(env).pop(docname, None)


def pages_out_of_date(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """The pages that show a claim which changed; all, if the list of statements did, whose marks are everywhere."""
    project: Project = app.config.companion_project
    listed = (
        (project.root / project.settings.statements).read_text(encoding="utf-8") if project.settings.statements else ""
    )
    now: Known = {claim.id: (claim.box, claim.model_dump_json()) for claim in all_claims(app)}
    known_before: tuple[Known, str | None] = getattr(env, "companion_known_claims", ({}, None))
    before, listed_before = known_before
    env.companion_known_claims = (now, listed)  # pyright: ignore
    known = env.found_docs - set(added)
    if listed != listed_before:
        return sorted(known)
    stale = {name for name in {*now, *before} if now.get(name) != before.get(name)}
    boxes = {claims[name][0] for name in stale for claims in (now, before) if name in claims}
    looked_for = {*stale, *boxes, *({ALL} if stale else ())}
    return sorted(page for page, shown in _shown(env).items() if shown & looked_for and page in known)


def _shown(env: BuildEnvironment) -> dict[str, set[str]]:
    if not hasattr(env, "companion_shown"):
        env.companion_shown = {}  # pyright: ignore
    return env.companion_shown  # pyright: ignore
