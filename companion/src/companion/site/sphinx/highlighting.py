"""Highlight code in few colours: keywords, strings, comments and definitions stand out, and pages are smaller."""

# Pygments has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from collections.abc import Iterator
from typing import Any

from pygments.filter import Filter
from pygments.filters import TokenMergeFilter
from pygments.lexers.python import PythonLexer
from pygments.token import Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

# Kinds of words with the colour of the code around them; keywords such as `in`, and names in definitions, have others.
PLAIN = {Name, Name.Builtin, Name.Builtin.Pseudo, Name.Namespace, Operator, Punctuation, Whitespace}
ARROW = "->"
# Kinds of words of one colour, by the kinds that they include.
WHOLE = {Keyword: Keyword, Operator.Word: Keyword, String: String}


class PlainFilter(Filter):
    """A filter of Pygments that makes operators, numbers and names plain text, which needs no element in HTML."""

    def filter(self, lexer: Any, stream: Any) -> Iterator[Any]:
        """Yield the words of a stream with the kinds that have a colour."""
        for kind, word in stream:
            if word == ARROW:  # an element, so that no line ends in it
                yield Operator, word
                continue
            whole = next((whole for part, whole in WHOLE.items() if kind in part), kind)
            yield (Text if kind in PLAIN or kind in Number else whole), word


class FewColoursLexer(PythonLexer):
    """A lexer of Python whose words have few kinds."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.add_filter(PlainFilter())
        self.add_filter(TokenMergeFilter())
