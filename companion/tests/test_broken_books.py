"""Every fault of a book fails the build: each test breaks one thing in a small book."""

import copy
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from companion.figures import store
from small_books import Clone

FIGURE = "toy_error"


@pytest.fixture(scope="module")
def built(pristine, tmp_path_factory) -> Clone:
    """A book with buttons once it has an address, run and built, for reading only."""
    book = pristine.copy_to(tmp_path_factory.mktemp("books") / "clone")
    book.replace("_config.yml", "execute:\n", "launch_buttons:\n  binderhub_url: https://mybinder.org\n\nexecute:\n")
    for command in (("run", "toy"), ("site",)):
        book.succeed(*command)
    return book


@pytest.fixture
def book(built, tmp_path) -> Clone:
    """A copy of it, to break."""
    shutil.copytree(built.root, tmp_path / "clone", ignore=shutil.ignore_patterns(".doctrees", ".snakemake"))
    return Clone(tmp_path / "clone")


def build(book: Clone, *options: str) -> Path:
    """Build the site without an error; return its folder."""
    book.succeed("site", *options)
    return book.project.site("laptop")


# Pages have typographic quotes; this maps them to ASCII.
TYPED_QUOTES = str.maketrans("‘’“”", "''\"\"")


def parsed(text: str) -> SimpleNamespace:
    """Return the text of a page, the alt texts of its pictures, and its scripts."""
    page = BeautifulSoup(text, "html.parser")
    scripts = [script.extract().get_text() for script in page(["script", "style"])]
    words = " ".join(page.get_text().split()).translate(TYPED_QUOTES)
    return SimpleNamespace(text=words, alts=[image["alt"] for image in page.select("[alt]")], scripts=scripts)


def add_to_front_page(book: Clone, sentence: str) -> None:
    page = book.project.book / "index.md"
    page.write_text(f"{page.read_text()}\n{sentence}\n")


def edit_record(book: Clone, change, figure: str = FIGURE) -> None:
    path = book.project.published / f"toy/{figure}.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_unbroken_book_builds_again(book):
    """The control: the same command succeeds without damage; in a fresh copy it reads every page.

    After a change of a claim, it reads again only the pages that show the claim: its chapter, the ledger, and the front
    page, which offers the executed notebook.
    """
    for change, pages in ((lambda record: None, 4), (lambda record: record["claims"][0].update(measured=1.01), 3)):
        edit_record(book, change)
        site = build(book)
        log = (book.project.build("laptop").folder / "book.log").read_text()
        assert sum(map(int, re.findall(r"(\d+) added, (\d+) changed", log)[0])) == pages
    assert "1.01" in (site / "book/claims.html").read_text()


# A figure, what is wrong with it, and words of the error.
DAMAGES = {
    "pictureless": (
        lambda book: (book.project.published / "toy/pictureless.svg").unlink(),
        "pictureless.svg is missing",
    ),
    "altered": (
        lambda book: book.replace("figures/toy/altered.csv", "10,", "11,"),
        "does not match the checksum in its record",
    ),
}


def test_a_damaged_book_is_not_built(book):
    """A notebook without a run is an error, too, although the copy of it that the last site shows remains."""
    folder, pages = book.project.published / "toy", book.project.build("laptop")
    for name, (damage, _) in DAMAGES.items():
        for suffix in store.SUFFIXES:
            shutil.copyfile(folder / f"{FIGURE}{suffix}", folder / f"{name}{suffix}")
        damage(book)
        add_to_front_page(book, f"```{{companion-figure}} toy/{name}\n```")
    assert (pages.notebooks / "toy.ipynb").is_file()
    (pages.executed / "toy.ipynb").unlink()
    finished = book.companion("site")
    assert finished.returncode == 2
    words = [*(words for _, words in DAMAGES.values()), "toy has not been run"]
    assert [word for word in words if word not in finished.stderr] == []


def test_a_notebook_that_was_edited_after_its_run_is_not_shown(book):
    book.replace("book/toy.ipynb", "p.repeats, seed", "p.repeats + 1, seed")
    finished = book.companion("site")
    assert finished.returncode == 2
    assert "has changed since its run" in finished.stderr


STATEMENTS = """\
origins:
  P: {name: the printed paper}
  H: {name: hearsay, second_hand: true}
papers:
  MU49: {title: Words, versions: Numbers are those of the print.}
statements:
  - {paper: MU49, item: 1, kind: lemma, number: Lemma 1, title: Slow, read: [P], boxes: [slow]}
  - {paper: MU49, item: 2, kind: theorem, number: Theorem 2, title: Slower, read: [H], pages: [index]}
"""


def add_statements(book: Clone, text: str) -> None:
    """Give the book a list of statements, a page that shows it, and a box that cites Lemma 1."""
    book.write("book/list.yml", text)
    book.replace("pyproject.toml", "science = []", 'science = []\nstatements = "book/list.yml"')
    book.replace("_toc.yml", "book/claims", "book/statements\n      - file: book/claims")
    book.write("book/statements.md", "# Statements\n\n```{companion-statements} MU49\n```\n")
    add_to_front_page(book, "```{prf:lemma}\n:label: slow\n\nSlow. This is Lemma 1 of {cite:t}`MU49`.\n```")
    edit_record(book, lambda record: record["claims"][0].update(source="[MU49, Thm 2]"))


# Characters that MyST, HTML or TeX would parse as markup, but that are literal in a claim, except for one formula.
SPECIAL = (
    """a*b*c _x_ **d** __e__ `f` [g](h) {i}`j` <script>k</script> & &amp; $l$ \\m | #n ~o~ (p)= 'q' "r" snake_case"""
)
SET = SPECIAL.replace("$l$", "l")
# A caption may contain formulas and emphasis; these characters are literal in it.
SPECIAL_CAPTION = "a * b < c > d <script>e</script> & &amp; f $ g"


WORDS = SPECIAL.replace("\\", "\\\\").replace("`f`", "f").replace("`j`", "j").replace('"r"', "r")
MODULE = f'''"""{WORDS}"""


def first(x: "A[B, ' d']" = 1 < 2):
    """{WORDS}"""


class Second:
    """{WORDS} See `first`."""

    def third(self):
        """{WORDS}"""
'''


def with_special_texts(record) -> None:
    """Change the texts of a record; a second claim cites Theorem 2."""
    record["caption"] = SPECIAL_CAPTION
    record["alt"] = record["columns"]["length"]["meaning"] = record["columns"]["length"]["unit"] = SPECIAL
    (claim,) = record["claims"]
    record["claims"].append({**copy.deepcopy(claim), "id": "toy-second", "source": "[MU49, Thm 2]"})
    claim["statement"] = claim["alternative"]["theory"] = claim["source"] = SPECIAL


@pytest.fixture(scope="module")
def special(built, tmp_path_factory) -> Clone:
    """A book with special characters in its record, its statements and its docstrings, built; `.pages` by name."""
    book, text = built.copy_to(tmp_path_factory.mktemp("special") / "clone"), json.dumps(SPECIAL)
    add_statements(book, STATEMENTS.replace("title: Slow,", f"title: {text}, remark: {text},"))
    edit_record(book, with_special_texts)
    book.write("clone/odd.py", MODULE)
    book.write("book/names.md", "# Names\n\n```{companion-api} clone.odd\n```\n")
    book.replace("_toc.yml", "- file: book/claims", "- file: book/claims\n      - file: book/names")
    site, names = build(book), ("index", "toy", "claims", "statements", "names")
    book.pages = {name: (site / f"book/{name}.html").read_text() for name in names}  # pyright: ignore
    return book


def test_statements_are_shown_with_their_origins(special):
    pages = special.pages
    assert re.search(r"What we read: <a [^>]*>Lemma 1</a>, in the printed paper\.", pages["index"])
    assert 'id="statement-mu49-2"' in pages["statements"]
    assert "hearsay" in pages["claims"]
    assert "second-hand" in pages["claims"]


def test_texts_of_a_record_are_shown_literally(special):
    """This holds on the page, in its folded details, in the ledger, in the list of statements, and for downloads.

    In the meaning and the unit of a column, words in backticks are code.
    """
    pages = {name: parsed(special.pages[name]) for name in ("toy", "claims", "statements")}
    for page in pages.values():
        assert "k" not in page.scripts
        assert "e" not in page.scripts
    assert SPECIAL_CAPTION in pages["toy"].text
    assert SPECIAL in pages["toy"].alts
    assert pages["toy"].text.count(SET) == 2  # statement, alternative
    assert pages["toy"].text.count(SPECIAL) == 1  # source
    assert pages["toy"].text.count(SET.replace("`", "")) == 2  # meaning and unit of a column
    assert pages["claims"].text.count(SET) == 2  # statement, alternative
    assert pages["claims"].text.count(SPECIAL) == 2  # source, also as a filter
    assert pages["statements"].text.count(SPECIAL) == 2
    site = special.project.site("laptop")
    record = json.loads((site / f"figures/toy/{FIGURE}.json").read_text())
    assert record["claims"][0]["statement"] == SPECIAL
    table = f"figures/toy/{FIGURE}.csv"
    assert (site / table).read_bytes() == (special.root / table).read_bytes()


def test_docstrings_are_shown_literally(special):
    """This holds for a module, a function, a class and its method; names link."""
    page = parsed(special.pages["names"])
    assert page.text.count(" ".join(WORDS.replace("\\\\", "\\").replace("$l$", "l").split())) == 4
    assert "k" not in page.scripts
    assert """first(x: "A[B, ' d']" = 1 < 2)""" in page.text
    assert 'href="#clone.odd.first"' in special.pages["names"]


def test_a_book_with_an_address_has_buttons(book):
    """`set-url` adds buttons and absolute addresses; before that, no link needs the address."""
    site = book.project.site("laptop")
    page, picture = site / "book/toy.html", f"figures/toy/{FIGURE}.png"
    before = page.read_text()
    assert re.findall(r"github\.com/[\w-]+|mybinder\.org|(?:href|content)=\"/?blob/", before) == []
    assert "btn-source-repository-button" not in before
    assert "btn-launch" not in before
    assert not (site / picture).exists()
    assert book.companion("set-url", "https://github.com/Some--body/paper").returncode == 0
    build(book, "--published")
    text, address = page.read_text(), "https://some--body.github.io/paper"
    assert 'href="https://github.com/Some--body/paper"' in text
    assert "btn-source-repository-button" in text
    assert 'href="https://mybinder.org/v2/gh/Some--body/paper/main' in text
    assert f'<meta property="og:url" content="{address}/book/toy.html">' in text
    assert f'content="{address}/{picture}"' in text
    assert (site / picture).is_file()
    assert f"{address}/figures/toy/{FIGURE}.svg" in (site / "notebooks/toy.ipynb").read_text()
    assert f"{address}/" in (site / "404.html").read_text()


def test_every_fault_of_a_page_is_reported_again(book):
    """A second build fails too: Sphinx must not treat a page with warnings as read.

    The faults are a broken link, an unknown claim, a box whose label equals the anchor of a heading, a box and a claim
    that cite a paper without a row in the list of statements, a module that no page documents, and a heading without
    content. One above another heading of a lower level has content.
    """
    book.replace("pyproject.toml", "science = []", 'science = []\napi = ["clone"]')
    add_to_front_page(book, "## Above\n\n### Below\n\nWords.\n\n## Nothing follows\n\n## After\n\nWords.")
    add_to_front_page(book, "See {doc}`nowhere`.")
    add_to_front_page(book, "Measured: {claim}`toy-rat`.")
    add_to_front_page(book, "## Slow words\n\n```{prf:remark}\n:label: slow-words\n\nSlow.\n```")
    add_statements(book, STATEMENTS.replace(", boxes: [slow]", "").replace("Theorem 2", "Theorem 4"))
    words = (
        "nowhere",
        "Did you mean 'toy-rate'",
        "have the anchor 'slow-words'",
        "Box 'slow' on index cites MU49 and has no row",
        "has the source [MU49, Thm 2] and no row",
        "The module clone.toy.figures.toy_error is documented on no page",
        "The heading 'Nothing follows' has no content",
    )
    for _ in range(2):
        finished = book.companion("site")
        assert finished.returncode == 2
        assert [word for word in words if word not in finished.stderr] == []
        assert "'Above'" not in finished.stderr
