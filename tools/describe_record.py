"""Write the tables of docs/figure-record.md: the fields of a figure's record, from its JSON schema.

`python tools/describe_record.py` replaces what is between the two markers; `--check` only compares.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from companion.figures.record import json_schema  # noqa: E402

PAGE = ROOT / "docs" / "figure-record.md"
BEGIN, END = "<!-- fields: written by tools/describe_record.py -->\n", "<!-- end of fields -->\n"
TITLES = {
    "FigureRecord": "The record",
    "ColumnRecord": "A column",
    "Claim": "A claim",
    "Alternative": "An alternative",
    "WithheldClaim": "A withheld claim",
}


def fields() -> str:
    """Return one table per model: name, JSON type and meaning of each field."""
    schema: dict[str, Any] = json_schema()
    models = {"FigureRecord": schema, **schema["$defs"]}
    parts = []
    for name, title in TITLES.items():
        rows = [
            f"| `{field}` | {_type(about)} | {about['description'].replace('|', chr(92) + '|')} |"
            for field, about in models[name]["properties"].items()
        ]
        parts.append("\n".join([f"### {title}", "", "| field | JSON | meaning |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def page() -> str:
    """Return the page with today's tables."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{fields()}\n{END}{after}"


def _type(about: dict[str, Any]) -> str:
    """Return the JSON type of a field in words."""
    match about:
        case {"anyOf": choices}:
            words = " or ".join(_type(one) for one in choices)
        case {"$ref": place}:
            words = TITLES.get(place.rpartition("/")[2], "any value").lower()
        case {"const": value}:
            words = f"`{value}`"
        case {"enum": values}:
            words = ", ".join(f'`"{value}"`' for value in values)
        case {"type": "array", "items": items}:
            words = f"list; each item: {_type(items)}"
        case {"type": "object", "additionalProperties": values}:
            words = f"object; each value: {_type(values)}"
        case _:
            words = about.get("type", "any value")
    return words


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        if page() != PAGE.read_text(encoding="utf-8"):
            sys.exit("docs/figure-record.md is out of date: run `python tools/describe_record.py`.")
    else:
        PAGE.write_text(page(), encoding="utf-8")
