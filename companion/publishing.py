"""`publish(plot, result)`: the last line of every notebook cell that shows something.

Run by the builder, it writes the figure's five files where the builder said. Run by hand, it shows the figure
inline, writes the same files to `figures-scratch/`, and shows a failed claim as a cross instead of stopping.
"""

import base64
import html
import inspect
import io
import json
import os
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import lib
from companion import atomic, figure_set, numbers, sources
from companion.house import MIME, OUT, PROFILE
from lib.experiments.result import Result
from lib.plotting.style import Theme, style

SCRATCH = "figures-scratch"


class Published:
    """A published figure, as Jupyter shows it: the picture, its caption, and the verdict on each claim."""

    def __init__(self, folder: Path, record: dict[str, Any]):
        self.folder, self.record = folder, record

    def _repr_mimebundle_(self, **_) -> Mapping[str, Any]:
        name = f"{self.record['notebook']}/{self.record['figure']}"
        return {MIME: {"figure": name}, "text/html": self._html(), "text/plain": self._text()}

    def _html(self) -> str:
        png = (self.folder / f"{self.record['figure']}.png").read_bytes()
        rows = "".join(
            f"<li>{_verdict(claim)} {html.escape(claim['statement'])} <i>{html.escape(claim['source'])}</i>: measured "
            f"{claim['measured']}, {claim['relation']} {claim['expected']} ± {claim['tolerance']}</li>"
            for claim in self.record["claims"]
        )
        return (
            f'<img width="760" alt="{html.escape(self.record["alt"])}" '
            f'src="data:image/png;base64,{base64.b64encode(png).decode()}">'
            f'<ul style="list-style: none">{rows}</ul>'
        )

    def _text(self) -> str:
        claims = [f"{_verdict(claim)} {claim['id']}: {claim['measured']}" for claim in self.record["claims"]]
        return "\n".join([f"{self.folder / self.record['figure']}.svg", *claims])


def publish(plot: Callable[[Result], Figure], result: Result) -> Published:
    """Draw `result`'s table of the plot's name, light and dark, and write picture, data and record.

    The plot's docstring is the caption; its paragraph that starts with `Alt:` describes the picture to those who
    cannot see it.
    """
    figure = plot.__name__
    part = result.of(figure)
    table = part.tables[figure]
    caption, alt = caption_and_alt(plot)
    out = os.environ.get(OUT)
    base = Path(out) / "figures" if out else Path(SCRATCH)
    folder = base / result.experiment
    folder.mkdir(parents=True, exist_ok=True)

    pictures = {**_draw(plot, part, "light", ("svg", "png")), **_draw(plot, part, "dark", ("svg",))}
    for suffix, content in pictures.items():
        _refuse_if_large(figure, suffix, content)
        (folder / f"{figure}{suffix}").write_bytes(content)
    data = folder / f"{figure}{figure_set.DATA}"
    numbers.write_csv(table.frame, data, numbers.SIGNIFICANT_DIGITS)
    _refuse_if_large(figure, figure_set.DATA, data.read_bytes())
    if out:
        _leave_to_runner(Path(out), result.experiment, figure, table.frame)

    package = Path(lib.__file__).parent.parent
    record = {
        "figure": figure,
        "notebook": result.experiment,
        "profile": os.environ.get(PROFILE, "by hand"),
        "parameters": dict(result.parameters),
        "seed": result.parameters.get("seed"),
        "caption": caption,
        "alt": alt,
        "columns": {name: asdict(column) for name, column in table.columns.items()},
        "claims": [numbers.claim_record(claim) for claim in part.claims],
        "functions": [
            f"lib.experiments.{result.experiment}.{result.experiment}",
            f"{plot.__module__}.{figure}",
        ],
        "sources": sources.digests(package, sources.science_files(package, result.experiment)),
        "files": {
            suffix: sources.digest((folder / f"{figure}{suffix}").read_bytes()) for suffix in figure_set.SUFFIXES[:-1]
        },
    }
    atomic.write_text(folder / f"{figure}{figure_set.RECORD}", atomic.dump_json(record))
    return Published(folder, record)


def caption_and_alt(plot: Callable[..., Any]) -> tuple[str, str]:
    """The two texts of a plot's docstring. Raises if either is missing: a figure needs both to be published."""
    paragraphs = [paragraph.strip() for paragraph in (inspect.getdoc(plot) or "").split("\n\n")]
    alts = [paragraph for paragraph in paragraphs if paragraph.startswith("Alt:")]
    captions = [paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("Alt:")]
    if not captions or len(alts) != 1:
        raise ValueError(
            f"The docstring of plot `{plot.__name__}` is published: it needs a caption that says what to see, then "
            "one paragraph `Alt: …` that describes the picture to those who cannot see it. "
            f"Got {len(captions)} caption paragraphs and {len(alts)} alt texts."
        )
    return "\n\n".join(captions), " ".join(textwrap.dedent(alts[0][len("Alt:") :]).split())


def _draw(plot: Callable[[Result], Figure], part: Result, theme: Theme, formats: tuple[str, ...]) -> dict[str, bytes]:
    with style(theme):
        picture = plot(part)
        files = {}
        for kind in formats:
            buffer = io.BytesIO()
            metadata = {"Date": None} if kind == "svg" else {}
            picture.savefig(buffer, format=kind, metadata=metadata, dpi=144)
            files[f".{kind}" if theme == "light" else f".{theme}.{kind}"] = buffer.getvalue()
        plt.close(picture)
    return files


def _refuse_if_large(figure: str, suffix: str, content: bytes) -> None:
    if len(content) > figure_set.LARGEST:
        raise ValueError(
            f"{figure}{suffix} has {len(content):,} bytes, over the {figure_set.LARGEST:,} a published file may have: "
            "rasterise dense artists (`rasterized=True`) or thin the table."
        )


def _leave_to_runner(out: Path, experiment: str, figure: str, frame) -> None:
    tables = out / "tables" / experiment
    tables.mkdir(parents=True, exist_ok=True)
    numbers.write_csv(frame, tables / f"{figure}{figure_set.DATA}", numbers.EXACT_DIGITS)
    (out / "device.json").write_text(json.dumps(f"{jax.default_backend()}: {jax.devices()[0].device_kind}"))


def _verdict(claim: Mapping[str, Any]) -> str:
    return "✓" if claim["holds"] else "✗"
