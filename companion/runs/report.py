"""The page of a custom run: its figures, claims and numbers compared with the published ones.

It needs no server and no network, and its folder can be moved: it contains copies of the published pictures.
"""

import html
import json
import math
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from companion.figures import store
from companion.figures.plain_math import WITHHELD, as_html, bound, caption_as_html, number, withheld_because
from companion.figures.record import ClaimRecord, ColumnRecord, WithheldRecord, headline
from companion.figures.tolerances import ColumnMovement, Movement, movement
from companion.io import atomic
from companion.runs.custom_runs import Run

LIGHT, DARK = ".svg", ".dark.svg"


def write(run: Run) -> Path:
    """Write the page of a custom run, compared with what is published now, and return its path.

    The caller holds the lock of the run.
    """
    _copy_published(run)
    parts = [_figure(run, figure) for figure in run.records]
    title = f"{run.notebook}: custom run"
    text = PAGE.format(
        title=_text(title),
        style=STYLE,
        changed=_changed(run),
        origin=_origin(run),
        summary=_summary(run),
        figures="\n".join(parts),
        executed=_text(f"executed/{run.notebook}.ipynb"),
    )
    atomic.write_text(run.build.page, text)
    return run.build.page


def _copy_published(run: Run) -> None:
    """Copy the published pictures, light and dark, of the figures whose published files are intact."""
    with atomic.staging_folder(run.build.staging, run.notebook) as staging:
        new = staging / "published"
        new.mkdir()
        for figure in filter(lambda figure: _is_published(run, figure), run.records):
            for suffix in (LIGHT, DARK):
                shutil.copyfile(run.project.published / run.notebook / f"{figure}{suffix}", new / f"{figure}{suffix}")
        atomic.replace_folder(new, run.build.published_copy)


def _is_published(run: Run, figure: str) -> bool:
    return not store.faults(run.project.published / run.notebook, figure)


def _movement(run: Run, figure: str) -> Movement | None:
    """Return the distance of the figure from the published one, if there is one."""
    if not _is_published(run, figure):
        return None
    name = f"{figure}{store.DATA}"
    unrounded = run.build.tables / run.notebook / name
    return movement(run.project.published / run.notebook / name, unrounded, run.records[figure].columns)


def _changed(run: Run) -> str:
    if not run.changed:
        return "<p>All parameters are those of the published figures.</p>"
    rows = [(_code(name), _value(old), _value(new)) for name, (old, new) in run.changed.items()]
    return _table(("parameter", "published", "this run"), rows)


def _origin(run: Run) -> str:
    origin = run.origin
    if origin is None:
        return "<p>Time, machine and versions of this run were not recorded.</p>"
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    device = f" on {origin['device']}" if origin["device"] else ""
    profile = run.spec.profile
    commit = origin["git"]
    state = ""
    if commit:
        state = f" Commit {commit['commit'][:12]}{', with local changes' if commit['modified'] else ''}."
    return (
        f"<p>Profile {_text(profile)}, computed {_text(origin['started'])} in {origin['seconds']:.0f} s{_text(device)} "
        f"({origin['cores']} cores, Python {_text(origin['python'])}).{_text(state)}</p>"
        f"<p>{_text(versions)}</p>"
    )


def _summary(run: Run) -> str:
    rows = []
    for figure, record in run.records.items():
        held, claims = sum(claim.holds for claim in record.claims), len(record.claims)
        mark = "" if not claims else _mark(held == claims) + " "
        link = f'<a href="#{_text(figure)}">{_text(figure)}</a>'
        rows.append((link, f"{mark}{held} of {claims}", _largest_movement(_movement(run, figure))))
    return _table(("figure", "claims that hold", "column that moved most"), rows)


def _largest_movement(moved: Movement | None) -> str:
    if moved is None:
        return "not published"
    if moved.other_rows:
        return "different rows"
    if not moved.by:
        return "nothing moved"
    return f"{_code(moved.columns[0].name)}, {_times(moved.by)}"


def _figure(run: Run, figure: str) -> str:
    record, base = run.records[figure], f"figures/{run.notebook}/{figure}"
    published = None
    published_panel = "<p>This figure is not published.</p>"
    if _is_published(run, figure):
        published = store.read_record(run.project.published / run.notebook, figure)
        published_panel = _panel("published", f"published/{figure}", published.alt)
    return FIGURE.format(
        id=_text(figure),
        caption=caption_as_html(headline(record.caption)),
        custom=_panel("this run", base, record.alt),
        published=published_panel,
        moved=_moved(_movement(run, figure), record.columns),
        claims=_claims(record.claims, record.withheld, published.claims if published else ()),
        csv=_text(f"{base}{store.DATA}"),
        unrounded=_text(f"tables/{run.notebook}/{figure}{store.DATA}"),
        png=_text(f"{base}.png"),
    )


def _panel(label: str, base: str, alt: str) -> str:
    light, dark = _text(base + LIGHT), _text(base + DARK)
    return (
        f'<figure><figcaption>{label}</figcaption><a href="{light}"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{dark}"><img src="{light}" alt="{_text(alt)}">'
        "</picture></a></figure>"
    )


def _moved(moved: Movement | None, columns: Mapping[str, ColumnRecord]) -> str:
    if moved is None:
        return ""
    if moved.other_rows:
        return f"<p>The table is not compared number by number: {_text(moved.other_rows)}.</p>"
    verdict = "A rebuild may move it that far." if moved.reproduces else "A rebuild may not move it that far."
    if not moved.by:
        return "<p>No number moved.</p>"
    worst = moved.columns[0]
    rows = [_row(column, columns) for column in moved.columns]
    table = _table(("column", "moved by", "in row", "published", "this run", "meaning"), rows)
    return (
        f"<details><summary>Largest movement: {_code(worst.name)}, {_times(worst.by)}. {verdict}</summary>{table}"
        "</details>"
    )


def _row(column: ColumnMovement, columns: Mapping[str, ColumnRecord]) -> tuple[str, ...]:
    declared = columns[column.name]
    place = (str(column.row), _value(column.old), _value(column.new)) if column.by else ("", "", "")
    together = f"with {_code(declared.moves_with)}" if declared.moves_with and not column.by else _times(column.by)
    return _code(column.name), together, *place, _text(declared.meaning)


def _claims(
    claims: Iterable[ClaimRecord], withheld: Iterable[WithheldRecord], published_claims: Iterable[ClaimRecord]
) -> str:
    published = {claim.id: claim for claim in published_claims}
    items = []
    for claim in claims:
        old = published.get(claim.id)
        comparison = f"published {number(old.measured)} {_mark(old.holds)}" if old else "not published"
        alternative, warning = claim.alternative, ""
        if alternative and not claim.catches_alternative:
            theory = f"{as_html(alternative.theory)} ({number(alternative.measured)})"
            warning = f" It would hold for its alternative too: {theory}."
        items.append(
            f"<li>{_mark(claim.holds)} {as_html(claim.statement)} <cite>{_text(claim.source)}</cite><br>"
            f"<small>Measured <b>{number(claim.measured)}</b>, {comparison}; {bound(claim)}.{warning}</small>"
            "</li>"
        )
    items += [
        f"<li>{WITHHELD} {as_html(claim.statement)} <cite>{_text(claim.source)}</cite><br>"
        f"<small>{as_html(withheld_because(claim))}.</small></li>"
        for claim in withheld
    ]
    return f'<ul class="claims">{"".join(items)}</ul>' if items else "<p>This figure has no claim.</p>"


def _mark(holds: bool) -> str:
    return '<span class="holds">✓</span>' if holds else '<span class="fails">✗</span>'


def _times(by: float) -> str:
    if math.isinf(by):
        return '<span class="fails">finite in only one of the two</span>'
    text = f"{by:.2g} tolerances" if by else "not at all"
    return f'<span class="fails">{text}</span>' if by > 1 else text


def _value(value: Any) -> str:
    """Return the text of a parameter or of a number in a table."""
    if value is None:
        return "—"
    return _text(f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False))


def _code(name: str) -> str:
    return f"<code>{_text(name)}</code>"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; its cells are already HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _text(text: str) -> str:
    return html.escape(text)


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{changed}
{origin}
<h2>Summary</h2>
{summary}
<p><small>A tolerance is the largest movement that a rebuild may make in a published number: five standard errors, or
10⁻⁶ of its value if it is exact.</small></p>
{figures}
<footer><p>Executed notebook: <a href="{executed}">{executed}</a></p></footer>
</main>
</body>
</html>
"""

FIGURE = """<section id="{id}">
<h2>{id}</h2>
<p>{caption}</p>
<div class="pair">{custom}{published}</div>
{moved}
{claims}
<p class="files"><a href="{csv}">numbers</a> · <a href="{unrounded}">unrounded</a> · <a href="{png}">PNG</a></p>
</section>"""

STYLE = """
:root { --ink: #1b1f24; --paper: #ffffff; --faint: #d5d9de; --quiet: #57606a; --link: #0a4a9e; --good: #00734f;
  --bad: #b34700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #121212; --faint: #3a3f45; --quiet: #a4acb5;
  --link: #8fd0f5; --good: #2fc79a; --bad: #ff8a47; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 86rem; margin: 0 auto; padding: 1rem; }
main > p, section > p { max-width: 50rem; }
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem; overflow-wrap: anywhere; }
a { color: var(--link); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; }
figure { margin: 0; }
figcaption { color: var(--quiet); font-size: 0.9rem; }
img { width: 100%; height: auto; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 1rem 0.25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--faint);
  min-width: 4rem; }
td:last-child:nth-child(n+4) { min-width: 14rem; }
code { white-space: nowrap; }
summary { cursor: pointer; margin: 0.75rem 0; }
.claims { list-style: none; padding: 0; max-width: 60rem; }
.claims li { margin: 0.75rem 0; padding-left: 1.5rem; text-indent: -1.5rem; }
.claims li small { text-indent: 0; }
small, cite, .files, footer { color: var(--quiet); font-size: 0.9rem; }
.holds { color: var(--good); }
.fails { color: var(--bad); font-weight: 600; }
"""
