"""Draw docs/architecture.svg: the layers of `companion`, and the packages around them.

The order of the layers is that of the import-linter contract in `pyproject.toml`. The text of a layer is the first line
of its docstring. `python tools/draw_layers.py` writes the picture; `--check` only compares it with the one on disk.
"""

import ast
import html
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
WIDTH, ROW, GAP, LEFT = 760, 46, 8, 24
STYLE = """
svg { background: #ffffff; color-scheme: light dark }
text { font: 13px system-ui, sans-serif; fill: #1d232b }
.name { font-weight: 650 }
.note { fill: #46505e }
rect { fill: #f3f6fa; stroke: #7d8ba0 }
path { stroke: #46505e; fill: none }
@media (prefers-color-scheme: dark) {
  svg { background: #14181e }
  text { fill: #e6e9ee } .note { fill: #aab4c2 }
  rect { fill: #202833; stroke: #66758a } path { stroke: #aab4c2 }
}
"""


def layers() -> list[tuple[str, str]]:
    """Return name and first docstring line of each layer, the highest first."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [contract for contract in table["contracts"] if contract["type"] == "layers"]
    found = []
    for module in contract["layers"]:
        source = (ROOT / module.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
        text = (ast.get_docstring(ast.parse(source)) or "").split("\n")[0]
        found.append((module.rpartition(".")[2], text))
    return found


def picture() -> str:
    """Return the SVG."""
    rows, parts = layers(), []
    top = 60
    for index, (name, text) in enumerate(rows):
        y = top + index * (ROW + GAP)
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - 2 * LEFT}" height="{ROW}" rx="5"/>')
        parts.append(f'<text class="name" x="{LEFT + 14}" y="{y + 28}">{html.escape(name)}</text>')
        parts.append(f'<text class="note" x="{LEFT + 110}" y="{y + 28}">{html.escape(text)}</text>')
    bottom = top + len(rows) * (ROW + GAP)
    height = bottom + 78
    parts.append(f'<path d="M {WIDTH - 12} {top + 10} V {bottom - 18} m -4 -8 l 4 8 l 4 -8"/>')
    for x, width, name, text in (
        (LEFT, 260, "chapters", "parameters, simulations, figures"),
        (LEFT + 270, 140, "lib", "the science"),
        (LEFT + 420, 180, "book", "pages and notebooks"),
    ):
        parts.append(f'<rect x="{x}" y="{bottom + 24}" width="{width}" height="{ROW}" rx="5"/>')
        parts.append(f'<text class="name" x="{x + 12}" y="{bottom + 43}">{name}</text>')
        parts.append(f'<text class="note" x="{x + 12}" y="{bottom + 60}">{text}</text>')
    title = "companion: each layer imports only layers below it; chapters import lib and companion's public names"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n"
        f'<text class="name" x="{LEFT}" y="26">companion</text>\n'
        f'<text class="note" x="{LEFT}" y="46">Each layer imports only layers below it.</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def main() -> None:
    """Write the picture, or with `--check` report whether it is out of date."""
    if "--check" in sys.argv[1:]:
        if not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != picture():
            sys.exit("docs/architecture.svg is out of date: run `python tools/draw_layers.py`.")
    else:
        PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
