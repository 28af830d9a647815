"""The Sphinx domain of a book: what each page shows, and the figures, claims and statements that other books link to.

Sphinx stores the data of a domain with the other results of reading, and has it forget a page that is removed or about
to be read again. The inventory of the site, `objects.inv`, lists the objects. Another book that names the site in its
`intersphinx_mapping` links to a claim with `` {external+KEY:companion:claim}`id` ``.
"""

# Sphinx types its domains incompletely.
# pyright: reportUnknownMemberType=false, reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from docutils import nodes
from sphinx.domains import Domain, ObjType
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

KINDS = ("figure", "claim", "statement")


@dataclass
class PageData:
    """What one page shows.

    Attributes:
      shown: the claims (by id), the boxes whose claims are shown (by label), or a mark for all claims.
      thumbnails: the figures, `notebook/figure`, of which the page has a thumbnail.
      embedded: the other chapters whose scripts the page needs.
      entries: what the search finds on the page.
      objects: the anchors and titles of the objects on the page, by kind and name.
    """

    shown: set[str] = field(default_factory=set[str])
    thumbnails: set[str] = field(default_factory=set[str])
    embedded: set[str] = field(default_factory=set[str])
    entries: list[Any] = field(default_factory=list[Any])
    objects: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict[tuple[str, str], tuple[str, str]])


class BookDomain(Domain):
    """The data of a book. Besides its pages, it remembers the digests of their files, and their claims."""

    name = "companion"
    label = "Figures, claims and statements"
    object_types: ClassVar = {kind: ObjType(kind, kind) for kind in KINDS}
    roles: ClassVar = {kind: XRefRole() for kind in KINDS}
    initial_data: ClassVar[dict[str, Any]] = {"pages": {}, "contents": {}}

    @classmethod
    def of(cls, env: BuildEnvironment) -> "BookDomain":
        """Return the domain of an environment."""
        return env.domains[cls.name]  # pyright: ignore[reportReturnType]

    @property
    def pages(self) -> dict[str, PageData]:
        """What each page shows, by its name."""
        return self.data["pages"]

    @property
    def current(self) -> PageData:
        """What the page that is being read shows."""
        return self.pages.setdefault(self.env.docname, PageData())

    def note(self, kind: str, name: str, title: str, anchor: str) -> None:
        """Note an object on the page that is being read."""
        self.current.objects[kind, name] = (" ".join(title.split()), anchor)

    def clear_doc(self, docname: str) -> None:
        """Forget a page."""
        self.pages.pop(docname, None)

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        """Yield the objects for the inventory. The search of the book has its own index, hence the priority -1."""
        for page, data in self.pages.items():
            for (kind, name), (title, anchor) in data.objects.items():
                yield name, title, kind, page, anchor, -1

    def resolve_xref(  # noqa: PLR0917
        self, env: Any, fromdocname: str, builder: Any, typ: str, target: str, node: Any, contnode: nodes.Element
    ) -> nodes.reference | None:
        """Return a link to an object, or None if there is none of this kind and name."""
        for name, title, kind, page, anchor, _ in self.get_objects():
            if (kind, name) == (typ, target):
                return make_refnode(builder, fromdocname, page, anchor, contnode, title)
        return None

    def resolve_any_xref(self, *_: Any, **__: Any) -> list[tuple[str, nodes.Element]]:
        """Return nothing: a link without a kind means no object of this domain."""
        return []
