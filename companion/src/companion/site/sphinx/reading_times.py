"""How long chapters take to read, computed in each build: the role `{companion-minutes}` and `{companion-route}`."""

# docutils has no complete types.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.figures import store
from companion.io.errors import UserError
from companion.project.paths import Project
from companion.site import reading_time


class MinutesRole(SphinxRole):
    """`` {companion-minutes}`measures` ``: the minutes that a page takes."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number, or an error for a page that does not exist."""
        try:
            return [nodes.Text(f"{_minutes(self.env, self.text)}")], []
        except UserError as mistake:
            return [], [self.inliner.reporter.error(str(mistake))]


class RouteDirective(SphinxDirective):
    """`{companion-route}`: a numbered list of pages with their minutes, and the minutes of all.

    A line of the content names a page, `measures`, or sections of it, `measures: The question, Findings`.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the list, or an error for a page or a section that does not exist."""
        items: list[str] = []
        total = 0
        for line in filter(str.strip, self.content):
            name, _, listed = line.partition(":")
            sections = [section.strip() for section in listed.split(",") if section.strip()]
            try:
                minutes = _minutes(self.env, name.strip(), sections)
            except UserError as mistake:
                raise self.error(str(mistake)) from mistake
            only = ": " + ", ".join(f"*{section}*" for section in sections) if sections else ""
            items.append(f"1. {{doc}}`{name.strip()}`{only} ({minutes} min)")
            total += minutes
        return self.parse_text_to_nodes("\n".join([*items, "", f"Together {total} minutes."]))


def _minutes(env: BuildEnvironment, name: str, sections: Sequence[str] = ()) -> int:
    """Return the minutes of a page, or of some of its sections, and note the files on which they depend."""
    project: Project = env.config.companion_project
    path = reading_time.page_file(project, name)
    env.note_dependency(str(path))
    for figure in reading_time.unfolded_figures(project, name) if path.suffix == ".ipynb" else ():
        env.note_dependency(str(project.published / name / f"{figure}{store.RECORD}"))
    read = [reading_time.of_section(project, name, section) for section in sections]
    return max(1, round(sum(part.minutes for part in read or [reading_time.of_page(project, name)])))
