"""The directive `{companion-figure}`: a picture with its details."""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from companion.analysis import dependencies
from companion.figures import store
from companion.figures.plain_math import as_plain_text, withheld_because
from companion.figures.record import Claim, ColumnRecord, FigureRecord, WithheldClaim, headline
from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.parameters import parameters_of
from companion.project.paths import Project
from companion.site.sphinx.api_pages import used_names
from companion.site.sphinx.chapter_numbers import chapter_numbers
from companion.site.sphinx.citations import citation
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import PNG, folder_of, picture_of, record_of
from companion.site.sphinx.inline_text import (
    LEDGER,
    claim_anchor,
    code,
    escaped,
    escaped_formulas,
    evidence,
    figure_anchor,
    ledger_anchor,
    mark,
    page_link,
    table,
    typeset,
    with_anchor,
    without_html,
)
from companion.site.sphinx.nodes import Part, details, line, summary
from companion.site.sphinx.page_scripts import embedded_figure, table_script

ROWS_SHOWN = 5
RECOMPUTE = "In a clone of the book, with its environment active, this command recomputes the figure:"
# By shared function, the first figure of the page with its code.
LISTED = "companion-listed"


class FigureDirective(SphinxDirective):
    """`{companion-figure} notebook/figure`: picture, caption, claims, code, data, parameters and provenance.

    A schematic has only picture, caption, code and provenance. With `:technical:` all this is folded below the
    headline, the first paragraph of the caption.
    """

    required_arguments = 1
    option_spec: ClassVar = {"technical": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the nodes. A damaged figure is an error, which fails a strict build."""
        record = record_of(self, self.arguments[0])
        text, _ = self.parse_inline(without_html(headline(record.caption)))
        content = [self._picture(record, text), *table_script(self, record), self._line(record)]
        if "technical" not in self.options:
            return content
        head = summary("", "", nodes.Text("Technical figure: "), *(part.deepcopy() for part in text))
        return [details("", head, *content, classes=["companion-technical"])]

    def _picture(self, record: FigureRecord, text: list[nodes.Node]) -> nodes.Node:
        shown = nodes.figure(classes=["companion-figure"])
        shown += [picture_of(self, record), *embedded_figure(self), nodes.caption("", "", *text)]
        if rest := without_html(record.caption).split("\n\n")[1:]:
            shown += nodes.legend("", *self.parse_text_to_nodes("\n\n".join(rest)))
        self.set_source_info(shown)
        anchor = figure_anchor(record.figure)
        BookDomain.of(self.env).note("figure", self.arguments[0], headline(record.caption), anchor)
        return with_anchor(self, shown, anchor)

    def _code(self, record: FigureRecord) -> str:
        """Return the code of a figure in MyST: steps of the notebook, shared functions of the chapter, figure module.

        A function that an earlier figure of the page shows is not listed again.
        """
        project: Project = self.config.companion_project
        module = project.figure_module(record.notebook, record.figure)
        shown_with: dict[str, str] = self.env.temp_data.setdefault(LISTED, {})
        new: list[str] = []
        elsewhere: dict[str, list[str]] = {}
        for name in (name for name in record.functions if not name.startswith(f"{module}.")):
            if name in shown_with:
                elsewhere.setdefault(shown_with[name], []).append(f"`{name.rpartition('.')[2]}`")
            else:
                new.append(name)
                shown_with[name] = record.figure
        steps = "\n".join(record.steps)
        folder = f"{project.settings.chapters.replace('.', '/')}/{record.notebook}/"
        return "\n".join(
            [
                f"In the notebook:\n```python\n{steps}\n```",
                *([f"Shared by figures of this chapter, in `{folder}`:\n"] if new else []),
                *(_function(project, name) for name in new),
                *(f"With {{companion-number}}`{figure}`: {', '.join(names)}.\n" for figure, names in elsewhere.items()),
                _file(project, module),
            ]
        )

    def _place(self, record: FigureRecord) -> str:
        """Return the number of a figure as in its caption, with its name, which stays when others are inserted."""
        chapter = chapter_numbers(self.env).get(record.notebook)
        figures = Notebook.named(self.config.companion_project, record.notebook).figures
        number = f"Figure {figures.index(record.figure) + 1} ({self.arguments[0]})"
        return f"Chapter {chapter}, {number}" if chapter else number

    def _texts(self, record: FigureRecord) -> dict[str, str]:
        """Return the parts of a figure in MyST, by the words that open them; a part that it lacks is empty."""
        project: Project = self.config.companion_project
        name, origin = self.arguments[0], _origin(project, self.config.companion_profile, record)
        if record.is_schematic:
            code = _file(project, project.figure_module(record.notebook, record.figure))
            return {"code": code, "origin": f"{_files(name, store.RECORD, '.svg')}\n\n{origin}"}
        return {
            "code": f"{RECOMPUTE}\n\n```sh\n{_command(record)}\n```\n\n{self._code(record)}",
            "data": self._data(record),
            "parameters": _parameters(project, record) if record.parameters else "",
            "origin": origin,
        }

    def _data(self, record: FigureRecord) -> str:
        """Return in MyST the files of a figure, its columns and its first rows."""
        files = _files(self.arguments[0], store.DATA, store.RECORD, ".svg")
        columns = "\n".join(_column(name, column) for name, column in record.columns.items())
        head = _head(folder_of(self.config, record.notebook) / f"{record.figure}{store.DATA}")
        return f"{files}\n\n{columns}\n\nThe first {ROWS_SHOWN} rows:\n\n{head}"

    def _line(self, record: FigureRecord) -> nodes.Node:
        """Return the line below a figure: each part that the figure has, as a word that opens it."""
        project: Project = self.config.companion_project
        if claims := [self._claim(claim) for claim in (*record.claims, *record.withheld)]:
            parts: list[Part] = [("claims", _verdict(record), claims)]
        else:
            parts = [nodes.inline("", "schematic" if record.is_schematic else "no claims")]
        for kind, text in self._texts(record).items():
            names = used_names(self.env, record) if kind == "code" and not record.is_schematic else []
            if text:
                parts.append((kind, kind, [*self.parse_text_to_nodes(text), *names]))
        anchor, key = figure_anchor(record.figure), self.arguments[0].replace("/", "-")
        target = f"{project.book.name}/{record.notebook}.html#{anchor}"
        entry = citation(project, key, headline(record.caption), self._place(record), target)
        parts.append(("cite", "cite", [entry]))
        return line(f"About the figure {record.figure}", parts, ["companion-details"], anchor)

    def _claim(self, claim: Claim | WithheldClaim) -> nodes.Node:
        container = nodes.container(classes=["companion-statement-of"])
        container += nodes.paragraph("", f"{mark(claim)} ", nodes.strong("", "", *typeset(claim.statement)))
        if isinstance(claim, Claim):
            container += evidence(claim)
            link = page_link(self.env, LEDGER, ledger_anchor(claim.id), "In the ledger")
            container += nodes.paragraph("", f"Source: {claim.source}. ", link, nodes.Text("."))
        else:
            source = nodes.Text(f". Source: {claim.source}.")
            container += nodes.paragraph("", "", *typeset(withheld_because(claim)), source)
        BookDomain.of(self.env).note("claim", claim.id, as_plain_text(claim.statement), claim_anchor(claim.id))
        return with_anchor(self, container, claim_anchor(claim.id))


def _verdict(record: FigureRecord) -> str:
    """Return in words how many claims of a figure hold."""
    held, claims, withheld = sum(claim.holds for claim in record.claims), len(record.claims), len(record.withheld)
    noun = "claim holds" if claims == 1 else "claims hold"
    verdict = f"✓ {held} {noun}" if held == claims else f"✗ {held} of {claims} {noun}"
    rest = f"{withheld} not claimed here" if withheld else ""
    return ", ".join(filter(None, [verdict if claims else "", rest]))


def _function(project: Project, path: str) -> str:
    """Return a function or a class of the book in MyST. Where it is missing, Sphinx looks for it, and warns."""
    module, _, name = path.rpartition(".")
    file = module.replace(".", "/") + ".py"
    lines = dependencies.lines_of(project.root / file, name)
    option = f":lines: {lines[0]}-{lines[1]}" if lines else f":pyobject: {name}"
    return f"```{{literalinclude}} /{file}\n{option}\n:language: python\n```\n"


def _file(project: Project, module: str) -> str:
    """Return a figure module in MyST, without its docstring, which is the caption."""
    file = module.replace(".", "/") + ".py"
    first = dependencies.syntax_tree(project.root / file).body[1].lineno
    return f"All of this figure, `{file}`:\n```{{literalinclude}} /{file}\n:lines: {first}-\n:language: python\n```\n"


def _files(name: str, *suffixes: str) -> str:
    """Return links to files of a figure in MyST, the last of them to a PNG."""
    return " · ".join(f"{{companion-file}}`{name}{suffix}`" for suffix in (*suffixes, PNG))


def _column(name: str, column: ColumnRecord) -> str:
    unit = "" if column.unit == "1" else f" ({column.unit})"
    error = f"; standard error in `{column.std_error}`" if column.std_error not in (None, name) else ""
    together = f"; moves with `{column.moves_with}`" if column.moves_with else ""
    return f"- `{name}`: {escaped_formulas(column.meaning + unit)}{error}{together}"


def _head(path: Path) -> str:
    frame = pd.read_csv(path, dtype=str, nrows=ROWS_SHOWN).fillna("").map(escaped)
    return table(list(map(escaped, frame.columns)), frame.to_numpy().tolist())


def _parameters(project: Project, record: FigureRecord) -> str:
    fields = parameters_of(project, record.notebook).model_fields
    rows = [
        (f"`{name}`", code(f"{value}"), escaped_formulas(fields[name].description or ""))
        for name, value in record.parameters.items()
    ]
    command = f"{_command(record)} -p name=value"
    other = f"This command recomputes the figure with another value: `{command}`."
    return f"{table(('parameter', 'value', 'meaning'), rows)}\n\n{other}"


def _command(record: FigureRecord) -> str:
    return f"companion run {record.notebook} --figure {record.figure}"


def _origin(project: Project, profile: str, record: FigureRecord) -> str:
    origin = provenance.read(project.build(profile).provenance / f"{record.notebook}.json")
    sources = ", ".join(f"`{path}`" for path in record.sources)
    if origin is None:
        return f"Profile `{record.profile}`. Made from {sources}."
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    device = f"{origin['device']} with " if origin["device"] else ""
    commit: dict[str, Any] | None = origin["git"]
    state = ", outside a git repository"
    if commit:
        state = f", at commit `{commit['commit'][:12]}`{' with local changes' if commit['modified'] else ''}"
    return (
        f"Profile `{record.profile}`, last computed {origin['started']} in {origin['seconds']:.0f} s on {device}"
        f"{origin['cores']} {'core' if origin['cores'] == 1 else 'cores'} and Python {origin['python']}{state}.\n\n"
        f"Versions: {versions}.\n\nMade from {sources}."
    )
