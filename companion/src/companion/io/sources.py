"""Read Python sources as Python does: with the encoding that they declare, and without a byte-order mark."""

import tokenize
from pathlib import Path

from companion.io.errors import UserError


def read_source(path: Path) -> str:
    """Return the text of a Python source.

    Raises:
      UserError: if the text does not have its declared encoding, which is UTF-8 by default.
    """
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UserError(f"{path} does not have the encoding that it declares, UTF-8 by default: {error}.") from error
