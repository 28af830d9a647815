"""Prose linter: find constructions that STYLE calls private dialect, in code, pages and notebooks.

It reads docstrings, comments and messages of Python files, the text of Markdown pages, and the Markdown cells and
comments of notebooks. Code, quotations and inline code are left out. Each pattern has a suggestion. Patterns that never
fire in well-edited English are errors; the others are counted per 1,000 words and printed.

Mark a good sentence that a pattern meets by `prose: keep` and a reason, in a comment on the same line.

Example: `python tools/prose.py companion tests`, or without arguments for the whole repository.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KEEP = "prose: keep"
MOST_KEPT = 30
TREES = ("companion", "tests", "lib", "chapters", "book", "docs", "benchmarks", "tools", ".ci")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
# Files that quote the dialect on purpose, and text that is not ours.
EXEMPT = ("tools/prose.py", "tests/test_prose.py", "chapters/real_heads/data/", "docs/decisions/README.md")


@dataclass(frozen=True)
class Pattern:
    """A construction to avoid.

    `error`: it does not occur in the docstrings of equinox, optax and Sphinx, so that every hit is worth a change.
    """

    regex: str
    instead: str
    error: bool = True
    case: bool = False

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return all matches in `text`."""
        return re.finditer(self.regex, text, 0 if self.case else re.IGNORECASE)


NOUN = r"[a-z][a-z-]+"
MORE = r"(?:more|less|later|longer|larger|smaller|higher|shorter|sooner|nearer)"
PATTERNS = [
    # "a row a length": two nouns, one preposition too few
    Pattern(
        rf"\b(?:an?|one) (?:row|figure|file|folder|line|column|curve|notebook|claim|panel|point|job|rule|stamp|test|"
        rf"token|prompt|query|head|task|run|page|module|card|entry|seed|key|dot|bar|colou?r|mark|weight|length|piece|"
        rf"cell|process|cluster|matrix|vector|number|value|name|dash|part|step|picture|table|setting|word) "
        rf"(?:an?|each) {NOUN}(?=[,.;:)`]|$| and\b| or\b)",
        "one ... per ...",
    ),
    Pattern(
        r"\b(?:is|are|was|were|be|been|as) told\b|\btold (?:apart|by|of|in|from|what|that|the|as)\b",
        "reported, passed, known",
    ),
    Pattern(r"\btells? (?:of|what|which|nothing|how|whether)\b", "describes, shows", error=False),
    Pattern(r"\b(?:is|are|was|were|be|been) said\b|\bsaid (?:of|in|under|by)\b", "reported, documented, stated"),
    Pattern(
        r"\bstands? (?:in|at|on|under|beside|for its|there|beneath|above|below|here|elsewhere)\b",
        "is in, is at, is next to",
    ),
    Pattern(r"\bstanding (?:in|at|on|under|beside)\b", "in, at, under"),
    Pattern(r"\blies? (?:in|beside|there|under)\b", "is in, is next to", error=False),
    Pattern(r"\bbut for\b", "except", error=False),
    Pattern(r"\b(?:one's own|of (?:its|their|your|our|his|her) own)\b", "custom, separate, own ...", error=False),
    Pattern(r"\bbeside\b", "next to, compared with, besides"),
    Pattern(r"\bas far as\b", "where, if, until", error=False),
    Pattern(r"\b(?:nobody|anybody|whoever|whosoever)\b", "no user, users who, no predictor"),
    Pattern(r"\bin the mean\b(?![ -](?:square|field))", "on average"),
    Pattern(r"\bin the end\b", "eventually, finally", error=False),
    Pattern(r"\bto the (?:number|letter)\b(?! of)", "exactly"),
    Pattern(r"\bregular (?:matrix|matrices|covariance|covariances|Σ)\b|\bis regular\b", "invertible"),
    Pattern(r"\b(?:right|wrong) way(?: round)?\b", "aligned, swapped"),
    Pattern(r"\b(?:hay|straws?|the zoo)\b", "other tokens, largest other score, comparison"),
    Pattern(
        r"(?:^|[.:;] )(?:Told|Drawn|Compared|Shown|Left|Meant|Counted|Kept|Asked|Listed) (?:is|are|was|were)\b",
        "subject first",
        case=True,
    ),
    Pattern(
        r"(?:^|\. )(?:Who|Whoever|What) [a-z]+s? [^.?!]*"
        r"\b(?:is|are|has|have|gets?|needs?|ends?|reads?|takes?|finds?)\b[^?]{0,60}[.]$",
        "name the subject",
        error=False,
        case=True,
    ),
    Pattern(
        r"(?:^|\. )Of (?:a|the|every|each|all|this|single|what|its|one) [^,.]{3,60}[.,:]",
        "a full sentence",
        error=False,
        case=True,
    ),
    Pattern(
        r"\bwhat (?:is|was|are|were) (?:asked|wanted|left|meant|there|shown|drawn|said|told|known)\b",
        "name the thing",
        error=False,
    ),
    Pattern(
        rf"\bthe {MORE} the {MORE}\b(?! [a-z]+,)",
        "a full clause",
        error=False,
    ),
    Pattern(r"\ba share (?:of )?(?:0?\.\d+|0|1)\b", "counts: 6 of 12"),
    Pattern(r"\bone is (?:asked|led|given)\b", "the user ...", error=False),
    Pattern(
        r"\bwho (?:asks|asked|runs|reads|imports|calls|stops|wants|looks|has|does)\b",
        "the caller, users who",
        error=False,
    ),
    Pattern(
        r"\b(?:anew|thereby|wherein|thereof|whereof|hereof|therewith|wherewith)\b",
        "again, by this, in which",
        error=False,
    ),
    Pattern(r"\bhow it ended\b|\bhow far (?:a|the|its)\b", "outcome, progress", error=False),
    Pattern(r"\bwithout a word\b", "silently"),
    Pattern(r"\bat (?:its|their) worst\b|\bat worst\b", "largest, maximum", error=False),
    Pattern(
        r"\b(?:they|it|that|these) (?:answers?|asks?|minds?|hears?) (?:with|to|of|for|by|on|no|nothing)\b",
        "outputs, queries, depends on",
        error=False,
    ),
]


@dataclass(frozen=True)
class Text:
    """A piece of prose and the line where it begins."""

    path: Path
    line: int
    text: str


def texts(path: Path) -> Iterator[Text]:
    """Return the prose of a file, piece by piece."""
    source = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".py":
            yield from _python(path, source)
        case ".md":
            yield from _markdown(path, source, 1)
        case ".ipynb":
            for cell in json.loads(source)["cells"]:
                text = "".join(cell["source"])
                line = source[: source.find(json.dumps(text.split("\n")[0], ensure_ascii=False)[1:-1])].count("\n") + 1
                yield from (
                    _markdown(path, text, line) if cell["cell_type"] == "markdown" else _comments(path, text, line)
                )
        case ".yml" | ".yaml" | ".toml" | "":
            for number, line in enumerate(source.splitlines(), 1):
                if line.lstrip().startswith("#"):
                    yield Text(path, number, line.lstrip("# "))


def _python(path: Path, source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=values):
                text = "".join(
                    part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "X"
                    for part in values
                )
                yield from _prose(path, node.lineno, text)
            case ast.Constant(value=str() as text) if id(node) not in inside:
                yield from _prose(path, node.lineno, text)
    yield from _comments(path, source, 1)


def _prose(path: Path, line: int, text: str) -> Iterator[Text]:
    """A string is prose if it has at least four words with letters only."""
    if len(re.findall(r"(?<![\w./_-])[A-Za-z]{2,}(?![\w/_=(\[-])", text)) >= 4:
        yield from _markdown(path, text, line)


def _comments(path: Path, source: str, first: int) -> Iterator[Text]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:noqa|pyright|type|ruff|fmt)\b", token.string):
                yield Text(path, first + token.start[0] - 1, token.string.lstrip("# "))
    except (tokenize.TokenError, IndentationError):
        return


def _markdown(path: Path, text: str, first: int) -> Iterator[Text]:
    """Paragraphs without code blocks, inline code, formulas, addresses and quotations."""
    paragraph: list[str] = []
    begun, fence = first, ""
    for number, line in enumerate([*text.splitlines(), ""], first):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            is_block = not fence and re.match(
                r"\s*`{3,}\{(?:prf|admonition|note|tip|dropdown|figure|seealso|warning)", line
            )
            fence = "" if fence or is_block else mark[1]
            continue
        if fence or line.lstrip().startswith((">", ">>>", ":label:", ":class:", ":name:")):
            continue
        if not line.strip() or re.match(r"\s*(?:[-*|]|\d+\.) ", line):
            if paragraph:
                yield Text(path, begun, _plain(" ".join(paragraph)))
            paragraph, begun = ([line.strip()] if line.strip() else []), number
            continue
        if not paragraph:
            begun = number
        paragraph.append(line.strip())
    if paragraph:
        yield Text(path, begun, _plain(" ".join(paragraph)))


def _plain(text: str) -> str:
    text = re.sub(r"``.*?``|`[^`]*`", "X", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", "X", text)
    text = re.sub(r"https?://\S+", "X", text)
    return re.sub(r'"[^"]{1,200}"|“[^”]*”', "X", text)


def words(text: str) -> int:
    """Return how many words `text` has."""
    return len(re.findall(r"[A-Za-z][A-Za-z'-]*", text))


def files(trees: list[str]) -> list[Path]:
    """Return the tracked files below `trees` that hold prose."""
    listed = subprocess.run(["git", "ls-files", "--", *trees], check=True, capture_output=True, text=True).stdout
    suffixes = {".py", ".md", ".ipynb"}
    return [
        Path(name)
        for name in listed.splitlines()
        if Path(name).suffix in suffixes and not name.startswith(EXEMPT) and Path(name).is_file()
    ]


def main() -> None:
    """Print every error, then for each tree the counted patterns per 1,000 words; exit with 1 if there are errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", default=[*TREES, *PAGES], help="folders or files (default: everything)")
    parser.add_argument("--counted", action="store_true", help="also print the patterns that are only counted")
    parser.add_argument(
        "--measure", action="store_true", help="read the installed packages named instead: false alarms"
    )
    parser.add_argument(
        "--most", type=float, metavar="N", help="fail if a tree has more than N patterns per 1,000 words (default: any)"
    )
    options = parser.parse_args()
    total, hits, errors, kept = Counter(), Counter(), Counter(), []
    by_pattern: Counter[str] = Counter()
    crowded = False
    for path in _installed(options.trees) if options.measure else files(options.trees):
        tree = path.parts[0]
        lines = path.read_text(encoding="utf-8").splitlines()
        for text in texts(path):
            total[tree] += words(text.text)
            for pattern in PATTERNS:
                for match in pattern.finditer(text.text):
                    near = lines[text.line - 1 : text.line + text.text.count("\n") + 1]
                    if any(KEEP in line for line in near):
                        kept.append(f"{path}:{text.line}")
                        continue
                    (errors if pattern.error else hits)[tree] += 1
                    by_pattern[pattern.instead] += 1
                    if pattern.error or options.counted:
                        around = text.text[max(0, match.start() - 30) : match.end() + 30]
                        print(f"{path}:{text.line}: ...{around}... ({pattern.instead})")
    for tree in sorted(total):
        rate = 1000 * (hits[tree] + errors[tree]) / max(total[tree], 1)
        print(f"{tree}: {errors[tree]} errors, {hits[tree]} counted, {rate:.1f} per 1,000 of {total[tree]} words")
        if options.most is not None and rate > options.most:
            print(f"{tree}: more than {options.most} per 1,000 words")
            crowded = True
    for instead, count in by_pattern.most_common():
        print(f"  {count:5} {instead}")
    if kept:
        print(f"{len(kept)} kept on purpose (at most {MOST_KEPT}): {', '.join(kept)}")
    if errors.total() or crowded or len(kept) > MOST_KEPT:
        sys.exit(1)


def _installed(packages: list[str]) -> list[Path]:
    """Return the sources of installed packages, without their tests."""
    import importlib.util

    found = []
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or [] if spec else []:
            found += [path for path in sorted(Path(folder).rglob("*.py")) if "test" not in str(path)]
    return found


if __name__ == "__main__":
    main()
