"""The page of a custom run: its figures, claims and numbers compared with the published ones.

It needs no server and no network, and its folder can be moved: it contains copies of the published pictures.
"""

import json
import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from companion.figures import store
from companion.figures.comparison import compare
from companion.figures.plain_math import as_plain_text, bound, caption_as_plain_text, number, withheld_because
from companion.figures.record import Claim, FigureRecord, NotebookClaims, headline
from companion.io import atomic
from companion.runs.custom_runs import Run

TEMPLATES = Path(__file__).with_name("templates")


def write(run: Run) -> Path:
    """Write the page of a custom run, compared with what is published now, and return its path.

    The caller holds the lock of the run.
    """
    folder = run.project.published / run.notebook
    published = {name: store.read_record(folder, name) for name in run.records if not store.faults(folder, name)}
    _copy_pictures(run, folder, published)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, undefined=StrictUndefined
    )
    environment.tests["infinite"] = math.isinf
    environment.filters |= {
        "bound": bound,
        "formulas": as_plain_text,
        "number": number,
        "value": _value,
        "withheld_because": withheld_because,
    }
    figures = [_figure(run, name, published.get(name)) for name in run.records]
    own, published_own = run.own_claims, _by_id(store.read_claims(folder))
    page = environment.get_template("run.html.jinja").render(
        run=run, origin=run.origin, figures=figures, own=own, published_own=published_own
    )
    atomic.write_text(run.build.page, page)
    return run.build.page


def _copy_pictures(run: Run, folder: Path, figures: Iterable[str]) -> None:
    """Copy the published pictures of `figures` from `folder`."""
    with atomic.staging_folder(run.build.staging, run.notebook) as staging:
        new = staging / "published"
        new.mkdir()
        for figure in figures:
            shutil.copyfile(folder / f"{figure}.svg", new / f"{figure}.svg")
        atomic.replace_folder(new, run.build.published_copy)


def _figure(run: Run, name: str, published: FigureRecord | None) -> dict[str, Any]:
    """Return what the template needs of a figure; `moved` is None if it is not published."""
    record, moved = run.records[name], None
    if published:
        folders = run.project.published, run.build.tables
        old_table, new_table = (folder / run.notebook / f"{name}{store.DATA}" for folder in folders)
        moved = compare(published, record, (old_table, new_table)).table
    return {
        "name": name,
        "record": record,
        "caption": caption_as_plain_text(headline(record.caption)),
        "moved": moved,
        "published": published,
        "published_claims": _by_id(published),
    }


def _by_id(record: FigureRecord | NotebookClaims | None) -> dict[str, Claim]:
    return {claim.id: claim for claim in record.claims} if record else {}


def _value(value: Any) -> str:
    """Return the text of a parameter or of a number in a table."""
    if value is None:
        return "—"
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
