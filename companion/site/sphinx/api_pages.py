"""`{companion-api} MODULE …`: what a library offers, from its docstrings, each name with the figures that use it.

Docstrings are plain text: every sign comes out as it is written, but that backticks mark code. A name in backticks or
in a signature leads to where it is explained, a citation `[PAPER, Lemma 2.1]` to the box that states it or to the
work, `book/page` to that page.
"""

# pygments has no types.
# pyright: reportMissingTypeStubs=false

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from docutils import nodes
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Keyword, Name, Number, Operator, String, Token
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from companion.analysis.api_index import Entry, Library, Module
from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import read_yaml
from companion.project.paths import Project, relative
from companion.project.repository import public_address
from companion.site.sphinx.figure_numbers import figure_link
from companion.site.sphinx.nodes import details, signature, summary
from companion.site.sphinx.references import WORK
from companion.site.sphinx.statement_index import statements_of

logger = logging.getLogger(__name__)
# More figures than these are folded; of what nearly all use, the number is said.
FEW, NEARLY_ALL = 6, 0.5
# In a docstring: code, a citation, a page.
MARKUP = re.compile(r"(`[^`]+`|\[[A-Z][A-Za-z]*\d+[a-z]?(?:, [^\]`]*)?\]|\bbook/\w+)")
WORD = re.compile(r"[\w.]+")
# Titles of sections of a docstring in Google's style; those of the first kind have one item per name.
ITEMISED = ("Args:", "Attributes:", "Raises:")
SECTIONS = (*ITEMISED, "Returns:", "Yields:")
HIGHLIGHTER = PythonLexer(ensurenl=False)
# What has a colour in a signature, by the kind that says which.
COLOURED = {
    **dict.fromkeys((Keyword, Keyword.Constant, Name.Builtin.Pseudo, Operator.Word), Keyword),
    **dict.fromkeys((String.Double, String.Single, String.Affix), String),
    **dict.fromkeys((Number.Integer, Number.Float), Number),
    Name.Builtin: Name.Builtin,
}


def library_of(app: Sphinx) -> Library:
    """The library that the book explains, read once a build."""
    if not hasattr(app, "companion_library"):
        app.companion_library = Library(app.config.companion_project)  # pyright: ignore
    return app.companion_library  # pyright: ignore


class ApiDirective(SphinxDirective):
    """A section a module: what it says of itself, then its public names."""

    has_content = False
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The sections, or an error that fails a strict build."""
        try:
            library = library_of(self.env.app)
        except UserError as mistake:
            raise self.error(str(mistake)) from mistake
        if not self.arguments:
            raise self.error("`{companion-api}` needs the names of modules, as `{companion-api} lib.a lib.b`.")
        page = self.env.docname.rpartition("/")[2]
        unknown = [name for name in self.arguments[0].split() if name not in library.pages.get(page, ())]
        if unknown:
            raise self.error(f"{unknown[0]!r} is not read from this page. {did_you_mean(unknown[0], library.modules)}")
        self.note_sources(library)
        return [self._module(library, library.modules[name]) for name in self.arguments[0].split()]

    def note_sources(self, library: Library) -> None:
        """Return everything that this page depends on, so that Sphinx reads the page again when it changes."""
        project: Project = self.config.companion_project
        for module in library.modules.values():
            self.env.note_dependency(str(module.path))
        for name in project.notebooks():
            self.env.note_dependency(str(project.notebook(name)))
            for path in sorted(project.chapter(name).rglob("*.py")):
                self.env.note_dependency(str(path))

    @cached_property
    def sources(self) -> str:
        """The address of the sources; empty while the address of the repository is unset."""
        project: Project = self.config.companion_project
        if not (url := public_address(project)):
            return ""
        return f"{url}/blob/{read_yaml(project.root / '_config.yml')['repository'].get('branch', 'main')}"

    def _module(self, library: Library, module: Module) -> nodes.Node:
        section = nodes.section(ids=[f"module-{module.name}"], names=[module.name])
        section += nodes.title("", "", nodes.literal("", module.name))
        section += docstring(self.env, library, module, module.doc)
        section += [self._entry(library, module, entry) for entry in module.entries]
        return section

    def _entry(self, library: Library, module: Module, entry: Entry) -> nodes.Node:
        described, content = self._described(library, entry)
        content += docstring(self.env, library, entry, entry.doc)
        for member in entry.members:
            inner, said = self._described(library, member)
            said += docstring(self.env, library, member, member.doc)
            content += inner
        content += self._place(library, module, entry)
        content += self._users(library, entry)
        return described

    def _described(self, library: Library, entry: Entry) -> tuple[addnodes.desc, addnodes.desc_content]:
        described = addnodes.desc(domain="py", objtype=entry.kind, desctype=entry.kind, classes=["py"])
        head = signature(ids=[entry.full], classes=["sig", "highlight"], permalink="." not in entry.name)
        if "." not in entry.name:  # members are not in the table of contents of the page
            head["_toc_parts"], head["_toc_name"] = (entry.module, entry.name), entry.name
        head += _highlighted(self.env, library, entry)
        content = addnodes.desc_content()
        described += [head, content]
        self.env.get_domain("py").note_object(entry.full, entry.kind, entry.full, location=head)  # pyright: ignore
        return described, content

    def _place(self, library: Library, module: Module, entry: Entry) -> nodes.Node:
        """How it is imported, and where it is written."""
        project: Project = self.config.companion_project
        line = nodes.paragraph("", "", nodes.literal("", library.importable(entry)), classes=["companion-source"])
        if not module.path.is_relative_to(project.root):
            return line
        path = relative(module.path, project.root)
        if self.sources:
            uri = f"{self.sources}/{path}#L{entry.first}-L{entry.last}"
            line += [nodes.Text(" · "), nodes.reference("", path, refuri=uri)]
        else:
            line += nodes.Text(f" · {path}, line {entry.first}")
        return line

    def _users(self, library: Library, entry: Entry) -> Iterator[nodes.Node]:
        """The figures whose code names it; without any, the names of the library that do."""
        places = library.users.get(entry.full, [])
        if len(places) > NEARLY_ALL * len(library.figures):
            yield _said(f"Used in {len(places)} of {len(library.figures)} figures.")
        elif len(places) > FEW:
            folded = details(classes=["companion-users"])
            folded += [summary("", f"Used in {len(places)} figures"), _said("", self._figures(places))]
            yield folded
        elif places:
            yield _said("Used in ", self._figures(places))
        elif users := library.inner_users.get(entry.full, []):
            links = [_to_name(self.env, library, full, full.rpartition(".")[2]) for full in users]
            yield _said("Used by ", links)

    def _figures(self, places: list[str]) -> list[nodes.Node]:
        return [_to_figure(self.env, place.partition("/")[2]) for place in places]


class UsedDirective(SphinxDirective):
    """`{companion-used} notebook/figure`: the names of the library that the figure's code uses, linked."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A line, or nothing where no page explains any."""
        library = library_of(self.env.app)
        names = library.used(*self.arguments[0].split("/")) if library.modules else []
        own = [name for name in names if name.split(".")[0] in self.config.companion_project.settings.science]
        links = [_to_name(self.env, library, name, name.rpartition(".")[2]) for name in own]
        return [_said("From the library: ", links)] if links else []


def docstring(env: Any, library: Library, of: Module | Entry, text: str) -> Iterator[nodes.Node]:
    """Return a docstring as nodes: paragraphs, sections like `Args:`, lists of lines with `- `, verbatim blocks."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        if not lines:
            continue
        if all(line.startswith("    ") for line in lines) or lines[0].startswith("|"):
            plain = "\n".join(line.removeprefix("    ") for line in lines)
            yield nodes.literal_block(plain, plain, language="text", classes=["companion-verbatim"])
        elif lines[0] in SECTIONS and len(lines) > 1:
            yield from _section(env, library, of, lines[0], lines[1:])
        elif lines[0].startswith("- "):
            items = re.split(r"(?:^|\n)- ", block)[1:]
            found = [nodes.list_item("", nodes.paragraph("", "", *inline(env, library, of, item))) for item in items]
            yield nodes.bullet_list("", *found)
        else:
            yield nodes.paragraph("", "", *inline(env, library, of, block))


def _section(env: Any, library: Library, of: Module | Entry, title: str, lines: list[str]) -> Iterator[nodes.Node]:
    """Return a section of a docstring in Google's style: its title, then one item per name, or one paragraph."""
    yield nodes.paragraph("", "", nodes.strong("", title.removesuffix(":")))
    if title not in ITEMISED:
        yield nodes.paragraph("", "", *inline(env, library, of, "\n".join(lines)))
        return
    items = nodes.bullet_list()
    for item in re.split(r"\n  (?=\S)", "\n" + "\n".join(lines))[1:]:
        name, _, text = item.partition(": ")
        items += nodes.list_item(
            "", nodes.paragraph("", "", nodes.literal("", name), *inline(env, library, of, f": {text}"))
        )
    yield items


def inline(env: Any, library: Library, of: Module | Entry, text: str) -> Iterator[nodes.Node]:
    """A paragraph of a docstring: code, citations and pages, and every other sign as it is written."""
    project: Project = env.config.companion_project
    for place, part in enumerate(MARKUP.split(" ".join(text.split()))):
        if not part:
            continue
        if place % 2 == 0:
            yield nodes.Text(part)
        elif part.startswith("`"):
            word = part[1:-1]
            full = library.meant_by(word, of) if WORD.fullmatch(word) else None
            yield _to_name(env, library, full, word) if full else nodes.literal("", word)
        elif part.startswith("["):
            yield from _cited(env, part)
        elif (project.root / f"{part}.md").is_file() or (project.root / f"{part}.ipynb").is_file():
            yield _link(env, part, refdomain="std", reftype="doc", reftarget=f"/{part}")
        else:
            yield nodes.Text(part)


def _cited(env: Any, citation: str) -> Iterator[nodes.Node]:
    """`[PAPER, Lemma 2.1]` as a link to the box that states it, else to the work, else as it is written."""
    statements = statements_of(env.app)
    if statements and (box := statements.box_cited(citation)):
        yield nodes.Text("[")
        yield _link(env, citation[1:-1], refdomain="prf", reftype="ref", reftarget=box)
        yield nodes.Text("]")
        return
    works = re.split(r"(\b[A-Z][A-Za-z]*\d+[a-z]?\b)", citation)
    known = env.get_domain("cite").bibdata.data.entries
    for place, part in enumerate(works):
        if place % 2 and part in known:
            yield _link(env, part, refdomain="", reftype=WORK, reftarget=part)
        else:
            yield nodes.Text(part)


def find_work(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """A link to a work in the list of references, when that has been read."""
    if node["reftype"] != WORK:
        return None
    cited = {one.key: one for one in env.get_domain("cite").citations}
    if (found := cited.get(node["reftarget"])) is None:
        return None
    return make_refnode(app.builder, node["refdoc"], found.bibliography_key.docname, found.citation_id, contnode)


def tell_unexplained(app: Sphinx, env: Any) -> None:
    """Warn of every module of the book's `api` that no page explains."""
    try:
        for fault in library_of(app).faults() if app.config.companion_project.settings.api else []:
            logger.warning("%s", fault)
    except UserError as mistake:
        logger.warning("%s", mistake)


def _highlighted(env: Any, library: Library, entry: Entry) -> Iterator[nodes.Node]:
    """A signature in colours, its known names linked."""
    own = entry.name.rpartition(".")[2]
    for kind, text in HIGHLIGHTER.get_tokens(entry.signature):
        full = library.meant_by(text, entry) if kind is Token.Name and text != own else None
        if full:
            yield _to_name(env, library, full, text, code=False)
        elif text == own:
            yield nodes.strong("", text)
        elif kind in COLOURED and text.strip():
            yield nodes.inline("", text, classes=[STANDARD_TYPES[COLOURED[kind]]])
        else:
            yield nodes.Text(text)


def _to_name(env: Any, library: Library, full: str, text: str, *, code: bool = True) -> nodes.Node:
    page = library.page_of(full)
    here = env.docname.rpartition("/")[2]
    project: Project = env.config.companion_project
    uri = "" if page == here else env.app.builder.get_relative_uri(env.docname, f"{project.book.name}/{page}")
    link = nodes.reference("", "", refuri=f"{uri}#{full}", internal=True)
    link += nodes.literal("", text) if code else nodes.Text(text)
    return link


def _to_figure(env: Any, figure: str) -> nodes.Node:
    text = f"Fig. %s ({figure.replace('_', ' ')})"
    return figure_link(env, figure, text)


def _link(env: Any, text: str, **about: Any) -> nodes.Node:
    link = addnodes.pending_xref("", refdoc=env.docname, refexplicit=True, refwarn=True, **about)
    link += nodes.inline("", text)
    return link


def _said(text: str, links: Iterable[nodes.Node] = ()) -> nodes.Node:
    said = nodes.paragraph("", text, classes=["companion-users"])
    for place, link in enumerate(links):
        said += [nodes.Text(", "), link] if place else [link]
    return said
