"""Extract the prose of the Jargon File for this chapter: paragraphs of its chapters and folklore, one per line.

    python -m chapters.real_heads.data.extract jargon.txt.gz

`jargon.txt.gz` is a file of Debian's package jargon-text; the README gives version and checksum.
"""

import gzip
import re
import sys
from pathlib import Path

# Headings at which each extracted part begins and ends; they also occur in the table of contents.
PARTS = (
    ("Chapter 1. Hacker Slang and Hacker Culture", "Glossary"),
    ("Appendix A. Hacker Folklore", "Appendix B. A Portrait of J. Random Hacker"),
)
# Shorter paragraphs are headings, examples or verse; these characters belong to lists, addresses and markup.
SHORTEST, NO_PROSE = 120, re.compile(r"@|://|[•→|<>\\]")


def extract(whole: str) -> list[str]:
    """Return paragraphs of two or more lines and `SHORTEST` characters that end like sentences, without braces."""
    lines = whole.replace("\xa0", " ").splitlines()

    def last(heading: str) -> int:
        return max(number for number, line in enumerate(lines) if line == heading)

    parts = ["\n".join(lines[last(first) : last(after)]) for first, after in PARTS]
    found = []
    for paragraph in re.split(r"\n\s*\n", "\n\n".join(parts)):
        text = re.sub(r"\s+", " ", re.sub(r"[{}]", "", paragraph)).strip()
        indented = paragraph.lstrip("\n").startswith("   ")
        if (
            "\n" in paragraph
            and indented
            and len(text) >= SHORTEST
            and not NO_PROSE.search(text)
            and text[-1] in ".:”!?)"
        ):
            found.append(text)
    return found


if __name__ == "__main__":
    paragraphs = extract(gzip.decompress(Path(sys.argv[1]).read_bytes()).decode())
    Path(__file__).with_name("text.txt").write_text("\n".join(paragraphs) + "\n", encoding="utf-8")
