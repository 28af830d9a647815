"""The role `{companion-minutes}`: how long chapters and pages take to read, computed in each build."""

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from companion.figures import store
from companion.project.paths import Project
from companion.site import reading_time


class MinutesRole(SphinxRole):
    """`` {companion-minutes}`measures, gaussian_limit` ``: the minutes that these pages take together."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number, or an error for a page that does not exist."""
        project: Project = self.config.companion_project
        minutes = 0
        for name in map(str.strip, self.text.split(",")):
            is_notebook = name in project.notebooks()
            source = project.notebook(name) if is_notebook else project.book / f"{name}.md"
            if not source.is_file():
                error = self.inliner.reporter.error(f"There is no page {name!r} whose minutes could be computed.")
                return [], [error]
            self.env.note_dependency(str(source))
            for figure in reading_time.unfolded_figures(project, name) if is_notebook else ():
                self.env.note_dependency(str(project.published / name / f"{figure}{store.RECORD}"))
            minutes += reading_time.of_page(project, name).minutes
        return [nodes.Text(f"{minutes}")], []
