"""`python -m companion`: the command line, also without an installed script."""

import sys

from companion import missing_library
from companion.io import signals


def main() -> None:
    """Run the command line; print one sentence if a signal stops it or a library is missing."""
    try:
        signals.listen()
        try:
            from companion.cli import app
        except ModuleNotFoundError as error:
            sys.exit(missing_library(error.name, "The command line", "book"))
        app()
    except KeyboardInterrupt as stopped:
        print(signals.SENTENCE, file=sys.stderr)
        sys.exit(signals.exit_code(stopped))


if __name__ == "__main__":
    main()
