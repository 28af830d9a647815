"""`{companion-figure}`: the picture, and under it what makes it checkable; `{claim}`: a measured number in prose."""

import ast
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion import figure_set, provenance
from companion.house import House, relative
from companion.mistakes import did_you_mean
from companion.parameters import parameters_of
from companion.sphinx.claims import all_claims, note_shown
from companion.sphinx.text import claim_anchor, escaped, ledger_anchor, mark, measured, number, table

ROWS_SHOWN = 5


class FigureDirective(SphinxDirective):
    """`{companion-figure} notebook/figure`: light and dark picture, caption, claims, code, data, parameters, origin."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes, or an error that fails a strict build."""
        house: House = self.config.companion_house
        shown = house.shown_figures(self.config.companion_profile)
        notebook, _, figure = self.arguments[0].partition("/")
        folder = shown / notebook
        for suffix in figure_set.SUFFIXES:
            self.env.note_dependency(str(folder / f"{figure}{suffix}"))
        if faults := figure_set.faults(folder, figure):
            raise self.error(f"Figure {self.arguments[0]!r} cannot be shown: {'; '.join(faults)}.")
        record = figure_set.read_record(folder, figure)
        if not record["alt"].strip() or not record["caption"].strip():
            raise self.error(f"Figure {self.arguments[0]!r} needs a caption and an alt text.")
        for claim in record["claims"]:
            if not claim["source"].strip():
                raise self.error(f"Claim {claim['id']!r} of figure {self.arguments[0]!r} needs a source.")
        return [self._picture(folder, figure, record), *self._details(house, folder, figure, record)]

    def _picture(self, folder: Path, figure: str, record: dict[str, Any]) -> nodes.Node:
        base = f"/{relative(folder, Path(self.env.srcdir))}/{figure}"
        picture = nodes.figure(classes=["companion-figure"])
        pictures = nodes.container(classes=["companion-pictures"])
        for suffix, theme in ((".svg", "only-light"), (".dark.svg", "only-dark")):
            pictures += nodes.image(uri=base + suffix, alt=record["alt"], classes=[theme])
        picture += pictures
        first, *rest = record["caption"].split("\n\n")
        text, messages = self.parse_inline(" ".join(first.split()))
        picture += nodes.caption("", "", *text)
        picture += messages
        if rest:
            picture += nodes.legend("", *self.parse_text_to_nodes("\n\n".join(rest)))
        self.set_source_info(picture)
        self.options["name"] = f"fig-{figure.replace('_', '-')}"
        self.add_name(picture)
        return picture

    def _details(self, house: House, folder: Path, figure: str, record: dict[str, Any]) -> list[nodes.Node]:
        held = sum(claim["holds"] for claim in record["claims"])
        base = f"/{relative(folder, house.root)}/{figure}"
        text = DETAILS.format(
            verdict=f"{held} of {len(record['claims'])} claims hold",
            claims="\n".join(map(_claim, record["claims"])) or "This picture makes no claim.",
            code=_code(house, record),
            csv=f"{{download}}`{figure}.csv <{base}.csv>`",
            record=f"{{download}}`{figure}.json <{base}.json>`",
            svg=f"{{download}}`{figure}.svg <{base}.svg>`",
            png=f"{{download}}`{figure}.png <{base}.png>`",
            columns="\n".join(_column(name, column) for name, column in record["columns"].items()),
            head=_head(folder / f"{figure}.csv"),
            rows=ROWS_SHOWN,
            parameters=_parameters(house, record),
            notebook=record["notebook"],
            origin=_origin(house, self.config.companion_profile, record),
        )
        return self.parse_text_to_nodes(text)


DETAILS = """
::::::{{dropdown}} {verdict} · code · data · parameters · origin
:class-container: companion-details

:::::{{tab-set}}

::::{{tab-item}} Claims
{claims}
::::

::::{{tab-item}} Code
{code}
::::

::::{{tab-item}} Data
{csv} · {record} · {svg} · {png}

{columns}

The first {rows} rows:

{head}
::::

::::{{tab-item}} Parameters
{parameters}

Other values: `companion run {notebook} -p name=value`.
::::

::::{{tab-item}} Origin
{origin}
::::

:::::
::::::
"""


def _claim(claim: dict[str, Any]) -> str:
    other = claim["alternative"]
    return (
        f"({claim_anchor(claim['id'])})=\n"
        f"{mark(claim)} **{claim['statement']}** {escaped(claim['source'])} \\\n"
        f"{measured(claim)} It would catch: {other['says']} (then {number(other['measured'])}). "
        f"[In the ledger](#{ledger_anchor(claim['id'])}).\n"
    )


def _code(house: House, record: dict[str, Any]) -> str:
    """The steps of the notebook, the chapter's shared functions behind them, the figure's own file without caption."""
    chapter = f"{house.settings.chapters}.{record['notebook']}"
    own = f"{chapter}.{record['figure']}"
    shared = [name for name in record["functions"] if not name.startswith(f"{own}.")]
    steps = "\n".join(record["steps"])
    return "\n".join(
        [
            f"In the notebook:\n```python\n{steps}\n```",
            *([f"Shared by figures of this chapter, in `{chapter.replace('.', '/')}/`:\n"] if shared else []),
            *map(_function, shared),
            _file(house, own),
        ]
    )


def _function(path: str) -> str:
    module, _, name = path.rpartition(".")
    file = module.replace(".", "/") + ".py"
    return f"```{{literalinclude}} /{file}\n:pyobject: {name}\n:language: python\n```\n"


def _file(house: House, module: str) -> str:
    """A figure's own file from below its docstring, which is the caption."""
    file = module.replace(".", "/") + ".py"
    first = ast.parse((house.root / file).read_text(encoding="utf-8")).body[1].lineno
    return f"All of this figure, `{file}`:\n```{{literalinclude}} /{file}\n:lines: {first}-\n:language: python\n```\n"


def _column(name: str, column: dict[str, Any]) -> str:
    unit = "" if column["unit"] == "1" else f" ({column['unit']})"
    error = f"; standard error in `{column['std_error']}`" if column["std_error"] not in (None, name) else ""
    together = f"; moves with `{column['moves_with']}`" if column["moves_with"] else ""
    return f"- `{name}`: {column['meaning']}{unit}{error}{together}"


def _head(path: Path) -> str:
    frame = pd.read_csv(path, dtype=str).head(ROWS_SHOWN).fillna("")
    return table(list(frame.columns), frame.to_numpy().tolist())


def _parameters(house: House, record: dict[str, Any]) -> str:
    fields = parameters_of(house, record["notebook"]).model_fields
    rows = [
        (f"`{name}`", f"`{value}`", (fields[name].description or "").strip())
        for name, value in record["parameters"].items()
    ]
    return table(("parameter", "value", "meaning"), rows)


def _origin(house: House, profile: str, record: dict[str, Any]) -> str:
    build = house.build(profile)
    origin = provenance.read(build.provenance / f"{record['notebook']}.json")
    sources = ", ".join(f"`{path}`" for path in record["sources"])
    if origin is None:
        return f"Profile `{record['profile']}`. Made from {sources}."
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    commit = origin["git"] or {"commit": "no git", "modified": False}
    return (
        f"Profile `{record['profile']}`, last computed {origin['started']} in {origin['seconds']:.0f} s on "
        f"{origin['device']} ({origin['cores']} cores, Python {origin['python']}), at commit "
        f"`{commit['commit'][:12]}`{' with local changes' if commit['modified'] else ''}.\n\n"
        f"Versions: {versions}.\n\nMade from {sources}."
    )


class ClaimRole(SphinxRole):
    """`` {claim}`id` ``: the number the claim measured, with its verdict, linked to where it is stated."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A link, or an error that fails a strict build."""
        note_shown(self.env, self.text)
        claims = {claim["id"]: claim for claim in all_claims(self.env.app)}
        if self.text not in claims:
            message = self.inliner.reporter.error(f"There is no claim {self.text!r}. {did_you_mean(self.text, claims)}")
            return [nodes.problematic(self.rawtext, self.rawtext, refid=message)], [message]
        claim = claims[self.text]
        label = f"{number(claim['measured'])} {mark(claim)}"
        target = self.config.companion_house.book.name + "/" + claim["notebook"]
        uri = f"{self._relative_uri(target)}#{claim_anchor(claim['id'])}"
        return [nodes.reference("", label, refuri=uri, internal=True, classes=["companion-claim"])], []

    def _relative_uri(self, target: str) -> str:
        builder = self.env.app.builder
        return "" if target == self.env.docname else builder.get_relative_uri(self.env.docname, target)
