"""Symbol linter: list the mathematical symbols that a page uses and that neither it nor the notation page defines.

A symbol is a letter with its accent, font and star. Subscripts name instances of a symbol and are ignored. A symbol
counts as defined if

- it is in the first column of a table of `notation.md`. If the table has a column "Where", the row holds for the pages
  that it links to, or for all pages if it links to none;
- the page introduces it: alone on the left of `=`, `~` or `∈` in a formula, or next to words, as in "dimension $d$",
  "for every $L$", "$P$, the participation", "Let $x$ be".

The linter cannot decide whether the words explain the symbol.

Example: `python tools/symbol_linter.py needle_in_a_long_prompt`, or without arguments for all pages.
"""

import argparse
import ast
import re
from collections.abc import Iterator

from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import prose

GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|(var)?epsilon|zeta|eta|(var)?theta|iota|kappa|lambda|mu|nu|xi|pi|(var)?rho|(var)?sigma|tau"
    r"|upsilon|(var)?phi|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega|ell)"
)
ACCENTS = ("hat", "widehat", "bar", "overline", "tilde", "widetilde", "check")
FONTS = ("mathcal", "mathscr", "mathfrak", "mathbf", "boldsymbol")
# Commands whose argument is a word or a size, not a symbol. Blackboard letters are sets and expectations.
WORDS = ("mathrm", "text", "textstyle", "operatorname", "mathsf", "begin", "end", "mathbb", "tag", "label")
STARS = {"*", r"\star", r"\ast"}
ATOM = re.compile(r"\\[A-Za-z]+|\\\\\[[^\]]*\]|\\.|[A-Za-z]|[_^{}]|[^\sA-Za-z\\_^{}]|\s+")
DIFFERENTIAL = re.compile(r"(?<![\\A-Za-z])d([a-z])(?![A-Za-z])")
MATH = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$([^$]+?)(?<!\\)\$|```\{math\}(.+?)```", re.DOTALL)
CODE = re.compile(r"```(?:\{literalinclude\}|sh|python|bibtex|text).*?```|(?<!`)`[^`\n]*`(?!`)", re.DOTALL)
RELATION = re.compile(r"^(?:\s|&|\\[,;:!])*(?::?=|\\sim\b|\\in\b|\\propto\b|\\ne\b|\\colon|\\ge\b|\\le\b|>|<|\\to\b)")
SEPARATOR = re.compile(r"\\qquad|\\quad|\\\\|[,;:&]|\\text\{[^}]*\}|\\begin\{[a-z]+\}|\\,")
# Words before a symbol that do not say what it is.
EMPTY = re.compile(
    "at|to|of|in|with|by|on|and|or|is|are|as|than|when|if|from|where|that|since|then|hence|so|but|not|be|was|were|has"
    "|have|into|over|under|between|through|until|till|because|like|while|only|both|either|also|gives?|does|do|can|it"
    "|this|these|those|which|near|about|above|below|beyond|against|beside|up|out|per|times|minus|plus|equals|becomes"
    "|goes|tends|stays|grows|falls|reaches|exceeds",
    re.IGNORECASE,
)
DEFINING_WORDS = re.compile(
    r"^(?:,| \()?\s?(?:is|are|be|being|denotes?|stands? for|counts?|measures?)?\s?(?:the|a|an|its|their|one|[A-Z]\w+)\b"
)


def undefined(project: Project) -> dict[str, list[str]]:
    """Return the undefined symbols of each page that has any."""
    return {page: missing for page in pages(project) if (missing := missing_on(project, page))}


def pages(project: Project) -> list[str]:
    """Return the names of all pages and notebooks except the notation page."""
    return [*project.notebooks(), *sorted(path.stem for path in project.book.glob("*.md") if path.stem != NOTATION)]


NOTATION = "notation"


def missing_on(project: Project, page: str) -> list[str]:
    """Return the undefined symbols of one page, in the order of their first use."""
    text = text_of(project, page)
    used = list(dict.fromkeys(symbol for formula in formulas(text) for symbol in symbols(formula)))
    known = introduced(text) | noted(project, page)
    return [symbol for symbol in used if symbol not in known]


def text_of(project: Project, page: str) -> str:
    """Return the prose and captions of a page, without code."""
    notebook = project.notebook(page)
    if not notebook.is_file():
        return CODE.sub(" ", prose(project.book / f"{page}.md"))
    files = [project.figure_file(page, figure) for figure in Notebook.named(project, page).figures]
    captions = [ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "" for file in files]
    return CODE.sub(" ", "\n\n".join([prose(notebook), *captions]))


def formulas(text: str) -> list[str]:
    """Return the formulas of a text: inline, displayed, and in `math` directives."""
    return [next(filter(None, groups)) for groups in MATH.findall(text)]


def symbols(formula: str) -> Iterator[str]:
    """Yield the symbols of a formula, including those in superscripts, without subscripts and integration variables."""
    bound = set(DIFFERENTIAL.findall(formula)) if r"\int" in formula else set()
    integrand = DIFFERENTIAL.sub(" ", formula) if bound else formula
    yield from (symbol for symbol, _ in _walk(_atoms(integrand)) if symbol not in bound)


def introduced(text: str) -> set[str]:
    """Return the symbols that a text introduces by an equation or next to words."""
    known: set[str] = set()
    pieces = MATH.split(text.replace("\n", " "))
    # the pattern has three groups, of which one matched: text, formula, text, formula, …
    words = pieces[::4]
    between = [next(filter(None, pieces[place + 1 : place + 4])) for place in range(0, len(pieces) - 1, 4)]
    for formula in between:
        for clause in SEPARATOR.split(formula):
            first = next(_walk(_atoms(clause)), None)
            if first and _alone_before_relation(clause, *first):
                known.add(first[0])
    for start, end in _lists(words):
        if _names(words[start]) or DEFINING_WORDS.match(words[end]):
            known |= {symbol for formula in between[start:end] for symbol in _leading(formula)}
    return known


def _lists(words: list[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of formulas that are separated only by commas or `and`."""
    start = 0
    for place in range(1, len(words)):
        if place == len(words) - 1 or words[place].strip() not in {",", "and", ", and", "or", "and of", "/"}:
            yield start, place
            start = place


def noted(project: Project, page: str) -> set[str]:
    """Return the symbols that the notation page defines for `page`."""
    path = project.book / f"{NOTATION}.md"
    anywhere: set[str] = set()
    somewhere: dict[str, set[str]] = {}
    for header, row in _rows(path.read_text(encoding="utf-8") if path.is_file() else ""):
        defined = [symbol for formula in formulas(row[0]) for symbol in symbols(formula)]
        where = (
            re.findall(r"\{doc\}`(?:[^`<]*<)?([a-z_]+)>?`", row[header.index("Where")]) if "Where" in header else None
        )
        if where is None:
            anywhere |= set(defined)
        for symbol in defined if where is not None else []:
            somewhere.setdefault(symbol, set()).update(where or [page])
    return {symbol for symbol in anywhere | set(somewhere) if symbol not in somewhere or page in somewhere[symbol]}


def _rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield header and cells of each row of each table."""
    header: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = cells
        elif not set("".join(cells)) <= set("-: "):
            yield header, cells


def _atoms(formula: str) -> list[str]:
    return [atom for atom in ATOM.findall(formula) if not atom.isspace()]


def _walk(atoms: list[str]) -> Iterator[tuple[str, int]]:
    """Yield each symbol of a list of atoms with the position after it and its decorations."""
    place = 0
    while place < len(atoms):
        atom = atoms[place]
        name = atom.removeprefix("\\")
        if atom in "_^":  # belongs to something that is not a symbol, such as a bracket
            inner, end = _group(atoms, place + 1)
            if atom == "^":
                yield from ((symbol, end) for symbol, _ in _walk(inner))
            place = end
        elif name in WORDS and atom.startswith("\\"):
            place = _group(atoms, place + 1)[1] if name != "textstyle" else place + 1
        elif (atom.startswith("\\") and name in (*ACCENTS, *FONTS)) or _is_letter(atom):
            symbol, end = atom, place + 1
            if not _is_letter(atom):
                inner, end = _group(atoms, place + 1)
                symbol = f"{atom} {''.join(inner)}"
            powers: list[list[str]] = []
            while end < len(atoms) and (atoms[end] in "_^" or atoms[end] == "'"):
                if atoms[end] == "'":
                    end += 1
                    continue
                kind = atoms[end]
                inner, end = _group(atoms, end + 1)
                if kind == "^" and "".join(inner) in STARS:
                    symbol += "^*"
                elif kind == "^":
                    powers.append(inner)
            yield symbol, end
            for power in powers:
                yield from ((inside, end) for inside, _ in _walk(power))
            place = end
        else:
            place += 1


def _group(atoms: list[str], place: int) -> tuple[list[str], int]:
    """Return the atom or braced group that begins at `place`, and the position after it."""
    if place >= len(atoms) or atoms[place] != "{":
        return atoms[place : place + 1], place + 1
    depth = 0
    for end in range(place, len(atoms)):
        depth += {"{": 1, "}": -1}.get(atoms[end], 0)
        if depth == 0:
            return atoms[place + 1 : end], end + 1
    return atoms[place + 1 :], len(atoms)


def _is_letter(atom: str) -> bool:
    return (len(atom) == 1 and atom.isalpha()) or GREEK.fullmatch(atom) is not None


def _alone_before_relation(clause: str, symbol: str, end: int) -> bool:
    """Return whether a clause is the symbol, with or without an argument, followed by a relation."""
    atoms = _atoms(clause)
    head = next((place for place, atom in enumerate(atoms) if atom not in {"&", "{", r"\;", r"\big", r"\Big"}), 0)
    start = head + 1 if atoms[head : head + 1] == [r"\dot"] else head
    if next(_walk(atoms[start:]), ("", 0))[0] != symbol or not _starts_with_symbol(atoms[start:]):
        return False
    rest = " ".join(atoms[end:])
    rest = re.sub(r"^[\[(][^=]*?[\])]\s*", "", rest)
    return RELATION.match(rest) is not None


def _names(before: str) -> bool:
    """Return whether the last word before a formula can name the symbol that follows."""
    if re.search(r"\bthere (is|are|exists?)( an?| some)?\s*$", before):
        return True
    words = re.findall(r"[A-Za-z-]+$", before.rstrip(" *_("))
    return bool(words) and not EMPTY.fullmatch(words[0])


def _leading(formula: str) -> list[str]:
    """Return the symbols that open a formula next to words: a list, with or without arguments or relations."""
    leading: list[str] = []
    for part in re.split(r",(?![^(]*\))|\\dots|\\ldots", formula):
        atoms = _atoms(part)
        first = next(_walk(atoms), None)
        if first is None:
            continue
        alone = atoms[first[1] :] == [] or re.match(r"^[\[(][^=]*[\])]$", " ".join(atoms[first[1] :]))
        if not (alone and _starts_with_symbol(atoms)) and not _alone_before_relation(part, *first):
            return leading
        leading.append(first[0])
    return leading


def _starts_with_symbol(atoms: list[str]) -> bool:
    return _is_letter(atoms[0]) or atoms[0][1:] in (*ACCENTS, *FONTS)


def main() -> None:
    """Print the undefined symbols of the given pages, or of all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="pages to check (default: all)")
    options = parser.parse_args()
    project = Project.here()
    for page in options.pages or pages(project):
        if missing := missing_on(project, page):
            print(f"{page}: {'  '.join(missing)}")


if __name__ == "__main__":
    main()
