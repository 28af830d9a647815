"""Standard streams that work with any encoding."""

import codecs
import io
import sys

# The name of an error handler of encodings, and what it writes for the signs of our messages.
PLAIN = "companion.plain"
SUBSTITUTES = {"▸": ">", "✓": "ok", "✗": "x", "—": "-", "–": "-", "…": "...", "≤": "<=", "≥": ">=", "−": "-"}


def prepare() -> None:
    """Let no character stop a message. Call it once, before anything is printed.

    A terminal that is not UTF-8 shows substitutes for our signs, and the code point of any other character that it
    lacks.
    """
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    codes = (character.encode("ascii", "backslashreplace").decode("ascii") for character in characters)
    return "".join(SUBSTITUTES.get(sign, code) for sign, code in zip(characters, codes, strict=True)), error.end
