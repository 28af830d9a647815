"""The directive `{companion-notebooks}`: every notebook with its parameters, their meanings, and its run times."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.parameters import parameters_of, rule
from companion.project.paths import Project
from companion.site.sphinx.downloads import archive_of
from companion.site.sphinx.inline_text import code, escaped, escaped_formulas, table


class NotebooksDirective(SphinxDirective):
    """One table per notebook, made from the parameters cell and the chapter's class `Parameters`."""

    def run(self) -> list[nodes.Node]:
        """Return one fold per notebook."""
        project: Project = self.config.companion_project
        return self.parse_text_to_nodes("\n".join(self._notebook(project, name) for name in project.notebooks()))

    def _notebook(self, project: Project, name: str) -> str:
        notebook = Notebook.named(project, name)
        self.env.note_dependency(str(notebook.path))
        fields = parameters_of(project, name).model_fields
        rows = [
            (
                f"`{key}`",
                code(f"{notebook.defaults[key]}"),
                escaped(rule(field)),
                escaped_formulas(field.description or ""),
            )
            for key, field in fields.items()
        ]
        self.env.note_dependency(str(project.build(self.config.companion_profile).notebooks / f"{name}.ipynb"))
        download = f"{{companion-file}}`executed notebook <{name}.ipynb>`"
        archive = f"{{companion-file}}`data of its figures <{archive_of(name)}>`"
        header = ("parameter", "default", "may be", "meaning")
        return (
            f"::::{{dropdown}} {notebook.title} (`{name}`)\n"
            f"{{doc}}`Read it <{name}>`, or take the {download} or the {archive}. {_times(project, name)}\n\n"
            f"{table(header, rows) if rows else 'It has no parameters.'}\n"
            "::::\n"
        )


def _times(project: Project, name: str) -> str:
    builds = {profile: project.build(profile) for profile in project.profile_names()}
    runs = {profile: provenance.read(build.provenance / f"{name}.json") for profile, build in builds.items()}
    times = [f"{profile} {run['seconds']:.0f} s on {run['cores']} cores" for profile, run in runs.items() if run]
    return f"It took {', '.join(times)}." if times else ""
