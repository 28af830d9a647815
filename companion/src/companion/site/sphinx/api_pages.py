"""The directive `{companion-api} MODULE …`: reference of a library, each name with the figures that use it.

Docstrings are plain text, in which backticks mark code and formulas are set as in claims. A name in backticks or in a
signature links to its entry, a citation `[PAPER, Lemma 2.1]` to the box that states it or to the cited work, and
`book/page` to that page.
"""

# pygments has no types.
# pyright: reportMissingTypeStubs=false

import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any

from docutils import nodes
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Keyword, Name, Number, Operator, String, Token
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from companion.analysis.api_index import ApiIndex, Entry, Module
from companion.figures.record import FigureRecord
from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import read_yaml
from companion.project.paths import Project, relative, visible
from companion.project.repository import public_address
from companion.site.sphinx.figure_numbers import figure_link
from companion.site.sphinx.inline_text import page_link, pending_link, typeset
from companion.site.sphinx.nodes import details, separated, signature, summary
from companion.site.sphinx.references import WORK
from companion.site.sphinx.statement_index import statements_of

logger = logging.getLogger(__name__)
# Longer lists of figures are folded. If more than this fraction of all figures use a name, only the number is shown.
FEW, MOST = 6, 0.5
# Markup of a docstring: code, a citation, a page.
MARKUP = re.compile(r"(`[^`]+`|\[[A-Z][A-Za-z]*\d+[a-z]?(?:, [^\]`]*)?\]|\bbook/\w+)")
WORD = re.compile(r"[\w.]+")
# Titles of sections of a docstring in Google's style; those of the first kind have one item per name.
ITEMISED = ("Args:", "Attributes:", "Raises:")
SECTIONS = (*ITEMISED, "Returns:", "Yields:")
# The fold with a docstring after its first paragraph.
DETAILS = "Arguments, results and errors"
HIGHLIGHTER = PythonLexer(ensurenl=False)
# The tokens of a signature that have a colour, each with the token whose colour they get.
COLOURED = {
    **dict.fromkeys((Keyword, Keyword.Constant, Name.Builtin.Pseudo, Operator.Word), Keyword),
    **dict.fromkeys((String.Double, String.Single, String.Affix), String),
    **dict.fromkeys((Number.Integer, Number.Float), Number),
    Name.Builtin: Name.Builtin,
}


@lru_cache(maxsize=1)
def library_of(app: Sphinx) -> ApiIndex:
    """Return the index of the library that the book documents; it is read once per build."""
    return ApiIndex(app.config.companion_project)


class ApiDirective(SphinxDirective):
    """`{companion-api} MODULE …`: one section per module, with its docstring and its public names."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the sections. An error fails a strict build."""
        try:
            library = library_of(self.env.app)
        except UserError as mistake:
            raise self.error(str(mistake)) from mistake
        names = self.arguments[0].split()
        for name in names:
            if name not in library.modules:
                raise self.error(f"There is no module {name!r}. {did_you_mean(name, library.modules)}")
        project: Project = self.config.companion_project
        chapters = project.notebooks()
        scripts = (path for name in chapters for path in visible(project.chapter(name), "**/*.py"))
        for path in (*(module.path for module in library.modules.values()), *map(project.notebook, chapters), *scripts):
            self.env.note_dependency(str(path))
        return [self._module(library, library.modules[name]) for name in names]

    @cached_property
    def sources(self) -> str:
        """The address of the sources; empty while the address of the repository is unset."""
        project: Project = self.config.companion_project
        if not (url := public_address(project)):
            return ""
        return f"{url}/blob/{read_yaml(project.root / '_config.yml')['repository'].get('branch', 'main')}"

    def _module(self, library: ApiIndex, module: Module) -> nodes.Node:
        section = nodes.section(ids=[f"module-{module.name}"], names=[module.name])
        section += nodes.title("", "", nodes.literal("", module.name))
        section += docstring(self.env, library, module, module.doc)
        section += [self._entry(library, module, entry) for entry in module.entries]
        return section

    def _entry(self, library: ApiIndex, module: Module, entry: Entry) -> nodes.Node:
        first, _, rest = entry.doc.strip("\n").partition("\n\n")
        content = [*docstring(self.env, library, entry, first)]
        if rest:
            text = docstring(self.env, library, entry, rest)
            content.append(details("", summary("", DETAILS), *text, classes=["companion-rest"]))
        for member in entry.members:
            content.append(self._described(library, member, docstring(self.env, library, member, member.doc)))
        content += [self._place(library, module, entry), *self._users(library, entry)]
        return self._described(library, entry, content)

    def _described(self, library: ApiIndex, entry: Entry, content: Iterable[nodes.Node]) -> nodes.Node:
        head = signature(
            "", "", *_highlighted(self.env, library, entry), ids=[entry.full], classes=["sig", "highlight"]
        )
        head["permalink"] = "." not in entry.name
        if "." not in entry.name:  # members are not in the table of contents of the page
            head["_toc_parts"], head["_toc_name"] = (entry.module, entry.name), entry.name
        self.env.get_domain("py").note_object(entry.full, entry.kind, entry.full, location=head)  # pyright: ignore
        about = {"domain": "py", "objtype": entry.kind, "desctype": entry.kind}
        return addnodes.desc("", head, addnodes.desc_content("", *content), **about, classes=["py"])

    def _place(self, library: ApiIndex, module: Module, entry: Entry) -> nodes.Node:
        """Return the line with the import statement of an entry and the place of its source."""
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

    def _users(self, library: ApiIndex, entry: Entry) -> list[nodes.Node]:
        """Return the list of the figures that use an entry, if there are any."""
        names = [target.partition("/")[2] for target in library.users.get(entry.full, [])]
        links = [figure_link(self.env, name, f"Fig. %s ({name.replace('_', ' ')})") for name in names]
        if len(names) > MOST * len(library.figures):
            return [_users_line(f"Used in {len(names)} of {len(library.figures)} figures.")]
        if len(names) > FEW:
            word = summary("", f"Used in {len(names)} figures")
            return [details("", word, _users_line("", links), classes=["companion-users"])]
        return [_users_line("Used in ", links)] if names else []


def used_names(env: Any, record: FigureRecord) -> list[nodes.Node]:
    """Return a line of links to the names of the library that the code of a figure uses, or nothing without any."""
    library = library_of(env.app)
    names = library.used.get(f"{record.notebook}/{record.figure}", []) if library.modules else []
    own = [name for name in names if name.split(".")[0] in env.config.companion_project.settings.science]
    links = [_to_name(env, library, name) for name in own]
    return [_users_line("From the library: ", links)] if links else []


def docstring(env: Any, library: ApiIndex, of: Module | Entry, text: str) -> Iterator[nodes.Node]:
    """Yield a docstring as nodes: paragraphs, sections like `Args:`, lists of `- ` items, verbatim text."""
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
            paragraphs = [nodes.paragraph("", "", *inline(env, library, of, item)) for item in items]
            yield nodes.bullet_list("", *[nodes.list_item("", paragraph) for paragraph in paragraphs])
        else:
            yield nodes.paragraph("", "", *inline(env, library, of, block))


def _section(env: Any, library: ApiIndex, of: Module | Entry, title: str, lines: list[str]) -> Iterator[nodes.Node]:
    """Return a section of a docstring in Google's style: its title, then one item per name, or one paragraph."""
    yield nodes.paragraph("", "", nodes.strong("", title.removesuffix(":")))
    if title not in ITEMISED:
        yield nodes.paragraph("", "", *inline(env, library, of, "\n".join(lines)))
        return
    items = nodes.bullet_list()
    for item in re.split(r"\n(?=\S)", textwrap.dedent("\n".join(lines))):
        name, _, text = item.partition(": ")
        content = [nodes.literal("", name), *inline(env, library, of, f": {text}")]
        items += nodes.list_item("", nodes.paragraph("", "", *content))
    yield items


def inline(env: Any, library: ApiIndex, of: Module | Entry, text: str) -> Iterator[nodes.Node]:
    """Yield a paragraph of a docstring as nodes: code, citations and pages become links, other text stays."""
    project: Project = env.config.companion_project
    for index, part in enumerate(MARKUP.split(" ".join(text.split()))):
        if not part:
            continue
        if index % 2 == 0:
            yield from typeset(part)
        elif part.startswith("`"):
            word = part[1:-1]
            full = library.resolve_word(word, of) if WORD.fullmatch(word) else None
            code = nodes.literal("", word)
            yield _to_name(env, library, full, code) if full else code
        elif part.startswith("["):
            yield from _cited(env, part)
        elif (project.root / f"{part}.md").is_file() or (project.root / f"{part}.ipynb").is_file():
            yield pending_link(env, part, refdomain="std", reftype="doc", reftarget=f"/{part}")
        else:
            yield nodes.Text(part)


def _cited(env: Any, citation: str) -> Iterator[nodes.Node]:
    """Yield `[PAPER, Lemma 2.1]` as a link to the box that states it, or else to the cited work, or else as text."""
    statements = statements_of(env.app)
    if statements and (box := statements.box_cited(citation)):
        yield nodes.Text("[")
        yield pending_link(env, citation[1:-1], refdomain="prf", reftype="ref", reftarget=box)
        yield nodes.Text("]")
        return
    works = re.split(r"(\b[A-Z][A-Za-z]*\d+[a-z]?\b)", citation)
    known = env.get_domain("cite").bibdata.data.entries
    for index, part in enumerate(works):
        if index % 2 and part in known:
            yield pending_link(env, part, refdomain="", reftype=WORK, reftarget=part)
        else:
            yield nodes.Text(part)


def find_work(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Resolve a link to a work in the list of references; return None for other links and unknown works."""
    if node["reftype"] != WORK:
        return None
    citations = {citation.key: citation for citation in env.get_domain("cite").citations}
    if (citation := citations.get(node["reftarget"])) is None:
        return None
    return make_refnode(app.builder, node["refdoc"], citation.bibliography_key.docname, citation.citation_id, contnode)


def warn_of_undocumented_modules(app: Sphinx, env: Any) -> None:
    """Warn of every module of the book's `api` that is not documented on exactly one page."""
    try:
        for fault in library_of(app).faults() if app.config.companion_project.settings.api else []:
            logger.warning("%s", fault)
    except UserError as mistake:
        logger.warning("%s", mistake)


def _highlighted(env: Any, library: ApiIndex, entry: Entry) -> Iterator[nodes.Node]:
    """Yield a signature in colours, with links for the names that the book documents."""
    own = entry.name.rpartition(".")[2]
    for kind, text in HIGHLIGHTER.get_tokens(entry.signature):
        full = library.resolve_word(text, entry) if kind is Token.Name and text != own else None
        if full:
            yield _to_name(env, library, full, nodes.Text(text))
        elif text == own:
            yield nodes.strong("", text)
        elif kind in COLOURED and text.strip():
            yield nodes.inline("", text, classes=[STANDARD_TYPES[COLOURED[kind]]])
        else:
            yield nodes.Text(text)


def _to_name(env: Any, library: ApiIndex, full: str, text: nodes.Node | None = None) -> nodes.Node:
    """Return a link to the entry of a name, whose text is by default the last part of the name."""
    return page_link(env, library.page_of(full), full, text or nodes.literal("", full.rpartition(".")[2]))


def _users_line(text: str, links: Iterable[nodes.Node] = ()) -> nodes.Node:
    return nodes.paragraph("", text, *separated(links, ", "), classes=["companion-users"])
