"""Standard streams that work with any encoding, and where the caller has closed them."""

import codecs
import io
import os
import sys

# The name of an error handler of encodings, and what it writes for the signs of our messages.
PLAIN = "companion.plain"
SUBSTITUTES = {"▸": ">", "✓": "ok", "✗": "x", "—": "-", "–": "-", "…": "...", "≤": "<=", "≥": ">=", "−": "-"}


def prepare() -> None:
    """Open closed standard streams, and let no character stop a message. Call it once, before anything is printed.

    A service may start a command without standard output or standard error; Python then has no stream, and the next
    file that is opened gets the stream's number. A terminal that is not UTF-8 shows substitutes for our signs, and the
    code point of any other character that it lacks.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers, 0 to 2
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, it stays open
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
