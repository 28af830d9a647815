"""How to cite the papers: `CITATION.cff` and the front page agree with the list of references."""

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
    """A title without braces and line breaks."""
    return " ".join(text.replace("{", "").replace("}", "").split())


@pytest.mark.parametrize("key", PAPERS)
def test_citation_file_names_the_papers_as_the_references_do(key):
    """Title, year, volume and pages."""
    fields = REFERENCES[key].fields
    entry = next(each for each in CITATION["references"] if each["title"] == plain(fields["title"]))
    pages = "--".join(str(entry[name]) for name in ("start", "end") if name in entry)
    assert entry["year"] == int(fields["year"])
    assert str(entry.get("volume", "")) == fields.get("volume", "")
    assert pages == fields.get("pages", "")


@pytest.mark.parametrize("key", PAPERS)
def test_front_page_cites_the_papers_as_the_references_do(key):
    """Title, venue, year, volume and pages of the BibTeX that readers copy."""
    blocks = re.findall(r"```bibtex\n(.*?)```", (ROOT / "book/index.md").read_text(encoding="utf-8"), re.DOTALL)
    shown = parse_string("\n".join(blocks), "bibtex").entries[key].fields
    fields = REFERENCES[key].fields
    for name in ("title", "booktitle", "year", "volume", "pages"):
        assert plain(shown.get(name, "")) == plain(fields.get(name, "")), name
