"""The directive `{companion-figure}`: a picture with its details."""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import ast
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from companion.figures import store
from companion.figures.plain_math import WITHHELD, as_plain_text, withheld_because
from companion.figures.record import Claim, ColumnRecord, FigureRecord, WithheldClaim, headline
from companion.io.sources import read_source
from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.parameters import parameters_of
from companion.project.paths import Project
from companion.site.sphinx.chapter_numbers import chapter_numbers
from companion.site.sphinx.citations import citation
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import PNG, picture_of
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
    table,
    typeset,
    with_anchor,
    without_html,
)
from companion.site.sphinx.nodes import Part, details, line, summary
from companion.site.sphinx.page_scripts import embedded_figure, table_script

ROWS_SHOWN = 5
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
        """Return the nodes. A damaged or incomplete figure is an error, which fails a strict build."""
        project: Project = self.config.companion_project
        shown = project.shown_figures(self.config.companion_profile)
        notebook, _, figure = self.arguments[0].partition("/")
        folder = shown / notebook
        for suffix in store.SUFFIXES:
            self.env.note_dependency(str(folder / f"{figure}{suffix}"))
        if faults := store.faults(folder, figure):
            raise self.error(f"Figure {self.arguments[0]!r} cannot be shown: {'; '.join(faults)}.")
        record = store.read_record(folder, figure)
        if not record.alt.strip() or not record.caption.strip():
            raise self.error(f"Figure {self.arguments[0]!r} needs a caption and an alt text.")
        for claim in record.claims:
            if not claim.source.strip():
                raise self.error(f"Claim {claim.id!r} of figure {self.arguments[0]!r} needs a source.")
        table = table_script(project, self.env.docname, folder, figure)
        content = [self._picture(folder, figure, record), *table, self._line(project, folder, figure, record)]
        return [self._folded(record, content)] if "technical" in self.options else content

    def _folded(self, record: FigureRecord, content: list[nodes.Node]) -> nodes.Node:
        text, messages = self._headline(record)
        fold = details(classes=["companion-technical"])
        fold += summary("", "", nodes.Text("Technical figure: "), *text)
        fold += [*messages, *content]
        return fold

    def _headline(self, record: FigureRecord) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the first paragraph of the caption, with its formulas."""
        return self.parse_inline(" ".join(without_html(record.caption).split("\n\n")[0].split()))

    def _picture(self, folder: Path, figure: str, record: FigureRecord) -> nodes.Node:
        shown = nodes.figure(classes=["companion-figure"])
        shown += [picture_of(self.env.docname, folder, record), *embedded_figure(self)]
        rest = without_html(record.caption).split("\n\n")[1:]
        text, messages = self._headline(record)
        shown += nodes.caption("", "", *text)
        shown += messages
        if rest:
            shown += nodes.legend("", *self.parse_text_to_nodes("\n\n".join(rest)))
        self.set_source_info(shown)
        title = record.caption.split("\n\n")[0]
        BookDomain.of(self.env).note("figure", f"{folder.name}/{figure}", title, figure_anchor(figure))
        return with_anchor(self, shown, figure_anchor(figure))

    def _code(self, project: Project, record: FigureRecord) -> str:
        """Return the code of a figure in MyST: steps of the notebook, shared functions of the chapter, figure module.

        A function that an earlier figure of the page shows is not listed again.
        """
        chapter = f"{project.settings.chapters}.{record.notebook}"
        module = project.figure_module(record.notebook, record.figure)
        shared = [name for name in record.functions if not name.startswith(f"{module}.")]
        listed: dict[str, str] = self.env.temp_data.setdefault(LISTED, {})
        new = [name for name in shared if name not in listed]
        elsewhere: dict[str, list[str]] = {}
        for name in shared:
            if name in listed:
                elsewhere.setdefault(listed[name], []).append(f"`{name.rpartition('.')[2]}`")
        listed.update(dict.fromkeys(new, record.figure))
        steps = "\n".join(record.steps)
        return "\n".join(
            [
                f"In the notebook:\n```python\n{steps}\n```",
                *([f"Shared by figures of this chapter, in `{chapter.replace('.', '/')}/`:\n"] if new else []),
                *map(_function, new),
                *(f"With {{companion-number}}`{figure}`: {', '.join(names)}.\n" for figure, names in elsewhere.items()),
                _file(project, module),
            ]
        )

    def _place(self, project: Project, notebook: str, figure: str) -> str:
        """Return the number of a figure as in its caption, with its name, which stays when others are inserted."""
        chapter = chapter_numbers(self.env).get(notebook)
        number = Notebook.named(project, notebook).figures.index(figure) + 1
        return f"{f'Chapter {chapter}, ' if chapter else ''}Figure {number} ({notebook}/{figure})"

    def _line(self, project: Project, folder: Path, figure: str, record: FigureRecord) -> nodes.Node:
        """Return the line below a figure: each part that the figure has, as a word that opens it."""
        name = f"{folder.name}/{figure}"
        origin = _origin(project, self.config.companion_profile, record)
        if record.is_schematic:
            files = _files(folder, figure, (store.RECORD, ".svg"))
            code = _file(project, project.figure_module(folder.name, figure))
            texts = {"code": code, "origin": f"{files}\n\n{origin}"}
        else:
            texts = {
                "claims": f"```{{companion-claims}} {name}\n```" if record.claims or record.withheld else "",
                "code": CODE.format(code=self._code(project, record), figure=name, command=_command(record)),
                "data": _data(folder, figure, record),
                "parameters": _parameters(project, record) if record.parameters else "",
                "origin": origin,
            }
        words = dict.fromkeys(texts, "") | {"claims": _verdict(record)}
        parts: list[Part] = [
            (kind, words[kind] or kind, self.parse_text_to_nodes(text)) for kind, text in texts.items() if text
        ]
        if not record.claims and not record.withheld:
            parts.insert(0, nodes.inline("", "schematic" if record.is_schematic else "no claims"))
        target = f"{project.book.name}/{folder.name}.html#{figure_anchor(figure)}"
        place = self._place(project, folder.name, figure)
        entry = citation(project, name.replace("/", "-"), headline(record.caption), place, target)
        parts.append(("cite", "cite", [entry]))
        return line(f"About the figure {figure}", parts, ["companion-details"], figure_anchor(figure))


def _verdict(record: FigureRecord) -> str:
    """Return in words how many claims of a figure hold."""
    held, claims, withheld = sum(claim.holds for claim in record.claims), len(record.claims), len(record.withheld)
    noun = "claim holds" if claims == 1 else "claims hold"
    verdict = f"✓ {held} {noun}" if held == claims else f"✗ {held} of {claims} {noun}"
    rest = f"{withheld} not claimed here" if withheld else ""
    return ", ".join(filter(None, [verdict if claims else "", rest]))


CODE = """
In a clone of the book, with its environment active, this command recomputes the figure:

```sh
{command}
```

{code}
```{{companion-used}} {figure}
```
"""

DATA = """
{files}

{columns}

The first {rows} rows:

{head}
"""


class FigureClaims(SphinxDirective):
    """`{companion-claims} notebook/figure`: the claims of a figure, each with an anchor."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one container per claim."""
        project: Project = self.config.companion_project
        notebook, _, figure = self.arguments[0].partition("/")
        record = store.read_record(project.shown_figures(self.config.companion_profile) / notebook, figure)
        return [*map(self._claim, record.claims), *map(self._withheld, record.withheld)]

    def _withheld(self, claim: WithheldClaim) -> nodes.Node:
        container = nodes.container(classes=["companion-statement-of"])
        container += nodes.paragraph("", f"{WITHHELD} ", nodes.strong("", "", *typeset(claim.statement)))
        source = nodes.Text(f". Source: {claim.source}.")
        container += nodes.paragraph("", "", *typeset(withheld_because(claim)), source)
        return self._anchored(container, claim)

    def _claim(self, claim: Claim) -> nodes.Node:
        ledger = self.env.app.builder.get_relative_uri(
            self.env.docname, f"{self.config.companion_project.book.name}/{LEDGER}"
        )
        container = nodes.container(classes=["companion-statement-of"])
        container += nodes.paragraph("", f"{mark(claim)} ", nodes.strong("", "", *typeset(claim.statement)))
        container += evidence(claim)
        link = nodes.reference("", "In the ledger", refuri=f"{ledger}#{ledger_anchor(claim.id)}", internal=True)
        container += nodes.paragraph("", f"Source: {claim.source}. ", link, nodes.Text("."))
        return self._anchored(container, claim)

    def _anchored(self, container: nodes.Element, claim: Claim | WithheldClaim) -> nodes.Node:
        BookDomain.of(self.env).note("claim", claim.id, as_plain_text(claim.statement), claim_anchor(claim.id))
        return with_anchor(self, container, claim_anchor(claim.id))


def _function(path: str) -> str:
    module, _, name = path.rpartition(".")
    file = module.replace(".", "/") + ".py"
    return f"```{{literalinclude}} /{file}\n:pyobject: {name}\n:language: python\n```\n"


def _file(project: Project, module: str) -> str:
    """Return a figure module in MyST, without its docstring, which is the caption."""
    file = module.replace(".", "/") + ".py"
    first = ast.parse(read_source(project.root / file)).body[1].lineno
    return f"All of this figure, `{file}`:\n```{{literalinclude}} /{file}\n:lines: {first}-\n:language: python\n```\n"


def _files(folder: Path, figure: str, suffixes: tuple[str, ...]) -> str:
    """Return links to files of a figure in MyST, the last of them to a PNG."""
    return " · ".join(f"{{companion-file}}`{folder.name}/{figure}{suffix}`" for suffix in (*suffixes, PNG))


def _data(folder: Path, figure: str, record: FigureRecord) -> str:
    """Return in MyST the files of a figure, its columns and its first rows."""
    return DATA.format(
        files=_files(folder, figure, (store.DATA, store.RECORD, ".svg")),
        columns="\n".join(_column(name, column) for name, column in record.columns.items()),
        head=_head(folder / f"{figure}{store.DATA}"),
        rows=ROWS_SHOWN,
    )


def _column(name: str, column: ColumnRecord) -> str:
    unit = "" if column.unit == "1" else f" ({column.unit})"
    error = f"; standard error in `{column.std_error}`" if column.std_error not in (None, name) else ""
    together = f"; moves with `{column.moves_with}`" if column.moves_with else ""
    return f"- `{name}`: {escaped_formulas(column.meaning + unit)}{error}{together}"


def _head(path: Path) -> str:
    frame = pd.read_csv(path, dtype=str).head(ROWS_SHOWN).fillna("").map(escaped)
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
    build = project.build(profile)
    origin = provenance.read(build.provenance / f"{record.notebook}.json")
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
