"""Highlight code in few colours: keywords, strings, comments and definitions stand out, and pages are smaller."""

# Pygments has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import keyword
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

from pygments.filter import Filter
from pygments.filters import TokenMergeFilter
from pygments.lexer import inherit
from pygments.lexers.python import PythonLexer
from pygments.token import Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

# Kinds of words with the colour of the code around them; keywords such as `in`, and names in definitions, have others.
PLAIN = {Name, Name.Builtin, Name.Builtin.Pseudo, Name.Namespace, Operator, Punctuation, Whitespace}
ARROW = "->"
# Kinds of words of one colour, by the kinds that they include.
WHOLE = {Keyword: Keyword, Operator.Word: Keyword, String: String}
# A run of plain text outside strings: names that are not keywords or prefixes of strings, brackets, commas, equal
# signs, and spaces within a line. It is one match, where Pygments tries fifty patterns at each word.
RUN = rf"(?:\b(?!(?:lazy|{'|'.join([*keyword.kwlist, *keyword.softkwlist])})\b)[a-z]\w*\b(?![\"'])|(?<=\S) |[](),=[])+"


class PlainFilter(Filter):
    """A filter of Pygments that makes operators, numbers and names plain text, which needs no element in HTML."""

    def filter(self, lexer: Any, stream: Any) -> Iterator[Any]:
        """Yield the words of a stream with the kinds that have a colour."""
        for kind, word in stream:
            if word == ARROW:  # an element, so that no line ends in it
                yield Operator, word
                continue
            yield _coloured(kind), word


@cache
def _coloured(kind: Any) -> Any:
    """Return the kind that has the colour for words of this kind."""
    if kind in PLAIN or kind in Number:
        return Text
    return next((whole for part, whole in WHOLE.items() if kind in part), kind)


class FewColoursLexer(PythonLexer):
    """A lexer of Python whose words have few kinds."""

    tokens: ClassVar = {"root": [(RUN, Text), inherit]}

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.add_filter(PlainFilter())
        self.add_filter(TokenMergeFilter())
