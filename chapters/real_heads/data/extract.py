"""The prose of the Jargon File that the chapter reads: paragraphs of its chapters and of its folklore, one a line.

    python -m chapters.real_heads.data.extract jargon.txt.gz

`jargon.txt.gz` is that of Debian's package jargon-text, whose version and checksum the README gives.
"""

import gzip
import re
import sys
from pathlib import Path

# Headings where a part that is taken begins, and where it ends; they stand in the table of contents, too.
PARTS = (
    ("Chapter 1. Hacker Slang and Hacker Culture", "Glossary"),
    ("Appendix A. Hacker Folklore", "Appendix B. A Portrait of J. Random Hacker"),
)
# Fewer characters are a heading, an example or a line of verse; these signs belong to lists, addresses and markup.
SHORTEST, NO_PROSE = 120, re.compile(r"@|://|[•→|<>\\]")


def extract(whole: str) -> list[str]:
    """Paragraphs of at least two lines and `SHORTEST` characters that end as sentences do; braces are left out."""
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
