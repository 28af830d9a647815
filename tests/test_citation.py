"""`CITATION.cff` and the page `cite` cite the papers as the list of references does."""

import re
from pathlib import Path

import pytest
from pybtex.database import parse_file, parse_string
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
REFERENCES = parse_file(str(ROOT / "book/references.bib")).entries
CITATION = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PAPERS = ("BB26", "D26")


def plain(text):
    """Return a title without braces and line breaks."""
    return " ".join(text.replace("{", "").replace("}", "").split())


@pytest.mark.parametrize("key", PAPERS)
def test_citation_file_agrees_with_the_references(key):
    """Title, year, volume and pages are compared."""
    fields = REFERENCES[key].fields
    entry = next(reference for reference in CITATION["references"] if reference["title"] == plain(fields["title"]))
    pages = "--".join(str(entry[name]) for name in ("start", "end") if name in entry)
    assert entry["year"] == int(fields["year"])
    assert str(entry.get("volume", "")) == fields.get("volume", "")
    assert pages == fields.get("pages", "")


@pytest.mark.parametrize("key", PAPERS)
def test_page_of_citations_agrees_with_the_references(key):
    """The BibTeX that readers copy is compared: title, venue, year, volume and pages."""
    blocks = re.findall(r"```bibtex\n(.*?)```", (ROOT / "book/cite.md").read_text(encoding="utf-8"), re.DOTALL)
    shown = parse_string("\n".join(blocks), "bibtex").entries[key].fields
    fields = REFERENCES[key].fields
    for name in ("title", "booktitle", "year", "volume", "pages"):
        assert plain(shown.get(name, "")) == plain(fields.get(name, "")), name
